"""The numbers of a split equal those of the literal formulas, and published ones."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from icscm.stats import splits
from support.literal import splits as slow_splits

NAMES = ("deviance_explained", "heterogeneity", "heterogeneity_share", "log_odds_ratio")


def as_arrays(split):
    """One half, and the node, as (label, environment)."""
    a, b, c, d = np.array(split, dtype=np.int64).T
    half = np.array([b, a])
    return half, half + np.array([d, c])


def measure(split, n_least=1):
    half, node = as_arrays(split)
    found = splits.measure_effects(half[np.newaxis], node, n_least)
    return {name: getattr(found, name)[0] for name in NAMES}


MOST = [2, 9, 200, 10**5]


@st.composite
def random_splits(draw, most=MOST):
    """Tables of 1 to 8 environments, some without samples, with one label, or a cell always 0."""
    n = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = draw(st.sampled_from(most))
    tables = rng.integers(0, most, (n, 4), endpoint=True)
    if draw(st.booleans()):  # a common effect
        sizes, rates = rng.integers(1, most, (2, n), endpoint=True), rng.uniform(0.05, 0.5, n)
        positive = [rng.binomial(sizes[0], rates), rng.binomial(sizes[1], rates * 1.9)]
        counts = [(n, size - n) for n, size in zip(positive, sizes, strict=True)]
        tables = np.column_stack(sum(counts, ()))
    tables[:, draw(st.lists(st.integers(0, 3), max_size=2))] = 0
    for spoilt in ([0, 1, 2, 3], [0, 2], [1, 3], [0, 1], [2, 3]):
        tables[np.ix_(rng.random(n) < draw(st.sampled_from([0, 0, 0.3])), spoilt)] = 0
    return [tuple(map(int, table)) for table in tables], draw(st.sampled_from([1, 1, 3, 50]))


def check_split(split, n_least, reached):
    found, wanted = measure(split, n_least), slow_splits.measure_split(split, n_least)
    if wanted is None:
        reached["small"] += 1
        assert found["deviance_explained"] == -1.0
        return
    # information is a difference of sums as large as this
    rounding = 2e-11 * sum(map(sum, split))
    for name in ("deviance_explained", "heterogeneity"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-6, abs=1e-6 + rounding)
    assert found["log_odds_ratio"] == pytest.approx(wanted["log_odds_ratio"], rel=1e-9, abs=1e-12)
    if wanted["deviance_explained"] > 1e-3 + 1e3 * rounding:
        assert found["heterogeneity_share"] == pytest.approx(
            wanted["heterogeneity_share"], rel=1e-3, abs=1e-6
        )
    ratio, compared = slow_splits.find_odds_ratio(split), slow_splits.list_compared(split)
    cases = {
        "none compared": not compared,
        "one compared": len(compared) == 1,
        "empty environment": not all(map(sum, split)),
        "odds 0": ratio == slow_splits.LEAST,
        "odds infinite": ratio == slow_splits.MOST,
        "heterogeneity": wanted["heterogeneity"] > 0,
    }
    reached.update(case for case, is_so in cases.items() if is_so)


def test_effects_equal_the_literal_formulas():
    reached = Counter()

    @settings(max_examples=300, deadline=None, derandomize=True)
    @given(random_splits())
    def check(drawn):
        check_split(*drawn, reached)

    check()
    assert len(reached) == 7, reached
    assert min(reached.values()) >= 5, reached


@pytest.mark.parametrize("most", MOST)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_rates_and_dependence_equal_the_literal_formulas(most, data):
    split, n_least = data.draw(random_splits([most]))
    half, node = as_arrays(split)
    found = splits.measure_rates(half[np.newaxis], node, n_least)
    rounding = 1e-6 + 2e-11 * sum(map(sum, split))
    if slow_splits.measure_split(split, n_least) is None:
        assert (found.pooled[0], found.within[0], found.n_divided[0]) == (-1.0, -1.0, 0)
    else:
        pooled, within, n_divided = slow_splits.measure_rates(split)
        assert found.pooled[0] == pytest.approx(pooled, abs=rounding)
        assert found.within[0] == pytest.approx(within, abs=rounding)
        assert found.n_divided[0] == n_divided
    halves = np.stack([node, half, node - half])
    statistics, _ = splits.compute_rate_heterogeneity(halves)
    wanted = [slow_splits.measure_dependence(each[1].tolist(), each[0].tolist()) for each in halves]
    np.testing.assert_allclose(statistics, wanted, atol=rounding)


@settings(max_examples=60, deadline=None)
@given(random_splits())
def test_deviances_nest(drawn):
    """What a split tells within environments and what it tells over all differ by what it does
    to the dependence: within - pooled = G(L) + G(R) - G(N)."""
    half, node = as_arrays(drawn[0])
    found = splits.measure_rates(half[np.newaxis], node, 0)
    (of_node, *of_halves), _ = splits.compute_rate_heterogeneity(
        np.stack([node, half, node - half])
    )
    changed = sum(of_halves) - of_node
    assert found.within[0] - found.pooled[0] == pytest.approx(changed, abs=1e-9 * node.sum() + 1e-6)


# Mantel-Haenszel log odds ratio and Breslow-Day statistic from StratifiedTable of statsmodels
# 0.15.0; (a, b, c, d) by stratum.
BY_STATSMODELS = [
    ([(12, 18, 9, 31), (25, 40, 11, 60), (7, 30, 9, 22)], 0.6702007695439076, 6.744012890305916),
    (
        [(120, 880, 60, 1940), (30, 70, 80, 900), (5, 200, 9, 800), (60, 300, 20, 410)],
        1.4543849528528878,
        1.6901602181904545,
    ),
]


@pytest.mark.parametrize(("split", "log_odds", "statistic"), BY_STATSMODELS)
def test_others_find_the_same(split, log_odds, statistic):
    found = measure(split)
    assert found["log_odds_ratio"] == pytest.approx(-log_odds, rel=1e-9)  # of the other half
    heterogeneity = slow_splits.measure_gain(split) - found["deviance_explained"]
    assert heterogeneity == pytest.approx(statistic, rel=1e-9)
    assert slow_splits.measure_heterogeneity(split) == pytest.approx(statistic, rel=1e-9)


@pytest.mark.parametrize("scale", [1, 10, 1000, 10**6])
def test_an_effect_without_exception_is_the_same_everywhere(scale):
    """From some hundreds of samples on, a split that no positive of one half contradicts in any
    environment was refused for an effect that differs by millions: the fitted cell had cancelled.
    """
    split = [(7 * scale, 3 * scale, 2 * scale, 0), (2 * scale, scale, scale, 0)]
    for mirrored in (split, [(c, d, a, b) for a, b, c, d in split]):
        found = measure(mirrored)
        assert found["heterogeneity"] == 0.0
        assert found["deviance_explained"] == pytest.approx(
            slow_splits.measure_gain(split), rel=1e-2
        )


def test_one_environment_differs_from_no_other():
    """A split without exception told, in a plain tree, of an effect that differs 20,000-fold."""
    found = measure([(47, 0, 2, 1), (0, 0, 0, 0)])
    assert (found["heterogeneity"], found["heterogeneity_share"]) == (0.0, 0.0)


def test_quantiles():
    assert splits.find_quantile(0.05, 3) == chi2.isf(0.05, 3)
    assert splits.find_quantile(0.05, 0) == 0.0
