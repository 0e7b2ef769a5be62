"""Calibration of leaves: the rate of each leaf in training against its rate in new rows.

Whether the two rates differ is Fisher's exact test (Pearson's for large counts), corrected for the
number of leaves (Holm 1979). In an environment that did not occur in training, the rate is also
held against the 95% prediction interval for a new environment.

With groups, rows that belong together, the counts of a leaf are divided by its design effect: the
ratio of the variance of its rate with groups to that without (Kish 1965).
"""

from collections.abc import Sequence
from dataclasses import dataclass
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

    `leaves` are those that the new rows fall in. With `groups`, tests and intervals use the
    effective counts of the new rows.
    """
    if environment_codes is None:
        environment_codes = np.zeros(len(leaves), dtype=np.int64)
    training = np.array(model.leaves, dtype=np.int64)  # (leaf, label, environment)
    counts = _count_rows(leaves, is_positive, environment_codes, n_leaves=len(training))
    effective = counts
    if groups is not None:
        effective = _divide_by_design_effects(
            counts, leaves, is_positive, environment_codes, groups
        )

    changes = _test_changes(training.sum(axis=2), effective.sum(axis=2))
    new_codes = [environment.code for environment in new_environments]
    new_counts = counts[:, :, new_codes]
    new_effective = effective[:, :, new_codes]
    surprises = compute_surprise(training, new_effective[:, 1], new_effective.sum(axis=1))
    expectations = make_expectations(training)
    training_rates = _make_leaf_rates(training)
    effective_rates = _make_leaf_rates(effective)

    calibrations = []
    for leaf, change in enumerate(changes):
        n_rows = int(counts[leaf].sum())
        n_positive = int(counts[leaf, 1].sum())
        interval = effective_rates[leaf].rate_interval
        checks = [
            IntervalCheck(
                environment=environment.label,
                n_samples=int(new_counts[leaf, :, column].sum()),
                n_positive=int(new_counts[leaf, 1, column]),
                p_value=float(surprises[leaf, column]),
                is_inside=bool(surprises[leaf, column] > ALPHA),
            )
            for column, environment in enumerate(new_environments)
            if not np.isnan(surprises[leaf, column])
        ]
        calibrations.append(
            LeafCalibration(
                leaf=leaf + 1,
                text=model.leaf_texts[leaf],
                n_training=training_rates[leaf].n,
                expected=training_rates[leaf].rate,
                n_samples=n_rows,
                n_positive=n_positive,
                observed=n_positive / n_rows if n_rows else None,
                interval=None if interval is None else (interval[0], interval[1]),
                p_value=change.p_value,
                adjusted=change.adjusted,
                has_moved=None if change.adjusted is None else change.adjusted <= ALPHA,
                new_interval=expectations[leaf].interval,
                interval_checks=tuple(checks),
            )
        )
    return tuple(calibrations)


def _count_rows(
    leaves: IntArray, is_positive: BoolArray, environment_codes: IntArray, *, n_leaves: int
) -> CountArray:
    """Count rows by leaf, label and environment."""
    n_environments = int(environment_codes.max()) + 1
    counts = np.zeros((n_leaves, 2, n_environments), dtype=np.int64)
    np.add.at(counts, (leaves, is_positive.astype(np.intp), environment_codes), 1)
    return counts


def _divide_by_design_effects(
    counts: CountArray,
    leaves: IntArray,
    is_positive: BoolArray,
    environment_codes: IntArray,
    groups: IntArray,
) -> CountArray:
    """Return effective counts, rounded: those of a leaf over its design effect.

    Residuals are from the rate of the row's leaf and environment; their sums over the rows of a
    group in a leaf are squared.
    """
    sizes = counts.sum(axis=1)  # (leaf, environment)
    rates = counts[:, 1] / np.maximum(sizes, 1)
    residuals = is_positive - rates[leaves, environment_codes]
    clusters = number_clusters(groups, leaves, len(counts), np.arange(len(leaves)))
    cluster_sums = square_sums(residuals, clusters.codes, clusters.starts)
    information = (sizes * rates * (1 - rates)).sum(axis=1)
    effects = compute_design_effects(cluster_sums, information, sizes.sum(axis=1))
    return np.rint(counts / effects[:, np.newaxis, np.newaxis]).astype(np.int64)


@dataclass(frozen=True)
class _Change:
    """The test whether a leaf's rate is that of training; None where one side has no row."""

    p_value: float | None = None
    adjusted: float | None = None


def _test_changes(training: CountArray, new: CountArray) -> list[_Change]:
    """Test each leaf; both counts are (leaf, label)."""
    tables = np.stack((training, new), axis=2)  # (leaf, label, training or new)
    is_tested = tables.sum(axis=1).min(axis=1) > 0
    p_values = make_test("fisher").compute_p_values(tables[is_tested])
    changes = [_Change() for _ in tables]
    tested_leaves = np.flatnonzero(is_tested).tolist()
    adjusted = adjust_holm(p_values).tolist()
    for leaf, p_value, adjusted_p_value in zip(
        tested_leaves, p_values.tolist(), adjusted, strict=True
    ):
        changes[leaf] = _Change(p_value, adjusted_p_value)
    return changes


def _make_leaf_rates(counts: CountArray) -> list[Rate]:
    """Return size, rate and Wilson interval of each leaf; counts are (leaf, label, environment)."""
    totals = counts.sum(axis=2)
    return make_rates(totals[:, 1].tolist(), totals.sum(axis=1).tolist())
