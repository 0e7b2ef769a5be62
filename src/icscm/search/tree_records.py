"""A tree that has grown as a model, and as the trace that reports explain it from.

Both list its nodes in the order of a walk (`icscm.search.grow.walk`): each before those below it,
the true side first. So node i of the trace is the same as the i-th line of the printed model.
"""

from dataclasses import dataclass

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm.engine.counts import BinnedColumns, RowSource
from icscm.model.rules import Rule
from icscm.model.splits import Split, freeze_counts
from icscm.model.tree import Tree
from icscm.search.comparable import ComparableColumns
from icscm.search.design_effects import measure_leaf_design_effects
from icscm.search.grow import (
    PathStep,
    SplitCandidate,
    SplitScan,
    Subtree,
    TreeSettings,
    Visit,
    list_leaves,
    number_splits,
    walk,
)
from icscm.search.nodes import Node
from icscm.search.records import Candidate, RejectedColumn, Rejection
from icscm.search.trace import Scan, Step, Trace, make_trace
from icscm.stats.independence import make_test
from icscm.stats.splits import compute_rate_heterogeneity, measure_effect
from icscm.stats.verdicts import make_verdicts


@dataclass(frozen=True)
class ScreenedTree:
    """A tree that has grown, and the columns that it was not allowed to use.

    `comparable` knows those that determine the environment, `rejected_columns` are all others.
    """

    tree: Subtree
    rejected_columns: tuple[RejectedColumn, ...] = ()
    comparable: ComparableColumns | None = None


# --- the model ------------------------------------------------------------------


def make_tree(source: RowSource, tree: Subtree, *, balanced: bool) -> Tree:
    """Make the model: splits and leaves in the order of a walk that visits the true side first."""
    splits = [
        Split(
            rule=source.columns.make_rule(split.cut),
            if_true=split.if_true,
            if_false=split.if_false,
        )
        for split in number_splits(tree)
    ]
    leaves = [freeze_counts(leaf.node.counts) for leaf in list_leaves(tree)]
    return Tree(tuple(splits), tuple(leaves), balanced=balanced)


# --- the trace ------------------------------------------------------------------


def describe_tree(
    source: RowSource, settings: TreeSettings, screened: ScreenedTree
) -> tuple[Tree, Trace]:
    """Make the model of a tree, and its trace."""
    model = make_tree(source, screened.tree, balanced=settings.balanced)
    recorder = TreeRecorder(source.columns, settings)
    nodes = [recorder.make_scan(visit) for visit in walk(screened.tree)]

    design_effects = measure_leaf_design_effects(source, screened.tree, np.array(model.leaves))
    verdicts = make_verdicts(model.leaves, make_test("chi2"), CHANCE_LEVEL, effects=design_effects)
    trace = make_trace(
        source,
        nodes,
        comparable=screened.comparable,
        verdicts=verdicts,
        rejected_columns=screened.rejected_columns,
        invariance=settings.invariance,
        tolerance=settings.tolerance,
    )
    return model, trace


class TreeRecorder:
    """Makes the records of a tree's nodes, as a trace keeps them."""

    def __init__(self, columns: BinnedColumns, settings: TreeSettings) -> None:
        self._columns = columns
        self._settings = settings

    def make_scan(self, visit: Visit) -> Scan:
        """Record the scan of a node; if it was split, as a step."""
        subtree = visit.subtree
        scan = subtree.scan
        path = tuple(self._make_rule_of_side(step) for step in visit.path)
        best_rejected = tuple(
            Rejection(self._make_candidate(subtree.node, rejected.candidate), rejected.reason)
            for rejected in scan.rejected
        )
        if subtree.split is not None:
            return Step(
                path=path,
                n_candidates=scan.n_candidates,
                n_rejected=scan.n_rejected,
                best_rejected=best_rejected,
                chosen=self._make_candidate(subtree.node, subtree.split),
            )
        return Scan(
            path=path,
            n_candidates=scan.n_candidates,
            n_rejected=scan.n_rejected,
            best_rejected=best_rejected,
            end=find_end(scan),
        )

    def _make_rule_of_side(self, step: PathStep) -> Rule:
        """Make the rule that is true of the rows on one side of a split."""
        rule = self._columns.make_rule(step.cut)
        return rule if step.is_true else rule.negate()

    def _make_candidate(self, node: Node, split: SplitCandidate) -> Candidate:
        """Record a split of a node, with the numbers by which a reader may judge it.

        `split.if_false` are the rows (outcome, environment) of which its rule is false. Effects are
        within environments; a plain tree, which uses none, has all its rows pooled as in one.
        """
        effect = measure_effect(
            half=self._settings.pool(split.if_false), node=self._settings.pool(node.counts)
        )
        return Candidate(
            rule=self._columns.make_rule(split.cut),
            if_true=freeze_counts(node.counts - split.if_false),
            if_false=freeze_counts(split.if_false),
            deviance_explained=split.deviance_explained,
            rate_heterogeneity=compute_added_heterogeneity(node, split),
            heterogeneity=effect.heterogeneity,
            heterogeneity_share=effect.heterogeneity_share,
            log_odds_ratio=effect.log_odds_ratio,
        )


def compute_added_heterogeneity(node: Node, split: SplitCandidate) -> float:
    """Compute by how much a split adds to the heterogeneity of rates.

    These are the G statistics of both sides less that of the node; below 0 the split explains a
    part of it.
    """
    if_true = node.counts - split.if_false
    tables = np.stack([node.counts, if_true, split.if_false])
    statistics, _ = compute_rate_heterogeneity(tables)
    g_of_node, g_if_true, g_if_false = statistics.tolist()
    return float(g_if_true + g_if_false - g_of_node)


def find_end(scan: SplitScan) -> str:
    """Find out why a node was not split, as a key of `STOP_REASONS`."""
    if scan.best is not None or not scan.was_made:
        return "max_leaves"
    if scan.n_candidates == 0:
        return "small"
    if any(scan.n_rejected.values()):
        return "rejected"
    return "uninformative"
