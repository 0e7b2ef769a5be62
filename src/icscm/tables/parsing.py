"""Reads and checks the input of `fit` and `predict`: any kind of table.

    fit       X --read_table--> ParsedTable --code--> CodedTable --drop_unusable--> CodedTable
    predict   X --check_rows--> a frame or an array, of which the rules read single columns

A table is read as one array of numbers where that is possible, else column by column
(`icscm.tables.columns`), which takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from icscm._constants import LARGEST_EXACT
from icscm._lazy import is_sparse, nw, validation
from icscm._types import Array, BoolArray, IntArray
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import shorten_list
from icscm.tables import coded, columns, suspicion
from icscm.tables.coded import CodedTable, are_finite
from icscm.tables.columns import Column, Dates, Levels, Numbers
from icscm.tables.errors import RoundedError, make_rounded_error, name_columns, reject_infinity

# Checks a table and returns it as an array or a sparse matrix: scikit-learn's `validate_data` with
# an estimator bound to it, or a function with the same options.
Validate = Callable[..., Any]

_SPARSE_FORMATS = ("csr", "csc")
_UNEVEN = "the rows of X differ in length; give each the same columns"


class ColumnRule(Protocol):
    """What reading rows needs to know of a rule."""

    @property
    def column(self) -> int:
        """The position of its column."""

    @property
    def name(self) -> str | None:
        """The name of its column, if it has one."""

    @property
    def feature(self) -> str | int:
        """The name of its column where the data had names, its position otherwise."""

    @property
    def compares_levels(self) -> bool:
        """Whether it compares levels of a category."""


class HoldsTextError(IcscmError):
    """Text where numbers were expected."""


# --- tables to learn from -------------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedTable:
    """A table as `fit` got it: one array of numbers, or columns of several kinds.

    `rows` is the table itself, for taking rows of it. `whole` marks the columns of whole numbers
    by their type; None where columns have no types of their own, in an array, and nothing is
    suspicious. Booleans and sparse matrices stand for presence and absence.
    """

    rows: Any
    content: Array | list[Column]
    n_rows: int
    names: tuple[str, ...] | None = None
    whole: BoolArray | None = None
    is_presence: bool = False

    @property
    def declared(self) -> frozenset[int]:
        """The columns whose type says that they are categories."""
        if not isinstance(self.content, list):
            return frozenset()
        return frozenset(
            position
            for position, column in enumerate(self.content)
            if isinstance(column, Levels) and column.is_declared
        )

    def code(self, max_levels: int | None, rows: Array | None) -> CodedTable:
        """Return the table as numbers; `rows` are those that count, None meaning each once.

        A category becomes the number of each row's level; one with more levels than `max_levels`
        has its rare ones together. Dates and durations, which rules cannot use, are dropped; the
        column of a date is 0.
        """
        if not isinstance(self.content, list):
            values = self.content if rows is None else self.content[rows]
            return CodedTable(values, self.names, is_presence=self.is_presence)

        n_rows = self.n_rows if rows is None else len(rows)
        values = np.zeros((n_rows, len(self.content)), order="F")
        levels: dict[int, coded.LevelBins] = {}
        dropped: dict[int, str] = {}
        for position, column in enumerate(self.content):
            if isinstance(column, Dates):
                dropped[position] = suspicion.DATES
            elif isinstance(column, Levels):
                values[:, position], bins = coded.code_levels(column, max_levels, rows)
                levels[position] = bins
                if not column.is_declared and coded.are_durations(bins):
                    dropped[position] = suspicion.DATES
            else:
                counted = column if rows is None else column.take(rows)
                values[:, position] = columns.read_numbers(counted)
        return CodedTable(
            values,
            names=self.names,
            levels=levels,
            has_missing=coded.find_missing(values, self.names),
            dropped=dropped,
        )

    def drop_unusable(
        self,
        table: CodedTable,
        *,
        labels: IntArray,
        environments: IntArray,
        rows: Array | None,
        drop_suspicious: bool,
    ) -> CodedTable:
        """Drop columns that rules cannot use, and suspicious ones if so wanted, with a warning.

        Columns without any value are dropped from every table. `table` is what `code` returned for
        these `rows`, of which the labels and environments are given.
        """
        rounded = dict.fromkeys(self._find_rounded_identifiers(table), suspicion.IDENTIFIER)
        without_rounded = replace(table, dropped={**table.dropped, **rounded})
        if self.whole is None or not drop_suspicious:
            empty = dict.fromkeys(suspicion.find_empty(without_rounded), suspicion.EMPTY)
            return suspicion.drop_columns(without_rounded, {**without_rounded.dropped, **empty})

        # A row that counts several times is checked once: its repeats are no repeated values.
        first_of_row: slice | IntArray = slice(None)
        if rows is not None:
            first_of_row = np.unique(rows, return_index=True)[1]
        reasons = suspicion.find_suspicious(
            replace(without_rounded, values=table.values[first_of_row]),
            labels[first_of_row],
            environments[first_of_row],
            whole=self.whole,
            declared=self.declared,
        )
        return suspicion.drop_columns(without_rounded, reasons)

    def _find_rounded_identifiers(self, table: CodedTable) -> Iterator[int]:
        """Find identifiers among the whole numbers that float64 would round.

        Whole numbers become floats where columns of other kinds are beside them. An identifier is
        dropped in any case, so that it may be rounded; other numbers raise an error.
        """
        if not isinstance(self.content, list):
            return
        for position, column in enumerate(self.content):
            if not isinstance(column, Numbers) or column.values.dtype.kind not in "iu":
                continue
            is_rounded = np.abs(table.values[:, position]) >= LARGEST_EXACT  # NaN is not
            if not is_rounded.any():
                continue

            missing = column.missing
            present = column.values if missing is None else column.values[~missing]
            if not suspicion.gather_number_facts(present).is_numbering():
                raise make_rounded_error(name_columns([position], table.names))
            yield position


def read_table(X: Any) -> ParsedTable:
    """Read the table that `fit` was given: of numbers, or of columns of any kind."""
    if isinstance(X, columns.StoredTable):
        raise X.make_error()
    X = columns.bring(X)
    if columns.is_frame(X):
        return _read_frame(columns.open_frame(X))
    if is_sparse(X):
        matrix = _validate(X, accept_sparse=_SPARSE_FORMATS, ensure_all_finite=False)
        return ParsedTable(rows=matrix, content=matrix, n_rows=matrix.shape[0], is_presence=True)

    try:
        array = _read_numbers(X, _validate)
    except HoldsTextError:
        if isinstance(X, np.ndarray) and X.dtype.kind == "O":  # each column may be of another kind
            content = [columns.read_array(X[:, j], f"column {j}") for j in range(X.shape[1])]
            return ParsedTable(rows=X, content=content, n_rows=len(X))
        raise IcscmError(
            "X holds text, but an array or list has a single type for all columns; give a "
            "DataFrame, which keeps text and numbers apart"
        ) from None

    n_rows = len(array)
    if getattr(X, "dtype", None) == np.bool_:
        booleans = array.view(np.bool_)
        return ParsedTable(rows=booleans, content=array, n_rows=n_rows, is_presence=True)
    return ParsedTable(rows=array, content=array, n_rows=n_rows)


def _validate(X: Any, **options: Any) -> Any:
    """Check a table as `validate_data` would, but for an estimator that is not there."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf" and X.size:
        return X  # `check_array` would find the same, much later
    return validation.check_array(X, estimator="icscm", input_name="X", **options)


def _read_frame(frame: nw.DataFrame[Any]) -> ParsedTable:
    """Read a frame as one array if all of its columns are numbers, else column by column.

    One array is quicker. But whole numbers beside floats become floats, too, and if any is too
    large for that, columns are read one by one: it may be an identifier, which is dropped later.
    """
    types = frame.schema
    for what, number in (("sample", len(frame)), ("feature", len(types))):
        if number == 0:
            raise IcscmError(f"Found array with 0 {what}(s): X needs at least 1 {what}")

    content: Array | list[Column] | None = None
    if all(dtype.is_integer() or dtype.is_float() for dtype in types.values()):
        with suppress(RoundedError):
            content = _read_numbers(_find_plain_array(frame), _validate, types)
    if content is None:
        content = [columns.read_series(series) for series in frame.iter_columns()]

    has_names = all(isinstance(name, str) for name in types)
    return ParsedTable(
        rows=frame.to_native(),
        content=content,
        n_rows=len(frame),
        names=tuple(types) if has_names else None,
        whole=np.array([dtype.is_integer() for dtype in types.values()]),
    )


def _find_plain_array(frame: nw.DataFrame[Any]) -> Any:
    """Return the numbers of a frame as an array if its library makes one, else the frame itself."""
    table = frame.to_native()
    if not hasattr(table, "to_numpy"):
        return table
    array = table.to_numpy()
    return array if array.dtype.kind in "iuf" else table


def check_table(estimator: Any, X: Any) -> Array:
    """Return X as a finite numeric array; sets the estimator's number and names of columns."""
    types = None
    if not isinstance(X, np.ndarray) and nw.dependencies.is_into_dataframe(X):
        types = nw.from_native(X).schema  # once: of very many columns it takes long
        _reject_text(types)
    table = _read_numbers(X, partial(validation.validate_data, estimator), types)
    if not are_finite(table):
        reject_infinity(table, columns.find_names(X), allow_missing=False)
    return table


def _reject_text(types: nw.Schema) -> None:
    """Raise for columns of a frame that are neither numbers nor booleans."""
    others = [
        f"{name!r} ({dtype})"
        for name, dtype in types.items()
        if not (dtype.is_numeric() or dtype == nw.Boolean)
    ]
    if others:
        why = f"X has columns that are neither numbers nor booleans: {shorten_list(others)}"
        raise HoldsTextError(f"{why}; encode them as numbers or drop them")


# --- arrays of numbers ----------------------------------------------------------------------------


def _read_numbers(X: Any, validate: Validate, types: nw.Schema | None = None) -> Array:
    """Read X as the engine needs it: booleans as bytes, floats of 32 or 64 bits, native byte order.

    If any column holds floats, integers become floats. Of a frame, whose `types` are given, those
    that would be rounded are rejected.
    """
    table = _as_numbers(X, validate)
    if not table.dtype.isnative:
        table = table.astype(table.dtype.newbyteorder("="))
    if types is not None and table.dtype.kind == "f":
        _reject_rounded(table, types)
    return columns.as_plain_numbers(table)


def _as_numbers(X: Any, validate: Validate) -> Array:
    """Return X as an array of numbers or booleans; raises if it holds anything else.

    `validate` is scikit-learn's, whose errors are told apart by words in them.
    """
    try:
        table: Array = validate(X, dtype="numeric", ensure_all_finite=False)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise IcscmError(_UNEVEN) from None
        if "string" not in str(error):
            raise
        raise _make_text_error(np.asarray(X, dtype=object)) from None
    if table.dtype.kind == "O":  # numbers such as decimals, or missing; None becomes NaN
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise IcscmError(
                "X holds objects that float64 cannot hold; give plain numbers"
            ) from None
    if table.dtype.kind not in "biuf":
        raise IcscmError(f"X is of type {table.dtype}; give numbers or booleans")
    return table


def _make_text_error(objects: Array) -> HoldsTextError:
    """Make the error that names the columns with text."""
    texts = [
        position
        for position in range(objects.shape[1])
        if not all(_is_number(value) for value in objects[:, position])
    ]
    return HoldsTextError(
        f"X holds text in {name_columns(texts, None)}; encode it as numbers or drop it"
    )


def _is_number(value: Any) -> bool:
    """Tell whether a value can be read as a number, or is missing."""
    try:
        float(0 if value is None else value)
    except ValueError:
        return False
    return True


def _reject_rounded(table: Array, types: nw.Schema) -> None:
    """Raise for columns of whole numbers that became floats and were rounded."""
    whole = [position for position, dtype in enumerate(types.values()) if dtype.is_integer()]
    large = [j for j in whole if (np.abs(table[:, j]) >= LARGEST_EXACT).any()]  # NaN is not
    if large:
        raise make_rounded_error(name_columns(large, list(types)))


def make_dense(matrix: Any, rows: Array | None = None) -> Array:
    """Return a sparse matrix as an array, if there is room for it.

    `rows` are those that will count: they are copied, and each cell takes a byte more when binned.
    """
    n_rows = matrix.shape[0] if rows is None else matrix.shape[0] + len(rows)
    n_bytes = n_rows * matrix.shape[1] * (matrix.dtype.itemsize + 1)
    n_free = _count_free_bytes()
    if n_bytes > n_free:
        raise IcscmError(
            "X is sparse and holds values other than 0 and 1: as the dense table that rules need "
            f"it would take {n_bytes / 1e9:,.1f} GB, and {n_free / 1e9:,.1f} GB are free; binarize "
            "it, or give fewer columns"
        )
    return np.asarray(matrix.toarray())


def _count_free_bytes() -> float:
    """Return the memory that is available; no limit where that is unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return np.inf
    kilobytes = dict(line.split(":", 1) for line in lines)
    return 1024.0 * int(kilobytes["MemAvailable"].split()[0])


# --- rows to predict ------------------------------------------------------------------------------


def check_rows(
    X: Any,
    rules: Sequence[ColumnRule],
    validate: Validate,
    names: Sequence[str] | None = None,
    *,
    allow_missing: bool,
) -> Any:
    """Return X as the rules of a fitted model can read it: a frame as it is, else an array.

    A frame needs the columns that rules use, by name, in any order; `names` are those of all
    columns, where they are known. Without names, at fitting or now, columns go by position, and
    `validate` checks their number. Infinity raises, as it does at fitting; so do missing values
    unless `allow_missing`.
    """
    rows = _read_rows(X, rules, validate, names)
    if allow_missing and isinstance(rows, np.ndarray) and rows.dtype.kind != "O":
        return rows  # `_read_array` has seen that all of it is finite

    rule_of_column = {rule.feature: rule for rule in rules}
    for feature, rule in rule_of_column.items():
        column = columns.read_column(rows, rule.column, rule.name)
        if isinstance(column, Numbers) and not are_finite(column.values):
            reject_infinity(column.values[:, np.newaxis], [feature])
        if column.missing is not None and not allow_missing:
            n_missing = int(column.missing.sum())
            raise IcscmError(
                Parameter("X"),
                f" is missing {n_missing:,} values in column {feature!r}",
                "; fill them in or drop these rows",
            )
    return rows


def _read_rows(
    X: Any, rules: Sequence[ColumnRule], validate: Validate, names: Sequence[str] | None
) -> Any:
    """Read rows to predict: a frame as it is, a sparse matrix, values on a card, or an array."""
    if isinstance(X, columns.StoredTable):
        goes_by_position = X.names is None or not _list_known_names(rules, names)
        if goes_by_position:
            validate(X, skip_check_array=True)  # the number of columns must be that at fitting
        return X
    if columns.is_frame(X):
        frame = columns.open_frame(X).to_native()
        if _is_matched_by_name(frame, rules, names):
            return frame
        _check_positions(frame)
        if not _list_known_names(rules, names):
            validate(frame, skip_check_array=True)
            return frame
        return _read_array(frame, rules, validate, names)
    if is_sparse(X):
        return validate(X, accept_sparse=_SPARSE_FORMATS, ensure_all_finite=False)
    if columns.is_on_card(X):
        on_card = columns.open_on_card(X)  # columns come here one by one
        if on_card.ndim != 2:
            raise IcscmError(f"X is of shape {on_card.shape}; give rows and columns")
        validate(on_card, skip_check_array=True)
        return on_card
    return _read_array(X, rules, validate, names)


def _list_known_names(rules: Sequence[ColumnRule], names: Sequence[str] | None) -> set[str]:
    """Return the names of columns at fitting.

    A model learned from a packed store knows the names in its rules only.
    """
    known = [rule.feature for rule in rules] if names is None else names
    return {name for name in known if isinstance(name, str)}


def _is_matched_by_name(
    frame: Any, rules: Sequence[ColumnRule], names: Sequence[str] | None
) -> bool:
    """Whether the columns of a frame are those of the model by name; raises if some lack.

    If no name is known, columns go by position. If any is, then names are meant, and a column that
    a rule uses must not lack.
    """
    used = dict.fromkeys(rule.feature for rule in rules)
    known = _list_known_names(rules, names)
    present = {*columns.list_names(frame)}
    needs_no_column = bool(known) and not used
    if present.isdisjoint(known) and not needs_no_column:
        return False

    absent = [repr(name) for name in used if name not in present]
    if absent:
        noun = "column" if len(absent) == 1 else "columns"
        raise IcscmError(
            f"X lacks {noun} {shorten_list(absent)}, which the model uses; columns are matched by "
            "name, in any order"
        )
    return True


def _read_array(
    X: Any, rules: Sequence[ColumnRule], validate: Validate, names: Sequence[str] | None
) -> Array:
    """Read rows as an array of finite numbers, or of objects where rules are on categories."""
    has_categories = any(rule.compares_levels for rule in rules)
    is_plain = getattr(X, "dtype", np.dtype("O")).kind in "biuf"
    if is_plain or not has_categories:  # to a rule on a category, booleans are no numbers
        with suppress(HoldsTextError):
            table = _read_numbers(X, validate)
            if not are_finite(table):
                reject_infinity(table, names)
            return table
    objects: Array = validate(_make_objects(X), dtype=None, ensure_all_finite=False)
    return objects


def _make_objects(X: Any) -> Array:
    """Return rows of several kinds of values as an array."""
    if isinstance(X, list | tuple):
        lengths = {len(row) for row in X if isinstance(row, Sized)}
        if len(lengths) > 1:
            raise IcscmError(_UNEVEN)
    return np.array(X, dtype=object)


def _check_positions(X: Any) -> None:
    """Raise for numbered columns out of order: without names they would be confused silently."""
    names = [str(name) for name in getattr(X, "columns", ())]
    ordered = [str(j) for j in range(len(names))]
    if {*names} == {*ordered} and names != ordered:
        raise IcscmError(
            f"X's columns are numbered but not in order ({shorten_list(names)}), but the model "
            "uses their positions; put them in order"
        )
