"""What a finished search has to be told with: p-values and verdicts of the leaves in its trace.

A greedy search compares statistics with a critical value. p-values, intervals and verdicts take
longer than a small fit, and most fits never need them. So the trace of a fit has *deferred* parts,
which are made by the functions of this page when they are first read. They work on counts that the
trace has already, and need no rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from icscm._types import CountArray, FloatArray
from icscm.engine.counts import Cut
from icscm.model.splits import LeafCounts
from icscm.model.tree import Tree
from icscm.search.records import Candidate, Rejection
from icscm.search.settings import Settings
from icscm.search.trace import Scan, Step
from icscm.search.view import ConjunctionView
from icscm.stats.replication import measure_replication
from icscm.stats.verdicts import Verdict


def measure_leaf_effects(
    view: ConjunctionView, model: Tree, cuts: Sequence[Cut]
) -> FloatArray | None:
    """Measure by what factor clusters inflate the tests on a model's leaves; None without any."""
    if not view.is_clustered:
        return None
    patterns = view.count_patterns([view.make_binned_rule(cut) for cut in cuts])
    leaves_of_patterns = patterns.number_leaves(range(len(cuts)))
    return patterns.measure_design_effects(leaves_of_patterns, np.array(model.leaves))


# --- the nodes of the trace -------------------------------------------------------


@dataclass(frozen=True)
class TestedLeaf:
    """A leaf in the trace, and its design effect if rows come in clusters."""

    counts: LeafCounts
    design_effect: float | None


def assess_nodes(
    nodes: Sequence[Scan], *, settings: Settings, counts: CountArray
) -> tuple[Scan, ...]:
    """Add p-values, verdicts and replication to the nodes of a trace.

    `counts` are those of all rows, by (outcome, environment). The candidates of a node are compared
    with the rows that are still uncovered there: first all, then those that the step before left.
    """
    verdicts = make_verdicts(nodes, settings)
    uncovered = counts
    assessed: list[Scan] = []
    for node in nodes:
        assessed_node = assess_rejections(node, verdicts, uncovered=uncovered)
        if isinstance(assessed_node, Step):
            assessed_node = assess_step(assessed_node, verdicts, uncovered=uncovered)
            uncovered = np.array(assessed_node.uncovered)
        assessed.append(assessed_node)
    return tuple(assessed)


def make_verdicts(nodes: Sequence[Scan], settings: Settings) -> dict[TestedLeaf, Verdict]:
    """Make the verdicts on all leaves in the nodes; one that occurs often is tested once."""
    leaves = list(dict.fromkeys(leaf for node in nodes for leaf in list_leaves(node)))
    if not leaves:
        return {}

    design_effects: FloatArray | None = None
    if all(leaf.design_effect is not None for leaf in leaves):
        design_effects = np.array([leaf.design_effect for leaf in leaves])
    verdicts = settings.make_verdicts([leaf.counts for leaf in leaves], effects=design_effects)
    return dict(zip(leaves, verdicts, strict=True))


def list_leaves(node: Scan) -> Iterator[TestedLeaf]:
    """List the leaves of all candidates in a node, and the uncovered rows of a step."""
    for rejection in (*node.best_rejected, *node.nearest):
        yield get_leaf(rejection.candidate)
    if isinstance(node, Step):
        yield get_leaf(node.chosen)
        yield get_uncovered(node)


def get_leaf(candidate: Candidate) -> TestedLeaf:
    """Return what was tested of a candidate."""
    return TestedLeaf(counts=candidate.covered, design_effect=candidate.design_effect)


def get_uncovered(step: Step) -> TestedLeaf:
    """Return what was tested of the rows that a step leaves uncovered."""
    return TestedLeaf(counts=step.uncovered, design_effect=step.effect_uncovered)


def assess_rejections(
    node: Scan, verdicts: dict[TestedLeaf, Verdict], *, uncovered: CountArray
) -> Scan:
    """Add verdicts to the rejected candidates of a node."""

    def assess_all(rejections: Sequence[Rejection]) -> tuple[Rejection, ...]:
        return tuple(
            replace(
                rejection,
                candidate=assess_candidate(rejection.candidate, verdicts, uncovered=uncovered),
            )
            for rejection in rejections
        )

    return replace(
        node, best_rejected=assess_all(node.best_rejected), nearest=assess_all(node.nearest)
    )


def assess_step(step: Step, verdicts: dict[TestedLeaf, Verdict], *, uncovered: CountArray) -> Step:
    """Add verdicts to the chosen candidate of a step, and to the rows that it leaves uncovered."""
    verdict_uncovered = verdicts[get_uncovered(step)]
    return replace(
        step,
        chosen=assess_candidate(step.chosen, verdicts, uncovered=uncovered),
        p_value_uncovered=verdict_uncovered.p_value,
        verdict_uncovered=verdict_uncovered,
    )


def assess_candidate(
    candidate: Candidate, verdicts: dict[TestedLeaf, Verdict], *, uncovered: CountArray
) -> Candidate:
    """Add the verdict on its leaf to a candidate, and its replication where that is defined."""
    leaf = np.array(candidate.covered)
    replication = float(measure_replication(leaf[np.newaxis], uncovered)[0])
    return replace(
        candidate,
        verdict=verdicts[get_leaf(candidate)],
        replication=None if np.isnan(replication) else replication,
    )
