"""Learning from packed stores: genomes in a `.bits` file, their outcomes in a table.

A store has *words* of 64 bits: bit i of a *pattern* says whether sample i has it. A row to learn
from is a sample that the table gives an outcome; the other samples of the store are not used.

Rows are counted by *segment*, which is an outcome in an environment. So they are sorted by segment,
and so are the bits of a pattern when it is read:

    sorted rows    0 1 2 ... 63 | 64 65 ... 127 | 128 ...    a word for each 64 of them
    segments       a a a ...  a |  a  b ...   b |   b ...
    masks          a            |  a  b         |   b        of each word, the bits of a segment

To count a pattern in segment a is to count the ones among the bits of its words that the masks of a
select. Words lie in *tiles*: the same word of 64 patterns, next to each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from icscm._changes import data_by_name
from icscm._constants import (
    COUNT_DTYPE,
    MAX_MAPPED_BYTES,
    MIN_THREADED_CELLS,
    PACKED_BLOCK_CELLS,
    ROW_DTYPE,
    WORD_BITS,
    WORD_DTYPE,
)
from icscm._types import Array, IntArray
from icscm.engine import _kernels
from icscm.engine.bits import CollapsedMap, PresenceMap
from icscm.engine.clusters import number_clusters
from icscm.engine.counts import ORDERED, CountCube, SourceInfo
from icscm.engine.stores import Rows, Store, sort_rows
from icscm.engine.threads import count_threads, divide_up, run_ahead, split_evenly
from icscm.exceptions import IcscmError, reject_unknown
from icscm.io.naming import check_columns
from icscm.sources.bits.genomes import Genomes, find_samples, open_genomes
from icscm.sources.bits.packing import open_packed
from icscm.sources.bits.store import BLOCK_PATTERNS, BitFile, unpack
from icscm.sources.countable import BinningConfig, Countable
from icscm.sources.gpu.card import choose_card
from icscm.sources.gpu.sending import UnsortedBits
from icscm.sources.gpu.stores import put_bits
from icscm.sources.stored import StoredSource
from icscm.tables.columns import list_names, open_frame
from icscm.tables.environments import encode_environments, number_environments
from icscm.tables.labels import check_labels

# Segments up to which counting unsorted words once for each costs less than sorting them.
_MAX_UNSORTED = 8
# Cells that are read into memory: 2 GB as the floats that learners make of them.
_MAX_READ_CELLS = 250_000_000
_WORD_BYTES = WORD_BITS // 8


@dataclass(frozen=True)
class Masks:
    """Which bits of a pattern's words to count in each segment.

    Attributes
    ----------
    words : array of shape (n_masks,)
        The number of the word that each mask is for.
    masks : array of shape (n_masks,)
        The bits of that word to be counted.
    bounds : array of shape (n_segments + 1,)
        Segment s has the masks from `bounds[s]` up to `bounds[s + 1]`.
    n_rows : array of shape (n_segments,)
        How many rows of each segment are counted.
    """

    words: Array
    masks: Array
    bounds: IntArray
    n_rows: IntArray


class MaskMaker:
    """Makes the masks that select any of the rows from the words of a pattern.

    A mask is for neighbouring rows of one word and one segment:

        bit of each row    0 1 2 3 | 64 65 | 66
        its word           0 0 0 0 |  1  1 |  1
        its segment        a a a a |  a  a |  b
        first of a mask    ^         ^       ^

    Parameters
    ----------
    bits : array of shape (n_rows,)
        The position of each row's bit in the words of a pattern. Rows are sorted by segment.
    segments : array of shape (n_rows,)
        The segment of each row.
    """

    def __init__(self, bits: IntArray, segments: IntArray) -> None:
        word_of_row = bits // WORD_BITS
        bit_in_word = (bits % WORD_BITS).astype(WORD_DTYPE)
        #: of each row, a word in which only its bit is set
        self._bit_of_row = np.uint64(1) << bit_in_word

        is_new_word = np.diff(word_of_row, prepend=-1) != 0
        is_new_segment = np.diff(segments, prepend=-1) != 0
        self._first_rows = np.flatnonzero(is_new_word | is_new_segment)
        self._words = word_of_row[self._first_rows]
        self._segments = segments[self._first_rows]

    def make(self, rows: Rows) -> Masks:
        """Make the masks that select these rows; words without any of them have none."""
        is_counted = rows.mark(len(self._bit_of_row))
        counted_bits = np.where(is_counted, self._bit_of_row, 0)
        masks = np.bitwise_or.reduceat(counted_bits, self._first_rows)

        used = np.flatnonzero(masks)
        n_segments = len(rows.sizes)
        return Masks(
            words=self._words[used].astype(np.uint32),
            masks=masks[used],
            bounds=np.searchsorted(self._segments[used], np.arange(n_segments + 1)),
            n_rows=rows.sizes.astype(COUNT_DTYPE),
        )


class PackedStore(Store):
    """The patterns of a packed store, counted over any of the rows.

    A *tile* has the words of 64 patterns side by side, as the kernel that counts reads them. It is
    made when its patterns are first read, with the bits sorted by segment, and kept. Where the
    tiles of all patterns would take too much memory, none are kept: they are made again for each
    scan, and not even sorted if there are few segments. No pages of the file stay in memory.

    Parameters
    ----------
    bits : BitFile
        The store.
    order : array of shape (n_rows,)
        The sample of each of the sorted rows.
    rows : Rows
        All sorted rows.
    n_threads : int
        How many threads count.
    """

    n_bins = 2
    layout = ORDERED

    def __init__(self, bits: BitFile, order: IntArray, rows: Rows, n_threads: int) -> None:
        self._bits = bits
        self.order = order
        self.n_threads = n_threads
        self.columns = bits.copies.list_first()

        # Sorting takes time, which pays where the tiles are kept, or where unsorted words would be
        # counted once for each of many segments.
        n_rows = len(order)
        n_segments = len(rows.sizes)
        n_sorted_words = divide_up(n_rows, WORD_BITS)
        bytes_of_tiles = _WORD_BYTES * bits.n_patterns * n_sorted_words
        is_kept = bytes_of_tiles <= MAX_MAPPED_BYTES
        is_sorted = is_kept or n_segments > _MAX_UNSORTED

        #: tiles by the first pattern of their block; None where they are not kept
        self._kept_tiles: dict[int, Array] | None = {} if is_kept else None
        #: the sample of each bit of sorted words; None where words stay as they are in the file
        self._sample_of_bit: Array | None = None
        if is_sorted:
            n_unused_bits = n_sorted_words * WORD_BITS - n_rows
            self._sample_of_bit = np.pad(order.astype(ROW_DTYPE), (0, n_unused_bits))
            self._n_words = n_sorted_words
            bit_of_row = np.arange(n_rows)
        else:
            self._n_words = bits.n_words
            bit_of_row = order

        segment_of_row = np.repeat(np.arange(n_segments), rows.sizes)
        self._masks = MaskMaker(bit_of_row, segment_of_row)

    @property
    def n_bytes(self) -> int:
        return _WORD_BYTES * self._bits.n_patterns * self._bits.n_words

    def find_codes(self, column: int) -> Array:
        words = self._bits.read_feature(column)
        bit_of_sample = unpack(words, len(self._bits.samples)).view(np.uint8)
        return bit_of_sample[self.order]

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        is_large = self.n_bytes >= _WORD_BYTES * MIN_THREADED_CELLS
        n_threads = self.n_threads if is_large else 1

        n_patterns = self._bits.n_patterns
        n_cells_of_pattern = self.n_bins * len(rows.sizes)
        max_patterns = max(1, PACKED_BLOCK_CELLS // n_cells_of_pattern)
        # whole tiles; some blocks of the patterns that share a checksum, or a part of one
        multiple = WORD_BITS
        if max_patterns >= BLOCK_PATTERNS:
            multiple = max(BLOCK_PATTERNS, WORD_BITS)
        n_blocks = divide_up(n_patterns, max_patterns)
        blocks = split_evenly(n_patterns, n_blocks, multiple)

        count_block = partial(self._count_block, self._masks.make(rows))
        return run_ahead(count_block, blocks, n_threads)

    def _count_block(self, masks: Masks, patterns: slice) -> CountCube:
        """Count a block of patterns by (pattern, bin, segment)."""
        n_patterns = patterns.stop - patterns.start
        counts = np.empty((n_patterns, self.n_bins, len(masks.n_rows)), dtype=COUNT_DTYPE)
        tiles = self._read_tiles(patterns)
        _kernels.count_tiles(tiles, masks.words, masks.masks, masks.bounds, masks.n_rows, counts)

        columns = self._bits.copies.list_first(patterns)
        # a segment is an outcome and an environment
        return CountCube(columns, counts.reshape(n_patterns, self.n_bins, 2, -1))

    def _read_tiles(self, patterns: slice) -> Array:
        """Read the tiles (group, word, pattern of the group) of a block of patterns.

        Two threads may make the same tiles at a time: they are equal, and the first are kept.
        """
        if self._kept_tiles is None:
            return self._make_tiles(patterns)
        if patterns.start not in self._kept_tiles:
            self._kept_tiles.setdefault(patterns.start, self._make_tiles(patterns))
        return self._kept_tiles[patterns.start]

    def _make_tiles(self, patterns: slice) -> Array:
        """Make the tiles of a block of patterns from the words in the file."""
        n_patterns = patterns.stop - patterns.start
        n_groups = divide_up(n_patterns, WORD_BITS)
        tiles = np.empty((n_groups, self._n_words, WORD_BITS), dtype=WORD_DTYPE)

        words = self._bits.read_words(patterns)
        if self._sample_of_bit is None:
            _kernels.lay_bits(words, tiles)
        else:
            _kernels.sort_bits(words, self._sample_of_bit, tiles)
        self._bits.release(patterns)
        return tiles


@dataclass(frozen=True, eq=False)
class StoreRows:
    """The samples of a store that are rows to learn from, with what is known of each.

    Attributes
    ----------
    samples : array of shape (n_rows,)
        The positions of the samples in the store, in any order.
    outcomes : array of shape (n_rows,)
        0 or 1.
    environments : array of shape (n_rows,)
        The number of each row's environment.
    groups : array of shape (n_rows,), optional
        The number of each row's group; None if all rows are independent.
    """

    samples: IntArray
    outcomes: IntArray
    environments: IntArray
    groups: IntArray | None = None

    def take(self, rows: IntArray) -> "StoreRows":
        """Select rows, by their positions among these."""
        return StoreRows(
            samples=self.samples[rows],
            outcomes=self.outcomes[rows],
            environments=self.environments[rows],
            groups=None if self.groups is None else self.groups[rows],
        )


def make_packed_source(
    bits: BitFile, info: SourceInfo, rows: StoreRows, config: BinningConfig
) -> StoredSource:
    """Make a packed store countable, on the card where `config` says so."""
    n_environments = len(info.environments)
    # In the order of the store, so that the bits of a segment are counted from left to right.
    order_in_store = np.argsort(rows.samples)
    in_store = rows.take(order_in_store)
    position_in_store, sorted_rows = sort_rows(
        in_store.outcomes, in_store.environments, n_environments
    )
    sample_of_sorted = in_store.samples[np.argsort(position_in_store)]
    # `position[i]` is the place of row i once rows are sorted by outcome and environment.
    position = np.empty_like(position_in_store)
    position[order_in_store] = position_in_store

    unsorted = UnsortedBits(
        n_columns=bits.n_patterns,
        n_words=2 * bits.n_words,  # of 32 bits, where the file has 64
        read=bits.read_words,
        bit_of_row=sample_of_sorted,
        block_columns=BLOCK_PATTERNS,
    )
    card = choose_card(config.device, unsorted.n_bytes)
    if card is None:
        n_threads = count_threads(config.n_jobs)
        store: Store = PackedStore(bits, sample_of_sorted, sorted_rows, n_threads)
    else:
        columns = bits.copies.list_first()
        n_copies = info.columns.count_copies(columns)
        store = put_bits(card, columns, unsorted, sorted_rows, ORDERED, n_copies)

    clusters = None
    if rows.groups is not None:
        clusters = number_clusters(rows.groups, rows.environments, n_environments, position)
    return StoredSource(info, [store], sorted_rows, position, clusters)


@data_by_name
def open_bits(
    bits: str | Path | BitFile,
    labels: Any,
    target: str,
    *,
    environments: str | None = None,
    groups: str | None = None,
    sample_column: str | None = None,
    preparation: BinningConfig | None = None,
) -> Countable[StoredSource]:
    """Open a packed store of genomes, whose outcomes and environments are in a table.

    Rules read `gene present` and `gene absent`. Genomes of the store that the labels do not name
    are not used.

    Parameters
    ----------
    bits : str, Path or BitFile
        What `icscm pack` or `pack_matrix` wrote.
    labels : frame
        A row for each genome, with its name and its outcome.
    target : str
        The column of outcomes.
    environments : str, optional
        The column of environments.
    groups : str, optional
        The column of groups, such as lineages: genomes that belong together.
    sample_column : str, optional
        The column of the genomes' names; by default the first.
    preparation : BinningConfig, optional
        A learner's `prepare()`, of which the number of threads and the device count.

    Returns
    -------
    Countable
        The rows, for `fit_counts` of a learner.

    Raises
    ------
    IcscmError
        If the labels lack a column, or name genomes that the store does not hold.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_bits
    >>> data = make_conjunction(random_state=1)
    >>> from icscm.sources.bits.packing import pack_matrix
    >>> labels = data.X.assign(genome=range(20_000), y=data.y, country=data.environments)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "genes.bits")
    ...     pack_matrix(data.X, path, names=list(data.X))
    ...     countable = open_bits(
    ...         path, labels, "y", environments="country", sample_column="genome"
    ...     )
    ...     print(ICSCMClassifier().fit_counts(countable).model_)
    A1 present and A2 present
    """
    frame = open_frame(labels)
    names = list_names(labels)
    sample_column = names[0] if sample_column is None else sample_column
    wanted = [target, environments, groups, sample_column]
    check_columns([name for name in wanted if name is not None], names, "the table of labels")

    # In the order of the store, so that the order of the labels does not matter.
    genomes = open_genomes(bits, frame[sample_column].to_list())
    order_in_store = np.argsort(genomes.samples)
    frame = frame[order_in_store]
    return open_rows(
        replace(genomes, samples=genomes.samples[order_in_store]),
        frame[target].to_native(),
        environments=None if environments is None else frame[environments].to_native(),
        groups=None if groups is None else frame[groups].to_native(),
        preparation=preparation,
    )


def open_rows(
    X: Genomes,
    y: Any,
    *,
    environments: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    preparation: BinningConfig | None = None,
) -> Countable[StoredSource]:
    """Make genomes countable, with the outcome and environment of each, as `open_memory` does."""
    if sample_weight is not None:
        raise IcscmError(
            "genomes of a packed store have no weights; omit sample_weight, or give a table in "
            "memory"
        )
    n_rows = len(X)
    if len(np.unique(X.samples)) < n_rows:
        raise IcscmError(f"X has a genome of {X.store.path} more than once; give each one row")

    config = preparation or BinningConfig()
    store = X.store
    outcomes, classes = check_labels(y, n_rows)
    environment_of_row, environment_names = number_environments(environments, n_rows)
    group_of_row = None
    if groups is not None:
        group_of_row = encode_environments(groups, n_rows, what="groups")[0]
    rows = StoreRows(X.samples, outcomes, environment_of_row, group_of_row)

    notes = []
    if X.n_unused:
        notes.append(f"{X.n_unused:,} genomes of the store have no label and are not used.")
    info = SourceInfo(
        columns=CollapsedMap(PresenceMap(store.names), store.copies),
        classes=classes.tolist(),
        environments=environment_names,
        notes=notes,
    )
    return Countable(
        make_packed_source(store, info, rows, config),
        table=None,  # millions of names stay in the store
        names=None,
        classes=classes,
        n_features=store.n_features,
        has_environments=environments is not None,
        config=config,
        is_binned=False,
    )


def read_patterns(store: BitFile, genomes: Sequence[Any]) -> pyarrow.Table:
    """Read all columns of a packed store, 0 or 1, for some of its genomes.

    Columns that are present in the same genomes of the store are one column, with the name of the
    first.
    """
    samples = find_samples(store, genomes)
    if len(samples) * store.n_patterns > _MAX_READ_CELLS:
        raise IcscmError(
            f"{store.path} has {store.n_patterns:,} patterns of {len(samples):,} genomes, too many "
            f"to read into memory (at most {_MAX_READ_CELLS:,} cells); pack fewer features"
        )

    words = store.read_words(slice(0, store.n_patterns))
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    is_present = bits[:, samples]  # by (pattern, genome)

    first_columns = store.copies.list_first().tolist()
    if store.names is None:
        names = [str(column) for column in first_columns]
    else:
        names = [store.names[column] for column in first_columns]
    return pyarrow.table(dict(zip(names, is_present, strict=True)))


def read_genomes(
    path: str | Path, genes: Sequence[str], delimiter: str | None = None
) -> pyarrow.Table:
    """Read some genes of a presence/absence table or of a packed store, for all of its genomes.

    Parameters
    ----------
    path : str or Path
        The table, or a store if it ends in `.bits`.
    genes : sequence of str
        The columns that are wanted.
    delimiter : str, optional
        Of a table, as for `pack_table`.

    Returns
    -------
    pyarrow.Table
        A row for each genome; its name, in the column `genome`, comes first.

    Raises
    ------
    IcscmError
        If the file cannot be read, or a gene is missing.
    """
    with open_packed(Path(path), delimiter) as store:
        if store.names is None:
            raise IcscmError(f"{path} has no feature names, which the model needs")
        column_of_gene = {}
        for gene in genes:
            column = store.names.find(gene)
            if column is not None:
                column_of_gene[gene] = column
        reject_unknown(genes, column_of_gene, f"{path} has no ", after=", which the model needs")

        n_samples = len(store.samples)
        columns: dict[str, Any] = {"genome": store.samples}
        for gene, column in column_of_gene.items():
            columns[gene] = unpack(store.read_feature(column), n_samples)
        return pyarrow.table(columns)
