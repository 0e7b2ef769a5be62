"""Rule sets from counts: a model and its trace, by the search that the settings name.

The greedy search goes in four steps, a module each:

    a conjunction, rule by rule              `icscm.search.greedy`
    without the columns that it can spare    `icscm.search.pruning`
    discarded, if its rules do not pay       here
    verdicts on its leaves, when first read  `icscm.search.assessment`
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from icscm.engine.counts import Cut, RowSource
from icscm.model.tree import Tree
from icscm.search.assessment import assess_nodes, measure_leaf_effects
from icscm.search.exhaustive import learn_exhaustively
from icscm.search.greedy import learn_conjunction
from icscm.search.pruning import prune_model
from icscm.search.settings import Settings
from icscm.search.trace import Trace
from icscm.search.view import ConjunctionView


def find_model(source: RowSource, settings: Settings) -> tuple[Tree, Trace]:
    """Learn a model from counts with the search that the settings name.

    With a least utility, rules that together do no better than the majority-class baseline are
    discarded.
    """
    is_greedy = settings.search != "exhaustive"
    learner = learn if is_greedy else learn_exhaustively
    model, trace = learner(source, settings)
    if settings.test is None:
        return model, trace

    if is_useless(model, settings):
        baseline = model.make_baseline()
        trace = replace(trace, verdicts=(), discarded=model)
        trace = defer_verdicts(trace, ConjunctionView(source, settings), baseline, cuts=[])
        model = baseline

    if source.clusters is not None:
        note = describe_design(trace, unit=source.clusters.unit)
        trace = replace(trace, notes=(*trace.notes, note))

    if is_greedy:
        # The exhaustive search has p-values from the start; here they are made when first read.
        assess = partial(assess_nodes, trace.nodes, settings=settings, counts=source.count_rows())
        trace = trace.defer("nodes", assess)
    return model, trace


def learn(source: RowSource, settings: Settings) -> tuple[Tree, Trace]:
    """Learn a model by the greedy search, and prune it; the trace has no p-values yet."""
    view = ConjunctionView(source, settings)
    conjunction = learn_conjunction(view)
    pruned = prune_model(view, conjunction)

    trace = replace(conjunction.trace, pruning=pruned.tests, pruned=pruned.result)
    cuts_kept = [conjunction.cuts[number] for number in pruned.kept]
    return pruned.model, defer_verdicts(trace, view, pruned.model, cuts=cuts_kept)


def defer_verdicts(
    trace: Trace, view: ConjunctionView, model: Tree, *, cuts: Sequence[Cut]
) -> Trace:
    """Return the trace with verdicts on the model's leaves, which are made when first read.

    Their design effects are measured now, since the rows may not be there any more by then.
    """
    make_verdicts = partial(
        view.settings.make_verdicts,
        model.leaves,
        effects=measure_leaf_effects(view, model, cuts),
    )
    return trace.defer("verdicts", make_verdicts)


def describe_design(trace: Trace, *, unit: float) -> str:
    """Describe by how much clusters of rows inflate the tests of the leaves.

    `unit` is how many rows stand for one, above 1 where rows were repeated by their weights.
    """
    effects = [verdict.design_effect or 1.0 for verdict in trace.verdicts]
    mean_effect = sum(effects) / len(effects) / unit
    return (
        "Tests and intervals are corrected for groups and weights of rows: the mean design "
        f"effect of the leaves is {mean_effect:.2f}."
    )


# --- is the model of use? -----------------------------------------------------------


def is_useless(model: Tree, settings: Settings) -> bool:
    """Whether the rules of a model together gain less than `min_utility`.

    The gain is the larger of that by the costs of p and that by plain errors: with p far from 1 a
    constant prediction costs little.
    """
    if settings.min_utility is None or not model.rules:
        return False
    gain_by_costs = compute_gain(model, p=settings.p)
    gain_by_errors = compute_gain(model, p=1.0)
    return max(gain_by_costs, gain_by_errors) < Fraction(str(settings.min_utility))


def compute_gain(model: Tree, *, p: float) -> Fraction:
    """Compute the cost that the rules save, compared with the better of two constant predictions.

    As in a rule's utility, |A| - p |B|, a row that a rule covers wrongly costs p, one that no rule
    covers and that should be covered costs 1. Costs are multiplied to whole numbers, so that equal
    ones are exactly equal.
    """
    # p = numerator / denominator, so these are the costs times the denominator
    cost_if_covered, cost_if_uncovered = Fraction(str(p)).as_integer_ratio()
    is_disjunction = model.covers_when
    if is_disjunction:  # it covers positives, so negatives that it covers are wrong
        cost_of_negative = cost_if_covered
        cost_of_positive = cost_if_uncovered
    else:
        cost_of_negative = cost_if_uncovered
        cost_of_positive = cost_if_covered

    n_negatives, n_positives = np.array(model.leaves).sum(axis=(0, 2)).tolist()
    cost_of_constant = min(cost_of_negative * n_negatives, cost_of_positive * n_positives)

    n_wrong_negatives, n_wrong_positives = model.count_wrong()
    cost_of_rules = cost_of_negative * n_wrong_negatives + cost_of_positive * n_wrong_positives
    return Fraction(cost_of_constant - cost_of_rules, cost_if_uncovered)
