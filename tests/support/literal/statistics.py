"""The kernels of statistics once more in plain NumPy."""

from __future__ import annotations

import numpy as np
from scipy import special

from icscm._types import Array


def measure_evidence(tables: Array, in_play: Array, evidence: Array) -> None:
    rates = in_play[1] / np.maximum(in_play.sum(axis=0), 1)
    expected = (tables.sum(axis=1) * rates).sum(axis=1)
    found = tables.sum(axis=2).astype(np.float64)
    cells = np.stack((found, in_play.sum(axis=1) - found), axis=1)  # (leaf, inside?, label)
    shift = (expected - found[:, 1])[:, None, None] * np.array([[-1.0, 1.0], [1.0, -1.0]])
    with np.errstate(all="ignore"):
        total = special.xlogy(cells, cells / (cells + shift)).sum(axis=(1, 2))
    evidence[:] = np.where(found[:, 1] < expected, total, 0.0)


def compute_pearson(yates: bool, tables: Array, statistics: Array, dof: Array) -> None:
    dof[:] = compute_dof(tables)
    sizes = tables.sum(axis=1)
    rate = tables[:, 1].sum(axis=1) / np.maximum(sizes.sum(axis=1), 1)
    off = np.abs(tables[:, 1] - sizes * rate[:, None])
    off -= np.where(yates & (dof == 1), 0.5, 0.0)[:, None]
    terms = np.maximum(off, 0.0) ** 2 / np.maximum(sizes, 1)
    variance = np.where(dof > 0, rate * (1.0 - rate), 1.0)
    statistics[:] = np.where(dof > 0, terms.sum(axis=1) / variance, 0.0)


def compute_likelihood_ratio(tables: Array, statistics: Array, dof: Array) -> None:
    dof[:] = compute_dof(tables)
    n = tables.astype(np.float64)
    columns, rows = n.sum(axis=1, keepdims=True), n.sum(axis=2, keepdims=True)
    ratios = n * n.sum(axis=(1, 2), keepdims=True) / np.maximum(columns * rows, 1.0)
    statistics[:] = np.maximum(2.0 * special.xlogy(n, ratios).sum(axis=(1, 2)), 0.0)


def compute_dof(tables: Array) -> Array:
    is_mixed = (tables.sum(axis=2) > 0).all(axis=1)
    n_columns = (tables.sum(axis=1) > 0).sum(axis=1)
    dof: Array = np.where(is_mixed, n_columns - 1, 0)
    return dof


def measure_rates(
    tables: Array, node: Array, n_least: int, pooled: Array, within: Array, dof: Array
) -> None:
    rest = node - tables
    is_large = np.minimum(tables.sum(axis=(1, 2)), rest.sum(axis=(1, 2))) >= n_least
    pooled_tables = tables.sum(axis=-1, keepdims=True)
    pooled_node = node.sum(axis=-1, keepdims=True)
    pooled_gains = _gain_labels(pooled_tables, pooled_node).sum(axis=1)
    gains_within = _gain_labels(tables, node).sum(axis=1)
    pooled[:] = np.where(is_large, pooled_gains.clip(0.0), -1.0)
    within[:] = np.where(is_large, gains_within.clip(0.0), -1.0)
    is_divided = (tables.sum(axis=1) > 0) & (rest.sum(axis=1) > 0)
    dof[:] = np.where(is_large, is_divided.sum(axis=1), 0)


def _gain_labels(tables: Array, node: Array) -> Array:
    """By how much the deviance of the labels falls, for each half and environment."""
    gains: Array = 2.0 * (
        _weigh_labels(tables) + _weigh_labels(node - tables) - _weigh_labels(node)
    )
    return gains


def _weigh_labels(counts: Array) -> Array:
    sizes = counts.sum(axis=-2)
    weights: Array = special.xlogy(counts, counts).sum(axis=-2) - special.xlogy(sizes, sizes)
    return weights
