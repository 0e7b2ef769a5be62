"""Starts the kernels of the card, and says how their bits, codes and ranks are laid out.

A *kernel* is a function of `kernels.cu`, which the card runs in many threads at once:

    grid     all blocks of a kernel
    block    up to 8 warps, which share some fast memory ("shared memory")
    warp     32 threads, which run together; each of them is a *lane* of the warp

Each method of `CompiledKernels` starts one kernel: it lists the arguments (`Arguments`), and says
in how many blocks and threads the kernel runs (`Launch`). What a kernel computes is said by the
method, and in plain NumPy by its twin in `tests/support/literal/gpu_kernels.py`; how it computes
it, by `kernels.cu`.

The page has four parts: how columns of bits are laid out (rows), what the kernels write of a
candidate rule (candidates), the kernels themselves, and the arguments that several of them share.
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

# A column of bits has a bit for each sorted row, and is read in these units, as `kernels.cu` says:
#
#   word     32 bits
#   chunk    4 words: what a lane reads at once. A column is padded to whole chunks.
#   tile     128 chunks: what a warp holds at a time
_WORD_BITS = 32
_WORDS_OF_CHUNK = 4
CHUNK_BITS = _WORDS_OF_CHUNK * _WORD_BITS
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
        The first segment that begins in each tile or later: see `find_tiles`.
    """

    n_rows: Any
    n_environments: int
    n_by_outcome: tuple[int, int]
    mask: Any = None
    bounds: Any = None
    tiles: Any = None


def count_padded(n_rows: int) -> int:
    """Count the bits of a column of so many rows: it has whole chunks, and at least one."""
    n_chunks = max(1, divide_up(n_rows, CHUNK_BITS))
    return n_chunks * CHUNK_BITS


def find_tiles(rows: Rows) -> Array:
    """Find the first segment that begins in each tile or later, and last at the column's end.

    Those that begin in tile i are  tiles[i], .., tiles[i + 1] - 1.  With tiles of 100 bits:

        segments begin at     0   30   210        (of 250 rows)
        tiles begin at        0   100  200        (and end at 250)
        result                0   2    2    3     so that tile 1 has none

    Segments without rows at the very end of the column are in no tile.
    """
    n_bits = count_padded(len(rows))
    n_tiles = divide_up(n_bits, TILE_BITS)
    tile_starts = np.minimum(np.arange(n_tiles + 1) * TILE_BITS, n_bits)
    return np.searchsorted(rows.bounds[:-1], tile_starts).astype(np.int32)


# --- candidates ----------------------------------------------------------------------------------

# What may become of a candidate, in the order in which the kernels number it (`enum` there):
#
#   none       it is no candidate: it covers no negative row, or all rows
#   allowed    it may be chosen
#   REASONS    it is rejected, for this reason
#   open       it lies so near a bound that rounding could decide: the search itself has to
CODES = ("none", "allowed", *REASONS, "open")
NONE = CODES.index("none")
ALLOWED = CODES.index("allowed")
DEPENDENT = CODES.index(Reason.DEPENDENT.name.lower())
OPEN = CODES.index("open")
REJECTED = range(DEPENDENT, OPEN)
# The statistics of tests (`CandidateCriteria.statistic`), in the order of their numbers there.
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

# How a kernel is cut up. These are fixed in `kernels.cu` too.
_THREADS = 256  # of a block
_LANES = 32  # of a warp
_WARPS = _THREADS // _LANES  # of a block
_GROUP = 16  # columns that a warp judges before it takes others
_WIDTHS = (2, 4, 8, 16, 32)  # lanes that may judge a column: the kernels are compiled for each

# How much of it runs at a time: blocks on each multiprocessor of the card, of which it has many.
_BLOCKS_PER_MULTIPROCESSOR = 4
# Shared memory of a block that runs beside three others.
_SHARED_BYTES = 46 * 1024
# Shared memory that a block may have without being allowed more, with the kernel's static part.
_DEFAULT_SHARED_BYTES = 32 * 1024
# Shared memory of a warp that counts bits: a tile, and 16 bits for each of its words of 32.
_TILE_BYTES = TILE_BITS // 8 + TILE_BITS // 16

# How much a block does: rows that it counts of a column of bin numbers.
_CODED_ROWS = 2**15
# Blocks that code the values of a column, at most.
_MAX_CODING_BLOCKS = 256
# Columns that there is room for when columns are listed first; for more, they are listed again.
_LISTED = 2**16

# A null pointer: an array that is not given, or not wanted.
_NOTHING = np.intp(0)

# The arguments of a kernel, by the names of its parameters in `kernels.cu` and in their order, by
# which alone the card knows them. Numbers have the types of C: i64 there is `np.int64` here, int is
# `np.int32`, u32 is `np.uint32`, u64 is `np.uint64` and double is `np.float64`.
Arguments = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """In how many blocks and threads a kernel runs.

    Attributes
    ----------
    grid : tuple of int, optional
        How many blocks, along one axis or two; by default as many as the card runs at a time.
        If there is more to do than these can, each goes on with a part of what is left.
    n_threads : int
        The threads of each block.
    shared_bytes : int
        The shared memory of each block, besides what the kernel always has.
    width : int
        How many lanes judge a column; of no consequence for kernels that judge none.
    """

    grid: tuple[int, ...] | None = None
    n_threads: int = _THREADS
    shared_bytes: int = 0
    width: int = _LANES


_BY_DEFAULT = Launch()


class CompiledKernels:
    """The kernels, compiled for the card that CuPy uses.

    All arrays of the arguments are on the card. Some methods write into their last arguments; those
    whose results are few return them in this memory.
    """

    def __init__(self, cupy, options=()) -> None:
        source = files("icscm.sources.gpu").joinpath("kernels.cu").read_text()
        self._cupy = cupy
        #: the compiled kernels, by the number of lanes that judge a column
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
        self._run(
            "count_bits",
            _list_bits(words, segments) | {"n_segments": np.int32(n_segments), "out": out},
            self._plan_bits(words, segments, group=1, width=_LANES),
        )

    def judge_bits(self, words, segments, query, totals, codes, statistics=None, dofs=None) -> None:
        """Write what becomes of the two candidates on each column of bits.

        `totals` are the ones by (column, outcome), `codes` as `unpack_codes` says; the statistics
        of the tests and their degrees of freedom, by (column, candidate), are written if wanted.
        """
        self._run(
            _find_name("judge_bits", query),
            _list_bits(words, segments)
            | _list_criteria(segments, query)
            | _list_judgements(totals, codes, statistics, dofs),
            self._plan_bits(words, segments, group=_GROUP, width=_find_width(segments)),
        )

    def judge_counts(
        self, ones, segments, query, totals, codes, statistics=None, dofs=None
    ) -> None:
        """Do as `judge_bits` for columns whose ones are counted already.

        `ones` has the ones before each segment by (column, segment), and last all of the column.
        """
        n_columns = len(ones)
        columns_per_block = _GROUP * _WARPS
        n_blocks = _limit(divide_up(n_columns, columns_per_block), at_most=self._n_blocks)
        self._run(
            _find_name("judge_counts", query),
            {"ones": ones, "n_columns": np.int64(n_columns)}
            | _list_criteria(segments, query)
            | _list_judgements(totals, codes, statistics, dofs),
            Launch(grid=(n_blocks,), width=_find_width(segments)),
        )

    # --- looking for candidates among the judged ------------------------------------------------

    def tally_codes(self, codes, n_copies):
        """Count the candidates that have each code, those on identical columns included."""
        n_by_code = self._cupy.zeros(len(CODES), dtype=np.uint64)
        arguments = {
            "codes": codes,
            "n": np.int64(len(codes)),
            "n_copies": _give(n_copies),
            "out": n_by_code,
        }
        self._run("tally_codes", arguments)
        return n_by_code.get().astype(np.int64)

    def find_next(self, totals, codes, query, wanted, after):
        """Find the key of the first candidate after another one, among those of wanted codes.

        Each block of threads finds the first of its part, and these few are compared here. Returns
        None if there is none.
        """
        first_of_blocks = self._cupy.empty((self._n_blocks, len(Key._fields)), dtype=np.int64)
        arguments = _list_ranking(totals, codes, query, wanted) | {
            "utility": np.int64(after.utility),
            "margin": np.int64(after.margin),
            "order": np.int64(after.order),
            "out": first_of_blocks,
        }
        self._run("find_next", arguments)

        utility, margin, order = first_of_blocks.get().T
        # Largest utility first, then margin, then the lowest order. Complements sort descending
        # (~5 < ~4): unlike the negative, the least integer has one.
        first = np.lexsort((order, ~margin, ~utility))[0]
        if order[first] == _ORDER_OF_NONE:
            return None
        return Key(utility=int(utility[first]), margin=int(margin[first]), order=int(order[first]))

    def list_columns(self, totals, codes, query, wanted, key=None):
        """List the columns that have a candidate of a wanted code, ascending.

        With a key, only candidates of its utility and margin count. The kernel writes as many
        columns as there is room for, and counts all of them.
        """
        capacity = 0
        n_columns = _LISTED
        while n_columns > capacity:  # at first, and again if there was not room for all
            capacity = n_columns
            counter = self._cupy.zeros(1, dtype=np.uint64)
            columns = self._cupy.empty(capacity, dtype=np.int64)
            arguments = _list_ranking(totals, codes, query, wanted) | {
                "is_keyed": np.int32(key is not None),
                "utility": np.int64(0 if key is None else key.utility),
                "margin": np.int64(0 if key is None else key.margin),
                "out": columns,
                "capacity": np.uint64(capacity),
                "n_listed": counter,
            }
            self._run("list_columns", arguments)
            n_columns = int(counter.get()[0])
        return self._cupy.sort(columns[:n_columns])

    # --- loading columns --------------------------------------------------------------------

    def make_staging_buffers(self, shape):
        """Make two buffers: while one of them is sent, the other one can be filled."""
        return tuple(_StagingBuffer(self, self._cupy, shape) for _ in range(2))

    def sort_bits(self, words, bit_of_row, out) -> None:
        """Sort the rows of columns of bits: bit i of `out` is bit `bit_of_row[i]` of `words`."""
        n_columns, n_words = words.shape
        arguments = {
            "words": words,
            "n_columns": np.int64(n_columns),
            "n_words": np.int32(n_words),
            "bit_of_row": bit_of_row,
            "n_bits": np.int32(len(bit_of_row)),
            "out": out,
            "n_words_out": np.int32(out.shape[1]),
        }
        self._run("sort_bits", arguments)

    # --- columns of bin numbers -----------------------------------------------------------------

    def count_codes(self, codes, rows, bounds, out) -> None:
        """Count rows by (column, bin, segment): those listed in `rows`, or all if it is None.

        `codes` are the bins by (column, row), `bounds` says where each segment of the rows begins.
        A block of threads counts some rows of one column, each of its warps in a histogram of its
        own in shared memory, and adds them to `out`.
        """
        n_columns, n_bins, n_segments = out.shape
        n_rows_in_all = codes.shape[1]
        n_counted_rows = n_rows_in_all if rows is None else len(rows)
        arguments = {
            "codes": codes,
            "n_rows": np.int64(n_rows_in_all),
            "rows": _give(rows),
            "bounds": bounds,
            "n_segments": np.int32(n_segments),
            "n_bins": np.int32(n_bins),
            "part_rows": np.int64(_CODED_ROWS),
            "out": out,
        }
        n_parts = max(1, divide_up(int(n_counted_rows), _CODED_ROWS))
        bytes_of_histogram = 4 * n_bins
        launch = Launch(grid=(n_columns, n_parts), shared_bytes=bytes_of_histogram * _WARPS)

        out[:] = 0  # the kernel adds to it
        self._run("count_codes", arguments, launch)

    def hash_rows(self, values, salt):
        """Hash each row of values (column, row)."""
        n_columns, n_rows = values.shape
        hashes = self._cupy.empty(n_rows, dtype=np.uint64)
        arguments = {
            "values": values,
            "n_rows": np.int64(n_rows),
            "n_columns": np.int32(n_columns),
            "salt": salt,
            "out": hashes,
        }
        self._run(f"hash_rows_{values.dtype.char}", arguments)
        return hashes

    def code_values(self, values, row_of_sorted, columns, edges, n_edges, known, highest, codes):
        """Write the bin of each value of some columns, and return which columns were surprising.

        A column that is `known` should hold just its edges and its highest value; it is surprising
        if it holds another one.

        Parameters
        ----------
        values : array, (column of the table, row of the table)
            The values of all columns.
        row_of_sorted : array, (sorted row)
            The row of the table.
        columns : array, (coded column)
            The columns to code, by their numbers in the table.
        edges, n_edges : array, (coded column, edge) and (coded column)
            The edges of the bins, of which the first `n_edges` are used.
        known, highest : array, (coded column)
            Which columns are known, and their highest values.
        codes : array, (coded column, sorted row)
            What is written.
        """
        n_rows = values.shape[1]
        n_coded_columns = len(columns)
        surprised = self._cupy.zeros(n_coded_columns, dtype=np.uint8)
        arguments = {
            "values": values,
            "n_rows": np.int64(n_rows),
            "row_of_sorted": row_of_sorted,
            "columns": columns,
            "edges": edges,
            "max_edges": np.int32(edges.shape[1]),
            "n_edges": n_edges,
            "known": known,
            "highest": highest,
            "codes": codes,
            "surprised": surprised,
        }
        n_parts = _limit(n_rows // _CODED_ROWS, at_most=_MAX_CODING_BLOCKS)
        launch = Launch(grid=(n_coded_columns, n_parts))
        self._run(f"code_values_{values.dtype.char}", arguments, launch)
        return surprised.get().astype(np.bool_)

    # --- blocks and threads ---------------------------------------------------------------------

    def _plan_bits(self, words, segments, *, group, width) -> Launch:
        """Choose the blocks of a kernel of columns of bits, by the shared memory that these need.

        A warp takes a `group` of columns, and judges one column with `width` of its lanes, so that
        it judges several at a time:

            memory of a warp    a tile, and for each column judged at a time the ones before each
                                segment and, last, those of the whole column: 4 bytes each
            warps of a block    as many as the memory of a block has room for, at most 8
            blocks              enough for all columns; at most as many warps as the card runs

        Blocks of fewer warps are more in number, so that as many warps run.
        """
        n_columns = len(words)
        n_segments = 2 * segments.n_environments

        columns_at_a_time = _LANES // width
        bytes_of_ones = 4 * columns_at_a_time * (n_segments + 1)
        bytes_of_warp = _TILE_BYTES + bytes_of_ones
        n_warps = _limit(_SHARED_BYTES // bytes_of_warp, at_most=_WARPS)

        max_blocks = self._n_blocks * _WARPS // n_warps
        n_blocks = _limit(divide_up(n_columns, n_warps * group), at_most=max_blocks)
        return Launch(
            grid=(n_blocks,),
            n_threads=_LANES * n_warps,
            shared_bytes=bytes_of_warp * n_warps,
            width=width,
        )

    def _run(self, kernel, arguments: Arguments, launch: Launch = _BY_DEFAULT) -> None:
        """Run a kernel, given by its name in `kernels.cu`; it is not waited for."""
        function = self._modules[launch.width].get_function(kernel)
        if launch.shared_bytes > _DEFAULT_SHARED_BYTES:
            function.max_dynamic_shared_size_bytes = launch.shared_bytes

        grid = launch.grid or (self._n_blocks,)
        in_order = tuple(arguments.values())
        function(grid, (launch.n_threads,), in_order, shared_mem=launch.shared_bytes)


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


def _limit(n, *, at_most):
    """Return a number of blocks, or of warps: at least 1, and at most `at_most`, or 1."""
    return max(1, min(n, at_most))


def _find_width(segments):
    """Find how many lanes judge a column: a power of two, a half of them for each leaf."""
    power_of_two = 1 << (segments.n_environments - 1).bit_length()
    return max(2, min(_LANES, power_of_two))


def _find_name(kernel, query):
    """Find the name of the kernel for a test: that by likelihood takes logarithms."""
    return f"{kernel}_by_likelihood" if query.criteria.statistic == "g" else kernel


# --- arguments that several kernels share --------------------------------------------------------


def _give(array):
    """Return an argument for an array that may be None: a null pointer, then."""
    return _NOTHING if array is None else array


def _list_bits(words, segments) -> Arguments:
    """List the first arguments of kernels of columns of bits: BITS in `kernels.cu`."""
    n_columns, n_words = words.shape
    n_chunks = n_words // _WORDS_OF_CHUNK
    n_tiles = len(segments.tiles) - 1
    return {
        "words": words,
        "n_columns": np.int64(n_columns),
        "mask": segments.mask,
        "bounds": segments.bounds,
        "tiles": segments.tiles,
        "n_chunks": np.int32(n_chunks),
        "n_tiles": np.int32(n_tiles),
    }


def _list_criteria(segments, query) -> Arguments:
    """List what columns are judged by: the first of CRITERIA_PARAMETERS in `kernels.cu`."""
    criteria = query.criteria
    return {
        "n_environments": np.int32(segments.n_environments),
        "n_rows": segments.n_rows,
        "n_negative": np.int32(query.n_negative),
        "n_positive": np.int32(query.n_positive),
        "is_inverted": np.int32(criteria.is_inverted),
        "p_numerator": np.int64(criteria.p_numerator),
        "p_denominator": np.int64(criteria.p_denominator),
        "statistic": np.int32(TESTS.index(criteria.statistic)),
        "passes_below": query.passes_below,
        "fails_from": query.fails_from,
        "logarithms": query.logarithms,
        "n_logarithms": np.int32(len(query.logarithms)),
        "replication_factors": query.replication_factors,
        "unreplicated_below": np.float64(criteria.unreplicated_below),
        "replicated_from": np.float64(criteria.replicated_from),
        "min_utility": np.int64(criteria.min_utility),
        "positive_rates": query.positive_rates,
        "min_evidence": np.float64(criteria.min_evidence),
        "evidence_slack": np.float64(criteria.evidence_slack),
    }


def _list_judgements(totals, codes, statistics, dofs) -> Arguments:
    """List the arrays that judging fills in: the last of CRITERIA_PARAMETERS in `kernels.cu`."""
    return {
        "totals": totals,
        "codes": codes,
        "statistics": _give(statistics),
        "dofs": _give(dofs),
    }


def _list_ranking(totals, codes, query, wanted) -> Arguments:
    """List the first arguments of the kernels that scan judged columns; a bit for each code."""
    wanted_bits = sum(1 << code for code in wanted)
    return {
        "totals": totals,
        "codes": codes,
        "n": np.int64(len(codes)),
        "n_negative": np.int32(query.n_negative),
        "n_positive": np.int32(query.n_positive),
        "p_numerator": np.int64(query.criteria.p_numerator),
        "p_denominator": np.int64(query.criteria.p_denominator),
        "wanted": np.uint32(wanted_bits),
    }
