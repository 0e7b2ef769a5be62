"""Recalibration on predicted log odds, against scikit-learn's logistic regression."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from icscm.stats.calibration import fit_calibration_line
from icscm.stats.random_effects import pool_effects


def draw(n, n_environments, seed, slope=1.6, tau=0.5):
    rng = np.random.default_rng(seed)
    environments, x = rng.integers(0, n_environments, n), rng.normal(-1, 1, n)
    intercepts = rng.normal(0, tau, n_environments)
    y = rng.random(n) < expit(intercepts[environments] + slope * x)
    return y.astype(int), environments, x


@settings(max_examples=25, deadline=None)
@given(st.integers(60, 400), st.integers(1, 5), st.integers(0, 2**31))
def test_coefficients_are_those_of_scikit_learn(n, n_environments, seed):
    """A column for each environment, no penalty; the mean is that of random effects."""
    y, e, x = draw(n, n_environments, seed)
    found = fit_calibration_line(y, e, x, n_environments)
    design = np.column_stack((x, np.eye(n_environments)[e]))
    by_environment = [np.bincount(y[e == k], minlength=2) for k in range(n_environments)]
    both = np.min(by_environment, axis=1) > 0
    keep = both[e]
    twin = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000)
    slope, *intercepts = twin.fit(design[keep], y[keep]).coef_[0]
    assert found.slope == pytest.approx(slope, abs=1e-3)
    assert found.intercepts[both] == pytest.approx(np.array(intercepts)[both], abs=1e-3)
    assert np.isnan(found.intercepts[~both]).all()
    pooled = pool_effects(found.intercepts, found.standard_errors)
    assert found.calibration == (round(pooled.mean, 6), round(found.slope, 6))


def test_rows_that_no_tree_left_out_do_not_count():
    y, e, x = draw(300, 3, seed=1)
    unknown = np.r_[x, np.full(50, np.nan)]
    one = fit_calibration_line(y, e, x, 3)
    other = fit_calibration_line(np.r_[y, y[:50]], np.r_[e, e[:50]], unknown, 3)
    assert other.calibration == pytest.approx(one.calibration, abs=2e-6)


@pytest.mark.parametrize(
    ("y", "x"),
    [([0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0]), ([0, 1], [1.0, 1.0]), ([1, 1], [0.0, 1.0])],
    ids=["separated", "constant", "one label"],
)
def test_where_there_is_no_slope(y, x):
    assert fit_calibration_line(np.array(y), np.zeros(len(y), int), np.array(x), 1) is None


@pytest.mark.parametrize(("slope", "is_usable"), [(-1.0, False), (1.5, True)])
def test_slopes_that_are_used(slope, is_usable):
    y, e, x = draw(2000, 4, seed=2, slope=slope)
    found = fit_calibration_line(y, e, x, 4)
    assert found.slope == pytest.approx(slope, abs=0.3)
    assert found.is_usable == is_usable


def test_effects_whose_squares_overflow_are_ignored():
    """Weights that were all zero: a fit of damaged numbers ended with a ZeroDivisionError."""
    with np.errstate(all="raise"):
        assert pool_effects(np.array([1.0, 2.0]), np.array([1e200, 1e300])) is None
        found = pool_effects(np.array([1.0, 1e200, 2.0]), np.array([0.1, 0.1, np.inf]))
    assert found == pool_effects(np.array([1.0]), np.array([0.1]))
