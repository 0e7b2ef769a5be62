"""p-values and verdicts of a greedy search, computed together and when they are first read.

A search decides by statistics alone. The p-values and verdicts of what was chosen and rejected take
longer than a small fit, and most fits never need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from icscm.model.splits import LeafCounts
from icscm.search.records import Candidate, Rejection
from icscm.search.settings import Settings
from icscm.search.trace import Scan, Step, Trace

# A leaf, and the level at which criterion (i) tested it, None for alpha.
Tested = tuple[LeafCounts, float | None]


def defer_verdicts(trace: Trace, settings: Settings) -> Trace:
    """The trace with p-values and verdicts of its nodes, once these are read."""
    if settings.test is None:
        return trace
    light = replace(settings, feature_weights=None)  # which may be large, and are not needed here
    return trace.defer_nodes(partial(_add_verdicts, trace.nodes, light))


def _add_verdicts(nodes: tuple[Scan, ...], settings: Settings) -> tuple[Scan, ...]:
    """The nodes with p-values and verdicts; each leaf is tested once."""
    tested = [*dict.fromkeys(each for node in nodes for each in _list_tested(node))]
    leaves, levels = [leaf for leaf, _ in tested], [level for _, level in tested]
    verdicts = dict(zip(tested, settings.make_verdicts(leaves, levels), strict=True))

    def add(candidate: Candidate, node: Scan) -> Candidate:
        return replace(candidate, verdict=verdicts[candidate.covered, node.cutoff])

    def add_all(rejected: tuple[Rejection, ...], node: Scan) -> tuple[Rejection, ...]:
        return tuple(Rejection(add(each.candidate, node), each.reason) for each in rejected)

    added = []
    for node in nodes:
        rejected, nearest = add_all(node.best_rejected, node), add_all(node.nearest, node)
        node = replace(node, best_rejected=rejected, nearest=nearest)
        if isinstance(node, Step):
            uncovered = verdicts[node.uncovered, None]
            node = replace(
                node,
                chosen=add(node.chosen, node),
                p_value_uncovered=uncovered.p_value,
                verdict_uncovered=uncovered,
            )
        added.append(node)
    return tuple(added)


def _list_tested(node: Scan) -> Iterator[Tested]:
    if isinstance(node, Step):
        yield node.chosen.covered, node.cutoff
        yield node.uncovered, None
    for each in (*node.best_rejected, *node.nearest):
        yield each.candidate.covered, node.cutoff
