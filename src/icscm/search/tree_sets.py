"""Tests of sets of columns by trees, leaf by leaf.

Combinations of the values of a set are soon more than rows. A tree over the columns of the set has
few leaves instead, within which the outcome is tested against the environment:

    half A of the rows of every environment   a tree over the columns of a set is grown
    half B                                    outcome against environment in each of its leaves
    and the same with the halves exchanged    the p-value is twice the smaller one

A test on the rows that a tree was grown on would be biased; one on the other half is not. Halves
are drawn without regard to the outcome. The level holds for a set given which the outcome is
independent of the environment, if the tree found all of it: if the outcome's rate is the same all
over a leaf. Rows in the bins beside a cut, where it may not be, are not tested
(`icscm.search.cut_bounds`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._types import BoolArray, FloatArray, IntArray
from icscm.engine.counts import BinnedColumns, BinnedRule, BinnedSplit, RowAccess, RowSource
from icscm.engine.leaf_tables import LeafTables, compute_halves
from icscm.exceptions import IcscmError
from icscm.search.cut_bounds import CutBounds, find_cut_bounds
from icscm.search.grow import SplitCandidate, SplitScan, grow, make_binned_splits
from icscm.search.nodes import Node, NodeUse, make_root
from icscm.search.sets import CandidateSet, count_sets, list_subsets
from icscm.stats.independence import compute_bic, sum_pearson
from icscm.stats.splits import compute_rate_heterogeneity, find_quantile, measure_rates

# Sets that may be tested by trees, each by two.
MAX_TREE_SETS: Final = 5_000

# A rule by its column and the bins that satisfy it; a tree by its splits: the rule of each, and
# where its sides lead; a tree that was tested also by the half of the rows that it was grown on.
RuleKey = tuple[int, bytes]
TreeKey = tuple[tuple[RuleKey, int, int], ...]
GrownTreeKey = tuple[int, TreeKey]


@dataclass(frozen=True)
class TreeTestSettings:
    """How sets are tested by trees: at most `max_columns` columns are screened, as candidates.

    A leaf has at least `min_share` of the rows that its tree is grown on.
    """

    max_columns: int = 8
    max_leaves: int = 32
    min_share: float = 0.01
    seed: int = 0

    def find_min_rows(self, root: Node) -> int:
        """Find the number of rows that a leaf must have, of a tree that grows from this root."""
        return max(1, int(np.ceil(self.min_share * root.n_rows)))


# --- candidates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScreenedColumns:
    """The columns whose sets are tested, in their own order.

    `copied` are those of them that stand for several identical columns; `n_beyond` columns passed
    the screen too, and are in no set since it has a limit.
    """

    columns: list[int]
    copied: set[int]
    n_beyond: int


def screen_columns(source: RowSource, settings: TreeTestSettings) -> ScreenedColumns:
    """Find the columns that explain most deviance within environments, beyond chance.

    Chance is the deviance that the best of all splits exceeds at the level of `CHANCE_LEVEL`: a
    chi-squared quantile, with one degree of freedom for each environment, at that level divided by
    the number of splits (Bonferroni).
    """
    root = make_root(source, NodeUse.TREES)
    explained = _explain_deviance(source, root, min_rows=settings.find_min_rows(root))
    environment_sizes = root.counts.sum(axis=0)
    n_environments = int(np.count_nonzero(environment_sizes))
    chance = find_quantile(CHANCE_LEVEL / max(explained.n_splits, 1), n_environments)

    deviances = explained.deviances
    strongest_first = sorted(deviances, key=lambda column: (-deviances[column], column))
    beyond_chance = [column for column in strongest_first if deviances[column] > chance]
    screened = sorted(beyond_chance[: settings.max_columns])
    return ScreenedColumns(
        columns=screened,
        copied=explained.copied.intersection(screened),
        n_beyond=len(beyond_chance) - len(screened),
    )


@dataclass(frozen=True)
class _ExplainedDeviances:
    """What the best split of all rows on each column explains.

    `deviances` are summed over the environments, below 0 without an allowed split; `n_splits` is
    the number of splits of all columns, and `copied` are the columns with identical ones.
    """

    deviances: dict[int, float]
    n_splits: int
    copied: set[int]


def _explain_deviance(source: RowSource, root: Node, *, min_rows: int) -> _ExplainedDeviances:
    """Compute the deviance that each column explains within environments, block by block."""
    deviances: dict[int, float] = {}
    copied: set[int] = set()
    n_splits = 0
    for cube in root.count_cubes():
        halves = compute_halves(cube, source.columns)
        rates = measure_rates(halves.tables, root.counts, min_rows)
        is_allowed = rates.pooled >= 0
        n_splits += halves.count(is_allowed)

        n_columns = len(halves.columns)
        within_by_column = rates.within.reshape(n_columns, -1)
        largest = within_by_column.max(axis=1, initial=-1.0).round(DEVIANCE_DECIMALS)
        deviances |= zip(halves.columns.tolist(), largest.tolist(), strict=True)

        has_copies = source.columns.count_copies(cube.columns) > 1
        copied.update(cube.columns[has_copies].tolist())
    return _ExplainedDeviances(deviances=deviances, n_splits=n_splits, copied=copied)


def check_affordable(n_columns: int, max_size: int) -> None:
    """Raise if there are more sets than can be tested by trees."""
    n_sets = count_sets(n_columns, max_size)
    if n_sets > MAX_TREE_SETS:
        raise IcscmError(
            f"{n_columns} features make {n_sets:,} sets to test, more than "
            f"{MAX_TREE_SETS:,}; choose a smaller max_features or max_set_size"
        )


# --- the test -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeafTest:
    """The leaves of a tree on the half of the rows that it was not grown on.

    `p_value` is that of the outcome against the environment within them, `bic` that of the outcome
    given the leaf.
    """

    p_value: float
    bic: float


class TreeTester:
    """Tests sets of some columns by trees; trees that are grown on one half share their nodes."""

    def __init__(
        self, source: RowSource, columns: Iterable[int], settings: TreeTestSettings
    ) -> None:
        assert source.rows is not None, "trees are tested on rows in this process"
        self._source = source
        self._rows: RowAccess = source.rows
        self._settings = settings
        self._columns = np.array([*columns], dtype=np.int64)
        self._cells = self._rows.list_cells()

        half = draw_half(self._cells.environments, self._rows.number_units(), settings.seed)
        self._halves = [half, ~half]
        self._roots = [make_root(self._rows.select(rows), NodeUse.TREES) for rows in self._halves]

        # What several sets need is found once: many of their trees have nodes and rules in common,
        # and many sets have the same tree, since it does not use all of their columns.
        self._scans_by_node: dict[Node, dict[int, _BestSplits]] = {}
        self._bounds_by_rule: dict[RuleKey, CutBounds | None] = {}
        self._tests_by_tree: dict[GrownTreeKey, LeafTest] = {}

    def compute_p_values(self, max_size: int) -> dict[CandidateSet, float]:
        """Compute the p-value of every set of up to so many columns."""
        columns = self._columns.tolist()
        subsets = list_subsets(len(columns), max_size)
        sets = [tuple(columns[number] for number in subset) for subset in subsets]
        return {candidate_set: self.compute_p_value(candidate_set) for candidate_set in sets}

    def compute_bics(self, sets: Iterable[CandidateSet]) -> dict[CandidateSet, float]:
        """Compute the BIC of each set: of both halves, given the tree grown on the other."""
        return {
            candidate_set: sum(test.bic for test in self.test_both_ways(candidate_set))
            for candidate_set in sets
        }

    def compute_p_value(self, columns: Iterable[int]) -> float:
        """Compute the p-value of a set: twice the smaller of both directions (Bonferroni)."""
        smaller = min(test.p_value for test in self.test_both_ways(columns))
        return min(1.0, 2.0 * smaller)

    def test_both_ways(self, columns: Iterable[int]) -> list[LeafTest]:
        """Grow a tree over some columns on each half, and test its leaves on the other."""
        allowed = {*columns}
        return [self._grow_and_test(allowed, half_number) for half_number in (0, 1)]

    def _grow_and_test(self, allowed: set[int], half_number: int) -> LeafTest:
        """Grow a tree over the allowed columns on one half, and test its leaves on the other."""
        root = self._roots[half_number]
        scanner = _SetScanner(
            self._source.columns,
            columns=self._columns,
            allowed=allowed,
            min_rows=self._settings.find_min_rows(root),
            scans_by_node=self._scans_by_node,
        )
        tree = grow(root, scanner, self._settings.max_leaves)
        splits = make_binned_splits(self._source.columns, tree)

        key = half_number, _make_tree_key(splits)
        if key not in self._tests_by_tree:
            other_half = self._halves[1 - half_number]
            self._tests_by_tree[key] = self._test_leaves(splits, is_tested=other_half)
        return self._tests_by_tree[key]

    def _test_leaves(self, splits: Sequence[BinnedSplit], *, is_tested: BoolArray) -> LeafTest:
        """Test those of some rows whose leaf is certain; the BIC is that of all of them."""
        rows = np.flatnonzero(is_tested)
        leaves = self._rows.find_leaves(splits, is_tested)[rows]
        is_certain = self._find_certain(splits, is_tested=is_tested)
        n_leaves = len(splits) + 1

        certain_tables = self._count_leaves(leaves[is_certain], rows[is_certain], n_leaves)
        all_tables = self._count_leaves(leaves, rows, n_leaves)
        return LeafTest(
            p_value=sum_pearson(certain_tables).p_value,
            bic=float(compute_bic([all_tables])[0]),
        )

    def _find_certain(self, splits: Sequence[BinnedSplit], *, is_tested: BoolArray) -> BoolArray:
        """Find which of the rows tested are in no bin beside a cut of their path.

        At the first split with the row in a bin beside its cut, the paths with the wide rules and
        with the narrow ones part for good, so it ends in two different leaves.
        """
        bounds = self._find_bounds([split.rule for split in splits])
        if not any(bounds):
            return np.ones(int(np.count_nonzero(is_tested)), dtype=np.bool_)

        wide_splits = list(splits)
        narrow_splits = list(splits)
        for number, rule_bounds in enumerate(bounds):
            if rule_bounds is not None:
                wide_splits[number] = splits[number]._replace(rule=rule_bounds.wide)
                narrow_splits[number] = splits[number]._replace(rule=rule_bounds.narrow)

        wide_leaves = self._rows.find_leaves(wide_splits, is_tested)[is_tested]
        narrow_leaves = self._rows.find_leaves(narrow_splits, is_tested)[is_tested]
        return np.equal(wide_leaves, narrow_leaves)

    def _find_bounds(self, rules: Sequence[BinnedRule]) -> list[CutBounds | None]:
        """Find the bounds of rules, each of them once."""
        keys = [_make_rule_key(rule) for rule in rules]
        unknown = {
            key: rule
            for key, rule in zip(keys, rules, strict=True)
            if key not in self._bounds_by_rule
        }
        new_bounds = find_cut_bounds(self._source, [*unknown.values()])
        self._bounds_by_rule |= zip(unknown, new_bounds, strict=True)
        return [self._bounds_by_rule[key] for key in keys]

    def _count_leaves(self, leaves: IntArray, rows: IntArray, n_leaves: int) -> IntArray:
        """Count rows by (leaf, outcome, environment), given the leaf of each."""
        shape = n_leaves, 2, len(self._source.environments)
        axes = leaves, self._cells.outcomes[rows], self._cells.environments[rows]
        cells = np.ravel_multi_index(axes, shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def _make_rule_key(rule: BinnedRule) -> RuleKey:
    """Make what two rules that are true in the same bins have in common."""
    return rule.column, rule.satisfied.tobytes()


def _make_tree_key(splits: Sequence[BinnedSplit]) -> TreeKey:
    """Make what two trees of the same splits have in common."""
    return tuple((_make_rule_key(split.rule), split.if_true, split.if_false) for split in splits)


def draw_half(environments: IntArray, numbers: IntArray, seed: int) -> BoolArray:
    """Draw one half of the rows of every environment.

    `numbers` are those of the rows in the table: each gets a random key by its number, so that the
    order in which a source has them does not matter.
    """
    keys = np.random.default_rng(seed).permutation(len(environments))
    order = np.lexsort((keys[numbers], environments))

    # Of the rows sorted by environment and key, the first half of each environment.
    sorted_environments = environments[order]
    starts = np.searchsorted(sorted_environments, sorted_environments)
    sizes = np.bincount(environments)[sorted_environments]
    place_in_environment = np.arange(len(order)) - starts

    is_drawn = np.empty(len(order), dtype=np.bool_)
    is_drawn[order] = place_in_environment < sizes // 2
    return is_drawn


# --- growing a tree over a set --------------------------------------------------------------------


@dataclass(frozen=True)
class _BestSplits:
    """The best splits of a node on one column, of two kinds, and how many splits it has.

    One explains most deviance of the outcome, one most of its dependence on the environment.
    """

    n_splits: int
    of_outcome: SplitCandidate
    of_dependence: SplitCandidate


@dataclass(frozen=True)
class _SetScanner:
    """Scans nodes for splits on the `allowed` ones of some columns.

    First those that explain more deviance of the outcome than chance; where there is none and the
    outcome still depends on the environment, one that explains part of that dependence.
    `scans_by_node` has the best splits of all columns, which serve every set.
    """

    binned_columns: BinnedColumns
    columns: IntArray
    allowed: set[int]
    min_rows: int
    scans_by_node: dict[Node, dict[int, _BestSplits]]

    def __call__(self, node: Node) -> SplitScan:
        """Find the best split of a node."""
        can_split = node.n_rows >= 2 * self.min_rows and node.has_both_outcomes
        if not self.allowed or not can_split:
            return SplitScan(best=None)

        scans = self._scan_once(node)
        allowed_scans = [scan for column, scan in scans.items() if column in self.allowed]
        n_splits = sum(scan.n_splits for scan in allowed_scans)
        if n_splits == 0:
            return SplitScan(best=None)

        best = min((scan.of_outcome for scan in allowed_scans), key=lambda split: split.rank)
        if best.deviance_explained > find_quantile(CHANCE_LEVEL / n_splits, 1):
            return SplitScan(best=best, n_candidates=n_splits)

        best = min((scan.of_dependence for scan in allowed_scans), key=lambda split: split.rank)
        if best.deviance_explained > 0 and depends_on_environment(node):
            return SplitScan(best=best, n_candidates=n_splits)
        return SplitScan(best=None, n_candidates=n_splits)

    def _scan_once(self, node: Node) -> dict[int, _BestSplits]:
        """Return the best splits of a node on all columns, found now or for an earlier set."""
        if node not in self.scans_by_node:
            self.scans_by_node[node] = self._scan_columns(node)
        return self.scans_by_node[node]

    def _scan_columns(self, node: Node) -> dict[int, _BestSplits]:
        """Find the best splits of a node on each of the columns, block by block."""
        scans: dict[int, _BestSplits] = {}
        for cube in node.count_cubes():
            is_wanted = np.isin(cube.columns, self.columns)
            wanted = replace(cube, columns=cube.columns[is_wanted], counts=cube.counts[is_wanted])
            halves = compute_halves(wanted, self.binned_columns)
            if len(halves.tables):
                scans |= self._find_best_splits(node, halves)
        return scans

    def _find_best_splits(self, node: Node, halves: LeafTables) -> dict[int, _BestSplits]:
        """Find the best splits of a node on each column of a block.

        `halves` has the rows on one side of every split. A split explains deviance of the outcome,
        and of the dependence of the outcome on the environment: that of the node, less what is left
        of it on the two sides.
        """
        explained = measure_rates(halves.tables, node.counts, self.min_rows).pooled
        is_allowed = explained >= 0

        dependence_of_node = compute_rate_heterogeneity(node.counts[np.newaxis]).statistics
        dependence_if_false = compute_rate_heterogeneity(halves.tables).statistics
        dependence_if_true = compute_rate_heterogeneity(node.counts - halves.tables).statistics
        dependence_left = dependence_if_false + dependence_if_true
        # -1 where a split is not allowed, as in `explained`
        dependence = np.where(is_allowed, dependence_of_node - dependence_left, -1.0)

        columns = halves.columns.tolist()
        n_splits = is_allowed.reshape(len(columns), -1).sum(axis=1).tolist()
        best_of_outcome = halves.find_best(explained.round(DEVIANCE_DECIMALS)).tolist()
        best_of_dependence = halves.find_best(dependence.round(DEVIANCE_DECIMALS)).tolist()
        return {
            column: _BestSplits(
                n_splits=n_splits[position],
                of_outcome=_make_split(halves, best_of_outcome[position], explained),
                of_dependence=_make_split(halves, best_of_dependence[position], dependence),
            )
            for position, column in enumerate(columns)
        }


def depends_on_environment(node: Node) -> bool:
    """Whether the outcome depends on the environment in a node, beyond chance."""
    (statistic,), (dof,) = compute_rate_heterogeneity(node.counts[np.newaxis])
    return bool(statistic > find_quantile(CHANCE_LEVEL, int(dof)))


def _make_split(halves: LeafTables, number: int, explained: FloatArray) -> SplitCandidate:
    """Make a split, given by its number, with what it explains."""
    return SplitCandidate(
        cut=halves.locate(number),
        if_false=halves.tables[number].copy(),
        deviance_explained=float(explained[number]),
    )
