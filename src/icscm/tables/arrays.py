"""Arrays and frames of numbers, checked: what was wrong, where, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from icscm._constants import LARGEST_EXACT
from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.tables.columns import are_finite, as_plain_numbers
from icscm.tables.errors import make_infinity_error, make_rounded_error, name_columns


class HoldsTextError(IcscmError):
    """Text where numbers were expected."""


def check_table(
    estimator: BaseEstimator, X: Any, *, reset: bool, allow_missing: bool = False, look: bool = True
) -> Array:
    """X as a finite numeric array; sets or checks the number and names of its columns.

    With `allow_missing` values may be missing, and are NaN. Without a `look` at all of them, which
    takes as long as reading them, they may be anything.
    """
    types = None
    if not isinstance(X, np.ndarray) and nw.dependencies.is_into_dataframe(X):
        # once: of very many columns it takes long
        types = nw.from_native(X).schema
        _check_column_types(types)
    try:
        table: Array = validate_data(
            estimator, X, reset=reset, dtype="numeric", ensure_all_finite=False
        )
    except ValueError as error:
        if "string" not in str(error):
            raise
        columns = name_columns(_find_text_columns(np.asarray(X, dtype=object)), None)
        why = f"X holds text in {columns}; encode it as numbers or leave it out"
        raise HoldsTextError(why) from None
    table = _to_supported_dtype(table)
    if types is not None:
        _check_not_rounded(table, types)
    names = getattr(estimator, "feature_names_in_", None)
    if look and not are_finite(table):
        _check_finite(table, names, allow_missing=allow_missing)
    return table


def reject_infinity(table: Array, names: Sequence[str] | None) -> None:
    """Raise if any value is infinite."""
    _check_finite(table, names, allow_missing=True)


def make_dense(matrix: Any, rows: Array | None = None) -> Array:
    """A sparse matrix as an array, if there is room for it.

    `rows` are those that will count: they are copied, and each cell takes a byte more when binned.
    """
    n_rows = matrix.shape[0] if rows is None else matrix.shape[0] + len(rows)
    n_bytes = n_rows * matrix.shape[1] * (matrix.dtype.itemsize + 1)
    n_free = _count_free_bytes()
    if n_bytes > n_free:
        raise IcscmError(
            "X is sparse and holds other values than 0 and 1: as the dense table that rules with "
            f"thresholds need it would take {n_bytes / 1e9:,.1f} GB, and {n_free / 1e9:,.1f} GB "
            "are free; binarize it, or give fewer columns"
        )
    return np.asarray(matrix.toarray())


def _count_free_bytes() -> float:
    """Memory that is free, or can be had; no limit where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return np.inf
    found = dict(line.split(":", 1) for line in lines)
    return 1024.0 * int(found["MemAvailable"].split()[0])


def _check_column_types(types: nw.Schema) -> None:
    """Name the columns of a frame that are not numbers or booleans."""
    others = [each for each in types.items() if not (each[1].is_numeric() or each[1] == nw.Boolean)]
    if others:
        listed = shorten_list([f"{name!r} ({dtype})" for name, dtype in others])
        raise HoldsTextError(
            f"X has columns that are neither numbers nor booleans: {listed}; encode them as "
            "numbers or leave them out"
        )


def _find_text_columns(X: Array) -> list[int]:
    """The columns of an array that cannot be read as numbers."""

    def is_number(value: Any) -> bool:
        try:
            float(value)
        except ValueError:
            return False
        return True

    return [j for j in range(X.shape[1]) if not all(map(is_number, X[:, j]))]


def _to_supported_dtype(table: Array) -> Array:
    """What the engine can read: booleans as bytes, floats of 32 or 64 bits, native byte order."""
    if table.dtype.kind == "O":  # numbers such as decimals, or missing; None becomes NaN
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            what = "X holds objects that float64 cannot hold; give plain numbers"
            raise IcscmError(what) from None
    if table.dtype.kind not in "biuf":
        raise IcscmError(f"X is of type {table.dtype}; give numbers or booleans")
    if not table.dtype.isnative:
        table = table.astype(table.dtype.newbyteorder("="))
    return as_plain_numbers(table)


def _check_not_rounded(table: Array, types: nw.Schema) -> None:
    """Beside a column of floats, integers become floats: refuse those that would be rounded."""
    if table.dtype.kind != "f":
        return
    positions = [j for j, dtype in enumerate(types.values()) if dtype.is_integer()]
    large = [j for j in positions if (np.abs(table[:, j]) >= LARGEST_EXACT).any()]  # NaN is not
    if large:
        raise make_rounded_error(name_columns(large, list(types)))


def _check_finite(table: Array, names: Sequence[str] | None, *, allow_missing: bool) -> None:
    is_bad = np.isinf if allow_missing else lambda values: ~np.isfinite(values)
    bad = np.flatnonzero([is_bad(table[:, j]).any() for j in range(table.shape[1])])
    if len(bad):
        has_nan = not allow_missing and bool(np.isnan(table[:, bad]).any())
        columns = name_columns(bad.tolist(), names)
        raise make_infinity_error(columns, "NaN" if has_nan else "infinity")
