"""Splits of homogeneous effects: the heterogeneity of each is measured at its node, marginally.

A feature whose effect differs too much is rejected on this branch for good: its largest share of
heterogeneity is remembered down the branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import N_REJECTED_KEPT
from icscm._types import Array, BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.counts import CandidateMap
from icscm.search.grow import (
    DECIMALS,
    LEVEL,
    Found,
    Rejected,
    SplitScan,
    TreeSettings,
    can_split,
    list_first,
    make_found,
    rank,
)
from icscm.search.nodes import Node
from icscm.stats.leaf_tables import LeafTables, compute_halves
from icscm.stats.splits import Effects, compute_deviance, find_quantile, measure_effects

# Why splits are rejected, in the order in which that is checked.
REASONS: Final = "unreplicated", "heterogeneous", "remembered"
# Heterogeneity is measured against the deviance that a split explains, or against what its tree is
# about if that is more: twice its first split's, at most this share of all that is to be explained.
_FIRST: Final = 2.0
_MOST: Final = 1 / 6


class Memory(NamedTuple):
    """What is known of the features on the way down: the largest share that each has shown.

    By block of features, as the source has them. `scale` is the deviance that heterogeneity is
    measured against, for a tree of all samples.
    """

    features: tuple[IntArray, ...]
    shares: tuple[FloatArray, ...]
    scale: float

    def list_usable(self, tolerance: float | None) -> IntArray:
        """The features that are not rejected so far."""
        most = np.inf if tolerance is None else tolerance
        pairs = zip(self.features, self.shares, strict=True)
        return np.sort(np.concatenate([features[shares <= most] for features, shares in pairs]))


@dataclass(frozen=True)
class EffectScanner:
    """Scans nodes for splits whose effect is homogeneous over environments.

    `columns` are the features that may be used, by default all. Rejected splits are described only
    if `record_rejections`.
    """

    candidates: CandidateMap
    settings: TreeSettings
    n_all: int
    columns: IntArray | None = None
    record_rejections: bool = True

    def __call__(self, node: Node, memory: Memory | None) -> SplitScan:
        settings = self.settings
        if not can_split(node, settings.n_least):
            return SplitScan(None, memory)
        tolerance = np.inf if settings.tolerance is None else settings.tolerance
        totals = self._pool(node.totals)
        measured = []
        for cube in node.count():
            tables = compute_halves(cube, self.candidates, settings.sides)
            effects = measure_effects(self._pool(tables.tables), totals, settings.n_least)
            measured.append((tables, effects))
        n_candidates = sum(each.count(found.deviance_explained >= 0) for each, found in measured)
        if not n_candidates:
            return SplitScan(None, memory)
        cutoff = find_quantile(LEVEL / n_candidates, 1)
        scale = memory.scale if memory else _find_scale(measured, cutoff, tolerance, totals)
        negligible = 0.0 if scale == 0 else tolerance * scale * node.size / self.n_all
        known = memory.shares if memory else [np.zeros(len(each.features)) for each, _ in measured]
        blocks = [
            _Block.make(*each, cutoff, tolerance, negligible, shares, self.columns)
            for each, shares in zip(measured, known, strict=True)
        ]
        allowed = (block.find_allowed() for block in blocks)
        best = min(filter(None, allowed), key=rank, default=None)
        features = tuple(block.tables.features for block in blocks)
        memory = Memory(features, tuple(block.shares for block in blocks), scale)
        if not self.record_rejections:
            return SplitScan(best, memory, n_candidates)
        n_rejected = {
            reason: sum(block.tables.count(block.reasons == number) for block in blocks)
            for number, reason in enumerate(REASONS)
        }
        rejected = [each for block in blocks for each in block.list_rejected()]
        first = list_first(rejected, self.candidates)
        return SplitScan(best, memory, n_candidates, n_rejected, first)

    def _pool(self, counts: CountArray) -> CountArray:
        """The counts; for a plain tree those of all environments together, which are then one."""
        if self.settings.tolerance is not None:
            return counts
        pooled: CountArray = counts.sum(axis=-1, keepdims=True)
        return pooled


def _find_scale(
    measured: Sequence[tuple[LeafTables, Effects]],
    cutoff: float,
    tolerance: float,
    totals: CountArray,
) -> float:
    """The deviance that a tree is about, from that of its first split."""
    first = 0.0
    for _, each in measured:
        is_allowed = (each.deviance_explained > cutoff) & each.is_replicated
        is_allowed &= each.heterogeneity_share <= tolerance
        first = max(first, float(each.deviance_explained[is_allowed].max(initial=0.0)))
    return min(_FIRST * first, _MOST * compute_deviance(totals))


class _Block(NamedTuple):
    """The splits of one block of features.

    `usable` is the rounded deviance explained, -1 for splits that may not be used or explain no
    more than chance. Of those that are, `reasons` number `REASONS`, -1 where a split is allowed;
    -2 stands for all others. `shares` is what to remember of each feature.
    """

    tables: LeafTables
    effects: Effects
    usable: FloatArray
    reasons: Array
    shares: FloatArray

    @classmethod
    def make(
        cls,
        tables: LeafTables,
        effects: Effects,
        cutoff: float,
        tolerance: float,
        negligible: float,
        known: FloatArray,
        columns: IntArray | None,
    ) -> _Block:
        is_usable: BoolArray = effects.deviance_explained > cutoff
        rounded = np.where(is_usable, effects.deviance_explained.round(DECIMALS), -1.0)
        # what differs by little does little harm, however small the effect
        share = effects.heterogeneity_share
        share = np.where(effects.heterogeneity <= negligible, np.minimum(share, tolerance), share)
        # of each feature, the largest share that its best split has shown so far
        at = tables.find_best(rounded)
        shares = np.maximum(known, np.where(is_usable[at], share[at], 0.0))
        if columns is not None:
            is_usable &= np.repeat(np.isin(tables.features, columns), tables.n_candidates)
        is_remembered = np.repeat(shares > tolerance, tables.n_candidates)
        conditions = ~effects.is_replicated, share > tolerance, is_remembered
        reasons = np.select([~is_usable, *conditions], [-2, *range(len(REASONS))], -1)
        return cls(tables, effects, np.where(is_usable, rounded, -1.0), reasons, shares)

    def find_allowed(self) -> Found | None:
        """The allowed split that explains most; the first of equals."""
        is_allowed = self.reasons == -1
        if not is_allowed.any():
            return None
        return self._make_found(int(np.where(is_allowed, self.usable, -1.0).argmax()))

    def list_rejected(self) -> list[Rejected]:
        """The rejected split of each feature that explains most, the best features only."""
        rejected = np.where(self.reasons >= 0, self.usable, -1.0)
        at = self.tables.find_best(rejected)
        at = at[np.argsort(-rejected[at], kind="stable")[:N_REJECTED_KEPT]]
        listed = at[rejected[at] >= 0].tolist()
        return [(self._make_found(each), REASONS[self.reasons[each]]) for each in listed]

    def _make_found(self, at: int) -> Found:
        explained = self.effects.deviance_explained[at]
        return make_found(self.tables, at, explained, self.effects, at)
