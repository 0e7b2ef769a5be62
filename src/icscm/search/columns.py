"""The screen of a tree: rejects columns whose effect, given all others, differs by environment.

A plain tree of many leaves explains the outcome, with an intercept for each environment. What it
leaves unexplained in n rows of a leaf with probability p in an environment is

    gradient = positives - n p          hessian = n p (1 - p)

These are added up by column, bin and environment over the cubes of the leaves:

    leaf 1    cube (column, bin, outcome, environment)  --p-->  gradients and hessians
    leaf 2    ...                                             ...
    sum over the leaves   ----->   heterogeneity of every cut (`icscm.stats.heterogeneity`)

Two things are known of a column then:

    share   the heterogeneity of its worst cut, given the tree, as a part of the deviance that the
            tree explains within environments
    worth   how much of what the column says *by itself* is true in an environment, 1 being all and
            0 nothing (`icscm.search.worth`); a new environment keeps at least `low_share` of its
            mean with probability .95

A share alone does not make a shortcut: a strong cause whose odds ratio is 260 in one place and
1,000 in another has a large one, and a weak marker that is reversed in some environments a small
one. So there are two reasons to reject a column (`DifferingColumn.find_reason`):

    heterogeneous   its share is beyond the tolerance, its cut differs significantly, and
                    low_share < `NEEDED`
    reversed        low_share < 0, its worth differs significantly and by more than `MIN_OWN_PART`
                    of the null deviance, and its share is beyond half of the tolerance

Of these columns that of the largest share is rejected and the tree grown again without it, until
none is left: others may have differed only since the tree used this one. Nodes are shared, so that
most of them cost no counting.

A column that is informative in too few environments is rejected, too: its effect is not
replicated. `icscm.screening` screens for other learners, whose effects are not in counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import CountCube, Cut, MomentCube, RowSource
from icscm.engine.leaf_tables import LeafTables
from icscm.engine.moments import compute_cut_moments
from icscm.model.rules import Rule
from icscm.search.comparable import make_comparable
from icscm.search.design_effects import measure_design_effects
from icscm.search.grow import Subtree, TreeSettings, grow, list_leaves, make_binned_splits
from icscm.search.nodes import Node, NodeUse, make_root
from icscm.search.records import RejectedColumn
from icscm.search.split_scanner import SplitFinder, SplitScanner
from icscm.search.worth import OwnWorth, OwnWorthMeter
from icscm.stats.heterogeneity import (
    Heterogeneity,
    compare_cut_effects,
    remove_common_effects,
)
from icscm.stats.leaf_rates import compute_explained_deviance, predict_leaves
from icscm.stats.replication import measure_columns
from icscm.stats.splits import find_extreme_environments

# Leaves of the tree that screens columns: with fewer, unexplained effects of other columns look
# like differences between environments.
MIN_LEAVES: Final = 64
# Rounds in which columns are rejected one by one; then all beyond the tolerance at once.
MAX_SINGLE_ROUNDS: Final = 30
# Copies of a rejected column that the trace names.
MAX_COPIES: Final = 100
# The part of its worth that a column must keep in 19 of 20 new environments: with squared loss,
# using a column that keeps less does more harm than good.
NEEDED: Final = 0.5
# The heterogeneity of what a reversed column says by itself is more than this part of the deviance
# of a model that knows the environments alone.
MIN_OWN_PART: Final = 0.01
# The share of a reversed column is more than this part of the tolerance.
REVERSED_TOLERANCE: Final = 0.5
# Digits of effects in the trace.
EFFECT_DECIMALS: Final = 4
# A tree that explains nothing has no deviance to divide by.
MIN_EXPLAINED: Final = 1e-12


@dataclass(frozen=True, eq=False)
class DifferingColumn:
    """A column whose effect differs beyond chance, given the others.

    Attributes
    ----------
    cut : Cut
        The one that differs most.
    share : float
        Its heterogeneity relative to the deviance that the tree explains.
    p_value : float
        That of its differences, corrected for all cuts of all columns.
    effects : array of float, (environment,)
        Log odds relative to the common effect, shrunken by their sampling error; NaN where an
        environment is not informative.
    """

    cut: Cut
    share: float
    p_value: float
    effects: FloatArray

    def find_reason(self, own: OwnWorth, *, tolerance: float, n_columns: int) -> str | None:
        """Find why the column must be rejected, given what it is worth by itself; None if not.

        The p-value of its cut is corrected for all cuts; that of its worth, of which each column
        has one, for all columns here.
        """
        worth = own.pooled
        differs = self.share > tolerance and self.p_value < CHANCE_LEVEL
        if differs and worth.low_share < NEEDED:
            return "heterogeneous"

        worth_differs = worth.p_value * n_columns < CHANCE_LEVEL
        worth_matters = own.heterogeneity_part > MIN_OWN_PART
        if worth_differs and worth_matters and worth.low_share < 0:
            return "reversed" if self.share > tolerance * REVERSED_TOLERANCE else None
        return None


@dataclass(frozen=True, eq=False)
class Shortcut:
    """A column that must be rejected, and why: it is `"heterogeneous"` or `"reversed"`."""

    tested: DifferingColumn
    reason: str


@dataclass(frozen=True)
class ScreenResult:
    """The columns that a screen rejects.

    Attributes
    ----------
    reasons : mapping of int to str
        Why each column is rejected, for a scanner of splits.
    records : tuple of RejectedColumn
        What the trace has of them, and of identical columns.
    """

    reasons: Mapping[int, str]
    records: tuple[RejectedColumn, ...]


# What the trace has of each rejected column: itself, and identical columns.
RecordsByColumn = dict[int, list[RejectedColumn]]


class ColumnScreen:
    """The columns of a source that are rejected, at any tolerance."""

    def __init__(self, source: RowSource, settings: TreeSettings) -> None:
        self._source = source
        self._settings = settings
        self._tests_by_rejected: dict[frozenset[int], list[DifferingColumn]] = {}
        #: the source without the columns that determine the environment; None where all count
        self.comparable = make_comparable(source, needs_replication=settings.needs_replication)
        use = NodeUse.TREE if settings.tolerance is None else NodeUse.TREES
        self.root = make_root(self.comparable or source, use)
        design_effects = None if settings.tolerance is None else self._measure_root_design_effects()
        self._own_worth = OwnWorthMeter(self.root, design_effects)
        self.finder = SplitFinder(source.columns, settings)

    def reject(self, tolerance: float | None) -> ScreenResult:
        """Find the columns that are rejected at a tolerance; without one, none is."""
        if tolerance is None:
            return ScreenResult(reasons={}, records=())

        unreplicated = self._find_unreplicated()
        records_by_column = self._reject_in_rounds(unreplicated, tolerance)
        return ScreenResult(
            reasons={column: records[0].reason for column, records in records_by_column.items()},
            records=tuple(chain.from_iterable(records_by_column.values())),
        )

    # --- rounds -----------------------------------------------------------------------------------

    def _reject_in_rounds(self, unreplicated: RecordsByColumn, tolerance: float) -> RecordsByColumn:
        """Reject the column that differs most, and test the others without it, until none is left.

        Returns the records of all rejected columns, the unreplicated ones included.
        """
        rejected = dict(unreplicated)
        for round_number in count(1):
            shortcuts = self._list_shortcuts(rejected, tolerance)
            if not shortcuts:
                break
            if round_number <= MAX_SINGLE_ROUNDS:
                # Only the worst; a source that stores copies of it has the same share for these.
                worst_share = shortcuts[0].tested.share
                shortcuts = [
                    shortcut for shortcut in shortcuts if shortcut.tested.share == worst_share
                ]
            for shortcut in shortcuts:
                rejected[shortcut.tested.cut.column] = self._describe(shortcut, round_number)

        n_rounds = round_number - 1
        if n_rounds >= MAX_SINGLE_ROUNDS:
            return rejected
        return self._allow_again(rejected, unreplicated, tolerance)

    def _allow_again(
        self, rejected: RecordsByColumn, unreplicated: RecordsByColumn, tolerance: float
    ) -> RecordsByColumn:
        """Allow columns that were rejected early but do not fail without those rejected later.

        The records are in the order of rejection. The last column failed with all others rejected.
        """
        differing = [column for column in rejected if column not in unreplicated]
        still_rejected = rejected
        for column in differing[:-1]:
            fewer = {other: still_rejected[other] for other in still_rejected if other != column}
            if not self._list_shortcuts(fewer, tolerance):
                still_rejected = fewer
        return still_rejected

    def _list_shortcuts(self, rejected: Iterable[int], tolerance: float) -> list[Shortcut]:
        """List the columns that must be rejected, the worst first."""
        min_share = tolerance * REVERSED_TOLERANCE
        differing = [tested for tested in self._test_columns(rejected) if tested.share > min_share]
        self._own_worth.measure([tested.cut.column for tested in differing])
        shortcuts: list[Shortcut] = []
        for tested in differing:
            own = self._own_worth.pool(tested.cut.column)
            n_columns = self._own_worth.n_columns
            reason = tested.find_reason(own, tolerance=tolerance, n_columns=n_columns)
            if reason is not None:
                shortcuts.append(Shortcut(tested, reason))
        return shortcuts

    # --- what the trace has -----------------------------------------------------------------------

    def _describe(self, shortcut: Shortcut, round_number: int) -> list[RejectedColumn]:
        """Make what the trace has of a shortcut, and of its copies.

        `lowest` and `highest` are the environments of the extreme effects, with these.
        """
        tested = shortcut.tested
        effects = tested.effects.tolist()
        known_effects = [None if np.isnan(effect) else effect for effect in effects]
        extremes = find_extreme_environments(known_effects)
        lowest = None
        highest = None
        if extremes is not None:
            names = self._source.environments
            number_of_lowest, number_of_highest = extremes
            lowest = names[number_of_lowest], effects[number_of_lowest]
            highest = names[number_of_highest], effects[number_of_highest]

        return [
            RejectedColumn(
                rule,
                reason=shortcut.reason,
                round=round_number,
                heterogeneity_share=tested.share,
                p_value=float(f"{tested.p_value:.3g}"),
                lowest=lowest,
                highest=highest,
            )
            for rule in self._list_copied_rules(tested.cut)
        ]

    def _list_copied_rules(self, cut: Cut) -> list[Rule]:
        """List the rule of a cut on its column, and on identical columns."""
        columns = self._source.columns
        copies = columns.list_copies(cut.column, MAX_COPIES)
        return [columns.make_rule(cut._replace(column=column)) for column in copies]

    # --- replication ------------------------------------------------------------------------------

    def _find_unreplicated(self) -> RecordsByColumn:
        """Find columns whose best split of all rows is informative in too few environments."""
        best_splits = self.finder.find(self.root, keeps_all=True)
        replication = self._measure_replication(best_splits.columns)
        unreplicated = {}
        for number, column in enumerate(best_splits.columns.tolist()):
            replication_of_column = replication[column]
            if not replication_of_column < self._settings.min_replication:  # NaN is not rejected
                continue
            best_cut = best_splits.kept.make_cut(number)
            unreplicated[column] = [
                RejectedColumn(
                    rule, reason="unreplicated", round=0, replication=replication_of_column
                )
                for rule in self._list_copied_rules(best_cut)
            ]
        return unreplicated

    def _measure_replication(self, columns: IntArray) -> dict[int, float]:
        """Measure the replication of some columns, given the rates of the environments alone."""
        probabilities = self._compute_root_rates()[np.newaxis]
        design_effects = self._measure_root_design_effects()

        replication: dict[int, float] = {}
        for cube in _sum_leaves([self.root], probabilities, design_effects):
            is_wanted = np.isin(cube.columns, columns)
            measured = measure_columns(cube.gradients[is_wanted], cube.hessians[is_wanted])
            wanted_columns = cube.columns[is_wanted].tolist()
            replication |= zip(wanted_columns, measured.replication.tolist(), strict=True)
        return replication

    def _compute_root_rates(self) -> FloatArray:
        """Compute the rate of each environment."""
        counts = self.root.counts
        return np.asarray(counts[1] / np.maximum(counts.sum(axis=0), 1))

    def _measure_root_design_effects(self) -> FloatArray | None:
        """Measure the design effects of groups, given the rates of the environments alone.

        These are the probabilities of a tree of a single leaf, which has no splits.
        """
        leaves = self.root.counts[np.newaxis]
        probabilities = self._compute_root_rates()[np.newaxis]
        return measure_design_effects(self._source, [], leaves, probabilities)

    # --- tests ------------------------------------------------------------------------------------

    def _test_columns(self, rejected: Iterable[int]) -> list[DifferingColumn]:
        """Test all columns given the tree without those that are rejected; each tree once."""
        key = frozenset(rejected)
        if key not in self._tests_by_rejected:
            scanner = SplitScanner(
                self.finder,
                rejected=dict.fromkeys(key, "heterogeneous"),
                records_rejections=False,
            )
            n_leaves = max(MIN_LEAVES, 2 * self._settings.max_leaves)
            tree = grow(self.root, scanner, n_leaves)
            self._tests_by_rejected[key] = self._test_given_tree(tree, rejected=[*key])
        return self._tests_by_rejected[key]

    def _test_given_tree(self, tree: Subtree, rejected: Sequence[int]) -> list[DifferingColumn]:
        """Find the columns whose effects differ beyond chance, given a tree; the worst first.

        The tree gives each row a probability, by its leaf and environment. What this leaves
        unexplained is summed over the leaves by column, bin and environment, in blocks of columns.
        Of each column the worst cut is taken. How much its effect differs is relative to the
        deviance that the tree explains, and its p-value is corrected for all cuts (Bonferroni).
        """
        leaves = [leaf.node for leaf in list_leaves(tree)]
        if len(leaves) < 2:  # nothing is explained that differences could be relative to
            return []

        # The predictions: counts (leaf, outcome, environment), probabilities (leaf, environment).
        counts: Array = np.stack([leaf.counts for leaf in leaves])
        probabilities = predict_leaves(counts)

        # Rows that come in clusters count as fewer independent ones.
        splits = make_binned_splits(self._source.columns, tree)
        design_effects = measure_design_effects(self._source, splits, counts, probabilities)
        if design_effects is not None:
            counts = counts / design_effects

        explained = max(compute_explained_deviance(counts, probabilities), MIN_EXPLAINED)
        n_rows = counts.sum(axis=1)
        hessians = n_rows * (probabilities * (1.0 - probabilities))
        total_hessians = hessians.sum(axis=0)

        columns: list[DifferingColumn] = []
        n_tests = 0
        for cube in _sum_leaves(leaves, probabilities, design_effects):
            block = self._test_block(cube, total_hessians, rejected)
            n_tests += block.n_tests
            columns += block.list_differing(explained)

        corrected = [
            replace(column, p_value=min(column.p_value * n_tests, 1.0)) for column in columns
        ]
        return sorted(corrected, key=lambda column: (-column.share, column.cut))

    def _test_block(
        self, cube: MomentCube, total_hessians: FloatArray, rejected: Sequence[int]
    ) -> "_TestedBlock":
        """Test whether the effects of the cuts of a block of columns differ by environment.

        `cube` has sums (column, bin, environment) over the rows: of the gradients, which are what
        the tree leaves unexplained of the outcome, and of the hessians, their variances.
        `total_hessians` (environment) are those of all rows. The effect of a cut in an environment
        follows from the sums on its two sides. Cuts on `rejected` columns are not tested again.
        """
        unexplained = self._remove_common_effects(cube)
        sides = compute_cut_moments(unexplained, self._source.columns)
        # The tree has an intercept for each environment, so its gradients add up to 0 there.
        total_gradients = np.zeros_like(total_hessians)
        heterogeneity = compare_cut_effects(
            sides.gradients,
            sides.hessians,
            total_gradients=total_gradients,
            total_hessians=total_hessians,
        )

        column_is_rejected: BoolArray = np.isin(cube.columns, rejected)
        cut_is_rejected = np.repeat(column_is_rejected, sides.cuts.n_candidates)
        can_differ = heterogeneity.dof > 0
        is_tested = can_differ & ~cut_is_rejected
        deviances = np.where(is_tested, heterogeneity.deviance, 0.0)
        return _TestedBlock(
            cuts=sides.cuts,
            heterogeneity=heterogeneity,
            deviances=deviances.round(DEVIANCE_DECIMALS),
            n_tests=sides.cuts.count(is_tested),
        )

    def _remove_common_effects(self, cube: MomentCube) -> MomentCube:
        """Take out of a block what effects of its bins explain that all environments share.

        The tree may have missed an effect of a column, which is not heterogeneity but may look like
        it. Of a column of two bins this effect is the mean effect of its only cut, with which the
        cut is compared anyway: nothing is to be done.
        """
        is_wide = self._source.columns.count_bins(cube.columns) > 2
        gradients = cube.gradients.copy()
        gradients[is_wide] = remove_common_effects(cube.gradients[is_wide], cube.hessians[is_wide])
        return replace(cube, gradients=gradients)


@dataclass(frozen=True, eq=False)
class _TestedBlock:
    """Tests of the cuts of a block of columns.

    Attributes
    ----------
    cuts : LeafTables
        Which cuts these are, by number.
    heterogeneity : Heterogeneity
        That of the effect of each cut.
    deviances : array of float, (cut)
        The same as a deviance; 0 for cuts that are not tested.
    n_tests : int
        How many cuts were tested.
    """

    cuts: LeafTables
    heterogeneity: Heterogeneity
    deviances: FloatArray
    n_tests: int

    def list_differing(self, explained: float) -> list[DifferingColumn]:
        """List the columns that differ beyond chance, each by its worst cut.

        `explained` is the deviance that the tree explains. The p-values are of a single test.
        """
        worst_of_columns = self.cuts.find_best(self.deviances).tolist()
        return [
            DifferingColumn(
                cut=self.cuts.locate(number),
                share=float((self.deviances[number] / explained).round(DEVIANCE_DECIMALS)),
                p_value=float(self.heterogeneity.p_values[number]),
                effects=self._shrink_effects(number),
            )
            for number in worst_of_columns
            if self.deviances[number] > 0
        ]

    def _shrink_effects(self, number: int) -> FloatArray:
        """Return the effects of a cut relative to their mean, shrunken by their sampling error.

            (d_e - mean) tau^2 w_e / (1 + tau^2 w_e)

        which is the deviation times the share of its variance that is not chance.
        """
        tau_squared = self.heterogeneity.tau_squared[number]
        w = self.heterogeneity.weights[number]
        deviations = self.heterogeneity.effects[number] - self.heterogeneity.mean[number]
        shrunken = deviations * tau_squared * w / (1.0 + tau_squared * w)
        return np.asarray(shrunken.round(EFFECT_DECIMALS))


def _sum_leaves(
    leaves: Iterable[Node], probabilities: FloatArray, design_effects: FloatArray | None
) -> list[MomentCube]:
    """Sum gradients and hessians over the leaves, of each block of columns.

    Leaf by leaf, since the cubes of a leaf may be kept. All sums take as much memory as the splits
    of one node, which every scan holds. They are divided by the design effects of groups, if any.
    `probabilities` are by (leaf, environment).
    """
    blocks: list[MomentCube] = []
    for leaf, p in zip(leaves, probabilities, strict=True):
        for number, cube in enumerate(leaf.count_cubes()):
            if number == len(blocks):  # the first leaf
                blocks.append(_make_zero_moments(cube))
            _add_leaf_into(blocks[number], cube, p)

    if design_effects is None:
        return blocks
    return [
        replace(
            block,
            gradients=block.gradients / design_effects,
            hessians=block.hessians / design_effects,
        )
        for block in blocks
    ]


def _make_zero_moments(cube: CountCube) -> MomentCube:
    """Make moments of 0, with the columns and bins of a cube of counts."""
    n_columns, n_bins, _, n_environments = cube.counts.shape
    shape = n_columns, n_bins, n_environments
    return MomentCube(
        columns=cube.columns,
        gradients=np.zeros(shape),
        hessians=np.zeros(shape),
        layout=cube.layout,
    )


def _add_leaf_into(moments: MomentCube, cube: CountCube, p: FloatArray) -> None:
    """Add what n rows of a leaf contribute, given its probabilities p by environment.

    gradient = positives - n p          hessian = n p (1 - p)
    """
    n: CountArray = cube.counts.sum(axis=2)
    positives: CountArray = cube.counts[:, :, 1]
    np.add(moments.gradients, positives - n * p, out=moments.gradients)
    np.add(moments.hessians, n * (p * (1.0 - p)), out=moments.hessians)
