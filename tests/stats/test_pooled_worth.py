"""The worth of a column, pooled over environments: mean, spread, and what a new one keeps."""

import numpy as np
import pytest
from scipy import stats

from icscm.stats.random_effects import pool_effects
from icscm.stats.worth import MAX_T, Worth, compute_coverage, pool_worth


def make_worth(values, errors):
    values, errors = np.array(values, dtype=float), np.array(errors, dtype=float)
    return Worth(values, errors, information=errors**-2)


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ([1.0, 0.2, 0.7, 1.4], [0.1, 0.2, 0.15, 0.3]),
        ([1.0, 1.01, 0.99, 1.0], [0.1, 0.2, 0.15, 0.3]),
        ([2.0, -1.0, 0.5], [0.1, 0.1, 0.1]),
    ],
)
def test_pooled_worth_is_that_of_random_effects(values, errors):
    pooled = pool_worth(make_worth(values, errors))
    expected = pool_effects(np.array(values), np.array(errors))
    assert pooled.mean == pytest.approx(expected.mean)
    assert pooled.error == pytest.approx(expected.standard_error)
    assert pooled.tau == pytest.approx(expected.tau)

    w = np.array(errors) ** -2.0
    dof = len(values) - 1
    Q = (w * (values - np.average(values, weights=w)) ** 2).sum()
    assert pooled.dof == dof
    assert pooled.p_value == pytest.approx(stats.chi2.sf(Q, dof))
    assert pooled.excess == pytest.approx(max(Q - dof - 3 * np.sqrt(2 * dof), 0))
    t = min(stats.t.ppf(0.95, dof), MAX_T)
    expected_low = pooled.mean - t * np.sqrt(pooled.tau**2 + pooled.error**2)
    assert pooled.low == pytest.approx(expected_low)


def test_the_detectable_spread_is_the_one_at_the_critical_value():
    errors = np.full(5, 0.2)
    pooled = pool_worth(make_worth(np.ones(5), errors))
    # with equal errors Q = dof (1 + tau^2 / error^2)
    critical = stats.chi2.ppf(0.95, 4)
    assert pooled.detectable_tau == pytest.approx(np.sqrt((critical / 4 - 1) * 0.04), rel=1e-6)
    assert pooled.tau == 0
    assert pooled.excess == 0


def test_unknown_environments_are_left_out_and_one_is_not_pooled():
    known = pool_worth(make_worth([1.0, 0.5, 0.2], [0.1, 0.1, 0.1]))
    with_unknown = pool_worth(make_worth([1.0, 0.5, 0.2, 7.0], [0.1, 0.1, 0.1, 1e4]))
    assert with_unknown == known
    alone = pool_worth(make_worth([1.0, np.nan], [0.1, 0.1]))
    assert np.isnan(alone.mean)
    assert alone.p_value == 1
    assert alone.low == -np.inf


@pytest.mark.parametrize("dof", [2, 4, 9])
def test_a_new_environment_is_above_low_as_often_as_said(dof):
    """Worths with a known mean and spread, measured exactly: how often is another one above?"""
    rng = np.random.default_rng(dof)
    is_above = []
    for _ in range(3000):
        *values, new = rng.normal(1.0, 0.5, size=dof + 2)
        pooled = pool_worth(make_worth(values, np.full(dof + 1, 1e-3)))
        is_above.append(new > pooled.low)
    assert np.mean(is_above) == pytest.approx(compute_coverage(dof), abs=0.02)
