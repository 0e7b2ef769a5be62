"""The study of clones: the clone is there, and groups change what a tree makes of it."""

import numpy as np
import pytest

from paper import clones
from paper.base import Options


def test_a_clone_is_large_resistant_and_has_both_genes():
    X, y, places, lineages = clones.simulate(2, 0)
    for place in range(clones.N_PLACES):
        sizes = np.bincount(lineages[places == place])
        is_clone = lineages == sizes.argmax()
        if place < 2:
            assert sizes.argmax() == place * clones.N_LINEAGES
            assert sizes.max() > 0.35 * clones.N_GENOMES
            assert X[is_clone][:, [clones.CAUSE, clones.PASSENGER]].mean() > 0.95
            assert y[is_clone].mean() > y[places > 1].mean() + 0.2


@pytest.mark.thorough
def test_lineages_as_groups_keep_the_cause_and_not_the_passenger():
    """Without groups the passenger is significant in each run, and used or rejected in some."""
    options = Options(runs=4, quick=True, choose={"learner": ["tree"]})
    plan = clones.make_plan(options)
    rows = [task | plan.run(task, 0) for task in plan.tasks]
    ways = {way: [row for row in rows if row["groups"] == way] for way in ("no", "lineage")}
    assert [len(own) for own in ways.values()] == [4, 4]
    assert all(row["cause"] and not row["passenger"] for row in ways["lineage"])
    assert all(row["p_passenger"] > 0.05 for row in ways["lineage"])
    assert all(row["p_passenger"] < 0.05 for row in ways["no"])
    (table,) = clones.summarise([{k: str(v) for k, v in row.items()} for row in rows]).tables
    assert [line[:3] for line in table.rows] == [["1", "tree", "lineage"], ["1", "tree", "no"]]
