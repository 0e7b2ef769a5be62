"""The one door to trees: counts in, a model and its trace out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from icscm._constants import DEFAULT_MARGIN
from icscm._types import CountArray
from icscm.engine.counts import CountSource, Cut
from icscm.model.leaves import LeafCounts, freeze_counts
from icscm.model.rules import Rule
from icscm.model.trees import Split, Tree
from icscm.search.nodes import make_root
from icscm.search.tree import LEVEL, EffectLooker, Found, Growing, SplitLook, TreeSettings, grow
from icscm.search.tree_trace import NodeLook, SplitCandidate, SplitRefusal, TreeTrace
from icscm.stats.independence import make_test
from icscm.stats.splits import measure_dependence
from icscm.stats.verdicts import make_verdicts


def find_tree(source: CountSource, settings: TreeSettings) -> tuple[Tree, TreeTrace]:
    """Grow the tree that the settings ask for."""
    root = make_root(source)
    look = EffectLooker(source.candidates, settings, root.size)
    top = grow(root, look, settings.max_leaves)
    model, trace = describe_tree(source, settings, top)
    return model, trace


def make_tree(source: CountSource, top: Growing, *, balanced: bool) -> Tree:
    """The model: splits and leaves in the order of a walk that goes where rules hold first."""
    splits: list[list[int]] = []
    rules: list[Rule] = []
    leaves: list[LeafCounts] = []
    for each, at, _ in _walk(top):
        if at is not None:
            parent, side = at
            splits[parent][side] = len(splits) if each.children else ~len(leaves)
        if each.children and each.look.best is not None:
            rules.append(source.candidates.make_rule(each.look.best.cut))
            splits.append([0, 0])
        else:
            leaves.append(freeze_counts(each.node.totals))
    made = (Split(rule, *children) for rule, children in zip(rules, splits, strict=True))
    return Tree(tuple(made), tuple(leaves), balanced)


def describe_tree(
    source: CountSource, settings: TreeSettings, top: Growing
) -> tuple[Tree, TreeTrace]:
    """The model and how it came about."""
    splits, leaves = [], []
    for each, _, path in _walk(top):
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


# A node, the split and side it hangs from, and the way to it.
_Place = tuple[Growing, tuple[int, int] | None, tuple[tuple[Cut, bool], ...]]


def _walk(top: Growing) -> Iterator[_Place]:
    """All nodes, where rules hold first."""
    waiting: list[_Place] = [(top, None, ())]
    n_splits = 0
    while waiting:
        each, at, path = waiting.pop()
        yield each, at, path
        if each.children and each.look.best is not None:
            cut = each.look.best.cut
            true, false = each.children
            waiting.append((false, (n_splits, 1), (*path, (cut, False))))
            waiting.append((true, (n_splits, 0), (*path, (cut, True))))
            n_splits += 1


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
