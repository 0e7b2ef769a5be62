"""Dask collections as aligned partitions, and predictions where they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import Delayed

from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.sources.dask.source import Tasks
from icscm.tables.columns import is_dask


def align_partitions(X: Any, y: Any, environments: Any) -> tuple[Sequence[Any], ...]:
    """X, y, environments and number of each partition, the former as delayed tasks.

    Raises if the collections are not cut at the same rows, as far as that can be told unread.
    """
    if X.ndim != 2:
        raise IcscmError(f"X must be a table, got a Dask collection of {X.ndim} dimension(s)")
    if hasattr(X, "chunks") and X.dtype.kind not in "biuf":
        raise IcscmError(f"X is a Dask array of type {X.dtype}; give numbers, or a Dask DataFrame")
    pieces = list_pieces(X)
    _check_aligned("y", y, X, len(pieces))
    places: list[Any] = [None] * len(pieces)
    if environments is not None:
        _check_aligned("environments", environments, X, len(pieces))
        places = list_pieces(environments)
    return pieces, list_pieces(y), places, range(len(pieces))


def list_pieces(collection: Any) -> list[Delayed]:
    """The partitions of a collection, each a delayed task."""
    if hasattr(collection, "chunks"):
        if collection.ndim == 2 and collection.numblocks[1] > 1:
            raise IcscmError(
                f"the columns of X are cut into {collection.numblocks[1]} chunks, and rows must be "
                "whole; call X = X.rechunk({1: -1}) first"
            )
        return list(np.ravel(collection.to_delayed()))
    # reads only the columns that are used, and stops there: Dask would also join small files, as
    # many as the columns allow, and so cut y at other rows than X
    pieces: list[Delayed] = collection.simplify().to_delayed(optimize_graph=False)
    return pieces


def _check_aligned(what: str, values: Any, X: Any, n_pieces: int) -> None:
    """Raise unless there is a partition for each of X's, and they may be cut at the same rows."""
    if not is_dask(values):
        raise IcscmError(
            f"X is a Dask collection and {what} is not; give {what} as a Dask series or array with "
            "the same partitions, such as a column of the same Dask DataFrame"
        )
    if values.ndim != 1:
        raise IcscmError(f"{what} must be one column of labels, not a table")
    n_values = values.numblocks[0] if hasattr(values, "chunks") else values.npartitions
    if n_values != n_pieces:
        raise IcscmError(
            f"{what} has {n_values} partitions and X has {n_pieces}; they must be cut at the same "
            f"rows: {_advise(what, X)}"
        )
    cuts, wanted = _find_cuts(values), _find_cuts(X)
    if type(cuts) is type(wanted) and cuts != wanted:
        raise IcscmError(f"{what} and X are not cut at the same rows: {_advise(what, X)}")


def _find_cuts(collection: Any) -> Any:
    """Where it is cut: sizes of an array's chunks, divisions of a frame; None if unknown."""
    if hasattr(collection, "chunks"):
        sizes = collection.chunks[0]
        return None if np.isnan(sizes).any() else [int(size) for size in sizes]
    return collection.divisions if collection.known_divisions else None


def _advise(what: str, X: Any) -> str:
    if hasattr(X, "chunks"):
        return f"call {what} = {what}.rechunk((X.chunks[0],))"
    return f"take {what} from the same Dask DataFrame, or repartition it as X is"


def predict_lazily(method: Callable[[Any], Array], X: Any, like: Array) -> Any:
    """A Dask array of what a learner's `method` says of each partition of X.

    `like` is what it would say of no rows.
    """
    import dask.array

    pieces = list_pieces(X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(pieces)
    parts = Tasks().map("predict", partial(predict_partition, method, like), pieces)
    arrays = [
        dask.array.from_delayed(part, (size, *like.shape[1:]), like.dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)


def predict_partition(method: Callable[[Any], Array], like: Array, X: Any) -> Array:
    """One partition; learners refuse tables without rows."""
    return method(X) if len(X) else like
