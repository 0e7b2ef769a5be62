"""Calibration by leaf: whether the rates of positives are those of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, IntArray
from icscm.model.tree import Tree
from icscm.report.words import describe_rates
from icscm.stats.criteria import adjust_holm
from icscm.stats.independence import make_test
from icscm.stats.new_environments import compute_surprise, make_expectations

# Level of the tests of differences from training.
ALPHA = 0.05


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
        Of as few or as many positives, including the sampling error of these rows.
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


def calibrate(
    rules: Tree,
    leaves: NDArray[np.intp],
    is_positive: BoolArray,
    environments: IntArray | None = None,
    new: Sequence[tuple[int, Any]] = (),
) -> tuple[LeafCalibration, ...]:
    """The rate of each leaf in training and in these rows, which fall in `leaves`.

    `new` are number and label of the environments that did not occur in training.
    """
    training = np.array(rules.leaves, dtype=np.int64)  # (leaf, label, environment)
    old = training.sum(axis=2)
    now = np.zeros_like(old)
    np.add.at(now, (leaves, is_positive.astype(np.intp)), 1)
    tables = np.stack((old, now), axis=-1)  # (leaf, label, training or now)
    is_tested = tables.sum(axis=1).min(axis=1) > 0
    p_values = np.full((2, len(old)), np.nan)  # raw and adjusted
    p_values[0, is_tested] = make_test("fisher").compute_p_values(tables[is_tested])
    p_values[1, is_tested] = adjust_holm(p_values[0, is_tested])
    rates = [describe_rates(each[:, 1].tolist(), each.sum(axis=1).tolist()) for each in (old, now)]
    expected = make_expectations(training)
    checks = _check_intervals(training, leaves, is_positive, environments, new)
    found = []
    for i, (before, after) in enumerate(zip(*rates, strict=True)):
        p_value, adjusted = p_values[:, i].tolist() if is_tested[i] else (None, None)
        found.append(
            LeafCalibration(
                leaf=i + 1,
                text=rules.leaf_texts[i],
                n_training=before["n"],
                expected=before["rate"],
                n_samples=after["n"],
                n_positive=after["n_positive"],
                observed=after["rate"],
                interval=after["rate_interval"] and tuple(after["rate_interval"]),
                p_value=p_value,
                adjusted=adjusted,
                has_moved=None if adjusted is None else adjusted <= ALPHA,
                new_interval=expected[i].interval,
                interval_checks=tuple(checks[i]),
            )
        )
    return tuple(found)


def _check_intervals(
    training: NDArray[np.int64],
    leaves: NDArray[np.intp],
    is_positive: BoolArray,
    environments: IntArray | None,
    new: Sequence[tuple[int, Any]],
) -> list[list[IntervalCheck]]:
    """For each leaf the checks in the new environments that have rows in it."""
    counts = np.zeros((2, len(training), len(new)), dtype=np.int64)  # all and positive ones
    for j, (number, _) in enumerate(new):
        is_here = np.full(len(leaves), True) if environments is None else environments == number
        for own, rows in zip(counts, (is_here, is_here & is_positive), strict=True):
            own[:, j] = np.bincount(leaves[rows], minlength=len(training))
    sizes, positives = counts
    p_values = compute_surprise(training, positives, sizes)
    found: list[list[IntervalCheck]] = [[] for _ in training]
    for i, j in np.argwhere(~np.isnan(p_values)).tolist():
        p, n, k = float(p_values[i, j]), int(sizes[i, j]), int(positives[i, j])
        found[i].append(IntervalCheck(new[j][1], n, k, p, p > ALPHA))
    return found
