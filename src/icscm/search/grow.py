"""Grows trees on counts: best first, each time by the allowed split that explains most.

The search never uses rows. The smaller child of a node is counted, its sibling by subtraction:

    parent     counted, or kept
    smaller    counted by the source
    larger     parent - smaller

Several trees may grow from the same nodes; each node is scanned once. A scanner finds the best
allowed split of a node (`icscm.search.scanners`). `invariance` names what must be homogeneous
over environments:

    "effect"   of each column, given all others; the tree is grown without the columns whose effect
               differs too much (`icscm.search.columns`)
    "rate"     of each leaf: the label's rate; the tree is grown without the features that make
               its leaves differ (`icscm.search.trees`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from icscm._constants import DEVIANCE_DECIMALS, MAX_KEPT_CUBE_BYTES
from icscm._types import CountArray
from icscm.engine.counts import BinnedRule, CountCube, CountSource, Cut
from icscm.engine.leaf_tables import EITHER_SIDE
from icscm.engine.pieces import BinnedSplit

# The tolerance of `tolerance="auto"`, the same for all data.
TOLERANCES: Final = {"effect": 0.01, "rate": 0.005}


@dataclass(frozen=True)
class TreeSettings:
    """Settings for growing a tree from counts.

    Without a `tolerance` nothing is rejected and environments are not used: a plain tree. With
    groups of rows, deviance by chance is `design` times as large.
    """

    invariance: str = "effect"
    tolerance: float | None = TOLERANCES["effect"]
    max_leaves: int = 16
    n_least: int = 1
    missing: str = "candidate"
    balanced: bool = False
    min_replication: float = 0.25
    design: float = 1.0

    @property
    def needs_rates(self) -> bool:
        """Whether rates must be homogeneous, rather than effects or nothing."""
        return self.invariance == "rate" and self.tolerance is not None

    @property
    def sides(self) -> Sequence[bool]:
        """The truths for a missing value that rules may have."""
        return (False,) if self.missing == "separate" else EITHER_SIDE

    def pool(self, counts: CountArray) -> CountArray:
        """The counts; for a plain tree those of all environments together, which are then one."""
        return counts.sum(axis=-1, keepdims=True) if self.tolerance is None else counts


class Node:
    """The samples that satisfy a path of rules: its counts now, its cubes on demand."""

    def __init__(
        self, source: CountSource, kept: _Kept, path: tuple[BinnedRule, ...], totals: CountArray
    ) -> None:
        self._source = source
        self._kept = kept
        self._path = path
        self.totals = totals
        self.size = int(totals.sum())
        #: the result of a scan that serves several trees
        self.found: Any = None
        #: parent and sibling; None at the root
        self._family: tuple[Node, Node] | None = None
        self._children: dict[Cut, tuple[Node, Node]] = {}

    def can_split(self, n_least: int) -> bool:
        """Whether the node is large enough, and has both labels."""
        return self.size >= 2 * n_least and bool(self.totals.any(axis=1).all())

    def split(self, cut: Cut, half: CountArray) -> tuple[Node, Node]:
        """The children for which a rule is true and false, given the totals of the latter."""
        if cut not in self._children:
            rule = self._source.candidates.make_binned_rule(cut)
            opposite = BinnedRule(rule.feature, ~rule.satisfied)
            own = self._source, self._kept
            true = Node(*own, (*self._path, rule), self.totals - half)
            false = Node(*own, (*self._path, opposite), half)
            true._family, false._family = (self, false), (self, true)
            self._children[cut] = true, false
        return self._children[cut]

    def count(self) -> Iterator[CountCube]:
        """The cubes of the node, block by block, in the same order for every node."""
        cubes = self._kept.cubes.get(self) or self._subtract()
        if cubes is not None:
            yield from cubes
            return
        counted: list[CountCube] = []
        n_bytes = 0
        for cube in self._source.count_node(self._path):
            cube.check(self.totals)
            n_bytes += cube.counts.nbytes
            if n_bytes <= MAX_KEPT_CUBE_BYTES:
                counted.append(cube)
            yield cube
        if n_bytes <= MAX_KEPT_CUBE_BYTES:
            self._kept.add(self, counted)

    def _subtract(self) -> list[CountCube] | None:
        """The parent's cubes minus the sibling's, where these are known or faster to count."""
        if self._family is None:
            return None
        parent, sibling = self._family
        kept = self._kept.cubes
        if parent not in kept or (sibling not in kept and sibling.size >= self.size):
            return None
        less = list(sibling.count())
        if parent not in kept:  # dropped in favour of the sibling's
            return None
        pairs = zip(kept[parent], less, strict=True)
        cubes = [replace(cube, counts=cube.counts - part.counts) for cube, part in pairs]
        self._kept.add(self, cubes)
        if not self._kept.is_shared and parent in kept:
            self._kept.drop(parent)  # both children are known: the parent is not needed again
        return cubes


class _Kept:
    """Cubes of the nodes scanned last, up to a bound on their bytes.

    Where several trees share nodes, a node may be split again in another way.
    """

    def __init__(self, *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self.cubes: dict[Node, list[CountCube]] = {}
        self._n_bytes = 0

    def add(self, node: Node, cubes: list[CountCube]) -> None:
        self.cubes[node] = cubes
        self._n_bytes += _count_bytes(cubes)
        while self._n_bytes > MAX_KEPT_CUBE_BYTES and len(self.cubes) > 1:
            self.drop(next(iter(self.cubes)))

    def drop(self, node: Node) -> None:
        self._n_bytes -= _count_bytes(self.cubes.pop(node))


def _count_bytes(cubes: Sequence[CountCube]) -> int:
    return sum(cube.counts.nbytes for cube in cubes)


def make_root(source: CountSource, *, is_shared: bool = False) -> Node:
    """All samples of a source, for one tree or, if `is_shared`, for several."""
    return Node(source, _Kept(is_shared=is_shared), (), np.ascontiguousarray(source.count_totals()))


class Found(NamedTuple):
    """A split of a node; `half` counts the samples for which its rule is false."""

    cut: Cut
    half: CountArray
    deviance_explained: float


def rank(found: Found) -> tuple[float, Cut]:
    """The most deviance explained first; of equals the first in the order of cuts."""
    return -round(found.deviance_explained, DEVIANCE_DECIMALS), found.cut


# A split that is not allowed, and why: see `Rejection`.
Rejected = tuple[Found, str]


@dataclass(frozen=True)
class SplitScan:
    """The result of a scan of all splits of a node, and whether it was made."""

    best: Found | None
    n_candidates: int = 0
    n_rejected: dict[str, int] = field(default_factory=dict)
    rejected: Sequence[Rejected] = ()
    was_made: bool = True


@dataclass
class Growing:
    """A node of a tree that grows; its children are where the rule is true, and false."""

    node: Node
    scan: SplitScan
    children: tuple[Growing, ...] = ()

    @property
    def split(self) -> Found | None:
        """The split that was made; None for a leaf."""
        return self.scan.best if self.children else None


def grow(root: Node, scan: Callable[[Node], SplitScan], max_leaves: int) -> Growing:
    """Split the leaf whose best split explains most, again and again."""
    top = Growing(root, scan(root))
    waiting: list[tuple[float, int, Growing, Found]] = []
    numbers = count()

    def wait(leaf: Growing) -> None:
        if (best := leaf.scan.best) is not None:
            heappush(waiting, (rank(best)[0], next(numbers), leaf, best))

    wait(top)
    for n_leaves in range(2, max_leaves + 1):
        if not waiting:
            break
        *_, leaf, best = heappop(waiting)
        # splits of the last two leaves are not needed
        unscanned = SplitScan(None, was_made=False) if n_leaves == max_leaves else None
        nodes = leaf.node.split(best.cut, best.half)
        leaf.children = tuple(Growing(node, unscanned or scan(node)) for node in nodes)
        for child in leaf.children:
            wait(child)
    return top


def walk(top: Growing) -> Iterator[tuple[Growing, tuple[tuple[Cut, bool], ...]]]:
    """All nodes of a tree and the path to each, true side first."""
    waiting: list[tuple[Growing, tuple[tuple[Cut, bool], ...]]] = [(top, ())]
    while waiting:
        each, path = waiting.pop()
        yield each, path
        if each.split is not None:
            true, false = each.children
            cut = each.split.cut
            waiting += [(false, (*path, (cut, False))), (true, (*path, (cut, True)))]


def list_splits(top: Growing) -> list[tuple[Cut, int, int]]:
    """The cut of each split, and where it leads: to a split, or below 0 to leaf `~number`."""
    nodes = [each for each, _ in walk(top)]
    splits, leaves = count(), count()
    numbers = {id(each): next(splits) if each.split else ~next(leaves) for each in nodes}
    found = []
    for each in nodes:
        if each.split:
            true, false = (numbers[id(child)] for child in each.children)
            found.append((each.split.cut, true, false))
    return found


def list_binned_splits(source: CountSource, top: Growing) -> list[BinnedSplit]:
    """The splits in the form that sources use."""
    make = source.candidates.make_binned_rule
    return [BinnedSplit(make(cut), *to) for cut, *to in list_splits(top)]
