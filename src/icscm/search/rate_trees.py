"""Trees of homogeneous rates: in each leaf the outcome has the same rate in every environment.

Such a tree is grown without the columns that make its leaves differ. Splits cannot be assessed one
by one: after any first split of `A1 ? A2 : A3` both children depend on the environment, and only
the whole tree explains that. So whole trees are scored, each the plain one without some *banned*
columns:

    deviance explained   D   by the leaves, of the outcome
    rate heterogeneity   G   of outcome against environment, summed over the leaves
    heterogeneity        H   G beyond its quantile of chance
    score                    D - H / tolerance

All are deviances: twice a log-likelihood in nats. Trees share their nodes, and the scan of a node
serves every set of banned columns, so that most trees cost no counting.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from icscm._constants import CHANCE_LEVEL, DEVIANCE_DECIMALS
from icscm._types import CountArray
from icscm.engine.counts import RowSource
from icscm.model.splits import LeafCounts, freeze_counts
from icscm.model.tree import Tree
from icscm.search.comparable import make_comparable
from icscm.search.design_effects import measure_leaf_design_effects
from icscm.search.grow import Subtree, TreeSettings, grow, list_leaves, list_splits
from icscm.search.nodes import NodeUse, make_root
from icscm.search.records import TriedTree
from icscm.search.split_scanner import SplitFinder, SplitScanner
from icscm.search.trace import Trace
from icscm.search.tree_records import ScreenedTree, describe_tree
from icscm.stats.splits import compute_rate_heterogeneity, find_quantile, measure_balance

# Heterogeneity counts beyond what chance exceeds with this probability: a lenient level, as a tree
# is tested once.
_CHANCE: Final = 0.2
# A column must explain at least this share of a tree's deviance that no other explains.
_MIN_SHARE: Final = 0.01
# Sets of banned columns followed at a time, and trees grown after which no more are begun.
_BEAM_WIDTH: Final = 3
_MAX_TREES: Final = 300
# Trees described in the trace.
N_TRIED_KEPT: Final = 50
# Above 0 for leaves without degrees of freedom, in a mean that is weighted by these.
_MIN_WEIGHT: Final = 1e-9

# The columns that a tree may not use, by which it is known.
Banned = frozenset[int]


@dataclass(frozen=True)
class RateTree:
    """A tree of homogeneous rates.

    Attributes
    ----------
    model, trace : Tree, Trace
        The model, and how it was found.
    tree : Subtree
        The tree as it was grown.
    reasons : mapping of int to str
        Why columns are banned from it.
    """

    model: Tree
    trace: Trace
    tree: Subtree
    reasons: Mapping[int, str]


def find_rate_tree(source: RowSource, settings: TreeSettings) -> RateTree:
    """Find the tree of the best score over sets of banned columns, then without idle columns.

    If it is beyond the tolerance, the trace has a note. The share of heterogeneity that the
    tolerance bounds is that of the deviance explained, as if environments were equally large.
    """
    search = RateTreeSearch(source, settings)
    best_banned = search.ban()
    banned = search.unban(best_banned)
    all_banned = search.drop_idle(banned)

    reasons = {column: "banned" if column in banned else "idle" for column in sorted(all_banned)}
    # It was grown before, but without a record of the splits that were rejected.
    tree = search.grow(reasons, records_rejections=True)
    screened_tree = ScreenedTree(tree, comparable=search.comparable)
    model, trace = describe_tree(source, settings, screened_tree)
    trace = replace(
        trace,
        tried=search.list_tried(all_banned),
        heterogeneity_share=search.compute_share(all_banned),
    )
    note = trace.describe_excess()
    if note is not None:
        trace = replace(trace, notes=(*trace.notes, note))
    return RateTree(model=model, trace=trace, tree=tree, reasons=reasons)


@dataclass(frozen=True)
class MeasuredTree:
    """A tree without some columns, and what it is compared by.

    Attributes
    ----------
    columns : tuple of int
        The columns that it uses, ascending.
    leaves : tuple of LeafCounts
        Its leaves.
    explained : float
        The deviance that they explain.
    heterogeneity : float
        The heterogeneity of their rates beyond chance.
    record : TriedTree
        The tree as the trace has it.
    """

    columns: tuple[int, ...]
    leaves: tuple[LeafCounts, ...]
    explained: float
    heterogeneity: float
    record: TriedTree


@dataclass(frozen=True)
class _RateHeterogeneity:
    """G of outcome against environment in the leaves of a tree, and what chance leaves of it."""

    statistic: float
    dof: int
    beyond_chance: float


class RateTreeSearch:
    """Trees by the set of columns that they may not use, each grown once.

    Of equal scores the first in the order of columns wins: everything is rounded before it is
    compared, so that the order of a sum decides nothing.
    """

    def __init__(self, source: RowSource, settings: TreeSettings) -> None:
        self._source = source
        self._settings = settings
        #: the source without the columns that determine the environment; None where all count
        self.comparable = make_comparable(source, needs_replication=settings.needs_replication)
        self._root = make_root(self.comparable or source, NodeUse.TREES)
        self._finder = SplitFinder(source.columns, settings)
        self._trees: dict[Banned, MeasuredTree] = {}
        # the names of all columns that any of the trees uses
        self._names: dict[int, str | int] = {}
        # The more rows are in one environment, the less heterogeneity can show: the tolerance, a
        # share of the deviance explained, is lower by so much.
        self._balance = measure_balance(self._root.counts)
        self._tolerance = self._balance * (settings.tolerance or 0.0)

    # --- single trees -----------------------------------------------------------

    def grow(self, reasons: Mapping[int, str], *, records_rejections: bool = False) -> Subtree:
        """Grow the plain tree without some columns, given why they are banned."""
        scanner = SplitScanner(
            self._finder, rejected=reasons, records_rejections=records_rejections
        )
        return grow(self._root, scanner, self._settings.max_leaves)

    def find(self, banned: Banned) -> MeasuredTree:
        """Find the plain tree without some columns, grown now or before."""
        if banned not in self._trees:
            tree = self.grow(dict.fromkeys(banned, "banned"))
            self._trees[banned] = self._measure(tree, banned)
        return self._trees[banned]

    def compute_share(self, banned: Banned) -> float:
        """Compute the share of heterogeneity in the deviance that a tree explains."""
        tree = self.find(banned)
        heterogeneity = tree.heterogeneity / self._balance
        if tree.explained > 0:
            return heterogeneity / tree.explained
        return float(heterogeneity > 0)

    def list_tried(self, chosen: Banned) -> tuple[TriedTree, ...]:
        """List the best trees by rising score, and last the one that was chosen."""
        others = sorted(self._trees.keys() - {chosen}, key=self._rank)
        best_others = others[: N_TRIED_KEPT - 1]
        in_order = [*reversed(best_others), chosen]
        return tuple(self.find(banned).record for banned in in_order)

    def _measure(self, tree: Subtree, banned: Banned) -> MeasuredTree:
        """Measure what a tree is compared by.

        Its score is the deviance of the outcome that it explains, less the heterogeneity of its
        leaves' rates. The tolerance is the exchange rate of the two.
        """
        splits = list_splits(tree)
        for split in splits:
            rule = self._source.columns.make_rule(split.cut)
            self._names[split.cut.column] = rule.feature
        columns = tuple(sorted({split.cut.column for split in splits}))
        explained = round(sum(split.deviance_explained for split in splits), DEVIANCE_DECIMALS)

        leaves = np.stack([leaf.node.counts for leaf in list_leaves(tree)])
        rates = self._measure_rates(tree, leaves)
        record = TriedTree(
            banned=tuple(self._names[column] for column in sorted(banned)),
            used=tuple(self._names[column] for column in columns),
            deviance_explained=explained,
            rate_heterogeneity=rates.statistic,
            dof=rates.dof,
            score=explained - rates.beyond_chance / self._tolerance,
        )
        return MeasuredTree(
            columns=columns,
            leaves=tuple(freeze_counts(leaf) for leaf in leaves),
            explained=explained,
            heterogeneity=rates.beyond_chance,
            record=record,
        )

    def _measure_rates(self, tree: Subtree, leaves: CountArray) -> "_RateHeterogeneity":
        """Measure how much the rates of a tree's leaves differ between environments.

        `leaves` are the counts (leaf, outcome, environment). G and its degrees of freedom are those
        of the leaves, added up. Clusters of rows inflate what is expected by chance by the mean of
        the leaves' design effects, weighted by degrees of freedom.
        """
        statistics_of_leaves, dof_of_leaves = compute_rate_heterogeneity(leaves)
        statistic = float(statistics_of_leaves.sum())
        dof = int(dof_of_leaves.sum())

        chance = find_quantile(_CHANCE, dof)
        design_effects = measure_leaf_design_effects(self._source, tree, leaves)
        if design_effects is not None:
            weights = np.maximum(dof_of_leaves, _MIN_WEIGHT)
            chance *= float(np.average(design_effects, weights=weights))
        return _RateHeterogeneity(
            statistic=statistic,
            dof=dof,
            beyond_chance=round(max(0.0, statistic - chance), DEVIANCE_DECIMALS),
        )

    # --- sets of banned columns ---------------------------------------------------

    def ban(self) -> Banned:
        """Find the set of banned columns of the best score, by a beam search from the empty set.

        While a tree's leaves differ beyond chance, it is grown again without each of its columns,
        and the best of these trees are followed further.
        """
        best: Banned = frozenset()
        beam = [best]
        while beam and len(self._trees) < _MAX_TREES:
            heterogeneous = [banned for banned in beam if self.find(banned).heterogeneity > 0]
            wider_sets = {wider for banned in heterogeneous for wider in self._widen(banned)}
            beam = sorted(wider_sets, key=self._rank)[:_BEAM_WIDTH]

            # The deviance that a tree explains bounds the score of all that ban more.
            best = max([best, *beam], key=self._score)
            best_score = self._score(best)
            beam = [banned for banned in beam if self.find(banned).explained > best_score]
        return best

    def unban(self, banned: Banned) -> Banned:
        """Allow columns again that were banned early, one by one while the score rises.

        A column may have been banned when others, that are banned by now, made leaves differ.
        """
        while banned:
            narrower_sets = [banned - {column} for column in sorted(banned)]
            best = max(narrower_sets, key=self._score)
            if self._score(best) <= self._score(banned):
                break
            banned = best
        return banned

    def drop_idle(self, banned: Banned) -> Banned:
        """Ban columns that add almost no deviance explained and no homogeneity, one by one."""
        while True:
            idle = [wider for wider in self._widen(banned) if self._is_idle(banned, wider)]
            if not idle:
                return banned
            banned = max(idle, key=self._score)

    def _is_idle(self, banned: Banned, wider: Banned) -> bool:
        """Whether the tree is nearly as good if a wider set of columns is banned."""
        before = self.find(banned)
        after = self.find(wider)
        negligible_loss = max(self._noise, _MIN_SHARE * before.explained)
        explains_enough = after.explained >= before.explained - negligible_loss

        # Up to half of the tolerance, a little more heterogeneity does not matter.
        half_tolerance = self._tolerance * after.explained / 2
        max_heterogeneity = max(before.heterogeneity, half_tolerance)
        return explains_enough and after.heterogeneity <= max_heterogeneity

    @property
    def _noise(self) -> float:
        """The deviance that the best split of a tree explains by chance."""
        n_candidates = max(1, self._finder.find(self._root).n_candidates)
        level = CHANCE_LEVEL / (n_candidates * self._settings.max_leaves)
        return self._settings.design * find_quantile(level, 1)

    def _widen(self, banned: Banned) -> Iterator[Banned]:
        """Make the sets with one more column, of those that the tree uses, and with its copies.

        Otherwise a copy would replace the column in the same leaves: not every source stores
        identical columns once.
        """
        before = self.find(banned)
        for column in before.columns:
            wider = banned | {column}
            # The same leaves by new columns: these are copies, of which there may be more.
            while self.find(wider).leaves == before.leaves:
                copies = set(self.find(wider).columns).difference(before.columns)
                if not copies:
                    break
                wider |= copies
            yield wider

    def _rank(self, banned: Banned) -> tuple[float, list[int]]:
        """Return what sets are sorted by: the best score first, of equals the first columns."""
        return -self._score(banned), sorted(banned)

    def _score(self, banned: Banned) -> float:
        """Return the score of the tree without some columns."""
        return self.find(banned).record.score
