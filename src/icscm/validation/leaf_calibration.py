"""Calibration of leaves: the rate of each leaf in training against its rate in new rows.

Whether the two rates differ is Fisher's exact test (Pearson's for large counts), corrected for the
number of leaves (Holm 1979). In an environment that did not occur in training, the rate is also
held against the 95% prediction interval for a new environment.

With groups, rows that belong together, the counts of a leaf are divided by its design effect: the
ratio of the variance of its rate with groups to that without (Kish 1965).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from icscm._types import BoolArray, CountArray, IntArray
from icscm.engine.clusters import number_clusters, square_sums
from icscm.model.tree import Tree
from icscm.report.content.rates import Rate, make_rates
from icscm.stats.criteria import adjust_holm
from icscm.stats.design_effects import compute_design_effects
from icscm.stats.independence import make_test
from icscm.stats.new_environments import compute_surprise, make_expectations
from icscm.validation.scores import ALPHA


@dataclass(frozen=True)
class NewEnvironment:
    """An environment that did not occur in training: its code in the new rows, and its label."""

    code: int
    label: Any


@dataclass(frozen=True)
class IntervalCheck:
    """Whether a leaf's rate in a new environment agrees with its 95% prediction interval.

    Attributes
    ----------
    environment : label or None
        None where the rows have no environments and are treated as one.
    n_samples, n_positive : int
        Its rows in the leaf, and the positive ones among them.
    p_value : float
        The two-sided p-value of this number of positives, with the sampling error of these rows.
    is_inside : bool
        Whether the p-value is above 0.05.
    """

    environment: Any
    n_samples: int
    n_positive: int
    p_value: float
    is_inside: bool


@dataclass(frozen=True)
class LeafCalibration:
    """The rate of a leaf in training and in the new rows.

    Attributes
    ----------
    leaf, text : int, str
        Number of the leaf, from 1, and its conditions.
    n_training, expected : int, float or None
        Training rows in it, and the share of positive ones.
    n_samples, n_positive, observed, interval : int, int, float or None, pair of floats or None
        New rows, the positive ones among them, their share and its Wilson interval (95%).
    p_value, adjusted : float or None
        Of Fisher's exact test (Pearson's for large counts) that both rates are equal, raw and
        corrected for the number of leaves (Holm); None where one side has no row.
    has_moved : bool or None
        Whether the corrected p-value is at most 0.05.
    new_interval : pair of floats or None
        95% prediction interval of the rate in a new environment; None where it is undefined.
    interval_checks : tuple of IntervalCheck
        The rate in each new environment against that interval; empty where there is none.
    """

    leaf: int
    text: str
    n_training: int
    expected: float | None
    n_samples: int
    n_positive: int
    observed: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    adjusted: float | None
    has_moved: bool | None
    new_interval: tuple[float, float] | None = None
    interval_checks: tuple[IntervalCheck, ...] = ()


def calibrate_leaves(
    model: Tree,
    leaves: IntArray,
    is_positive: BoolArray,
    *,
    environment_codes: IntArray | None = None,
    new_environments: Sequence[NewEnvironment] = (),
    groups: IntArray | None = None,
) -> tuple[LeafCalibration, ...]:
    """Compare the rate of each leaf in training with that of new rows.

    `leaves` are the numbers, from 0, of those that the new rows fall in. With `groups`, tests and
    intervals use the effective counts of the new rows.
    """
    if environment_codes is None:
        environment_codes = np.zeros(len(leaves), dtype=np.int64)
    training = np.array(model.leaves, dtype=np.int64)  # (leaf, outcome, environment)
    new = _count_new_rows(
        leaves, is_positive, environment_codes, groups=groups, n_leaves=len(training)
    )

    changes = _test_changes(training.sum(axis=2), new.effective.sum(axis=2))
    expectations = make_expectations(training)
    interval_checks = _check_intervals(training, new, new_environments)
    training_rates = _make_leaf_rates(training)
    new_rates = _make_leaf_rates(new.counted)
    effective_rates = _make_leaf_rates(new.effective)

    calibrations = []
    for leaf, text in enumerate(model.leaf_texts):
        training_rate = training_rates[leaf]
        new_rate = new_rates[leaf]
        interval = effective_rates[leaf].rate_interval
        change = changes[leaf]
        calibration = LeafCalibration(
            leaf=leaf + 1,
            text=text,
            n_training=training_rate.n,
            expected=training_rate.rate,
            n_samples=new_rate.n,
            n_positive=new_rate.n_positive,
            observed=new_rate.rate,
            interval=None if interval is None else (interval[0], interval[1]),
            p_value=change.p_value,
            adjusted=change.adjusted,
            has_moved=change.has_moved,
            new_interval=expectations[leaf].interval,
            interval_checks=interval_checks[leaf],
        )
        calibrations.append(calibration)
    return tuple(calibrations)


def _make_leaf_rates(counts: CountArray) -> list[Rate]:
    """Make the rate of each leaf, from counts by (leaf, outcome, environment)."""
    by_outcome = counts.sum(axis=2)
    return make_rates(by_outcome[:, 1].tolist(), by_outcome.sum(axis=1).tolist())


# --- counts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _NewCounts:
    """The new rows by (leaf, outcome, environment), as counted and as effective counts.

    Effective counts are how many independent rows would tell as much; both are the same where there
    are no groups.
    """

    counted: CountArray
    effective: CountArray


def _count_new_rows(
    leaves: IntArray,
    is_positive: BoolArray,
    environment_codes: IntArray,
    *,
    groups: IntArray | None,
    n_leaves: int,
) -> _NewCounts:
    """Count the new rows, and with groups also their effective number, rounded.

    The design effect of a leaf is made of the residuals from the rate of a row's leaf and
    environment: of their sums over the rows of a group, squared.
    """
    n_environments = int(environment_codes.max()) + 1
    counts = np.zeros((n_leaves, 2, n_environments), dtype=np.int64)
    np.add.at(counts, (leaves, is_positive.astype(np.intp), environment_codes), 1)
    if groups is None:
        return _NewCounts(counted=counts, effective=counts)

    sizes = counts.sum(axis=1)  # (leaf, environment)
    rates = counts[:, 1] / np.maximum(sizes, 1)
    residuals = is_positive - rates[leaves, environment_codes]
    # leaves take the place of environments: a cluster is a group within a leaf
    clusters = number_clusters(groups, leaves, n_leaves, np.arange(len(leaves)))
    cluster_sums = square_sums(residuals, clusters.codes, clusters.starts)

    information = (sizes * rates * (1 - rates)).sum(axis=1)
    effects = compute_design_effects(cluster_sums, information, sizes.sum(axis=1))
    effective = np.rint(counts / effects[:, np.newaxis, np.newaxis]).astype(np.int64)
    return _NewCounts(counted=counts, effective=effective)


# --- tests ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Change:
    """The test whether a leaf's rate is that of training; None where one side has no row."""

    p_value: float | None = None
    adjusted: float | None = None

    @property
    def has_moved(self) -> bool | None:
        """Whether the rate has changed, at the level of the tests."""
        return None if self.adjusted is None else self.adjusted <= ALPHA


def _test_changes(training: CountArray, new: CountArray) -> list[_Change]:
    """Test for each leaf whether both rates are equal; counts are by (leaf, outcome).

    P-values are corrected for the number of leaves that have rows on both sides.
    """
    tables = np.stack((training, new), axis=2)  # (leaf, outcome, training or new)
    has_rows = tables.sum(axis=1) > 0  # (leaf, training or new)
    tested_leaves = np.flatnonzero(has_rows.all(axis=1))
    p_values = make_test("fisher").compute_p_values(tables[tested_leaves])
    adjusted_p_values = adjust_holm(p_values)

    changes = [_Change() for _ in tables]
    for number, leaf in enumerate(tested_leaves.tolist()):
        changes[leaf] = _Change(
            p_value=float(p_values[number]), adjusted=float(adjusted_p_values[number])
        )
    return changes


def _check_intervals(
    training: CountArray, new: _NewCounts, new_environments: Sequence[NewEnvironment]
) -> list[tuple[IntervalCheck, ...]]:
    """Check for each leaf the rates in new environments against their prediction interval.

    An environment is passed over where it has no rows in the leaf, or the leaf has no interval.
    """
    codes = [environment.code for environment in new_environments]
    counts = new.counted[:, :, codes]  # (leaf, outcome, new environment)
    effective_counts = new.effective[:, :, codes]
    p_values = compute_surprise(
        training, effective_counts[:, 1], effective_counts.sum(axis=1)
    )  # (leaf, new environment)

    checks_of_leaves = []
    for leaf, p_values_of_leaf in enumerate(p_values.tolist()):
        checks = [
            IntervalCheck(
                environment=environment.label,
                n_samples=int(counts[leaf, :, number].sum()),
                n_positive=int(counts[leaf, 1, number]),
                p_value=p_values_of_leaf[number],
                is_inside=p_values_of_leaf[number] > ALPHA,
            )
            for number, environment in enumerate(new_environments)
            if not isnan(p_values_of_leaf[number])
        ]
        checks_of_leaves.append(tuple(checks))
    return checks_of_leaves
