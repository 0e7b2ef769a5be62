"""Calibration of leaves: the rate of each leaf in training against its rate in new rows.

A rule set or a tree predicts the rate of the leaf that a row falls in. Where that rate has moved,
the predictions are wrong, and the leaf shows by which rules.

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

from icscm._types import BoolArray, CountArray, FloatArray, IntArray
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
    rows = _NewRows(leaves, is_positive, environment_codes, groups)

    # all counts are by (leaf, outcome, environment)
    training_counts = np.array(model.leaves, dtype=np.int64)
    new_counts = _count_new_rows(rows, n_leaves=len(training_counts))

    # of each of these there is one for each leaf
    training_rates = _make_leaf_rates(training_counts)
    new_rates = _make_leaf_rates(new_counts.observed)
    effective_rates = _make_leaf_rates(new_counts.effective)
    changes = _test_changes(training_counts, new_counts.effective)
    expectations = make_expectations(training_counts)
    interval_checks = _check_intervals(training_counts, new_counts, new_environments)

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
class _NewRows:
    """For each new row its leaf, outcome, environment and group, of which there may be none."""

    leaves: IntArray
    is_positive: BoolArray
    environment_codes: IntArray
    group_codes: IntArray | None


@dataclass(frozen=True, eq=False)
class _NewCounts:
    """Counts of the new rows by (leaf, outcome, environment).

    The effective counts are of as many independent rows as would tell as much; without groups they
    are the observed ones.
    """

    observed: CountArray
    effective: CountArray


def _count_new_rows(rows: _NewRows, *, n_leaves: int) -> _NewCounts:
    """Count the new rows, and divide the counts by the design effects of the leaves."""
    n_environments = int(rows.environment_codes.max()) + 1
    counts = np.zeros((n_leaves, 2, n_environments), dtype=np.int64)
    outcome_codes = rows.is_positive.astype(np.intp)
    np.add.at(counts, (rows.leaves, outcome_codes, rows.environment_codes), 1)
    if rows.group_codes is None:
        return _NewCounts(observed=counts, effective=counts)

    design_effects = _compute_leaf_design_effects(rows, rows.group_codes, counts)
    divided = counts / design_effects[:, np.newaxis, np.newaxis]
    return _NewCounts(observed=counts, effective=np.rint(divided).astype(np.int64))


def _compute_leaf_design_effects(
    rows: _NewRows, group_codes: IntArray, counts: CountArray
) -> FloatArray:
    """Compute by how much groups inflate the variance of each leaf's positives (Kish 1965).

        G / (G - 1) sum s^2 / sum r (1 - r),  at least 1

    s is the sum over the rows of a group of the residuals y - r, from the rate r in the leaf and
    the environment of a row, and G is the number of groups with rows in the leaf.
    """
    n_rows = counts.sum(axis=1)  # (leaf, environment)
    rates = counts[:, 1] / np.maximum(n_rows, 1)
    residuals = rows.is_positive - rates[rows.leaves, rows.environment_codes]

    # the leaves take the place of environments, so that a cluster is a group within a leaf
    clusters = number_clusters(
        group_codes,
        rows.leaves,
        n_environments=len(counts),
        position=np.arange(len(rows.leaves)),
    )
    squares = square_sums(residuals, clusters)
    # the sum of r (1 - r) over the rows of a leaf, which are the hessians of a logistic regression
    variances_if_independent = (n_rows * rates * (1 - rates)).sum(axis=1)
    return compute_design_effects(
        squares, hessians=variances_if_independent, sizes=n_rows.sum(axis=1)
    )


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
    """Test for each leaf whether both rates are equal, from counts (leaf, outcome, environment).

    P-values are corrected for the number of leaves that have rows on both sides.
    """
    # (leaf, outcome, training or new)
    tables = np.stack((training.sum(axis=2), new.sum(axis=2)), axis=2)
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
    training: CountArray, new_counts: _NewCounts, new_environments: Sequence[NewEnvironment]
) -> list[tuple[IntervalCheck, ...]]:
    """Check for each leaf the rates in new environments against their prediction interval.

    An environment is passed over where it has no rows in the leaf, or the leaf has no interval.
    """
    codes = [environment.code for environment in new_environments]
    observed = new_counts.observed[:, :, codes]  # (leaf, outcome, new environment)
    effective = new_counts.effective[:, :, codes]
    # (leaf, new environment)
    p_values = compute_surprise(training, positives=effective[:, 1], sizes=effective.sum(axis=1))

    checks_of_leaves = []
    for leaf, p_values_of_leaf in enumerate(p_values.tolist()):
        checks = [
            IntervalCheck(
                environment=environment.label,
                n_samples=int(observed[leaf, :, number].sum()),
                n_positive=int(observed[leaf, 1, number]),
                p_value=p_values_of_leaf[number],
                is_inside=p_values_of_leaf[number] > ALPHA,
            )
            for number, environment in enumerate(new_environments)
            if not isnan(p_values_of_leaf[number])
        ]
        checks_of_leaves.append(tuple(checks))
    return checks_of_leaves
