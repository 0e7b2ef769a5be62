"""What to expect in a new environment: intervals that cover, and the same by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from icscm.exceptions import IcscmError
from icscm.stats.new_environments import compute_surprise, make_expectations
from icscm.stats.random_intercepts import MAX_TAU
from support.literal.random_effects import (
    compute_surprise_slowly,
    expect_exactly,
    expect_slowly,
    weigh_tau,
)

EQUAL = np.full(10, 300)
BASE = special.logit(np.linspace(0.05, 0.7, 6))


def simulate(n_leaves, sizes, rate, tau, seed=0):
    """Leaves by label and environment, of environments drawn as the model says, none shared."""
    rng = np.random.default_rng(seed)
    theta = special.logit(rate) + tau * rng.standard_normal((n_leaves, len(sizes)))
    positives = rng.binomial(sizes, special.expit(theta))
    return np.stack((sizes - positives, positives), axis=1)


def draw_tables(n_tables, n_environments, size, tau, is_shared, seed):
    """Tables (leaf, label, environment), and the log odds and the prevalence of a new one."""
    rng = np.random.default_rng(seed)
    shared, own = (0.8**0.5 * tau, 0.2**0.5 * tau) if is_shared else (0.0, tau)
    for _ in range(n_tables):
        b = shared * rng.standard_normal((n_environments + 1, 1))
        theta = BASE + b + own * rng.standard_normal((n_environments + 1, len(BASE)))
        shares = rng.dirichlet(np.full(len(BASE), 4.0), n_environments + 1)
        sizes = rng.multinomial(size * len(BASE), shares[:-1])
        positives = rng.binomial(sizes, special.expit(theta[:-1]))
        prevalence = (shares[-1] * special.expit(theta[-1])).sum()
        yield np.stack((sizes - positives, positives)).transpose(2, 0, 1), theta[-1], prevalence


def compute_coverage(tables, n_tables):
    """Shares of the leaves' rates in the intervals: prevalence not known, and known."""
    inside = []
    for table, theta, prevalence in tables:
        for each, rate in zip(
            make_expectations(table, prevalence), special.expit(theta), strict=True
        ):
            if each.interval:
                pairs = each.interval, each.known_interval
                inside.append([low <= rate <= high for low, high in pairs])
    assert len(inside) > 0.95 * n_tables * len(BASE)
    return np.mean(inside, axis=0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("n_environments", "size", "tau", "is_shared"),
    [(3, 30, 0.6, True), (3, 1000, 0.3, False), (5, 1000, 0.6, True), (8, 30, 0.3, False),
     (8, 1000, 0.3, True)],
)  # fmt: skip
def test_a_new_environment_is_covered(n_environments, size, tau, is_shared):
    """95 % nominal, tables as the sample: two standard errors of 60 are about 4 %."""
    drawn = draw_tables(60, n_environments, size, tau, is_shared, seed=n_environments)
    unknown, known = compute_coverage(drawn, 60)
    assert 0.91 <= unknown <= 0.99
    assert 0.91 <= known <= 0.99


@pytest.mark.thorough
def test_no_spread_at_all_is_covered_with_more_than_enough():
    """tau = 0 cannot be known from few environments: the interval is wider than need be."""
    assert compute_coverage(draw_tables(25, 5, 100, 0.0, True, seed=0), 25).min() >= 0.98


def test_no_spread_in_many_environments_is_a_narrow_interval():
    found = make_expectations(simulate(10, EQUAL, 0.2, 0.0))
    assert np.median([np.diff(each.interval)[0] for each in found]) < 0.1
    assert found[0].tau_interval[0] == 0


@pytest.mark.thorough
@pytest.mark.parametrize(("n_environments", "tau"), [(5, 0.6), (10, 0.3), (30, 1.0), (10, 0.0)])
def test_the_interval_of_tau_covers(n_environments, tau):
    sizes, found = np.full(n_environments, 400), []
    for seed in range(50):
        found += make_expectations(simulate(2, sizes, 0.3, tau, seed=seed))[:1]
    is_held = [each.tau_interval[0] <= tau <= each.tau_interval[1] for each in found]
    assert 0.89 <= np.mean(is_held) <= 1.0
    assert np.median([each.tau for each in found]) == pytest.approx(tau, abs=0.12)


def test_the_known_prevalence_moves_and_narrows_the_interval():
    """With baselines that differ much and effects that do not, it says nearly all."""
    rng = np.random.default_rng(0)
    theta = np.array([-2.0, 0.0, 1.0]) + np.linspace(-1.5, 1.5, 8)[:, np.newaxis]
    positives = rng.binomial(5000, special.expit(theta))
    tables = np.stack((5000 - positives, positives)).transpose(2, 0, 1)
    prevalence = special.expit(theta[-1]).mean()
    for each, rate in zip(
        make_expectations(tables, prevalence), special.expit(theta[-1]), strict=True
    ):
        low, high = each.known_interval
        assert low < rate < high
        assert high - low < (each.interval[1] - each.interval[0]) / 4
    (typical, *_), (high, *_) = make_expectations(tables), make_expectations(tables, 0.9)
    assert typical.known_interval[1] < high.known_interval[0]
    assert typical.interval == high.interval


@pytest.mark.parametrize("prevalence", [0, 1.0, -0.1, float("nan")])
def test_a_prevalence_is_a_rate(prevalence):
    with pytest.raises(IcscmError, match="prevalence must be a rate between 0 and 1; got"):
        make_expectations([[(5, 5, 5), (3, 3, 3)]], prevalence)


TABLES = [
    [[(100, 120, 90), (10, 14, 9)], [(30, 20, 50), (40, 35, 80)]],
    [[(0, 10, 3, 9), (10, 0, 10, 1)], [(5, 5, 0, 8), (1, 3, 0, 2)]],
    [[(40, 30, 55, 20), (1, 0, 0, 2)], [(12, 25, 30, 8), (9, 14, 3, 8)],
     [(3, 0, 9, 1), (0, 0, 1, 0)]],
]  # fmt: skip


def check_slowly(tables, prevalence):
    unknown, known = expect_slowly(tables, prevalence)
    for i, found in enumerate(make_expectations(tables, prevalence)):
        if found.interval is not None:
            low, high = found.interval
            assert (low, found.middle, high) == pytest.approx(unknown[:, i], abs=0.01)
            if len(tables) > 1:
                assert found.known_interval == pytest.approx(known[:, i], abs=0.01)


@pytest.mark.parametrize("tables", TABLES)
def test_the_same_by_brute_force(tables):
    check_slowly(tables, 0.3)


def test_tau_and_its_interval_are_those_of_the_literal_likelihood():
    """It is largest at tau, and half a quantile of chi-squared lower at both ends."""
    tables = simulate(2, np.full(8, 400), 0.3, 0.6)
    found = make_expectations(tables)[0]
    largest = weigh_tau(tables, found.tau)
    assert largest > weigh_tau(tables, 0.95 * found.tau)
    assert largest > weigh_tau(tables, 1.05 * found.tau)
    for end in found.tau_interval:
        fall = largest - weigh_tau(tables, end)
        assert fall == pytest.approx(stats.chi2.ppf(0.95, 1) / 2, abs=0.1)


def test_surprise_by_brute_force():
    """Counts of none, all and some samples of a new environment, in two leaves."""
    tables = np.array(TABLES[1])
    positives, sizes = np.array([[0, 4, 3, 12]] * 2), np.array([[4, 4, 10, 80]] * 2)
    found = compute_surprise(tables, positives, sizes)
    wanted = compute_surprise_slowly(tables, positives, sizes)
    assert found == pytest.approx(wanted, abs=0.005)


COUNTS = st.lists(st.integers(0, 60), min_size=4, max_size=4)


@given(
    tables=st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=3).filter(
        lambda tables: (np.sum(tables, axis=(0, 1)) > 0).sum() >= 3
    ),
    prevalence=st.floats(0.05, 0.95),
)
@settings(max_examples=10, deadline=None)
@pytest.mark.thorough
def test_random_leaves_by_brute_force(tables, prevalence):
    check_slowly(tables, prevalence)


@pytest.mark.parametrize(
    ("negatives", "positives", "tolerance"),
    [
        ([100, 120, 90], [10, 14, 9], 0.06),
        pytest.param([0, 10, 3, 9], [10, 0, 10, 1], 0.06, marks=pytest.mark.thorough),
        pytest.param(
            [12, 25, 30, 8, 19, 40], [9, 14, 3, 8, 2, 10], 0.06, marks=pytest.mark.thorough
        ),
        ([40, 30, 55, 20, 60], [1, 0, 0, 2, 0], 0.15),
    ],
)
def test_laplace_is_near_the_integral(negatives, positives, tolerance):
    """Ends in log odds, by the width; where three of 208 samples are positive it is less exact.

    There the interval ends at 35 %, where that of the integral ends at 26 %.
    """
    wanted = special.logit(expect_exactly(negatives, positives))
    (found,) = make_expectations([(negatives, positives)])
    rates = found.interval[0], found.middle, found.interval[1]
    width = wanted[2] - wanted[0]
    assert special.logit(rates) == pytest.approx(wanted, abs=tolerance * width)


def test_many_samples_give_about_the_t_interval():
    """Of environments whose rates are known, the interval is about that of a normal sample."""
    theta = np.array([-0.42, 0.1, 0.37, -0.05, 0.2, -0.3, 0.02, 0.15])
    sizes = np.full(8, 10**7)
    positives = np.round(sizes * special.expit(theta)).astype(int)
    (found,) = make_expectations([(sizes - positives, positives)])
    half = stats.t.ppf(0.975, 7) * theta.std(ddof=1) * np.sqrt(1 + 1 / 8)
    assert special.logit(found.interval) == pytest.approx(
        (theta.mean() - half, theta.mean() + half), abs=0.06
    )
    assert found.tau == pytest.approx(theta.std(ddof=1), rel=0.02)
    assert found.i2 > 0.9999
    assert found.known_interval is None


def test_leaves_share_what_is_known_of_tau():
    """A leaf of few samples has an interval as wide as those of large leaves let expect."""
    large = simulate(5, np.full(6, 5000), 0.3, 0.2, seed=1)
    small = np.array([[(4, 5, 3, 6, 4, 5), (2, 2, 1, 3, 1, 2)]])
    (alone,), (*_, beside) = make_expectations(small), make_expectations([*large, *small])
    width, narrower = (np.diff(each.interval)[0] for each in (alone, beside))
    assert narrower < 0.85 * width


@pytest.mark.parametrize(
    ("leaf", "why"),
    [
        ([(5, 5), (3, 3)], "Only two environments have samples here"),
        ([(5, 0, 5), (3, 0, 3)], "Only two environments have samples here"),
        ([(5, 0, 0), (3, 0, 0)], "Only one environment has samples here"),
        ([(0, 0, 0), (0, 0, 0)], "No environment has samples here"),
        ([(5,), (3,)], "The data have no environments"),
    ],
)
def test_too_few_environments_say_that_they_cannot_tell(leaf, why):
    (found,) = make_expectations([leaf])
    assert found.reason.startswith(why)
    for name in ("tau", "tau_interval", "i2", "middle", "interval"):
        assert getattr(found, name) is None
    assert "no estimate" in repr(found)


def test_leaves_of_one_environment_beside_others():
    """A leaf in one environment, or without samples, gave 0 / 0 where tau is 0."""
    leaves = [[(50, 50, 50), (5, 5, 5)], [(9, 0, 0), (1, 0, 0)], [(0, 0, 0), (0, 0, 0)]]
    large, small, empty = make_expectations(leaves)
    assert large.interval is not None
    assert small.reason.startswith("Only one environment has")
    assert empty.reason.startswith("No environment has")


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
    leaves = [(200,) * 5, (0,) * 5], [(2000,) * 5, (0,) * 5]
    (few,), (many,) = (make_expectations([leaf]) for leaf in leaves)
    assert few.interval[1] < 0.03
    assert many.interval[1] < 0.003


@pytest.mark.thorough
@pytest.mark.parametrize("size", [60, 2000])
def test_what_is_counted_in_a_new_environment_is_inside(size):
    """In 95 % of new environments, their own sampling error accounted for."""
    sizes = np.append(EQUAL, size)
    p_values = []
    for leaves in np.split(simulate(300, sizes, 0.15, 0.6, seed=3), 50):
        new = leaves[:, :, -1:]
        p_values += compute_surprise(leaves[:, :, :-1], new[:, 1], new.sum(axis=1)).tolist()
    assert 0.925 <= np.mean(np.array(p_values) > 0.05) <= 0.98


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
