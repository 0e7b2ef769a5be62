"""The tests of independence equal scipy's, and are tests: they reject at their level."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from icscm._constants import P_VALUE_SLACK
from icscm.exceptions import IcscmError
from icscm.stats import _kernels
from icscm.stats.independence import (
    ChiSquaredTest,
    FisherTest,
    GTest,
    compute_conditional,
    exceeds,
    find_independent,
    make_test,
)
from icscm.testing import check_independence_test
from support.literal.learner import compute_fisher, compute_statistic

ALL_TESTS = [ChiSquaredTest(), ChiSquaredTest(yates=False), GTest(), FisherTest()]


@st.composite
def some_tables(draw, most, most_environments=5):
    n_environments = draw(st.integers(1, most_environments))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = rng.integers(0, [[[2]], [[5]], [[most]], [[most]]] * 4, (16, 2, n_environments))
    tables[rng.random(tables.shape) < draw(st.sampled_from([0.0, 0.3]))] = 0
    return tables


def drop_empty(table):
    table = table[table.sum(axis=1) > 0]
    return table[:, table.sum(axis=0) > 0]


def compute_with_scipy(table, **options):
    table = drop_empty(table)
    if table.size == 0 or min(table.shape) < 2:
        return 1.0, 0
    result = stats.chi2_contingency(table, **options)
    return result.pvalue, result.dof


@settings(max_examples=200, deadline=None)
@given(some_tables(most=3000))
def test_chi_squared_and_g_equal_scipy(tables):
    pairs = [
        (ChiSquaredTest(), {"correction": True}),
        (ChiSquaredTest(yates=False), {"correction": False}),
        (GTest(), {"correction": False, "lambda_": "log-likelihood"}),
    ]
    for test, options in pairs:
        wanted = [compute_with_scipy(table, **options) for table in tables]
        np.testing.assert_allclose(
            test.compute_p_values(tables), [p for p, _ in wanted], rtol=1e-9, atol=1e-12
        )
        assert test.compute_statistics(tables)[1].tolist() == [dof for _, dof in wanted]


@settings(max_examples=100, deadline=None)
@given(some_tables(most=3000))
def test_literal_statistics_equal_scipy(tables):
    """Those of the literal twins, which are to have no part in common with the package."""
    options = {"chi2": {"correction": True}, "pearson": {"correction": False}}
    options["g"] = {"correction": False, "lambda_": "log-likelihood"}
    for table in filter(lambda table: min(table.shape, default=0) > 1, map(drop_empty, tables)):
        for test, given_options in options.items():
            wanted = stats.chi2_contingency(table, **given_options)
            found = compute_statistic(table.tolist(), test)
            assert found == pytest.approx((wanted.statistic, wanted.dof), rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(some_tables(most=200, most_environments=2))
def test_fisher_equals_scipy(tables):
    wanted = [
        1.0 if min(drop_empty(table).shape, default=0) < 2 else stats.fisher_exact(table).pvalue
        for table in tables
    ]
    np.testing.assert_allclose(FisherTest().compute_p_values(tables), wanted, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(some_tables(most=6))
def test_fisher_equals_listing_all_tables(tables):
    exact = np.empty(len(tables))
    _kernels.compute_exact(tables, exact)
    is_listed = ~np.isnan(exact)
    assume(is_listed.any())
    tables = tables[is_listed]
    wanted = []
    for table in tables:
        table = drop_empty(table)
        small = table.size == 0 or min(table.shape) < 2
        wanted.append(1.0 if small else compute_fisher(table.tolist()))
    np.testing.assert_allclose(FisherTest().compute_p_values(tables), wanted, rtol=1e-9)


def test_fisher_with_large_counts():
    tables = np.array([[[200_000, 150_000], [100_000, 75_100]], [[5, 900_000], [0, 1]]])
    wanted = [stats.fisher_exact(table).pvalue for table in tables]
    np.testing.assert_allclose(FisherTest().compute_p_values(tables), wanted, rtol=1e-6)


def test_fisher_hands_over_to_pearson_where_there_are_too_many_tables():
    tables = np.array([[[90, 110, 100, 95, 80], [110, 100, 95, 105, 120]]])
    found = FisherTest().compute_p_values(tables)
    assert found == ChiSquaredTest(yates=False).compute_p_values(tables)


@pytest.mark.parametrize("test", ALL_TESTS, ids=repr)
@pytest.mark.parametrize("n_environments", [1, 2, 5])
def test_contract(test, n_environments):
    check_independence_test(test, n_environments)


@pytest.mark.parametrize("test", ALL_TESTS, ids=repr)
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_comparing_with_the_critical_value_is_comparing_p_values(test, alpha):
    tables = np.random.default_rng(0).integers(0, 60, size=(3000, 2, 4))
    tables[:1000, :, 2:] = 0
    tables[:10, 1] = 0
    wanted = test.compute_p_values(tables) > alpha
    assert 0 < wanted.sum() < len(wanted)
    np.testing.assert_array_equal(find_independent(test, tables, alpha), wanted)


@pytest.mark.parametrize("test", ALL_TESTS, ids=repr)
@pytest.mark.parametrize("n_environments", [2, 4])
def test_level(test, n_environments):
    """Under independence at most alpha of the tables are rejected; for the approximate tests
    without correction, about alpha of them."""
    rng = np.random.default_rng(1)
    n_tables, alpha = 4000, 0.05
    sizes = rng.integers(150, 300, size=n_environments)
    positives = rng.binomial(sizes, 0.3, size=(n_tables, n_environments))
    tables = np.stack((sizes - positives, positives), axis=1)
    n_rejected = int((~find_independent(test, tables, alpha)).sum())
    assert stats.binomtest(n_rejected, n_tables, alpha, alternative="greater").pvalue > 1e-4
    is_conservative = isinstance(test, FisherTest) or getattr(test, "yates", False)
    if not is_conservative:
        assert stats.binomtest(n_rejected, n_tables, alpha, alternative="less").pvalue > 1e-4


@pytest.mark.parametrize("test", ALL_TESTS, ids=repr)
def test_power_grows_with_the_number_of_samples(test):
    rng = np.random.default_rng(2)
    powers = []
    for size in (50, 200, 1000):
        positives = rng.binomial(size, [0.3, 0.4], size=(1000, 2))
        tables = np.stack((size - positives, positives), axis=1)
        powers.append((~find_independent(test, tables, 0.05)).mean())
    assert powers[0] < powers[1] < powers[2]
    assert powers[2] > 0.95


def test_conditional_g_ignores_strata_that_carry_no_information():
    informative = np.array([[30, 20], [25, 45]])
    strata = np.array([informative, [[5, 0], [7, 0]], [[0, 0], [3, 4]], [[0, 0], [0, 0]]])
    (statistic,), (dof,), (p_value,) = compute_conditional([strata])
    wanted = stats.chi2_contingency(informative, correction=False, lambda_="log-likelihood")
    assert statistic == pytest.approx(wanted.statistic)
    assert dof == 1
    assert p_value == pytest.approx(wanted.pvalue)
    results = compute_conditional([strata[1:], strata, strata[:1]])
    assert results.statistics.tolist() == [0.0, statistic, statistic]
    assert results.dof.tolist() == [0, 1, 1]
    assert results.p_values.tolist() == [1.0, p_value, p_value]


def test_conditional_g_level():
    """Label and environment independent within each stratum, though not overall."""
    rng = np.random.default_rng(3)
    sizes = np.array([[150, 50], [40, 160]])  # (stratum, environment)
    rates = np.array([[0.2], [0.7]])
    n_runs = 3000
    positives = rng.binomial(sizes, rates, size=(n_runs, 2, 2))
    runs = [np.stack((sizes - each, each), axis=1) for each in positives]
    n_rejected = int((compute_conditional(runs).p_values <= 0.05).sum())
    assert stats.binomtest(n_rejected, n_runs, 0.05).pvalue > 1e-4


@pytest.mark.parametrize("wrong", ["chi", None, 3, GTest])
def test_unknown_test(wrong):
    with pytest.raises(ValueError, match="test must be one of") as caught:
        make_test(wrong)
    assert str(caught.value) == (
        "test must be one of 'chi2', 'g', 'fisher' or an object with a method "
        "compute_p_values(tables) (see icscm.stats.independence.IndependenceTest); "
        f"got {wrong!r}"
    )


def test_tests_by_name():
    assert {name: repr(make_test(name)) for name in ("chi2", "g", "fisher")} == {
        "chi2": "ChiSquaredTest(yates=True)",
        "g": "GTest()",
        "fisher": "FisherTest()",
    }
    for own in ALL_TESTS:
        assert make_test(own) is own


class Strict(ChiSquaredTest):
    """A subclass that changes what p-values are, and nothing else."""

    def compute_p_values(self, tables):
        return np.full(len(tables), 0.04)


def test_a_subclass_is_asked_for_its_p_values():
    """Its inherited short cut by statistics would not know of them."""
    tables = np.full((3, 2, 2), 50)
    for test in (Strict(), make_test(Strict())):
        assert find_independent(test, tables, 0.05).tolist() == [False] * 3
        assert find_independent(test, tables, 0.03).tolist() == [True] * 3


def test_p_values_equal_to_alpha_but_for_the_last_digits_do_not_exceed_it():
    bound = 0.05 * (1 + P_VALUE_SLACK)
    below, above = 0.05 * (1 + 1e-13), np.nextafter(bound, 1)
    p_values = np.array([0.04, 0.05, below, bound, above])
    assert exceeds(p_values, 0.05).tolist() == [False, False, False, False, True]
    assert exceeds(0.05, 0.049)


def test_conditional_tests_of_another_kind():
    strata = np.array([[[30, 20], [25, 45]], [[10, 12], [14, 9]]])
    plain = ChiSquaredTest(yates=False)
    found = compute_conditional([strata, strata[:1]], plain)
    statistics, dof = plain.compute_statistics(strata)
    assert found.statistics.tolist() == pytest.approx([statistics.sum(), statistics[0]])
    assert found.dof.tolist() == [2, 1] == [dof.sum(), dof[0]]
    assert found.p_values == pytest.approx(stats.chi2.sf(found.statistics, found.dof))


def test_tables_of_any_layout_and_integer():
    tables = np.random.default_rng(0).integers(0, 30, (5, 2, 3))
    for test in ALL_TESTS:
        wanted = test.compute_p_values(tables).tolist()
        for other in (np.asfortranarray(tables), tables[::-1][::-1], tables.astype(np.int64)):
            assert test.compute_p_values(other).tolist() == wanted


class Wrong(Strict):
    """A test whose p-values are of the wrong number, or none."""

    def __init__(self, p_values):
        self.p_values = p_values

    def compute_p_values(self, tables):
        return np.array(self.p_values)

    def __repr__(self):
        return "Wrong()"


def test_wrong_p_values_are_rejected_in_one_sentence():
    tables = np.full((3, 2, 2), 50)
    with pytest.raises(IcscmError) as error:
        make_test(Wrong([0.5, 0.5])).compute_p_values(tables)
    assert str(error.value) == (
        "Wrong().compute_p_values must return one p-value for each of 3 tables, "
        "got an array of shape (2,)"
    )
    for wrong in (np.nan, -0.1, 1.1):
        with pytest.raises(IcscmError) as error:
            make_test(Wrong([0.5, 0.5, wrong])).compute_p_values(tables)
        assert str(error.value) == (
            "Wrong().compute_p_values returned a p-value that is NaN or outside [0, 1]"
        )
    assert make_test(Wrong([0, 0.5, 1])).compute_p_values(tables).tolist() == [0.0, 0.5, 1.0]
