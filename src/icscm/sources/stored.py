"""Rows that are all in stores of this process: in memory, in a mapped file, on a graphics card.

What several sources share: they differ in how the stores are made. Codes of columns never change,
and the rows of a path are found on demand, so that a source can be asked anything at any time.

Rows have three orders. They come in the order of their *table*; `position` says where each row of
the table is among the *sorted* rows, which are sorted by outcome and environment; and a source may
have *some* of the sorted rows only, as `Rows` lists them, which is the order of everything that
`StoredRows` returns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine import clusters as cluster_sums
from icscm.engine.counts import (
    BinnedColumns,
    BinnedRule,
    BinnedSplit,
    ClusterPatterns,
    Clusters,
    CountCube,
    MomentCube,
    PatternTable,
    RowCells,
    RulePath,
    Shortlist,
    ShortlistQuery,
    SourceInfo,
    ValueCube,
)
from icscm.engine.moments import make_moments
from icscm.engine.patterns import find_patterns
from icscm.engine.pieces import Piece, RowsOfPaths, find_leaves
from icscm.engine.stores import Rows, Store
from icscm.stats.design_effects import ClusterMoments, ClusterSums


def place(
    stores: Sequence[Store], rows: Rows, columns: BinnedColumns, *, device: str
) -> Sequence[Store]:
    """Put the stores of one source where `device` wants them."""
    from icscm.sources.gpu.card import choose_card  # later: few have a card
    from icscm.sources.gpu.stores import put_on_card

    n_bytes = sum(store.n_bytes for store in stores)
    card = choose_card(device, n_bytes)
    if card is None:
        return stores
    return [put_on_card(card, store, rows, columns) for store in stores]


class StoredSource:
    """Counts rows whose columns are in stores.

    Parameters
    ----------
    info : SourceInfo
        What the counts are counts of.
    stores : sequence of Store
        The binned columns.
    rows : Rows
        The rows that count, sorted by outcome and environment.
    position : array of int
        Where each row of the table is among the sorted ones.
    groups : Clusters, optional
        Rows that belong together.
    """

    def __init__(
        self,
        info: SourceInfo,
        stores: Sequence[Store],
        rows: Rows,
        position: Array,
        groups: Clusters | None = None,
    ) -> None:
        self.info = info
        self.columns: BinnedColumns = info.columns
        self.classes = info.classes
        self.environments = info.environments
        self.notes = info.notes
        self.position = position
        self.groups = groups
        self.piece = Piece(stores, rows, len(info.environments))
        self._rows_of_paths = RowsOfPaths(rows, self.piece.split)

    @property
    def clusters(self) -> "StoredClusters | None":
        """Counts rows that belong together; None if rows are independent."""
        return None if self.groups is None else StoredClusters(self, self.groups)

    @property
    def rows(self) -> "StoredRows":
        """The rows, one by one."""
        return StoredRows(self)

    @property
    def shortlister(self) -> "StoredShortlister | None":
        """The device that examines candidates, if it has all columns in one store.

        With several stores the first of all tied rules could be in any of them.
        """
        stores = self.piece.stores
        if len(stores) != 1 or not stores[0].has_shortlister:
            return None
        return StoredShortlister(self)

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment)."""
        return self.piece.count_rows(self.find_rows(path)).copy()

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment)."""
        return self.piece.count_cubes(self.find_rows(path))

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """Count all rows by the truth of each rule."""
        return self.piece.count_patterns(rules)

    def find_same_coverage(
        self, path: RulePath, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Find which of the other rules cover exactly the rows of a path that `rule` covers."""
        return self.piece.find_same_coverage(self.find_rows(path), rule, others)

    def find_rows(self, path: RulePath) -> Rows:
        """Find the rows of which every rule of a path is true."""
        return self._rows_of_paths.find(tuple(path))

    def close(self) -> None:
        """Let go of the columns; the source cannot count afterwards."""
        self.piece = Piece((), self.piece.rows, self.piece.n_environments)
        self._rows_of_paths = RowsOfPaths(self.piece.rows, self.piece.split)

    def make_part(self, piece: Piece) -> "StoredSource":
        """Make a source of the same columns and some of the rows."""
        return StoredSource(self.info, piece.stores, piece.rows, self.position, self.groups)


class StoredRows:
    """The rows of a source, one by one; see `icscm.engine.counts.RowAccess`."""

    def __init__(self, source: StoredSource) -> None:
        self._source = source
        self._piece = source.piece
        self._all_rows = source.piece.rows

    def select(self, is_selected: BoolArray, n_threads: int | None = 1) -> StoredSource:
        """Make a source of some rows, which are not binned again."""
        return self._source.make_part(self._piece.select(is_selected, n_threads))

    def take(self, table_rows: Array, n_threads: int | None = None) -> StoredSource:
        """Make a source of some rows, given by their numbers in the table."""
        position = self._source.position
        is_taken = np.zeros(len(position), dtype=np.bool_)
        is_taken[position[table_rows]] = True
        return self.select(self._all_rows.take(is_taken), n_threads)

    def list_cells(self) -> RowCells:
        """List the outcome and the environment of each row, by which rows are sorted."""
        n_environments = len(self._source.environments)
        segments = np.arange(2 * n_environments)
        segment_of_row = np.repeat(segments, self._all_rows.sizes)
        return RowCells(
            outcomes=segment_of_row // n_environments,
            environments=segment_of_row % n_environments,
        )

    def list_groups(self) -> IntArray | None:
        """List the number of the group of each row; None where no groups were given."""
        clusters = self._source.groups
        if clusters is None:
            return None
        return clusters.groups[self._all_rows.take(clusters.codes)]

    def list_clusters(self) -> Clusters | None:
        """List the cluster of each row: a group within an environment; None without groups."""
        clusters = self._source.groups
        if clusters is None:
            return None
        codes = self._all_rows.take(clusters.codes)
        return Clusters(codes, clusters.starts, clusters.groups, clusters.unit)

    def number_units(self, codes: IntArray | None = None) -> IntArray:
        """Number the rows, or what has the same code, by their first appearance in the table.

            table       a b a c     codes of its rows, such as of groups
            numbers     0 1 0 2

        These do not depend on how rows are sorted here, in which order they are returned.
        """
        import pandas

        order = self.list_in_table_order()
        if codes is None:
            numbers_in_table_order = np.arange(len(order))
        else:
            numbers_in_table_order = pandas.factorize(codes[order])[0]

        numbers = np.empty(len(order), dtype=np.int64)
        numbers[order] = numbers_in_table_order
        return numbers

    def to_table_order(self, values: Array) -> Array:
        """Return values of the rows in the order of the table."""
        return values[self.list_in_table_order()]

    def from_table_order(self, values: Array) -> Array:
        """Return values that are in the order of the table in that of the rows."""
        in_order_of_rows = np.empty_like(values)
        in_order_of_rows[self.list_in_table_order()] = values
        return in_order_of_rows

    def list_in_table_order(self) -> IntArray:
        """List the rows as they come in the table: first the one that comes first there."""
        # Row i of the table is at `position[i]` among the sorted rows of the whole table.
        position = self._source.position
        has_all_rows = self._all_rows.index is None
        if has_all_rows:
            return position

        # Some of the sorted rows are here; they are ordered by their numbers in the table.
        table_row_of_sorted = np.empty_like(position)
        table_row_of_sorted[position] = np.arange(len(position), dtype=position.dtype)
        table_rows = self._all_rows.take(table_row_of_sorted)
        return np.argsort(table_rows)

    def list_columns(self) -> IntArray:
        """List the columns that can be cut, ascending."""
        columns = [store.columns for store in self._piece.stores]
        return np.sort(np.concatenate(columns)) if columns else np.empty(0, dtype=np.int64)

    def read_bins(self, column: int) -> Array:
        """Read the bin of each row in one of these columns."""
        store = self._piece.find_store(column)
        if store is None:
            raise KeyError(column)
        bins = self._all_rows.take(store.find_codes(column))
        store.release()
        return bins

    def find_true(self, rule: BinnedRule) -> BoolArray:
        """Find the rows of which a rule is true."""
        return ~self._piece.find_covered(self._all_rows, rule)

    def find_leaves(self, splits: Sequence[BinnedSplit], is_wanted: BoolArray) -> IntArray:
        """Find the leaf of a tree in which each row falls; -1 for those that are not wanted."""
        leaves = np.full(len(is_wanted), -1, dtype=np.int64)
        wanted_rows, _ = self._all_rows.split(~is_wanted)
        find_covered = partial(self._piece.find_covered, wanted_rows)
        leaves[is_wanted] = find_leaves(splits, len(wanted_rows), find_covered)
        return leaves

    def sum_values(
        self, values: FloatArray, columns: IntArray | None = None
    ) -> Iterator[ValueCube]:
        """Sum values (row, value) by (column, bin, value, environment); of all columns for None."""
        return self._piece.sum_values(values, self.list_cells().environments, columns)

    def sum_residuals(
        self, rules: Sequence[BinnedRule], p: FloatArray, columns: IntArray
    ) -> Iterator[MomentCube]:
        """Sum gradients, outcome - p, and hessians, p (1 - p), by column, bin and environment.

        These are the derivatives of the log-likelihood of logistic regression, from which follows
        how much a rule on the column would add. `p` is the risk that rules found before predict for
        a row, by (pattern, environment), where a pattern is the truth of each of these rules.
        """
        cells = self.list_cells()
        truth_of_rules = [self.find_true(rule) for rule in rules]
        patterns = find_patterns(truth_of_rules, len(self._all_rows))
        p_of_row = p[patterns.numbers, cells.environments]

        gradients = cells.outcomes - p_of_row
        hessians = p_of_row * (1.0 - p_of_row)
        for cube in self.sum_values(np.column_stack((gradients, hessians)), columns):
            yield make_moments(cube)


class StoredClusters:
    """Counts rows that belong together; see `icscm.engine.counts.ClusterCounter`."""

    def __init__(self, source: StoredSource, clusters: Clusters) -> None:
        self._source = source
        self._clusters = clusters
        self.unit = clusters.unit

    def count_moments(self, path: RulePath, rules: Sequence[BinnedRule]) -> ClusterMoments:
        """Count the moments (rule, environment) of what each rule covers of a path's rows."""
        rows = self._source.find_rows(path)
        return cluster_sums.count_moments(self._source.piece, rows, self._clusters, rules)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> ClusterPatterns:
        """Count all rows by cluster and the truth of each rule."""
        return cluster_sums.count_cluster_patterns(self._source.piece, self._clusters, rules)

    def count_leaf_moments(self, splits: Sequence[BinnedSplit]) -> ClusterMoments:
        """Count the moments (leaf, environment) of all rows in the leaves of a tree."""
        outcomes = self._source.rows.list_cells().outcomes
        patterns = ClusterPatterns(
            patterns=self._find_leaves(splits),
            clusters=self._list_codes(),
            counts=np.column_stack((1 - outcomes, outcomes)),
            starts=self._clusters.starts,
        )
        n_leaves = len(splits) + 1
        return patterns.count_moments(np.arange(n_leaves), n_leaves)

    def square_residuals(self, splits: Sequence[BinnedSplit], p: FloatArray) -> ClusterSums:
        """Sum outcome - p over each cluster, square the sums, add up the squares.

        `p` is the predicted risk by (leaf, environment). Rows of a cluster are alike, so the
        squares tell how much sums over rows scatter.
        """
        cells = self._source.rows.list_cells()
        residuals = cells.outcomes - p[self._find_leaves(splits), cells.environments]
        clusters_of_rows = replace(self._clusters, codes=self._list_codes())
        return cluster_sums.square_sums(residuals, clusters_of_rows)

    def _find_leaves(self, splits: Sequence[BinnedSplit]) -> IntArray:
        """Find the leaf of a tree in which each row falls."""
        every_row = np.ones(len(self._source.piece.rows), dtype=np.bool_)
        return self._source.rows.find_leaves(splits, every_row)

    def _list_codes(self) -> Array:
        """List the cluster of each row."""
        return self._source.piece.rows.take(self._clusters.codes)


class StoredShortlister:
    """Examines candidates on the device that has the columns, for the rows of any path."""

    def __init__(self, source: StoredSource) -> None:
        self._source = source

    @property
    def n_columns(self) -> int:
        """The number of columns that it examines."""
        (store,) = self._source.piece.stores
        return len(store.columns)

    def shortlist(self, query: ShortlistQuery) -> Shortlist:
        """List the columns that can matter; where the card cannot decide, it lists a column."""
        (store,) = self._source.piece.stores
        rows_of_path = self._source.find_rows(query.path)
        return store.make_shortlister(rows_of_path).shortlist(query)
