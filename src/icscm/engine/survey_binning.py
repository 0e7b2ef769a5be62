"""Thresholds of a table that was read in pieces, from its survey.

    Survey --describe_survey--> table without rows --.
                                                      --plan_from_survey--> Binning
    values of the sampled rows ----------------------'

With the same rows in the sample, the thresholds are those that `coding.encode` chooses for the
whole table in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from icscm._constants import COPY_ROWS, MAX_NARROW_BINS, MAX_SURVEYED_LEVELS
from icscm._types import Array
from icscm.engine.binning import Binning, Extremes, choose_edges, extend_edges, make_binning
from icscm.engine.sampling import is_sampled
from icscm.engine.survey import DATE, ColumnSurvey, Survey
from icscm.exceptions import IcscmError, Parameter
from icscm.tables import coded, suspicion
from icscm.tables.coded import CodedTable, LevelBins
from icscm.tables.columns import sort_key
from icscm.tables.errors import make_rounded_error, name_columns


def describe_survey(survey: Survey, names: tuple[str, ...] | None = None) -> CodedTable:
    """Make the table as it would be in memory, but without its rows.

    Dates and durations are dropped already, and whole numbers that float64 would round: those can
    only be identifiers, else they are an error.
    """
    levels: dict[int, LevelBins] = {}
    dropped: dict[int, str] = {}
    for j, column in enumerate(survey.columns):
        if column.kind == DATE:
            dropped[j] = suspicion.DATES
        elif column.is_category:
            levels[j] = _choose_level_bins(column, survey.max_thresholds)
            if not column.is_declared and coded.are_durations(levels[j]):
                dropped[j] = suspicion.DATES
        elif column.is_large and not survey.is_exact:
            if not column.gather_facts(survey.n_rows).is_numbering():
                raise make_rounded_error(name_columns([j], names))
            dropped[j] = suspicion.IDENTIFIER
    has_missing = np.array([column.n_missing > 0 for column in survey.columns], dtype=np.bool_)
    no_rows = np.empty((0, len(survey.columns)), dtype=survey.dtype)
    return CodedTable(no_rows, names, levels, has_missing, dropped)


def _choose_level_bins(column: ColumnSurvey, max_levels: int | None) -> LevelBins:
    """Choose the levels of a category that have a bin of their own, and those that share one."""
    # none where they are too many; such a column is an identifier, or an error of `_cut_column`
    n_rows_of_level = column.values or {}
    levels = sorted(n_rows_of_level, key=sort_key)
    n_rows = np.array([n_rows_of_level[level] for level in levels])
    kept, pooled = coded.choose_levels(n_rows, max_levels)
    return LevelBins(
        levels=tuple(levels[number] for number in kept),
        pool=tuple(levels[number] for number in pooled),
    )


def find_empty_surveyed(survey: Survey, table: CodedTable) -> list[int]:
    """Find the columns without any value, as `suspicion.find_empty`."""
    return [
        j
        for j, column in enumerate(survey.columns)
        if column.n_missing == survey.n_rows and j not in table.dropped
    ]


def find_suspicious_surveyed(survey: Survey, table: CodedTable) -> dict[int, str]:
    """Find the columns that no rule should be made of, and why, as `suspicion.find_suspicious`.

    `table` is what `describe_survey` made of the survey.
    """
    facts = {}
    for j, column in enumerate(survey.columns):
        if j in table.dropped:
            continue
        facts_of_column = column.gather_facts(survey.n_rows)
        # levels that share a bin cannot be told apart, so they make no copy
        is_pooled = j in table.levels and len(table.levels[j].pool) > 0
        if survey.n_rows >= COPY_ROWS and not is_pooled:
            facts_of_column = replace(facts_of_column, copied=_find_copied(survey, column))
        facts[j] = facts_of_column
    return suspicion.find_reasons(facts, table.dropped)


def _find_copied(survey: Survey, column: ColumnSurvey) -> str | None:
    """Return why a column is a copy, if it is one; with one group, any constant would be."""
    if column.outcome_copy is not None and len(survey.labels) > 1:
        return suspicion.LABEL_COPY
    if column.environment_copy is not None and len(survey.environments) > 1:
        return suspicion.ENVIRONMENT_COPY
    return None


def find_sampled(survey: Survey, table: CodedTable) -> list[int]:
    """Find the columns of many values, whose thresholds come from the sampled rows' values."""
    return [
        j
        for j, column in enumerate(survey.columns)
        if column.is_number and column.values is None and j not in table.dropped
    ]


def plan_from_survey(survey: Survey, table: CodedTable, sample: Mapping[int, Array]) -> Binning:
    """Choose the thresholds of all columns but those that the table dropped.

    `sample` holds, for each of `find_sampled`'s columns, its values in the sampled rows, in any
    order; NaN where missing.
    """
    any_sampled = is_sampled(survey.n_rows) and len(find_sampled(survey, table)) > 0
    max_thresholds = survey.max_thresholds
    if any_sampled and (max_thresholds is None or max_thresholds >= MAX_NARROW_BINS):
        why = f" would need all values of a column at once; use at most {MAX_NARROW_BINS - 1}"
        raise IcscmError(Parameter("max_thresholds", max_thresholds), why)

    cuts = [_cut_column(survey, table, column=j, sample=sample) for j in range(len(survey.columns))]
    return make_binning(
        [cut.edges.astype(survey.dtype) for cut in cuts],
        table,
        sampled=any_sampled,
        extremes=Extremes(
            lowest=np.array([cut.lowest for cut in cuts], dtype=np.float64),
            highest=np.array([cut.highest for cut in cuts], dtype=np.float64),
        ),
    )


@dataclass(frozen=True, eq=False)
class _CutColumn:
    """The thresholds of a column, and its extremes in the rows that they come from.

    The extremes are NaN where there are none.
    """

    edges: Array
    lowest: float = np.nan
    highest: float = np.nan


def _cut_column(
    survey: Survey, table: CodedTable, *, column: int, sample: Mapping[int, Array]
) -> _CutColumn:
    """Choose the thresholds of one column."""
    if column in table.dropped:
        return _CutColumn(edges=np.empty(0))

    column_survey = survey.columns[column]
    values = column_survey.values
    if column_survey.is_category:
        if values is None:
            raise IcscmError(
                f"{name_columns([column], table.names)} has more than {MAX_SURVEYED_LEVELS:,} "
                "levels, too many to read from pieces; drop it, or group its levels"
            )
        return _CutColumn(edges=np.arange(table.levels[column].n_bins - 1))

    lowest = np.nan if column_survey.lowest is None else column_survey.lowest
    highest = np.nan if column_survey.highest is None else column_survey.highest
    if values is not None:  # all of them
        edges = np.array(sorted(values)[:-1], dtype=survey.dtype)
        return _CutColumn(edges=edges, lowest=lowest, highest=highest)

    sampled_values = sample[column]
    chosen = choose_edges(np.sort(sampled_values)[np.newaxis], survey.max_thresholds)
    if len(sampled_values) == 0:
        return _CutColumn(edges=chosen.edges[0])
    if not chosen.is_complete[0]:
        return _CutColumn(edges=chosen.edges[0], lowest=chosen.lowest[0], highest=chosen.highest[0])
    # few values in the sample, many in the column: as in `ColumnPlan.use_sample`
    edges = extend_edges(
        chosen.edges[0],
        highest_sampled=chosen.highest[0],
        highest=column_survey.highest,
        max_thresholds=survey.max_thresholds,
    )
    return _CutColumn(edges=edges, lowest=lowest, highest=highest)
