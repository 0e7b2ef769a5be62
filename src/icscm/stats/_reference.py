"""The kernels of statistics once more in plain NumPy."""

from __future__ import annotations

import numpy as np
from scipy import special

from icscm._types import Array


def weigh_leaves(
    tables: Array,
    num: int,
    den: int,
    n_in_play: int,
    n_least: int,
    utility: Array,
    margin: Array,
    is_candidate: Array,
    is_small: Array,
) -> None:
    negatives, positives = tables.sum(axis=2).T
    size = negatives + positives
    utility[:] = den * negatives - num * positives
    margin[:] = negatives - positives
    is_candidate[:] = (negatives > 0) & (size < n_in_play)
    is_small[:] = is_candidate & (np.minimum(size, n_in_play - size) < n_least)


def measure_spread(tables: Array, effective: Array) -> None:
    sizes = tables.sum(axis=1).astype(np.uint64)
    total, squares = sizes.sum(axis=1), (sizes * sizes).sum(axis=1)
    effective[:] = np.maximum((total * total) / np.maximum(squares, 1), 1.0)


def compute_pearson(tables: Array, yates: bool, statistics: Array, dof: Array) -> None:
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
