"""Trees of invariant rates: grown without the features that make their leaves differ.

Splits cannot be judged one by one: any first split of `A1 ? A2 : A3` makes its halves depend on
the environment, and only the whole tree explains that. So whole trees are judged, each the plain
one without some banned features:

    information  I   what the leaves tell of the label
    dependence   G   of label on environment, summed over the leaves, with its degrees of freedom
    excess       X   G beyond its quantile of chance
    score            I - X / tolerance

All are deviances: twice a log-likelihood in nats. Trees share their nodes, and what a look at a
node found serves every set of banned features, so that most trees cost no counting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._constants import N_REFUSED_KEPT
from icscm._types import IntArray
from icscm.engine.bits import list_alike
from icscm.engine.counts import CandidateMap, CountSource
from icscm.model.leaves import LeafCounts, freeze_counts
from icscm.search.grow import (
    DECIMALS,
    LEVEL,
    Found,
    Growing,
    Memory,
    RefusedSplit,
    SplitLook,
    TreeSettings,
    grow,
    rank,
    walk,
)
from icscm.search.nodes import Node, make_root
from icscm.search.trace import TriedTree
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

# Dependence counts beyond what chance exceeds with this probability; a tree is judged once.
_CHANCE: Final = 0.2
# A feature must bring at least this share of a tree's information that no other brings.
_LEAST: Final = 0.01
# Sets of banned features followed at a time, and trees grown after which no more are begun.
_BEAM: Final = 3
_MOST_TREES: Final = 300
# Trees described in the trace.
N_TRIED_KEPT: Final = 50

Banned = frozenset[int]


class RateLooker:
    """Looks at nodes for the split that tells most, without the banned features.

    `banned` says why each of them is. `columns` are the features that may be used, by default all.
    Refusals are described only if `is_told`.
    """

    def __init__(
        self,
        candidates: CandidateMap,
        settings: TreeSettings,
        banned: Mapping[int, str],
        columns: IntArray | None = None,
        *,
        is_told: bool = True,
    ) -> None:
        self._candidates = candidates
        self._settings = settings
        self._banned = banned
        self._columns = columns
        self._is_told = is_told

    def __call__(self, node: Node, memory: Memory) -> SplitLook:
        if node.found is None:
            node.found = find_splits(node, self._candidates, self._settings)
        splits: FeatureSplits = node.found
        is_out = np.isin(splits.features, [*self._banned])
        may_be = ~is_out
        if self._columns is not None:
            may_be &= np.isin(splits.features, self._columns)
        best = splits.best[int(may_be.argmax())] if may_be.any() else None
        if not self._is_told:
            return SplitLook(best, memory, splits.n_candidates)
        n_refused = dict.fromkeys(("banned", "idle"), 0)
        for at in np.flatnonzero(is_out).tolist():
            n_refused[self._banned[int(splits.features[at])]] += int(splits.n_informative[at])
        told = [
            RefusedSplit(found._replace(cut=cut), self._banned[found.cut.feature])
            for found in (splits.best[at] for at in np.flatnonzero(is_out)[:N_REFUSED_KEPT])
            for cut in list_alike(found.cut, self._candidates, N_REFUSED_KEPT)
        ]
        told.sort(key=lambda each: rank(each.found))
        kept = tuple(told[:N_REFUSED_KEPT])
        return SplitLook(best, memory, splits.n_candidates, n_refused, kept)


@dataclass(frozen=True)
class FeatureSplits:
    """The best split of each feature that tells more than chance, the most informative first.

    `n_informative` is how many such splits the feature has, those of identical ones included.
    """

    features: IntArray
    n_informative: IntArray
    best: tuple[Found, ...]
    n_candidates: int


_NOTHING: Final = FeatureSplits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), (), 0)


def find_splits(node: Node, candidates: CandidateMap, settings: TreeSettings) -> FeatureSplits:
    """Look at all splits of a node.

    A split must tell more than chance over all samples, and within environments: the latter keeps
    out what only tells environments apart.
    """
    if node.size < 2 * settings.n_least or not node.totals.any(axis=1).all():
        return _NOTHING  # too small, or of one label
    blocks: list[tuple[LeafTables, Rates]] = []
    for cube in node.count():
        tables = compute_halves(cube, candidates, settings.sides)
        blocks.append((tables, measure_rates(tables.tables, node.totals, settings.n_least)))
    n_candidates = sum(tables.count(rates.pooled >= 0) for tables, rates in blocks)
    if not n_candidates:
        return _NOTHING
    level = LEVEL / (n_candidates * settings.max_leaves)
    found = [
        pair
        for tables, rates in blocks
        for pair in _find_in_block(tables, rates, node, level, settings.n_least)
    ]
    found.sort(key=lambda pair: rank(pair[0]))
    return FeatureSplits(
        np.array([best.cut.feature for best, _ in found], dtype=np.int64),
        np.array([n for _, n in found], dtype=np.int64),
        tuple(best for best, _ in found),
        n_candidates,
    )


def _find_in_block(
    tables: LeafTables, rates: Rates, node: Node, level: float, n_least: int
) -> list[tuple[Found, int]]:
    """The best split of each feature of a block, and how many of its splits tell something."""
    enough = find_quantiles(level, node.totals.shape[1])
    is_informative = (rates.pooled > enough[1]) & (rates.within > enough[rates.n_divided])
    if not is_informative.any():
        return []
    shape = len(tables.features), tables.n_candidates
    information = np.where(is_informative, rates.pooled.round(DECIMALS), -1.0).reshape(shape)
    rows = np.flatnonzero(is_informative.reshape(shape).any(axis=1))
    at = rows * shape[1] + information[rows].argmax(axis=1)  # the first of equals
    counted = is_informative.reshape(shape)[rows].sum(axis=1)
    if tables.n_alike is not None:
        counted = counted * tables.n_alike[rows]
    halves = tables.tables[at]
    effects = measure_effects(halves, node.totals, n_least)
    numbers = zip(
        rates.pooled[at].tolist(),
        effects.heterogeneity.tolist(),
        effects.heterogeneity_share.tolist(),
        effects.log_odds_ratio.tolist(),
        strict=True,
    )
    found = [
        Found(tables.locate(each), half, *measured)
        for each, half, measured in zip(at.tolist(), halves, numbers, strict=True)
    ]
    return list(zip(found, counted.tolist(), strict=True))


@dataclass(frozen=True)
class _Grown:
    """A tree, its sums over leaves, and what it is worth."""

    used: tuple[int, ...]
    leaves: tuple[LeafCounts, ...]
    deviance_explained: float
    rate_heterogeneity: float
    dof: int
    heterogeneity: float
    score: float


@dataclass(frozen=True)
class RateTree:
    """The tree that was found, why features are banned from it, and what was tried, it last.

    `share` is what of its information is owed to differences between environments, as if these
    were equally large: what the tolerance bounds.
    """

    top: Growing
    banned: Mapping[int, str]
    tried: tuple[TriedTree, ...]
    heterogeneity_share: float


def find_rate_tree(source: CountSource, settings: TreeSettings) -> RateTree:
    """The tree of the best score over sets of banned features, then without idle features."""
    search = _Search(source, settings)
    banned = search.take_back(search.ban())
    all_banned = search.drop_idle(banned)
    reasons = {each: "banned" if each in banned else "idle" for each in sorted(all_banned)}
    found = search.tree(all_banned)
    owed = found.heterogeneity / search.balance
    return RateTree(
        search.grow(reasons, is_told=True),
        reasons,
        search.list_tried(all_banned),
        owed / found.deviance_explained if found.deviance_explained > 0 else float(owed > 0),
    )


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

    def grow(self, banned: Mapping[int, str], *, is_told: bool = False) -> Growing:
        """The plain tree without some features."""
        own = self._source.candidates, self._settings, banned
        return grow(self._root, RateLooker(*own, is_told=is_told), self._settings.max_leaves)

    def tree(self, banned: Banned) -> _Grown:
        """What the plain tree without some features is worth."""
        if banned not in self._trees:
            self._trees[banned] = self._weigh(self.grow(dict.fromkeys(banned, "banned")))
        return self._trees[banned]

    def _weigh(self, top: Growing) -> _Grown:
        nodes = [each for each, _, _ in walk(top)]
        splits = [each.look.best for each in nodes if each.children and each.look.best]
        leaves = [each.node.totals for each in nodes if not each.children]
        for split in splits:
            name = self._source.candidates.make_rule(split.cut).feature
            self._names.setdefault(split.cut.feature, name)
        statistics, dof = compute_rate_heterogeneity(np.stack(leaves))
        information = round(sum(split.deviance_explained for split in splits), DECIMALS)
        chance = find_quantile(_CHANCE, int(dof.sum()))
        excess = round(max(0.0, float(statistics.sum()) - chance), DECIMALS)
        return _Grown(
            tuple(sorted({split.cut.feature for split in splits})),
            tuple(map(freeze_counts, leaves)),
            information,
            float(statistics.sum()),
            int(dof.sum()),
            excess,
            information - excess / self._tolerance,
        )

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
        return -self.tree(banned).score, sorted(banned)

    def _find_best(self, sets: Iterable[Banned]) -> Banned:
        """The best of some sets, the first of equals."""
        return min(sets, key=lambda banned: -self.tree(banned).score)

    def ban(self) -> Banned:
        """A tree beyond chance is grown anew without each of its features, and so on.

        A tree's information bounds the score of all that ban more.
        """
        best: Banned = frozenset()
        front = [best]
        while front and len(self._trees) < _MOST_TREES:
            dependent = [each for each in front if self.tree(each).heterogeneity > 0]
            wider = {more for each in dependent for more in self._ban_each(each)}
            front = sorted(wider, key=self._rank)[:_BEAM]
            best = self._find_best([best, *front])
            least = self.tree(best).score
            front = [each for each in front if self.tree(each).deviance_explained > least]
        return best

    def take_back(self, banned: Banned) -> Banned:
        """A feature banned early may be needed by those that were left."""
        while banned:
            again = self._find_best(banned - {feature} for feature in sorted(banned))
            if self.tree(again).score <= self.tree(banned).score:
                break
            banned = again
        return banned

    def drop_idle(self, banned: Banned) -> Banned:
        """Ban features that bring next to nothing: neither information nor independence."""
        n_candidates = max(1, self._root.found.n_candidates)
        noise = find_quantile(LEVEL / (n_candidates * self._settings.max_leaves), 1)
        while idle := [
            each for each in self._ban_each(banned) if self._is_idle(banned, each, noise)
        ]:
            banned = self._find_best(idle)
        return banned

    def _is_idle(self, banned: Banned, wider: Banned, noise: float) -> bool:
        """Whether what is banned besides is not missed."""
        before, after = self.tree(banned), self.tree(wider)
        slack = max(noise, _LEAST * before.deviance_explained)
        allowed = max(before.heterogeneity, self._tolerance * after.deviance_explained / 2)
        return (
            after.deviance_explained >= before.deviance_explained - slack
            and after.heterogeneity <= allowed
        )

    def list_tried(self, chosen: Banned) -> tuple[TriedTree, ...]:
        """The best trees, better and better, and last the one that was chosen."""
        others = sorted(self._trees.keys() - {chosen}, key=self._rank)[: N_TRIED_KEPT - 1]
        return tuple(self._describe(each) for each in (*reversed(others), chosen))

    def _describe(self, banned: Banned) -> TriedTree:
        tree = self.tree(banned)
        return TriedTree(
            tuple(self._names[each] for each in sorted(banned)),
            tuple(self._names[each] for each in tree.used),
            tree.deviance_explained,
            tree.rate_heterogeneity,
            tree.dof,
            tree.score,
        )
