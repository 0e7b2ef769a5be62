"""Learning from packed stores: genomes in a `.bits` file, their labels in a table.

Bits are sorted by label and environment, then counted in tiles of 64 samples.

samples, sorted     0 1 2 ... 63 | 64 65 ... 127 | 128 ...      tiles: a word of each pattern
segments            a a a ...  a |  a  b ...   b |   b ...
masks               a            |  a  b         |   b          words to count, by segment

Samples without a label are in no tile; the masks mark the samples in play.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from icscm.engine.threads import count_threads, run_ahead, split_evenly
from icscm.exceptions import IcscmError, reject_unknown
from icscm.io.naming import check_columns
from icscm.sources.bits.packing import open_packed
from icscm.sources.bits.store import BLOCK_PATTERNS, BitFile, open_store, unpack
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


@dataclass(frozen=True)
class Masks:
    """Which bits of a pattern's words to count: segment s has those from `bounds[s]` on.

    `words` are the numbers of words, `masks` the bits of them, `n_rows` the bits of each segment.
    """

    words: Array
    masks: Array
    bounds: IntArray
    n_rows: IntArray


class PackedStore(Store):
    """The patterns of a packed store, of which `order` are the samples that count, sorted.

    A block of patterns is sorted when it is first read. Sorted blocks are kept unless they are too
    large together; then they are recomputed for each scan, and left unsorted if segments are few.
    No pages of the file stay in memory.
    """

    n_bins = 2
    layout = ORDERED

    def __init__(self, bits: BitFile, order: IntArray, rows: Rows, n_threads: int) -> None:
        self._bits = bits
        self.order = order
        self.n_threads = n_threads
        self.columns = bits.copies.list_first()
        n_segments = len(rows.sizes)

        n_sorted_words = -(-len(order) // WORD_BITS)
        is_kept = 8 * bits.n_patterns * n_sorted_words <= MAX_MAPPED_BYTES
        is_sorted = is_kept or n_segments > _MAX_UNSORTED
        # the tiles of blocks that were sorted; None where they are not kept
        self._kept: dict[int, Array] | None = {} if is_kept else None
        # for each bit of a sorted pattern, its bit in the file; None where patterns stay unsorted
        self._source: Array | None = None
        self._n_words = bits.n_words
        bit_of_sample = order
        if is_sorted:
            self._source = np.pad(order.astype(ROW_DTYPE), (0, -len(order) % WORD_BITS))
            self._n_words = n_sorted_words
            bit_of_sample = np.arange(len(order))

        # of each sample: its word, and the word in which only its bit is set
        self._word = bit_of_sample // WORD_BITS
        self._bit = np.uint64(1) << (bit_of_sample % WORD_BITS).astype(WORD_DTYPE)
        # A mask begins where the samples, in their order, go on to another word or segment.
        segments = np.repeat(np.arange(n_segments), rows.sizes)
        is_new_word = np.diff(self._word, prepend=-1) != 0
        is_new_segment = np.diff(segments, prepend=-1) != 0
        self._starts = np.flatnonzero(is_new_word | is_new_segment)
        self._segments = segments[self._starts]

    @property
    def n_bytes(self) -> int:
        return 8 * self._bits.n_patterns * self._bits.n_words

    def find_codes(self, column: int) -> Array:
        words = self._bits.read_feature(column)
        return unpack(words, len(self._bits.samples)).view(np.uint8)[self.order]

    def count_cubes(self, rows: Rows) -> Iterator[CountCube]:
        n_patterns = self._bits.n_patterns
        n_threads = self.n_threads if self.n_bytes >= 8 * MIN_THREADED_CELLS else 1
        # whole tiles; some blocks of the patterns that share a checksum, or a part of one
        size = max(1, PACKED_BLOCK_CELLS // (2 * len(rows.sizes)))
        multiple = max(BLOCK_PATTERNS, WORD_BITS) if size >= BLOCK_PATTERNS else WORD_BITS
        blocks = split_evenly(n_patterns, -(-n_patterns // size), multiple)
        count_block = partial(self._count_block, self._make_masks(rows))
        return run_ahead(count_block, blocks, n_threads)

    def _make_masks(self, rows: Rows) -> "Masks":
        """Make the masks that select some of the samples from the words of a pattern."""
        is_counted = rows.mark(len(self.order))
        masks = np.bitwise_or.reduceat(np.where(is_counted, self._bit, 0), self._starts)
        used = np.flatnonzero(masks)
        return Masks(
            words=self._word[self._starts[used]].astype(np.uint32),
            masks=masks[used],
            bounds=np.searchsorted(self._segments[used], np.arange(len(rows.bounds))),
            n_rows=rows.sizes.astype(COUNT_DTYPE),
        )

    def _count_block(self, masks: "Masks", block: slice) -> CountCube:
        n_patterns = block.stop - block.start
        counts = np.empty((n_patterns, 2, len(masks.n_rows)), dtype=COUNT_DTYPE)
        _kernels.count_tiles(
            self._read_tiles(block), masks.words, masks.masks, masks.bounds, masks.n_rows, counts
        )
        columns = self._bits.copies.list_first(block)
        return CountCube(columns, counts.reshape(n_patterns, 2, 2, -1))

    def _read_tiles(self, block: slice) -> Array:
        """Tiles (group, word, pattern) of a block of patterns, of which each has always the same.

        Two threads may make the same one; they make it alike.
        """
        kept = {} if self._kept is None else self._kept
        if block.start in kept:
            return kept[block.start]
        n_groups = -(-(block.stop - block.start) // WORD_BITS)
        tiles = np.empty((n_groups, self._n_words, WORD_BITS), dtype=WORD_DTYPE)
        words = self._bits.read_words(block)
        if self._source is None:
            _kernels.lay_bits(words, tiles)
        else:
            _kernels.sort_bits(words, self._source, tiles)
        self._bits.release(block)
        return kept.setdefault(block.start, tiles)


def make_packed_source(
    bits: BitFile,
    info: SourceInfo,
    samples: Sequence[Array],
    config: BinningConfig,
    groups: Array | None = None,
) -> StoredSource:
    """Make a packed store countable, on the card where `config` says so.

    Of the samples that count, `samples` are the positions in the store, ascending; 0 or 1, the
    label; and positions in `info.environments`. `groups` is the number of the group of each.
    """
    counted, labels, environments = samples
    position, rows = sort_rows(labels, environments, len(info.environments))
    order = counted[np.argsort(position)]
    unsorted = UnsortedBits(
        n_columns=bits.n_patterns,
        n_words=2 * bits.n_words,  # of 32 bits, where the file has 64
        read=bits.read_words,
        bit_of_row=order,
        block_columns=BLOCK_PATTERNS,
    )
    card = choose_card(config.device, unsorted.n_bytes)
    if card is None:
        store: Store = PackedStore(bits, order, rows, count_threads(config.n_jobs))
    else:
        columns = bits.copies.list_first()
        n_copies = info.columns.count_copies(columns)
        store = put_bits(card, columns, unsorted, rows, ORDERED, n_copies)
    clusters = None
    if groups is not None:
        clusters = number_clusters(groups, environments, len(info.environments), position)
    return StoredSource(info, [store], rows, position, clusters)


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
    """Open a packed store, of whose samples a table has labels and environments.

    Rules read `gene present` and `gene absent`. Genomes of the store that the labels do not name
    are not used.

    Parameters
    ----------
    bits : str, Path or BitFile
        What `icscm pack` or `pack_matrix` wrote.
    labels : frame
        A row for each genome.
    target : str
        The column of classes.
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
        The samples, for `fit_counts` of a learner.

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
    config = preparation or BinningConfig()
    store = bits if isinstance(bits, BitFile) else open_store(bits)
    frame = open_frame(labels)
    names = list_names(labels)
    sample_column = names[0] if sample_column is None else sample_column
    wanted = [target, environments, groups, sample_column]
    check_columns([name for name in wanted if name is not None], names, "the table of labels")

    positions = np.array(_find_genomes(store, frame[sample_column].to_list()), dtype=np.int64)
    n_rows = len(positions)
    outcomes, classes = check_labels(frame[target].to_native(), n_rows)
    column = None if environments is None else frame[environments].to_native()
    environment_of_row, environment_names = number_environments(column, n_rows)
    group_of_row = None
    if groups is not None:
        group_of_row = encode_environments(frame[groups].to_native(), n_rows, what="groups")[0]

    notes = []
    n_unlabelled = len(store.samples) - n_rows
    if n_unlabelled:
        notes.append(f"{n_unlabelled:,} genomes of the store have no label and are not used.")
    columns = CollapsedMap(PresenceMap(store.names), store.copies)
    info = SourceInfo(columns, classes.tolist(), environment_names, notes)

    in_order_of_store = np.argsort(positions)
    source = make_packed_source(
        store,
        info,
        samples=(
            positions[in_order_of_store],
            outcomes[in_order_of_store],
            environment_of_row[in_order_of_store],
        ),
        config=config,
        groups=None if group_of_row is None else group_of_row[in_order_of_store],
    )
    return Countable(
        source,
        table=None,  # millions of names stay in the store
        names=None,
        classes=classes,
        n_features=store.n_features,
        has_environments=environments is not None,
        config=config,
        is_binned=False,
    )


def _find_genomes(store: BitFile, names: Sequence[Any]) -> list[int]:
    """Positions of the genomes that the labels name."""
    place = {name: i for i, name in enumerate(store.samples)}
    genomes = Counter([str(name) for name in names])
    what = f"{store.path} has genomes such as {store.samples[0]!r}, and not those of the labels: "
    advice = "; drop these rows, or name the column of genomes (--sample-column, sample_column)"
    reject_unknown(genomes, place, what, after=advice)
    for name, n_times in genomes.most_common(1):
        if n_times > 1:
            raise IcscmError(f"the labels name {name!r} {n_times} times; give one row per genome")
    return [place[name] for name in genomes]


def read_patterns(store: BitFile, genomes: Sequence[Any]) -> pyarrow.Table:
    """All features of a packed store in some genomes, 0 or 1.

    Features that are present in the same genomes of the store are one column, with the name of
    the first.
    """
    rows, names = _find_genomes(store, genomes), store.names
    if len(rows) * store.n_patterns > _MAX_READ_CELLS:
        why = f"{store.path} has {store.n_patterns:,} patterns of {len(rows):,} genomes, too many"
        advice = f"(at most {_MAX_READ_CELLS:,} cells); pack fewer features"
        raise IcscmError(f"{why} to read into memory {advice}")
    words = store.read_words(slice(0, store.n_patterns)).view(np.uint8)
    present = np.unpackbits(words, axis=1, bitorder="little")[:, rows]
    first = store.copies.list_first().tolist()
    columns = [str(j if names is None else names[j]) for j in first]
    return pyarrow.table(dict(zip(columns, present, strict=True)))


def read_genomes(
    path: str | Path, genes: Sequence[str], delimiter: str | None = None
) -> pyarrow.Table:
    """Some genes of a presence/absence table or of a packed store.

    Parameters
    ----------
    path : str or Path
        The table, or a store if it ends in `.bits`.
    genes : sequence of str
        The features that are wanted.
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
        numbers = {gene: store.names.find(gene) for gene in genes}
        known = {gene: n for gene, n in numbers.items() if n is not None}
        reject_unknown(genes, known, f"{path} has no ", after=", which the model needs")
        words = {gene: store.read_feature(n) for gene, n in known.items()}
        found = {gene: unpack(own, len(store.samples)) for gene, own in words.items()}
        return pyarrow.table({"genome": store.samples, **found})
