"""Forests: many trees, each grown on some of the rows and some of the columns.

Columns are screened once, on all rows: of many trees on fewer rows each, some would accept a column
that the others reject. Rows are drawn without replacement: repeated rows would exaggerate the
evidence that effects differ.

    all rows   --screen-->   the columns that trees may use; none if no split beats chance
    0.632 of the rows, 0.6 of these columns   --grow-->   tree 1
    ...                                                   tree 2, ...
    the other rows of each tree   ----->   scores out of bag
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._types import Array, BoolArray, FloatArray, IntArray
from icscm.engine.counts import RowAccess, RowSource
from icscm.engine.threads import run_ahead
from icscm.model.forest import Forest
from icscm.model.tree import Tree
from icscm.progress import track
from icscm.search.columns import ColumnScreen
from icscm.search.grow import Subtree, TreeSettings, grow, make_binned_splits
from icscm.search.nodes import NodeUse, make_root
from icscm.search.rate_trees import find_rate_tree
from icscm.search.split_scanner import SplitFinder, SplitScanner
from icscm.search.trace import Trace
from icscm.search.tree_records import ScreenedTree, describe_tree, make_tree

# The share of the rows that a tree is grown on: 1 - 1/e, as many as are distinct in a bootstrap.
DRAWN_SHARE: Final = 0.632


@dataclass(frozen=True)
class ForestSettings:
    """Settings of a forest, in addition to those of its trees.

    Parameters
    ----------
    tree : TreeSettings
        Settings of each tree.
    n_trees : int
        The number of trees.
    max_features : float
        The share of the columns that a tree may use.
    seed : int
        Of all draws.
    n_threads : int
        Trees that are grown at a time.
    """

    tree: TreeSettings
    n_trees: int = 100
    max_features: float = 0.6
    seed: int = 0
    n_threads: int = 1


@dataclass(frozen=True)
class OutOfBag:
    """Predictions of the trees for the rows that they were not grown on, in one order of rows.

    Attributes
    ----------
    outcomes, environments : array of int, (row)
        The outcome of each row, 0 or 1, and the number of its environment.
    votes : array of float, (row)
        The mean of the trees' probabilities; NaN for rows that all trees were grown on.
    """

    outcomes: Array
    environments: Array
    votes: FloatArray


@dataclass(frozen=True)
class ScreenedColumns:
    """The columns that trees may use, and the trace of the screen that rejected the others."""

    columns: IntArray
    trace: Trace


@dataclass(frozen=True)
class GrownTree:
    """A tree of a forest, and the leaf of each row that is out of bag; -1 for all others."""

    model: Tree
    leaves: IntArray


def find_forest(source: RowSource, settings: ForestSettings) -> tuple[Forest, Trace, OutOfBag]:
    """Grow a forest; the trace is that of screening the columns, on all rows."""
    assert source.rows is not None  # trees are grown on some of the rows
    screened = screen_columns(source, settings.tree)
    grower = ForestGrower(source, source.rows, screened.columns, settings)
    # A generator for each tree, so that trees do not depend on the order in which threads run.
    rngs = np.random.default_rng(settings.seed).spawn(settings.n_trees)
    grown_trees = track(run_ahead(grower.grow_tree, rngs, settings.n_threads), len(rngs))

    # Trees are added up as they come: the leaves of all of them would take much memory.
    cells = source.rows.list_cells()
    models: list[Tree] = []
    sum_of_votes = np.zeros(len(cells.outcomes))
    n_votes = np.zeros(len(cells.outcomes))
    for tree in grown_trees:
        models.append(tree.model)
        is_out_of_bag = tree.leaves >= 0
        leaves = tree.leaves[is_out_of_bag]
        sum_of_votes[is_out_of_bag] += tree.model.leaf_probabilities()[leaves]
        n_votes += is_out_of_bag

    with np.errstate(invalid="ignore"):
        votes = np.where(n_votes > 0, sum_of_votes / n_votes, np.nan)
    out_of_bag = OutOfBag(outcomes=cells.outcomes, environments=cells.environments, votes=votes)
    return Forest(tuple(models)), screened.trace, out_of_bag


# --- screening ------------------------------------------------------------------


def screen_columns(source: RowSource, settings: TreeSettings) -> ScreenedColumns:
    """Screen the columns on all rows; the trace shows which of them are rejected, and why.

    Trees whose rates are to be homogeneous have no screen: the search of such a tree bans columns.

    No column is left where no split of all rows explains more than chance. Each tree has such a
    bound for its own rows, but of a hundred trees some would exceed it by chance: in a fifth of
    tables of noise a forest had a tree with a split.
    """
    if settings.needs_rates:
        rate_tree = find_rate_tree(source, settings)
        columns = list_usable_columns(rate_tree.tree, rejected=[*rate_tree.reasons])
        return ScreenedColumns(columns=columns, trace=rate_tree.trace)

    screen = ColumnScreen(source, settings)
    rejected = screen.reject(settings.tolerance)
    # The trace is that of a tree without any split, which shows what the screen did.
    scan = SplitScanner(screen.finder, rejected=rejected.reasons)(screen.root)
    root_only = Subtree(screen.root, scan)
    _, trace = describe_tree(
        source,
        settings,
        ScreenedTree(root_only, rejected_columns=rejected.records, comparable=screen.comparable),
    )
    columns = list_usable_columns(root_only, rejected=[*rejected.reasons])
    return ScreenedColumns(columns=columns, trace=trace)


def list_usable_columns(tree: Subtree, *, rejected: list[int]) -> IntArray:
    """List all columns but those that are rejected; none if the root has no allowed split."""
    columns = []
    if tree.scan.best is not None:
        columns = [cube.columns for cube in tree.node.count_cubes()]
    if not columns:
        return np.empty(0, dtype=np.int64)
    return np.setdiff1d(np.concatenate(columns), rejected)


# --- growing --------------------------------------------------------------------


class ForestGrower:
    """Grows the trees of a forest, each from a generator of random numbers."""

    def __init__(
        self, source: RowSource, rows: RowAccess, columns: IntArray, settings: ForestSettings
    ) -> None:
        self._source = source
        self._rows = rows
        self._columns = columns
        self._settings = settings

        # Rows of a group are drawn together.
        self._units = rows.number_units(rows.list_groups())

    def grow_tree(self, rng: np.random.Generator) -> GrownTree:
        """Grow a tree on some of the rows and columns."""
        settings = self._settings
        is_drawn = draw_rows(self._units, rng)
        columns = self._draw_columns(rng)

        finder = SplitFinder(self._source.columns, settings.tree)
        scanner = SplitScanner(finder, allowed_columns=columns, records_rejections=False)
        root = make_root(self._rows.select(is_drawn), NodeUse.TREE)
        tree = grow(root, scanner, settings.tree.max_leaves)

        splits = make_binned_splits(self._source.columns, tree)
        return GrownTree(
            model=make_tree(self._source, tree, balanced=settings.tree.balanced),
            leaves=self._rows.find_leaves(splits, ~is_drawn),
        )

    def _draw_columns(self, rng: np.random.Generator) -> IntArray:
        """Draw the columns that a tree may use."""
        n_columns = len(self._columns)
        n_drawn = max(1, round(self._settings.max_features * n_columns))
        drawn: IntArray = rng.choice(self._columns, min(n_drawn, n_columns), replace=False)
        return drawn


def draw_rows(units: IntArray, rng: np.random.Generator) -> BoolArray:
    """Draw the rows that a tree is grown on: those of some units, which stay together.

    `units` is the number of each row's unit: a group, or the row itself.
    """
    n_units = int(units.max()) + 1
    n_drawn = max(1, round(DRAWN_SHARE * n_units))
    is_drawn = np.zeros(n_units, dtype=np.bool_)
    is_drawn[rng.choice(n_units, n_drawn, replace=False, shuffle=False)] = True
    return is_drawn[units]
