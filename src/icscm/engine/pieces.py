"""A piece of a table, coded where it lies: it never changes, and answers with counts.

    rows of one partition  --code once-->  Piece  --rule-->  InPlay  --rule-->  InPlay ...
                                              \\               |                 |
                                               `----------> counts            counts

What is still in play is kept apart from the codes, so every step is a pure function of the piece,
the step before and a rule. Whoever lost a piece can make it, and all that followed, again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._constants import BLOCK_CELLS, MAX_NARROW_BINS, WORD_BITS, WORD_DTYPE
from icscm._types import Array, BoolArray, CountArray, IntArray
from icscm.engine.counts import BinnedRule, CandidateMap, CountCube, Layout, PatternTable
from icscm.engine.patterns import count_patterns, merge_patterns, select_patterns
from icscm.engine.rows import Rows, sort_rows
from icscm.engine.stores import BitStore, CodeStore, Store
from icscm.engine.threads import split_evenly

# The bin numbers of each feature, by its number.
Codes = Sequence[Array] | Mapping[int, Array] | Array

# Cells of a cube that a piece sends at a time, 32 MB: much more than a message costs to send, and
# little enough that any machine can add up several.
SENT_CELLS = 2**22
# Rows looked at together where each needs several bytes of arithmetic.
ROW_CHUNK = 2**20
# What an object takes beside its arrays; no need to know exactly.
_OBJECT_BYTES = 500


class Block(NamedTuple):
    """Features that are counted and sent together: they are laid out alike."""

    features: IntArray
    n_bins: int
    layout: Layout

    def count_cells(self, n_environments: int) -> int:
        """The size of its cube."""
        return len(self.features) * self.n_bins * 2 * n_environments

    def make_cubes(self, counts: CountArray) -> Iterator[CountCube]:
        """Its counts in parts that the search can work on in the cache."""
        for part in split_evenly(len(self.features), -(-counts.size // BLOCK_CELLS)):
            yield CountCube(self.features[part], counts[part], self.layout)


def plan_blocks(candidates: CandidateMap, features: IntArray, n_environments: int) -> list[Block]:
    """Blocks of the features that can be cut at all, the same for every piece of a table."""
    n_bins = candidates.count_bins(features)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k in np.flatnonzero(n_bins > 1).tolist():
        feature = int(features[k])
        is_narrow = 2 < n_bins[k] <= MAX_NARROW_BINS
        # a wide feature shares a block with none: its bins would be empty ones of the others
        width = -1 if is_narrow else 2 if n_bins[k] == 2 else -2 - feature
        groups.setdefault((candidates.find_layout(feature), width), []).append(k)
    blocks = []
    for key in sorted(groups):
        own, width = features[groups[key]], int(n_bins[groups[key]].max())
        n_parts = -(-Block(own, width, key[0]).count_cells(n_environments) // SENT_CELLS)
        blocks += [Block(own[part], width, key[0]) for part in split_evenly(len(own), n_parts)]
    return blocks


@dataclass(frozen=True)
class InPlay:
    """The rows of a piece that no rule has settled, and those that the last rule settled."""

    stay: Rows
    left: Rows

    def __sizeof__(self) -> int:
        """Bytes, by which a scheduler judges what to move."""
        indices = (self.stay.index, self.left.index)
        return sum(index.nbytes for index in indices if index is not None) + _OBJECT_BYTES


@dataclass(frozen=True)
class Piece:
    """Rows of a table as bin numbers, in stores that have a feature each or several."""

    stores: Sequence[Store]
    rows: Rows
    n_environments: int

    def __sizeof__(self) -> int:
        """Bytes, by which a scheduler judges what to move."""
        return sum(store.n_bytes for store in self.stores) + _OBJECT_BYTES

    def start(self) -> InPlay:
        """Every row is in play."""
        return InPlay(self.rows, self.rows)

    def count_totals(self) -> CountArray:
        """All rows by (label, environment)."""
        totals: CountArray = np.diff(self.rows.bounds).reshape(2, self.n_environments)
        return totals

    def keep(self, in_play: InPlay, rule: BinnedRule) -> InPlay:
        """The rows that the rule settles leave."""
        return InPlay(*self.split(in_play.stay, rule))

    def keep_all(self, rules: Sequence[BinnedRule]) -> InPlay:
        """The rows that any of the rules settles leave."""
        return reduce(self.keep, rules, self.start())

    def split(self, rows: Rows, rule: BinnedRule) -> tuple[Rows, Rows]:
        """Of some rows those that satisfy the rule, and those that it settles."""
        return rows.split(self._find_settled(rows, rule))

    def find_satisfied(self, rows: Rows, rule: BinnedRule) -> BoolArray:
        """Truth of the rule for each of some rows."""
        return ~self._find_settled(rows, rule)

    def count(self, rows: Rows, block: int) -> CountArray:
        """Some rows, by (feature, bin, label, environment), for one store of features."""
        restricted = self.stores[block].restrict(rows)
        return np.concatenate([cube.counts for cube in restricted.counts()])

    def find_same_coverage(
        self, in_play: InPlay, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Which of the other rules settle exactly the rows in play that `rule` settles."""
        settled = self._find_settled(in_play.stay, rule)
        found = [np.array_equal(settled, self._find_settled(in_play.stay, each)) for each in others]
        return np.array(found, dtype=np.bool_)

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """All rows by the truth of each rule."""
        tables = []
        for some in self.rows.cut(ROW_CHUNK):
            truths = [~self._find_settled(some, rule) for rule in rules]
            cells = np.repeat(np.arange(2 * self.n_environments), np.diff(some.bounds))
            tables.append(count_patterns(truths, cells, self.n_environments))
        return add_patterns(tables)

    def _find_settled(self, rows: Rows, rule: BinnedRule) -> BoolArray:
        store = self.find_store(rule.feature)
        if store is None:  # what cannot be cut has one bin
            return np.full(len(rows), not rule.satisfied[0])
        codes, is_settled = store.find_codes(rule.feature), ~rule.satisfied
        settled = [is_settled.take(some.take(codes)) for some in rows.cut(ROW_CHUNK)]
        store.release()
        return settled[0] if len(settled) == 1 else np.concatenate(settled)

    def find_store(self, feature: int) -> Store | None:
        """The store that has a feature."""
        for store in self.stores:
            at = np.searchsorted(store.features, feature)
            if at < len(store.features) and store.features[at] == feature:
                return store
        return None


def make_piece(
    codes: Codes, labels: Array, environments: Array, n_environments: int, blocks: Sequence[Block]
) -> Piece:
    """Store rows for counting: `codes[j]` holds the bin of feature j in each row."""
    position, rows = sort_rows(labels, environments, n_environments)
    stores = [
        (_pack if block.n_bins == 2 else _store)(codes, block, position, rows) for block in blocks
    ]
    return Piece(stores, rows, n_environments)


def _store(codes: Codes, block: Block, position: NDArray[np.uint32], rows: Rows) -> Store:
    """Bin numbers, in the order of the sorted rows."""
    shape = (len(block.features), len(rows))
    ordered = np.empty(shape, dtype=np.min_scalar_type(block.n_bins - 1))
    for row, feature in zip(ordered, block.features.tolist(), strict=True):
        row[position] = codes[feature]
    return CodeStore(block.features, ordered, block.n_bins, rows, 1, block.layout)


def _pack(codes: Codes, block: Block, position: NDArray[np.uint32], rows: Rows) -> Store:
    """Two bins as bits, 64 rows to a word."""
    store = BitStore(block.features, rows, 1, block.layout)
    at = store.bits[position]
    bits = np.zeros(store.words.shape[1] * WORD_BITS, dtype=np.uint8)
    for words, feature in zip(store.words, block.features.tolist(), strict=True):
        bits[at] = codes[feature]
        words[:] = np.packbits(bits, bitorder="little").view(WORD_DTYPE)
    return store


def add_patterns(tables: Sequence[PatternTable]) -> PatternTable:
    """One table of the rows of several."""
    filled = [table for table in tables if len(table.patterns)]
    if len(filled) < 2:
        return filled[0] if filled else tables[0]
    patterns = np.concatenate([table.patterns for table in filled])
    counts = np.concatenate([table.counts for table in filled])
    table, rules = PatternTable(patterns, counts), range(patterns.shape[1])
    return select_patterns(table, rules, *merge_patterns(table, [rules]))
