"""What a survey says about the columns: kinds, suspicion, thresholds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icscm._constants import COPY_ROWS, MAX_NARROW_BINS, MAX_SURVEYED_LEVELS
from icscm._types import Array
from icscm.engine.binning import Binning, choose_edges, extend_edges, make_binning
from icscm.engine.sampling import is_sampled
from icscm.engine.survey import DATE, ColumnSurvey, Survey
from icscm.exceptions import IcscmError, Parameter
from icscm.tables.coded import (
    DATES,
    ENVIRONMENT_COPY,
    IDENTIFIER,
    LABEL_COPY,
    CodedTable,
    LevelBins,
    choose_levels,
)
from icscm.tables.column_checks import judge_columns
from icscm.tables.columns import sort_key
from icscm.tables.errors import make_rounded_error, name_columns


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
            if not column.gather_facts(survey.n_rows).is_numbering():
                raise make_rounded_error(name_columns([j], names))
            left_out[j] = IDENTIFIER
    has_missing = np.array([column.n_missing > 0 for column in survey.columns], dtype=np.bool_)
    values = np.empty((0, len(survey.columns)), dtype=survey.dtype)
    return CodedTable(values, names, levels, has_missing, left_out)


def _choose_level_bins(column: ColumnSurvey, most_levels: int | None) -> LevelBins:
    n_rows = column.values or {}  # nothing where they are too many, see `_choose_edges`
    ordered = sorted(n_rows, key=sort_key)
    kept, pool = choose_levels(np.array([n_rows[level] for level in ordered]), most_levels)
    return LevelBins(tuple(ordered[i] for i in kept), tuple(ordered[i] for i in pool))


def judge_survey(survey: Survey, table: CodedTable) -> dict[int, str]:
    """Columns that no rule should be made of, and why, as `column_checks.find_suspicious`.

    `table` is what `describe_survey` made of the survey.
    """
    is_large = survey.n_rows >= COPY_ROWS
    facts = {}
    for j, column in enumerate(survey.columns):
        if j in table.left_out:
            continue
        copied = None
        if is_large and not (j in table.levels and table.levels[j].pool):
            if column.label_values is not None and len(survey.labels) > 1:
                copied = LABEL_COPY
            elif column.environment_values is not None and len(survey.environments) > 1:
                copied = ENVIRONMENT_COPY
        facts[j] = column.gather_facts(survey.n_rows)._replace(copied=copied)
    return judge_columns(facts, table.left_out)


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
    any_sampled = is_sampled(survey.n_rows) and bool(find_sampled(survey, table))
    if any_sampled and (most is None or most >= MAX_NARROW_BINS):
        why = f" would need all values of a column at once; use at most {MAX_NARROW_BINS - 1}"
        raise IcscmError(Parameter("max_thresholds", most), why)
    every = range(len(survey.columns))
    edges = [_choose_edges(survey, table, j, sample).astype(survey.dtype) for j in every]
    return make_binning(edges, table.names, table.find_missing(), table.levels, any_sampled)


def _choose_edges(survey: Survey, table: CodedTable, j: int, sample: Mapping[int, Array]) -> Array:
    column = survey.columns[j]
    if j in table.left_out:
        return np.empty(0)
    if column.is_category:
        if column.values is None:
            raise IcscmError(
                f"{name_columns([j], table.names)} has more than {MAX_SURVEYED_LEVELS:,} levels, "
                "too many to read from pieces; leave it out, or group its levels"
            )
        return np.arange(table.levels[j].n_bins - 1)
    if column.values is not None:
        return np.array(sorted(column.values)[:-1], dtype=survey.dtype)
    assert survey.most_values is not None  # else `values` are all there are
    most, present = survey.most_values - 1, np.sort(sample[j][sample[j] == sample[j]])
    edges, is_few = choose_edges(present, most)
    if is_few and len(present):  # of a column of many: as `ColumnPlan.cut_unknown_as`
        edges = extend_edges(edges, present[-1], column.highest, most)
    return edges
