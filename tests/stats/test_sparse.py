"""Pearson's statistic over small tables: its moments are those of all tables with the margins."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from icscm.stats.independence import PearsonSum, sum_pearson

MARGINS = [
    ([3, 1], 1),
    ([2, 2], 2),
    ([5, 5, 2], 3),
    ([6, 1, 1, 4], 5),
    ([4, 0, 3], 2),
    ([9, 2], 10),
]


def list_tables(sizes, n_positive):
    """All tables with these margins, and how likely each is."""
    ways = math.comb(sum(sizes), n_positive)
    for drawn in itertools.product(*(range(size + 1) for size in sizes)):
        if sum(drawn) == n_positive:
            chance = math.prod(map(math.comb, sizes, drawn)) / ways
            yield [[n - k for n, k in zip(sizes, drawn, strict=True)], list(drawn)], chance


def compute_pearson(table):
    n = sum(map(sum, table))
    total = 0.0
    for row in table:
        for k, cell in enumerate(row):
            expected = sum(row) * (table[0][k] + table[1][k]) / n
            total += (cell - expected) ** 2 / expected if expected else 0.0
    return total


@pytest.mark.parametrize(("sizes", "n_positive"), MARGINS)
def test_moments_are_those_of_all_tables(sizes, n_positive):
    tables = [*list_tables(sizes, n_positive)]
    assert sum(chance for _, chance in tables) == pytest.approx(1)
    mean = sum(chance * compute_pearson(table) for table, chance in tables)
    square = sum(chance * compute_pearson(table) ** 2 for table, chance in tables)
    for table, _ in tables:
        found = sum_pearson(np.array([table]))
        wanted = compute_pearson(table), mean, square - mean**2
        assert found == pytest.approx(wanted, abs=1e-9)


def test_tables_add_up_and_those_that_cannot_tell_do_not_count():
    one, other = np.array([[5, 2, 9], [3, 3, 1]]), np.array([[4, 4, 4], [1, 2, 3]])
    pure, lonely, tiny = (np.zeros_like(one) for _ in range(3))
    pure[0], lonely[:, 1], tiny[:, :2] = 5, 5, [[1, 0], [0, 1]]
    together = sum_pearson(np.stack([one, pure, other, lonely, tiny]))
    alone = [sum_pearson(each[np.newaxis]) for each in (one, other)]
    assert together == pytest.approx(tuple(map(sum, zip(*alone, strict=True))))
    assert sum_pearson(np.stack([pure, lonely, tiny])) == PearsonSum(0.0, 0.0, 0.0)
    assert sum_pearson(np.stack([pure])).p_value == 1.0


def test_large_tables_have_the_usual_p_value():
    rng = np.random.default_rng(0)
    tables = rng.multinomial(100_000, [0.2, 0.3, 0.1, 0.05, 0.25, 0.1], size=2).reshape(2, 2, 3)
    found = sum_pearson(tables)
    assert found.p_value == pytest.approx(chi2.sf(found.statistic, 4), abs=1e-3)
