"""Trees of homogeneous rates: grown without the features that make their leaves differ.

Splits cannot be assessed one by one: any first split of `A1 ? A2 : A3` makes its halves depend on
the environment, and only the whole tree explains that. So whole trees are scored, each the plain
one without some banned features:

    deviance explained   D   by the leaves, of the label
    rate heterogeneity   G   of label against environment, summed over the leaves
    heterogeneity        H   G beyond its quantile of chance
    score                    D - H / tolerance

All are deviances: twice a log-likelihood in nats. Trees share their nodes, and the scan of a node
serves every set of banned features, so that most trees cost no counting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import N_REJECTED_KEPT
from icscm._types import IntArray
from icscm.engine.counts import CandidateMap, CountSource
from icscm.model.splits import LeafCounts, freeze_counts
from icscm.search.grow import (
    DECIMALS,
    LEVEL,
    Found,
    Growing,
    SplitScan,
    TreeSettings,
    can_split,
    grow,
    list_first,
    make_found,
    rank,
    walk,
)
from icscm.search.nodes import Node, make_root
from icscm.search.records import TriedTree
from icscm.stats.leaf_tables import LeafTables, compute_halves
from icscm.stats.splits import (
    Rates,
    compute_rate_heterogeneity,
    find_quantile,
    find_quantiles,
    measure_balance,
    measure_effects,
    measure_rates,
)

# Heterogeneity counts beyond what chance exceeds with this probability; a tree is tested once.
_CHANCE: Final = 0.2
# A feature must explain at least this share of a tree's deviance that no other explains.
_LEAST: Final = 0.01
# Sets of banned features followed at a time, and trees grown after which no more are begun.
_BEAM: Final = 3
_MOST_TREES: Final = 300
# Trees described in the trace.
N_TRIED_KEPT: Final = 50

Banned = frozenset[int]


@dataclass(frozen=True)
class RateScanner:
    """Scans nodes for the split that explains most, without the banned features.

    `banned` has the reason for each of them. `columns` are the features that may be used, by
    default all. Rejected splits are described only if `record_rejections`.
    """

    candidates: CandidateMap
    settings: TreeSettings
    banned: Mapping[int, str] = field(default_factory=dict)
    columns: IntArray | None = None
    record_rejections: bool = True

    def __call__(self, node: Node, memory: None = None) -> SplitScan:
        if node.found is None:
            node.found = find_splits(node, self.candidates, self.settings)
        splits: FeatureSplits = node.found
        is_banned = np.isin(splits.features, [*self.banned])
        is_allowed = ~is_banned
        if self.columns is not None:
            is_allowed &= np.isin(splits.features, self.columns)
        best = splits.best[int(is_allowed.argmax())] if is_allowed.any() else None
        if not self.record_rejections:
            return SplitScan(best, memory, splits.n_candidates)
        n_rejected = dict.fromkeys(("banned", "idle"), 0)
        places = np.flatnonzero(is_banned).tolist()
        for at in places:
            n_rejected[self.banned[splits.best[at].cut.feature]] += splits.n_informative[at]
        rejected = (splits.best[at] for at in places[:N_REJECTED_KEPT])
        reasons = ((each, self.banned[each.cut.feature]) for each in rejected)
        first = list_first(reasons, self.candidates)
        return SplitScan(best, memory, splits.n_candidates, n_rejected, first)


class FeatureSplits(NamedTuple):
    """The best split of each feature that explains more than chance, the best first.

    `n_informative` is how many such splits the feature has, those of identical ones included.
    """

    features: IntArray
    n_informative: tuple[int, ...]
    best: tuple[Found, ...]
    n_candidates: int


def find_splits(node: Node, candidates: CandidateMap, settings: TreeSettings) -> FeatureSplits:
    """Scan all splits of a node.

    A split must explain more than chance over all samples, and within environments: the latter
    keeps out features that only distinguish environments.
    """
    blocks: list[tuple[LeafTables, Rates]] = []
    if can_split(node, settings.n_least):
        for cube in node.count():
            tables = compute_halves(cube, candidates, settings.sides)
            blocks.append((tables, measure_rates(tables.tables, node.totals, settings.n_least)))
    n_candidates = sum(tables.count(rates.pooled >= 0) for tables, rates in blocks)
    level = LEVEL / (max(n_candidates, 1) * settings.max_leaves)
    found = [
        pair for block in blocks for pair in _find_in_block(*block, node, level, settings.n_least)
    ]
    found.sort(key=lambda pair: rank(pair[0]))
    features = np.array([best.cut.feature for best, _ in found], dtype=np.int64)
    return FeatureSplits(
        features, tuple(n for _, n in found), tuple(best for best, _ in found), n_candidates
    )


def _find_in_block(
    tables: LeafTables, rates: Rates, node: Node, level: float, n_least: int
) -> Iterator[tuple[Found, int]]:
    """The best split of each feature of a block, and how many of its splits explain something."""
    enough = find_quantiles(level, node.totals.shape[1])
    is_informative = (rates.pooled > enough[1]) & (rates.within > enough[rates.n_divided])
    if not is_informative.any():
        return
    at = tables.find_best(np.where(is_informative, rates.pooled.round(DECIMALS), -1.0))
    rows = np.flatnonzero(is_informative[at])
    counted = is_informative.reshape(len(tables.features), -1)[rows].sum(axis=1)
    if tables.n_alike is not None:
        counted = counted * tables.n_alike[rows]
    effects = measure_effects(tables.tables[at[rows]], node.totals, n_least)
    for i, (each, n) in enumerate(zip(at[rows].tolist(), counted.tolist(), strict=True)):
        yield make_found(tables, each, rates.pooled[each], effects, i), n


class _Grown(NamedTuple):
    """A tree as the trace has it, its features and leaves, and its heterogeneity beyond chance."""

    tried: TriedTree
    used: tuple[int, ...]
    leaves: tuple[LeafCounts, ...]
    heterogeneity: float

    @property
    def explained(self) -> float:
        return self.tried.deviance_explained


@dataclass(frozen=True)
class RateTree:
    """The tree that was found, why features are banned from it, and what was tried, it last.

    `heterogeneity_share` is the part of the deviance explained that is due to differences between
    environments, as if these were equally large: what the tolerance bounds.
    """

    top: Growing
    banned: Mapping[int, str]
    tried: tuple[TriedTree, ...]
    heterogeneity_share: float


def find_rate_tree(source: CountSource, settings: TreeSettings) -> RateTree:
    """The tree of the best score over sets of banned features, then without idle features."""
    search = _Search(source, settings)
    banned = search.unban(search.ban())
    all_banned = search.drop_idle(banned)
    reasons = {each: "banned" if each in banned else "idle" for each in sorted(all_banned)}
    found = search.tree(all_banned)
    beyond = found.heterogeneity / search.balance
    share = beyond / found.explained if found.explained > 0 else float(beyond > 0)
    return RateTree(search.grow(reasons, True), reasons, search.list_tried(all_banned), share)


class _Search:
    """Trees by the set of features that they may not use, each grown once.

    Of equal scores the first in the order of features wins: everything is rounded before it is
    compared, so that the order of a sum decides nothing.
    """

    def __init__(self, source: CountSource, settings: TreeSettings) -> None:
        self._source = source
        self._settings = settings
        self._root = make_root(source, is_shared=True)
        self._trees: dict[Banned, _Grown] = {}
        self._names: dict[int, str | int] = {}
        self.balance = measure_balance(self._root.totals)
        self._tolerance = self.balance * (settings.tolerance or 0.0)

    def grow(self, banned: Mapping[int, str], record_rejections: bool = False) -> Growing:
        """The plain tree without some features."""
        scan = RateScanner(
            self._source.candidates, self._settings, banned, record_rejections=record_rejections
        )
        return grow(self._root, scan, self._settings.max_leaves)

    def tree(self, banned: Banned) -> _Grown:
        """The plain tree without some features, measured."""
        if banned in self._trees:
            return self._trees[banned]
        nodes = [each for each, _ in walk(self.grow(dict.fromkeys(banned, "banned")))]
        splits = [each.scan.best for each in nodes if each.children and each.scan.best]
        leaves = [each.node.totals for each in nodes if not each.children]
        used = tuple(sorted({split.cut.feature for split in splits}))
        for split in splits:
            name = self._source.candidates.make_rule(split.cut).feature
            self._names.setdefault(split.cut.feature, name)
        statistics, dof = (each.sum() for each in compute_rate_heterogeneity(np.stack(leaves)))
        explained = round(sum(split.deviance_explained for split in splits), DECIMALS)
        chance = find_quantile(_CHANCE, int(dof))
        beyond = round(max(0.0, float(statistics) - chance), DECIMALS)
        tried = TriedTree(
            tuple(self._names[each] for each in sorted(banned)),
            tuple(self._names[each] for each in used),
            explained,
            float(statistics),
            int(dof),
            explained - beyond / self._tolerance,
        )
        grown = _Grown(tried, used, tuple(map(freeze_counts, leaves)), beyond)
        self._trees[banned] = grown
        return grown

    def _ban_each(self, banned: Banned) -> list[Banned]:
        """The sets with one more feature, of those that the tree uses."""
        return [self._ban_one(banned, feature) for feature in self.tree(banned).used]

    def _ban_one(self, banned: Banned, feature: int) -> Banned:
        """One more feature, and its copies: those that step in and leave all leaves as they were.

        Not every source stores identical features once.
        """
        before, wider = self.tree(banned), banned | {feature}
        while self.tree(wider).leaves == before.leaves:
            copies = set(self.tree(wider).used).difference(before.used)
            if not copies:
                break
            wider |= copies
        return wider

    def _rank(self, banned: Banned) -> tuple[float, list[int]]:
        return -self._score(banned), sorted(banned)

    def _score(self, banned: Banned) -> float:
        return self.tree(banned).tried.score

    def _find_best(self, sets: Iterable[Banned]) -> Banned:
        """The best of some sets, the first of equals."""
        return min(sets, key=lambda banned: -self._score(banned))

    def ban(self) -> Banned:
        """A tree beyond chance is grown anew without each of its features, and so on.

        The deviance that a tree explains bounds the score of all that ban more.
        """
        best: Banned = frozenset()
        front = [best]
        while front and len(self._trees) < _MOST_TREES:
            dependent = [each for each in front if self.tree(each).heterogeneity > 0]
            wider = {more for each in dependent for more in self._ban_each(each)}
            front = sorted(wider, key=self._rank)[:_BEAM]
            best = self._find_best([best, *front])
            front = [each for each in front if self.tree(each).explained > self._score(best)]
        return best

    def unban(self, banned: Banned) -> Banned:
        """A feature banned early may be needed by those that were left."""
        while banned:
            again = self._find_best(banned - {feature} for feature in sorted(banned))
            if self._score(again) <= self._score(banned):
                break
            banned = again
        return banned

    def drop_idle(self, banned: Banned) -> Banned:
        """Ban features that add next to nothing: neither deviance explained nor homogeneity."""
        n_candidates = max(1, self._root.found.n_candidates)
        noise = find_quantile(LEVEL / (n_candidates * self._settings.max_leaves), 1)
        while True:
            before = self.tree(banned)
            least = before.explained - max(noise, _LEAST * before.explained)
            idle = []
            for wider in self._ban_each(banned):
                after = self.tree(wider)
                allowed = max(before.heterogeneity, self._tolerance * after.explained / 2)
                if after.explained >= least and after.heterogeneity <= allowed:
                    idle.append(wider)
            if not idle:
                return banned
            banned = self._find_best(idle)

    def list_tried(self, chosen: Banned) -> tuple[TriedTree, ...]:
        """The best trees by rising score, and last the one that was chosen."""
        others = sorted(self._trees.keys() - {chosen}, key=self._rank)[: N_TRIED_KEPT - 1]
        return tuple(self.tree(each).tried for each in (*reversed(others), chosen))
