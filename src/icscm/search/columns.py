"""Screens columns: rejects those whose effect, given all others, differs by environment.

A plain tree of many leaves explains the label, with an intercept for each environment. Expected
positives n p of every leaf, added up by (feature, bin, environment) over the cubes of the leaves,
leave gradients and hessians:

    leaf 1    cube (feature, bin, label, environment)  --p-->  g = positives - n p
    leaf 2    ...                                              h = n p (1 - p)
    sum over the leaves   ----->   heterogeneity of every cut (`icscm.stats.heterogeneity`)

The heterogeneity of a column is that of its worst cut, relative to the deviance T that the tree
explains within environments. The worst column beyond the tolerance is rejected and the tree grown
again without it, until none is left. Nodes are shared, so that most of them cost no counting.

A column that is informative in too few environments is rejected, too: its effect is not
replicated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.engine.counts import BinnedSplit, CountCube, Cut, RowSource
from icscm.engine.leaf_tables import compute_halves
from icscm.search.grow import Subtree, TreeSettings, grow, list_leaves, make_binned_splits
from icscm.search.nodes import Node, NodeUse, make_root
from icscm.search.records import RejectedColumn
from icscm.search.split_scanner import SplitFinder, SplitScanner
from icscm.stats import heterogeneity
from icscm.stats.design_effects import compute_design_effects, compute_leaf_design_effects
from icscm.stats.replication import measure_columns
from icscm.stats.splits import find_extreme_environments

# Leaves of the tree that screens columns: with fewer, unexplained effects of other columns look
# like differences between environments.
_LEAST_LEAVES: Final = 64
# Rounds in which columns are rejected one by one; then all beyond the tolerance at once.
_MAX_SINGLE: Final = 30
# Copies of a rejected column that the trace names.
_MAX_COPIES: Final = 100


class _Judged(NamedTuple):
    """The worst cut of each column that differs beyond chance, the worst first.

    `effects` (column, environment) are log odds relative to the common effect, shrunken
    by their sampling error; NaN where an environment is not informative.
    """

    cuts: tuple[Cut, ...]
    shares: FloatArray
    p_values: FloatArray
    effects: FloatArray


class ColumnScreen:
    """The columns of a source that are rejected, at any tolerance."""

    def __init__(self, source: RowSource, settings: TreeSettings) -> None:
        self._source = source
        self._settings = settings
        self._judged: dict[frozenset[int], _Judged] = {}
        self.root = make_root(source, NodeUse.TREE if settings.tolerance is None else NodeUse.TREES)
        self.finder = SplitFinder(source.columns, settings)

    def reject(
        self, tolerance: float | None
    ) -> tuple[Mapping[int, str], tuple[RejectedColumn, ...]]:
        """The reason for each feature that is rejected, and what the trace has of it.

        Without a tolerance, none is rejected.
        """
        if tolerance is None:
            return {}, ()
        records = self._find_unreplicated()
        n_unreplicated, number = len(records), 1
        while beyond := self._list_beyond(records, tolerance):
            judged = self._judge(records)
            if number <= _MAX_SINGLE:  # and its copies
                beyond = [at for at in beyond if judged.shares[at] == judged.shares[beyond[0]]]
            for at in beyond:
                records[judged.cuts[at].feature] = self._describe(judged, at, number)
            number += 1
        # columns rejected early may not differ without those rejected later
        early = [*records][n_unreplicated:-1]
        for feature in early if number <= _MAX_SINGLE else ():
            fewer = {each: records[each] for each in records if each != feature}
            records = records if self._list_beyond(fewer, tolerance) else fewer
        reasons = {feature: found[0].reason for feature, found in records.items()}
        return reasons, tuple(each for found in records.values() for each in found)

    def _list_beyond(self, banned: Iterable[int], tolerance: float) -> list[int]:
        """The judged columns that differ by more than the tolerance, the worst first."""
        judged = self._judge(banned)
        is_beyond = (judged.shares > tolerance) & (judged.p_values < CHANCE_LEVEL)
        return np.flatnonzero(is_beyond).tolist()

    def _find_unreplicated(self) -> dict[int, list[RejectedColumn]]:
        """Features whose best split of all samples is informative in too few environments."""
        least = self._settings.min_replication
        known = self.finder.find(self.root, keeps_all=True)
        rate = self.root.counts[1] / np.maximum(self.root.counts.sum(axis=0), 1)
        replication: dict[int, float] = {}
        design = measure_design(self._source, [], self.root.counts[np.newaxis], rate[np.newaxis])
        for cube in _add_leaves([self.root], rate[np.newaxis], design):
            is_known = np.isin(cube.features, known.columns)
            measured, _ = measure_columns(cube.counts[is_known])
            replication |= zip(cube.features[is_known].tolist(), measured.tolist(), strict=True)
        found = {}
        for number, feature in enumerate(known.columns.tolist()):
            if (ratio := replication[feature]) < least:
                found[feature] = self._record(known.kept.make_cut(number), "unreplicated", 0, ratio)
        return found

    def _describe(self, judged: _Judged, at: int, number: int) -> list[RejectedColumn]:
        effects = judged.effects[at].tolist()
        known = [None if np.isnan(each) else each for each in effects]
        extremes = find_extreme_environments(known) or ()
        share, p_value = float(judged.shares[at]), float(f"{judged.p_values[at]:.3g}")
        lowest, highest = ((self._source.environments[k], effects[k]) for k in extremes)
        fields = "heterogeneous", number, None, share, p_value, lowest, highest
        return self._record(judged.cuts[at], *fields)

    def _record(self, cut: Cut, *fields: Any) -> list[RejectedColumn]:
        """A rejected column and its copies, as the trace has them."""
        columns = self._source.columns
        copies = columns.list_copies(cut.feature, _MAX_COPIES)
        rules = [columns.make_rule(cut._replace(feature=column)) for column in copies]
        return [RejectedColumn(rule, *fields) for rule in rules]

    def _judge(self, banned: Iterable[int]) -> _Judged:
        """All columns given the tree without those that are banned."""
        key = frozenset(banned)
        if key not in self._judged:
            reasons = dict.fromkeys(key, "heterogeneous")
            scanner = SplitScanner(self.finder, rejected=reasons, records_rejections=False)
            top = grow(self.root, scanner, max(_LEAST_LEAVES, 2 * self._settings.max_leaves))
            self._judged[key] = self._judge_leaves(top, [*key])
        return self._judged[key]

    def _judge_leaves(self, top: Subtree, banned: Sequence[int]) -> _Judged:
        leaves = [leaf.node for leaf in list_leaves(top)]
        n_environments = self.root.counts.shape[1]
        cuts: list[Cut] = []
        deviances, p_values, effects = [np.empty(0)], [np.empty(0)], [np.empty((0, n_environments))]
        n_judged = 0
        labels: Array = np.stack([leaf.counts for leaf in leaves])
        p = heterogeneity.predict_leaves(labels)
        design = measure_design(
            self._source, make_binned_splits(self._source.columns, top), labels, p
        )
        if design is not None:  # the effective number of independent rows
            labels = labels / design
        totals = np.zeros((2, n_environments))
        totals[1] = (labels.sum(axis=1) * p * (1.0 - p)).sum(axis=0)
        for cube in _add_leaves(leaves, p, design) if len(leaves) > 1 else ():
            # of two bins the common effect is that of the cut, which is no heterogeneity anyway
            is_wide = self._source.columns.count_bins(cube.features) > 2
            cube.counts[is_wide] = heterogeneity.remove_shape(cube.counts[is_wide])
            halves = compute_halves(cube, self._source.columns, self._settings.truths_of_missing)
            found = heterogeneity.measure_heterogeneity(halves.tables, totals)
            is_banned: BoolArray = np.isin(cube.features, banned)
            is_judged = (found.dof > 0) & ~np.repeat(is_banned, halves.n_candidates)
            n_judged += halves.count(is_judged)
            deviance = np.where(is_judged, found.deviance, 0.0).round(DEVIANCE_DECIMALS)
            at = halves.find_best(deviance)
            at = at[deviance[at] > 0]
            cuts += [halves.locate(each) for each in at.tolist()]
            deviances.append(deviance[at])
            p_values.append(found.p_values[at])
            # relative to the mean, times the share of the variance that is not chance
            tau_squared, weights = found.tau_squared[at, np.newaxis], found.weights[at]
            off = found.mean[at, np.newaxis] - found.effects[at]  # where the rule is true
            shrunken = off * tau_squared * weights / (1.0 + tau_squared * weights)
            effects.append(shrunken.round(4))
        explained = heterogeneity.compute_explained(labels, p)
        shares = (np.concatenate(deviances) / max(explained, 1e-12)).round(DEVIANCE_DECIMALS)
        order = sorted(range(len(cuts)), key=lambda i: (-shares[i], cuts[i]))
        adjusted = np.minimum(np.concatenate(p_values) * n_judged, 1.0)
        measured = shares[order], adjusted[order], np.concatenate(effects)[order]
        return _Judged(tuple(cuts[i] for i in order), *measured)


def measure_design(
    source: RowSource, splits: Sequence[BinnedSplit], labels: CountArray, p: FloatArray
) -> FloatArray | None:
    """Design effects of groups of rows by environment, given a tree; None without groups."""
    if source.clusters is None:
        return None
    sizes = labels.sum(axis=1)
    own = (sizes * p * (1.0 - p)).sum(axis=0), sizes.sum(axis=0)
    return compute_design_effects(source.clusters.square_residuals(splits, p), *own)


def measure_leaves(source: RowSource, top: Subtree, leaves: CountArray) -> FloatArray | None:
    """Design effects of the leaves of a tree; None for independent rows."""
    if source.clusters is None:
        return None
    moments = source.clusters.count_leaf_moments(make_binned_splits(source.columns, top))
    return compute_leaf_design_effects(leaves, moments)


def average_design(source: RowSource) -> float:
    """The design effect of all samples: that of each environment, weighted by its hessian."""
    totals = source.count_rows()
    sizes = np.maximum(totals.sum(axis=0), 1)
    rate = totals[1] / sizes
    found = measure_design(source, [], totals[np.newaxis], rate[np.newaxis])
    weights = sizes * rate * (1.0 - rate)
    return 1.0 if found is None else float(np.average(found, weights=np.maximum(weights, 1e-9)))


def _add_leaves(
    leaves: Iterable[Node], p: FloatArray, design: FloatArray | None
) -> list[CountCube]:
    """Sums of g and h (feature, bin, 2, environment) over the leaves, of each block of features.

    Leaf by leaf, since the cubes of a leaf may be kept. All sums take as much memory as the splits
    of one node, which every scan holds. Sums are divided by the design effects of groups, if any.
    """
    blocks: list[CountCube] = []
    for leaf, rate in zip(leaves, p, strict=True):
        for number, cube in enumerate(leaf.count_cubes()):
            if number == len(blocks):
                empty: Array = np.zeros(cube.counts.shape)
                blocks.append(replace(cube, counts=empty))
            sums: Array = blocks[number].counts
            n = cube.counts.sum(axis=2)
            sums[:, :, 0] += cube.counts[:, :, 1] - n * rate
            sums[:, :, 1] += n * (rate * (1.0 - rate))
    for block in blocks if design is not None else ():
        scaled: Array = block.counts
        scaled /= design
    return blocks
