"""Tests of independence between label and environment on 2 x K tables of counts.

The null hypothesis is always *independent*: a small p-value is evidence that the label's
rate differs between environments. Rows and columns without samples do not count towards
the degrees of freedom, and a table with none left has p-value 1: never NaN.
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
    """The interface of a user's own test, to be passed as `test=`.

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
        """The chance of tables like these if label and environment are independent.

        Parameters
        ----------
        tables : int array of shape (n, 2, K)
            For each of n leaves the samples by label and environment.

        Returns
        -------
        float array of shape (n,)
            p-values in [0, 1], never NaN.
        """
        ...


class _StatisticTest:
    """A test whose statistic is compared with a critical value: no p-value per candidate."""

    def compute_p_values(self, tables: CountArray) -> FloatArray:
        return compute_upper_tail(*self.compute_statistics(tables))

    def compute_statistics(self, tables: CountArray) -> tuple[FloatArray, NDArray[np.int64]]:
        """Statistic and degrees of freedom of each table."""
        tables = np.ascontiguousarray(tables, dtype=COUNT_DTYPE)
        statistics, dof = np.empty(len(tables)), np.empty(len(tables), dtype=np.int64)
        self._run_kernel(tables, statistics, dof)
        return statistics, dof

    def _run_kernel(self, *arrays: Any) -> None:
        """Write statistics and degrees of freedom of tables: the three arrays."""
        raise NotImplementedError


@dataclass(eq=False)
class ChiSquaredTest(_StatisticTest):
    """Pearson's chi-squared.

    Parameters
    ----------
    yates : bool, default=True
        Whether Yates' correction is made where there is one degree of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.stats.independence import ChiSquaredTest
    >>> tables = np.array([[[80, 60], [20, 40]]])  # label by environment
    >>> ChiSquaredTest().compute_p_values(tables).round(4)
    array([0.0034])
    """

    yates: bool = True

    def _run_kernel(self, *arrays: Any) -> None:
        _kernels.compute_pearson(self.yates, *arrays)


# Without Yates' correction: sums of corrected statistics would be conservative.
PEARSON = ChiSquaredTest(yates=False)


@dataclass(eq=False)
class GTest(_StatisticTest):
    """The likelihood-ratio test, G = 2 sum n log(n / expected), without correction.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.stats.independence import GTest
    >>> tables = np.array([[[80, 60], [20, 40]]])  # label by environment
    >>> GTest().compute_p_values(tables).round(4)
    array([0.0019])
    """

    def _run_kernel(self, *arrays: Any) -> None:
        _kernels.compute_likelihood_ratio(*arrays)


@dataclass(eq=False)
class FisherTest:
    """Fisher's exact test; Pearson's chi-squared where too many tables have the same margins.

    With two environments it is always exact. With more it sums over all tables of the same
    margins (Freeman and Halton) while there are at most `MAX_EXACT_TABLES`, that is, where
    counts are small; beyond that the approximation is good.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm.stats.independence import FisherTest
    >>> tables = np.array([[[80, 60], [20, 40]]])  # label by environment
    >>> FisherTest().compute_p_values(tables).round(4)
    array([0.0032])
    """

    def compute_p_values(self, tables: CountArray) -> FloatArray:
        exact = np.empty(len(tables), dtype=np.float64)
        _kernels.compute_exact(np.ascontiguousarray(tables), exact)
        unlisted = np.isnan(exact)  # more than `MAX_EXACT_TABLES` tables may have these margins
        exact[unlisted] = PEARSON.compute_p_values(tables[unlisted])
        return exact


_BY_NAME: dict[str, type[Any]] = {"chi2": ChiSquaredTest, "g": GTest, "fisher": FisherTest}


def make_test(test: str | IndependenceTest) -> IndependenceTest:
    """The test of that name, or the caller's own object."""
    if isinstance(test, str) and test in _BY_NAME:
        made: IndependenceTest = _BY_NAME[test]()
        return made
    if isinstance(test, IndependenceTest) and not isinstance(test, type):
        # a subclass of these may have changed what p-values are
        return test if type(test) in _BY_NAME.values() else _CheckedTest(test)
    raise IcscmError(
        f"test must be one of {', '.join(map(repr, _BY_NAME))} or an object with a method "
        f"compute_p_values(tables) (see icscm.stats.independence.IndependenceTest); got {test!r}"
    )


class _CheckedTest:
    """A user's test whose results are checked, since models and traces contain them."""

    def __init__(self, test: IndependenceTest) -> None:
        self._test = test

    def compute_p_values(self, tables: CountArray) -> FloatArray:
        p_values = np.asarray(self._test.compute_p_values(tables), dtype=np.float64)
        n, shape = len(tables), p_values.shape
        if shape != (n,):
            why = f"must return one p-value for each of {n} tables, got an array of shape {shape}"
        elif not ((p_values >= 0) & (p_values <= 1)).all():
            why = "returned a p-value that is NaN or outside [0, 1]"
        else:
            return p_values
        raise IcscmError(f"{self._test!r}.compute_p_values {why}")


def is_corrected(test: IndependenceTest) -> bool:
    """Whether a test of two environments corrects for continuity, or is exact as Fisher's."""
    return isinstance(test, FisherTest) or (isinstance(test, ChiSquaredTest) and test.yates)


def find_independent(test: IndependenceTest, tables: CountArray, alpha: float) -> BoolArray:
    """Which tables have a p-value above alpha, without computing p-values where possible."""
    if not isinstance(test, _StatisticTest) or type(test) not in _BY_NAME.values():
        return np.asarray(exceeds(test.compute_p_values(tables), alpha))
    statistics, dof = test.compute_statistics(tables)
    # the statistic for which the p-value is alpha, by degrees of freedom; 0 has p-value 1
    critical = np.full(int(dof.max(initial=0)) + 1, np.inf)
    occurring = np.flatnonzero(np.bincount(dof)[1:]) + 1
    critical[occurring] = special.chdtri(occurring, alpha)
    return np.asarray(statistics < critical[dof])


def compute_corrected(
    test: IndependenceTest, tables: CountArray, effects: FloatArray | None
) -> FloatArray:
    """p-values of a test, whose statistic is divided by the design effect of each table.

    A test without a statistic gets tables that are divided, and rounded to whole samples.
    """
    if effects is None:
        return test.compute_p_values(tables)
    if isinstance(test, _StatisticTest):
        statistics, dof = test.compute_statistics(tables)
        return compute_upper_tail(statistics / effects, dof)
    whole = np.rint(tables / effects[:, np.newaxis, np.newaxis])
    return test.compute_p_values(whole.astype(COUNT_DTYPE))


def exceeds(p_values: FloatArray | float, alpha: FloatArray | float) -> Any:
    """Whether p-values are above alpha, beyond rounding.

    Exact p-values are ratios of whole numbers and often equal 0.05 exactly; the last digits of a
    sum must not decide then.
    """
    return p_values > alpha * (1.0 + P_VALUE_SLACK)


def compute_upper_tail(statistics: FloatArray, dof: NDArray[np.int64]) -> FloatArray:
    """Chance that chi-squared exceeds the statistic; 1 with no degree of freedom."""
    tail: FloatArray = special.chdtrc(np.maximum(dof, 1), statistics)
    return np.where(dof > 0, tail, 1.0)


class ConditionalTests(NamedTuple):
    """Results of several conditional tests, one entry each."""

    statistics: FloatArray
    dof: NDArray[np.int64]
    p_values: FloatArray


def compute_conditional(
    stratified: Sequence[CountArray],
    test: _StatisticTest | None = None,
    effects: Sequence[FloatArray] | None = None,
) -> ConditionalTests:
    """Tests of label against environment within strata, one for each way to stratify; G by default.

    Each item holds the tables (stratum, label, environment) of one test. Statistics and
    degrees of freedom add up over the strata; a stratum that is empty, pure or of a single
    environment adds neither. With design `effects` (stratum), a sum is divided by their mean,
    by degrees of freedom.
    """
    starts = np.cumsum([0, *(len(strata) for strata in stratified[:-1])])
    by_stratum = (test or GTest()).compute_statistics(np.concatenate(stratified))
    statistics, dof = (np.add.reduceat(each, starts) for each in by_stratum)
    if effects is not None:
        inflated = np.add.reduceat(np.concatenate(effects) * by_stratum[1], starts)
        statistics = statistics * dof / np.maximum(inflated, 1.0)
    return ConditionalTests(statistics, dof, compute_upper_tail(statistics, dof))


def compute_bic(stratified: Sequence[Array]) -> FloatArray:
    """BIC of the label given its stratum, for each way to stratify the same samples.

    The deviance of the label, and the logarithm of the number of samples for each stratum that
    occurs. Tables are as in `compute_conditional`.

    >>> rates = np.array([[[30], [10]], [[10], [30]]])
    >>> compute_bic([rates, rates.sum(axis=0, keepdims=True)]).round(1)
    array([ 98.7, 115.3])
    """
    starts = np.cumsum([0, *(len(strata) for strata in stratified[:-1])])
    labels = np.concatenate([strata.sum(axis=2) for strata in stratified])
    n = labels.sum(axis=1)
    deviance = 2.0 * (special.xlogy(n, n) - special.xlogy(labels, labels).sum(axis=1))
    log_n = np.log(max(stratified[0].sum(), 1)) if len(stratified) else 0.0
    return np.add.reduceat(deviance + (n > 0) * log_n, starts)


# --- sums over many small tables ---------------------------------------------

# Of smaller tables the variance is not defined.
_LEAST_SUMMED = 4


class PearsonSum(NamedTuple):
    """The statistic, its mean and its variance if label and environment are independent."""

    statistic: float
    mean: float
    variance: float

    @property
    def p_value(self) -> float:
        """Probability of a sum at least as large; 1 where no table is informative."""
        if self.variance <= 0:
            return 1.0
        shape = self.mean**2 / self.variance
        return float(special.gammaincc(shape, self.statistic * self.mean / self.variance))


def sum_pearson(tables: CountArray) -> PearsonSum:
    """Pearson's statistic summed over many small tables (label, environment), with its moments.

    Given their margins, tables are drawn without replacement, and the first two moments of the
    statistic are known however small the counts (Haldane 1940, Dawson 1954). A chi-squared variable
    of the same two, scaled, stands for their sum. Tables of one label or environment add nothing.
    """
    statistics, dof = PEARSON.compute_statistics(tables)
    sizes = tables.sum(axis=(1, 2))
    can_tell = (dof > 0) & (sizes >= _LEAST_SUMMED)
    n = sizes[can_tell].astype(np.float64)
    rows, columns = (tables[can_tell].sum(axis=axis) for axis in (2, 1))
    (v_rows, w_rows), (v_columns, w_columns) = _measure_margin(rows, n), _measure_margin(columns, n)
    mean = n * dof[can_tell] / (n - 1)
    variance = 2 * n / (n - 3) * (v_rows - w_rows) * (v_columns - w_columns)
    variance += n**2 / (n - 1) * w_rows * w_columns
    return PearsonSum(*(float(each.sum()) for each in (statistics[can_tell], mean, variance)))


def _measure_margin(counts: CountArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a margin adds to the variance: by its number of classes, and by how uneven they are."""
    n_classes = np.count_nonzero(counts, axis=1)
    uneven = np.where(counts > 0, n[:, np.newaxis] / np.maximum(counts, 1), 0.0).sum(axis=1)
    return (n_classes - 1) * (n - n_classes) / (n - 1), (uneven - n_classes**2) / (n - 2)
