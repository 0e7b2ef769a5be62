"""Weights of rows: checked, made relative, and as rows that count several times.

Only the ratios of weights matter. So they are made relative as soon as they come in: those above 0
have mean 1 then, whatever their unit.

All that is learned from counts is learned from whole numbers. There a weight becomes a number of
repetitions, in proportion to the weight as well as rounding allows.
"""

from __future__ import annotations

from contextlib import suppress
from math import fsum
from typing import Any, Final

import numpy as np

from icscm._types import Array, FloatArray, IntArray
from icscm.exceptions import IcscmError

# Relative weights have so many binary digits. A factor that is no power of two changes the last of
# 53 digits, and with fewer digits it changes nothing, but by a rare chance.
_N_DIGITS: Final = 24
# Weights above 0 stay above 0.
_LEAST_RELATIVE: Final = 2.0**-900
# Ratios of weights are whole numbers if they differ from one by at most this part of themselves,
# four units of the last digit.
_RATIO_ERROR: Final = 2.0**-22
# Larger ratios are not looked at: the error above would be too large a part of 1.
_MAX_RATIO: Final = 2.0**16
# The largest mean number of repetitions: more would round weights less, but take memory and time.
_MAX_REPETITIONS: Final = 16.0
# Of many rows there are fewer repetitions, so that there are about so many rows in all ...
_MAX_REPEATED_ROWS: Final = 2**24
# ... but no fewer than these, with which weights can still differ.
_MIN_REPETITIONS: Final = 4.0
# Scales at which weights are rounded for a trial, and weights that are tried.
_N_SCALES: Final = 200
_N_WEIGHTS_TRIED: Final = 1000
# Digits of a weight before it is rounded to a whole number: an error must not decide on halves.
_N_DECIMALS: Final = 9


def read_weights(weights: Any, n_rows: int, what: str) -> FloatArray:
    """Return the weights of the rows, checked and made relative: those above 0 have mean 1.

    Weights must be finite numbers, 0 or more.

    >>> read_weights([30, 0, 60, 30], n_rows=4, what="sample_weight").tolist()
    [0.75, 0.0, 1.5, 0.75]
    """
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
    return make_relative(numbers)


def make_relative(weights: FloatArray) -> FloatArray:
    """Divide weights by the mean of those above 0, and round them to 24 binary digits.

    A power of two as a factor changes no digit of the result, other factors hardly ever one. The
    mean is that of an exact sum, so the order of the rows does not matter. Relative weights are
    their own relative weights.
    """
    is_counted = weights > 0
    shares = weights / weights.max()  # a sum of large weights may overflow
    mean = fsum(shares.tolist()) / int(is_counted.sum())
    mantissas, exponents = np.frexp(np.maximum(shares / mean, _LEAST_RELATIVE))
    rounded = np.ldexp(np.rint(mantissas * 2.0**_N_DIGITS), exponents - _N_DIGITS)
    return np.where(is_counted, rounded, 0.0)


def find_weighted_rows(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the rows that count, repeated in proportion to their weights.

    None means that each counts once. Weights whose ratios are those of small whole numbers are
    repeated as often as these say. Others are rounded at the scale at which that loses least. So
    rows of equal weights are repeated equally often, in whatever order they are.

    >>> find_weighted_rows([30, 0, 60], n_rows=3), find_weighted_rows([7.5, 7.5], n_rows=2)
    (array([0, 2, 2]), None)
    """
    weights = read_weights(sample_weight, n_rows, "sample_weight")
    counted = np.flatnonzero(weights)
    repetitions = _compute_repetitions(weights[counted])
    counts_each_once = len(counted) == n_rows and bool((repetitions == 1).all())
    return None if counts_each_once else np.repeat(counted, repetitions)


def _compute_repetitions(weights: FloatArray) -> IntArray:
    """Return how often each row counts, for relative weights above 0.

    weights        repetitions
    1.0 1.0 1.0    1  1  1
    0.5 1.0 1.5    1  2  3      the smallest whole numbers of these ratios
    0.5 0.9 1.7    rounded at a scale, since there are none, or they are too large
    """
    wanted_mean = min(_MAX_REPETITIONS, _MAX_REPEATED_ROWS / len(weights))
    max_mean = max(wanted_mean, _MIN_REPETITIONS)
    whole_ratios = _find_whole_ratios(weights, max_mean)
    if whole_ratios is not None:
        return whole_ratios

    scale = _find_best_scale(weights, max_mean)
    return _round_at(weights, scale).astype(np.int64)


def _find_whole_ratios(weights: FloatArray, max_mean: float) -> IntArray | None:
    """Find the smallest whole numbers that are in proportion to weights, of at most this mean.

    They are the weights divided by the smallest one, times k, for the first k = 1, 2, .. that makes
    all of them whole. For whole weights that is the division by their greatest common divisor.
    None if no k does.

    >>> _find_whole_ratios(np.array([0.3, 0.5, 1.1]), max_mean=16.0)
    array([ 3,  5, 11])
    """
    ratios = weights / weights.min()
    if ratios.max() > _MAX_RATIO:
        return None
    max_k = int(max_mean / ratios.mean() + _RATIO_ERROR)  # the mean of k ratios is at most max_mean
    first_ratios = ratios[:_N_WEIGHTS_TRIED]  # of most weights these fail already
    for k in range(1, max_k + 1):
        if _are_whole(k * first_ratios) and _are_whole(k * ratios):
            return np.asarray(np.rint(k * ratios), dtype=np.int64)
    return None


def _are_whole(ratios: FloatArray) -> bool:
    """Return whether all numbers are whole, but for what rounding changes."""
    changes = np.abs(ratios - np.rint(ratios))
    return bool((changes <= _RATIO_ERROR * ratios).all())


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
    scaled = np.round(weights * scale, _N_DECIMALS)
    return np.maximum(np.rint(scaled), 1.0)
