"""Tables of zeros and ones, dense or sparse, straight to bits: nothing to plan, nothing to bin."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm._constants import BINARY_LOOK_ROWS, MIN_LANES, MIN_THREADED_CELLS, WORD_DTYPE
from icscm._lazy import is_sparse
from icscm._types import Array, IntArray
from icscm.engine import _kernels
from icscm.engine.binning import Binning, ColumnPlan
from icscm.engine.coding import pack_columns
from icscm.engine.counts import ORDERED, BinnedColumns, BinnedRule, CountCube, Cut, Layout
from icscm.engine.stores import BitStore, Rows
from icscm.engine.threads import run_tasks, split_columns, split_evenly
from icscm.exceptions import IcscmError
from icscm.model.rules import PresenceRule, Rule
from icscm.tables.coded import CodedTable
from icscm.tables.columns import as_plain_numbers

_FEWEST_SLOTS = 2**10


@dataclass(frozen=True)
class Copies:
    """Groups of identical features, in the order of their first members.

    Group k holds `members[offsets[k]:offsets[k + 1]]`, ascending; feature f is in group
    `numbers[f]`.
    """

    numbers: Array
    offsets: Array
    members: Array

    def is_whole(self) -> bool:
        """Whether the parts go together, whatever they hold; no group is empty."""
        n_groups = len(self.offsets) - 1
        if n_groups < 1 or len(self.numbers) == 0 or self.numbers.max() >= n_groups:
            return False
        made = make_copies(self.numbers, n_groups)
        parts = (self.offsets, made.offsets), (self.members, made.members)
        if not all(np.array_equal(*pair) for pair in parts) or not np.diff(made.offsets).all():
            return False
        first = made.members[made.offsets[:-1]]
        return bool((first[1:] > first[:-1]).all())

    def find_first(self, feature: int) -> int:
        """The feature that stands for its group."""
        return int(self.members[self.offsets[self.numbers[feature]]])

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.offsets) - 1

    def list_first(self, groups: slice | None = None) -> IntArray:
        """List the first column of each group, or of some groups."""
        starts = self.offsets[:-1] if groups is None else self.offsets[groups.start : groups.stop]
        return self.members[starts].astype(np.int64)

    def list_members(self, first: IntArray) -> IntArray:
        """The features of some groups, given by their first ones: a group after the other."""
        groups = self.numbers[first].astype(np.intp)
        starts, sizes = self.offsets[groups], self.offsets[groups + 1] - self.offsets[groups]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        members: IntArray = self.members[np.repeat(starts, sizes) + within]
        return members.astype(np.int64)

    def count_members(self, features: IntArray) -> IntArray:
        """The size of the group of each of some features."""
        groups = self.numbers[features].astype(np.intp)
        return self.offsets[groups + 1] - self.offsets[groups]


def make_copies(numbers: Array, n_groups: int) -> Copies:
    """The groups, from the group of each feature."""
    offsets = np.zeros(n_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(numbers, minlength=n_groups), out=offsets[1:])
    members = np.empty(len(numbers), dtype=np.uint32)
    _kernels.list_members(numbers, offsets, members)
    return Copies(numbers, offsets, members)


@dataclass(frozen=True)
class CollapsedMap(BinnedColumns):
    """A candidate map over a source that stores the first of identical features only.

    A rule on a copy is, on bins, the rule on the first. `single` is the map of the features,
    each by itself.
    """

    single: BinnedColumns
    copies: Copies

    def make_rule(self, cut: Cut) -> Rule:
        return self.single.make_rule(cut)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        rule = self.single.make_binned_rule(cut)
        return replace(rule, feature=self.copies.find_first(cut.feature))

    def find_layout(self, feature: int) -> Layout:
        return self.single.find_layout(feature)

    def count_bins(self, features: IntArray) -> IntArray:
        return self.single.count_bins(features)

    def count_copies(self, features: IntArray) -> IntArray:
        return self.copies.count_members(features)

    def list_copies(self, feature: int, limit: int | None = None) -> list[int]:
        members: list[int] = self.copies.list_members(np.array([feature]))[:limit].tolist()
        return members


def expand(cube: CountCube, candidates: BinnedColumns) -> CountCube:
    """The cube with each feature in its place, copies included."""
    if not isinstance(candidates, CollapsedMap):
        return cube
    members = candidates.copies.list_members(cube.features)
    order = np.argsort(members)
    counts = np.repeat(cube.counts, candidates.count_copies(cube.features), axis=0)
    return CountCube(members[order], counts[order], cube.layout)


class PatternNumbers:
    """Numbers distinct patterns as they come, in batches; exact, since words are compared.

    Takes some twenty bytes for each pattern.
    """

    def __init__(self) -> None:
        self.n_patterns = 0
        self._slots = np.zeros(_FEWEST_SLOTS, dtype=np.uint32)
        self._known = np.zeros(_FEWEST_SLOTS // 2, dtype=np.uint64)

    def add(self, words: Array, stored: Array, n_threads: int = 1) -> tuple[Array, IntArray]:
        """The number of each row's pattern, and which rows hold new ones.

        `stored` are the words of all patterns numbered so far.
        """
        wanted = 2 * (self.n_patterns + len(words))  # the table stays at most half full
        if wanted > len(self._slots):
            n_slots = 1 << (wanted - 1).bit_length()
            before, self._known = self._known, np.zeros(n_slots // 2, dtype=np.uint64)
            self._known[: self.n_patterns] = before[: self.n_patterns]
            self._slots = np.zeros(n_slots, dtype=np.uint32)
            _kernels.fill_slots(self._known[: self.n_patterns], self._slots)
        hashes, known = hash_patterns(words, n_threads), (self._slots, self._known)
        numbers, first = np.empty(len(words), np.uint32), np.empty(len(words), np.int64)
        n_new = _kernels.number_patterns(words, hashes, stored, *known, first, numbers)
        self.n_patterns += n_new
        return numbers, first[:n_new]


def hash_patterns(words: Array, n_threads: int) -> Array:
    """A hash of each row."""
    hashes = np.empty(len(words), dtype=np.uint64)

    def hash_part(part: slice) -> None:
        _kernels.hash_patterns(words[part], hashes[part])

    run_tasks(hash_part, split_evenly(len(words), n_threads), n_threads)
    return hashes


def find_copies(words: Array, n_threads: int) -> Copies | None:
    """Which rows are identical; None if no two are."""
    none_yet = np.empty((0, words.shape[1]), dtype=WORD_DTYPE)
    numbers, first = PatternNumbers().add(words, none_yet, n_threads)
    return None if len(first) == len(words) else make_copies(numbers, len(first))


class NotBinaryError(IcscmError):
    """Other numbers where zeros and ones were expected."""


class PresenceMap(BinnedColumns):
    """The candidates of features that are present or absent: two bins, absent first."""

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._names = names

    def make_rule(self, cut: Cut) -> Rule:
        name = None if self._names is None else self._names[cut.feature]
        return PresenceRule(cut.feature, name, present=not cut.negated)

    def make_binned_rule(self, cut: Cut) -> BinnedRule:
        return BinnedRule(cut.feature, np.array([cut.negated, not cut.negated]))

    def find_layout(self, feature: int) -> Layout:  # noqa: ARG002 (all have the same)
        return ORDERED

    def count_bins(self, features: IntArray) -> IntArray:
        return np.full(len(features), 2, dtype=np.int64)


def pack_binary(
    table: CodedTable, position: Array, rows: Rows, n_threads: int
) -> tuple[BinnedColumns, BitStore] | None:
    """Candidates and store of a table of zeros and ones; None if it holds anything else.

    Identical columns share one place in the store.
    """
    if not is_sparse(table.values):  # a quick check of the first rows, which most tables fail
        first = table.values[:BINARY_LOOK_ROWS]
        if table.levels or table.dropped or not ((first == 0) | (first == 1)).all():
            return None
    n_cells = table.values.shape[0] * table.values.shape[1]
    n_threads = n_threads if n_cells >= MIN_THREADED_CELLS else 1
    store = BitStore(np.arange(table.n_columns), rows, n_threads, ORDERED)
    if not set_bits(table.values, store.bits[position], store.words, n_threads):
        return None
    candidates: BinnedColumns = PresenceMap(table.names)
    if not table.is_presence:  # then `x > 0` and `x <= 0`; neither where all are the same
        edges = np.zeros(table.n_columns, dtype=table.values.dtype)
        offsets, missing = np.arange(table.n_columns + 1), table.find_missing()
        candidates = Binning(table.names, edges, offsets, False, missing, table.levels)
    copies = find_copies(store.words, n_threads)
    if copies is not None:
        store.keep_first(copies.list_first())
        candidates = CollapsedMap(candidates, copies)
    return candidates, store


def set_bits(X: Any, bit_position: Array, words: Array, n_threads: int) -> bool:
    """Set the bits of the ones of X, row i at `bit_position[i]` of each column's words.

    False if X holds other values than 0 and 1.
    """
    inputs: tuple[Any, ...]
    if is_sparse(X):
        if not X.has_canonical_format:  # entries may be listed twice, and are added up
            X = X.copy()
            X.sum_duplicates()
        is_by_column = X.format == "csc"
        pack = _kernels.pack_sparse_columns if is_by_column else _kernels.pack_sparse_rows
        inputs = (as_plain_numbers(X.data), X.indices, X.indptr, bit_position)
    elif X.flags.c_contiguous and X.shape[1] >= MIN_LANES:
        row_of_bit = np.full(words.shape[1] * 64, -1, dtype=np.int64)
        row_of_bit[bit_position] = np.arange(X.shape[0])
        pack, inputs = _kernels.pack_rows, (X, row_of_bit)
    else:
        n = X.shape[1]
        known, highest = np.ones(n, dtype=np.bool_), np.ones(n, dtype=X.dtype)
        plan = ColumnPlan(np.arange(n), [np.zeros(1, dtype=X.dtype)] * n, known, highest)
        return not pack_columns(X, bit_position, plan, n_threads, words).any()
    parts = split_columns(X.shape[1], 4 * n_threads if n_threads > 1 else 1)
    done = run_tasks(lambda part: pack(*inputs, part.start, part.stop, words), parts, n_threads)
    return all(done)
