"""Trees grown on counts: best first, each split the most informative one that may be made.

The search never sees a row. `invariance` says what must not differ between environments:

    "effect"   of each split: what it does to the odds, whatever an environment's own rate;
               splits whose effect differs too much are refused (this module)
    "rate"     of each leaf: the label's rate; the tree is grown without the features that make
               its leaves depend on the environment (`icscm.search.rate_tree`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import N_REFUSED_KEPT
from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm.engine.bits import list_alike
from icscm.engine.counts import CandidateMap, Cut
from icscm.search.nodes import Node
from icscm.stats.leaf_tables import EITHER_SIDE, LeafTables, compute_halves
from icscm.stats.splits import Effects, find_quantile, measure_deviance, measure_effects

# Information must be beyond this level of chance, Bonferroni over the candidates of a node.
LEVEL: Final = 0.05
# Information that differ by less are equal: the order of a sum must not decide anything.
DECIMALS: Final = 6
# What `tolerance="auto"` stands for, the same for all data.
TOLERANCES: Final = {"effect": 0.03, "rate": 0.005}
# A split is measured against its own information, or against what a tree is about if that is more:
# twice its first split's, at most this share of all that is to be explained.
_FIRST: Final = 2.0
_MOST: Final = 1 / 6


@dataclass(frozen=True)
class TreeSettings:
    """What the growth of a tree must know besides the counts.

    Without a `tolerance` nothing is refused, and environments play no part: a plain tree.
    """

    invariance: str = "effect"
    tolerance: float | None = TOLERANCES["effect"]
    max_leaves: int = 16
    n_least: int = 1
    missing: str = "candidate"
    balanced: bool = False

    @property
    def needs_rates(self) -> bool:
        """Whether rates must be the same, rather than effects or nothing."""
        return self.invariance == "rate" and self.tolerance is not None

    @property
    def sides(self) -> Sequence[bool]:
        """The truths for a missing value that rules may have."""
        return (False,) if self.missing == "separate" else EITHER_SIDE


class Found(NamedTuple):
    """A split of a node; `half` counts the samples for which its rule is false."""

    cut: Cut
    half: CountArray
    deviance_explained: float
    heterogeneity: float
    heterogeneity_share: float
    log_odds_ratio: float


class RefusedSplit(NamedTuple):
    """A split that may not be made, the most informative one of its feature."""

    found: Found
    reason: str


class Memory(NamedTuple):
    """What is known of the features on the way down: the largest share that each has shown.

    By block of features, as the source has them. `scale` is the information that differences are
    measured against, for a tree of all samples; None until the root was looked at.
    """

    features: tuple[IntArray, ...] = ()
    shares: tuple[FloatArray, ...] = ()
    scale: float | None = None


@dataclass(frozen=True)
class SplitLook:
    """What a look at all splits of a node found; whether one was made at all."""

    best: Found | None
    memory: Memory
    n_candidates: int = 0
    n_refused: dict[str, int] = field(default_factory=dict)
    refused: tuple[RefusedSplit, ...] = ()
    was_made: bool = True


@dataclass
class Growing:
    """A node of a tree that grows."""

    node: Node
    look: SplitLook
    children: tuple[Growing, Growing] | None = None


# A look at a node, given what is known from the nodes above.
Looker = Callable[[Node, Memory], SplitLook]


def grow(root: Node, look: Looker, max_leaves: int, memory: Memory | None = None) -> Growing:
    """Split the leaf whose best split tells most, again and again."""
    top = Growing(root, look(root, memory or Memory()))
    waiting: list[tuple[float, int, Growing]] = []
    n_seen = 0

    def wait(leaf: Growing) -> None:
        nonlocal n_seen
        if leaf.look.best is not None:
            heappush(waiting, (-round(leaf.look.best.deviance_explained, DECIMALS), n_seen, leaf))
        n_seen += 1

    wait(top)
    n_leaves = 1
    while waiting and n_leaves < max_leaves:
        leaf = heappop(waiting)[2]
        best = leaf.look.best
        if best is None:  # pragma: no cover (those do not wait)
            continue
        n_leaves += 1
        halves = leaf.node.split(best.cut, best.half)
        is_last = n_leaves == max_leaves  # then nobody asks what they could be split by
        nothing = SplitLook(None, leaf.look.memory, was_made=False)
        looks = [nothing if is_last else look(half, leaf.look.memory) for half in halves]
        true, false = (Growing(*each) for each in zip(halves, looks, strict=True))
        leaf.children = true, false
        wait(true)
        wait(false)
    return top


# A node, the split and side it hangs from, and the way to it.
_Place = tuple[Growing, tuple[int, int] | None, tuple[tuple[Cut, bool], ...]]


def walk(top: Growing) -> Iterator[_Place]:
    """All nodes of a tree, where rules hold first."""
    waiting: list[_Place] = [(top, None, ())]
    n_splits = 0
    while waiting:
        each, at, path = waiting.pop()
        yield each, at, path
        if each.children and each.look.best is not None:
            cut = each.look.best.cut
            true, false = each.children
            waiting.append((false, (n_splits, 1), (*path, (cut, False))))
            waiting.append((true, (n_splits, 0), (*path, (cut, True))))
            n_splits += 1


class EffectLooker:
    """Looks at nodes for splits whose effect is the same in all environments.

    `columns` are the features that may be used, by default all. Refusals are described only if
    `is_told`.
    """

    def __init__(
        self,
        candidates: CandidateMap,
        settings: TreeSettings,
        n_all: int,
        columns: IntArray | None = None,
        *,
        is_told: bool = True,
    ) -> None:
        self._candidates = candidates
        self._settings = settings
        self._n_all = n_all
        self._columns = columns
        self._is_told = is_told

    def __call__(self, node: Node, memory: Memory) -> SplitLook:
        settings = self._settings
        if node.size < 2 * settings.n_least or not node.totals.any(axis=1).all():
            return SplitLook(None, memory)  # too small, or of one label
        totals = node.totals if settings.tolerance is not None else pool(node.totals)
        halves, effects = [], []
        for cube in node.count():
            tables = compute_halves(cube, self._candidates, settings.sides)
            counts = tables.tables if settings.tolerance is not None else pool(tables.tables)
            halves.append(tables)
            effects.append(measure_effects(counts, totals, settings.n_least))
        n_candidates = sum(
            tables.count(each.deviance_explained >= 0)
            for tables, each in zip(halves, effects, strict=True)
        )
        if not n_candidates:
            return SplitLook(None, memory)
        cutoff = find_quantile(LEVEL / n_candidates, 1)
        tolerance = np.inf if settings.tolerance is None else settings.tolerance
        scale = memory.scale
        if scale is None:
            scale = _find_scale(effects, cutoff, tolerance, totals)
        negligible = 0.0 if scale == 0 else tolerance * scale * node.size / self._n_all
        known = memory.shares or [np.zeros(len(tables.features)) for tables in halves]
        judged = [
            _Judged(tables, each, cutoff, tolerance, negligible, shares, self._columns)
            for tables, each, shares in zip(halves, effects, known, strict=True)
        ]
        return SplitLook(
            min(filter(None, (each.find_best() for each in judged)), key=rank, default=None),
            Memory(
                tuple(tables.features for tables in halves),
                tuple(each.shares for each in judged),
                scale,
            ),
            n_candidates,
            *(_describe(judged, self._candidates) if self._is_told else ()),
        )


def pool(counts: CountArray) -> CountArray:
    """Counts of all environments together, which are then one."""
    pooled: CountArray = counts.sum(axis=-1, keepdims=True)
    return pooled


def _find_scale(
    effects: Sequence[Effects], cutoff: float, tolerance: float, totals: CountArray
) -> float:
    """The information that a tree is about, from that of its first split."""
    first = 0.0
    for each in effects:
        is_allowed = (
            (each.deviance_explained > cutoff)
            & each.is_replicated
            & (each.heterogeneity_share <= tolerance)
        )
        first = max(first, float(each.deviance_explained[is_allowed].max(initial=0.0)))
    return min(_FIRST * first, _MOST * measure_deviance(totals))


def rank(found: Found) -> tuple[float, Cut]:
    """The most informative first; of equals the first in the order of cuts."""
    return -round(found.deviance_explained, DECIMALS), found.cut


class _Judged:
    """The splits of one block of features: which may be made, and what to remember of them."""

    def __init__(
        self,
        tables: LeafTables,
        effects: Effects,
        cutoff: float,
        tolerance: float,
        negligible: float,
        known: FloatArray,
        columns: IntArray | None,
    ) -> None:
        self._tables, self._effects = tables, effects
        n_features = len(tables.features)
        shape = n_features, tables.n_candidates
        self._is_informative = effects.deviance_explained > cutoff
        # what differs by little does little harm, however small the effect
        is_small = effects.heterogeneity <= negligible
        share = np.where(
            is_small,
            np.minimum(effects.heterogeneity_share, tolerance),
            effects.heterogeneity_share,
        )
        self._rounded = effects.deviance_explained.round(DECIMALS)
        own = self._is_informative.reshape(shape)
        at = np.where(own, self._rounded.reshape(shape), -1.0).argmax(axis=1)
        every = np.arange(n_features)
        shown = np.where(own[every, at], share.reshape(shape)[every, at], 0.0)
        #: of each feature, the largest share that its most informative split has shown so far
        self.shares = np.maximum(known, shown)
        is_known = np.repeat(self.shares > tolerance, shape[1])
        self._refused: dict[str, BoolArray] = {
            "unreplicated": ~effects.is_replicated,
            "heterogeneous": share > tolerance,
            "remembered": is_known,
        }
        self._is_usable = self._is_informative
        if columns is not None:
            is_asked = np.isin(tables.features, columns)
            self._is_usable = self._is_informative & np.repeat(is_asked, shape[1])

    def find_best(self) -> Found | None:
        """The most informative split that may be made; the first of equals."""
        is_refused = np.logical_or.reduce([*self._refused.values()])
        allowed = self._is_usable & ~is_refused
        if not allowed.any():
            return None
        return self._make_found(int(np.where(allowed, self._rounded, -1.0).argmax()))

    def count_refused(self) -> dict[str, int]:
        """Informative splits that were refused, by the first reason."""
        left = self._is_usable.copy()
        counts = {}
        for reason, is_so in self._refused.items():
            counts[reason] = self._tables.count(left & is_so)
            left &= ~is_so
        return counts

    def list_refused(self) -> list[RefusedSplit]:
        """The most informative refused split of each feature, the best features only."""
        is_refused = np.logical_or.reduce([*self._refused.values()]) & self._is_usable
        rounded = np.where(is_refused, self._rounded, -1.0)
        by_feature = rounded.reshape(len(self._tables.features), -1)
        first = by_feature.max(axis=1)
        best = np.argsort(-first, kind="stable")[:N_REFUSED_KEPT]
        best = best[first[best] >= 0]
        places = best * by_feature.shape[1] + by_feature[best].argmax(axis=1)
        return [
            RefusedSplit(
                self._make_found(at), next(why for why, is_so in self._refused.items() if is_so[at])
            )
            for at in places.tolist()
        ]

    def _make_found(self, at: int) -> Found:
        effects = self._effects
        return Found(
            self._tables.locate(at),
            self._tables.tables[at].copy(),
            float(effects.deviance_explained[at]),
            float(effects.heterogeneity[at]),
            float(effects.heterogeneity_share[at]),
            float(effects.log_odds_ratio[at]),
        )


def _describe(
    judged: Sequence[_Judged], candidates: CandidateMap
) -> tuple[dict[str, int], tuple[RefusedSplit, ...]]:
    """How many were refused and why, and the most informative of them, copies included."""
    counts: dict[str, int] = {}
    for each in judged:
        for reason, n in each.count_refused().items():
            counts[reason] = counts.get(reason, 0) + n
    every = [
        refused._replace(found=refused.found._replace(cut=cut))
        for each in judged
        for refused in each.list_refused()
        for cut in list_alike(refused.found.cut, candidates, N_REFUSED_KEPT)
    ]
    return counts, tuple(sorted(every, key=lambda each: rank(each.found))[:N_REFUSED_KEPT])
