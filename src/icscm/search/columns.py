"""The screen of a tree: rejects columns whose effect, given all others, differs by environment.

A plain tree of many leaves explains the outcome, with an intercept for each environment. What it
leaves unexplained in n rows of a leaf with probability p in an environment is

    gradient = positives - n p          hessian = n p (1 - p)

These are added up by column, bin and environment over the cubes of the leaves:

    leaf 1    cube (column, bin, outcome, environment)  --p-->  gradients and hessians
    leaf 2    ...                                             ...
    sum over the leaves   ----->   heterogeneity of every cut (`icscm.stats.heterogeneity`)

The *share* of a column is the heterogeneity of its worst cut, relative to the deviance that the
tree explains within environments. The column of the largest share beyond the tolerance is rejected
and the tree grown again without it, until no column is beyond. Nodes are shared, so that most of
them cost no counting.

A column that is informative in too few environments is rejected, too: its effect is not
replicated. `icscm.screening` screens for other learners, whose effects are not in counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.engine.counts import Cut, MomentCube, RowSource
from icscm.engine.moments import compute_cut_moments
from icscm.model.rules import Rule
from icscm.search.design_effects import measure_design_effects
from icscm.search.grow import Subtree, TreeSettings, grow, list_leaves, make_binned_splits
from icscm.search.nodes import Node, NodeUse, make_root
from icscm.search.records import RejectedColumn
from icscm.search.split_scanner import SplitFinder, SplitScanner
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
# Digits of effects in the trace.
EFFECT_DECIMALS: Final = 4
# A tree that explains nothing has no deviance to divide by.
MIN_EXPLAINED: Final = 1e-12


@dataclass(frozen=True, eq=False)
class DifferingColumn:
    """A column whose effect differs beyond chance, given the others.

    `cut` is the one that differs most, `share` its heterogeneity relative to the deviance that the
    tree explains, `p_value` is corrected for all cuts. `effects` are log odds by environment
    relative to the common effect, shrunken by their sampling error; NaN where an environment is not
    informative.
    """

    cut: Cut
    share: float
    p_value: float
    effects: FloatArray

    def is_beyond(self, tolerance: float) -> bool:
        """Whether the effect differs by more than the tolerance, and significantly."""
        return self.share > tolerance and self.p_value < CHANCE_LEVEL


class ColumnScreen:
    """The columns of a source that are rejected, at any tolerance."""

    def __init__(self, source: RowSource, settings: TreeSettings) -> None:
        self._source = source
        self._settings = settings
        self._tests_by_rejected: dict[frozenset[int], list[DifferingColumn]] = {}
        self.root = make_root(source, NodeUse.TREE if settings.tolerance is None else NodeUse.TREES)
        self.finder = SplitFinder(source.columns, settings)

    def reject(
        self, tolerance: float | None
    ) -> tuple[Mapping[int, str], tuple[RejectedColumn, ...]]:
        """The reason for each column that is rejected, and what the trace has of it.

        Without a tolerance, none is rejected.
        """
        if tolerance is None:
            return {}, ()
        unreplicated = self._find_unreplicated()
        records = self._reject_in_rounds(unreplicated, tolerance)
        reasons = {column: copies[0].reason for column, copies in records.items()}
        return reasons, tuple(record for copies in records.values() for record in copies)

    # --- rounds -----------------------------------------------------------------------------------

    def _reject_in_rounds(
        self, unreplicated: dict[int, list[RejectedColumn]], tolerance: float
    ) -> dict[int, list[RejectedColumn]]:
        """Reject the column that differs most, and test the others without it, until none is left.

        Returns what the trace has of each rejected column, the unreplicated ones included.
        """
        records = dict(unreplicated)
        round_number = 1
        while beyond := self._list_beyond(records, tolerance):
            if round_number <= MAX_SINGLE_ROUNDS:  # the worst, and its copies
                beyond = [each for each in beyond if each.share == beyond[0].share]
            for worst in beyond:
                records[worst.cut.column] = self._describe_differing(worst, round_number)
            round_number += 1
        if round_number > MAX_SINGLE_ROUNDS:
            return records

        # Columns rejected early may not differ without those rejected later.
        early = [*records][len(unreplicated) : -1]
        for column in early:
            fewer = {each: record for each, record in records.items() if each != column}
            if not self._list_beyond(fewer, tolerance):
                records = fewer
        return records

    def _list_beyond(self, rejected: Iterable[int], tolerance: float) -> list[DifferingColumn]:
        """List the columns that differ by more than the tolerance, the worst first."""
        return [each for each in self._test_columns(rejected) if each.is_beyond(tolerance)]

    # --- what the trace has -----------------------------------------------------------------------

    def _describe_differing(
        self, column: DifferingColumn, round_number: int
    ) -> list[RejectedColumn]:
        """What the trace has of a column whose effect differs, and of its copies."""
        effects = column.effects.tolist()
        known = [None if np.isnan(effect) else effect for effect in effects]
        extremes = find_extreme_environments(known)
        lowest = highest = None
        if extremes is not None:
            environments = self._source.environments
            lowest, highest = ((environments[k], effects[k]) for k in extremes)
        return [
            RejectedColumn(
                rule,
                reason="heterogeneous",
                round=round_number,
                heterogeneity_share=column.share,
                p_value=float(f"{column.p_value:.3g}"),
                lowest=lowest,
                highest=highest,
            )
            for rule in self._list_copied_rules(column.cut)
        ]

    def _list_copied_rules(self, cut: Cut) -> list[Rule]:
        """The rule of a cut on its column, and on identical columns."""
        columns = self._source.columns
        copies = columns.list_copies(cut.column, MAX_COPIES)
        return [columns.make_rule(cut._replace(column=column)) for column in copies]

    # --- replication ------------------------------------------------------------------------------

    def _find_unreplicated(self) -> dict[int, list[RejectedColumn]]:
        """Find columns whose best split of all rows is informative in too few environments."""
        known_splits = self.finder.find(self.root, keeps_all=True)
        counts = self.root.counts
        rates = counts[1] / np.maximum(counts.sum(axis=0), 1)
        design_effects = measure_design_effects(
            self._source, [], counts[np.newaxis], rates[np.newaxis]
        )
        replication: dict[int, float] = {}
        for cube in _sum_leaves([self.root], rates[np.newaxis], design_effects):
            is_known = np.isin(cube.columns, known_splits.columns)
            measured = measure_columns(cube.gradients[is_known], cube.hessians[is_known])
            known_columns = cube.columns[is_known].tolist()
            replication |= zip(known_columns, measured.replication.tolist(), strict=True)

        records = {}
        for number, column in enumerate(known_splits.columns.tolist()):
            if replication[column] < self._settings.min_replication:
                records[column] = [
                    RejectedColumn(
                        rule, reason="unreplicated", round=0, replication=replication[column]
                    )
                    for rule in self._list_copied_rules(known_splits.kept.make_cut(number))
                ]
        return records

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
        """Find the columns that differ beyond chance given a tree, the worst first.

        The p-value of the worst cut is corrected for all cuts (Bonferroni).
        """
        leaves = [leaf.node for leaf in list_leaves(tree)]
        counts: Array = np.stack([leaf.counts for leaf in leaves])
        p = predict_leaves(counts)
        splits = make_binned_splits(self._source.columns, tree)
        design_effects = measure_design_effects(self._source, splits, counts, p)
        if design_effects is not None:  # the effective number of independent rows
            counts = counts / design_effects
        explained = max(compute_explained_deviance(counts, p), MIN_EXPLAINED)
        if len(leaves) < 2:
            return []

        total_hessians = (counts.sum(axis=1) * p * (1.0 - p)).sum(axis=0)
        columns: list[DifferingColumn] = []
        n_tests = 0
        for cube in _sum_leaves(leaves, p, design_effects):
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
        """Test all cuts of a block of columns."""
        # Of two bins the common effect is that of the cut, which is no heterogeneity anyway.
        is_wide = self._source.columns.count_bins(cube.columns) > 2
        gradients = cube.gradients.copy()
        gradients[is_wide] = remove_common_effects(cube.gradients[is_wide], cube.hessians[is_wide])
        moments = compute_cut_moments(replace(cube, gradients=gradients), self._source.columns)
        heterogeneity = compare_cut_effects(
            moments.gradients,
            moments.hessians,
            total_gradients=np.zeros_like(total_hessians),
            total_hessians=total_hessians,
        )
        is_rejected: BoolArray = np.isin(cube.columns, rejected)
        is_tested = (heterogeneity.dof > 0) & ~np.repeat(is_rejected, moments.cuts.n_candidates)
        deviances = np.where(is_tested, heterogeneity.deviance, 0.0).round(DEVIANCE_DECIMALS)
        best = moments.cuts.find_best(deviances)
        return _TestedBlock(
            heterogeneity=heterogeneity,
            deviances=deviances,
            worst={
                moments.cuts.locate(number): number
                for number in best.tolist()
                if deviances[number] > 0
            },
            n_tests=moments.cuts.count(is_tested),
        )


@dataclass(frozen=True, eq=False)
class _TestedBlock:
    """Tests of the cuts of a block of columns.

    `deviances` are the heterogeneity of each cut, `worst` the number of the cut that differs most
    of each column that differs beyond chance.
    """

    heterogeneity: Heterogeneity
    deviances: FloatArray
    worst: dict[Cut, int]
    n_tests: int

    def list_differing(self, explained: float) -> list[DifferingColumn]:
        """List the columns that differ, with p-values of a single test."""
        return [
            DifferingColumn(
                cut=cut,
                share=float((self.deviances[number] / explained).round(DEVIANCE_DECIMALS)),
                p_value=float(self.heterogeneity.p_values[number]),
                effects=self._shrink_effects(number),
            )
            for cut, number in self.worst.items()
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
    leaves: Iterable[Node], p: FloatArray, design_effects: FloatArray | None
) -> list[MomentCube]:
    """Sum gradients and hessians over the leaves, of each block of columns.

    Leaf by leaf, since the cubes of a leaf may be kept. All sums take as much memory as the splits
    of one node, which every scan holds. They are divided by the design effects of groups, if any.
    """
    blocks: list[MomentCube] = []
    for leaf, leaf_p in zip(leaves, p, strict=True):
        for number, cube in enumerate(leaf.count_cubes()):
            n_rows: CountArray = cube.counts.sum(axis=2)
            if number == len(blocks):
                blocks.append(
                    MomentCube(
                        columns=cube.columns,
                        gradients=np.zeros(n_rows.shape),
                        hessians=np.zeros(n_rows.shape),
                        layout=cube.layout,
                    )
                )
            block = blocks[number]
            np.add(block.gradients, cube.counts[:, :, 1] - n_rows * leaf_p, out=block.gradients)
            np.add(block.hessians, n_rows * (leaf_p * (1.0 - leaf_p)), out=block.hessians)
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
