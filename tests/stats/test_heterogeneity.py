"""Conditional heterogeneity against slow twins, and as statistics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from scipy.stats import chi2, kstest

from icscm.stats.heterogeneity import (
    compare_cut_effects,
    compare_effects,
    remove_common_effects,
)
from icscm.stats.leaf_rates import compute_explained_deviance, fit_intercepts, predict_leaves

SHAPE = (3, 2, 4)  # cuts, g and h, environments


def measure_slowly(half, total):
    """One cut, environment by environment, as the module's docstring has it."""
    effects, weights = [], []
    for e in range(total.shape[1]):
        h1, h0 = half[1, e], total[1, e] - half[1, e]
        if h1 <= 0 or h0 <= 0 or h1 * h0 / (h1 + h0) < 1.0:
            continue
        effects.append(half[0, e] / h1 - (total[0, e] - half[0, e]) / h0)
        weights.append(h1 * h0 / (h1 + h0))
    if not weights:
        return 0.0, 0, 0.0
    mean = sum(w * d for w, d in zip(weights, effects, strict=True)) / sum(weights)
    q = sum(w * (d - mean) ** 2 for w, d in zip(weights, effects, strict=True))
    dof = len(weights) - 1
    if dof == 0:
        return q, 0, 0.0
    excess = max(0.0, q - dof - 3 * (2 * dof) ** 0.5)
    total_weight = sum(weights)
    return q, dof, excess / (total_weight - sum(w * w for w in weights) / total_weight)


@given(
    arrays(np.float64, SHAPE, elements=st.floats(0, 20)),
    arrays(np.float64, (2, 4), elements=st.floats(0, 20)),
)
def test_heterogeneity_is_that_of_the_slow_twin(halves, rest):
    halves = halves.copy()
    halves[:, 0] -= 10.0
    totals = np.stack((np.zeros(4), halves[:, 1].max(axis=0) + rest[1]))
    found = compare_cut_effects(
        halves[:, 0], halves[:, 1], total_gradients=totals[0], total_hessians=totals[1]
    )
    for i, half in enumerate(halves):
        q, dof, tau_squared = measure_slowly(half, totals)
        assert found.dof[i] == dof
        assert found.statistic[i] == pytest.approx(q, abs=1e-8, rel=1e-6)
        assert found.tau_squared[i] == pytest.approx(tau_squared, abs=1e-8, rel=1e-6)


def test_the_statistic_of_equal_effects_is_chi_squared():
    rng = np.random.default_rng(0)
    weights = rng.uniform(2, 50, (4000, 6))
    found = compare_effects(rng.normal(0.7, weights**-0.5), weights)
    assert kstest(found.statistic, chi2(5).cdf).pvalue > 0.001
    assert found.mean.mean() == pytest.approx(0.7, abs=0.01)
    assert (found.tau_squared > 0).mean() < 0.03  # three standard deviations


def test_tau_is_recovered():
    rng = np.random.default_rng(1)
    weights = np.full((2000, 40), 400.0)
    effects = rng.normal(0, 1.0, (2000, 40)) + rng.normal(0, weights**-0.5)
    assert compare_effects(effects, weights).tau_squared.mean() == pytest.approx(1.0, abs=0.05)


def test_a_common_effect_of_bins_is_removed_and_a_differing_one_is_not():
    h = np.array([[4.0, 9.0, 2.0], [7.0, 1.0, 6.0], [3.0, 5.0, 5.0]])
    effects = np.array([[0.5], [-1.0], [0.2]]) + np.array([[0.1, 0.0, -0.4]])
    gradients, hessians = (effects * h)[np.newaxis], h[np.newaxis]
    assert np.abs(remove_common_effects(gradients, hessians)).max() < 1e-6
    gradients[0, 0, 0] += 3.0
    assert np.abs(remove_common_effects(gradients, hessians)).max() > 0.5


@given(arrays(np.int64, (4, 2, 3), elements=st.integers(0, 40)))
def test_every_environment_expects_the_positives_that_it_has(leaves):
    p = predict_leaves(leaves)
    expected = (leaves.sum(axis=1) * p).sum(axis=0)
    assert np.allclose(expected, leaves[:, 1].sum(axis=0), atol=1e-4)


def test_the_deviance_explained_is_twice_the_log_likelihood_gained():
    leaves = np.array([[[30, 10], [10, 30]], [[5, 20], [15, 20]]])
    p = predict_leaves(leaves)
    gained = 0.0
    for e in range(2):
        rate = leaves[:, 1, e].sum() / leaves[:, :, e].sum()
        for leaf in range(2):
            negatives, positives = leaves[leaf, :, e]
            gained += positives * np.log(p[leaf, e] / rate)
            gained += negatives * np.log((1 - p[leaf, e]) / (1 - rate))
    assert compute_explained_deviance(leaves, p) == pytest.approx(2 * gained)


def test_intercepts_are_those_of_a_logistic_regression():
    rng = np.random.default_rng(2)
    log_odds = np.array([-1.0, 0.3, 1.4])
    n = rng.integers(50, 500, (3, 4))
    shift = np.array([-1.0, 0.0, 0.5, 2.0])
    positives = np.rint(n * expit(log_odds[:, None] + shift)).astype(int)
    p = fit_intercepts(log_odds, np.stack((n - positives, positives), axis=1))
    found = np.log(p[0] / (1 - p[0])) - log_odds[0]
    assert np.allclose(found, shift, atol=0.1)
