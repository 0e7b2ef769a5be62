"""The scan of a node: the best split of each column, and which of them are allowed.

A node is scanned once, whatever columns a tree may not use: those that were rejected
(`icscm.search.columns`), banned (`icscm.search.rate_trees`) or not drawn for a tree of a forest. So
the work is shared out to two classes:

    `SplitFinder`    the best split of each column: once for all trees, whatever they may use
    `SplitScanner`   of these, the best that one tree may use, and the best that it may not

A split sends the rows for which a rule is true one way, all others the other way. It explains a
*deviance* of the outcome, and is *informative* if that is more than chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS, N_REJECTED_KEPT
from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import BinnedColumns, CountCube, Cut
from icscm.engine.leaf_tables import LeafTables, compute_halves
from icscm.search.grow import RejectedSplit, SplitCandidate, SplitScan, TreeSettings
from icscm.search.nodes import Node
from icscm.stats.splits import Rates, find_quantiles, measure_rates

# Why splits on a column are rejected, by what must be homogeneous.
SPLIT_REASONS: Final = {
    "effect": ("unreplicated", "heterogeneous", "reversed"),
    "rate": ("banned", "idle"),
}
# Splits of a node that are kept: the best of so many columns.
_MAX_KEPT: Final = 2**10


# --- the best split of each column -------------------------------------------------


@dataclass(frozen=True)
class ColumnSplits:
    """The best split of each column that has an informative one, the best column first.

    A position in these arrays is that of a column, whose number is `columns[position]`. Of most
    columns only the numbers of the first three arrays are known. The splits themselves are kept of
    the first columns (positions below `len(kept)`), the only ones that a tree is likely to use.

    Attributes
    ----------
    columns : array of int
        The columns.
    n_informative : array of int
        How many splits of each column explain more than chance, those on identical columns
        included.
    deviances : array of float
        What the best split of each explains.
    kept : KeptSplits
        The best splits of the first columns.
    n_candidates : int
        How many splits the node has, informative or not.
    """

    columns: IntArray
    n_informative: IntArray
    deviances: FloatArray
    kept: "KeptSplits"
    n_candidates: int

    def make_candidate(self, position: int) -> SplitCandidate:
        """Make the best split of the column at a position below `len(kept)`."""
        return SplitCandidate(
            cut=self.kept.make_cut(position),
            if_false=self.kept.if_false[position],
            deviance_explained=float(self.deviances[position]),
        )


@dataclass(frozen=True)
class KeptSplits:
    """Splits by their places in the blocks in which they were scanned.

    To make an object of each would take longer than to find them: a node may have thousands.

    Attributes
    ----------
    blocks : list of LeafTables
        The blocks, without counts.
    block_numbers, places : array of int
        The block of each split, and its place there.
    if_false : array of int, (split, outcome, environment)
        The rows for which each rule is false.
    """

    blocks: list[LeafTables]
    block_numbers: IntArray
    places: IntArray
    if_false: CountArray

    def __len__(self) -> int:
        return len(self.places)

    def make_cut(self, number: int) -> Cut:
        """Make the cut of one of the splits."""
        block = self.blocks[self.block_numbers[number]]
        cut: Cut = block.locate(self.places[number])
        return cut


@dataclass(frozen=True)
class MeasuredBlock:
    """All splits on a block of columns, and the deviance that they explain."""

    splits: LeafTables
    rates: Rates

    @property
    def n_candidates(self) -> int:
        """Count the splits that leave enough rows on either side."""
        return self.splits.count(self.rates.pooled >= 0)


@dataclass(frozen=True)
class BestOfBlock:
    """The best informative split of each column of a block that has one.

    Attributes
    ----------
    splits : LeafTables
        All splits of the block.
    places : array of int, (column)
        The places of the best ones among these.
    columns, n_informative, deviances, if_false : array, (column, ..)
        As in `ColumnSplits` and `KeptSplits`.
    """

    splits: LeafTables
    places: IntArray
    columns: IntArray
    n_informative: IntArray
    deviances: FloatArray
    if_false: CountArray


class SplitFinder:
    """Finds the best split of each column, once for each node."""

    def __init__(self, columns: BinnedColumns, settings: TreeSettings) -> None:
        self.columns = columns
        self.settings = settings
        self._splits_of_nodes: dict[Node, ColumnSplits] = {}

    def find(self, node: Node, *, keeps_all: bool = False) -> ColumnSplits:
        """Find the splits of a node, or return them if they are known.

        With `keeps_all` the best split of every column is kept, not only those of the first.
        """
        known = self._splits_of_nodes.get(node)
        if known is not None:
            has_kept_all = len(known.kept) == len(known.columns)
            if has_kept_all or not keeps_all:
                return known

        splits = self._scan(node, max_kept=None if keeps_all else _MAX_KEPT)
        self._splits_of_nodes[node] = splits
        return splits

    def _scan(self, node: Node, *, max_kept: int | None) -> ColumnSplits:
        """Scan all splits of a node."""
        blocks: list[MeasuredBlock] = []
        can_split = node.n_rows >= 2 * self.settings.min_leaf_rows and node.has_both_outcomes
        if can_split:
            blocks = [self._measure(cube, node) for cube in node.count_cubes()]

        # What chance explains depends on how many splits the node has in all its blocks.
        n_candidates = sum(block.n_candidates for block in blocks)
        bounds = self._find_chance_bounds(n_candidates, n_environments=node.counts.shape[1])
        best_of_blocks = [self._find_best(block, bounds) for block in blocks]
        return join_blocks(
            best_of_blocks,
            n_candidates=n_candidates,
            counts_of_node=node.counts,
            max_kept=max_kept,
        )

    def _measure(self, cube: CountCube, node: Node) -> MeasuredBlock:
        """Measure the deviance that the splits on some columns explain."""
        settings = self.settings
        splits = compute_halves(cube, self.columns)
        rates = measure_rates(
            settings.pool(splits.tables), settings.pool(node.counts), settings.min_leaf_rows
        )
        return MeasuredBlock(splits=splits, rates=rates)

    def _find_chance_bounds(self, n_candidates: int, *, n_environments: int) -> FloatArray:
        """Find the deviance that the best split of a node explains by chance.

        By degrees of freedom, and corrected for the number of splits (Bonferroni). A tree of
        homogeneous rates grows again and again, so that the leaves of all its nodes count.
        """
        n_tests = max(n_candidates, 1)
        if self.settings.needs_rates:
            n_tests *= self.settings.max_leaves
        return find_quantiles(CHANCE_LEVEL / n_tests, n_environments) * self.settings.design

    def _find_best(self, block: MeasuredBlock, chance_bounds: FloatArray) -> BestOfBlock:
        """Find the split of each column that explains most, if it explains more than chance.

        That is more over all rows and, unless the tree is a plain one, within environments: the
        latter keeps out columns that only distinguish environments. `chance_bounds` are by degrees
        of freedom.
        """
        splits = block.splits
        rates = block.rates
        explains_overall = rates.pooled > chance_bounds[1]
        explains_within = rates.within > chance_bounds[rates.n_divided]
        is_informative: BoolArray = explains_overall & explains_within

        deviances = np.where(is_informative, rates.pooled.round(DEVIANCE_DECIMALS), -1.0)
        best = splits.find_best(deviances)
        has_informative = is_informative[best]  # by column: if its best split is not, none is
        places = best[has_informative]

        columns: IntArray = splits.columns[has_informative]
        n_by_column = is_informative.reshape(len(splits.columns), -1).sum(axis=1)
        n_informative: IntArray = n_by_column[has_informative]
        return BestOfBlock(
            splits=splits,
            places=places,
            columns=columns,
            n_informative=n_informative * self.columns.count_copies(columns),
            deviances=rates.pooled[places],
            if_false=splits.tables[places],
        )


def join_blocks(
    blocks: list[BestOfBlock],
    *,
    n_candidates: int,
    counts_of_node: CountArray,
    max_kept: int | None,
) -> ColumnSplits:
    """Join the columns of all blocks, and sort them by the deviance that they explain.

    The counts of the node only say what an array of no counts looks like, should there be no block.
    """
    no_integers = np.empty(0, dtype=np.int64)
    no_counts = counts_of_node[np.newaxis][:0]
    columns = np.concatenate([no_integers, *(block.columns for block in blocks)])
    n_informative = np.concatenate([no_integers, *(block.n_informative for block in blocks)])
    deviances = np.concatenate([np.empty(0), *(block.deviances for block in blocks)])
    places = np.concatenate([no_integers, *(block.places for block in blocks)])
    if_false = np.concatenate([no_counts, *(block.if_false for block in blocks)])
    n_columns_of_blocks = [len(block.columns) for block in blocks]
    block_numbers = np.repeat(np.arange(len(blocks)), n_columns_of_blocks)

    # The most deviance first. It is rounded, so that the order of a sum decides nothing.
    order = np.lexsort((columns, -deviances.round(DEVIANCE_DECIMALS)))
    first = order[:max_kept]
    return ColumnSplits(
        columns=columns[order],
        n_informative=n_informative[order],
        deviances=deviances[order],
        kept=KeptSplits(
            blocks=[remove_counts(block.splits) for block in blocks],
            block_numbers=block_numbers[first],
            places=places[first],
            if_false=if_false[first],
        ),
        n_candidates=n_candidates,
    )


def remove_counts(splits: LeafTables) -> LeafTables:
    """Return splits without their counts, which take nearly all of their memory."""
    no_counts = np.empty((len(splits.tables), 0, 0), dtype=np.int64)
    return replace(splits, tables=no_counts)


# --- the best allowed split -------------------------------------------------------


class SplitScanner:
    """Scans the nodes of a tree for the split that explains most, of those that are allowed.

    Parameters
    ----------
    finder : SplitFinder
        Finds the best split of each column.
    rejected : mapping of int to str
        The columns that may not be used, and why.
    allowed_columns : array of int, optional
        The columns that may be used; by default all.
    records_rejections : bool
        Whether rejected splits are counted, and the best of them described.
    """

    def __init__(
        self,
        finder: SplitFinder,
        *,
        rejected: Mapping[int, str] | None = None,
        allowed_columns: IntArray | None = None,
        records_rejections: bool = True,
    ) -> None:
        self._finder = finder
        self._reasons = rejected or {}
        self._allowed_columns = allowed_columns
        self._records_rejections = records_rejections

    def __call__(self, node: Node) -> SplitScan:
        """Find the best allowed split of a node."""
        splits = self._finder.find(node)
        is_rejected: BoolArray = np.isin(splits.columns, [*self._reasons])
        is_allowed = ~is_rejected
        if self._allowed_columns is not None:
            is_allowed &= np.isin(splits.columns, self._allowed_columns)

        best = None
        if is_allowed.any():
            first = int(is_allowed.argmax())  # columns are sorted, the best first
            if first >= len(splits.kept):
                splits = self._finder.find(node, keeps_all=True)
            best = splits.make_candidate(first)

        if not self._records_rejections:
            return SplitScan(best=best, n_candidates=splits.n_candidates)
        rejected = np.flatnonzero(is_rejected)  # positions in `splits`, the best first
        return SplitScan(
            best=best,
            n_candidates=splits.n_candidates,
            n_rejected=self._count_by_reason(splits, rejected),
            rejected=self._list_rejected(splits, rejected),
        )

    def _count_by_reason(self, splits: ColumnSplits, rejected: IntArray) -> dict[str, int]:
        """Count the informative splits of rejected columns, by reason; also reasons that none has.

        `rejected` are the positions of these columns in `splits`.
        """
        settings = self._finder.settings
        reasons = SPLIT_REASONS["rate" if settings.needs_rates else "effect"]
        n_by_reason = dict.fromkeys(reasons, 0)
        for position in rejected.tolist():
            reason = self._reasons[int(splits.columns[position])]
            n_by_reason[reason] += int(splits.n_informative[position])
        return n_by_reason

    def _list_rejected(self, splits: ColumnSplits, rejected: IntArray) -> list[RejectedSplit]:
        """List the best splits on rejected columns, each with the reason, for the trace.

        The best come first, `N_REJECTED_KEPT` at most. `rejected` are positions in `splits`, whose
        columns are sorted, the best first; it keeps a whole split of the first columns only:

            position        0   1   2   3   4   5
            is kept         yes yes yes yes no  no
            rejected            1       3       5
            listed              1       3            5 explains no more than those that are kept

        Of identical columns `splits` has the first. Its split is listed for each of them.
        """
        columns = self._finder.columns
        rejections: list[RejectedSplit] = []

        n_kept = len(splits.kept)
        kept_positions = rejected[rejected < n_kept]
        for position in kept_positions[:N_REJECTED_KEPT].tolist():
            split = splits.make_candidate(position)
            reason = self._reasons[split.cut.column]
            for column in columns.list_copies(split.cut.column, limit=N_REJECTED_KEPT):
                cut_of_copy: Cut = split.cut._replace(column=column)
                split_of_copy = replace(split, cut=cut_of_copy)
                rejections.append(RejectedSplit(candidate=split_of_copy, reason=reason))

        # Equal deviances are listed by column: a copy may come after a column of lower number.
        rejections.sort(key=lambda rejection: rejection.candidate.rank)
        return rejections[:N_REJECTED_KEPT]
