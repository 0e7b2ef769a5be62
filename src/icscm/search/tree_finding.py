"""The one door to trees: counts in, a model and its trace out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from icscm._constants import DEFAULT_MARGIN
from icscm._types import CountArray
from icscm.engine.counts import CountSource, Cut
from icscm.engine.pieces import BinnedSplit
from icscm.model.leaves import freeze_counts
from icscm.model.rules import Rule
from icscm.model.splits import Split
from icscm.model.tree import Tree
from icscm.search.banning import RateTree, find_rate_tree
from icscm.search.nodes import make_root
from icscm.search.tree import (
    LEVEL,
    EffectLooker,
    Found,
    Growing,
    SplitLook,
    TreeSettings,
    grow,
    walk,
)
from icscm.search.tree_trace import NodeLook, SplitCandidate, SplitRefusal, TreeTrace
from icscm.stats.independence import make_test
from icscm.stats.splits import measure_dependence
from icscm.stats.verdicts import make_verdicts


def find_tree(source: CountSource, settings: TreeSettings) -> tuple[Tree, TreeTrace]:
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


def describe_tree(
    source: CountSource, settings: TreeSettings, top: Growing
) -> tuple[Tree, TreeTrace]:
    """The model and how it came about."""
    splits, leaves = [], []
    for each, _, path in walk(top):
        rules = tuple(_make_rule(source, cut, holds=holds) for cut, holds in path)
        look = each.look
        told = rules, look.n_candidates, look.n_refused, _list_refused(source, each)
        if each.children and look.best is not None:
            splits.append(NodeLook(*told, _describe(source, each, look.best)))
        else:
            leaves.append(NodeLook(*told, end=_find_end(look)))
    model = make_tree(source, top, balanced=settings.balanced)
    test = make_test("chi2")
    return model, TreeTrace(
        tuple(splits),
        tuple(leaves),
        settings.invariance,
        settings.tolerance,
        tuple(source.classes),
        tuple(source.environments),
        tuple(source.notes),
        verdicts=make_verdicts(model.leaves, test, LEVEL, DEFAULT_MARGIN),
    )


def describe_rate_tree(
    source: CountSource, settings: TreeSettings, found: RateTree
) -> tuple[Tree, TreeTrace]:
    """The model and how it came about, with a note if the tree is beyond the tolerance."""
    model, trace = describe_tree(source, settings, found.top)
    trace = replace(trace, tried=found.tried, share=found.share)
    note = trace.say_beyond()
    return model, replace(trace, notes=(*trace.notes, note)) if note else trace


def _make_rule(source: CountSource, cut: Cut, *, holds: bool) -> Rule:
    rule = source.candidates.make_rule(cut)
    return rule if holds else rule.negate()


def _find_end(look: SplitLook) -> str:
    """Why a leaf was not split."""
    if look.best is not None or not look.was_made:
        return "max_leaves"
    if not look.n_candidates:
        return "small"
    return "refused" if any(look.n_refused.values()) else "uninformative"


def _describe(source: CountSource, each: Growing, found: Found) -> SplitCandidate:
    true: CountArray = each.node.totals - found.half
    statistics, _ = measure_dependence(np.stack([each.node.totals, true, found.half]))
    whole, *halves = statistics.tolist()
    return SplitCandidate(
        source.candidates.make_rule(found.cut),
        found.information,
        sum(halves) - whole,
        found.excess,
        found.share,
        found.log_odds,
        freeze_counts(true),
        freeze_counts(found.half),
    )


def _list_refused(source: CountSource, each: Growing) -> tuple[SplitRefusal, ...]:
    return tuple(
        SplitRefusal(_describe(source, each, refused.found), refused.reason)
        for refused in each.look.refused
    )
