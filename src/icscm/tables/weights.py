"""Weights of rows: checked, and as rows that count several times.

All that is learned is learned from counts, which are whole numbers. So a weight becomes a number of
repetitions, in proportion to the weight as well as rounding allows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import numpy as np

from icscm._constants import LARGEST_EXACT
from icscm._types import Array, FloatArray, IntArray
from icscm.exceptions import IcscmError

# The largest mean number of repetitions: more would round weights less, but take memory and time.
_MAX_REPETITIONS: Final = 16.0
# Of many rows there are fewer repetitions, so that there are about so many rows in all ...
_MAX_REPEATED_ROWS: Final = 2**24
# ... but no fewer than these, with which weights can still differ.
_MIN_REPETITIONS: Final = 4.0
# Scales at which weights are rounded for a trial, and weights that are tried.
_N_SCALES: Final = 200
_N_WEIGHTS_TRIED: Final = 1000


def read_weights(weights: Any, n_rows: int, what: str) -> FloatArray:
    """Return the weights of the rows, checked: finite numbers, 0 or more."""
    values = np.asarray(weights)
    if values.shape != (n_rows,):
        raise IcscmError(
            f"{what} must hold one weight for each of the {n_rows} rows of X, got shape "
            f"{values.shape}"
        )

    numbers = np.full(values.shape, np.nan)  # also for text that looks like numbers
    if values.dtype.kind in "biufO":
        with suppress(TypeError, ValueError):
            numbers = values.astype(np.float64)
    is_wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if is_wrong.any():
        first = int(np.argmax(is_wrong))
        value = values.tolist()[first]
        raise IcscmError(
            f"{what} must hold finite numbers, 0 or more; got {value!r} in row {first}"
        )
    if not numbers.any():
        raise IcscmError(f"{what} is zero in every row; give some rows a positive weight")
    return numbers


def find_weighted_rows(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the rows that count, repeated in proportion to their weights.

    None means that each counts once. Whole numbers are divided by their greatest common divisor.
    Others, and large ones, are rounded at the scale at which that loses least. So rows of equal
    weights are repeated equally often, in whatever order they are.

    >>> find_weighted_rows([30, 0, 60], n_rows=3), find_weighted_rows([7.5, 7.5], n_rows=2)
    (array([0, 2, 2]), None)
    """
    weights = read_weights(sample_weight, n_rows, "sample_weight")
    counted = np.flatnonzero(weights)
    repetitions = _compute_repetitions(weights[counted])
    counts_each_once = len(counted) == n_rows and bool((repetitions == 1).all())
    return None if counts_each_once else np.repeat(counted, repetitions)


def _compute_repetitions(weights: FloatArray) -> IntArray:
    """Return how often each row counts, for positive weights; only their ratios matter.

    weights        repetitions
    2   2   2      1  1  1
    30  60  90     1  2  3      divided by their greatest common divisor
    0.3 0.5 1.1    rounded at a scale, since there is no common divisor, or it is too small
    """
    if (weights == weights[0]).all():
        return np.ones(len(weights), dtype=np.int64)

    wanted_mean = min(_MAX_REPETITIONS, _MAX_REPEATED_ROWS / len(weights))
    max_mean = max(wanted_mean, _MIN_REPETITIONS)

    is_whole = weights.max() < LARGEST_EXACT and bool((weights == np.floor(weights)).all())
    if is_whole:
        whole_weights = weights.astype(np.int64)
        repetitions = whole_weights // np.gcd.reduce(whole_weights)
        if repetitions.mean() <= max_mean:
            return np.asarray(repetitions)

    relative = weights / weights.mean()
    scale = _find_best_scale(relative, max_mean)
    return _round_at(relative, scale).astype(np.int64)


def _find_best_scale(weights: FloatArray, max_scale: float) -> float:
    """Return the scale at which rounding changes some of the weights least.

    The changes of all tried weights (column) at all tried scales (row) are compared at once.
    """
    shares = np.linspace(0, 1, _N_WEIGHTS_TRIED)
    tried = np.quantile(weights, shares, method="nearest")
    scales = np.linspace(max_scale / 4, max_scale, _N_SCALES)[:, np.newaxis]
    changes = np.abs(_round_at(tried, scales) - tried * scales) / scales
    total_changes = changes.sum(axis=1).round(9)
    return float(scales[int(total_changes.argmin()), 0])


def _round_at(weights: FloatArray, scale: FloatArray | float) -> FloatArray:
    """Round weights times a scale; each row counts at least once."""
    return np.maximum(np.rint(weights * scale), 1.0)
