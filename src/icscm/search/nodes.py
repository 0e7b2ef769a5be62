"""Nodes of growing trees and their counts: the smaller child is counted, its sibling is the rest.

    parent     counted, or kept
    smaller    counted by the source
    larger     parent - smaller

Several trees may grow from the same nodes; each node is scanned once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from icscm._constants import MAX_KEPT_CUBE_BYTES
from icscm._types import CountArray
from icscm.engine.counts import BinnedRule, CountCube, CountSource, Cut


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
        cubes = self._kept.find(self) or self._subtract()
        if cubes is not None:
            yield from cubes
            return
        counted: list[CountCube] = []
        n_bytes = 0
        for cube in self._source.count_node(self._path):
            n_bytes += cube.counts.nbytes
            if n_bytes <= MAX_KEPT_CUBE_BYTES:
                counted.append(cube)
            yield cube
        if n_bytes <= MAX_KEPT_CUBE_BYTES:
            self._kept.add(self, counted)

    def _subtract(self) -> list[CountCube] | None:
        """The parent's cubes less the sibling's, where these are known or less work to count."""
        if self._family is None:
            return None
        parent, sibling = self._family
        if not self._kept.has(parent) or not (self._kept.has(sibling) or sibling.size < self.size):
            return None
        less, every = list(sibling.count()), self._kept.find(parent)
        if every is None:  # given up for the sibling's
            return None
        pairs = zip(every, less, strict=True)
        cubes = [replace(cube, counts=cube.counts - part.counts) for cube, part in pairs]
        self._kept.add(self, cubes)
        if not self._kept.is_shared and self._kept.has(parent):
            self._kept.drop(parent)  # both halves are known: nobody asks for the whole again
        return cubes


class _Kept:
    """Cubes of the nodes scanned last, up to a bound on their bytes.

    Where several trees share nodes, a node may be split again in another way.
    """

    def __init__(self, *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self._cubes: dict[int, tuple[Node, list[CountCube], int]] = {}
        self._n_bytes = 0

    def find(self, node: Node) -> list[CountCube] | None:
        known = self._cubes.get(id(node))
        return None if known is None else known[1]

    def has(self, node: Node) -> bool:
        return id(node) in self._cubes

    def add(self, node: Node, cubes: list[CountCube]) -> None:
        n_bytes = sum(cube.counts.nbytes for cube in cubes)
        self._cubes[id(node)] = node, cubes, n_bytes
        self._n_bytes += n_bytes
        while self._n_bytes > MAX_KEPT_CUBE_BYTES and len(self._cubes) > 1:
            self.drop(next(iter(self._cubes.values()))[0])

    def drop(self, node: Node) -> None:
        self._n_bytes -= self._cubes.pop(id(node))[2]


def make_root(source: CountSource, *, is_shared: bool = False) -> Node:
    """All samples of a source, for one tree or, if `is_shared`, for several."""
    return Node(source, _Kept(is_shared=is_shared), (), np.ascontiguousarray(source.count_totals()))
