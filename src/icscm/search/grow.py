"""Grows trees on counts: best first, each time by the allowed split that explains most.

A *split* of a node sends the rows for which a rule is true one way and the others another way. The
search never sees these rows: a node has their counts (`icscm.search.nodes`), and a scanner finds
its best allowed split (`icscm.search.split_scanner`). Several trees may grow from the same nodes,
each of which is scanned once.

What is allowed depends on `invariance`, which names what must be homogeneous over environments:

    "effect"   of each column, given all others; the tree is grown without the columns whose effect
               differs too much (`icscm.search.columns`)
    "rate"     of each leaf: the rate of the outcome; the tree is grown without the columns that
               make its leaves differ (`icscm.search.rate_trees`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple

from icscm._constants import DEVIANCE_DECIMALS
from icscm._types import CountArray
from icscm.engine.counts import BinnedColumns, BinnedSplit, Cut
from icscm.model.splits import encode_leaf
from icscm.search.nodes import Node

# The tolerance of `tolerance="auto"`, the same for all data.
TOLERANCES: Final = {"effect": 0.01, "rate": 0.005}


@dataclass(frozen=True)
class TreeSettings:
    """Settings for growing a tree from counts.

    Parameters
    ----------
    invariance : {"effect", "rate"}
        What must be homogeneous over environments.
    tolerance : float or None
        How much it may differ. Without one nothing is rejected and environments are not used: a
        plain tree.
    max_leaves : int
        The largest number of leaves.
    min_leaf_rows : int
        The smallest number of rows in a leaf.
    balanced : bool
        Whether the leaves of the model predict the mean of the environments' rates.
    min_replication : float
        Of columns: see `icscm.stats.replication`.
    design : float
        The design effect: with clusters of rows, deviance by chance is so many times as large.
    """

    invariance: str = "effect"
    tolerance: float | None = TOLERANCES["effect"]
    max_leaves: int = 16
    min_leaf_rows: int = 1
    balanced: bool = False
    min_replication: float = 0.25
    design: float = 1.0

    @property
    def needs_rates(self) -> bool:
        """Whether rates must be homogeneous, rather than effects or nothing."""
        return self.invariance == "rate" and self.tolerance is not None

    @property
    def needs_replication(self) -> bool:
        """Whether a column must be informative in several environments."""
        return self.tolerance is not None and self.min_replication > 0

    def pool(self, counts: CountArray) -> CountArray:
        """Return counts; for a plain tree those of all environments together, as if they were one.

        A plain tree uses no environments.
        """
        return counts.sum(axis=-1, keepdims=True) if self.tolerance is None else counts


# --- splits of a node -----------------------------------------------------------


class SplitRank(NamedTuple):
    """What splits are compared by: the smallest is the best.

    The deviance is negated and rounded, so that the order of a sum decides nothing; of equals the
    first cut is better.
    """

    negated_deviance: float
    cut: Cut


@dataclass(frozen=True)
class SplitCandidate:
    """A split that a node may have.

    Attributes
    ----------
    cut : Cut
        Its rule.
    if_false : array of int, (outcome, environment)
        The rows for which the rule is false.
    deviance_explained : float
        Of the outcome, by the split.
    """

    cut: Cut
    if_false: CountArray
    deviance_explained: float

    @property
    def rank(self) -> SplitRank:
        """Return what it is compared by."""
        negated_deviance = -round(self.deviance_explained, DEVIANCE_DECIMALS)
        return SplitRank(negated_deviance, self.cut)


@dataclass(frozen=True)
class RejectedSplit:
    """A split that is not allowed, and why; see `icscm.search.records.Rejection`."""

    candidate: SplitCandidate
    reason: str


@dataclass(frozen=True)
class SplitScan:
    """The result of a scan of all splits of a node.

    Attributes
    ----------
    best : SplitCandidate or None
        The allowed split that explains most.
    n_candidates : int
        How many splits there are.
    n_rejected : dict
        How many splits that explain more than chance are not allowed, by reason.
    rejected : sequence of RejectedSplit
        The best of these.
    was_made : bool
        False for the last leaves of a tree, whose splits are not needed.
    """

    best: SplitCandidate | None
    n_candidates: int = 0
    n_rejected: dict[str, int] = field(default_factory=dict)
    rejected: Sequence[RejectedSplit] = ()
    was_made: bool = True


# --- growing --------------------------------------------------------------------


@dataclass
class Subtree:
    """A node of a tree that grows, the scan of its splits, and what has grown from it.

    A leaf has neither side; both are set when it is split.
    """

    node: Node
    scan: SplitScan
    if_true: Subtree | None = None
    if_false: Subtree | None = None

    @property
    def split(self) -> SplitCandidate | None:
        """The split that was made; None for a leaf."""
        return None if self.is_leaf else self.scan.best

    @property
    def is_leaf(self) -> bool:
        """Whether no split was made."""
        return self.if_true is None


class QueuedLeaf(NamedTuple):
    """A leaf that waits to be split; of equal deviances the first in the queue is split first."""

    negated_deviance: float
    number: int
    leaf: Subtree


def grow(root: Node, scan: Callable[[Node], SplitScan], max_leaves: int) -> Subtree:
    """Grow a tree best first: split the leaf whose best split explains most, again and again.

    Parameters
    ----------
    root : Node
        All rows that the tree is grown on.
    scan : callable
        Finds the best allowed split of a node.
    max_leaves : int
        The largest number of leaves.
    """
    tree = Subtree(root, scan(root))
    queue: list[QueuedLeaf] = []
    numbers = count()

    def enqueue(leaf: Subtree) -> None:
        """Let a leaf wait to be split, if it has an allowed split."""
        best = leaf.scan.best
        if best is not None:
            heappush(queue, QueuedLeaf(best.rank.negated_deviance, next(numbers), leaf))

    enqueue(tree)
    for n_leaves in range(2, max_leaves + 1):
        if not queue:
            break
        leaf = heappop(queue).leaf
        best = leaf.scan.best
        assert best is not None  # or it would not be in the queue

        children = leaf.node.split(best.cut, if_false=best.if_false)
        if n_leaves == max_leaves:
            # The last two leaves are never split: a scan of them is not needed.
            not_made = SplitScan(best=None, was_made=False)
            leaf.if_true = Subtree(children.if_true, not_made)
            leaf.if_false = Subtree(children.if_false, not_made)
            break

        leaf.if_true = Subtree(children.if_true, scan(children.if_true))
        leaf.if_false = Subtree(children.if_false, scan(children.if_false))
        enqueue(leaf.if_true)
        enqueue(leaf.if_false)
    return tree


# --- walks ----------------------------------------------------------------------


class PathStep(NamedTuple):
    """A split on the way to a node, and the side that leads there."""

    cut: Cut
    is_true: bool


@dataclass(frozen=True)
class Visit:
    """A node on a walk over a tree, and the splits on the way to it."""

    subtree: Subtree
    path: tuple[PathStep, ...] = ()


def walk(tree: Subtree) -> Iterator[Visit]:
    """Visit all nodes of a tree: each before those below it, the true side first."""
    waiting = [Visit(tree)]
    while waiting:
        visit = waiting.pop()
        yield visit

        subtree = visit.subtree
        if subtree.if_true is None or subtree.if_false is None or subtree.split is None:
            continue
        cut = subtree.split.cut
        waiting.append(Visit(subtree.if_false, (*visit.path, PathStep(cut, is_true=False))))
        waiting.append(Visit(subtree.if_true, (*visit.path, PathStep(cut, is_true=True))))


def list_leaves(tree: Subtree) -> list[Subtree]:
    """List the leaves of a tree, in the order of a walk."""
    return [visit.subtree for visit in walk(tree) if visit.subtree.is_leaf]


def list_splits(tree: Subtree) -> list[SplitCandidate]:
    """List the splits of a tree, in the order of a walk."""
    splits = [visit.subtree.split for visit in walk(tree)]
    return [split for split in splits if split is not None]


@dataclass(frozen=True)
class NumberedSplit:
    """A split by its place in the tree: where its two sides lead to.

    That is the number of another split, or that of a leaf (`icscm.model.splits.encode_leaf`).
    """

    cut: Cut
    if_true: int
    if_false: int


def number_splits(tree: Subtree) -> list[NumberedSplit]:
    """Number splits and leaves in the order of a walk, and list the splits."""
    subtrees = [visit.subtree for visit in walk(tree)]
    split_numbers = count()
    leaf_numbers = count()
    numbers: dict[int, int] = {}  # by identity, as two subtrees may be equal
    for subtree in subtrees:
        if subtree.is_leaf:
            numbers[id(subtree)] = encode_leaf(next(leaf_numbers))
        else:
            numbers[id(subtree)] = next(split_numbers)

    return [
        NumberedSplit(
            cut=subtree.split.cut,
            if_true=numbers[id(subtree.if_true)],
            if_false=numbers[id(subtree.if_false)],
        )
        for subtree in subtrees
        if subtree.split is not None
    ]


def make_binned_splits(columns: BinnedColumns, tree: Subtree) -> list[BinnedSplit]:
    """Make the splits of a tree in the form that sources use."""
    return [
        BinnedSplit(columns.make_binned_rule(split.cut), split.if_true, split.if_false)
        for split in number_splits(tree)
    ]
