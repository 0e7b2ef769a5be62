"""Calibration by leaf: is the rate of positives what training leads to expect?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.model.tree import Tree
from icscm.report.words import compute_intervals
from icscm.stats.independence import make_test
from icscm.stats.new_environments import compute_surprise, make_expectations

# Of the tests whether something differs from what was expected.
ALPHA = 0.05


@dataclass(frozen=True)
class Promise:
    """Whether a leaf's rate in an environment never seen in training was as could be expected.

    Attributes
    ----------
    environment : label or None
        None where the rows name no environments and are taken for one.
    n_samples, n_positive : int
        Its rows in the leaf, and the positive among them.
    p_value : float
        Of so few or so many positives, the sampling error of these rows accounted for.
    is_inside : bool
        Whether the p-value is above 0.05: the rate is where 95 % of new environments were to be.
    """

    environment: Any
    n_samples: int
    n_positive: int
    p_value: float
    is_inside: bool


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
    new_interval : pair of floats or None
        What training let expect of the rate in an environment not seen, 95 %; None where it could
        not tell.
    promises : tuple of Promise
        Whether that came true, for each environment never seen in training; empty where there is
        none.
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
    promises: tuple[Promise, ...] = ()


def calibrate(
    rules: Tree,
    leaves: NDArray[np.intp],
    is_positive: BoolArray,
    environments: IntArray | None = None,
    new: Sequence[tuple[int, Any]] = (),
) -> tuple[LeafCalibration, ...]:
    """For each leaf its rate in training and that of these rows, which fall in `leaves`.

    `new` are number and label of the environments never seen in training.
    """
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
    expected = make_expectations(rules.leaves)
    kept = _keep_promises(rules, leaves, is_positive, environments, new)
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
                new_interval=expected[i].interval,
                promises=tuple(kept[i]),
            )
        )
    return tuple(found)


def _keep_promises(
    rules: Tree,
    leaves: NDArray[np.intp],
    is_positive: BoolArray,
    environments: IntArray | None,
    new: Sequence[tuple[int, Any]],
) -> list[list[Promise]]:
    """For each leaf what became of its interval in each new environment that has rows in it."""
    n_leaves = len(rules.leaves)
    counts = np.zeros((n_leaves, len(new), 2), dtype=np.int64)
    for j, (number, _) in enumerate(new):
        is_here = np.full(len(leaves), True) if environments is None else environments == number
        counts[:, j, 0] = np.bincount(leaves[is_here], minlength=n_leaves)
        counts[:, j, 1] = np.bincount(leaves[is_here & is_positive], minlength=n_leaves)
    sizes, positives = counts[..., 0], counts[..., 1]
    p_values = compute_surprise(np.array(rules.leaves, dtype=np.int64), positives, sizes)
    kept: list[list[Promise]] = [[] for _ in range(n_leaves)]
    for i, j in np.argwhere(~np.isnan(p_values)).tolist():
        p, n, k = float(p_values[i, j]), int(sizes[i, j]), int(positives[i, j])
        kept[i].append(Promise(new[j][1], n, k, p, p > ALPHA))
    return kept


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
