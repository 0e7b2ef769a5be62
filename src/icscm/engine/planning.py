"""What a survey says about the columns: kinds, suspicion, thresholds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icscm._constants import (
    COPY_ROWS,
    IDENTIFIER_ROWS,
    IDENTIFIER_SHARE,
    MAX_NARROW_BINS,
    MAX_SURVEYED_LEVELS,
    QUANTILE_SAMPLE,
)
from icscm._types import Array
from icscm.engine.binning import Binning, choose_edges, extend_edges
from icscm.engine.survey import DATE, ColumnSurvey, Survey, name_column
from icscm.exceptions import IcscmError, Parameter
from icscm.tables.coding import (
    CONSTANT,
    DATES,
    ENVIRONMENT_COPY,
    IDENTIFIER,
    LABEL_COPY,
    CodedTable,
    LevelBins,
    choose_levels,
)
from icscm.tables.columns import sort_key
from icscm.tables.suspicion import is_handed_out


def describe_survey(survey: Survey, names: tuple[str, ...] | None = None) -> CodedTable:
    """The table as it would be in memory, but without its rows.

    Dates are left out already, and whole numbers that float64 would round: those can only be
    identifiers, else they are an error.
    """
    most_levels = None if survey.most_values is None else survey.most_values - 1
    levels: dict[int, LevelBins] = {}
    left_out: dict[int, str] = {}
    for j, column in enumerate(survey.columns):
        if column.kind == DATE:
            left_out[j] = DATES
        elif column.is_category:
            levels[j] = _choose_level_bins(column, most_levels)
        elif column.is_large and not survey.is_exact:
            _check_numbering(column, survey.n_rows, name_column(names, j))
            left_out[j] = IDENTIFIER
    has_missing = np.array([column.n_missing > 0 for column in survey.columns], dtype=np.bool_)
    values = np.empty((0, len(survey.columns)), dtype=survey.dtype)
    return CodedTable(values, names, levels, has_missing, left_out)


def _choose_level_bins(column: ColumnSurvey, most_levels: int | None) -> LevelBins:
    if column.levels is None:
        return LevelBins(())  # too many, see `find_suspicious`
    ordered = sorted(column.levels, key=sort_key)
    kept, pool = choose_levels(np.array([column.levels[k] for k in ordered]), most_levels)
    return LevelBins(tuple(ordered[i] for i in kept), tuple(ordered[i] for i in pool))


def _check_numbering(column: ColumnSurvey, n_rows: int, name: str) -> None:
    if not _is_numbering(column, n_rows):
        raise IcscmError(
            Parameter("X"),
            f" holds integers beyond 2**53 in column {name}, which would be rounded beside "
            "columns of other kinds; rescale them, leave them out, or give them as text",
        )


def _is_numbering(column: ColumnSurvey, n_rows: int) -> bool:
    """Whether whole numbers look like an identifier, as `columns.is_numbering`."""
    if column.samples is None or column.lowest is None or column.highest is None:
        return False
    n_present = n_rows - column.n_missing
    n_repeated = n_present - column.samples.estimate_distinct(n_present)
    return is_handed_out(n_present, n_repeated, float(column.lowest), float(column.highest))


def find_suspicious(survey: Survey, table: CodedTable) -> dict[int, str]:
    """Columns that no rule should be made of, and why; those left out already included.

    `table` is what `describe_survey` made of the survey. As `columns.find_suspicious`.
    """
    found = dict(table.left_out)
    for number, reason in enumerate((LABEL_COPY, ENVIRONMENT_COPY)):
        for j in _find_copies(survey, table, number):
            found.setdefault(j, reason)
    for j, column in enumerate(survey.columns):
        if j not in found and _is_constant(column):
            found[j] = CONSTANT
        elif j not in found and _is_identifier(column, survey.n_rows):
            found[j] = IDENTIFIER
    return found


def _find_copies(survey: Survey, table: CodedTable, number: int) -> list[int]:
    groups = (survey.labels, survey.environments)[number]
    if len(groups) < 2 or survey.n_rows < COPY_ROWS:
        return []
    pooled = {j for j, bins in table.levels.items() if bins.pool}
    copied = [(each.label_values, each.environment_values)[number] for each in survey.columns]
    return [j for j, values in enumerate(copied) if values is not None and j not in pooled]


def _is_constant(column: ColumnSurvey) -> bool:
    values = column.values if column.is_number else column.levels
    if values is None:
        return False
    return len(values) == 0 or (len(values) == 1 and column.n_missing == 0)


def _is_identifier(column: ColumnSurvey, n_rows: int) -> bool:
    if n_rows < IDENTIFIER_ROWS:
        return False
    if column.is_number:
        return _is_numbering(column, n_rows)
    n_present = n_rows - column.n_missing
    n_levels: float = 0 if column.levels is None else len(column.levels)
    if column.levels is None and column.samples is not None:
        n_levels = column.samples.estimate_distinct(n_present)
    return n_levels > IDENTIFIER_SHARE * n_present


def find_sampled(survey: Survey, table: CodedTable) -> list[int]:
    """The columns of many values, whose thresholds come from the sampled rows' values.

    `table` says which columns are left out; so does it in `plan_from_survey`.
    """
    return [
        j
        for j, column in enumerate(survey.columns)
        if column.is_number and column.values is None and j not in table.left_out
    ]


def plan_from_survey(survey: Survey, table: CodedTable, sample: Mapping[int, Array]) -> Binning:
    """The thresholds of all columns.

    `sample` holds, for each of `find_sampled`'s columns, its values in the sampled rows, in any
    order; NaN where missing.
    """
    most = None if survey.most_values is None else survey.most_values - 1
    is_sampled = survey.n_rows > QUANTILE_SAMPLE and bool(find_sampled(survey, table))
    if is_sampled and (most is None or most >= MAX_NARROW_BINS):
        raise IcscmError(
            Parameter("max_thresholds", most),
            f" would need all values of a column at once; use at most {MAX_NARROW_BINS - 1}",
        )
    edges = [
        _choose_column_edges(survey, table, j, sample).astype(survey.dtype)
        for j in range(len(survey.columns))
    ]
    offsets = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in edges], out=offsets[1:])
    return Binning(
        table.names,
        np.concatenate(edges),
        offsets,
        is_sampled,
        table.find_missing(),
        table.levels,
    )


def _choose_column_edges(
    survey: Survey, table: CodedTable, j: int, sample: Mapping[int, Array]
) -> Array:
    column = survey.columns[j]
    if j in table.left_out:
        return np.empty(0)
    if column.is_category:
        _check_kept(column, name_column(table.names, j))
        return np.arange(table.levels[j].n_bins - 1)
    if column.values is not None:
        return np.array(column.values[:-1], dtype=survey.dtype)
    assert survey.most_values is not None  # else `values` are all there are
    return _cut_as_sample(sample[j], column.highest, survey.most_values - 1)


def _cut_as_sample(values: Array, highest: float | None, max_thresholds: int) -> Array:
    """As `ColumnPlan.cut_unknown_as`: the sample may hold few values of a column of many."""
    present = np.sort(values[values == values])
    if len(present) == 0:
        return present
    edges, is_few = choose_edges(present, max_thresholds)
    return extend_edges(edges, present[-1], highest, max_thresholds) if is_few else edges


def _check_kept(column: ColumnSurvey, name: str) -> None:
    if column.levels is None:
        raise IcscmError(
            f"column {name} has more than {MAX_SURVEYED_LEVELS:,} levels, too many to read from "
            "pieces; leave it out, or group its levels"
        )
