"""Rule sets from counts: a model and its trace, by the search that the settings name.

Pruning (Proposition 3.2) drops the features without which the label is still invariant. The
proposition is about a conjunction all of whose leaves are invariant. The leaves of the rules
passed when these were added; the uncovered samples have passed if the search ended for that reason.
If it ended for another reason, the features that the tests would drop may be needed, and stay.

A greedy search needs statistics only. The p-values and verdicts of the leaves and of the chosen and
rejected rules take longer than a small fit, and most fits never need them: they are computed when
the verdicts or the nodes of the trace are first read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count

import numpy as np

from icscm._constants import P_VALUE_DECIMALS
from icscm._types import CountArray
from icscm.engine.counts import CountSource, Cut
from icscm.engine.pieces import merge_patterns
from icscm.model.splits import LeafCounts, freeze_counts
from icscm.model.tree import Tree, make_chain
from icscm.search.exhaustive import learn_exhaustively
from icscm.search.greedy import Growth
from icscm.search.records import Candidate, PruningOutcome, PruningTest, Rejection
from icscm.search.settings import ConjunctionView, Patterns, Settings
from icscm.search.trace import Scan, Step, Trace
from icscm.stats.criteria import EquivalenceCriterion
from icscm.stats.independence import compute_conditional, exceeds
from icscm.stats.replication import measure_replication
from icscm.stats.verdicts import Verdict


def find_model(source: CountSource, settings: Settings) -> tuple[Tree, Trace]:
    """Learn a model from counts with the search that the settings name.

    With a least utility, rules that together do no better than the majority-class baseline are
    discarded.
    """
    is_greedy = settings.search != "exhaustive"
    model, trace = (learn if is_greedy else learn_exhaustively)(source, settings)
    if settings.min_utility is not None and model.rules and settings.test is not None:
        # by the costs of p, or by plain errors, since with p far from 1 one constant costs little
        gain = max(_measure_gain(model, p) for p in {settings.p, 1.0})
        if gain < Fraction(str(settings.min_utility)):
            found, model = model, model.make_baseline()
            trace = replace(trace, verdicts=(), discarded=found)
            view = ConjunctionView(source, settings)
            trace = trace.defer("verdicts", _plan_verdicts(view, (), model, None))
    if settings.test is not None and getattr(source, "groups", None) is not None:
        effects = [each.design_effect or 1.0 for each in trace.verdicts]
        unit: float = source.groups.unit  # type: ignore[attr-defined]
        note = (
            "Tests and intervals are corrected for groups and weights of rows: the mean design "
            f"effect of the leaves is {sum(effects) / len(effects) / unit:.2f}."
        )
        trace = replace(trace, notes=(*trace.notes, note))
    if is_greedy and settings.test is not None:
        known = trace.nodes, _lighten(settings), source.count_totals()
        trace = trace.defer("nodes", partial(_add_verdicts, *known))
    return model, trace


def _measure_gain(model: Tree, p: float) -> Fraction:
    """The cost that the rules save, compared with the better of the two constant predictions.

    As in a rule's utility, a sample that a rule covers wrongly costs p, one that no rule covers and
    that should be covered costs 1.
    """
    cost, unit = Fraction(str(p)).as_integer_ratio()
    costs = (cost, unit) if model.covers_when else (unit, cost)
    labels: list[int] = np.array(model.leaves).sum(axis=(0, 2)).tolist()
    wrong = model.count_wrong()
    constant = min(costs[0] * labels[0], costs[1] * labels[1])
    return Fraction(constant - costs[0] * wrong[0] - costs[1] * wrong[1], unit)


def learn(source: CountSource, settings: Settings) -> tuple[Tree, Trace]:
    """Learn a model by the greedy search, and prune it; the trace has no p-values yet."""
    growth = Growth(source, settings)
    view, (cuts, leaves, trace) = growth.view, growth.run()
    rules = [view.make_rule(cut) for cut in cuts]
    kept, steps, model = [*range(len(rules))], trace.steps, make_chain(view.kind, rules, leaves)
    tests: list[PruningTest] = []
    if settings.pruning and settings.test is not None and rules:
        before, outcome = model, "not_ended"
        if settings.pruning == "always" or trace.stop_reason == "independence":
            outcome = "single"
            if len({rule.feature for rule in rules}) > 1:
                patterns = view.count_patterns([view.make_binned_rule(cut) for cut in cuts])
                kept, tests = prune_where_allowed(patterns, steps, settings)
                outcome = "removed" if len(kept) < len(rules) else "needed"
        if outcome == "removed":
            leaves = freeze_counts(patterns.compute_leaves(kept))
            model = make_chain(view.kind, [rules[i] for i in kept], leaves)
        n_wrong = sum(before.count_wrong()), sum(model.count_wrong())
        trace = replace(trace, pruning=tuple(tests), pruned=PruningOutcome(outcome, *n_wrong))
    levels = [*(steps[i].cutoff for i in kept), None]
    plan = _plan_verdicts(view, [cuts[i] for i in kept], model, levels)
    return model, trace.defer("verdicts", plan)


def _plan_verdicts(
    view: ConjunctionView, cuts: Sequence[Cut], model: Tree, levels: Sequence[float | None] | None
) -> Callable[[], tuple[Verdict, ...]]:
    """A function that computes the verdicts on the leaves of these cuts, without the samples."""
    effects = None
    if view.is_clustered:
        patterns = view.count_patterns([view.make_binned_rule(cut) for cut in cuts])
        numbers = patterns.find_leaves(range(len(cuts)))
        effects = patterns.measure_effects(numbers, np.array(model.leaves))
    return partial(_lighten(view.settings).make_verdicts, model.leaves, levels, effects=effects)


def _lighten(settings: Settings) -> Settings:
    """Settings to keep: without the weights of the features, which may be large."""
    return settings if settings.feature_weights is None else replace(settings, feature_weights=None)


# --- pruning ------------------------------------------------------------------


def prune_where_allowed(
    patterns: Patterns, steps: Sequence[Step], settings: Settings
) -> tuple[list[int], list[PruningTest]]:
    """The rules to keep and every test made.

    `pruning=True` prunes where the proposition allows it; `"shown"` only where the leaves that are
    left are shown to lie inside the margin; `"always"` for whatever reason the search ended.
    """
    features = [step.chosen.rule.feature for step in steps]
    inside = EquivalenceCriterion(settings.alpha, settings.margin, settings.margin_on)

    def is_allowed(rules: Sequence[int]) -> bool:
        """Whether every leaf of some of the rules is accepted as invariant by the search.

        The leaf of a rule is tested at the level of its rule, the uncovered samples at alpha.
        """
        leaves = patterns.compute_leaves(rules)
        found = patterns.measure_effects(patterns.find_leaves(rules), leaves)
        if settings.pruning == "shown" and not inside.find_accepted(leaves, found).all():
            return False
        levels = [*(steps[i].cutoff for i in rules), None]
        criteria = map(settings.make_criterion, levels)
        return all(
            criterion is None or criterion.find_accepted(leaves[i : i + 1], own)[0]
            for i, criterion in enumerate(criteria)
            for own in [None if found is None else found[i : i + 1]]
        )

    allowed = [] if settings.pruning == "always" else [is_allowed]
    return prune(patterns, features, settings.alpha, *allowed)


def prune(
    patterns: Patterns,
    features: Sequence[str | int],
    alpha: float,
    is_allowed: Callable[[Sequence[int]], bool] = lambda _: True,
) -> tuple[list[int], list[PruningTest]]:
    """The rules to keep, by number, and every test made on the way.

    `features[i]` is the feature of rule i. Each round tests, for every feature, label against
    environment given the values of the rules on the other features, and removes the one of
    largest p-value if that exceeds alpha; of equal ones that which joined the model last. A removal
    after which the rules left are not `is_allowed` is undone, and the next one tried. One feature
    always stays.
    """
    kept, table = list(range(len(features))), patterns.table
    tests: list[PruningTest] = []
    for number in count(1):
        of_kept = [features[i] for i in kept]  # the table is over those kept
        tested = list(dict.fromkeys(of_kept))
        if len(tested) < 2:
            break
        others = [[i for i, other in enumerate(of_kept) if other != each] for each in tested]
        merged = [merge_patterns(table, each) for each in others]
        strata = [each.counts for each in merged]
        own = (patterns.table.patterns[:, [kept[i] for i in each]] for each in others)
        numbers = (np.unique(each, axis=0, return_inverse=True)[1].ravel() for each in own)
        results = compute_conditional(strata, effects=patterns.measure_all(numbers, strata))
        made = [
            PruningTest(number, feature, float(statistic), int(dof), float(p), removed=False)
            for feature, statistic, dof, p in zip(tested, *results, strict=True)
        ]
        removed = None
        ranked = [(round(each.p_value, P_VALUE_DECIMALS), i) for i, each in enumerate(made)]
        for _, one in sorted(ranked, reverse=True):
            if not exceeds(made[one].p_value, alpha):
                break
            if is_allowed([kept[i] for i in others[one]]):
                made[one], removed = replace(made[one], removed=True), one
                break
            made[one] = replace(made[one], undone=True)
        tests += made
        if removed is None:
            break
        table = merged[removed]
        kept = [kept[i] for i in others[removed]]
    return kept, tests


# --- p-values and verdicts ----------------------------------------------------


def _add_verdicts(
    nodes: tuple[Scan, ...], settings: Settings, in_play: CountArray
) -> tuple[Scan, ...]:
    """The nodes with p-values, verdicts and replications; each leaf is tested once."""
    tested = [*dict.fromkeys(each for node in nodes for each in _list_tested(node))]
    leaves, levels, effects = zip(*tested, strict=True) if tested else ((), (), ())
    found = None if None in effects or not tested else np.array(effects)
    made = settings.make_verdicts(leaves, levels, effects=found)
    verdicts = dict(zip(tested, made, strict=True))

    def add(candidate: Candidate, node: Scan) -> Candidate:
        (ratio,) = measure_replication(np.array([candidate.covered]), in_play).tolist()
        verdict = verdicts[candidate.covered, node.cutoff, candidate.design_effect]
        return replace(candidate, verdict=verdict, replication=None if ratio != ratio else ratio)

    added = []
    for node in nodes:
        rejected, nearest = (
            tuple(Rejection(add(each.candidate, node), each.reason) for each in listed)
            for listed in (node.best_rejected, node.nearest)
        )
        node = replace(node, best_rejected=rejected, nearest=nearest)
        if isinstance(node, Step):
            verdict = verdicts[node.uncovered, None, node.effect_uncovered]
            node = replace(
                node,
                chosen=add(node.chosen, node),
                p_value_uncovered=verdict.p_value,
                verdict_uncovered=verdict,
            )
            in_play = np.array(node.uncovered)
        added.append(node)
    return tuple(added)


def _list_tested(node: Scan) -> Iterator[tuple[LeafCounts, float | None, float | None]]:
    """The leaves of a node, the levels at which criterion (i) tested them, and design effects.

    The level is None for alpha.
    """
    candidates = [each.candidate for each in (*node.best_rejected, *node.nearest)]
    if isinstance(node, Step):
        candidates.append(node.chosen)
        yield node.uncovered, None, node.effect_uncovered
    for each in candidates:
        yield each.covered, node.cutoff, each.design_effect
