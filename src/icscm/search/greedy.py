"""The greedy cover: Algorithms 1 and 2 of the paper, as a function of counts.

The search never sees a row. It asks a `CountSource` for the cube of the samples still in play,
computes the leaf that each candidate rule would create, and takes the allowed one of largest
utility. A disjunction is learned as a conjunction on the inverted label, its rules negated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from icscm._constants import MAX_EQUIVALENT_RULES, N_REFUSED_KEPT
from icscm._types import Array, BoolArray, CountArray
from icscm.engine.counts import CountCube, CountSource, Cut
from icscm.model.leaves import freeze_counts
from icscm.model.tree import Tree, make_chain
from icscm.search.pruning import prune_where_allowed
from icscm.search.settings import Settings
from icscm.search.shortlist import make_question
from icscm.search.trace import Candidate, PruningOutcome, Rejection, Scan, Step, Trace
from icscm.search.view import ConjunctionView, compute_leaves, make_view
from icscm.stats.corrections import find_cutoff
from icscm.stats.criteria import Criterion, PValueCriterion, find_accepted_by
from icscm.stats.leaf_tables import LeafTables
from icscm.stats.replication import find_replicated
from icscm.stats.utility import Worth, make_utility

# Why rules are rejected, in the order in which that is checked.
REASONS = "dependent", "small", "unreplicated", "unhelpful"


def learn(
    source: CountSource, settings: Settings, shared: SharedLooks | None = None
) -> tuple[Tree, Trace]:
    """Learn a model from counts; the trace tells how it came about."""
    view = make_view(source, settings)
    cuts, trace = Growth(view, settings, shared).run()
    rules = tuple(view.make_rule(cut) for cut in cuts)
    kept = list(range(len(rules)))
    leaves = [step.chosen.covered for step in trace.steps]
    leaves.append(
        trace.steps[-1].uncovered if trace.steps else freeze_counts(source.count_totals())
    )
    model = make_chain(settings.model_type, rules, tuple(leaves))
    if settings.pruning and settings.test is not None and rules:
        table = source.count_patterns([view.make_binned_rule(cut) for cut in cuts])
        kept, tests, outcome = prune_where_allowed(table, trace, settings)
        leaves = freeze_counts(compute_leaves(table, kept))
        pruned = make_chain(settings.model_type, [rules[i] for i in kept], leaves)
        n_wrong = sum(model.count_wrong()), sum(pruned.count_wrong())
        trace = replace(trace, pruning=tuple(tests), pruned=PruningOutcome(outcome, *n_wrong))
        model = pruned
    levels = [*(trace.steps[i].cutoff for i in kept), None]
    return model, replace(trace, verdicts=settings.make_verdicts(model.leaves, levels))


@dataclass(frozen=True)
class _Block:
    """The candidates of one block of features, judged."""

    leaves: LeafTables
    worth: Worth
    refused: dict[str, BoolArray]

    @cached_property
    def is_refused(self) -> BoolArray:
        """Those that may not be added, for whatever reason."""
        return reduce(np.logical_or, self.refused.values())

    def find_reason(self, candidate: int) -> str:
        """Why that one may not be added: the first of the reasons."""
        return next(reason for reason, is_so in self.refused.items() if is_so[candidate])


@dataclass
class _Best:
    """The best key so far, its first holders by their leaf's bytes, and how many there are."""

    key: tuple[Any, int]
    ties: dict[bytes, list[Cut]] = field(default_factory=dict)
    n_ties: int = 0

    def add(self, cuts: Sequence[Cut], leaf: bytes) -> None:
        """More holders with this leaf; the first of each leaf are enough."""
        known = self.ties.get(leaf, [])
        self.ties[leaf] = sorted([*known, *cuts])[: MAX_EQUIVALENT_RULES + 1]

    def find_first(self) -> tuple[bytes, list[Cut]]:
        """The leaf of the chosen one, by the order that breaks ties, and all that have it."""
        return min(self.ties.items(), key=lambda tie: tie[1][0])


class _Refused(NamedTuple):
    """A refused candidate before it is described; sorts the largest value first, then as ties."""

    value: Any  # the negative of what it is ranked by
    margin: int
    cut: Cut
    reason: str
    leaf: bytes


@dataclass
class _Seen:
    """What one look at all candidates found, before it is described."""

    best: _Best | None = None
    n_candidates: int = 0
    n_refused: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    refused: list[_Refused] = field(default_factory=list)


class SharedLooks:
    """Looks of searches that differ in alpha only: they see the same until their rules differ.

    The first that comes to some rules looks for all levels at once.
    """

    def __init__(self, settings: Settings, alphas: Iterable[float]) -> None:
        self._alphas, self._settings = list(alphas), settings
        self._seen: dict[tuple[Cut, ...], dict[float, _Seen]] = {}

    def find(self, growth: Growth, cuts: Sequence[Cut], alpha: float) -> _Seen:
        """What the growth sees at a level, having come to some rules."""
        key = tuple(cuts)
        if key not in self._seen:
            each = [replace(self._settings, alpha=one).make_criterion() for one in self._alphas]
            self._seen[key] = dict(zip(self._alphas, growth.look(each), strict=True))
        return self._seen[key][alpha]


class Growth:
    """A conjunction that grows by the best allowed rule, step by step.

    With `evidence="cumulative"` candidates once refused for depending on the environment stay so:
    a rule of the true conjunction leaves an invariant leaf at every step, the first included, so
    that one refusal is evidence against it for good.
    """

    def __init__(
        self, view: ConjunctionView, settings: Settings, shared: SharedLooks | None = None
    ) -> None:
        self._view = view
        self._settings = settings
        # what a correction leaves of alpha, and what was refused before, is each search's own
        is_alike = settings.correction is None and settings.evidence != "cumulative"
        self._shared = shared if is_alike else None
        self._remaining = view.count_totals()
        n_samples = int(self._remaining.sum())
        self._utility = make_utility(settings.p, settings.feature_weights, n_samples)
        self._refused_before: dict[int, BoolArray] = {}

    def run(self) -> tuple[list[Cut], Trace]:
        """Add rules until there is a reason to stop (Algorithm 2; Algorithm 1 without a test)."""
        settings = self._settings
        cuts: list[Cut] = []
        nodes: list[Scan] = []
        while (reason := self._find_reason_to_stop(len(nodes))) is None:
            criterion = self._make_step_criterion()
            if self._shared is None:
                (seen,) = self.look([criterion])
            else:
                seen = self._shared.find(self, cuts, settings.alpha)
            scan = Scan(
                n_candidates=seen.n_candidates,
                n_rejected=dict(seen.n_refused),
                best_rejected=self._describe_refused(seen.refused),
                cutoff=_find_level(criterion),
            )
            if seen.best is None:
                reason = "no_candidate"
                nodes.append(replace(scan, end=reason, nearest=self._find_nearest(criterion)))
                break
            leaf, alike = seen.best.find_first()
            added = self._add(alike, self._read_leaf(leaf))
            nodes.append(Step(**vars(scan), **added, n_tied=seen.best.n_ties))
            cuts.append(alike[0])
        source = self._view.source
        return cuts, Trace(
            nodes=tuple(nodes),
            classes=tuple(source.classes),
            environments=tuple(source.environments),
            notes=tuple(source.notes),
            stop_reason=reason,
            alpha=None if settings.test is None else settings.alpha,
            criterion=settings.make_criterion(),
        )

    def _find_reason_to_stop(self, n_steps: int) -> str | None:
        """Criterion (ii) and the two bounds of the loop; the first rule is always tried."""
        settings = self._settings
        if self._remaining[0].sum() == 0:
            return "covered"
        criterion = settings.make_criterion() if settings.stop == "independence" else None
        remaining = self._remaining[np.newaxis]
        if n_steps and criterion is not None and criterion.find_accepted(remaining)[0]:
            return "independence"
        return "max_rules" if n_steps == settings.max_rules else None

    def _add(self, alike: Sequence[Cut], covered: CountArray) -> dict[str, Any]:
        """Let the samples that the first of some rules covers leave; the fields of its step."""
        view, cut = self._view, alike[0]
        equivalent = view.find_equivalent(cut, alike[1:])
        view.source.keep(view.make_binned_rule(cut))
        self._remaining = self._remaining - covered
        return {
            "chosen": self._make_candidate(cut, covered),
            "uncovered": view.as_given(self._remaining),
            "equivalent": tuple(view.make_rule(each) for each in equivalent),
        }

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
        for leaves in self._view.leaf_tables():
            worth = self._weigh(leaves)
            is_tested = worth.is_candidate & ~worth.is_small
            found = settings.test.compute_p_values(leaves.tables[is_tested])
            p_values.append(np.repeat(found, leaves.find_n_alike()[is_tested]))
        cutoff = find_cutoff(np.concatenate(p_values), settings.alpha, settings.correction)
        return PValueCriterion(settings.test, cutoff)

    def _weigh(self, leaves: LeafTables) -> Worth:
        n_in_play = int(self._remaining.sum())
        return self._utility.weigh(leaves, n_in_play, self._settings.min_samples_leaf)

    def _judge_blocks(
        self, criteria: Sequence[Criterion | None], cubes: Iterable[CountCube] | None = None
    ) -> Iterator[Iterator[_Block]]:
        """All candidates, a block of features at a time, with their worth and whether allowed.

        Each block comes as often as there are criteria, one after the other.
        """
        for leaves in self._view.leaf_tables(cubes):
            yield self._judge_block(leaves, criteria)

    def _judge_block(
        self, leaves: LeafTables, criteria: Sequence[Criterion | None]
    ) -> Iterator[_Block]:
        worth = self._weigh(leaves)
        is_tested = worth.is_candidate & ~worth.is_small
        if not any(criteria):  # then nothing is looked at, and nothing need be copied
            is_tested[:] = False
        tables = leaves.tables if is_tested.all() else leaves.tables[is_tested]
        for is_accepted in find_accepted_by(criteria, tables):
            is_dependent = ~is_accepted
            if len(tables) < len(is_tested):
                is_dependent = np.zeros_like(is_tested)
                is_dependent[is_tested] = ~is_accepted
            if self._settings.evidence == "cumulative":
                is_dependent = self._recall(leaves, is_dependent) & is_tested
            yield _Block(leaves, worth, self._refuse(leaves, worth, is_dependent))

    def _refuse(
        self, leaves: LeafTables, worth: Worth, is_dependent: BoolArray
    ) -> dict[str, BoolArray]:
        """Those refused, each for one reason, in the order of `REASONS`."""
        settings = self._settings
        refused = {"dependent": is_dependent, "small": worth.is_small}
        is_left = worth.is_candidate & ~worth.is_small & ~is_dependent
        if settings.min_replication:
            found = find_replicated(leaves.tables, self._remaining, settings.min_replication)
            refused["unreplicated"] = is_left & ~found
            is_left = is_left & found
        if settings.min_utility is not None:
            refused["unhelpful"] = is_left & self._utility.find_below(worth, settings.min_utility)
        return refused

    def _recall(self, leaves: LeafTables, is_dependent: BoolArray) -> BoolArray:
        """Those refused now or before; remembered from now on."""
        by_feature = is_dependent.reshape(len(leaves.features), -1)
        for row, feature in zip(by_feature, leaves.features.tolist(), strict=True):
            if feature in self._refused_before:
                row |= self._refused_before[feature]
            self._refused_before[feature] = row
        return by_feature.ravel()

    # --- one look at all candidates -------------------------------------------

    def look(self, criteria: Sequence[Criterion | None]) -> list[_Seen]:
        """All candidates once: by each criterion the best allowed one with its ties, and a record
        of the refused.
        """
        found = [self._look_briefly(each) for each in criteria]
        known = [seen for seen in found if seen is not None]
        return known if len(known) == len(found) else self._look_at(criteria)

    def _look_briefly(self, criterion: Criterion | None) -> _Seen | None:
        """The same from a source that judges most candidates itself, if it does."""
        shortlist = self._ask("shortlist", criterion)
        if shortlist is None:
            return None
        (seen,) = self._look_at([criterion], shortlist.cubes)
        seen.n_candidates += shortlist.n_candidates
        for reason, n_refused in shortlist.n_refused.items():
            seen.n_refused[reason] += n_refused
        if seen.best is not None and seen.best.key == shortlist.best:
            seen.best.n_ties += shortlist.n_ties
        return seen

    def _ask(self, method: str, criterion: Criterion | None) -> Any:
        """What a source answers that can judge; None if it cannot, or not by this criterion."""
        judge = getattr(self._view.source, "judge", None)
        if judge is None:
            return None
        own = self._settings, criterion, self._utility, self._remaining
        question = make_question(*own, inverted=self._view.inverted)
        return None if question is None else getattr(judge, method)(question)

    def _look_at(
        self, criteria: Sequence[Criterion | None], cubes: Iterable[CountCube] | None = None
    ) -> list[_Seen]:
        """All candidates, or those in some cubes."""
        found = [_Seen() for _ in criteria]
        for blocks in self._judge_blocks(criteria, cubes):
            for seen, block in zip(found, blocks, strict=True):
                count, values = block.leaves.count, block.worth.utility
                seen.n_candidates += count(block.worth.is_candidate)
                for reason, is_refused in block.refused.items():
                    seen.n_refused[reason] += count(is_refused)
                seen.best = self._update_best(seen.best, block)
                seen.refused = self._merge_refused(seen.refused, block, block.is_refused, values)
        return found

    def _update_best(self, best: _Best | None, block: _Block) -> _Best | None:
        """The better of the best so far and the block's best; joined where they tie."""
        utility, margin = block.worth.utility, block.worth.margin
        is_allowed = block.worth.is_candidate & ~block.is_refused
        largest = utility[is_allowed].max() if is_allowed.any() else None
        if largest is None or (best is not None and largest < best.key[0]):
            return best
        which = np.flatnonzero(is_allowed & (utility == largest))
        which = which[margin[which] == margin[which].max()]
        key = largest.item(), int(margin[which[0]])
        if best is not None and key < best.key:
            return best
        if best is None or key > best.key:
            best = _Best(key)
        best.n_ties += int(block.leaves.find_n_alike()[which].sum())
        by_leaf: dict[bytes, list[int]] = {}
        for one in which.tolist():
            by_leaf.setdefault(block.leaves.tables[one].tobytes(), []).append(one)
        most = MAX_EQUIVALENT_RULES + 1
        for leaf, holders in by_leaf.items():
            cuts = [block.leaves.locate(one) for one in holders[:most]]
            best.add([each for cut in cuts for each in self._view.list_alike(cut, most)], leaf)
        return best

    def _merge_refused(
        self, first: list[_Refused], block: _Block, is_refused: BoolArray, values: Array
    ) -> list[_Refused]:
        """The first few of the refused so far and of some of a block: largest value first."""
        if len(first) == N_REFUSED_KEPT:
            is_refused = is_refused & (values >= -first[-1].value)
        which = np.flatnonzero(is_refused)
        if len(which) > N_REFUSED_KEPT:
            least = np.partition(values[which], -N_REFUSED_KEPT)[-N_REFUSED_KEPT]
            which = which[values[which] >= least]
        order = np.lexsort((which, -block.worth.margin[which], -values[which]))
        for one in which[order[:N_REFUSED_KEPT]].tolist():
            leaf = block.leaves.tables[one].tobytes()
            reason = block.find_reason(one)
            rank = -values[one].item(), -int(block.worth.margin[one])
            cuts = self._view.list_alike(block.leaves.locate(one), N_REFUSED_KEPT)
            first = first + [_Refused(*rank, cut, reason, leaf) for cut in cuts]
        return sorted(first)[:N_REFUSED_KEPT]

    def _find_nearest(self, criterion: Criterion | None) -> tuple[Rejection, ...]:
        """The candidates refused for dependence whose p-values came nearest to alpha."""
        test = self._settings.test
        if test is None:
            return ()
        nearest: list[_Refused] = []
        for (block,) in self._judge_blocks([criterion], self._ask("list_nearest", criterion)):
            is_dependent = block.refused["dependent"]
            p_values = np.zeros(len(is_dependent))
            p_values[is_dependent] = test.compute_p_values(block.leaves.tables[is_dependent])
            nearest = self._merge_refused(nearest, block, is_dependent, p_values)
        return self._describe_refused(nearest)

    # --- in the terms of the trace; p-values and verdicts are added when asked for -----------

    def _describe_refused(self, refused: Sequence[_Refused]) -> tuple[Rejection, ...]:
        return tuple(
            Rejection(self._make_candidate(each.cut, self._read_leaf(each.leaf)), each.reason)
            for each in refused
        )

    def _make_candidate(self, cut: Cut, table: CountArray) -> Candidate:
        utility = self._utility.compute(table, cut.feature)
        covered = self._view.as_given(table)
        return Candidate(rule=self._view.make_rule(cut), covered=covered, utility=utility)

    def _read_leaf(self, leaf: bytes) -> CountArray:
        return np.frombuffer(leaf, self._remaining.dtype).reshape(self._remaining.shape)


def _find_level(criterion: Criterion | None) -> float | None:
    """The p-value up to which it refuses, if it goes by p-values."""
    return criterion.alpha if isinstance(criterion, PValueCriterion) else None
