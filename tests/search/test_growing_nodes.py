"""Nodes of growing trees: a sibling taken off its parent has the counts of its own rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.engine.counts import BinnedRule, Cut
from icscm.search import grow
from icscm.search.grow import make_root
from icscm.sources.memory import make_memory_source
from support.sources import countable, draw_cuts


def make_source(drawn):
    table, labels, environments, names, _ = drawn
    return make_memory_source(
        table, labels, environments, environment_labels=names, max_thresholds=9, n_jobs=1
    )


def count_half(source, path, rule):
    """Totals of the samples of a path for which a rule is false, from a cube of theirs."""
    opposite = BinnedRule(rule.feature, ~rule.satisfied)
    for cube in source.count_node([*path, opposite]):
        return cube.counts[0].sum(axis=0)
    return None


@settings(max_examples=60, deadline=None)
@given(countable(), st.sampled_from([0, 3000, 2**28]))
def test_nodes_count_what_their_rows_count(drawn, n_bytes):
    """For any kept cubes and any order of queries."""
    source, direct = make_source(drawn), make_source(drawn)
    rng = drawn[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grow, "MAX_KEPT_CUBE_BYTES", n_bytes)
        leaves = [(make_root(source), [])]
        every = list(leaves)
        for cut in draw_cuts(source, rng):
            node, path = leaves.pop(rng.integers(len(leaves)))
            rule = source.candidates.make_binned_rule(cut)
            half = count_half(direct, path, rule)
            if rng.random() < 0.7:
                list(node.count())
            children = node.split(cut, half)
            assert node.split(cut, half) == children, "a node is split once"
            opposite = BinnedRule(rule.feature, ~rule.satisfied)
            made = list(zip(children, ([*path, rule], [*path, opposite]), strict=True))
            leaves += made
            every += made
        for i in rng.permutation(len(every)):
            node, path = every[i]
            for found, wanted in zip(node.count(), direct.count_node(path), strict=True):
                np.testing.assert_array_equal(found.counts, wanted.counts)
                np.testing.assert_array_equal(found.features, wanted.features)
                np.testing.assert_array_equal(found.counts[0].sum(axis=0), node.totals)
            kept = node._kept
            held = sum(cube.counts.nbytes for cubes in kept.cubes.values() for cube in cubes)
            assert held == kept._n_bytes
            assert held <= n_bytes


def test_of_two_children_the_smaller_is_counted(monkeypatch):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    source = make_memory_source(X, labels, labels * 0, environment_labels=(0,), n_jobs=1)
    sizes = []
    count_node = source.count_node

    def spy(path):
        for number, cube in enumerate(count_node(path)):
            if not number:
                sizes.append(int(cube.counts[0].sum()))
            yield cube

    monkeypatch.setattr(source, "count_node", spy)
    root = make_root(source)
    cube = next(iter(root.count()))
    list(root.count())
    half = cube.counts[0, :5].sum(axis=0)
    true, false = root.split(Cut(0, 4, negated=False), half)
    assert false.size < true.size
    list(true.count())
    list(false.count())
    assert sizes[-1] == false.size
    assert true.size not in sizes
