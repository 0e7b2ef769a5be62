"""Bounds and detectable differences equal their definitions, table by table and pair by pair."""

from itertools import permutations
from math import hypot, inf, sqrt

import numpy as np
import pytest
from scipy import stats

from icscm.stats.independence import ChiSquaredTest, FisherTest, GTest, is_corrected
from icscm.stats.verdicts import (
    Verdict,
    compute_differences,
    compute_minimum_detectable_difference,
    compute_wilson,
    find_shown,
    make_verdicts,
)

ALPHAS = [0.001, 0.05, 0.5, 0.9]


def make_tables(n_environments, n=40):
    """Few and many samples, empty environments and pure leaves."""
    rng = np.random.default_rng(n_environments)
    tables = rng.integers(0, [[[4]], [[30]], [[3000]], [[5]]] * (n // 4), (n, 2, n_environments))
    tables[rng.random((n, 1, n_environments)).repeat(2, axis=1) < 0.15] = 0
    tables[:3, 0], tables[3:6, 1] = 0, 0
    return tables


def find_quantile(tail):
    return max(stats.norm.isf(tail), 0.0)


def bound_rate(positives, size, z):
    if z == 0:
        return positives / size, positives / size
    rate = positives / size
    centre = (rate + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * sqrt(rate * (1 - rate) / size + z**2 / (4 * size**2))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def bound_pairs(table, z):
    """(difference, lower, upper) of each ordered pair of environments with samples."""
    for i, j in permutations(range(table.shape[1]), 2):
        (a, n), (b, m) = ((table[1, k], table[:, k].sum()) for k in (i, j))
        if n and m:
            (low, high), (other_low, other_high) = bound_rate(a, n, z), bound_rate(b, m, z)
            one, other = a / n, b / m
            lower = one - other - hypot(one - low, other_high - other)
            upper = one - other + hypot(high - one, other - other_low)
            yield one - other, lower, upper


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_environments", [1, 2, 3, 5])
def test_differences(n_environments, alpha):
    tables = make_tables(n_environments)
    found = compute_differences(tables, alpha)
    n_pairs = max(n_environments * (n_environments - 1), 1)
    for table, *values in zip(tables, *found, strict=True):
        plain = list(bound_pairs(table, find_quantile(alpha)))
        strict = list(bound_pairs(table, find_quantile(alpha / n_pairs)))
        has_gap = n_environments < 2 or not table.sum(axis=0).all()
        wanted = (
            max((each[0] for each in plain), default=0.0),
            max((max(each[1], 0.0) for each in strict), default=0.0),
            1.0 if has_gap else max(each[2] for each in plain),
        )
        assert values == pytest.approx(wanted, abs=1e-12)


def test_rates_without_samples_may_be_anything():
    assert compute_wilson(np.array(0), np.array(0), 1.96) == pytest.approx((0.0, 1.0))
    assert compute_wilson(np.array(3), np.array(4), 0.0) == (0.75, 0.75)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_environments", [2, 3, 5])
def test_what_is_shown(n_environments, alpha):
    """At a margin just above each leaf's own bound it is shown, and just below it is not."""
    z, n_checked = find_quantile(alpha), 0
    for table in make_tables(n_environments):
        has_gap = not table.sum(axis=0).all()
        bound = 0.9 if has_gap else max(each[2] for each in bound_pairs(table, z))
        below, above = bound * (1 - 1e-6) - 1e-9, bound * (1 + 1e-6) + 1e-9
        for margin, wanted in ((below, False), (above, not has_gap)):
            assert find_shown(table[None], alpha, margin).tolist() == [wanted]
            (verdict,) = make_verdicts([table], GTest(), alpha, margin, trivial_is_invariant=True)
            assert (verdict.conclusion == "invariant") == wanted
        n_checked += not has_gap
    assert n_checked > 10


def test_a_margin_that_is_met_exactly_is_kept():
    tables = np.array([[[50, 40], [50, 60]]])
    assert find_shown(tables, 0.5, 0.1).tolist() == [True]  # 0.6 - 0.5 is a digit below 0.1
    assert find_shown(tables[:, ::-1], 0.5, 0.1).tolist() == [True]  # 0.5 - 0.4 one above


def detect(table, alpha, corrected):
    """The difference at which the power is 0.8, by bisection over the noncentrality."""
    sizes = table.sum(axis=0)
    first, second = sorted(sizes)[-2:]
    if first == 0:
        return inf
    n_seen = int((sizes > 0).sum())
    rate = (table[1].sum() + 1) / (sizes.sum() + 2)
    critical = stats.chi2.isf(alpha, n_seen - 1)
    low, high = 0.0, 1e4
    while alpha < 0.8 and high - low > 1e-10 * high:
        middle = (low + high) / 2
        is_enough = stats.ncx2.sf(critical, n_seen - 1, middle) >= 0.8
        low, high = (low, middle) if is_enough else (middle, high)
    needed = high if alpha < 0.8 else 0.0
    difference = sqrt(needed * rate * (1 - rate) * (1 / first + 1 / second))
    difference += (1 / first + 1 / second) / 2 if corrected and n_seen == 2 else 0.0
    return difference if difference <= 1 else inf


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("n_environments", [2, 3, 5])
def test_detectable_differences(n_environments, alpha, corrected):
    tables = make_tables(n_environments, 12)
    wanted = [detect(table, alpha, corrected) for table in tables]
    assert np.isfinite(wanted).any()
    found = compute_minimum_detectable_difference(tables, alpha, corrected)
    assert found.tolist() == pytest.approx(wanted, rel=1e-6)
    each_its_own = compute_minimum_detectable_difference(
        tables, np.full(len(tables), alpha), corrected
    )
    assert each_its_own.tolist() == found.tolist()


def test_one_environment_detects_nothing():
    assert (
        compute_minimum_detectable_difference(np.ones((3, 2, 1), np.int64), 0.05).tolist()
        == [inf] * 3
    )


def test_which_tests_are_corrected():
    tests = [ChiSquaredTest(), ChiSquaredTest(yates=False), GTest(), FisherTest()]
    assert [is_corrected(test) for test in tests] == [True, False, False, True]


def test_a_whole_verdict():
    table = np.array([[40, 35, 0], [10, 25, 0]])
    (verdict,) = make_verdicts([table], ChiSquaredTest(yates=False), 0.1, 0.05)
    z = stats.norm.isf(0.025)
    intervals = [bound_rate(10, 50, z), bound_rate(25, 60, z)]
    (strict,) = compute_differences(table[None], 0.1).low
    assert verdict == Verdict(
        conclusion="not invariant",
        p_value=stats.chi2_contingency(table[:, :2], correction=False).pvalue,
        rates=(0.2, 25 / 60, None),
        rate_intervals=(*(pytest.approx(each) for each in intervals), None),
        difference=pytest.approx(25 / 60 - 0.2),
        difference_interval=(pytest.approx(strict), 1.0),
        minimum_detectable_difference=pytest.approx(detect(table, 0.1, corrected=False), rel=1e-6),
        alpha=0.1,
    )
