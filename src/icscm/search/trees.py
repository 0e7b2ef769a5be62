"""Trees from counts: a model and its trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from icscm._constants import DEFAULT_MARGIN
from icscm._types import CountArray
from icscm.engine.counts import CountSource, Cut
from icscm.engine.pieces import BinnedSplit
from icscm.model.splits import Split, freeze_counts
from icscm.model.tree import Tree
from icscm.search.effect_tree import EffectScanner
from icscm.search.grow import LEVEL, Found, Growing, SplitScan, TreeSettings, grow, walk
from icscm.search.nodes import make_root
from icscm.search.rate_tree import RateTree, find_rate_tree
from icscm.search.records import Candidate, Rejection
from icscm.search.trace import Scan, Step, Trace
from icscm.stats.independence import make_test
from icscm.stats.splits import compute_rate_heterogeneity
from icscm.stats.verdicts import make_verdicts


def find_tree(source: CountSource, settings: TreeSettings) -> tuple[Tree, Trace]:
    """Grow the tree that the settings require."""
    if settings.needs_rates:
        return describe_rate_tree(source, settings, find_rate_tree(source, settings))
    root = make_root(source)
    scan = EffectScanner(source.candidates, settings, root.size)
    return describe_tree(source, settings, grow(root, scan, settings.max_leaves))


def make_tree(source: CountSource, top: Growing, *, balanced: bool) -> Tree:
    """The model: splits and leaves in the order of a walk that goes where rules are true first."""
    splits = (Split(source.candidates.make_rule(cut), *to) for cut, *to in list_splits(top))
    leaves = (freeze_counts(each.node.totals) for each, _ in walk(top) if not each.children)
    return Tree(tuple(splits), tuple(leaves), balanced=balanced)


def list_splits(top: Growing) -> list[tuple[Cut, int, int]]:
    """The cut of each split, and where it leads: to a split, or below 0 to leaf `~number`."""
    nodes = [each for each, _ in walk(top)]
    splits = [each for each in nodes if each.children]
    leaves = [each for each in nodes if not each.children]
    numbers = {id(each): number for number, each in enumerate(splits)}
    numbers |= {id(each): ~number for number, each in enumerate(leaves)}
    found = []
    for each in splits:
        if each.scan.best is not None:
            true, false = (numbers[id(child)] for child in each.children)
            found.append((each.scan.best.cut, true, false))
    return found


def list_binned_splits(source: CountSource, top: Growing) -> list[BinnedSplit]:
    """The splits as sources understand them."""
    make = source.candidates.make_binned_rule
    return [BinnedSplit(make(cut), *to) for cut, *to in list_splits(top)]


def describe_tree(source: CountSource, settings: TreeSettings, top: Growing) -> tuple[Tree, Trace]:
    """The model and its trace."""
    nodes: list[Scan] = []
    make = source.candidates.make_rule
    for each, path in walk(top):
        found = each.scan
        scan = Scan(
            path=tuple(make(cut) if is_true else make(cut).negate() for cut, is_true in path),
            n_candidates=found.n_candidates,
            n_rejected=found.n_rejected,
            best_rejected=tuple(
                Rejection(_describe(source, each, split), reason)
                for split, reason in found.rejected
            ),
        )
        if each.children and found.best is not None:
            nodes.append(Step(**vars(scan), chosen=_describe(source, each, found.best)))
        else:
            nodes.append(replace(scan, end=_find_end(found)))
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
    """The model and its trace, with a note if the tree is beyond the tolerance."""
    model, trace = describe_tree(source, settings, found.top)
    trace = replace(trace, tried=found.tried, heterogeneity_share=found.heterogeneity_share)
    note = trace.describe_excess()
    return model, replace(trace, notes=(*trace.notes, note)) if note else trace


def _find_end(scan: SplitScan) -> str:
    """Why a leaf was not split."""
    if scan.best is not None or not scan.was_made:
        return "max_leaves"
    if not scan.n_candidates:
        return "small"
    return "rejected" if any(scan.n_rejected.values()) else "uninformative"


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
