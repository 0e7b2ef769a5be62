"""What `fit` and `predict` are given, checked and made ready: any kind of table in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from icscm._constants import LARGEST_EXACT
from icscm._types import Array, BoolArray, IntArray
from icscm.exceptions import IcscmError, LeftOutWarning, Parameter, warn
from icscm.formatting import shorten_list
from icscm.tables.arrays import HoldsTextError, check_table
from icscm.tables.coded import IDENTIFIER, CodedTable, code_array, code_mixed
from icscm.tables.column_checks import find_suspicious, look_at_numbers
from icscm.tables.columns import (
    Column,
    Levels,
    Numbers,
    is_frame,
    is_on_card,
    list_names,
    open_frame,
    open_on_card,
    read_array,
    read_column,
    read_series,
)
from icscm.tables.errors import RoundedError, make_infinity_error, make_rounded_error, name_columns

Rows = NDArray[np.intp] | None


@dataclass(frozen=True)
class ParsedTable:
    """A table as `fit` got it: one array of numbers, or columns of several kinds.

    `rows` is the table itself, for taking rows of it. `whole` says which columns are whole numbers
    by their type; None where columns have no types of their own, in an array, and nothing is
    suspicious. Booleans and sparse matrices tell presence from absence.
    """

    rows: Any
    content: Array | list[Column]
    n_rows: int
    names: tuple[str, ...] | None
    whole: BoolArray | None
    is_presence: bool = False

    def code(self, max_levels: int | None, rows: Rows) -> CodedTable:
        """Numbers only; `rows` are those that count, None meaning each once."""
        if isinstance(self.content, list):
            return code_mixed(self.content, self.n_rows, self.names, max_levels, rows)
        values = self.content if rows is None else self.content[rows]
        if self.is_presence:
            return CodedTable(values, self.names, is_presence=True)
        return code_array(values, self.names)


class _Columns(BaseEstimator):  # type: ignore[misc]
    """Takes down the number and names of columns, as scikit-learn finds them."""


_Columns.__name__ = "icscm"  # errors say who asks


def read_table(X: Any) -> ParsedTable:
    """Check what `fit` was given."""
    estimator = _Columns()
    if is_frame(X):
        return _read_frame(estimator, X)
    if issparse(X):
        matrix = _check_sparse(estimator, X, reset=True)
        return ParsedTable(matrix, matrix, matrix.shape[0], None, None, is_presence=True)
    try:
        array = check_table(estimator, X, reset=True, look=False)
    except HoldsTextError:
        array = _get_object_array(X)
        validate_data(estimator, array, reset=True, skip_check_array=True)
        columns = [read_array(array[:, j], f"column {j}") for j in range(array.shape[1])]
        return ParsedTable(array, _check_columns(columns), len(array), None, None)
    if getattr(X, "dtype", None) == np.bool_:
        return ParsedTable(array.view(np.bool_), array, len(array), None, None, is_presence=True)
    return ParsedTable(array, array, len(array), _get_names(estimator), None)


def find_names(X: Any) -> tuple[str, ...] | None:
    """The names of a frame's columns; None where it has none, or X is an array."""
    estimator = _Columns()
    validate_data(estimator, X, reset=True, skip_check_array=True)
    return _get_names(estimator)


def _check_sparse(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """A sparse matrix by rows or by columns, whichever it is."""
    kinds = ("csr", "csc")
    return validate_data(estimator, X, reset=reset, accept_sparse=kinds, ensure_all_finite=False)


def _read_frame(estimator: BaseEstimator, X: Any) -> ParsedTable:
    frame = open_frame(X)
    for what, number in (("sample", len(frame)), ("feature", len(frame.columns))):
        if number == 0:
            raise IcscmError(f"Found array with 0 {what}(s): X needs at least 1 {what}")
    types = list(frame.schema.values())
    whole = np.array([each.is_integer() for each in types])
    table = frame.to_native()
    if all(each.is_integer() or each.is_float() for each in types):
        with suppress(RoundedError):  # then column by column: these may be identifiers
            array = check_table(estimator, table, reset=True, look=False)
            return ParsedTable(table, array, len(array), _get_names(estimator), whole)
    validate_data(estimator, table, reset=True, skip_check_array=True)
    columns = [read_series(each) for each in frame.iter_columns()]
    _check_columns(columns, list_names(X))
    return ParsedTable(table, columns, len(frame), _get_names(estimator), whole)


def _check_columns(columns: list[Column], names: Sequence[Any] | None = None) -> list[Column]:
    """Raise for infinities."""
    for j, column in enumerate(columns):
        values = column.values if isinstance(column, Numbers) else np.empty(0)
        if values.dtype.kind == "f" and np.isinf(values).any():
            raise make_infinity_error(name_columns([j], names))
    return columns


def _leave_out_rounded(intake: ParsedTable, table: CodedTable) -> CodedTable:
    """Whole numbers that float64 would round, beside other kinds, are identifiers or errors."""
    if not isinstance(intake.content, list):
        return table
    for j, column in enumerate(intake.content):
        if not isinstance(column, Numbers) or column.values.dtype.kind not in "iu":
            continue
        if not (np.abs(table.values[:, j]) >= LARGEST_EXACT).any():  # NaN is not
            continue
        present = column.values if column.missing is None else column.values[~column.missing]
        if not look_at_numbers(present).is_numbering():
            raise make_rounded_error(name_columns([j], table.names))
        table = table.leave_out({j: IDENTIFIER})
    return table


def _get_names(estimator: BaseEstimator) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names.tolist())


def _get_object_array(X: Any) -> Array:
    """X again if it is an array of objects, each column of which may be of another kind."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        return X
    raise IcscmError(
        "X holds text, and an array or list has one kind of values for all columns; give a "
        "DataFrame, which keeps text and numbers apart"
    )


def reject_missing(table: CodedTable) -> None:
    """Raise if anything is missing (`missing="error"`)."""
    columns = np.flatnonzero(table.find_missing()).tolist()
    if columns:
        raise IcscmError(
            Parameter("X"),
            f" contains NaN or other missing values in {name_columns(columns, table.names)}; fill "
            "them in, or let rules decide with ",
            Parameter("missing", "candidate"),
        )


def drop_suspicious(
    intake: ParsedTable,
    table: CodedTable,
    labels: IntArray,
    environments: IntArray,
    rows: Rows,
    keep: Any,
) -> CodedTable:
    """Leave out columns that no rule should be made of, with a warning, unless asked for.

    Arrays come from users who prepared them, and are taken as they are. Rows that count several
    times are looked at once.
    """
    table = _leave_out_rounded(intake, table)
    if intake.whole is None:
        return table
    once = slice(None) if rows is None else np.unique(rows, return_index=True)[1]
    looked_at = replace(table, values=table.values[once])
    found = find_suspicious(looked_at, labels[once], environments[once], intake.whole)
    return leave_out(table, found, keep)


def leave_out(table: CodedTable, found: Mapping[int, str], keep: Any) -> CodedTable:
    """Leave out what was found, with a warning, unless the user asked for it."""
    kept = _find_kept(table, keep)
    for j in sorted(kept & {*table.dropped}):
        name = name_columns([j], table.names)
        why = f" asks for {name}, which is {table.dropped[j]}"
        raise IcscmError(Parameter("keep_columns"), why)
    found = {j: why for j, why in found.items() if j not in kept}
    if len(found) == table.n_columns:
        raise IcscmError(
            Parameter("X"),
            f" has no column to make rules of: {_describe(table, found)}. Give other columns, or "
            "keep these with ",
            Parameter("keep_columns", "all"),
        )
    if found:
        what = f"Left out: {_describe(table, found)}. Name columns in keep_columns to keep them."
        warn(what, LeftOutWarning)
    return table.leave_out(found)


def _find_kept(table: CodedTable, keep: Any) -> set[int]:
    """The columns asked for by name, or by position where there are no names."""
    if keep is None:
        return set()
    if isinstance(keep, str) and keep == "all":
        return set(range(table.n_columns)) - {*table.dropped}
    keep = [keep] if isinstance(keep, str) else list(keep)
    known = {name: j for j, name in enumerate(table.names or range(table.n_columns))}
    unknown = [repr(name) for name in keep if name not in known]
    if unknown:
        what = f" names columns that X does not have: {shorten_list(unknown)}"
        raise IcscmError(Parameter("keep_columns"), what)
    return {known[name] for name in keep}


def _describe(table: CodedTable, found: Mapping[int, str]) -> str:
    """Columns by reason."""
    by_reason: dict[str, list[int]] = {}
    for j, why in found.items():
        by_reason.setdefault(why, []).append(j)
    return "; ".join(f"{name_columns(by_reason[why], table.names)} ({why})" for why in by_reason)


def read_rows(estimator: Any, X: Any, used: Sequence[str | int]) -> Any:
    """X as the rules of a fitted model can read it: a frame as it is, else an array.

    A frame needs the columns that the model uses, by name, in any order. Without names, at
    fitting or now, columns go by position and their number must be that of fitting.
    """
    # a model learned from a packed store knows the names in its rules, and no others
    names = _get_names(estimator) or [name for name in used if isinstance(name, str)]
    if is_frame(X):
        X = open_frame(X).to_native()
        given = set(list_names(X))
        if given & {*names}:
            absent = [repr(name) for name in used if name not in given]
            if absent:
                raise IcscmError(
                    f"X lacks column{'s' * (len(absent) > 1)} {shorten_list(absent)}, which the "
                    "model uses; columns go by their names, in any order"
                )
            return X
        _check_positions(X)
    if issparse(X):
        return _check_sparse(estimator, X, reset=False)
    if is_on_card(X):
        return _check_on_card(estimator, open_on_card(X))
    try:
        return check_table(estimator, X, reset=False, allow_missing=True)
    except HoldsTextError:
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return X if is_frame(X) else _get_object_array(X)


def _check_on_card(estimator: Any, X: Any) -> Any:
    """An array on a card of as many columns as the model knows; they come here one by one."""
    if X.ndim != 2 or X.shape[1] != estimator.n_features_in_:
        raise IcscmError(
            f"X is of shape {X.shape}, and the model knows {estimator.n_features_in_} columns; "
            "give as many, in two dimensions"
        )
    return X


def _check_positions(X: Any) -> None:
    """Raise for numbered columns out of order: without names they would be mixed up in silence."""
    names = [str(name) for name in getattr(X, "columns", ())]
    ordered = [str(j) for j in range(len(names))]
    if {*names} == {*ordered} and names != ordered:
        raise IcscmError(
            f"X's columns are numbered but not in order ({shorten_list(names)}), and the model "
            "goes by their positions; put them in order"
        )


def reject_missing_values(X: Any, rules: Sequence[Any]) -> None:
    """Raise if a value that a rule asks for is missing (`missing="error"`)."""
    for rule in rules:
        column = read_column(X, rule.column, rule.name)
        missing = column.missing if isinstance(column, Numbers | Levels) else None
        if missing is not None:
            raise IcscmError(
                Parameter("X"),
                f" is missing {int(missing.sum()):,} values in column {rule.feature!r}; fill them "
                "in or drop these rows",
            )
