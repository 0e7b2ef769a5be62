"""Columns and levels that give the environment away."""

import numpy as np

from icscm.screening.giveaways import find_giveaways, pool_lone_levels
from support.screened import make_screened_table

SITES = np.repeat(np.arange(4), 50)


def test_giveaways_of_a_table():
    rng = np.random.default_rng(0)
    nearly = np.where(rng.random(200) < 0.03, rng.integers(0, 4, 200), SITES)
    level = np.where((SITES < 2) & (rng.random(200) < 0.5), SITES + 2, rng.integers(0, 2, 200))
    table = make_screened_table(
        [SITES, nearly, level, level, rng.integers(0, 2, 200)],
        SITES,
        is_nominal=[True, False, True, False, False],
    )
    found = find_giveaways(table)
    assert found.determining == [0]
    assert found.nearly == [1]
    assert found.pooled_levels == {2: [2, 3]}  # of numbers no level is pooled

    pooled = pool_lone_levels(table, found.pooled_levels)
    assert np.array_equal(pooled.columns.bins[2], np.minimum(level, 2))
    assert find_giveaways(pooled).pooled_levels == {}
    assert np.array_equal(table.columns.bins[2], level)  # the table itself stays as it was
    assert pool_lone_levels(table, {}) is table


def test_one_environment_has_nothing_to_give_away():
    table = make_screened_table([SITES], np.zeros(200), is_nominal=[True])
    found = find_giveaways(table)
    assert found.determining == []
    assert found.nearly == []
