"""What sources share that keep all rows in stores: in memory, or mapped from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from icscm._types import BoolArray, CountArray, IntArray
from icscm.engine.counts import BinnedRule, CountCube, Judge, PatternTable, SourceInfo
from icscm.engine.pieces import BinnedSplit, NodeRows, Piece, find_leaves
from icscm.engine.stores import Rows, Store


def place(stores: Sequence[Store], rows: Rows, device: str) -> Sequence[Store]:
    """The stores of one source where `device` wants them."""
    if device == "cpu":
        return stores
    from icscm.sources.gpu.stores import move_stores  # needs CuPy

    return move_stores(stores, rows, device)


class StoredSource:
    """Counts over a single piece, whose stores follow the rows that leave."""

    def __init__(self, info: SourceInfo, stores: Sequence[Store], rows: Rows) -> None:
        self.info = info
        self.candidates, self.classes, self.environments, self.notes = info
        self.piece = Piece(stores, rows, len(info.environments))
        self._in_play = self.piece.start()
        self._nodes = NodeRows()

    def draw(self, wanted: BoolArray) -> StoredSource:
        """A source over some of the sorted rows, for one thread; nothing is binned again."""
        piece = self.piece.restrict(wanted, 1)
        return StoredSource(self.info, piece.stores, piece.rows)

    def list_cells(self) -> tuple[IntArray, IntArray]:
        """Number of the label and of the environment of each sorted row."""
        cells = np.repeat(np.arange(2 * len(self.environments)), np.diff(self.piece.rows.bounds))
        return cells // len(self.environments), cells % len(self.environments)

    def find_leaves(self, splits: Sequence[BinnedSplit], held_out: BoolArray) -> IntArray:
        """The leaf of a tree that each sorted row falls in, for those held out; else -1."""
        leaves = np.full(len(held_out), -1, dtype=np.int64)
        rows, _ = self.piece.rows.split(~held_out)
        leaves[held_out] = find_leaves(splits, len(rows), partial(self.piece.find_covered, rows))
        return leaves

    def count_totals(self) -> CountArray:
        return self.piece.count_totals()

    def counts(self) -> Iterator[CountCube]:
        for store in self.piece.stores:
            yield from store.counts()

    @property
    def judge(self) -> Judge | None:
        """The store that can screen candidates, if it is the only one."""
        # of several, none knows which leaf the first of all that tie has
        store, *others = [*self.piece.stores, None]
        judge: Any = store
        return judge if len(others) == 1 and hasattr(store, "shortlist") else None

    def keep(self, rule: BinnedRule) -> None:
        self._in_play = self.piece.keep(self._in_play, rule)
        for store in self.piece.stores:
            store.remove(self._in_play.left, self._in_play.stay)

    def count_node(self, path: Sequence[BinnedRule]) -> Iterator[CountCube]:
        rows = self._nodes.find(self.piece, path)
        for store in self.piece.stores:
            yield from store.restrict(rows).counts()

    def find_same_coverage(self, rule: BinnedRule, others: Sequence[BinnedRule]) -> BoolArray:
        return self.piece.find_same_coverage(self._in_play, rule, others)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        return self.piece.count_patterns(rules)
