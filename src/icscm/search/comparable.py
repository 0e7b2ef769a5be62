"""Columns whose effects can be compared: a source without those that determine the environment.

A search sees a source through `ComparableColumns`, and so never counts a rule on such a column:

    source   --count_cubes-->   all columns   --ComparableColumns-->   those that can be compared

`icscm.stats.giveaways` says which columns determine the environment. That is found in the counts of
all rows, which every search needs first, so that it takes no other pass over the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from icscm._types import CountArray, IntArray
from icscm.engine.counts import MISSINGNESS, BinnedColumns, CountCube, Cut, RowSource, RulePath
from icscm.formatting import count, format_name, shorten_list
from icscm.search.records import RejectedColumn
from icscm.stats.giveaways import DETERMINES, find_giveaways
from icscm.stats.replication import find_lone_environment

# Columns that the trace names, of perhaps millions.
MAX_NAMED: Final = 100


class ComparableColumns:
    """Counts the rows of a source by its columns, but for those that determine the environment."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        # Of each block of columns the positions of those that are kept; None for all of them.
        # Which these are is not known before all rows were counted.
        self._kept_of_blocks: list[IntArray | None] | None = None
        self._determining: list[int] = []
        self._nearly: list[int] = []

    @property
    def columns(self) -> BinnedColumns:
        """What the bins of all columns mean."""
        return self._source.columns

    @property
    def rejects_any(self) -> bool:
        """Whether any column is known to determine the environment."""
        return bool(self._determining)

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment)."""
        return self._source.count_rows(path)

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment)."""
        if not path:
            return self._count_all_rows()
        return self._count_path(path)

    def _count_path(self, path: RulePath) -> Iterator[CountCube]:
        """Count the rows of a path, without the columns that all rows show to be rejected."""
        if self._kept_of_blocks is None:
            for _ in self._count_all_rows():
                pass
        assert self._kept_of_blocks is not None
        cubes = self._source.count_cubes(path)
        for cube, kept in zip(cubes, self._kept_of_blocks, strict=True):
            if kept is None or len(kept):
                yield select_columns(cube, kept)

    def _count_all_rows(self) -> Iterator[CountCube]:
        """Count all rows, and find on the way which columns determine the environment."""
        kept_of_blocks: list[IntArray | None] = []
        determining: list[int] = []
        nearly: list[int] = []
        for cube in self._source.count_cubes():
            giveaways = find_giveaways(cube.counts[:, :, 0] + cube.counts[:, :, 1])
            determining += cube.columns[giveaways.is_determining].tolist()
            nearly += cube.columns[giveaways.is_nearly].tolist()
            kept = None
            if giveaways.is_determining.any():
                kept = np.flatnonzero(~giveaways.is_determining)
            kept_of_blocks.append(kept)
            if kept is None or len(kept):
                yield select_columns(cube, kept)

        self._kept_of_blocks = kept_of_blocks
        self._determining = sorted(determining)
        self._nearly = sorted(nearly)

    # --- what the trace has -----------------------------------------------------------------------

    def list_rejected(self) -> list[int]:
        """List the columns that determine the environment, and columns identical to them."""
        rejected: list[int] = []
        for column in self._determining:
            rejected += self.columns.list_copies(column)
        return sorted(rejected)

    def list_records(self) -> tuple[RejectedColumn, ...]:
        """List what the trace has of the rejected columns and of identical ones: the first."""
        columns = self._list_with_copies(self._determining)
        return tuple(
            make_determining_record(self.columns, column) for column in columns[:MAX_NAMED]
        )

    def list_notes(self) -> list[str]:
        """List remarks on columns that the trace does not name, and on those nearly rejected."""
        notes = []
        n_rejected = int(self.columns.count_copies(np.array(self._determining, np.int64)).sum())
        if n_rejected > MAX_NAMED:
            notes.append(
                f"{count(n_rejected, 'column')} determine the environment and are rejected; "
                f"{MAX_NAMED} of them are named."
            )
        if self._nearly:
            names = [name_column(self.columns, column) for column in self._nearly[:MAX_NAMED]]
            notes.append(describe_nearly(names))
        return notes

    def _list_with_copies(self, columns: list[int]) -> list[int]:
        """List columns with those that are identical to them, the first of all."""
        copies: list[int] = []
        for column in columns[:MAX_NAMED]:
            copies += self.columns.list_copies(column, MAX_NAMED)
        return sorted(copies)


def make_comparable(source: RowSource, *, needs_replication: bool) -> ComparableColumns | None:
    """Make the source without the columns that determine the environment; None where all count.

    All count where nothing must be replicated, as in the paper, and where a single environment has
    nearly all information on the outcome: a cause of rare cases varies only where cases are.
    """
    if not needs_replication or len(source.environments) < 2:
        return None
    if find_lone_environment(source.count_rows()) is not None:
        return None
    return ComparableColumns(source)


def select_columns(cube: CountCube, kept: IntArray | None) -> CountCube:
    """Return the columns of a cube at these positions; all of them for None."""
    if kept is None:
        return cube
    return replace(cube, columns=cube.columns[kept], counts=cube.counts[kept])


def make_determining_record(columns: BinnedColumns, column: int) -> RejectedColumn:
    """Make the record of a column that determines the environment, with the first of its rules."""
    layout = columns.find_layout(column)
    n_bins_of_values = int(columns.count_bins(np.array([column]))[0]) - layout.has_missing
    # a column of a single value is cut where that is missing
    cut = Cut(column, 0 if n_bins_of_values > 1 else MISSINGNESS, negated=False)
    return RejectedColumn(rule=columns.make_rule(cut), reason=DETERMINES, round=0)


def name_column(columns: BinnedColumns, column: int) -> str:
    """Return the name of a column, as rules on it have it."""
    return format_name(make_determining_record(columns, column).rule.feature)


def describe_determining(names: Sequence[str]) -> str:
    """Return the sentence on columns that were rejected since they determine the environment."""
    if len(names) == 1:
        return (
            f"Rejected: {names[0]} {DETERMINES}, so that there is nothing to compare its effect "
            "with."
        )
    return (
        f"Rejected: {shorten_list(names)} each determine the environment, so that there is nothing "
        "to compare their effects with."
    )


def describe_nearly(names: list[str]) -> str:
    """Return the sentence on columns from which the environment can nearly be told."""
    return (
        f"The environment can nearly be told from {shorten_list(names)} (Cramer's V above 0.9): "
        "there is little to compare their effects with."
    )
