"""Kernels get the arguments that `kernels.cu` lists, in its order and its types."""

import re
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest

from icscm.engine.counts import CandidateCriteria
from icscm.sources.gpu.launching import FIRST, CompiledKernels, DeviceQuery, Segments

SOURCE = files("icscm.sources.gpu").joinpath("kernels.cu").read_text()
TYPES = {
    "int": np.int32,
    "i64": np.int64,
    "u32": np.uint32,
    "u64": np.uint64,
    "double": np.float64,
}


class OnCard(np.ndarray):
    """An array that CuPy could have made."""

    def get(self):
        """The same array in memory."""
        return np.asarray(self)


class RecordingCuPy:
    """What `CompiledKernels` needs of CuPy; kernels only record how they were started."""

    def __init__(self):
        self.calls = []
        self.sort = np.sort
        device = SimpleNamespace(attributes={"MultiProcessorCount": 3})
        self.cuda = SimpleNamespace(Device=lambda: device)

    def empty(self, shape, dtype):
        return np.zeros(shape, dtype=dtype).view(OnCard)

    zeros = empty

    def RawModule(self, code, options):  # noqa: N802
        return SimpleNamespace(get_function=lambda name: Recorder(self, name, options))


class Recorder:
    """A kernel that does nothing."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, cupy, name, options):
        self.cupy = cupy
        self.name = name
        self.width = int(options[-1].removeprefix("-DWIDTH="))

    def __call__(self, grid, block, arguments, shared_mem):
        self.cupy.calls.append((self.name, self.width, grid, block, arguments, shared_mem))


def read_parameters(name):
    """The types and names of a kernel's parameters, with macros filled in."""
    source = SOURCE.replace("\\\n", "\n")
    stem = re.sub(r"_[fd]$", "_##suffix", name)
    (text,) = re.findall(rf"__global__[^;{{]*? {re.escape(stem)}\(([^)]*)\)", source)
    for macro in ("BITS", "CRITERIA_PARAMETERS"):
        (content,) = re.findall(rf"#define {macro}\s(.*?)\n(?=#|\n|//)", source, re.DOTALL)
        text = re.sub(rf"\b{macro}\b", content, text)
    parameters = [parameter.removeprefix("const ").split() for parameter in text.split(",")]
    return [(" ".join(words[:-1]), words[-1]) for words in parameters]


def make_query(statistic="pearson"):
    criteria = CandidateCriteria(
        is_inverted=True,
        p_numerator=1,
        p_denominator=10,
        statistic=statistic,
        passes_below=np.ones(3),
        fails_from=np.ones(3),
        replication_factors=np.ones(3),
        unreplicated_below=1.0,
        replicated_from=1.5,
        min_utility=-7,
        positive_rates=np.ones(3),
        min_evidence=0.5,
        evidence_slack=0.25,
    )
    return DeviceQuery(
        criteria,
        passes_below=criteria.passes_below,
        fails_from=criteria.fails_from,
        logarithms=np.zeros(20),
        replication_factors=criteria.replication_factors,
        positive_rates=criteria.positive_rates,
        n_negative=120,
        n_positive=80,
    )


SEGMENTS = Segments(
    n_rows=np.zeros(6, dtype=np.int32),
    n_environments=3,
    n_by_outcome=(120, 80),
    mask=np.zeros(8, dtype=np.uint32),
    bounds=np.zeros(7, dtype=np.int32),
    tiles=np.zeros(2, dtype=np.int32),
)
WORDS = np.zeros((40, 8), dtype=np.uint32)
TOTALS = np.zeros((40, 2), dtype=np.int32)
CODES = np.zeros(40, dtype=np.uint8)


def start(name):
    """Start one kernel by the method that does so, and return what it was given."""
    cupy = RecordingCuPy()
    kernels = CompiledKernels(cupy)
    is_likelihood = name.endswith("_by_likelihood")
    query = make_query("g" if is_likelihood else "pearson")
    numbers = np.zeros((4, 50), dtype=name[-1] if name[-2:] in {"_f", "_d"} else np.float64)
    columns = np.arange(2)
    match name.removesuffix("_by_likelihood"):
        case "count_bits":
            kernels.count_bits(WORDS, SEGMENTS, np.zeros((40, 6), dtype=np.int32))
        case "judge_bits":
            kernels.judge_bits(WORDS, SEGMENTS, query, TOTALS, CODES)
        case "judge_counts":
            kernels.judge_counts(np.zeros((40, 7)), SEGMENTS, query, TOTALS, CODES, 1.0, 2)
        case "tally_codes":
            kernels.tally_codes(CODES, None)
        case "find_next":
            kernels.find_next(TOTALS, CODES, query, (1,), FIRST)
        case "list_columns":
            kernels.list_columns(TOTALS, CODES, query, (1, 2), FIRST)
        case "sort_bits":
            kernels.sort_bits(WORDS, np.arange(200), WORDS)
        case "count_codes":
            kernels.count_codes(CODES[np.newaxis], None, SEGMENTS.bounds, np.zeros((1, 5, 6)))
        case "hash_rows_f" | "hash_rows_d":
            kernels.hash_rows(numbers, np.zeros(4))
        case "code_values_f" | "code_values_d":
            kernels.code_values(
                values=numbers,
                row_of_sorted=np.arange(50),
                columns=columns,
                edges=numbers[:2, :7],
                n_edges=columns,
                known=columns,
                highest=columns,
                codes=np.zeros((2, 50)),
            )
    (call,) = cupy.calls
    assert call[0] == name
    return call


KERNELS = [
    "count_bits",
    "judge_bits",
    "judge_bits_by_likelihood",
    "judge_counts",
    "judge_counts_by_likelihood",
    "tally_codes",
    "find_next",
    "list_columns",
    "sort_bits",
    "count_codes",
    "hash_rows_f",
    "hash_rows_d",
    "code_values_f",
    "code_values_d",
]


@pytest.mark.parametrize("name", KERNELS)
def test_arguments_are_those_of_the_kernel(name, monkeypatch):
    named = []
    run = CompiledKernels._run

    def record(self, kernel, arguments, *launch):
        named.extend(arguments)
        run(self, kernel, arguments, *launch)

    monkeypatch.setattr(CompiledKernels, "_run", record)
    arguments = start(name)[4]
    parameters = read_parameters(name)
    assert [f"{parameter}".lstrip("*") for _, parameter in parameters] == named
    for (type_name, parameter), argument in zip(parameters, arguments, strict=True):
        if not parameter.startswith("*"):
            assert type(argument) is TYPES[type_name], parameter


def test_every_kernel_is_tested():
    source = re.sub(r"__launch_bounds__\(.*?\)", "", SOURCE)
    names = re.findall(r"__global__ void\s+(\w+?)(?:##suffix)?\(", source)
    assert set(names) == {re.sub(r"_[fd]$", "_", name) for name in KERNELS}


@pytest.mark.parametrize("n_environments", [1, 3, 500, 5_000])
def test_a_block_has_the_memory_that_its_warps_need(n_environments):
    """Many environments leave room for one warp only, which never gets none."""
    cupy = RecordingCuPy()
    segments = Segments(
        n_rows=None, n_environments=n_environments, n_by_outcome=(1, 1), tiles=np.zeros(2)
    )
    CompiledKernels(cupy).count_bits(WORDS, segments, out=None)
    _, width, (n_blocks,), (n_threads,), _, shared_bytes = cupy.calls[0]
    n_warps = n_threads // 32
    assert width == 32
    assert 1 <= n_warps <= 8
    assert n_blocks * n_warps >= len(WORDS)
    bytes_of_warp = 2048 + 1024 + 4 * (2 * n_environments + 1)
    assert shared_bytes == n_warps * bytes_of_warp
