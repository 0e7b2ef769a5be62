"""Scanners: the best allowed split of a node, and the rejected ones.

Splits of homogeneous effects: the heterogeneity of each split is measured at its node, marginally.
A feature whose effect differs too much is rejected on this branch for good: its largest share of
heterogeneity is remembered down the branch.

Splits for trees of homogeneous rates: the best split of each feature, without the features that
the search of whole trees has banned (`icscm.search.trees`). The scan of a node serves every set of
banned features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import N_REJECTED_KEPT
from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.bits import list_alike
from icscm.engine.counts import CandidateMap
from icscm.search.grow import DECIMALS, LEVEL, Found, Node, Rejected, SplitScan, TreeSettings, rank
from icscm.stats import splits
from icscm.stats.leaf_tables import LeafTables, compute_halves
from icscm.stats.splits import Effects, find_quantile

# Why splits are rejected, in the order in which that is checked.
EFFECT_REASONS: Final = "unreplicated", "heterogeneous", "remembered"
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
        features, shares = np.concatenate(self.features), np.concatenate(self.shares)
        return np.sort(features[shares <= (np.inf if tolerance is None else tolerance)])


@dataclass(frozen=True)
class _Scanner:
    """`columns` are the features that may be used, by default all.

    Rejected splits are described only if `record_rejections`.
    """

    candidates: CandidateMap
    settings: TreeSettings
    columns: IntArray | None = None
    record_rejections: bool = True

    def _list_first(self, rejected: Iterable[Rejected]) -> list[Rejected]:
        """The first few of some rejected splits, those of identical features included."""
        every = [
            (found._replace(cut=cut), reason)
            for found, reason in rejected
            for cut in list_alike(found.cut, self.candidates, N_REJECTED_KEPT)
        ]
        return sorted(every, key=lambda each: rank(each[0]))[:N_REJECTED_KEPT]


def _make_found(tables: LeafTables, at: int, deviance: float, effects: Effects, row: int) -> Found:
    """The split at a place of the tables, whose effect is in a row of `effects`."""
    measured = effects.heterogeneity, effects.heterogeneity_share, effects.log_odds_ratio
    numbers = (float(each[row]) for each in measured)
    return Found(tables.locate(at), tables.tables[at].copy(), float(deviance), *numbers)


@dataclass(frozen=True, kw_only=True)
class EffectScanner(_Scanner):
    """Scans nodes for splits whose effect is homogeneous over environments.

    `n_all` is the number of samples of the whole tree.
    """

    n_all: int

    def __call__(self, node: Node, memory: Memory | None) -> SplitScan:
        settings = self.settings
        if not node.can_split(settings.n_least):
            return SplitScan(None, memory)
        tolerance = np.inf if settings.tolerance is None else settings.tolerance
        totals = self._pool(node.totals)
        measured = []
        for cube in node.count():
            tables = compute_halves(cube, self.candidates, settings.sides)
            effects = splits.measure_effects(self._pool(tables.tables), totals, settings.n_least)
            measured.append((tables, effects))
        n_candidates = sum(each.count(found.deviance_explained >= 0) for each, found in measured)
        if not n_candidates:
            return SplitScan(None, memory)
        cutoff = find_quantile(LEVEL / n_candidates, 1)
        scale = memory.scale if memory else _find_scale(measured, cutoff, tolerance, totals)
        negligible = 0.0 if scale == 0 else tolerance * scale * node.size / self.n_all
        known = memory.shares if memory else [np.zeros(len(each.features)) for each, _ in measured]
        blocks = [
            self._examine(*each, (cutoff, tolerance, negligible), shares)
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
            for number, reason in enumerate(EFFECT_REASONS)
        }
        first = self._list_first(each for block in blocks for each in block.list_rejected())
        return SplitScan(best, memory, n_candidates, n_rejected, first)

    def _pool(self, counts: CountArray) -> CountArray:
        """The counts; for a plain tree those of all environments together, which are then one."""
        if self.settings.tolerance is not None:
            return counts
        pooled: CountArray = counts.sum(axis=-1, keepdims=True)
        return pooled

    def _examine(
        self,
        tables: LeafTables,
        effects: Effects,
        bounds: tuple[float, float, float],
        known: FloatArray,
    ) -> _Block:
        """The splits of a block, and the largest share that each feature has shown so far."""
        cutoff, tolerance, negligible = bounds
        is_usable: BoolArray = effects.deviance_explained > cutoff
        rounded = np.where(is_usable, effects.deviance_explained.round(DECIMALS), -1.0)
        # what differs by little does little harm, however small the effect
        share = effects.heterogeneity_share
        share = np.where(effects.heterogeneity <= negligible, np.minimum(share, tolerance), share)
        at = tables.find_best(rounded)
        shares = np.maximum(known, np.where(is_usable[at], share[at], 0.0))
        if self.columns is not None:
            is_usable &= np.repeat(np.isin(tables.features, self.columns), tables.n_candidates)
        is_remembered = np.repeat(shares > tolerance, tables.n_candidates)
        conditions = ~effects.is_replicated, share > tolerance, is_remembered
        reasons = np.select([~is_usable, *conditions], [-2, *range(len(EFFECT_REASONS))], -1)
        return _Block(tables, effects, np.where(is_usable, rounded, -1.0), reasons, shares)


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
    return min(_FIRST * first, _MOST * splits.compute_deviance(totals))


class _Block(NamedTuple):
    """The splits of one block of features.

    `usable` is the rounded deviance explained, -1 for splits that may not be used or explain no
    more than chance. Of those that are, `reasons` number `EFFECT_REASONS`, -1 where a split is
    allowed; -2 stands for all others. `shares` is what to remember of each feature.
    """

    tables: LeafTables
    effects: Effects
    usable: FloatArray
    reasons: IntArray
    shares: FloatArray

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
        return [(self._make_found(each), EFFECT_REASONS[self.reasons[each]]) for each in listed]

    def _make_found(self, at: int) -> Found:
        explained = self.effects.deviance_explained[at]
        return _make_found(self.tables, at, explained, self.effects, at)


class FeatureSplits(NamedTuple):
    """The best split of each feature that explains more than chance, the best first.

    `n_informative` is how many such splits the feature has, those of identical ones included.
    """

    features: IntArray
    n_informative: tuple[int, ...]
    best: tuple[Found, ...]
    n_candidates: int


@dataclass(frozen=True)
class RateScanner(_Scanner):
    """Scans nodes for the split that explains most, without the banned features.

    `banned` has the reason for each of them.
    """

    banned: Mapping[int, str] = field(default_factory=dict)

    def __call__(self, node: Node, memory: None = None) -> SplitScan:
        if node.found is None:
            node.found = self._find_splits(node)
        known: FeatureSplits = node.found
        is_banned = np.isin(known.features, [*self.banned])
        is_allowed = ~is_banned
        if self.columns is not None:
            is_allowed &= np.isin(known.features, self.columns)
        best = known.best[int(is_allowed.argmax())] if is_allowed.any() else None
        if not self.record_rejections:
            return SplitScan(best, memory, known.n_candidates)
        n_rejected = dict.fromkeys(("banned", "idle"), 0)
        places = np.flatnonzero(is_banned).tolist()
        for at in places:
            n_rejected[self.banned[known.best[at].cut.feature]] += known.n_informative[at]
        rejected = (known.best[at] for at in places[:N_REJECTED_KEPT])
        first = self._list_first((each, self.banned[each.cut.feature]) for each in rejected)
        return SplitScan(best, memory, known.n_candidates, n_rejected, first)

    def _find_splits(self, node: Node) -> FeatureSplits:
        """Scan all splits of a node.

        A split must explain more than chance over all samples, and within environments: the latter
        keeps out features that only distinguish environments.
        """
        settings, blocks = self.settings, []
        if node.can_split(settings.n_least):
            for cube in node.count():
                tables = compute_halves(cube, self.candidates, settings.sides)
                rates = splits.measure_rates(tables.tables, node.totals, settings.n_least)
                blocks.append((tables, rates))
        n_candidates = sum(tables.count(rates.pooled >= 0) for tables, rates in blocks)
        level = LEVEL / (max(n_candidates, 1) * settings.max_leaves)
        enough = splits.find_quantiles(level, node.totals.shape[1])
        found: list[tuple[Found, int]] = []
        for tables, rates in blocks:
            is_informative = (rates.pooled > enough[1]) & (rates.within > enough[rates.n_divided])
            if not is_informative.any():
                continue
            at = tables.find_best(np.where(is_informative, rates.pooled.round(DECIMALS), -1.0))
            rows = np.flatnonzero(is_informative[at])
            counted = is_informative.reshape(len(tables.features), -1)[rows].sum(axis=1)
            if tables.n_alike is not None:
                counted = counted * tables.n_alike[rows]
            halves = tables.tables[at[rows]]
            effects = splits.measure_effects(halves, node.totals, settings.n_least)
            for i, (each, n) in enumerate(zip(at[rows].tolist(), counted.tolist(), strict=True)):
                found.append((_make_found(tables, each, rates.pooled[each], effects, i), n))
        found.sort(key=lambda pair: rank(pair[0]))
        best, n_informative = zip(*found, strict=True) if found else ((), ())
        features = np.array([each.cut.feature for each in best], dtype=np.int64)
        return FeatureSplits(features, n_informative, best, n_candidates)
