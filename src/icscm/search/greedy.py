"""The greedy cover: Algorithms 1 and 2 of the paper, as a function of counts.

The search never sees a row. It reads from a `CountSource` the cube of the uncovered samples,
computes the leaf that each candidate rule would create, and takes the allowed one of largest
utility. A disjunction is learned as a conjunction on the inverted label, its rules negated.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icscm._constants import MAX_EQUIVALENT_RULES, N_REJECTED_KEPT
from icscm._types import Array, BoolArray, CountArray, FloatArray
from icscm.engine.clusters import EVERY_ROW
from icscm.engine.counts import (
    CountCube,
    CountSource,
    Cut,
    RulePath,
    Shortlist,
    ShortlistOrder,
    ShortlistQuery,
)
from icscm.engine.leaf_tables import LeafTables, Worth, make_utility
from icscm.model.splits import LeafCounts, freeze_counts
from icscm.search.records import Candidate, Rejection
from icscm.search.settings import ConjunctionView, Settings, make_criteria
from icscm.search.trace import Scan, Step, Trace, make_trace
from icscm.stats import criteria
from icscm.stats.criteria import Criterion, PValueCriterion
from icscm.stats.independence import compute_corrected
from icscm.stats.replication import find_replicated

# Why rules are rejected, in the order in which that is checked.
REASONS = "dependent", "small", "unreplicated", "unhelpful"
_DEPENDENT, _SMALL, _UNREPLICATED, _UNHELPFUL = range(len(REASONS))

# Candidates whose clusters are counted at a time: at first, and at the most.
FIRST_CORRECTED, _MOST_CORRECTED = 2**4, 2**10

# The candidates of one block of features; reasons number `REASONS`, -1 if not rejected.
_Block = tuple[LeafTables, Worth, Array]
# A rejected candidate before it is described: the negatives of the value that it is ranked by and
# of its margin, its cut, the reason, and the bytes of its leaf. Sorted as ties are broken.
_Rejected = tuple[Any, int, Cut, str, bytes]


@dataclass
class _Found:
    """The result of one scan, before it is described.

    `key` is the largest utility and margin, `ties` the first cuts that have it by their leaf's
    bytes, `n_ties` how many there are.
    """

    key: tuple[Any, int] | None = None
    ties: dict[bytes, list[Cut]] = field(default_factory=dict)
    n_ties: int = 0
    n_candidates: int = 0
    n_rejected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    rejected: list[_Rejected] = field(default_factory=list)


class Growth:
    """A conjunction that grows by the best allowed rule, step by step.

    With `evidence="cumulative"` candidates once rejected for depending on the environment stay so:
    a rule of the true conjunction leaves an invariant leaf at every step, the first included, so
    that one rejection is evidence against it for good.
    """

    def __init__(self, source: CountSource, settings: Settings) -> None:
        self.view = ConjunctionView(source, settings)
        self._settings = settings
        self._uncovered = self.view.flip(source.count_totals())
        #: the rules so far: uncovered samples are those of which all are true
        self._path: RulePath = ()
        n_samples = int(self._uncovered.sum())
        self._utility = make_utility(settings.p, settings.feature_weights, n_samples)
        self._rejected_before: dict[int, BoolArray] = {}
        #: the design effect of the uncovered samples
        self._effects: FloatArray | None = None

    def run(self) -> tuple[list[Cut], tuple[LeafCounts, ...], Trace]:
        """Add rules until there is a reason to stop (Algorithm 2; Algorithm 1 without a test).

        The cuts, their leaves and that of the uncovered samples, and the trace.
        """
        settings, view = self._settings, self.view
        cuts: list[Cut] = []
        nodes: list[Scan] = []
        while (reason := self._find_reason_to_stop(len(nodes))) is None:
            if cuts and not view.is_clustered:  # the rows of the last rule need not leave
                view.source.keep(view.make_binned_rule(cuts[-1]))
            criterion = self._make_step_criterion()
            found = self.scan(criterion)
            scan = Scan(
                n_candidates=found.n_candidates,
                n_rejected=dict(found.n_rejected),
                best_rejected=self._describe_rejected(found.rejected),
                cutoff=criterion.alpha if isinstance(criterion, PValueCriterion) else None,
            )
            if not found.ties:
                reason = "no_candidate"
                nodes.append(replace(scan, end=reason, nearest=self._find_nearest(criterion)))
                break
            # of the leaves that tie, that of the first cut in the order that breaks ties
            leaf, alike = min(found.ties.items(), key=lambda tie: tie[1][0])
            cuts.append(alike[0])
            equivalent = view.find_equivalent(self._path, alike[0], alike[1:])
            chosen = self._make_candidate(alike[0], leaf)
            self._path = (*self._path, view.make_binned_rule(alike[0]))
            self._uncovered = self._uncovered - self._read_leaf(leaf)
            if view.is_clustered:  # else they leave when others are counted again
                view.source.keep(view.make_binned_rule(alike[0]))
            effects = self._effects = view.measure_effects([EVERY_ROW], self._uncovered[np.newaxis])
            step = Step(
                **vars(scan),
                chosen=chosen,
                uncovered=freeze_counts(view.flip(self._uncovered)),
                effect_uncovered=None if effects is None else float(effects[0]),
                equivalent=tuple(map(view.make_rule, equivalent)),
                n_tied=found.n_ties,
            )
            nodes.append(step)
        level = None if settings.test is None else settings.alpha
        decided = {"stop_reason": reason, "alpha": level, "criterion": settings.make_criterion()}
        covered = (each.chosen.covered for each in nodes if isinstance(each, Step))
        leaves = (*covered, freeze_counts(view.flip(self._uncovered)))
        return cuts, leaves, make_trace(view.source, nodes, **decided)

    def _find_reason_to_stop(self, n_steps: int) -> str | None:
        """Criterion (ii) and the two bounds of the loop; the first rule is always tried."""
        settings = self._settings
        if self._uncovered[0].sum() == 0:
            return "covered"
        if n_steps and settings.stop == "independence":
            criterion = settings.make_criterion()
            own = self._uncovered[np.newaxis], self._effects
            if criterion is not None and criterion.find_accepted(*own)[0]:
                return "independence"
        return "max_rules" if n_steps == settings.max_rules else None

    # --- criterion (i) --------------------------------------------------------

    def _make_step_criterion(self) -> Criterion | None:
        """Criterion (i); with a correction, at the level that it leaves for this step's candidates.

        The correction needs the p-values of all candidates at once: one more pass over the blocks,
        and eight bytes for each candidate.
        """
        settings = self._settings
        if settings.test is None or settings.correction is None:
            return settings.make_criterion()
        p_values = [np.empty(0)]
        for leaves in self.view.leaf_tables(self._uncovered):
            worth = self._weigh(leaves)
            which = np.flatnonzero(worth.is_candidate & ~worth.is_small)
            effects = self._measure_effects(leaves, which)
            found = compute_corrected(settings.test, leaves.tables[which], effects)
            p_values.append(np.repeat(found, leaves.find_n_alike(which)))
        joined = np.concatenate(p_values)
        cutoff = criteria.find_cutoff(joined, settings.alpha, settings.correction)
        return PValueCriterion(settings.test, cutoff)

    def _weigh(self, leaves: LeafTables) -> Worth:
        n_uncovered = int(self._uncovered.sum())
        return self._utility.weigh(leaves, n_uncovered, self._settings.min_samples_leaf)

    def _examine(
        self,
        criterion: Criterion | None,
        cubes: Iterable[CountCube] | None = None,
        so_far: _Found | None = None,
    ) -> Iterator[_Block]:
        """All candidates, a block of features at a time.

        Candidates that cannot change the scan `so_far` are not corrected for clusters.
        """
        settings = self._settings
        for leaves in self.view.leaf_tables(self._uncovered, cubes):
            worth = self._weigh(leaves)
            is_tested = worth.is_candidate & ~worth.is_small
            # the first reason to reject each candidate, but for dependence, which goes before
            reasons = np.full(len(leaves.tables), -1, dtype=np.int8)
            if settings.min_utility is not None:
                is_below = worth.utility < self._utility.find_bound(settings.min_utility)
                if settings.min_evidence > 0:
                    is_below |= leaves.compute_evidence(self._uncovered) < settings.min_evidence
                reasons[worth.is_candidate & is_below] = _UNHELPFUL
            if (least := settings.min_replication) > 0:
                found = find_replicated(leaves.tables, self._uncovered, least)
                reasons[worth.is_candidate & ~found] = _UNREPLICATED
            reasons[worth.is_small] = _SMALL
            is_dependent = np.zeros_like(is_tested)
            if criterion is not None:
                tables = leaves.tables if is_tested.all() else leaves.tables[is_tested]
                is_dependent[is_tested] = ~criterion.find_accepted(tables)
                if self.view.is_clustered:
                    block = leaves, worth, np.where(is_tested, reasons, np.int8(_SMALL))
                    is_dependent = self._correct(block, is_dependent, criterion, so_far)
                if settings.evidence == "cumulative":
                    is_dependent = self._recall(leaves, is_dependent) & is_tested
            yield leaves, worth, np.where(is_dependent, np.int8(_DEPENDENT), reasons)

    def _measure_effects(self, leaves: LeafTables, which: Array) -> FloatArray | None:
        """Design effects of some candidates; None for independent rows."""
        if not self.view.is_clustered:
            return None
        return self.view.measure_effects(map(leaves.locate, which.tolist()), leaves.tables[which])

    def _correct(
        self, block: _Block, is_dependent: BoolArray, criterion: Criterion, found: _Found | None
    ) -> BoolArray:
        """Which candidates of a block depend on the environment when clusters are allowed for.

        Clusters are counted in descending utility, some candidates at a time, as long as one could
        be the best accepted so far or among the first rejected. A scan keeps nothing else of a
        block, so it finds what it would if all were corrected. The others keep the verdict of the
        test for independent rows, which only enters the number of the rejected.
        """
        leaves, worth, reasons = block
        which = np.flatnonzero(worth.is_candidate & (reasons != _SMALL))
        which = which[np.lexsort((which, -worth.margin[which], -worth.utility[which]))]
        needs_all = found is None or self._settings.evidence == "cumulative"
        first = [] if found is None else found.rejected
        best = -np.inf if found is None or found.key is None else found.key[0]
        last = -first[-1][0] if len(first) == N_REJECTED_KEPT else -np.inf
        corrected, start, size = is_dependent.copy(), 0, FIRST_CORRECTED
        while start < len(which):
            some, n_rejected = which[start : start + size], int(corrected[which[:start]].sum())
            highest = worth.utility[some[0]]
            can_be_listed = n_rejected < N_REJECTED_KEPT and highest >= last
            if not (needs_all or highest >= best or can_be_listed):
                break
            effects = self._measure_effects(leaves, some)
            corrected[some] = ~criterion.find_accepted(leaves.tables[some], effects)
            allowed = some[~corrected[some] & (reasons[some] < 0)]
            best = max(best, worth.utility[allowed[0]]) if len(allowed) else best
            start, size = start + size, min(2 * size, _MOST_CORRECTED)
        return corrected

    def _recall(self, leaves: LeafTables, is_dependent: BoolArray) -> BoolArray:
        """Those rejected now or before; remembered from now on."""
        by_feature = is_dependent.reshape(len(leaves.features), -1)
        for row, feature in zip(by_feature, leaves.features.tolist(), strict=True):
            if feature in self._rejected_before:
                row |= self._rejected_before[feature]
            self._rejected_before[feature] = row
        return by_feature.ravel()

    # --- one scan of all candidates -------------------------------------------

    def scan(self, criterion: Criterion | None) -> _Found:
        """Scan all candidates once: the best allowed with its ties, and a record of the rejected.

        A source may examine most candidates itself.
        """
        shortlist = self._query(ShortlistOrder.UTILITY, criterion)
        if shortlist is None:
            return self._scan_cubes(criterion)
        found = self._scan_cubes(criterion, shortlist.cubes)
        found.n_candidates += shortlist.n_candidates
        for reason, n_rejected in shortlist.n_rejected.items():
            found.n_rejected[reason] += n_rejected
        if found.ties and found.key == shortlist.best:
            found.n_ties += shortlist.n_ties
        return found

    def _query(self, order: ShortlistOrder, criterion: Criterion | None) -> Shortlist | None:
        """The answer of a source that examines candidates itself; None if it does not."""
        shortlister = self.view.source.shortlister
        if shortlister is None or self.view.is_clustered:
            return None
        criteria = make_criteria(self.view, criterion, self._utility, self._uncovered)
        if criteria is None:
            return None
        query = ShortlistQuery(
            path=self._path,
            criteria=criteria,
            order=order,
            n_ties=MAX_EQUIVALENT_RULES + 1,
            n_rejected=N_REJECTED_KEPT,
        )
        return shortlister.shortlist(query)

    def _scan_cubes(
        self, criterion: Criterion | None, cubes: Iterable[CountCube] | None = None
    ) -> _Found:
        """All candidates, or those in some cubes."""
        found = _Found()
        for block in self._examine(criterion, cubes, found):
            leaves, worth, reasons = block
            found.n_candidates += leaves.count(worth.is_candidate)
            for number, reason in enumerate(REASONS):
                found.n_rejected[reason] += leaves.count(reasons == number)
            self._update_best(found, block)
            self._merge_rejected(found.rejected, block, reasons >= 0, worth.utility)
        return found

    def _update_best(self, found: _Found, block: _Block) -> None:
        """Replace the best so far by the block's best; join them where they tie."""
        leaves, (utility, margin, is_candidate, _), reasons = block
        is_allowed = is_candidate & (reasons < 0)
        largest = utility[is_allowed].max() if is_allowed.any() else None
        if largest is None or (found.key is not None and largest < found.key[0]):
            return
        which = np.flatnonzero(is_allowed & (utility == largest))
        which = which[margin[which] == margin[which].max()]
        key = largest.item(), int(margin[which[0]])
        if found.key is not None and key < found.key:
            return
        if key != found.key:
            found.key, found.ties, found.n_ties = key, {}, 0
        found.n_ties += int(leaves.find_n_alike(which).sum())
        by_leaf: dict[bytes, list[int]] = {}
        for one in which.tolist():
            by_leaf.setdefault(leaves.tables[one].tobytes(), []).append(one)
        most = MAX_EQUIVALENT_RULES + 1  # the first of each leaf are enough
        for leaf, holders in by_leaf.items():
            places = (leaves.locate(one) for one in holders[:most])
            cuts = [each for cut in places for each in self.view.list_alike(cut, most)]
            found.ties[leaf] = sorted([*found.ties.get(leaf, []), *cuts])[:most]

    def _merge_rejected(
        self, first: list[_Rejected], block: _Block, is_rejected: BoolArray, values: Array
    ) -> None:
        """Add some of a block to the first few of the rejected so far: largest value first."""
        leaves, worth, reasons = block
        if len(first) == N_REJECTED_KEPT:
            is_rejected = is_rejected & (values >= -first[-1][0])
        which = np.flatnonzero(is_rejected)
        if len(which) > N_REJECTED_KEPT:
            least = np.partition(values[which], -N_REJECTED_KEPT)[-N_REJECTED_KEPT]
            which = which[values[which] >= least]
        order = np.lexsort((which, -worth.margin[which], -values[which]))
        for one in which[order[:N_REJECTED_KEPT]].tolist():
            rank = -values[one].item(), -int(worth.margin[one])
            reason, leaf = REASONS[reasons[one]], leaves.tables[one].tobytes()
            cuts = self.view.list_alike(leaves.locate(one), N_REJECTED_KEPT)
            first += [(*rank, cut, reason, leaf) for cut in cuts]
        first.sort()
        del first[N_REJECTED_KEPT:]

    def _find_nearest(self, criterion: Criterion | None) -> tuple[Rejection, ...]:
        """The candidates rejected for dependence whose p-values came nearest to alpha."""
        test = self._settings.test
        if test is None:
            return ()
        nearest: list[_Rejected] = []
        shortlist = self._query(ShortlistOrder.P_VALUE, criterion)
        for block in self._examine(criterion, None if shortlist is None else shortlist.cubes):
            leaves, _, reasons = block
            is_dependent = reasons == _DEPENDENT
            p_values = np.zeros(len(is_dependent))
            effects = self._measure_effects(leaves, np.flatnonzero(is_dependent))
            p_values[is_dependent] = compute_corrected(test, leaves.tables[is_dependent], effects)
            self._merge_rejected(nearest, block, is_dependent, p_values)
        return self._describe_rejected(nearest)

    # --- in the terms of the trace --------------------------------------------

    def _describe_rejected(self, rejected: Sequence[_Rejected]) -> tuple[Rejection, ...]:
        return tuple(
            Rejection(self._make_candidate(cut, leaf), reason) for *_, cut, reason, leaf in rejected
        )

    def _make_candidate(self, cut: Cut, leaf: bytes) -> Candidate:
        table = self._read_leaf(leaf)
        effects = self.view.measure_effects([cut], table[np.newaxis])
        return Candidate(
            rule=self.view.make_rule(cut),
            covered=freeze_counts(self.view.flip(table)),
            utility=self._utility.compute(table, cut.feature),
            design_effect=None if effects is None else float(effects[0]),
        )

    def _read_leaf(self, leaf: bytes) -> CountArray:
        return np.frombuffer(leaf, self._uncovered.dtype).reshape(self._uncovered.shape)
