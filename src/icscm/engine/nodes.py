"""The rows of the leaves of a growing tree, so that a leaf is split and never looked for again.

asked for         remembered, besides all rows
a                 a | not a
a, b              a, b | a, not b | not a
not a, not c      a, b | a, not b | not a, c | not a, not c
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from icscm._types import BoolArray, IntArray
from icscm.engine.counts import BinnedRule
from icscm.engine.pieces import Piece
from icscm.engine.rows import Rows


class NodeRows:
    """Finds the rows that satisfy a path of rules, any path in any order.

    It remembers a partition of the rows, which takes four bytes of each, and splits a part when
    a path leads into it. A path that leads to none of the parts starts another partition.
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[tuple[int, bytes], ...], Rows] = {}

    def find(self, piece: Piece, path: Sequence[BinnedRule]) -> Rows:
        """The rows of the piece, always the same one, that satisfy every rule of the path."""
        if not path:
            return piece.rows
        key = tuple((rule.feature, rule.satisfied.tobytes()) for rule in path)
        n_known = next((n for n in range(len(key), 0, -1) if key[:n] in self._parts), 0)
        if n_known == 0:
            self._parts.clear()
        rows = self._parts.pop(key[:n_known], piece.rows)
        for n, rule in enumerate(path[n_known:], start=n_known):
            rows, others = piece.split(rows, rule)
            self._parts[*key[:n], (rule.feature, (~rule.satisfied).tobytes())] = others
        self._parts[key] = rows
        return rows


class BinnedSplit(NamedTuple):
    """A split as the sources understand it; a child below 0 is leaf `~child`."""

    rule: BinnedRule
    if_true: int
    if_false: int


def find_leaves(
    splits: Sequence[BinnedSplit], n_rows: int, find_truth: Callable[[BinnedRule], BoolArray]
) -> IntArray:
    """The leaf that each of some rows falls in, given the truth of a rule for each of them."""
    leaves = np.empty(n_rows, dtype=np.int64)
    waiting = {0 if splits else ~0: np.arange(n_rows)}
    truths: dict[tuple[int, bytes], BoolArray] = {}
    for number, split in enumerate(splits):
        key = split.rule.feature, split.rule.satisfied.tobytes()
        if key not in truths:
            truths[key] = find_truth(split.rule)
        places = waiting.pop(number)
        truth = truths[key][places]
        waiting[split.if_true], waiting[split.if_false] = places[truth], places[~truth]
    for child, places in waiting.items():
        leaves[places] = ~child
    return leaves
