"""Tests of independence between outcome and environment, on tables of counts.

A table (outcome, environment) has the rows of a leaf. With n_ye rows of outcome y in environment e,
n_y and n_e the sums of these and n of all, independence lets expect  m_ye = n_y n_e / n  rows:

    Pearson (1900)           X^2 = sum (n_ye - m_ye)^2 / m_ye
    with Yates' correction         sum (|n_ye - m_ye| - 1/2)^2 / m_ye,  with two environments
    likelihood ratio (Wilks) G   = 2 sum n_ye log(n_ye / m_ye)
    Fisher (1935)            the chance of a table that is no likelier, given n_y and n_e

The first three are compared with chi-squared of (outcomes - 1) (environments - 1) degrees of
freedom. Those without rows do not count, and with no degree of freedom left the p-value is 1: never
NaN. A small p-value is evidence that the rate of positives differs between environments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from icscm._constants import COUNT_DTYPE, P_VALUE_SLACK
from icscm._lazy import special
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.exceptions import IcscmError
from icscm.stats import _kernels


@runtime_checkable
class IndependenceTest(Protocol):
    """What a user's test, to be passed as `test=`, must have.

    `icscm.testing.check_independence_test` checks an object against this.

    Examples
    --------
    >>> class AlwaysIndependent:
    ...     def compute_p_values(self, tables):
    ...         return np.ones(len(tables))
    >>> isinstance(AlwaysIndependent(), IndependenceTest)
    True
    """

    def compute_p_values(self, tables: CountArray) -> FloatArray:
        """Compute the chance of tables like these if outcome and environment are independent.

        Parameters
        ----------
        tables : int array of shape (n_leaves, 2, n_environments)
            The rows of each leaf by outcome and environment.

        Returns
        -------
        float array of shape (n_leaves,)
            p-values in [0, 1], never NaN.
        """
        ...


class TableStatistics(NamedTuple):
    """The statistic of each table, and its degrees of freedom."""

    statistics: FloatArray
    dof: NDArray[np.int64]


class _StatisticTest:
    """A test by a statistic that is chi-squared under independence.

    Which tables it rejects can be told from a critical value, without a p-value for each.
    """

    def compute_p_values(self, tables: CountArray) -> FloatArray:
        """Compute the upper tail of chi-squared at the statistic of each table."""
        statistics, dof = self.compute_statistics(tables)
        return compute_upper_tail(statistics, dof)

    def compute_statistics(self, tables: CountArray) -> TableStatistics:
        """Compute the statistic of each table, and its degrees of freedom."""
        results = TableStatistics(
            statistics=np.empty(len(tables)),
            dof=np.empty(len(tables), dtype=np.int64),
        )
        self._fill(results, np.ascontiguousarray(tables, dtype=COUNT_DTYPE))
        return results

    def _fill(self, results: TableStatistics, tables: CountArray) -> None:
        """Fill the arrays of the results by a compiled loop over the tables."""
        raise NotImplementedError


@dataclass(eq=False)
class ChiSquaredTest(_StatisticTest):
    """Pearson's chi-squared: see the head of the module.

    Parameters
    ----------
    yates : bool, default=True
        Whether Yates' correction is made where there is one degree of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.stats.independence import ChiSquaredTest
    >>> tables = np.array([[[80, 60], [20, 40]]])  # outcome by environment
    >>> ChiSquaredTest().compute_p_values(tables).round(4)
    array([0.0034])
    """

    yates: bool = True

    def _fill(self, results: TableStatistics, tables: CountArray) -> None:
        _kernels.compute_pearson(self.yates, tables, results.statistics, results.dof)


# For sums of statistics, which would be conservative with Yates' correction.
PEARSON = ChiSquaredTest(yates=False)


@dataclass(eq=False)
class GTest(_StatisticTest):
    """The likelihood-ratio test, without correction: see the head of the module.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.stats.independence import GTest
    >>> tables = np.array([[[80, 60], [20, 40]]])  # outcome by environment
    >>> GTest().compute_p_values(tables).round(4)
    array([0.0019])
    """

    def _fill(self, results: TableStatistics, tables: CountArray) -> None:
        _kernels.compute_likelihood_ratio(tables, results.statistics, results.dof)


@dataclass(eq=False)
class FisherTest:
    """Fisher's exact test; Pearson's chi-squared where too many tables have the same margins.

    With two environments it is always exact. With more it sums over all tables of the same
    margins (Freeman and Halton 1951) while there are at most `MAX_EXACT_TABLES`, that is, where
    counts are small; beyond that the approximation is good.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.stats.independence import FisherTest
    >>> tables = np.array([[[80, 60], [20, 40]]])  # outcome by environment
    >>> FisherTest().compute_p_values(tables).round(4)
    array([0.0032])
    """

    def compute_p_values(self, tables: CountArray) -> FloatArray:
        """Compute exact p-values where few tables have the same margins, else by Pearson's."""
        p_values = np.empty(len(tables), dtype=np.float64)
        _kernels.compute_exact(np.ascontiguousarray(tables), p_values)
        # the kernel leaves NaN where too many tables have these margins
        is_unknown = np.isnan(p_values)
        p_values[is_unknown] = PEARSON.compute_p_values(tables[is_unknown])
        return p_values


_TESTS: dict[str, type[Any]] = {"chi2": ChiSquaredTest, "g": GTest, "fisher": FisherTest}


def _is_built_in(test: IndependenceTest) -> bool:
    """Return whether a test is of this module; a user's subclass may have other p-values."""
    return type(test) in _TESTS.values()


def make_test(test: str | IndependenceTest) -> IndependenceTest:
    """Make the test of a name, or return a user's test, whose results are checked from then on."""
    if isinstance(test, str) and test in _TESTS:
        named_test: IndependenceTest = _TESTS[test]()
        return named_test
    if isinstance(test, IndependenceTest) and not isinstance(test, type):
        return test if _is_built_in(test) else _CheckedTest(test)
    raise IcscmError(
        f"test must be one of {', '.join(map(repr, _TESTS))} or an object with a method "
        f"compute_p_values(tables) (see icscm.stats.independence.IndependenceTest); got {test!r}"
    )


class _CheckedTest:
    """A user's test whose results are checked, since models and traces contain them."""

    def __init__(self, test: IndependenceTest) -> None:
        self._test = test

    def compute_p_values(self, tables: CountArray) -> FloatArray:
        """Compute the p-values of the user's test; raise if they cannot be any."""
        p_values = np.asarray(self._test.compute_p_values(tables), dtype=np.float64)
        method = f"{self._test!r}.compute_p_values"
        if p_values.shape != (len(tables),):
            raise IcscmError(
                f"{method} must return one p-value for each of {len(tables)} tables, got an array "
                f"of shape {p_values.shape}"
            )
        if not ((p_values >= 0) & (p_values <= 1)).all():
            raise IcscmError(f"{method} returned a p-value that is NaN or outside [0, 1]")
        return p_values


def is_corrected(test: IndependenceTest) -> bool:
    """Return whether a test of two environments is corrected for continuity, or exact."""
    return isinstance(test, FisherTest) or (isinstance(test, ChiSquaredTest) and test.yates)


# --- which tables are accepted ----------------------------------------------------


def find_independent(test: IndependenceTest, tables: CountArray, alpha: float) -> BoolArray:
    """Find the tables of a p-value above alpha, without computing p-values where possible."""
    if not isinstance(test, _StatisticTest) or not _is_built_in(test):
        return np.asarray(exceeds(test.compute_p_values(tables), alpha))

    statistics, dof = test.compute_statistics(tables)
    # The p-value is above alpha where the statistic is below a critical value, of which there is
    # one for each number of degrees of freedom. With 0 of them every table is independent.
    critical_by_dof = np.full(int(dof.max(initial=0)) + 1, np.inf)
    occurring_dof = np.flatnonzero(np.bincount(dof)[1:]) + 1
    critical_by_dof[occurring_dof] = special.chdtri(occurring_dof, alpha)
    return np.asarray(statistics < critical_by_dof[dof])


def compute_corrected(
    test: IndependenceTest, tables: CountArray, effects: FloatArray | None
) -> FloatArray:
    """Compute p-values of a test whose statistic is divided by the design effect of each table.

    A test without a statistic gets tables that are divided, and rounded to whole rows.
    """
    if effects is None:
        return test.compute_p_values(tables)
    if isinstance(test, _StatisticTest):
        statistics, dof = test.compute_statistics(tables)
        return compute_upper_tail(statistics / effects, dof)
    effective_tables = np.rint(tables / effects[:, np.newaxis, np.newaxis])
    return test.compute_p_values(effective_tables.astype(COUNT_DTYPE))


def compute_pearson_p_value(counts: Array) -> float:
    """Compute the p-value of Pearson's test on one table of any number of outcomes.

        X^2 = sum (n_ye - m_ye)^2 / m_ye,  with (outcomes - 1) (environments - 1) degrees of freedom

    Outcomes and environments without rows do not count. The tests above are for two outcomes.

    >>> counts = np.array([[30, 10], [30, 20], [30, 60]])
    >>> f"{compute_pearson_p_value(counts):.1e}"
    '1.7e-05'
    """
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    n_outcomes, n_environments = table.shape
    n_dof = (n_outcomes - 1) * (n_environments - 1)
    if n_dof <= 0:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return float(special.chdtrc(n_dof, statistic))


def exceeds(p_values: FloatArray | float, alpha: FloatArray | float) -> Any:
    """Return whether p-values are above alpha, beyond rounding.

    Exact p-values are ratios of whole numbers and often equal 0.05 exactly; the last digits of a
    sum must not decide then.
    """
    return p_values > alpha * (1.0 + P_VALUE_SLACK)


def compute_upper_tail(statistics: FloatArray, dof: NDArray[np.int64]) -> FloatArray:
    """Compute the chance that chi-squared exceeds a statistic; 1 with no degree of freedom."""
    tail: FloatArray = special.chdtrc(np.maximum(dof, 1), statistics)
    return np.where(dof > 0, tail, 1.0)


# --- sums over strata -------------------------------------------------------------


class ConditionalTests(NamedTuple):
    """Results of several conditional tests, an entry for each of them."""

    statistics: FloatArray
    dof: NDArray[np.int64]
    p_values: FloatArray


def compute_conditional(
    stratified: Sequence[CountArray],
    test: _StatisticTest | None = None,
    effects: Sequence[FloatArray] | None = None,
) -> ConditionalTests:
    """Test outcome against environment within strata, for each of several ways to stratify.

    An entry of `stratified` has the tables (stratum, outcome, environment) of one way. Statistics,
    G by default, and degrees of freedom add up over its strata s:

        statistic = sum X_s        dof = sum dof_s

    A stratum that is empty, of one outcome or of one environment adds 0 to both. With design
    effects d_s the statistic is divided by their mean,  sum d_s dof_s / dof.
    """
    first_strata = _find_first_strata(stratified)
    of_strata = (test or GTest()).compute_statistics(np.concatenate(stratified))
    statistics = np.add.reduceat(of_strata.statistics, first_strata)
    dof = np.add.reduceat(of_strata.dof, first_strata)
    if effects is not None:
        inflated_dof = np.add.reduceat(np.concatenate(effects) * of_strata.dof, first_strata)
        statistics = statistics * dof / np.maximum(inflated_dof, 1.0)
    return ConditionalTests(
        statistics=statistics,
        dof=dof,
        p_values=compute_upper_tail(statistics, dof),
    )


def _find_first_strata(stratified: Sequence[Array]) -> NDArray[np.int64]:
    """Find where the strata of each way to stratify begin, if all are in one array."""
    return np.cumsum([0, *(len(strata) for strata in stratified[:-1])])


def compute_bic(stratified: Sequence[Array]) -> FloatArray:
    """Compute the BIC of the outcome given its stratum, for each way to stratify the same rows.

    With n_sy rows of outcome y in stratum s, and S strata that occur (Schwarz 1978):

        BIC = -2 sum n_sy log(n_sy / n_s) + S log n

    Tables are as in `compute_conditional`.

    >>> rates = np.array([[[30], [10]], [[10], [30]]])
    >>> compute_bic([rates, rates.sum(axis=0, keepdims=True)]).round(1)
    array([ 98.7, 115.3])
    """
    n_sy = np.concatenate([strata.sum(axis=2) for strata in stratified])
    n_s = n_sy.sum(axis=1)
    deviances = 2.0 * (special.xlogy(n_s, n_s) - special.xlogy(n_sy, n_sy).sum(axis=1))
    log_n = np.log(max(stratified[0].sum(), 1)) if len(stratified) else 0.0
    return np.add.reduceat(deviances + (n_s > 0) * log_n, _find_first_strata(stratified))


# --- sums over many small tables ---------------------------------------------

# Rows of a table from which on the variance of its statistic is defined.
_MIN_SUMMED_ROWS = 4


class PearsonSum(NamedTuple):
    """A sum of statistics, its mean and its variance if outcome and environment are independent."""

    statistic: float
    mean: float
    variance: float

    @property
    def p_value(self) -> float:
        """Probability of a sum at least as large; 1 where no table is informative.

        By the gamma distribution of the same mean and variance: shape mean^2 / variance, and rate
        mean / variance.
        """
        if self.variance <= 0:
            return 1.0
        shape = self.mean**2 / self.variance
        return float(special.gammaincc(shape, self.statistic * self.mean / self.variance))


def sum_pearson(tables: CountArray) -> PearsonSum:
    """Sum Pearson's statistic over many small tables (outcome, environment), with its moments.

    Given its margins, a table is drawn without replacement, and the first two moments of its
    statistic are known however small the counts are (Haldane 1940, Dawson 1954):

        mean     = n dof / (n - 1)
        variance = 2 n / (n - 3) (v_y - w_y) (v_e - w_e) + n^2 / (n - 1) w_y w_e

    with v and w of the margin by outcome, n_y, and of that by environment, n_e: see `_Margin`.
    Tables of one outcome or environment add nothing.
    """
    statistics, dof = PEARSON.compute_statistics(tables)
    sizes = tables.sum(axis=(1, 2))
    is_informative = (dof > 0) & (sizes >= _MIN_SUMMED_ROWS)
    informative_tables = tables[is_informative]
    n = sizes[is_informative].astype(np.float64)

    y = _measure_margin(informative_tables.sum(axis=2), n)
    e = _measure_margin(informative_tables.sum(axis=1), n)
    means = n * dof[is_informative] / (n - 1)
    variances = 2 * n / (n - 3) * (y.v - y.w) * (e.v - e.w)
    variances += n**2 / (n - 1) * y.w * e.w
    return PearsonSum(
        statistic=float(statistics[is_informative].sum()),
        mean=float(means.sum()),
        variance=float(variances.sum()),
    )


class _Margin(NamedTuple):
    """What a margin of each table, k classes of c_1, .., c_k > 0 rows, adds to the variance.

    v = (k - 1) (n - k) / (n - 1)        by its number of classes
    w = (sum n / c_i - k^2) / (n - 2)    by how uneven these are
    """

    v: FloatArray
    w: FloatArray


def _measure_margin(counts: CountArray, n: FloatArray) -> _Margin:
    """Compute v and w of a margin of each table: its `counts` (table, class), n in all."""
    k = np.count_nonzero(counts, axis=1)
    ratios = np.where(counts > 0, n[:, np.newaxis] / np.maximum(counts, 1), 0.0)
    return _Margin(
        v=(k - 1) * (n - k) / (n - 1),
        w=(ratios.sum(axis=1) - k**2) / (n - 2),
    )
