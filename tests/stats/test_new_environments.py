"""What to expect in a new environment: intervals that cover, and the same by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from slow_random_effects import expect_slowly

from icscm.stats.new_environments import MAX_TAU, compute_surprise, make_expectations

EQUAL, UNEQUAL = np.full(10, 300), np.geomspace(20, 5000, 10).astype(int)


def simulate(n_leaves, sizes, rate, tau, seed=0):
    """Leaves by label and environment, of environments drawn as the model says."""
    rng = np.random.default_rng(seed)
    theta = special.logit(rate) + tau * rng.standard_normal((n_leaves, len(sizes)))
    positives = rng.binomial(sizes, special.expit(theta))
    return np.stack((sizes - positives, positives), axis=1)


def compute_coverage(found, rate, tau):
    """Of the rates of new environments: exactly, given each interval."""
    ends = special.logit(np.array([each.interval for each in found])) - special.logit(rate)
    return np.diff(stats.norm.cdf(ends / tau), axis=1).mean()


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize(("rate", "tau"), [(0.02, 1.0), (0.1, 0.6), (0.5, 0.3), (0.5, 1.0)])
def test_a_new_environment_is_covered(sizes, rate, tau):
    found = make_expectations(simulate(150, sizes, rate, tau))
    assert len(found) == 150
    assert 0.93 <= compute_coverage(found, rate, tau) <= 0.97


@pytest.mark.parametrize("n_environments", [5, 30])
def test_few_and_many_environments_are_covered(n_environments):
    sizes = np.geomspace(100, 3000, n_environments).astype(int)
    found = make_expectations(simulate(200, sizes, 0.2, 0.6, seed=1))
    assert 0.93 <= compute_coverage(found, 0.2, 0.6) <= 0.97


def test_no_spread_at_all_is_covered_with_more_than_enough():
    """tau = 0 cannot be known from few environments: the interval is wider than need be."""
    found = make_expectations(simulate(100, EQUAL, 0.2, 0.0))
    assert np.mean([low <= 0.2 <= high for low, high in (e.interval for e in found)]) >= 0.99
    assert np.median([np.diff(each.interval)[0] for each in found]) < 0.15
    assert np.mean([each.tau_interval[0] == 0 for each in found]) > 0.9


@pytest.mark.parametrize(("n_environments", "tau"), [(5, 0.6), (10, 0.3), (30, 1.0), (10, 0.0)])
def test_the_interval_of_tau_covers(n_environments, tau):
    sizes = np.full(n_environments, 400)
    found = make_expectations(simulate(200, sizes, 0.3, tau, seed=2))
    is_held = [each.tau_interval[0] <= tau <= each.tau_interval[1] for each in found]
    assert 0.91 <= np.mean(is_held) <= 0.99
    assert np.median([each.tau for each in found]) == pytest.approx(tau, abs=0.12)


LEAVES = [
    ([100, 120, 90], [10, 14, 9]),
    ([0, 10, 3, 9], [10, 0, 10, 1]),
    ([0, 1, 2, 3], [0, 1, 0, 2]),
    ([40, 30, 55, 20, 60], [1, 0, 0, 2, 0]),
    ([12, 25, 30, 8, 19, 40], [9, 14, 3, 8, 2, 10]),
]


@pytest.mark.parametrize(("negatives", "positives"), LEAVES)
def test_the_same_by_brute_force(negatives, positives):
    tau, tau_interval, quantiles = expect_slowly(negatives, positives)
    (found,) = make_expectations([(negatives, positives)])
    low, high = found.interval
    assert (low, found.middle, high) == pytest.approx(quantiles, abs=0.004, rel=0.05)
    step = 1.16  # of the slow one from one tau to the next
    for fast, slow in zip((found.tau, *found.tau_interval), (tau, *tau_interval), strict=True):
        assert fast / step - 0.011 <= slow <= fast * step + 0.011


@given(
    st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), min_size=3, max_size=5).filter(
        lambda pairs: sum(a + b > 0 for a, b in pairs) >= 3
    )
)
@settings(max_examples=6, deadline=None)
def test_random_leaves_by_brute_force(pairs):
    negatives, positives = zip(*pairs, strict=True)
    _, _, quantiles = expect_slowly(negatives, positives)
    (found,) = make_expectations([(negatives, positives)])
    assert found.interval == pytest.approx((quantiles[0], quantiles[2]), abs=0.02)


def test_many_samples_give_the_t_interval():
    """Of environments whose rates are known, the interval is that of a normal sample.

    The prior's tail makes it a little narrower.
    """
    theta = np.array([-0.42, 0.1, 0.37, -0.05, 0.2, -0.3, 0.02, 0.15])
    sizes = np.full(8, 10**7)
    positives = np.round(sizes * special.expit(theta)).astype(int)
    (found,) = make_expectations([(sizes - positives, positives)])
    half = stats.t.ppf(0.975, 7) * theta.std(ddof=1) * np.sqrt(1 + 1 / 8)
    assert special.logit(found.interval) == pytest.approx(
        (theta.mean() - half, theta.mean() + half), abs=0.015
    )
    assert found.tau == pytest.approx(theta.std(ddof=1), rel=0.01)
    assert found.i2 > 0.9999


@pytest.mark.parametrize(
    ("leaf", "why"),
    [
        ([(5, 5), (3, 3)], "Only two environments have samples here"),
        ([(5, 0, 5), (3, 0, 3)], "Only two environments have samples here"),
        ([(5, 0, 0), (3, 0, 0)], "Only one environment has samples here"),
        ([(0, 0, 0), (0, 0, 0)], "No environment has samples here"),
        ([(5,), (3,)], "The data name no environments"),
    ],
)
def test_too_few_environments_say_that_they_cannot_tell(leaf, why):
    (found,) = make_expectations([leaf])
    assert found.reason.startswith(why)
    for name in ("tau", "tau_interval", "i2", "middle", "interval"):
        assert getattr(found, name) is None
    assert "no estimate" in repr(found)


def test_an_environment_without_samples_changes_nothing():
    leaf = np.array([(90, 60, 75, 20), (10, 14, 6, 9)])
    gap = np.insert(leaf, 2, 0, axis=1)
    one, other = make_expectations([leaf])[0], make_expectations([gap])[0]
    assert other.n_environments == 4
    assert other.interval == pytest.approx(one.interval, abs=1e-9)
    assert (other.tau, other.i2) == pytest.approx((one.tau, one.i2), abs=1e-9)


def test_labels_and_order_are_symmetric():
    leaf = np.array([(90, 60, 75, 20), (10, 14, 6, 9)])
    (one,), (swapped,) = make_expectations([leaf]), make_expectations([leaf[::-1]])
    assert swapped.interval == pytest.approx((1 - one.interval[1], 1 - one.interval[0]), abs=1e-6)
    assert make_expectations([leaf[:, [2, 0, 3, 1]]])[0].interval == pytest.approx(one.interval)


def test_each_leaf_stands_alone():
    """What else is asked for at once, and how much of it, makes no difference."""
    leaves = simulate(90, EQUAL, 0.2, 0.4)
    together = make_expectations(leaves)
    for number in (0, 41, 89):
        (alone,) = make_expectations(leaves[number : number + 1])
        assert alone == together[number]


@pytest.mark.parametrize(
    "leaf",
    [
        [(200,) * 5, (0,) * 5],
        [(0,) * 5, (10**9,) * 5],
        [(0, 10, 0, 10), (10, 0, 10, 0)],
        [(10**6, 1, 0), (0, 0, 1)],
        [(1,) * 400, (0,) * 399 + (1,)],
    ],
)
def test_extremes_stay_finite(leaf):
    (found,) = make_expectations([leaf])
    low, high = found.interval
    assert 0 <= low <= found.middle <= high <= 1
    assert 0 <= found.tau_interval[0] <= found.tau <= found.tau_interval[1] <= MAX_TAU + 1e-9
    assert 0 <= found.i2 <= 1


def test_a_leaf_without_positives_stays_rare_elsewhere():
    """Jeffreys' prior alone allowed 99 % in a sixth environment after 0 of 1,000 in five."""
    few, many = make_expectations([[(200,) * 5, (0,) * 5], [(2000,) * 5, (0,) * 5]])
    assert few.interval[1] < 0.03
    assert many.interval[1] < 0.003


@pytest.mark.parametrize("size", [60, 2000])
def test_what_is_counted_in_a_new_environment_is_inside(size):
    """In 95 % of new environments, their own sampling error accounted for."""
    sizes = np.append(EQUAL, size)
    leaves = simulate(300, sizes, 0.15, 0.6, seed=3)
    new = leaves[:, :, -1:]
    p_values = compute_surprise(leaves[:, :, :-1], new[:, 1], new.sum(axis=1))
    assert 0.93 <= np.mean(p_values > 0.05) <= 0.98


def test_surprise_is_that_of_the_interval_where_the_new_rate_is_known():
    leaf = simulate(1, EQUAL, 0.15, 0.6)
    low, high = make_expectations(leaf)[0].interval
    n = 10**7
    rates = np.array([low * 0.97, low * 1.03, high * 0.98, high * 1.02])
    p_values = compute_surprise(leaf, (n * rates).astype(int)[np.newaxis], np.full((1, 4), n))
    assert (p_values > 0.05).tolist() == [[False, True, True, False]]


def test_no_surprise_where_nothing_was_promised():
    leaves = np.array([[(5, 5, 0), (3, 3, 0)], [(5, 5, 5), (3, 3, 2)]])
    p_values = compute_surprise(leaves, np.array([[1], [0]]), np.array([[3], [0]]))
    assert np.isnan(p_values).all()
