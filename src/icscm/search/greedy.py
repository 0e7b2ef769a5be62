"""The greedy cover: Algorithms 1 and 2 of the paper, as a function of counts.

The search never sees a row. It asks a `CountSource` for the cube of the samples still in play,
computes the leaf that each candidate rule would create, and takes the allowed one of largest
utility. A disjunction is learned as a conjunction on the inverted label, its rules negated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import MAX_EQUIVALENT_RULES, N_REFUSED_KEPT
from icscm._types import BoolArray, CountArray, FloatArray
from icscm.engine.counts import CountSource, Cut
from icscm.model.rule_sets import MODEL_KINDS, LeafCounts, RuleSet, freeze_counts
from icscm.model.rules import Rule
from icscm.search.pruning import prune
from icscm.search.settings import Settings
from icscm.search.trace import REFUSALS, Candidate, Look, Refusal, Step, Trace
from icscm.search.view import ConjunctionView, compute_leaves, make_view
from icscm.stats.corrections import find_cutoff
from icscm.stats.criteria import Criterion, PValueCriterion
from icscm.stats.leaf_tables import LeafTables, weigh
from icscm.stats.verdicts import Verdict


def learn(source: CountSource, settings: Settings) -> tuple[RuleSet, Trace]:
    """Learn a model from counts; the trace tells how it came about."""
    view = make_view(source, settings)
    cuts, trace = _grow(view, settings)
    rules = [view.make_rule(cut) for cut in cuts]
    kept = list(range(len(rules)))
    leaves = [step.chosen.leaf for step in trace.steps]
    leaves.append(
        trace.steps[-1].remaining if trace.steps else freeze_counts(source.count_totals())
    )
    if settings.pruning and settings.test is not None:
        table = source.count_patterns([view.make_binned_rule(cut) for cut in cuts])
        kept, tests = prune(table, [rule.feature for rule in rules], settings.alpha)
        leaves = freeze_counts(compute_leaves(table, kept))
        trace = replace(trace, pruning=tuple(tests))
    model = MODEL_KINDS[settings.model_type](tuple(rules[i] for i in kept), tuple(leaves))
    if settings.test is not None:
        trace = replace(trace, verdicts=settings.judge_leaves(model.leaves, settings.test))
    return model, trace


def _grow(view: ConjunctionView, settings: Settings) -> tuple[list[Cut], Trace]:
    """Add rules until there is a reason to stop (Algorithm 2; Algorithm 1 without a test)."""
    cuts: list[Cut] = []
    steps: list[Step] = []
    last_look: Look | None = None
    nearest: tuple[Refusal, ...] = ()
    remaining = view.count_totals()
    memory = _Memory() if settings.evidence == "cumulative" else None
    while (reason := _find_reason_to_stop(steps, remaining, settings)) is None:
        gate = _Gate(_make_step_criterion(view, remaining, settings), memory)
        best, look = _look(view, remaining, settings, gate)
        if not best.ties:
            reason, last_look = "no_candidate", look
            nearest = _find_nearest(view, remaining, settings, gate)
            break
        cut, counts = best.find_first()
        leaf = np.array(counts)
        equivalent = _find_equivalent(view, cut, best.ties[counts][1:])
        view.source.keep(view.make_binned_rule(cut))
        remaining = remaining - leaf
        cuts.append(cut)
        settled, rest = _describe_leaves(view, [leaf, remaining], settings)
        steps.append(
            Step(
                chosen=Candidate(view.make_rule(cut), best.utility, *settled),
                remaining=rest.counts,
                p_value_remaining=rest.p_value,
                look=look,
                equivalent=equivalent,
                n_tied=best.n_ties,
                verdict_remaining=rest.verdict,
            )
        )
    return cuts, Trace(
        steps=tuple(steps),
        stop_reason=reason,
        last_look=last_look,
        nearest=nearest,
        pruning=(),
        classes=tuple(view.source.classes),
        environments=tuple(view.source.environments),
        alpha=None if settings.test is None else settings.alpha,
        notes=tuple(view.source.notes),
    )


def _find_reason_to_stop(
    steps: Sequence[Step], remaining: CountArray, settings: Settings
) -> str | None:
    """Criterion (ii) and the two bounds of the loop; the first rule is always tried."""
    if remaining[0].sum() == 0:
        return "covered"
    criterion = settings.make_criterion() if settings.stop == "independence" else None
    if steps and criterion is not None and criterion.find_accepted(remaining[np.newaxis])[0]:
        return "independence"
    return "max_rules" if len(steps) == settings.max_rules else None


@dataclass
class _Block:
    """The candidates of one block of features, judged."""

    leaves: LeafTables
    utility: FloatArray
    margin: NDArray[np.int64]
    is_candidate: BoolArray
    is_small: BoolArray
    is_dependent: BoolArray

    @property
    def is_tested(self) -> BoolArray:
        """Those large enough to be tested."""
        return self.is_candidate & ~self.is_small


@dataclass
class _Best:
    """The best key so far, its first holders by their leaf, and how many there are."""

    utility: float = -np.inf
    margin: float = -np.inf
    ties: dict[LeafCounts, list[Cut]] = field(default_factory=dict)
    n_ties: int = 0

    def add(self, cuts: Sequence[Cut], leaf: LeafCounts) -> None:
        """More holders with this leaf; the first of each leaf are enough."""
        known = self.ties.get(leaf, [])
        self.ties[leaf] = sorted([*known, *cuts])[: MAX_EQUIVALENT_RULES + 1]

    def find_first(self) -> tuple[Cut, LeafCounts]:
        """The chosen one, by the order that breaks ties, and its leaf."""
        return min((cuts[0], leaf) for leaf, cuts in self.ties.items())


@dataclass(frozen=True)
class _Refused:
    """A refused candidate before it is described."""

    cut: Cut
    utility: float
    margin: int
    reason: str
    leaf: CountArray

    def rank(self) -> tuple[float, int, Cut]:
        """Sorts the largest utility first, then as ties are broken."""
        return -self.utility, -self.margin, self.cut


class _Memory:
    """Which candidates were ever refused for depending on the environment.

    A rule of the true conjunction leaves an invariant leaf at every step, the first included, so
    one refusal is evidence against it for good (`evidence="cumulative"`).
    """

    def __init__(self) -> None:
        self._refused: dict[int, BoolArray] = {}

    def recall(self, leaves: LeafTables, is_dependent: BoolArray) -> BoolArray:
        """Those refused now or before; remembered from now on."""
        by_feature = is_dependent.reshape(len(leaves.features), -1)
        for row, feature in zip(by_feature, leaves.features.tolist(), strict=True):
            if feature in self._refused:
                row |= self._refused[feature]
            self._refused[feature] = row
        return by_feature.ravel()


@dataclass(frozen=True)
class _Gate:
    """Criterion (i) of one step, with the memory of earlier refusals if there is one."""

    criterion: Criterion | None
    memory: _Memory | None

    @property
    def cutoff(self) -> float | None:
        """The p-value up to which it refuses, if it goes by p-values."""
        return self.criterion.alpha if isinstance(self.criterion, PValueCriterion) else None

    def find_refused(self, leaves: LeafTables, is_tested: BoolArray) -> BoolArray:
        """Which of the tested candidates may not be added."""
        is_refused = np.zeros_like(is_tested)
        if self.criterion is not None and is_tested.all():
            is_refused = ~self.criterion.find_accepted(leaves.tables)
        elif self.criterion is not None:
            tested = np.flatnonzero(is_tested)
            is_refused[tested] = ~self.criterion.find_accepted(leaves.tables[tested])
        if self.memory is not None:
            is_refused = self.memory.recall(leaves, is_refused) & is_tested
        return is_refused


def _make_step_criterion(
    view: ConjunctionView, remaining: CountArray, settings: Settings
) -> Criterion | None:
    """Criterion (i); with a correction, at the level that it leaves for this step's candidates.

    The correction needs the p-values of all candidates at once: one more pass over the blocks, and
    eight bytes for each candidate.
    """
    if settings.test is None or settings.correction is None:
        return settings.make_criterion()
    p_values = [np.empty(0)]
    for leaves in view.leaf_tables():
        is_tested = _weigh(leaves, remaining, settings).is_tested
        found = settings.test.compute_p_values(leaves.tables[is_tested])
        p_values.append(np.repeat(found, leaves.find_n_alike()[is_tested]))
    cutoff = find_cutoff(np.concatenate(p_values), settings.alpha, settings.correction)
    return PValueCriterion(settings.test, cutoff)


def _judge(leaves: LeafTables, remaining: CountArray, settings: Settings, gate: _Gate) -> _Block:
    """Utility of every candidate, and whether it may be added."""
    block = _weigh(leaves, remaining, settings)
    return replace(block, is_dependent=gate.find_refused(leaves, block.is_tested))


def _weigh(leaves: LeafTables, remaining: CountArray, settings: Settings) -> _Block:
    """Utility and size of every candidate; nothing is tested yet."""
    worth = weigh(leaves.tables, settings.p, int(remaining.sum()), settings.min_samples_leaf)
    utility, margin, is_candidate, is_small = worth
    if settings.feature_weights is not None:
        weights = settings.feature_weights[leaves.find_features()]
        is_candidate &= weights > 0
        is_small &= is_candidate
        utility = _apply_weights(utility, weights)
    is_dependent = np.zeros_like(is_small)
    return _Block(leaves, utility, margin, is_candidate, is_small, is_dependent)


def _apply_weights(utility: FloatArray, weights: FloatArray) -> FloatArray:
    """A larger weight always helps: it multiplies a gain and divides a loss."""
    safe = np.where(weights > 0, weights, 1.0)
    return np.where(utility >= 0, utility * safe, utility / safe)


def _look(
    view: ConjunctionView, remaining: CountArray, settings: Settings, gate: _Gate
) -> tuple[_Best, Look]:
    """All candidates once: the best allowed one with its ties, and a record of the refused."""
    best = _Best()
    n_candidates = 0
    n_refused = dict.fromkeys(REFUSALS, 0)
    refused: list[_Refused] = []
    for leaves in view.leaf_tables():
        block = _judge(leaves, remaining, settings, gate)
        n_candidates += leaves.count(block.is_candidate)
        n_refused["dependent"] += leaves.count(block.is_dependent)
        n_refused["small"] += leaves.count(block.is_small)
        best = _update_best(best, block, view)
        least = refused[-1].utility if len(refused) == N_REFUSED_KEPT else -np.inf
        more = _add_alike(_find_best_refused(block, least), view)
        refused = sorted(refused + more, key=_Refused.rank)[:N_REFUSED_KEPT]
    described = _describe_refused(view, refused, settings)
    return best, Look(n_candidates, n_refused, described, gate.cutoff)


def _add_alike(refused: Sequence[_Refused], view: ConjunctionView) -> list[_Refused]:
    """With those of identical features: the first of each are enough."""
    return [
        replace(each, cut=cut)
        for each in refused
        for cut in view.list_alike(each.cut, N_REFUSED_KEPT)
    ]


def _update_best(best: _Best, block: _Block, view: ConjunctionView) -> _Best:
    """The better of the best so far and the block's best; joined where they tie."""
    utility = np.where(block.is_tested & ~block.is_dependent, block.utility, -np.inf)
    largest = utility.max(initial=-np.inf)
    if largest == -np.inf or largest < best.utility:
        return best
    allowed = np.flatnonzero(utility == largest)
    allowed = allowed[block.margin[allowed] == block.margin[allowed].max()]
    key = float(block.utility[allowed[0]]), int(block.margin[allowed[0]])
    if key < (best.utility, best.margin):
        return best
    if key > (best.utility, best.margin):
        best = _Best(*key)
    for leaf, holders in _group_by_leaf(block, allowed):
        cuts = [block.leaves.locate(one) for one in holders]
        most = MAX_EQUIVALENT_RULES + 1
        best.add([each for cut in cuts for each in view.list_alike(cut, most)], leaf)
    best.n_ties += int(block.leaves.find_n_alike()[allowed].sum())
    return best


def _group_by_leaf(
    block: _Block, candidates: NDArray[np.intp]
) -> Iterator[tuple[LeafCounts, NDArray[np.intp]]]:
    """The first candidates with each leaf. Nearly always there is but one candidate."""
    if len(candidates) == 1:
        yield freeze_counts(block.leaves.tables[candidates[0]]), candidates
        return
    tables, group = np.unique(block.leaves.tables[candidates], axis=0, return_inverse=True)
    for number, table in enumerate(tables):
        yield freeze_counts(table), candidates[group == number][: MAX_EQUIVALENT_RULES + 1]


def _find_best_refused(block: _Block, least: float) -> list[_Refused]:
    """The refused candidates of largest utility in a block, if it is not below the least."""
    is_refused = block.is_small | block.is_dependent
    refused = np.flatnonzero(is_refused & (block.utility >= least))
    if len(refused) > N_REFUSED_KEPT:
        utility = block.utility[refused]
        refused = refused[utility >= np.partition(utility, -N_REFUSED_KEPT)[-N_REFUSED_KEPT]]
    order = np.lexsort((refused, -block.margin[refused], -block.utility[refused]))
    return [_make_refused(block, one) for one in refused[order[:N_REFUSED_KEPT]]]


def _make_refused(block: _Block, candidate: int) -> _Refused:
    return _Refused(
        cut=block.leaves.locate(candidate),
        utility=float(block.utility[candidate]),
        margin=int(block.margin[candidate]),
        reason="small" if block.is_small[candidate] else "dependent",
        leaf=block.leaves.tables[candidate].copy(),
    )


def _find_nearest(
    view: ConjunctionView, remaining: CountArray, settings: Settings, gate: _Gate
) -> tuple[Refusal, ...]:
    """The candidates refused for dependence whose p-values came nearest to alpha."""
    nearest: list[tuple[float, Cut, _Refused]] = []
    for leaves in view.leaf_tables():
        block = _judge(leaves, remaining, settings, gate)
        refused = np.flatnonzero(block.is_dependent)
        if settings.test is None or len(refused) == 0:
            continue
        p_values = settings.test.compute_p_values(leaves.tables[refused])
        for one in np.lexsort((refused, -p_values))[:N_REFUSED_KEPT]:
            alike = _add_alike([_make_refused(block, refused[one])], view)
            nearest += [(-float(p_values[one]), found.cut, found) for found in alike]
        nearest = sorted(nearest, key=lambda each: each[:2])[:N_REFUSED_KEPT]
    return _describe_refused(view, [found for _, _, found in nearest], settings)


def _find_equivalent(view: ConjunctionView, chosen: Cut, alike: Sequence[Cut]) -> tuple[Rule, ...]:
    """Which of the rules with the same leaf settle the very same samples."""
    if not alike:
        return ()
    same = view.source.find_same_coverage(
        view.make_binned_rule(chosen), [view.make_binned_rule(cut) for cut in alike]
    )
    return tuple(view.make_rule(cut) for cut, is_same in zip(alike, same, strict=True) if is_same)


def _describe_refused(
    view: ConjunctionView, refused: Sequence[_Refused], settings: Settings
) -> tuple[Refusal, ...]:
    described = _describe_leaves(view, [each.leaf for each in refused], settings)
    return tuple(
        Refusal(Candidate(view.make_rule(each.cut), each.utility, *leaf), each.reason)
        for each, leaf in zip(refused, described, strict=True)
    )


class _Leaf(NamedTuple):
    """What the trace tells of a leaf, in the order of `Candidate`'s last fields."""

    p_value: float | None
    counts: LeafCounts
    verdict: Verdict | None


def _describe_leaves(
    view: ConjunctionView, tables: Sequence[CountArray], settings: Settings
) -> list[_Leaf]:
    counts = [view.as_given(table) for table in tables]
    if settings.test is None:
        return [_Leaf(None, leaf, None) for leaf in counts]
    verdicts = settings.judge_leaves(counts, settings.test)
    return [
        _Leaf(verdict.p_value, leaf, verdict)
        for leaf, verdict in zip(counts, verdicts, strict=True)
    ]
