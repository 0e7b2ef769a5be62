"""The compiled kernels, and the layout of bits, codes and ranks that they share with the others.

Each method of `CompiledKernels` is a kernel of `kernels.cu` with the numbers of blocks and threads
that it runs in. Arguments go by position, and numbers in the types of C, as the kernel lists them.
`tests/support/literal/gpu_kernels.py` has a NumPy twin of each kernel, with a description.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from icscm._types import Array
from icscm.engine.counts import CandidateCriteria
from icscm.engine.reasons import REASONS, Reason
from icscm.engine.stores import Rows

# Bits of a chunk, which a lane reads at once, and of a tile, which a warp holds: see `kernels.cu`.
CHUNK_BITS = 128
TILE_BITS = 128 * CHUNK_BITS

# What may become of a candidate, as numbered by the kernels.
CODES = ("none", "allowed", *REASONS, "open")
NONE = CODES.index("none")
ALLOWED = CODES.index("allowed")
DEPENDENT = CODES.index(Reason.DEPENDENT.name.lower())
OPEN = CODES.index("open")
REJECTED = range(DEPENDENT, OPEN)
TESTS = ("none", "pearson", "yates", "g")


@dataclass(frozen=True, eq=False)
class Segments:
    """The rows that are counted, by outcome and environment; arrays are on the card.

    Attributes
    ----------
    n_rows : array of int
        How many there are in each segment.
    n_environments : int
        Half of the number of segments.
    n_by_outcome : tuple of int
        How many there are of each outcome.
    mask : array of uint32, optional
        For columns of bits: a bit for each of all rows, set where it is counted.
    bounds : array of int, optional
        The bits at which segments begin, and the end of the last one.
    tiles : array of int, optional
        The first segment of each tile, and after the last one the number of segments.
    """

    n_rows: Any
    n_environments: int
    n_by_outcome: tuple[int, int]
    mask: Any = None
    bounds: Any = None
    tiles: Any = None


@dataclass(frozen=True, eq=False)
class DeviceQuery:
    """Criteria with their arrays on the card, and the rows in play by the outcome as they see it.

    `logarithms` are x log x of the first whole numbers.
    """

    criteria: CandidateCriteria
    passes_below: Any
    fails_from: Any
    logarithms: Any
    replication_factors: Any
    positive_rates: Any
    n_negative: int
    n_positive: int


class Key(NamedTuple):
    """A candidate's rank: the largest utility first, then margin, then by `order` as ties go.

    The margin is the excess of negatives in its leaf. `order` is twice the column, plus one for the
    rule that covers the ones.
    """

    utility: int
    margin: int
    order: int

    @property
    def column(self) -> int:
        """The column of the rule."""
        return self.order // 2

    @property
    def covers_ones(self) -> bool:
        """Whether the rule covers the ones, or the zeros."""
        return self.order % 2 == 1


# Before all candidates.
FIRST = Key(2**63 - 1, 2**63 - 1, -1)


def count_padded(n_rows: int) -> int:
    """Count the bits of a column, which has whole chunks, and at least one."""
    n_chunks = max(1, -(-n_rows // CHUNK_BITS))
    return n_chunks * CHUNK_BITS


def find_tiles(rows: Rows) -> Array:
    """Find the first segment of each tile; those that begin at the very end are in none."""
    n_bits = count_padded(len(rows))
    n_tiles = -(-n_bits // TILE_BITS)
    tile_starts = np.minimum(np.arange(n_tiles + 1) * TILE_BITS, n_bits)
    return np.searchsorted(rows.bounds[:-1], tile_starts).astype(np.int32)


def compute_keys(totals: Any, query: DeviceQuery, sign: int) -> tuple[Any, Any]:
    """Compute the utility p_d |A| - p_n |B| and the margin |A| - |B| of a rule on each column.

    A and B are the negatives and positives that the rule covers: with sign 1 the ones, of which
    there are so many in `totals`, with sign 0 the zeros.
    """
    negatives = totals[:, 0].astype(np.int64)
    positives = totals[:, 1].astype(np.int64)
    if sign == 0:
        negatives = query.n_negative - negatives
        positives = query.n_positive - positives
    criteria = query.criteria
    utility = criteria.p_denominator * negatives - criteria.p_numerator * positives
    return utility, negatives - positives


_THREADS = 256
# Lanes of a warp: threads that run together.
_LANES = 32
# Shared memory of a block that runs beside three others.
_SHARED_BYTES = 46 * 1024
# Shared memory that a block may have without being allowed more, with the kernel's static part.
_DEFAULT_SHARED_BYTES = 32 * 1024
# Shared memory of a warp that counts bits: a tile, and 16 bits for each of its words of 32.
_TILE_BYTES = TILE_BITS // 8 + TILE_BITS // 16
# Rows that one block counts of a column of bin numbers.
_CODED_ROWS = 2**15
# Blocks that code the values of a column, at most.
_MAX_CODING_BLOCKS = 256
# Columns listed at first; if there are more, they are listed again.
_LISTED = 2**16
# Columns that a warp judges together.
_GROUP = 16
# An array that is not given, or not wanted.
_NOTHING = np.intp(0)


class CompiledKernels:
    """Kernels for the card that CuPy uses."""

    def __init__(self, cupy, options=()) -> None:
        source = files("icscm.sources.gpu").joinpath("kernels.cu").read_text()
        self._cupy = cupy
        #: by how many lanes judge a column
        self._modules = {
            width: cupy.RawModule(
                code=source, options=("--std=c++17", *options, f"-DWIDTH={width}")
            )
            for width in (2, 4, 8, 16, 32)
        }
        self._n_blocks = 4 * cupy.cuda.Device().attributes["MultiProcessorCount"]
        self._modules[32].get_function("judge_bits")  # compiles, so that a failure shows now

    def count_bits(self, words, segments, out) -> None:
        n_segments = 2 * segments.n_environments
        self._run_on_bits(
            "count_bits", words, segments, further=(np.int32(n_segments), out), group=1, width=32
        )

    def judge_bits(self, words, segments, query, *results) -> None:
        self._run_on_bits(
            _find_name("judge_bits", query),
            words,
            segments,
            further=_list_criteria(segments, query, *results),
            group=_GROUP,
            width=_find_width(segments),
        )

    def judge_counts(self, ones, segments, query, *results) -> None:
        columns_per_block = _GROUP * _THREADS // _LANES
        n_blocks = _limit(-(-len(ones) // columns_per_block), self._n_blocks)
        self._run(
            _find_name("judge_counts", query),
            (ones, np.int64(len(ones)), *_list_criteria(segments, query, *results)),
            grid=(n_blocks,),
            width=_find_width(segments),
        )

    def tally_codes(self, codes, n_copies):
        out = self._cupy.zeros(len(CODES), dtype=np.uint64)
        weights = _NOTHING if n_copies is None else n_copies
        self._run("tally_codes", (codes, np.int64(len(codes)), weights, out))
        return out.get().astype(np.int64)

    def find_next(self, totals, codes, query, wanted, after):
        first_of_blocks = self._cupy.empty((self._n_blocks, 3), dtype=np.int64)
        ranking = _list_ranking(totals, codes, query, wanted)
        last_key = np.int64(after.utility), np.int64(after.margin), np.int64(after.order)
        self._run("find_next", (*ranking, *last_key, first_of_blocks))

        utility, margin, order = first_of_blocks.get().T
        # descending by complements: the least number has no negative
        first = np.lexsort((order, ~margin, ~utility))[0]
        key = Key(int(utility[first]), int(margin[first]), int(order[first]))
        is_none = key.order == 2**63 - 1
        return None if is_none else key

    def list_columns(self, totals, codes, query, wanted, key=None):
        ranking = _list_ranking(totals, codes, query, wanted)
        utility, margin = (0, 0) if key is None else (key.utility, key.margin)
        asked = np.int32(key is not None), np.int64(utility), np.int64(margin)
        capacity = 0
        n_columns = _LISTED
        while n_columns > capacity:
            capacity = n_columns
            counter = self._cupy.zeros(1, dtype=np.uint64)
            columns = self._cupy.empty(capacity, dtype=np.int64)
            self._run("list_columns", (*ranking, *asked, columns, np.uint64(capacity), counter))
            n_columns = int(counter.get()[0])
        return self._cupy.sort(columns[:n_columns])

    def make_lanes(self, shape):
        return tuple(_Lane(self, self._cupy, shape) for _ in range(2))

    def sort_bits(self, words, source, out) -> None:
        arguments = (
            words,
            np.int64(len(words)),
            np.int32(words.shape[1]),
            source,
            np.int32(len(source)),
            out,
            np.int32(out.shape[1]),
        )
        self._run("sort_bits", arguments)

    def count_codes(self, codes, rows, bounds, out) -> None:
        n_columns, n_bins, n_segments = out.shape
        n_rows = int(codes.shape[1] if rows is None else len(rows))
        out[:] = 0
        arguments = (
            codes,
            np.int64(codes.shape[1]),
            _NOTHING if rows is None else rows,
            bounds,
            np.int32(n_segments),
            np.int32(n_bins),
            np.int64(_CODED_ROWS),
            out,
        )
        n_parts = max(1, -(-n_rows // _CODED_ROWS))
        histogram_bytes = 4 * n_bins
        self._run(
            "count_codes",
            arguments,
            grid=(n_columns, n_parts),
            shared_bytes=histogram_bytes * _THREADS // _LANES,  # one for each warp
        )

    def hash_rows(self, values, salt):
        n_columns, n_rows = values.shape
        hashes = self._cupy.empty(n_rows, dtype=np.uint64)
        arguments = values, np.int64(n_rows), np.int32(n_columns), salt, hashes
        self._run(f"hash_rows_{values.dtype.char}", arguments)
        return hashes

    def code_values(self, values, source, columns, edges, n_edges, known, highest, codes):
        n_rows = values.shape[1]
        surprised = self._cupy.zeros(len(columns), dtype=np.uint8)
        arguments = (
            values,
            np.int64(n_rows),
            source,
            columns,
            edges,
            np.int32(edges.shape[1]),
            n_edges,
            known,
            highest,
            codes,
            surprised,
        )
        n_parts = _limit(n_rows // _CODED_ROWS, _MAX_CODING_BLOCKS)
        self._run(f"code_values_{values.dtype.char}", arguments, grid=(len(columns), n_parts))
        return surprised.get().astype(np.bool_)

    def _run_on_bits(self, name, words, segments, *, further, group, width) -> None:
        """Run a kernel of columns of bits, with `further` arguments after those of the bits.

        A block has as many warps as the shared memory has room for: each holds a tile, and the
        ones of each segment of the columns that it judges at a time.
        """
        columns_at_a_time = _LANES // width
        ones_bytes = 4 * columns_at_a_time * (2 * segments.n_environments + 1)
        warp_bytes = _TILE_BYTES + ones_bytes
        n_warps = _limit(_SHARED_BYTES // warp_bytes, _THREADS // _LANES)
        n_blocks = _limit(-(-len(words) // (n_warps * group)), self._n_blocks * 8 // n_warps)
        arguments = (
            words,
            np.int64(len(words)),
            segments.mask,
            segments.bounds,
            segments.tiles,
            np.int32(words.shape[1] // 4),
            np.int32(len(segments.tiles) - 1),
            *further,
        )
        self._run(
            name,
            arguments,
            grid=(n_blocks,),
            n_threads=_LANES * n_warps,
            shared_bytes=warp_bytes * n_warps,
            width=width,
        )

    def _run(
        self, name, arguments, *, grid=None, n_threads=_THREADS, shared_bytes=0, width=32
    ) -> None:
        """Run a kernel, in as many blocks as the card runs at a time unless a grid is given."""
        function = self._modules[width].get_function(name)
        if shared_bytes > _DEFAULT_SHARED_BYTES:
            function.max_dynamic_shared_size_bytes = shared_bytes
        grid = grid or (self._n_blocks,)
        function(grid, (n_threads,), tuple(arguments), shared_mem=shared_bytes)


class _Lane:
    """Pinned memory, its likeness on the card, and the stream between the two.

    The stream waits for earlier work on the card, and the card waits for the stream.
    """

    def __init__(self, kernels, cupy, shape) -> None:
        n_cells = int(np.prod(shape))
        self._memory = cupy.cuda.alloc_pinned_memory(max(1, 4 * n_cells))
        self.host = np.frombuffer(self._memory, np.uint32, n_cells).reshape(shape)
        self._words = cupy.empty(shape, dtype=np.uint32)
        self._stream = cupy.cuda.Stream()
        self._kernels = kernels

    def wait(self) -> None:
        self._stream.synchronize()

    def sort(self, n_columns, source, out) -> None:
        words = self._words[:n_columns]
        with self._stream:
            words.set(self.host[:n_columns], stream=self._stream)
            self._kernels.sort_bits(words, source, out)

    def put(self, out) -> None:
        n_words = out.nbytes // 4
        out.view(np.uint32).ravel().set(self.host.ravel()[:n_words], stream=self._stream)


def _limit(n, highest):
    """Return a number of blocks, or of warps: at least 1, and at most `highest`, or 1."""
    return max(1, min(n, highest))


def _find_width(segments):
    """Find how many lanes judge a column: a power of two, a half of them for each leaf."""
    power_of_two = 1 << (segments.n_environments - 1).bit_length()
    return max(2, min(_LANES, power_of_two))


def _find_name(name, query):
    """Find the name of the kernel for a test: that by likelihood takes logarithms."""
    return f"{name}_by_likelihood" if query.criteria.statistic == "g" else name


def _list_criteria(segments, query, totals, codes, statistics=None, dofs=None):
    """List the arguments of the kernels that judge columns: CRITERIA_PARAMETERS in `kernels.cu`."""
    criteria = query.criteria
    return (
        np.int32(segments.n_environments),
        segments.n_rows,
        np.int32(query.n_negative),
        np.int32(query.n_positive),
        np.int32(criteria.is_inverted),
        np.int64(criteria.p_numerator),
        np.int64(criteria.p_denominator),
        np.int32(TESTS.index(criteria.statistic)),
        query.passes_below,
        query.fails_from,
        query.logarithms,
        np.int32(len(query.logarithms)),
        query.replication_factors,
        np.float64(criteria.unreplicated_below),
        np.float64(criteria.replicated_from),
        np.int64(criteria.min_utility),
        query.positive_rates,
        np.float64(criteria.min_evidence),
        np.float64(criteria.evidence_slack),
        totals,
        codes,
        _NOTHING if statistics is None else statistics,
        _NOTHING if dofs is None else dofs,
    )


def _list_ranking(totals, codes, query, wanted):
    """List the arguments of the kernels that scan judged columns; a bit for each wanted code."""
    wanted_bits = sum(1 << code for code in wanted)
    return (
        totals,
        codes,
        np.int64(len(codes)),
        np.int32(query.n_negative),
        np.int32(query.n_positive),
        np.int64(query.criteria.p_numerator),
        np.int64(query.criteria.p_denominator),
        np.uint32(wanted_bits),
    )
