"""Trees from counts: a model and its trace.

Trees of homogeneous rates are grown without the features that make their leaves differ. Splits
cannot be assessed one by one: after any first split of `A1 ? A2 : A3` both children depend on the
environment, and only the whole tree explains that. So whole trees are scored, each the plain one
without some banned features:

    deviance explained   D   by the leaves, of the label
    rate heterogeneity   G   of label against environment, summed over the leaves
    heterogeneity        H   G beyond its quantile of chance
    score                    D - H / tolerance

All are deviances: twice a log-likelihood in nats. Trees share their nodes, and the scan of a node
serves every set of banned features, so that most trees cost no counting.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._types import CountArray
from icscm.engine.counts import CountSource
from icscm.model.splits import LeafCounts, Split, freeze_counts
from icscm.model.tree import Tree
from icscm.search.columns import ColumnScreen, measure_leaves
from icscm.search.grow import Found, Growing, TreeSettings, grow, list_splits, make_root, walk
from icscm.search.records import Candidate, RejectedColumn, Rejection, TriedTree
from icscm.search.scanners import Scanner
from icscm.search.trace import Scan, Step, Trace, make_trace
from icscm.stats.independence import make_test
from icscm.stats.splits import (
    compute_rate_heterogeneity,
    find_quantile,
    measure_balance,
    measure_effects,
)
from icscm.stats.verdicts import make_verdicts

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


def find_tree(
    source: CountSource, settings: TreeSettings, screen: ColumnScreen | None = None
) -> tuple[Tree, Trace]:
    """Grow the tree that the settings require; one screen may serve several tolerances."""
    if settings.needs_rates:
        return find_rate_tree(source, settings)[:2]
    top, rejected = grow_screened(source, settings, screen)
    return describe_tree(source, settings, top, rejected)


def grow_screened(
    source: CountSource, settings: TreeSettings, screen: ColumnScreen | None = None
) -> tuple[Growing, tuple[RejectedColumn, ...]]:
    """The tree of invariant effects, or a plain one, and the columns that it may not use."""
    screen = screen or ColumnScreen(source, settings)
    banned, rejected = screen.reject(settings.tolerance)
    scan = Scanner(source.candidates, settings, banned=banned)
    return grow(screen.root, scan, settings.max_leaves), rejected


def make_tree(source: CountSource, top: Growing, *, balanced: bool) -> Tree:
    """The model: splits and leaves in the order of a walk that goes where rules are true first."""
    splits = (Split(source.candidates.make_rule(cut), *to) for cut, *to in list_splits(top))
    leaves = (freeze_counts(each.node.totals) for each, _ in walk(top) if not each.children)
    return Tree(tuple(splits), tuple(leaves), balanced=balanced)


def describe_tree(
    source: CountSource,
    settings: TreeSettings,
    top: Growing,
    rejected: tuple[RejectedColumn, ...] = (),
) -> tuple[Tree, Trace]:
    """The model and its trace."""
    nodes: list[Scan] = []
    make = source.candidates.make_rule
    for each, path in walk(top):
        found = each.scan
        scan = Scan(
            path=tuple(make(cut) if is_true else make(cut).negate() for cut, is_true in path),
            n_candidates=found.n_candidates,
            n_rejected=found.n_rejected,
            best_rejected=tuple(
                Rejection(_describe(source, settings, each, split), reason)
                for split, reason in found.rejected
            ),
        )
        if each.split is not None:
            nodes.append(Step(**vars(scan), chosen=_describe(source, settings, each, each.split)))
            continue
        end = "rejected" if any(found.n_rejected.values()) else "uninformative"
        if found.best is not None or not found.was_made:
            end = "max_leaves"
        elif not found.n_candidates:
            end = "small"
        nodes.append(replace(scan, end=end))
    model = make_tree(source, top, balanced=settings.balanced)
    required = {"invariance": settings.invariance, "tolerance": settings.tolerance}
    effects = measure_leaves(source, top, np.array(model.leaves))
    verdicts = make_verdicts(model.leaves, make_test("chi2"), CHANCE_LEVEL, effects=effects)
    return model, make_trace(
        source, nodes, verdicts=verdicts, rejected_columns=rejected, **required
    )


def _describe(
    source: CountSource, settings: TreeSettings, each: Growing, found: Found
) -> Candidate:
    true: CountArray = each.node.totals - found.half
    half, node = settings.pool(found.half[np.newaxis]), settings.pool(each.node.totals)
    effects = measure_effects(half, node, 0)
    statistics, _ = compute_rate_heterogeneity(np.stack([each.node.totals, true, found.half]))
    whole, *halves = statistics.tolist()
    return Candidate(
        rule=source.candidates.make_rule(found.cut),
        if_true=freeze_counts(true),
        if_false=freeze_counts(found.half),
        deviance_explained=found.deviance_explained,
        rate_heterogeneity=sum(halves) - whole,
        heterogeneity=effects.heterogeneity.item(),
        heterogeneity_share=effects.heterogeneity_share.item(),
        log_odds_ratio=effects.log_odds_ratio.item(),
    )


# --- trees of homogeneous rates -----------------------------------------------


def find_rate_tree(
    source: CountSource, settings: TreeSettings
) -> tuple[Tree, Trace, Growing, Mapping[int, str]]:
    """The tree of the best score over sets of banned features, then without idle features.

    Its model and trace, with a note if it is beyond the tolerance; the tree as it was grown, and
    why features are banned from it. The share of heterogeneity that the tolerance bounds is that
    of the deviance explained, as if environments were equally large.
    """
    search = _Search(source, settings)
    banned = search.unban(search.ban())
    all_banned = search.drop_idle(banned)
    reasons = {each: "banned" if each in banned else "idle" for each in sorted(all_banned)}
    found, top = search.tree(all_banned), search.grow(reasons, True)
    beyond = found.heterogeneity / search.balance
    share = beyond / found.explained if found.explained > 0 else float(beyond > 0)
    model, trace = describe_tree(source, settings, top)
    trace = replace(trace, tried=search.list_tried(all_banned), heterogeneity_share=share)
    if note := trace.describe_excess():
        trace = replace(trace, notes=(*trace.notes, note))
    return model, trace, top, reasons


class _Grown(NamedTuple):
    """A tree as the trace has it, its features and leaves, and its heterogeneity beyond chance."""

    tried: TriedTree
    used: tuple[int, ...]
    leaves: tuple[LeafCounts, ...]
    explained: float
    heterogeneity: float


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
        own = self._source.candidates, self._settings
        scan = Scanner(*own, record_rejections=record_rejections, banned=banned)
        return grow(self._root, scan, self._settings.max_leaves)

    def tree(self, banned: Banned) -> _Grown:
        """The plain tree without some features, measured."""
        if banned in self._trees:
            return self._trees[banned]
        top = self.grow(dict.fromkeys(banned, "banned"))
        nodes = [each for each, _ in walk(top)]
        splits = [each.split for each in nodes if each.split]
        leaves = np.stack([each.node.totals for each in nodes if not each.children])
        used = tuple(sorted({split.cut.feature for split in splits}))
        for split in splits:
            name = self._source.candidates.make_rule(split.cut).feature
            self._names.setdefault(split.cut.feature, name)
        statistics, dof = compute_rate_heterogeneity(leaves)
        statistic, n_free = float(statistics.sum()), int(dof.sum())
        explained = round(sum(split.deviance_explained for split in splits), DEVIANCE_DECIMALS)
        chance = find_quantile(_CHANCE, n_free)
        effects = measure_leaves(self._source, top, leaves)
        if effects is not None:
            chance *= float(np.average(effects, weights=np.maximum(dof, 1e-9)))
        beyond = round(max(0.0, statistic - chance), DEVIANCE_DECIMALS)
        tried = TriedTree(
            tuple(self._names[each] for each in sorted(banned)),
            tuple(self._names[each] for each in used),
            explained,
            statistic,
            n_free,
            explained - beyond / self._tolerance,
        )
        grown = _Grown(tried, used, tuple(map(freeze_counts, leaves)), explained, beyond)
        self._trees[banned] = grown
        return grown

    def _ban_each(self, banned: Banned) -> Iterator[Banned]:
        """The sets with one more feature, of those that the tree uses, and with its copies.

        Otherwise a copy would replace the feature in the same leaves: not every source stores
        identical features once.
        """
        before = self.tree(banned)
        for feature in before.used:
            wider = banned | {feature}
            while self.tree(wider).leaves == before.leaves:
                copies = set(self.tree(wider).used).difference(before.used)
                if not copies:
                    break
                wider |= copies
            yield wider

    def _rank(self, banned: Banned) -> tuple[float, list[int]]:
        return -self._score(banned), sorted(banned)

    def _score(self, banned: Banned) -> float:
        return self.tree(banned).tried.score

    def ban(self) -> Banned:
        """Grow a tree beyond chance again without each of its features, and so on.

        The deviance that a tree explains bounds the score of all that ban more.
        """
        best: Banned = frozenset()
        front = [best]
        while front and len(self._trees) < _MOST_TREES:
            dependent = [each for each in front if self.tree(each).heterogeneity > 0]
            wider = {more for each in dependent for more in self._ban_each(each)}
            front = sorted(wider, key=self._rank)[:_BEAM]
            best = max([best, *front], key=self._score)
            front = [each for each in front if self.tree(each).explained > self._score(best)]
        return best

    def unban(self, banned: Banned) -> Banned:
        """Allow features again that were banned early but are needed by the remaining ones."""
        while banned:
            again = max((banned - {each} for each in sorted(banned)), key=self._score)
            if self._score(again) <= self._score(banned):
                break
            banned = again
        return banned

    def drop_idle(self, banned: Banned) -> Banned:
        """Ban features that add almost no deviance explained and no homogeneity."""
        n_candidates = max(1, self._root.found.n_candidates)
        level = CHANCE_LEVEL / (n_candidates * self._settings.max_leaves)
        noise = self._settings.design * find_quantile(level, 1)
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
            banned = max(idle, key=self._score)

    def list_tried(self, chosen: Banned) -> tuple[TriedTree, ...]:
        """The best trees by rising score, and last the one that was chosen."""
        others = sorted(self._trees.keys() - {chosen}, key=self._rank)[: N_TRIED_KEPT - 1]
        return tuple(self.tree(each).tried for each in (*reversed(others), chosen))
