"""The one door to trees: counts in, a model and its trace out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from icscm._constants import DEFAULT_MARGIN
from icscm._types import CountArray
from icscm.engine.counts import CountSource, Cut
from icscm.engine.pieces import BinnedSplit
from icscm.model.leaves import freeze_counts
from icscm.model.splits import Split
from icscm.model.tree import Tree
from icscm.search.grow import (
    LEVEL,
    EffectLooker,
    Found,
    Growing,
    SplitLook,
    TreeSettings,
    grow,
    walk,
)
from icscm.search.nodes import make_root
from icscm.search.rate_tree import RateTree, find_rate_tree
from icscm.search.trace import Candidate, Rejection, Scan, Step, Trace
from icscm.stats.independence import make_test
from icscm.stats.splits import compute_rate_heterogeneity
from icscm.stats.verdicts import make_verdicts


def find_tree(source: CountSource, settings: TreeSettings) -> tuple[Tree, Trace]:
    """Grow the tree that the settings ask for."""
    if settings.needs_rates:
        return describe_rate_tree(source, settings, find_rate_tree(source, settings))
    root = make_root(source)
    look = EffectLooker(source.candidates, settings, root.size)
    return describe_tree(source, settings, grow(root, look, settings.max_leaves))


def make_tree(source: CountSource, top: Growing, *, balanced: bool) -> Tree:
    """The model: splits and leaves in the order of a walk that goes where rules hold first."""
    cuts, children = list_splits(top)
    rules = map(source.candidates.make_rule, cuts)
    splits = (Split(rule, *each) for rule, each in zip(rules, children, strict=True))
    leaves = (freeze_counts(each.node.totals) for each, _, _ in walk(top) if not each.children)
    return Tree(tuple(splits), tuple(leaves), balanced=balanced)


def list_splits(top: Growing) -> tuple[list[Cut], list[list[int]]]:
    """The cut of each split, and where it leads: to a split, or below 0 to leaf `~number`."""
    cuts: list[Cut] = []
    children: list[list[int]] = []
    n_leaves = 0
    for each, at, _ in walk(top):
        is_split = each.children is not None and each.look.best is not None
        if at is not None:
            parent, side = at
            children[parent][side] = len(children) if is_split else ~n_leaves
        if each.children is not None and each.look.best is not None:
            cuts.append(each.look.best.cut)
            children.append([0, 0])
        else:
            n_leaves += 1
    return cuts, children


def list_binned_splits(source: CountSource, top: Growing) -> list[BinnedSplit]:
    """The splits as sources understand them."""
    cuts, children = list_splits(top)
    rules = map(source.candidates.make_binned_rule, cuts)
    return [BinnedSplit(rule, *each) for rule, each in zip(rules, children, strict=True)]


def describe_tree(source: CountSource, settings: TreeSettings, top: Growing) -> tuple[Tree, Trace]:
    """The model and how it came about."""
    nodes: list[Scan] = []
    for each, _, path in walk(top):
        look = each.look
        rules = (source.candidates.make_rule(cut) for cut, _ in path)
        scan = Scan(
            path=tuple(
                rule if holds else rule.negate()
                for rule, (_, holds) in zip(rules, path, strict=True)
            ),
            n_candidates=look.n_candidates,
            n_rejected=look.n_refused,
            best_rejected=tuple(
                Rejection(_describe(source, each, refused.found), refused.reason)
                for refused in look.refused
            ),
        )
        if each.children and look.best is not None:
            nodes.append(Step(**vars(scan), chosen=_describe(source, each, look.best)))
        else:
            nodes.append(replace(scan, end=_find_end(look)))
    model = make_tree(source, top, balanced=settings.balanced)
    return model, Trace(
        nodes=tuple(nodes),
        classes=tuple(source.classes),
        environments=tuple(source.environments),
        notes=tuple(source.notes),
        verdicts=make_verdicts(model.leaves, make_test("chi2"), LEVEL, DEFAULT_MARGIN),
        invariance=settings.invariance,
        tolerance=settings.tolerance,
    )


def describe_rate_tree(
    source: CountSource, settings: TreeSettings, found: RateTree
) -> tuple[Tree, Trace]:
    """The model and how it came about, with a note if the tree is beyond the tolerance."""
    model, trace = describe_tree(source, settings, found.top)
    trace = replace(trace, tried=found.tried, heterogeneity_share=found.heterogeneity_share)
    note = trace.describe_excess()
    return model, replace(trace, notes=(*trace.notes, note)) if note else trace


def _find_end(look: SplitLook) -> str:
    """Why a leaf was not split."""
    if look.best is not None or not look.was_made:
        return "max_leaves"
    if not look.n_candidates:
        return "small"
    return "rejected" if any(look.n_refused.values()) else "uninformative"


def _describe(source: CountSource, each: Growing, found: Found) -> Candidate:
    true: CountArray = each.node.totals - found.half
    statistics, _ = compute_rate_heterogeneity(np.stack([each.node.totals, true, found.half]))
    whole, *halves = statistics.tolist()
    return Candidate(
        rule=source.candidates.make_rule(found.cut),
        if_true=freeze_counts(true),
        if_false=freeze_counts(found.half),
        deviance_explained=found.deviance_explained,
        rate_heterogeneity=sum(halves) - whole,
        heterogeneity=found.heterogeneity,
        heterogeneity_share=found.heterogeneity_share,
        log_odds_ratio=found.log_odds_ratio,
    )
