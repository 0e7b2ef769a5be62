"""Nodes: rows that satisfy a path of rules, as counts.

Every search narrows the rows by rules, and asks for counts of those that are left. A *path* is a
tuple of rules; its *node* is the rows for which all of them are true. A conjunction goes down one
path, for the rows that it leaves uncovered satisfy all its rules. A tree goes down many paths.

A node has its counts by (outcome, environment) from the start, and its *cubes*, the counts by
(column, bin, outcome, environment), on demand. To count cubes takes most of the time of a search.
So a rule splits a node into two *siblings*, of which only the smaller is counted:

    parent     counted, or kept from before
    smaller    counted by the source
    larger     parent - smaller

How long cubes are kept depends on what the nodes are used for, see `NodeUse`. A node refers to its
children, and only to the counts of its parent and its sibling (`PathCounts`). So a parent that a
search has left is freed at once, with its source, and not when Python looks for cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np

from icscm._constants import MAX_KEPT_CUBE_BYTES
from icscm._types import CountArray
from icscm.engine.counts import BinnedColumns, BinnedRule, CountCube, Cut, RulePath
from icscm.engine.pieces import negate


class Counter(Protocol):
    """What nodes need of a source of rows; see `icscm.engine.counts.RowSource`."""

    @property
    def columns(self) -> BinnedColumns: ...

    def count_rows(self, path: RulePath = ()) -> CountArray: ...

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]: ...


@dataclass(frozen=True, eq=False)
class PathCounts:
    """The rows of a path, by (outcome, environment): what relatives know of a node.

    It is compared by identity, and cubes are kept by it.
    """

    path: RulePath
    counts: CountArray

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Siblings:
    """The two nodes into which a rule splits the rows of another one."""

    if_true: Node
    if_false: Node


class NodeUse(Enum):
    """What a search does with its nodes, which decides how long their cubes are of use."""

    # It follows one path. As soon as a child has its cubes, its parent and its sibling are done.
    PATH = "path"
    # It grows one tree. As soon as both children have their cubes, their parent is done.
    TREE = "tree"
    # It grows several trees, so any node may be split again, by another rule.
    TREES = "trees"


class Node:
    """The rows that satisfy every rule of a path: their counts now, their cubes on demand."""

    def __init__(self, counter: Counter, cache: CubeCache, rows: PathCounts) -> None:
        self.path = rows.path
        #: the rows, by (outcome, environment)
        self.counts = rows.counts
        self.n_rows = rows.n_rows

        self._counter = counter
        self._cache = cache
        self._rows = rows
        self._siblings: dict[Cut, Siblings] = {}
        # None for all rows, which are part of no other node
        self._parent: PathCounts | None = None
        self._sibling: PathCounts | None = None

    @property
    def has_both_outcomes(self) -> bool:
        """Whether there are negative and positive rows."""
        return bool(self.counts.any(axis=1).all())

    def split(self, cut: Cut, *, if_false: CountArray) -> Siblings:
        """Split the rows by a rule, given the counts of those for which it is false.

        The same rule gives the same two nodes, which several trees share.
        """
        if cut in self._siblings:
            return self._siblings[cut]

        rule = self._counter.columns.make_binned_rule(cut)
        true_child = self._make_child(rule, self.counts - if_false)
        false_child = self._make_child(negate(rule), if_false)
        true_child._sibling = false_child._rows
        false_child._sibling = true_child._rows
        self._siblings[cut] = Siblings(if_true=true_child, if_false=false_child)
        return self._siblings[cut]

    def count_cubes(self) -> Iterator[CountCube]:
        """Return the cubes of the node, in the same order of columns for every node."""
        cubes: Iterable[CountCube] | None = self._cache.get(self._rows)
        if cubes is None:
            cubes = self._subtract_sibling()
        if cubes is None:
            cubes = self._count_in_source()
        return iter(cubes)

    def _make_child(self, rule: BinnedRule, counts: CountArray) -> Node:
        """Make the node of the rows for which one more rule is true."""
        rows = PathCounts(path=(*self.path, rule), counts=counts)
        child = Node(self._counter, self._cache, rows)
        child._parent = self._rows
        return child

    def _count_in_source(self) -> Iterator[CountCube]:
        """Count the rows, and keep the cubes unless they are too large together."""
        if self._parent is not None and self._cache.use is NodeUse.PATH:
            self._cache.drop(self._parent)  # first, to make room

        counted: list[CountCube] = []
        n_bytes = 0
        for cube in self._iterate_source(self._rows):
            n_bytes += cube.counts.nbytes
            if n_bytes <= self._cache.max_bytes:
                counted.append(cube)
            yield cube
        if n_bytes <= self._cache.max_bytes:
            self._cache.add(self._rows, counted)

    def _iterate_source(self, rows: PathCounts) -> Iterator[CountCube]:
        """Let the source count the cubes of some rows: those of this node, or of its sibling."""
        for cube in self._counter.count_cubes(rows.path):
            cube.check(rows.counts)  # a source in many places may have lost, or gained, rows
            yield cube

    def _subtract_sibling(self) -> Iterable[CountCube] | None:
        """Subtract the sibling's cubes from the parent's; None where that is not faster."""
        parent = self._parent
        sibling = self._sibling
        if parent is None or sibling is None or self._cache.get(parent) is None:
            return None
        is_sibling_kept = self._cache.get(sibling) is not None
        is_sibling_smaller = sibling.n_rows < self.n_rows
        if not is_sibling_kept and not is_sibling_smaller:
            return None
        if self._cache.use is NodeUse.PATH:
            return self._subtract_in_place(parent, sibling)

        cubes_of_sibling = self._count_sibling(sibling)
        cubes_of_parent = self._cache.get(parent)
        if cubes_of_parent is None:  # they were dropped, to make room for the sibling's
            return None
        cubes = [
            replace(whole, counts=whole.counts - part.counts)
            for whole, part in zip(cubes_of_parent, cubes_of_sibling, strict=True)
        ]
        self._cache.add(self._rows, cubes)
        if self._cache.use is NodeUse.TREE:
            self._cache.drop(parent)
        return cubes

    def _count_sibling(self, sibling: PathCounts) -> list[CountCube]:
        """Return the sibling's cubes, kept or counted by the source."""
        node = Node(self._counter, self._cache, sibling)
        return list(node.count_cubes())

    def _subtract_in_place(self, parent: PathCounts, sibling: PathCounts) -> Iterator[CountCube]:
        """Turn the parent's cubes, which nobody needs any more, into those of this node.

        It takes no memory, whose allocation would take longer than to count few rows. A cube is
        yielded as soon as it is made, while it is in the cache of the processor.
        """
        cubes = self._cache.drop(parent)
        for whole, part in zip(cubes, self._iterate_source(sibling), strict=True):
            counts: CountArray = whole.counts
            counts -= part.counts
            yield whole
        self._cache.add(self._rows, cubes)


class CubeCache:
    """The cubes of the paths counted last, up to a number of bytes."""

    def __init__(self, use: NodeUse) -> None:
        self.use = use
        self.max_bytes = MAX_KEPT_CUBE_BYTES
        self.n_bytes = 0
        self._cubes: dict[PathCounts, list[CountCube]] = {}

    def get(self, rows: PathCounts) -> list[CountCube] | None:
        """Return the cubes of a path's rows; None if they are not kept."""
        return self._cubes.get(rows)

    def add(self, rows: PathCounts, cubes: list[CountCube]) -> None:
        """Keep the cubes of a path's rows; drop the oldest ones while all are too large."""
        self._cubes[rows] = cubes
        self.n_bytes += count_bytes(cubes)
        while self.n_bytes > self.max_bytes and len(self._cubes) > 1:
            oldest = next(iter(self._cubes))
            self.drop(oldest)

    def drop(self, rows: PathCounts) -> list[CountCube]:
        """Drop the cubes of a path's rows, and return them; none if they were not kept."""
        cubes = self._cubes.pop(rows, [])
        self.n_bytes -= count_bytes(cubes)
        return cubes


def count_bytes(cubes: Sequence[CountCube]) -> int:
    """Count the bytes that some cubes take."""
    return sum(cube.counts.nbytes for cube in cubes)


def make_root(counter: Counter, use: NodeUse) -> Node:
    """Make the node of all rows."""
    counts = np.ascontiguousarray(counter.count_rows())
    return Node(counter, CubeCache(use), PathCounts((), counts))
