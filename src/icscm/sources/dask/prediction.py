"""Predictions where a Dask collection lies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from icscm._types import Array
from icscm.sources.dask.partitions import list_pieces
from icscm.sources.dask.source import Tasks


def predict_lazily(method: Callable[[Any], Array], X: Any, like: Array) -> Any:
    """A Dask array of what a learner's `method` says of each partition of X.

    `like` is what it would say of no rows.
    """
    import dask.array

    pieces = list_pieces(X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(pieces)
    parts = Tasks().map("predict", partial(predict_partition, method, like), pieces)
    return dask.array.concatenate(
        [
            dask.array.from_delayed(part, (size, *like.shape[1:]), like.dtype)
            for part, size in zip(parts, sizes, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )


def predict_partition(method: Callable[[Any], Array], like: Array, X: Any) -> Array:
    """One partition; learners refuse tables without rows."""
    return method(X) if len(X) else like
