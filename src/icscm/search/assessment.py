"""The p-values and verdicts in the trace of a greedy search, which are added after the search.

The search only compares statistics with a critical value. p-values, intervals and verdicts take
longer than a small fit, and most fits never need them. So they are made when the trace is first
read, from counts that it has already.

The trace has a *node* for each scan of the candidates: a `Step` if a candidate was chosen, else a
`Scan`. Each candidate has a *leaf*, the rows that its rule covers, and a step has one more, the
rows that it leaves uncovered. Each of these leaves gets a verdict.
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
    with its rows: those that the steps before it left uncovered, which are all rows at first.
    """
    verdicts = make_verdicts(nodes, settings)
    rows_of_node = counts
    assessed: list[Scan] = []
    for node in nodes:
        assessed_node = assess_rejections(node, verdicts, rows_of_node=rows_of_node)
        if isinstance(assessed_node, Step):
            assessed_node = assess_step(assessed_node, verdicts, rows_of_node=rows_of_node)
            rows_of_node = np.array(assessed_node.uncovered)
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
        yield get_uncovered_leaf(node)


def get_leaf(candidate: Candidate) -> TestedLeaf:
    """Return the leaf of a candidate: the rows that its rule covers."""
    return TestedLeaf(counts=candidate.covered, design_effect=candidate.design_effect)


def get_uncovered_leaf(step: Step) -> TestedLeaf:
    """Return the rows that a step leaves uncovered, which are tested as a leaf."""
    return TestedLeaf(counts=step.uncovered, design_effect=step.effect_uncovered)


def assess_rejections(
    node: Scan, verdicts: dict[TestedLeaf, Verdict], *, rows_of_node: CountArray
) -> Scan:
    """Add verdicts to the rejected candidates of a node."""

    def assess(rejection: Rejection) -> Rejection:
        candidate = assess_candidate(rejection.candidate, verdicts, rows_of_node=rows_of_node)
        return replace(rejection, candidate=candidate)

    return replace(
        node,
        best_rejected=tuple(assess(rejection) for rejection in node.best_rejected),
        nearest=tuple(assess(rejection) for rejection in node.nearest),
    )


def assess_step(
    step: Step, verdicts: dict[TestedLeaf, Verdict], *, rows_of_node: CountArray
) -> Step:
    """Add verdicts to the chosen candidate of a step, and to the rows that it leaves uncovered."""
    verdict_uncovered = verdicts[get_uncovered_leaf(step)]
    return replace(
        step,
        chosen=assess_candidate(step.chosen, verdicts, rows_of_node=rows_of_node),
        p_value_uncovered=verdict_uncovered.p_value,
        verdict_uncovered=verdict_uncovered,
    )


def assess_candidate(
    candidate: Candidate, verdicts: dict[TestedLeaf, Verdict], *, rows_of_node: CountArray
) -> Candidate:
    """Add the verdict on its leaf to a candidate, and its replication where that is defined."""
    leaves = np.array([candidate.covered])  # of a single candidate
    [replication] = measure_replication(leaves, rows_of_node).tolist()
    return replace(
        candidate,
        verdict=verdicts[get_leaf(candidate)],
        replication=None if np.isnan(replication) else replication,
    )
