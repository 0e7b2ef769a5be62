"""What a check-up says of the outcome: by environment, and which differences are detectable.

There is a class for each kind of outcome, with one contract, so that a check-up is made in one way:

    CheckedRates     rates of the positive class; detectable differences of rates
    CheckedShares    shares of the classes; detectable differences of the share of the largest one
    CheckedMeans     means; detectable differences in standard deviations of the outcome

Each is made of what can be added up over rows, counts or sums of squares by environment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from icscm import _constants
from icscm._types import Array, FloatArray, IntArray
from icscm.report.content.rates import make_rates
from icscm.stats.design_effects import MIN_WEIGHT, SampledRows, compute_effective_sizes
from icscm.stats.independence import compute_pearson_p_value, make_test
from icscm.stats.means import compute_mean_interval, compute_welch_p_value
from icscm.stats.verdicts import (
    compute_minimum_detectable_difference,
    compute_minimum_detectable_shift,
)

# --- records --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EnvironmentSummary:
    """The size of an environment, its rate, and what can be detected there.

    Parameters
    ----------
    label, n_rows, n_positive : object, int, int
        Its label, the number of its rows, and of those with a positive outcome.
    rate, rate_interval : float, tuple of two floats
        Share of positive rows, and its Wilson interval (95%).
    missing : float
        Share of the cells that are missing.
    min_detectable : float or None
        Minimum detectable difference between its rate and that of all others together, with 80%
        power; None if there is none.
    """

    label: Any
    n_rows: int
    n_positive: int
    rate: float
    rate_interval: tuple[float, float]
    missing: float
    min_detectable: float | None


@dataclass(frozen=True)
class EnvironmentShares:
    """The size of an environment and the shares of several classes in it.

    Parameters
    ----------
    label, n_rows : object, int
        Its label, and the number of its rows.
    shares : tuple of float
        Share of the rows of each class, in the order of the classes.
    missing : float
        Share of the cells that are missing.
    min_detectable : float or None
        Minimum detectable difference between its share of the largest class and that of all others
        together, with 80% power; None if there is none.
    """

    label: Any
    n_rows: int
    shares: tuple[float, ...]
    missing: float
    min_detectable: float | None


@dataclass(frozen=True)
class EnvironmentMean:
    """The size of an environment, and the mean of a number in it.

    Parameters
    ----------
    label, n_rows : object, int
        Its label, and the number of its rows.
    mean, mean_interval : float, tuple of two floats or None
        The mean, and Student's interval of it (95%); None for a single row.
    deviation : float or None
        The standard deviation; None for a single row.
    missing : float
        Share of the cells that are missing.
    min_detectable : float or None
        Minimum detectable difference between its mean and that of all others together, with 80%
        power, in standard deviations of the outcome within environments; None if there is none.
    """

    label: Any
    n_rows: int
    mean: float
    mean_interval: tuple[float, float] | None
    deviation: float | None
    missing: float
    min_detectable: float | None


# An environment, by the kind of the outcome.
AnyEnvironment = EnvironmentSummary | EnvironmentShares | EnvironmentMean


@dataclass(frozen=True)
class SparseCell:
    """A class with few rows in an environment, or none; of a number, an environment of few rows.

    The label is that of the class, None for a number.
    """

    environment: Any
    label: Any
    n_rows: int


@dataclass(frozen=True)
class LeafPower:
    """The minimum detectable difference in a leaf with this share of each environment."""

    share: float
    n_rows: int
    difference: float | None


# --- the contract ---------------------------------------------------------------------------------


class CheckedOutcome(Protocol):
    """An outcome as a check-up describes it, whatever its kind.

    Environments are given by their labels, in the order of their codes. `missing_shares` are the
    shares of missing cells in each.
    """

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels of the classes; None for a number."""
        ...

    @property
    def sizes(self) -> IntArray:
        """The number of rows of each environment."""
        ...

    @property
    def effective_sizes(self) -> FloatArray:
        """How many independent rows tell as much, given groups and weights, by environment."""
        ...

    def compute_p_value(self) -> float:
        """Compute the p-value of the test that the outcome is the same in all environments."""
        ...

    def summarize_environments(
        self, labels: Sequence[Any], *, missing_shares: FloatArray, alpha: float
    ) -> tuple[AnyEnvironment, ...]:
        """Summarize each environment.

        Its power is that of a test against all other environments together, since a shortcut may
        hold in any number of these.
        """
        ...

    def find_sparse_cells(self, labels: Sequence[Any]) -> tuple[SparseCell, ...]:
        """Find what has few rows in an environment, by class and then by environment."""
        ...

    def compute_power(self, share: float, alpha: float) -> LeafPower:
        """Compute what is detectable in a leaf with this share of each environment.

        A model is judged by the rows of its leaves, so the power in the whole table says too much.
        """
        ...


# --- classes --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _CountedClasses:
    """Rows by (class, environment), and what follows from these for any number of classes.

    With groups or weights `effective_counts` are those of independent rows that tell as much; None
    if the rows are independent.
    """

    classes: tuple[Any, ...]
    counts: IntArray
    effective_counts: FloatArray | None = None

    @property
    def sizes(self) -> IntArray:
        return np.asarray(self.counts.sum(axis=0))

    @property
    def effective_sizes(self) -> FloatArray:
        return np.asarray(self.compared_counts.sum(axis=0))

    @property
    def compared_counts(self) -> Array:
        """The counts from which shares and differences follow."""
        return self.counts if self.effective_counts is None else self.effective_counts

    def find_sparse_cells(self, labels: Sequence[Any]) -> tuple[SparseCell, ...]:
        return _find_sparse_classes(self.counts, labels, self.classes)


@dataclass(frozen=True, eq=False)
class CheckedRates(_CountedClasses):
    """An outcome of two classes, of which the second is the positive one."""

    def compute_p_value(self) -> float:
        if self.effective_counts is not None:
            return compute_pearson_p_value(self.effective_counts)
        p_values = make_test("chi2").compute_p_values(self.counts[np.newaxis])
        return float(p_values[0])

    def summarize_environments(
        self, labels: Sequence[Any], *, missing_shares: FloatArray, alpha: float
    ) -> tuple[EnvironmentSummary, ...]:
        compared = self.compared_counts
        differences = _compare_each_with_others(compared, alpha)
        rates = make_rates(compared[1].tolist(), compared.sum(axis=0).tolist())
        summaries = []
        for code, rate in enumerate(rates):
            assert rate.rate is not None  # every environment has rows
            assert rate.rate_interval is not None
            low, high = rate.rate_interval
            summary = EnvironmentSummary(
                label=labels[code],
                n_rows=int(self.sizes[code]),
                n_positive=int(self.counts[1, code]),
                rate=rate.rate,
                rate_interval=(low, high),
                missing=float(missing_shares[code]),
                min_detectable=differences[code],
            )
            summaries.append(summary)
        return tuple(summaries)

    def compute_power(self, share: float, alpha: float) -> LeafPower:
        return _compute_power_of_rates(self.compared_counts, share, alpha, sizes=self.sizes)


@dataclass(frozen=True, eq=False)
class CheckedShares(_CountedClasses):
    """An outcome of three or more classes.

    What is detectable is said of the largest class and all others together.
    """

    @property
    def counts_of_largest(self) -> Array:
        """The counts by (whether of the largest class, environment)."""
        compared = self.compared_counts
        largest_class = compared[int(np.argmax(compared.sum(axis=1)))]
        return np.stack((compared.sum(axis=0) - largest_class, largest_class))

    def compute_p_value(self) -> float:
        return compute_pearson_p_value(self.compared_counts)

    def summarize_environments(
        self, labels: Sequence[Any], *, missing_shares: FloatArray, alpha: float
    ) -> tuple[EnvironmentShares, ...]:
        differences = _compare_each_with_others(self.counts_of_largest, alpha)
        shares = self.compared_counts / self.compared_counts.sum(axis=0)
        return tuple(
            EnvironmentShares(
                label=label,
                n_rows=int(self.sizes[code]),
                shares=tuple(shares[:, code].tolist()),
                missing=float(missing_shares[code]),
                min_detectable=differences[code],
            )
            for code, label in enumerate(labels)
        )

    def compute_power(self, share: float, alpha: float) -> LeafPower:
        return _compute_power_of_rates(self.counts_of_largest, share, alpha, sizes=self.sizes)


def make_classes(
    classes: Sequence[Any], counts: IntArray, effective_counts: FloatArray | None = None
) -> CheckedOutcome:
    """Make the outcome of classes from the rows by (class, environment)."""
    make = CheckedRates if len(classes) == 2 else CheckedShares
    return make(classes=tuple(classes), counts=counts, effective_counts=effective_counts)


def count_effectively(codes: IntArray, n_classes: int, rows: SampledRows) -> FloatArray:
    """Count independent rows by (class, environment) that tell as much as these rows.

    They have the weighted shares of the classes.
    """
    indicators = np.eye(n_classes)[codes]
    shares = np.stack([rows.add_up(indicator) for indicator in indicators.T])
    shares /= np.maximum(shares.sum(axis=0), MIN_WEIGHT)
    return np.asarray(shares * compute_effective_sizes(indicators, rows))


def _find_sparse_classes(
    counts: IntArray, environment_labels: Sequence[Any], classes: Sequence[Any]
) -> tuple[SparseCell, ...]:
    """Find the classes with few rows in an environment, by class and then by environment."""
    cells = []
    is_sparse = counts < _constants.SPARSE_ENVIRONMENT  # (outcome, environment)
    for outcome, environment in np.argwhere(is_sparse).tolist():
        cell = SparseCell(
            environment=environment_labels[environment],
            label=classes[outcome],
            n_rows=int(counts[outcome, environment]),
        )
        cells.append(cell)
    return tuple(cells)


def _compare_each_with_others(counts: Array, alpha: float) -> list[float | None]:
    """Compute the minimum detectable difference of each environment and all others together."""
    # a table for each environment, which has itself and all others as its two environments:
    # (environment, outcome, itself or the others)
    counts_of_others = counts.sum(axis=1, keepdims=True) - counts
    tables = np.stack((counts.T, counts_of_others.T), axis=2)
    return _compute_detectable_differences(tables, alpha)


def _compute_power_of_rates(
    counts: Array, share: float, alpha: float, *, sizes: IntArray
) -> LeafPower:
    """Compute what is detectable with this share of each count (outcome, environment).

    The counts may be of fewer rows, as far as these are independent; `sizes` are all rows.
    """
    leaf_counts = np.floor(counts * share).astype(np.int64)
    differences = _compute_detectable_differences(leaf_counts[np.newaxis], alpha)
    n_rows = int(leaf_counts.sum())
    if counts.dtype.kind == "f":
        n_rows = int(np.floor(sizes * share).sum())
    return LeafPower(share=share, n_rows=n_rows, difference=differences[0])


def _compute_detectable_differences(tables: Array, alpha: float) -> list[float | None]:
    """Compute the minimum detectable difference of each table (table, outcome, environment).

    None where there is none, since fewer than two environments have rows.
    """
    differences = compute_minimum_detectable_difference(tables, alpha)
    return [float(difference) if np.isfinite(difference) else None for difference in differences]


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CheckedMeans:
    """An outcome that is a number: the size, mean and variance of each environment.

    Means and variances are those of y / `unit`, so that squares of large numbers do not overflow.
    The variance of a single row is 0.
    """

    sizes: IntArray
    effective_sizes: FloatArray
    means: FloatArray
    variances: FloatArray
    unit: float

    @property
    def classes(self) -> None:
        return None

    def compute_p_value(self) -> float:
        return compute_welch_p_value(self.effective_sizes, self.means, self.variances)

    def summarize_environments(
        self, labels: Sequence[Any], *, missing_shares: FloatArray, alpha: float
    ) -> tuple[EnvironmentMean, ...]:
        n_effective = float(self.effective_sizes.sum())
        summaries = []
        for code, label in enumerate(labels):
            size = float(self.effective_sizes[code])
            mean = float(self.means[code])
            variance = float(self.variances[code])
            interval = compute_mean_interval(
                size, mean, variance, confidence=_constants.VERDICT_CONFIDENCE
            )
            itself_and_others = np.array([size, n_effective - size])
            summary = EnvironmentMean(
                label=label,
                n_rows=int(self.sizes[code]),
                mean=mean * self.unit,
                mean_interval=None
                if interval is None
                else (interval[0] * self.unit, interval[1] * self.unit),
                deviation=None if self.sizes[code] == 1 else float(np.sqrt(variance)) * self.unit,
                missing=float(missing_shares[code]),
                min_detectable=_compute_detectable_shift(itself_and_others, alpha),
            )
            summaries.append(summary)
        return tuple(summaries)

    def find_sparse_cells(self, labels: Sequence[Any]) -> tuple[SparseCell, ...]:
        sparse = np.flatnonzero(self.sizes < _constants.SPARSE_ENVIRONMENT).tolist()
        return tuple(
            SparseCell(environment=labels[code], label=None, n_rows=int(self.sizes[code]))
            for code in sparse
        )

    def compute_power(self, share: float, alpha: float) -> LeafPower:
        return LeafPower(
            share=share,
            n_rows=int(np.floor(self.sizes * share).sum()),
            difference=_compute_detectable_shift(np.floor(self.effective_sizes * share), alpha),
        )


def make_numbers(numbers: FloatArray, rows: SampledRows, *, are_independent: bool) -> CheckedMeans:
    """Make the outcome of numbers from the number and the environment of each row.

    The variance of an environment with weights w is n / (n - 1) sum w (y - mean)^2 / sum w.
    """
    unit = float(np.abs(numbers).max()) or 1.0
    scaled = numbers / unit
    sizes = np.bincount(rows.environments, minlength=rows.n_environments)
    total_weights = np.maximum(rows.add_up(np.ones(len(numbers))), MIN_WEIGHT)
    means = rows.add_up(scaled) / total_weights
    mean_squares = rows.add_up((scaled - means[rows.environments]) ** 2) / total_weights
    effective_sizes = sizes.astype(np.float64)
    if not are_independent:
        effective_sizes = compute_effective_sizes(scaled[:, np.newaxis], rows)
    return CheckedMeans(
        sizes=sizes,
        effective_sizes=effective_sizes,
        means=means,
        variances=mean_squares * sizes / np.maximum(sizes - 1, 1),
        unit=unit,
    )


def _compute_detectable_shift(sizes: FloatArray, alpha: float) -> float | None:
    """Compute the minimum detectable difference of means; None if there is none."""
    shift = compute_minimum_detectable_shift(sizes, alpha)
    return shift if np.isfinite(shift) else None
