"""Columns whose effects can be compared: a source without those that determine the environment.

A search sees a source through `ComparableColumns`, and so never counts a rule on such a column:

    source   --count_cubes-->   all columns   --ComparableColumns-->   those that can be compared

`icscm.stats.giveaways` says which columns determine the environment. That is found in the counts of
all rows, which every search needs first, so that it takes no other pass over the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np

from icscm._types import BoolArray, CountArray
from icscm.engine.counts import MISSINGNESS, BinnedColumns, CountCube, Cut, RowSource, RulePath
from icscm.formatting import count, format_name, shorten_list
from icscm.search.records import RejectedColumn
from icscm.stats.giveaways import DETERMINES, find_giveaways
from icscm.stats.replication import find_lone_environment

# Columns that the trace names, of perhaps millions.
MAX_NAMED: Final = 100


@dataclass(frozen=True, eq=False)
class ExaminedBlock:
    """What the counts of all rows show of a block of columns.

    Attributes
    ----------
    is_kept : array of bool
        Which columns of the block do not determine the environment.
    determining, nearly_determining : list of int
        The columns that determine the environment, and those from which it can nearly be told.
    """

    is_kept: BoolArray
    determining: list[int]
    nearly_determining: list[int]

    @property
    def keeps_any(self) -> bool:
        """Whether any column of the block is kept."""
        return len(self.determining) < len(self.is_kept)

    def select_kept(self, cube: CountCube) -> CountCube:
        """Return the counts of the block's columns that are kept; they are copied only if fewer."""
        if not self.determining:
            return cube
        return replace(cube, columns=cube.columns[self.is_kept], counts=cube.counts[self.is_kept])


@dataclass(frozen=True, eq=False)
class Examination:
    """What the counts of all rows show of all columns, which are listed in ascending order."""

    blocks: list[ExaminedBlock]
    determining: list[int]
    nearly_determining: list[int]


class ComparableColumns:
    """Counts the rows of a source by its columns, but for those that determine the environment.

    Which these are is known once all rows were counted; what is asked of them before is an error.
    """

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self._examination: Examination | None = None

    @property
    def columns(self) -> BinnedColumns:
        """What the bins of all columns mean."""
        return self._source.columns

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment)."""
        return self._source.count_rows(path)

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment)."""
        if not path:
            return self._count_all_rows()
        return self._count_path(path)

    def _count_all_rows(self) -> Iterator[CountCube]:
        """Count all rows, and examine each block of columns on the way to the caller.

        So a search needs no other pass over the rows, and no two blocks are in memory at once.
        """
        blocks = []
        for cube in self._source.count_cubes():
            block = examine_block(cube)
            blocks.append(block)
            if block.keeps_any:
                yield block.select_kept(cube)
        # A caller that does not take all blocks never gets here: columns are then still unknown.
        self._examination = join_blocks(blocks)

    def _count_path(self, path: RulePath) -> Iterator[CountCube]:
        """Count the rows of a path, without the columns that all rows show to be rejected."""
        if not self.is_examined:
            self.examine()
        cubes = self._source.count_cubes(path)
        for cube, block in zip(cubes, self._get_examination().blocks, strict=True):
            if block.keeps_any:
                yield block.select_kept(cube)

    # --- which columns are rejected ---------------------------------------------------------------

    @property
    def is_examined(self) -> bool:
        """Whether all rows were counted, which shows the columns that determine the environment."""
        return self._examination is not None

    def examine(self) -> None:
        """Count all rows only to find which columns determine the environment."""
        blocks = [examine_block(cube) for cube in self._source.count_cubes()]
        self._examination = join_blocks(blocks)

    def _get_examination(self) -> Examination:
        """Return what all rows show; raise if they were not counted."""
        if self._examination is None:
            raise RuntimeError(
                "internal error: which columns determine the environment was asked before all rows "
                "were counted; take all of count_cubes(), or call examine(), first"
            )
        return self._examination

    @property
    def rejects_any(self) -> bool:
        """Whether any column determines the environment."""
        return bool(self._get_examination().determining)

    def list_rejected(self, limit: int | None = None) -> list[int]:
        """List the columns that determine the environment, and columns identical to them.

        With a limit, these are the first. A column comes before those identical to it, so that the
        first of all are among the first of each.
        """
        rejected: list[int] = []
        for column in self._get_examination().determining[:limit]:
            rejected += self.columns.list_copies(column, limit)
        return sorted(rejected)[:limit]

    def list_records(self) -> tuple[RejectedColumn, ...]:
        """List what the trace has of the rejected columns and of identical ones: the first."""
        return tuple(
            make_determining_record(self.columns, column)
            for column in self.list_rejected(MAX_NAMED)
        )

    def list_notes(self) -> list[str]:
        """List remarks on columns that the trace does not name, and on those nearly rejected."""
        examination = self._get_examination()
        notes = []
        determining = np.array(examination.determining, dtype=np.int64)
        n_rejected = int(self.columns.count_copies(determining).sum())
        if n_rejected > MAX_NAMED:
            notes.append(
                f"{count(n_rejected, 'column')} determine the environment and are rejected; "
                f"{MAX_NAMED} of them are named."
            )

        nearly_determining = examination.nearly_determining[:MAX_NAMED]
        if nearly_determining:
            names = [name_column(self.columns, column) for column in nearly_determining]
            notes.append(describe_nearly(names))
        return notes


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


# --- examining ------------------------------------------------------------------------------------


def examine_block(cube: CountCube) -> ExaminedBlock:
    """Find the columns of a block that give the environment away, from its counts of all rows."""
    giveaways = find_giveaways(sum_over_outcomes(cube.counts))
    return ExaminedBlock(
        is_kept=~giveaways.is_determining,
        determining=cube.columns[giveaways.is_determining].tolist(),
        nearly_determining=cube.columns[giveaways.is_nearly_determining].tolist(),
    )


def sum_over_outcomes(counts: CountArray) -> CountArray:
    """Sum counts (column, bin, outcome, environment) over outcomes, of which there are two."""
    negatives = counts[:, :, 0]
    positives = counts[:, :, 1]
    return negatives + positives


def join_blocks(blocks: list[ExaminedBlock]) -> Examination:
    """Join what was found of each block of columns."""
    determining = chain.from_iterable(block.determining for block in blocks)
    nearly_determining = chain.from_iterable(block.nearly_determining for block in blocks)
    return Examination(
        blocks=blocks,
        determining=sorted(determining),
        nearly_determining=sorted(nearly_determining),
    )


# --- describing -----------------------------------------------------------------------------------


def make_determining_record(columns: BinnedColumns, column: int) -> RejectedColumn:
    """Make the record of a column that determines the environment, with the first of its rules."""
    rule = columns.make_rule(find_first_cut(columns, column))
    return RejectedColumn(rule=rule, reason=DETERMINES, round=0)


def find_first_cut(columns: BinnedColumns, column: int) -> Cut:
    """Find the first cut of a column: between its values, or where it is missing if it has one."""
    n_bins = int(columns.count_bins(np.array([column]))[0])
    n_bins_of_values = n_bins - columns.find_layout(column).has_missing
    if n_bins_of_values > 1:
        return Cut(column, cut=0, negated=False)
    return Cut(column, cut=MISSINGNESS, negated=False)


def name_column(columns: BinnedColumns, column: int) -> str:
    """Return the name of a column, as rules on it have it."""
    rule = columns.make_rule(find_first_cut(columns, column))
    return format_name(rule.feature)


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
