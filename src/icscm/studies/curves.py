"""Curves of predicted probabilities: calibration, smoothed, and the net benefit of decisions.

The calibration curve is a local linear regression of the label on the probability, weighted by the
tricube of the distance (lowess without robustness steps, Austin and Steyerberg 2014). Each point
uses three quarters of the rows, and a smaller share, by the fifth root, of more than 1,000.

The net benefit of a decision at threshold t is TP/n - FP/n * t / (1 - t): a false positive costs
t / (1 - t) times what a true positive gains (Vickers and Elkin 2006).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icscm._types import BoolArray, FloatArray

# Points of a curve, groups of rows of similar probability that it is computed from, and rows of the
# rarer class below which an environment has no calibration curve of its own.
N_POINTS, _N_BINS, _N_LEAST = 50, 500, 10
# Thresholds of the decision curve: these, but none beyond 99% of the probabilities.
LOWEST, HIGHEST, _QUANTILE = 0.01, 0.5, 0.99

Points = tuple[tuple[float, float], ...]


def compute_calibration_curve(is_positive: BoolArray, probability: FloatArray) -> Points:
    """Pairs of probability and smoothed rate of positives; empty with too few rows of a class.

    >>> y, p = np.repeat([False, True, False, True], 20), np.repeat([0.2, 0.8], 40)
    >>> [tuple(map(round, each, (1, 1))) for each in compute_calibration_curve(y, p)]
    [(0.2, 0.5), (0.8, 0.5)]
    """
    n = len(is_positive)
    if min(is_positive.sum(), n - is_positive.sum()) < _N_LEAST:
        return ()
    values, sizes, rates = _group_rows(is_positive, probability)
    ends = np.linspace(0.01, 0.99, N_POINTS)
    grid = np.unique(np.quantile(probability, ends, method="inverted_cdf"))
    distance = np.abs(grid[:, np.newaxis] - values)  # (point, group)
    order = np.argsort(distance, axis=1)
    n_near = 0.75 * n * min(1.0, (1000 / n) ** 0.2)
    last = (np.cumsum(sizes[order], axis=1) < n_near).sum(axis=1)
    reach = np.take_along_axis(distance, order, axis=1)[np.arange(len(grid)), last]
    # a little more, so that the group at the very end has a weight
    reach = np.maximum(1.001 * reach, 1e-9)[:, np.newaxis]
    weights = np.maximum(1 - (distance / reach) ** 3, 0) ** 3 * sizes
    weights /= weights.sum(axis=1, keepdims=True)
    centre, level = weights @ values, weights @ rates
    off = values - centre[:, np.newaxis]
    spread = (weights * off**2).sum(axis=1)
    slope = (weights * off) @ rates / np.where(spread > 1e-9 * reach[:, 0] ** 2, spread, np.inf)
    observed = np.clip(level + slope * (grid - centre), 0, 1)
    return tuple(zip(grid.tolist(), observed.tolist(), strict=True))


def _group_rows(
    is_positive: BoolArray, probability: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean probability, number of rows and rate of positives of rows of similar probability."""
    edges = np.unique(probability)
    if len(edges) > _N_BINS:
        ends = np.linspace(0, 1, _N_BINS)
        edges = np.unique(np.quantile(probability, ends, method="inverted_cdf"))
    numbers = np.searchsorted(edges, probability)
    sizes = np.bincount(numbers).astype(np.float64)
    positives, total = (np.bincount(numbers, each) for each in (is_positive, probability))
    return total / sizes, sizes, positives / sizes


def choose_thresholds(probability: FloatArray) -> FloatArray:
    """Thresholds of a decision curve, evenly spaced over the range that is stated with it."""
    high = float(np.clip(np.quantile(probability, _QUANTILE), 1e-6, HIGHEST))
    thresholds: FloatArray = np.linspace(min(LOWEST, high / 10), high, N_POINTS)
    return thresholds


def compute_net_benefit(
    is_positive: BoolArray, probability: FloatArray, thresholds: Sequence[float] | FloatArray
) -> FloatArray:
    """Net benefit, per row, of treating the rows whose probability is at least the threshold.

    >>> y, p = np.array([True, False, True, False]), np.array([0.9, 0.6, 0.4, 0.1])
    >>> compute_net_benefit(y, p, [0.05, 0.5]).round(3).tolist()
    [0.474, 0.0]
    """
    t = np.asarray(thresholds, dtype=np.float64)
    n_true, n_false = (
        np.count_nonzero(own) - np.searchsorted(np.sort(probability[own]), t)
        for own in (is_positive, ~is_positive)
    )
    benefit: FloatArray = (n_true - n_false * t / (1 - t)) / len(is_positive)
    return benefit
