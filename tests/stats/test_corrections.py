"""Adjusted p-values in closed form, and the cut-off that stands for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from icscm.stats.criteria import find_cutoff
from support.literal.learner import adjust

SOME_P_VALUES = st.lists(st.integers(0, 40).map(lambda i: i / 200) | st.floats(0, 1), max_size=30)


def test_closed_forms():
    """What the cut-off is held to: adjusted p-values, as the literal learner computes them."""
    p_values = [0.04, 0.01, 0.03, 0.5]
    assert adjust(p_values, None) == p_values
    assert adjust(p_values, "bonferroni") == pytest.approx([0.16, 0.04, 0.12, 1.0])
    assert adjust(p_values, "holm") == pytest.approx([0.09, 0.04, 0.09, 0.5])
    assert adjust(p_values, "bh") == pytest.approx([0.16 / 3, 0.04, 0.16 / 3, 0.5])


@settings(max_examples=100, deadline=None)
@given(SOME_P_VALUES)
def test_benjamini_hochberg_equals_scipy(p_values):
    if p_values:
        wanted = stats.false_discovery_control(p_values, method="bh")
        np.testing.assert_allclose(adjust(p_values, "bh"), wanted, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("method", [None, "bonferroni", "holm", "bh"])
@settings(max_examples=60, deadline=None)
@given(p_values=SOME_P_VALUES)
def test_cutoff_parts_what_the_adjusted_p_values_part(method, alpha, p_values):
    adjusted = np.array(adjust(p_values, method))
    cutoff = find_cutoff(np.array(p_values), alpha, method)
    assert (np.array(p_values) <= cutoff).tolist() == (np.round(adjusted, 14) <= alpha).tolist()


@pytest.mark.parametrize("method", ["bonferroni", "holm"])
def test_chance_of_any_false_refusal(method):
    rng = np.random.default_rng(0)
    n_runs, alpha = 2000, 0.05
    runs = rng.random((n_runs, 50))
    n_wrong = sum(bool((run <= find_cutoff(run, alpha, method)).any()) for run in runs)
    assert stats.binomtest(n_wrong, n_runs, alpha, alternative="greater").pvalue > 1e-4


def test_share_of_false_refusals():
    """40 true and 10 false hypotheses: the mean share of false rejections is at most alpha."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(1000):
        p_values = np.append(rng.random(40), rng.beta(0.1, 20, size=10))
        is_rejected = p_values <= find_cutoff(p_values, 0.05, "bh")
        shares.append(is_rejected[:40].sum() / max(is_rejected.sum(), 1))
    assert 0.02 < np.mean(shares) < 0.05 + 3 * np.std(shares) / np.sqrt(1000)


def test_unknown_method():
    with pytest.raises(ValueError, match="method must be one of None, 'bonferroni', 'holm', 'bh'"):
        find_cutoff(np.array([0.1]), 0.05, "sidak")


@pytest.mark.parametrize(
    ("p_values", "method", "cutoff"),
    [
        ([0.025, 0.5], "bonferroni", 0.025),
        ([0.025, 0.05], "holm", 0.05),
        ([0.025, 0.06], "holm", 0.05),
        ([0.026, 0.05], "holm", 0.025),
        ([0.025, 0.05], "bh", 0.05),
        ([0.04, 0.06], "bh", 0.025),
        ([0.05], None, 0.05),
    ],
)
def test_a_p_value_at_its_bound_is_rejected(p_values, method, cutoff):
    found = find_cutoff(np.array(p_values), 0.05, method)
    assert found == pytest.approx(cutoff, rel=1e-6)
    assert found >= cutoff
