"""Starts the kernels of the card, and says how their bits, codes and ranks are laid out.

A kernel is a function of `kernels.cu`, which the card runs in many threads at once: 32 of them, the
*lanes* of a *warp*, run together; several warps make a *block*, which shares some fast memory; and
the blocks of a kernel are its *grid*. Each method of `CompiledKernels` starts one kernel, in the
blocks and threads that it is written for.

Arguments go by position, and numbers in the types of C, as the kernel lists them.
`tests/support/literal/gpu_kernels.py` computes what each kernel does in plain NumPy.
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
from icscm.engine.threads import divide_up

# --- rows ----------------------------------------------------------------------------------------

# Bits of a chunk, which a lane reads at once, and of a tile, which a warp holds: see `kernels.cu`.
CHUNK_BITS = 128
_WORDS_OF_CHUNK = CHUNK_BITS // 32
TILE_BITS = 128 * CHUNK_BITS


@dataclass(frozen=True, eq=False)
class Segments:
    """The rows that are counted, by outcome and environment; arrays are on the card.

    All rows are sorted by these, so that a segment is a run of bits. In columns of 200 rows, for
    example, with one environment, and 10 rows that are not counted any more:

        outcome      negative | positive
        bounds       0        | 120       200
        n_rows       115      | 75

    Attributes
    ----------
    n_rows : array of int, (segment,)
        The counted rows of each segment.
    n_environments : int
        Half of the number of segments: negatives of all environments come first, then positives.
    n_by_outcome : tuple of int
        The counted rows of each outcome.
    mask : array of uint32, optional
        For columns of bits: a bit for each of all rows, set where it is counted.
    bounds : array of int, optional
        The bits at which segments begin, and the end of the last one.
    tiles : array of int, optional
        The first segment that begins in each tile, and after the last one the number of segments.
    """

    n_rows: Any
    n_environments: int
    n_by_outcome: tuple[int, int]
    mask: Any = None
    bounds: Any = None
    tiles: Any = None


def count_padded(n_rows: int) -> int:
    """Count the bits of a column, which has whole chunks, and at least one."""
    n_chunks = max(1, divide_up(n_rows, CHUNK_BITS))
    return n_chunks * CHUNK_BITS


def find_tiles(rows: Rows) -> Array:
    """Find the first segment of each tile; those that begin at the very end are in none."""
    n_bits = count_padded(len(rows))
    n_tiles = divide_up(n_bits, TILE_BITS)
    tile_starts = np.minimum(np.arange(n_tiles + 1) * TILE_BITS, n_bits)
    return np.searchsorted(rows.bounds[:-1], tile_starts).astype(np.int32)


# --- candidates ----------------------------------------------------------------------------------

# What may become of a candidate, as numbered by the kernels.
CODES = ("none", "allowed", *REASONS, "open")
NONE = CODES.index("none")
ALLOWED = CODES.index("allowed")
DEPENDENT = CODES.index(Reason.DEPENDENT.name.lower())
OPEN = CODES.index("open")
REJECTED = range(DEPENDENT, OPEN)
TESTS = ("none", "pearson", "yates", "g")


def unpack_codes(codes: Any, covered_bit: int) -> Any:
    """Return the code of one of the two candidates on each column: the one that covers this bit.

    A byte has the codes of both, four bits each:

        bits 4 .. 7: of the candidate that covers the ones      0 .. 3: of that of the zeros
    """
    return (codes >> (4 * covered_bit)) & 15


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


_LARGEST = 2**63 - 1
# Comes before all candidates.
FIRST = Key(utility=_LARGEST, margin=_LARGEST, order=-1)
# The order in the key of none, which comes after all candidates.
_ORDER_OF_NONE = _LARGEST


def compute_keys(totals: Any, query: DeviceQuery, covered_bit: int) -> tuple[Any, Any]:
    """Compute the utility p_d |A| - p_n |B| and the margin |A| - |B| of a rule on each column.

    A and B are the negatives and positives that the rule covers: the ones, of which `totals` has
    the numbers by (column, outcome), or the zeros, which are all others.
    """
    negatives = totals[:, 0].astype(np.int64)
    positives = totals[:, 1].astype(np.int64)
    if covered_bit == 0:
        negatives = query.n_negative - negatives
        positives = query.n_positive - positives
    criteria = query.criteria
    utility = criteria.p_denominator * negatives - criteria.p_numerator * positives
    return utility, negatives - positives


# --- kernels -------------------------------------------------------------------------------------

# Threads of a block.
_THREADS = 256
# Lanes of a warp.
_LANES = 32
# How many lanes may judge a column: the kernels are compiled for each of these.
_WIDTHS = (2, 4, 8, 16, 32)
# Blocks of 256 threads that run on a multiprocessor of the card at a time.
_BLOCKS_PER_MULTIPROCESSOR = 4
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
# A null pointer: an array that is not given, or not wanted.
_NOTHING = np.intp(0)


class CompiledKernels:
    """The kernels, compiled for the card that CuPy uses.

    All arrays of the arguments are on the card. Some kernels write to their last arguments; those
    whose results are few return them in this memory.
    """

    def __init__(self, cupy, options=()) -> None:
        source = files("icscm.sources.gpu").joinpath("kernels.cu").read_text()
        self._cupy = cupy
        self._modules = {
            width: cupy.RawModule(
                code=source, options=("--std=c++17", *options, f"-DWIDTH={width}")
            )
            for width in _WIDTHS
        }
        n_multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
        #: blocks that run at a time
        self._n_blocks = _BLOCKS_PER_MULTIPROCESSOR * n_multiprocessors
        self._modules[32].get_function("judge_bits")  # compiles, so that a failure shows now

    # --- counting and judging columns -------------------------------------------------------

    def count_bits(self, words, segments, out) -> None:
        """Count the counted ones of columns of bits by (column, segment)."""
        n_segments = 2 * segments.n_environments
        self._run_on_bits(
            "count_bits", words, segments, further=(np.int32(n_segments), out), group=1, width=32
        )

    def judge_bits(self, words, segments, query, totals, codes, statistics=None, dofs=None) -> None:
        """Write what becomes of the two candidates on each column of bits.

        `totals` are the ones by (column, outcome), `codes` as `unpack_codes` says; the statistics
        of the tests and their degrees of freedom, by (column, candidate), are written if wanted.
        """
        self._run_on_bits(
            _find_name("judge_bits", query),
            words,
            segments,
            further=_list_criteria(segments, query, totals, codes, statistics, dofs),
            group=_GROUP,
            width=_find_width(segments),
        )

    def judge_counts(
        self, ones, segments, query, totals, codes, statistics=None, dofs=None
    ) -> None:
        """Do as `judge_bits` for columns whose ones are counted already.

        `ones` has the ones before each segment by (column, segment), and last all of the column.
        """
        columns_per_block = _GROUP * _THREADS // _LANES
        n_blocks = _limit(divide_up(len(ones), columns_per_block), self._n_blocks)
        criteria = _list_criteria(segments, query, totals, codes, statistics, dofs)
        self._run(
            _find_name("judge_counts", query),
            (ones, np.int64(len(ones)), *criteria),
            grid=(n_blocks,),
            width=_find_width(segments),
        )

    # --- looking for candidates among the judged ------------------------------------------------

    def tally_codes(self, codes, n_copies):
        """Count the candidates that have each code, those on identical columns included."""
        out = self._cupy.zeros(len(CODES), dtype=np.uint64)
        weights = _NOTHING if n_copies is None else n_copies
        self._run("tally_codes", (codes, np.int64(len(codes)), weights, out))
        return out.get().astype(np.int64)

    def find_next(self, totals, codes, query, wanted, after):
        """Find the key of the first candidate after another one, among those of wanted codes.

        Each block of threads finds the first of its part, and these few are compared here. Returns
        None if there is none.
        """
        first_of_blocks = self._cupy.empty((self._n_blocks, 3), dtype=np.int64)
        ranking = _list_ranking(totals, codes, query, wanted)
        last_key = np.int64(after.utility), np.int64(after.margin), np.int64(after.order)
        self._run("find_next", (*ranking, *last_key, first_of_blocks))

        utility, margin, order = first_of_blocks.get().T
        # Largest utility first, then margin, then the lowest order. Complements sort descending
        # (~5 < ~4): unlike the negative, the least integer has one.
        first = np.lexsort((order, ~margin, ~utility))[0]
        if order[first] == _ORDER_OF_NONE:
            return None
        return Key(int(utility[first]), int(margin[first]), int(order[first]))

    def list_columns(self, totals, codes, query, wanted, key=None):
        """List the columns that have a candidate of a wanted code, ascending.

        With a key, only candidates of its utility and margin count. The kernel writes as many
        columns as there is room for, and counts all of them.
        """
        ranking = _list_ranking(totals, codes, query, wanted)
        utility, margin = (0, 0) if key is None else (key.utility, key.margin)
        keyed = np.int32(key is not None), np.int64(utility), np.int64(margin)

        capacity = 0
        n_columns = _LISTED
        while n_columns > capacity:  # at first, and again if there was not room for all
            capacity = n_columns
            counter = self._cupy.zeros(1, dtype=np.uint64)
            columns = self._cupy.empty(capacity, dtype=np.int64)
            self._run("list_columns", (*ranking, *keyed, columns, np.uint64(capacity), counter))
            n_columns = int(counter.get()[0])
        return self._cupy.sort(columns[:n_columns])

    # --- loading columns --------------------------------------------------------------------

    def make_staging_buffers(self, shape):
        """Make two buffers: while one of them is sent, the other one can be filled."""
        return tuple(_StagingBuffer(self, self._cupy, shape) for _ in range(2))

    def sort_bits(self, words, bit_of_row, out) -> None:
        """Sort the rows of columns of bits: bit i of `out` is bit `bit_of_row[i]` of `words`."""
        arguments = (
            words,
            np.int64(len(words)),
            np.int32(words.shape[1]),
            bit_of_row,
            np.int32(len(bit_of_row)),
            out,
            np.int32(out.shape[1]),
        )
        self._run("sort_bits", arguments)

    # --- columns of bin numbers -----------------------------------------------------------------

    def count_codes(self, codes, rows, bounds, out) -> None:
        """Count rows by (column, bin, segment): those listed in `rows`, or all if it is None.

        `codes` are the bins by (column, row), `bounds` says where each segment of the rows begins.
        A block of threads counts some rows of one column, each of its warps in a histogram of its
        own in shared memory, and adds them to `out`.
        """
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
        n_parts = max(1, divide_up(n_rows, _CODED_ROWS))
        histogram_bytes = 4 * n_bins
        self._run(
            "count_codes",
            arguments,
            grid=(n_columns, n_parts),
            shared_bytes=histogram_bytes * _THREADS // _LANES,  # one for each warp
        )

    def hash_rows(self, values, salt):
        """Hash each row of values (column, row)."""
        n_columns, n_rows = values.shape
        hashes = self._cupy.empty(n_rows, dtype=np.uint64)
        arguments = values, np.int64(n_rows), np.int32(n_columns), salt, hashes
        self._run(f"hash_rows_{values.dtype.char}", arguments)
        return hashes

    def code_values(self, values, row_of_sorted, columns, edges, n_edges, known, highest, codes):
        """Write the bin of each value of some columns, and return which columns were surprising.

        A column that is `known` should hold just its edges and its highest value; it is surprising
        if it holds another one. `values` is (column, row) in the order of the table, `codes` in the
        order of the sorted rows, of which `row_of_sorted` has the numbers in the table.
        """
        n_rows = values.shape[1]
        surprised = self._cupy.zeros(len(columns), dtype=np.uint8)
        arguments = (
            values,
            np.int64(n_rows),
            row_of_sorted,
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

    # --- blocks and threads ---------------------------------------------------------------------

    def _run_on_bits(self, name, words, segments, *, further, group, width) -> None:
        """Run a kernel of columns of bits, with `further` arguments after those of the bits.

        A warp takes a `group` of columns, and judges one column with `width` of its lanes. A block
        has as many warps as the shared memory has room for: each holds a tile, and the ones of each
        segment of the columns that it judges at a time. Blocks of fewer warps are more in number,
        so that as many warps run.
        """
        n_columns, n_words = words.shape
        n_segments = 2 * segments.n_environments
        n_chunks = n_words // _WORDS_OF_CHUNK
        n_tiles = len(segments.tiles) - 1

        columns_at_a_time = _LANES // width
        ones_bytes = 4 * columns_at_a_time * (n_segments + 1)  # 4 each; the last is of all segments
        warp_bytes = _TILE_BYTES + ones_bytes
        max_warps = _THREADS // _LANES
        n_warps = _limit(_SHARED_BYTES // warp_bytes, max_warps)

        max_blocks = self._n_blocks * max_warps // n_warps
        n_blocks = _limit(divide_up(n_columns, n_warps * group), max_blocks)
        arguments = (
            words,
            np.int64(n_columns),
            segments.mask,
            segments.bounds,
            segments.tiles,
            np.int32(n_chunks),
            np.int32(n_tiles),
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


class _StagingBuffer:
    """Words on their way to the card: `host` is filled, and sent while the processor goes on.

    `host` is pinned memory, from which the card copies in a *stream*: work that is done in its
    order, beside that of the processor. A stream waits for earlier work on the card, and the card
    for the stream.
    """

    def __init__(self, kernels, cupy, shape) -> None:
        n_words = int(np.prod(shape))
        self._memory = cupy.cuda.alloc_pinned_memory(max(1, 4 * n_words))
        self.host = np.frombuffer(self._memory, np.uint32, n_words).reshape(shape)
        self._on_card = cupy.empty(shape, dtype=np.uint32)
        self._stream = cupy.cuda.Stream()
        self._kernels = kernels

    def wait(self) -> None:
        """Wait until what was sent has left `host`."""
        self._stream.synchronize()

    def send(self, out) -> None:
        """Send as many words as `out`, an array on the card, has."""
        n_words = out.nbytes // 4
        out.view(np.uint32).ravel().set(self.host.ravel()[:n_words], stream=self._stream)

    def send_and_sort(self, n_columns, bit_of_row, out) -> None:
        """Send the words of some columns of bits, and sort their rows into `out` on the card."""
        words = self._on_card[:n_columns]
        with self._stream:
            words.set(self.host[:n_columns], stream=self._stream)
            self._kernels.sort_bits(words, bit_of_row, out)


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
