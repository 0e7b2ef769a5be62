"""The compiled kernels, and the layout of bits, codes and ranks that they share with the others.

`tests/support/literal/gpu_kernels.py` has a NumPy twin of each kernel.
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

# The outcomes of a candidate, as numbered by the kernels.
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


FIRST = Key(2**63 - 1, 2**63 - 1, -1)


def count_padded(n_samples: int) -> int:
    """Bits of a column, which has whole chunks."""
    return max(1, -(-n_samples // CHUNK_BITS)) * CHUNK_BITS


def find_tiles(rows: Rows) -> Array:
    """The first segment of each tile; those that begin at the very end are in none."""
    end = count_padded(len(rows))
    starts = np.minimum(np.arange(-(-end // TILE_BITS) + 1) * TILE_BITS, end)
    return np.searchsorted(rows.bounds[:-1], starts).astype(np.int32)


def compute_keys(totals: Any, query: DeviceQuery, sign: int) -> tuple[Any, Any]:
    """Utility and margin of one of the two rules on each column."""
    a, b = totals[:, 0].astype(np.int64), totals[:, 1].astype(np.int64)
    if sign == 0:
        a, b = query.n_negative - a, query.n_positive - b
    return query.criteria.p_denominator * a - query.criteria.p_numerator * b, a - b


_THREADS = 256
# Shared memory of a block that runs beside three others.
_SHARED_BYTES = 46 * 1024
_TILE_BYTES = TILE_BITS // 8 + TILE_BITS // 16
# Rows that one block counts of a column of bin numbers.
_CODED_ROWS = 2**15
# Columns listed at first; if there are more, they are listed again.
_LISTED = 2**16
# Columns that a warp judges together.
_GROUP = 16
_NOTHING = np.intp(0)


class CompiledKernels:
    """Kernels for the card that CuPy uses."""

    def __init__(self, cupy, options=()) -> None:
        source = files("icscm.sources.gpu").joinpath("kernels.cu").read_text()
        self._cupy = cupy
        options = "--std=c++17", *options
        #: by how many lanes judge a column
        self._modules = {
            width: cupy.RawModule(code=source, options=(*options, f"-DWIDTH={width}"))
            for width in (2, 4, 8, 16, 32)
        }
        self._n_blocks = 4 * cupy.cuda.Device().attributes["MultiProcessorCount"]
        self._modules[32].get_function("judge_bits")  # compiles, so that a failure shows now

    def _run(self, name, arguments, grid=None, threads=_THREADS, shared=0, width=32) -> None:
        function = self._modules[width].get_function(name)
        if shared > 32 * 1024:  # more shared memory than the default, with the kernel's static part
            function.max_dynamic_shared_size_bytes = shared
        function(grid or (self._n_blocks,), (threads,), tuple(arguments), shared_mem=shared)

    def _run_on_bits(self, name, words, segments, arguments, width=32, group=1) -> None:
        """As many warps to a block as the shared memory has room for."""
        each = _TILE_BYTES + 4 * (32 // width) * (2 * segments.n_environments + 1)
        n_warps = max(1, min(_THREADS // 32, _SHARED_BYTES // each))
        n_needed = -(-len(words) // (n_warps * group))
        grid = (max(1, min(self._n_blocks * 8 // n_warps, n_needed)),)
        places = segments.mask, segments.bounds, segments.tiles
        sizes = np.int32(words.shape[1] // 4), np.int32(len(segments.tiles) - 1)
        arguments = words, np.int64(len(words)), *places, *sizes, *arguments
        self._run(name, arguments, grid, 32 * n_warps, each * n_warps, width)

    def count_bits(self, words, segments, out) -> None:
        n_segments = np.int32(2 * segments.n_environments)
        self._run_on_bits("count_bits", words, segments, (n_segments, out))

    def judge_bits(self, words, segments, query, *out) -> None:
        width, by = _find_width(segments), _judge_by(segments, query, *out)
        self._run_on_bits(_find_name("judge_bits", query), words, segments, by, width, _GROUP)

    def judge_counts(self, ones, segments, query, *out) -> None:
        arguments = ones, np.int64(len(ones)), *_judge_by(segments, query, *out)
        grid = (max(1, min(self._n_blocks, -(-len(ones) // (_GROUP * _THREADS // 32)))),)
        width = _find_width(segments)
        self._run(_find_name("judge_counts", query), arguments, grid, width=width)

    def tally_codes(self, codes, n_copies):
        out = self._cupy.zeros(len(CODES), dtype=np.uint64)
        weights = _NOTHING if n_copies is None else n_copies
        self._run("tally_codes", (codes, np.int64(len(codes)), weights, out))
        return out.get().astype(np.int64)

    def find_next(self, totals, codes, query, wanted, after):
        out = self._cupy.empty((self._n_blocks, 3), dtype=np.int64)
        ranked = _list_ranking(totals, codes, query, wanted)
        self._run("find_next", (*ranked, *map(np.int64, after), out))
        utility, margin, order = out.get().T
        first = np.lexsort((order, ~margin, ~utility))[0]  # the least number has no negative
        found = Key(int(utility[first]), int(margin[first]), int(order[first]))
        return None if found.order == FIRST.utility else found

    def list_columns(self, totals, codes, query, wanted, key=None):
        ranked, capacity, n_found = _list_ranking(totals, codes, query, wanted), 0, _LISTED
        utility, margin = (0, 0) if key is None else (key.utility, key.margin)
        asked = np.int32(key is not None), np.int64(utility), np.int64(margin)
        while n_found > capacity:
            capacity, counter = n_found, self._cupy.zeros(1, dtype=np.uint64)
            out = self._cupy.empty(capacity, dtype=np.int64)
            self._run("list_columns", (*ranked, *asked, out, np.uint64(capacity), counter))
            n_found = int(counter.get()[0])
        return self._cupy.sort(out[:n_found])

    def make_lanes(self, shape):
        return tuple(_Lane(self, self._cupy, shape) for _ in range(2))

    def sort_bits(self, words, source, out) -> None:
        sizes = np.int64(len(words)), np.int32(words.shape[1])
        ends = out, np.int32(out.shape[1])
        self._run("sort_bits", (words, *sizes, source, np.int32(len(source)), *ends))

    def count_codes(self, codes, rows, bounds, out) -> None:
        n_features, n_bins, n_segments = out.shape
        out[:] = 0
        n_rows = int(codes.shape[1] if rows is None else len(rows))
        grid = (n_features, max(1, -(-n_rows // _CODED_ROWS)))
        listed = np.int64(codes.shape[1]), _NOTHING if rows is None else rows, bounds
        sizes = np.int32(n_segments), np.int32(n_bins), np.int64(_CODED_ROWS)
        shared = 4 * n_bins * _THREADS // 32
        self._run("count_codes", (codes, *listed, *sizes, out), grid, shared=shared)

    def hash_rows(self, values, salt):
        n_columns, n_rows = values.shape
        out = self._cupy.empty(n_rows, dtype=np.uint64)
        sizes = np.int64(n_rows), np.int32(n_columns)
        self._run(f"hash_rows_{values.dtype.char}", (values, *sizes, salt, out))
        return out

    def code_values(self, values, source, columns, edges, n_edges, known, highest, codes):
        surprised = self._cupy.zeros(len(columns), dtype=np.uint8)
        own = columns, edges, np.int32(edges.shape[1]), n_edges, known, highest, codes, surprised
        arguments = values, np.int64(values.shape[1]), source, *own
        grid = len(columns), max(1, min(256, values.shape[1] // _CODED_ROWS))
        self._run(f"code_values_{values.dtype.char}", arguments, grid)
        return surprised.get().astype(np.bool_)


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


def _find_width(segments):
    """Lanes that judge a column: a half of them for each leaf."""
    return max(2, min(32, 1 << (segments.n_environments - 1).bit_length()))


def _find_name(name, query):
    return f"{name}_by_likelihood" if query.criteria.statistic == "g" else name


def _judge_by(segments, query, totals, codes, statistics=None, dofs=None):
    """Arguments of the kernels that judge columns."""
    criteria = query.criteria
    places = np.int32(segments.n_environments), segments.n_rows
    outcomes = np.int32(query.n_negative), np.int32(query.n_positive)
    utility = np.int64(criteria.p_numerator), np.int64(criteria.p_denominator)
    test = np.int32(TESTS.index(criteria.statistic)), query.passes_below, query.fails_from
    logarithms = query.logarithms, np.int32(len(query.logarithms))
    unreplicated_below = np.float64(criteria.unreplicated_below)
    replicated_from = np.float64(criteria.replicated_from)
    min_evidence = np.float64(criteria.min_evidence)
    evidence_slack = np.float64(criteria.evidence_slack)
    # 0 for a result that is not wanted
    results = [_NOTHING if array is None else array for array in (statistics, dofs)]
    return (
        *places,
        *outcomes,
        np.int32(criteria.is_inverted),
        *utility,
        *test,
        *logarithms,
        query.replication_factors,
        unreplicated_below,
        replicated_from,
        np.int64(criteria.min_utility),
        query.positive_rates,
        min_evidence,
        evidence_slack,
        totals,
        codes,
        *results,
    )


def _list_ranking(totals, codes, query, wanted):
    """Arguments of the kernels that scan judged columns."""
    labels = np.int32(query.n_negative), np.int32(query.n_positive)
    ratio = np.int64(query.criteria.p_numerator), np.int64(query.criteria.p_denominator)
    is_wanted = np.uint32(sum(1 << code for code in wanted))
    return totals, codes, np.int64(len(codes)), *labels, *ratio, is_wanted
