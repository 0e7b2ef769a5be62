"""Calibration by leaf: is the rate of positives what training leads to expect?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, FloatArray
from icscm.model.leaves import LeafModel
from icscm.report.words import compute_intervals
from icscm.stats.independence import make_test

# Of the tests whether something differs from what was expected.
ALPHA = 0.05


@dataclass(frozen=True)
class LeafCalibration:
    """What a leaf's rate was in training, and is now.

    Attributes
    ----------
    leaf, text : int, str
        Number of the leaf, from 1, and what brings a row into it.
    n_training, expected : int, float or None
        Training rows in it, and the share of positive ones.
    n_samples, n_positive, observed, interval : int, int, float or None, pair of floats or None
        Rows now, the positive among them, their share and its Wilson interval (95 %).
    p_value, adjusted : float or None
        Of Fisher's exact test (Pearson's where counts are large) that both rates are one, as it
        is and corrected for the number of leaves (Holm); None where one side has no row.
    has_moved : bool or None
        Whether the corrected p-value is at most 0.05.
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


def calibrate(
    rules: LeafModel, leaves: NDArray[np.intp], is_positive: BoolArray
) -> tuple[LeafCalibration, ...]:
    """For each leaf its rate in training and that of these rows, which fall in `leaves`."""
    n_leaves = len(rules.leaves)
    old = np.array([[sum(row) for row in leaf] for leaf in rules.leaves], dtype=np.int64)
    n, positives = (
        np.bincount(leaves, minlength=n_leaves),
        np.bincount(leaves[is_positive], minlength=n_leaves),
    )
    # (leaf, label, training or now)
    tables = np.stack((old, np.column_stack((n - positives, positives))), axis=-1)
    is_tested = tables.sum(axis=1).min(axis=1) > 0
    p_values = make_test("fisher").compute_p_values(tables[is_tested])
    tested = iter(zip(p_values.tolist(), adjust_holm(p_values).tolist(), strict=True))
    intervals = compute_intervals(positives.tolist(), n.tolist())
    found = []
    for i, (text, interval) in enumerate(zip(rules.leaf_texts, intervals, strict=True)):
        n_old, size = int(old[i].sum()), int(n[i])
        p_value, adjusted = next(tested) if is_tested[i] else (None, None)
        found.append(
            LeafCalibration(
                leaf=i + 1,
                text=text,
                n_training=n_old,
                expected=int(old[i, 1]) / n_old if n_old else None,
                n_samples=size,
                n_positive=int(positives[i]),
                observed=int(positives[i]) / size if size else None,
                interval=None if interval is None else (interval[0], interval[1]),
                p_value=p_value,
                adjusted=adjusted,
                has_moved=None if adjusted is None else adjusted <= ALPHA,
            )
        )
    return tuple(found)


def adjust_holm(p_values: FloatArray) -> FloatArray:
    """Holm's corrected p-values: at most alpha where his procedure rejects at alpha.

    >>> adjust_holm(np.array([0.04, 0.01, 0.5])).round(3).tolist()
    [0.08, 0.03, 0.5]
    """
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted
