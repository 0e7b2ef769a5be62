"""Curves of predicted probabilities: calibration, and net benefit of decisions.

Calibration is a local linear regression of the outcome on the probability (lowess without
robustness steps, as in Austin and Steyerberg 2014). At the probability p_0, with weights of the
tricube of the distance

    w_i = (1 - (|p_i - p_0| / h)^3)^3      for |p_i - p_0| < h, else 0

the line through the weighted means of p and y has the slope

    sum w (p - p_mean) y / sum w (p - p_mean)^2

and the curve is its value at p_0. The bandwidth h reaches three quarters of the rows, and a smaller
share, by the fifth root, of more than 1,000. Rows of similar probability are one point.

The net benefit of treating the rows with a probability of at least t is, per row,

    TP / n - FP / n  t / (1 - t)

since a false positive costs t / (1 - t) times what a true positive gains (Vickers and Elkin 2006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._types import BoolArray, FloatArray, IntArray

# Points of a curve.
N_POINTS: Final = 50
# Groups of rows of similar probability that a calibration curve is computed from.
MAX_GROUPS: Final = 500
# Rows of the rarer class below which there is no calibration curve: it would show chance.
MIN_CLASS_ROWS: Final = 10
# Share of the rows within the bandwidth, for up to so many rows.
NEAR_SHARE: Final = 0.75
MAX_ROWS_OF_SHARE: Final = 1000
# A bandwidth is slightly wider than the distance of the last group within it, and never 0.
BANDWIDTH_FACTOR: Final = 1.001
MIN_BANDWIDTH: Final = 1e-9
# Variance of the probabilities, as a share of the squared bandwidth, below which there is no slope.
MIN_SPREAD: Final = 1e-9
# Thresholds of a decision curve: these, but none beyond this share of the probabilities.
LOWEST_THRESHOLD: Final = 0.01
HIGHEST_THRESHOLD: Final = 0.5
MAX_QUANTILE: Final = 0.99

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Curves:
    """The curves of some rows.

    Attributes
    ----------
    calibration_curve : tuple of pairs
        Probability and smoothed rate of the positive class; empty where it is undefined.
    net_benefit, treat_all : tuple of float
        Net benefit of the model and of treating all rows, at some thresholds.
    """

    calibration_curve: Points = ()
    net_benefit: tuple[float, ...] = ()
    treat_all: tuple[float, ...] = ()


def compute_curves(
    is_positive: BoolArray, probability: FloatArray, thresholds: FloatArray
) -> Curves:
    """Compute the calibration curve and, at these thresholds, the decision curve."""
    certain = np.ones(len(probability))
    net_benefit = compute_net_benefit(is_positive, probability, thresholds)
    treat_all = compute_net_benefit(is_positive, certain, thresholds)
    return Curves(
        calibration_curve=compute_calibration_curve(is_positive, probability),
        net_benefit=tuple(net_benefit.tolist()),
        treat_all=tuple(treat_all.tolist()),
    )


def compute_calibration_curve(is_positive: BoolArray, probability: FloatArray) -> Points:
    """Return pairs of probability and smoothed rate; none with too few rows of a class.

    >>> y, p = np.repeat([False, True, False, True], 20), np.repeat([0.2, 0.8], 40)
    >>> [tuple(map(round, point, (1, 1))) for point in compute_calibration_curve(y, p)]
    [(0.2, 0.5), (0.8, 0.5)]
    """
    n_rows = len(is_positive)
    n_positive = int(is_positive.sum())
    if min(n_positive, n_rows - n_positive) < MIN_CLASS_ROWS:
        return ()

    groups = _group_by_probability(is_positive, probability)
    points = _find_quantiles(probability, np.linspace(0.01, 0.99, N_POINTS))
    n_near = NEAR_SHARE * n_rows * min(1.0, (MAX_ROWS_OF_SHARE / n_rows) ** 0.2)
    rates = _smooth_rates(groups, points, n_near=n_near)
    return tuple(zip(points.tolist(), rates.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _RowGroups:
    """Rows grouped by probability: size, mean probability and share of positive rows of each."""

    sizes: FloatArray
    probabilities: FloatArray
    rates: FloatArray


def _group_by_probability(is_positive: BoolArray, probability: FloatArray) -> _RowGroups:
    """Group rows of equal probability or, of many values, between neighbouring quantiles.

    The curve of some hundred groups is nearly that of the rows, at a fraction of the cost.
    """
    edges = np.unique(probability)
    if len(edges) > MAX_GROUPS:
        edges = _find_quantiles(probability, np.linspace(0, 1, MAX_GROUPS))
    group_of_row = np.searchsorted(edges, probability)
    sizes = np.bincount(group_of_row).astype(np.float64)
    return _RowGroups(
        sizes=sizes,
        probabilities=np.bincount(group_of_row, probability) / sizes,
        rates=np.bincount(group_of_row, is_positive) / sizes,
    )


def _smooth_rates(groups: _RowGroups, points: FloatArray, *, n_near: float) -> FloatArray:
    """Return the value at each point of the local line that is fitted around it.

    A group of rows has a probability p, a rate y, and at the point p_0 a weight w: its size times
    the tricube of its distance, (1 - (|p - p_0| / h)^3)^3, or 0 beyond the bandwidth h. With
    weights of sum 1, the line through the weighted means is

        slope      = sum w (p - p_mean) y / sum w (p - p_mean)^2
        curve(p_0) = y_mean + slope (p_0 - p_mean)
    """
    p = groups.probabilities
    y = groups.rates
    distances = np.abs(points[:, np.newaxis] - p)  # (point, group)
    h = _find_bandwidths(distances, groups.sizes, n_near)

    # weights by (point, group); all that follows is by point
    w = np.maximum(1 - (distances / h[:, np.newaxis]) ** 3, 0) ** 3 * groups.sizes
    w /= w.sum(axis=1, keepdims=True)
    p_mean = w @ p
    y_mean = w @ y

    deviations = p - p_mean[:, np.newaxis]
    variances = (w * deviations**2).sum(axis=1)
    # groups of one probability have no line: the curve is then their mean
    has_spread = variances > MIN_SPREAD * h**2
    slopes = (w * deviations) @ y / np.where(has_spread, variances, np.inf)
    return np.clip(y_mean + slopes * (points - p_mean), 0, 1)


def _find_quantiles(probability: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the distinct observed values at these quantiles."""
    quantiles = np.quantile(probability, shares, method="inverted_cdf")
    return np.asarray(np.unique(quantiles))


def _find_bandwidths(distances: FloatArray, sizes: FloatArray, n_near: float) -> FloatArray:
    """Return for each point the distance within which there are `n_near` rows.

    `distances` are by (point, group), and `sizes` count the rows of each group. The bandwidth is
    slightly wider, so that the group at this distance has a weight.
    """
    nearest_first = np.argsort(distances, axis=1)
    n_rows_within = np.cumsum(sizes[nearest_first], axis=1)
    # the group with which there are enough rows comes after those with which there are too few
    position_of_last = (n_rows_within < n_near).sum(axis=1)
    sorted_distances = np.take_along_axis(distances, nearest_first, axis=1)
    reach = sorted_distances[np.arange(len(distances)), position_of_last]
    return np.asarray(np.maximum(BANDWIDTH_FACTOR * reach, MIN_BANDWIDTH))


def choose_thresholds(probability: FloatArray) -> FloatArray:
    """Return the thresholds of a decision curve, evenly spaced."""
    # beyond nearly all probabilities no row is treated
    largest_useful = np.quantile(probability, MAX_QUANTILE)
    high = float(np.clip(largest_useful, 1e-6, HIGHEST_THRESHOLD))
    low = min(LOWEST_THRESHOLD, high / 10)
    return np.asarray(np.linspace(low, high, N_POINTS))


def compute_net_benefit(
    is_positive: BoolArray, probability: FloatArray, thresholds: Sequence[float] | FloatArray
) -> FloatArray:
    """Return the net benefit, per row, of treating the rows that reach a threshold, for each t.

        TP / n - FP / n  t / (1 - t)

    >>> y, p = np.array([True, False, True, False]), np.array([0.9, 0.6, 0.4, 0.1])
    >>> compute_net_benefit(y, p, [0.05, 0.5]).round(3).tolist()
    [0.474, 0.0]
    """
    t = np.asarray(thresholds, dtype=np.float64)
    n = len(is_positive)
    TP = _count_at_least(probability[is_positive], t)
    FP = _count_at_least(probability[~is_positive], t)
    return np.asarray((TP - FP * t / (1 - t)) / n)


def _count_at_least(values: FloatArray, thresholds: FloatArray) -> IntArray:
    """Count the values that are at least each threshold."""
    return len(values) - np.searchsorted(np.sort(values), thresholds)
