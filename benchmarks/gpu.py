"""Speed of bits and dense tables on a graphics card, relative to copying memory.

    python benchmarks/gpu.py                         90 million columns of 10,000 samples: 114 GB
    python benchmarks/gpu.py --columns 1000000       fewer
    python benchmarks/gpu.py --stand-in --quick      without a card, small: a smoke test

Kernels are first compared with their twins in NumPy, and whole models with those of the CPU.
Columns are made on the card: random bits of several densities, ten that the label is the
conjunction of, and some that follow the label in one environment only. A *scan* is one step of the
search: all candidates are counted, tested and compared, and few are returned. Its share of the
bandwidth is relative to a copy on the same card, counting bytes read and written.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))


from icscm import ICSCMClassifier, InvariantForestClassifier, InvariantTreeClassifier
from icscm.engine.bits import PresenceMap
from icscm.engine.counts import ORDERED, ShortlistOrder, ShortlistQuery, SourceInfo
from icscm.engine.stores import BitStore, Rows
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.shortlist import make_query
from icscm.search.utility import make_utility
from icscm.search.view import ConjunctionView
from icscm.sources.bits.opening import open_bits
from icscm.sources.bits.packing import write_bits
from icscm.sources.bits.store import count_words
from icscm.sources.gpu import launching
from icscm.sources.gpu.card import Card, find_card
from icscm.sources.gpu.launching import FIRST, count_padded
from icscm.sources.gpu.sending import Sender, UnsortedBits
from icscm.sources.gpu.shortlisting import CardShortlister
from icscm.sources.gpu.stores import CardBits, CountedBits, put_bits
from icscm.sources.memory import open_memory
from icscm.sources.stored import StoredSource
from icscm.stats.independence import ChiSquaredTest, GTest
from support.literal.gpu_kernels import make_stand_in

# Fills columns with random bits: the conjunction of 1 to 4 random words, by column, so that columns
# have several densities; bits beyond the last sample are 0.
FILL = r"""
__device__ unsigned int mix(unsigned long long x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (unsigned int)((x ^ (x >> 31)) >> 16);
}
extern "C" __global__ void fill(unsigned int *words, long long n, int n_words, int n_samples) {
  for (long long c = blockIdx.x; c < n; c += gridDim.x) {
    int n_ands = 1 + mix(c * 0x9e3779b97f4a7c15ull) % 4;
    for (int w = threadIdx.x; w < n_words; w += blockDim.x) {
      unsigned int word = 0xffffffffu;
      for (int i = 0; i < n_ands; i++)
        word &= mix(((c * n_words + w) * 4 + i) * 0x9e3779b97f4a7c15ull);
      int left = n_samples - 32 * w;
      words[c * n_words + w] = left >= 32 ? word : left <= 0 ? 0 : word & ((1u << left) - 1);
    }
  }
}
"""
# Planted columns: those that the label is the conjunction of, and those that follow it in one
# environment only.
N_CAUSES = 10
N_SPURIOUS = 100
PLAIN = Settings(test=ChiSquaredTest(), stop="coverage", pruning="always", min_replication=0.25)


def main() -> None:
    options = parse_options()
    card = make_stand_in() if options.stand_in else find_card()
    parts: list[Callable[[], None]] = [
        lambda: check_equality(card, options.seconds_equal),
        lambda: measure_bits(card, options),
        lambda: measure_loading(card, options),
        lambda: measure_dense(card, options),
        lambda: measure_estimators(options),
    ]
    for number, part in enumerate(parts):
        if options.parts and str(number) not in options.parts.split(","):
            continue
        start = time.perf_counter()
        try:
            part()
        except Exception:  # the other results must not be lost
            traceback.print_exc(file=sys.stdout)
        print(f"-- part {number}: {time.perf_counter() - start:.1f} s", flush=True)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=90_000_000)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--environments", default="2,4,100", help="several, by commas")
    parser.add_argument("--blocks", default="4,3,5", help="variants of the kernel, by commas")
    parser.add_argument("--rows", type=int, default=832_000, help="of the dense table")
    parser.add_argument("--loaded", type=int, default=2_000_000, help="columns sent from here")
    parser.add_argument("--seconds-equal", type=float, default=60.0)
    parser.add_argument(
        "--parts", default="", help="0 equality, 1 bits, 2 loading, 3 dense, 4 estimators"
    )
    parser.add_argument("--stand-in", action="store_true", help="no card, the kernels' twins")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    if options.quick:
        options.columns = 3000
        options.samples = 1000
        options.rows = 2000
        options.loaded = 500
        options.seconds_equal = 5.0
    return options


def take_time(card: Card, function: Callable[[], Any], repeats: int = 5) -> float:
    """Median seconds, including all work on the card."""
    times = []
    for _ in range(repeats + 1):  # the first warms up
        synchronize(card)
        start = time.perf_counter()
        function()
        synchronize(card)
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def synchronize(card: Card) -> None:
    if card.xp is not np:
        card.xp.cuda.Device().synchronize()


# --- the same as without a card ----------------------------------------------


def check_equality(card: Card, seconds: float) -> None:
    """Run each check for its share of the time, on as many random tables as possible."""
    from support.gpu_sources import (
        check_kernels,
        check_same_counts,
        check_same_search,
        check_same_values,
    )

    checks = check_kernels, check_same_counts, check_same_search, check_same_values
    for check in checks:
        seed = 0
        n_failed = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds / len(checks):
            try:
                check(np.random.default_rng(seed), card)
            except Exception:
                n_failed += 1
                if n_failed <= 2:
                    print(f"{check.__name__} with seed {seed}:")
                    traceback.print_exc(file=sys.stdout)
                if n_failed == 10:
                    break
            seed += 1
        print(f"{check.__name__}: {seed} tables, {n_failed} failed", flush=True)


# --- bits ----------------------------------------------------------------------


def measure_bits(card: Card, options: argparse.Namespace) -> None:
    """A line for each variant of the kernel, number of environments and test."""
    bandwidth = measure_copy(card, 2**20 if options.quick else 2**33)
    print(f"copy: {bandwidth / 1e12:.2f} TB/s", flush=True)
    if card.xp is not np:
        card.xp.get_default_memory_pool().free_all_blocks()

    start = time.perf_counter()
    words = make_words(card, options.columns, options.samples)
    synchronize(card)
    seconds = time.perf_counter() - start
    size = f"{words.nbytes / 1e9:.1f} GB"
    print(f"{options.columns:,} x {options.samples:,}: {size} in {seconds:.1f} s")
    print("| environments | test | kernel | TB/s | of copy | scan | nearest | 10 rules |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for blocks in options.blocks.split(","):
        if card.xp is not np and blocks != "4":
            card = choose_variant(card, blocks)
        for n_environments in map(int, options.environments.split(",")):
            try:
                for test in (ChiSquaredTest(), GTest()):
                    settings = replace(PLAIN, test=test)
                    times = time_bits(card, words, options.samples, n_environments, settings)
                    rate = words.nbytes / times.kernel
                    name = f"{n_environments} | {type(test).__name__} ({blocks} blocks)"
                    print(
                        f"| {name} | {1e3 * times.kernel:.1f} ms | {rate / 1e12:.2f} | "
                        f"{rate / bandwidth:.2f} | {1e3 * times.scan:.1f} ms | "
                        f"{1e3 * times.nearest:.0f} ms | {times.fit:.3f} s, "
                        f"{times.n_rules} rules |",
                        flush=True,
                    )
            except Exception:  # such as one of memory: other numbers of environments may do
                traceback.print_exc(file=sys.stdout)
    check_some(card, words, options)


def choose_variant(card: Card, blocks: str) -> Card:
    """The card with kernels compiled for another number of blocks on a processor."""
    kernels = launching.CompiledKernels(card.xp, (f"-DBLOCKS={blocks}",))
    kernels._n_blocks = kernels._n_blocks // 4 * int(blocks)
    return card._replace(kernels=kernels)


def measure_copy(card: Card, n_bytes: int) -> float:
    source = card.xp.ones(n_bytes // 8, dtype=np.int64)
    target = card.xp.empty_like(source)
    copy = card.xp.copyto
    return 2 * n_bytes / take_time(card, lambda: copy(target, source), 20)


def make_words(card: Card, n_columns: int, n_samples: int) -> Any:
    """Random columns, made on the card."""
    n_words = count_padded(n_samples) // 32
    if card.xp is np:
        bits = np.random.default_rng(0).random((n_columns, n_words * 32)) < 0.3
        bits[:, n_samples:] = False
        return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    words = card.xp.empty((n_columns, n_words), dtype=np.uint32)
    fill = card.xp.RawKernel(FILL, "fill")
    sizes = np.int64(n_columns), np.int32(n_words), np.int32(n_samples)
    fill((132 * 8,), (256,), (words, *sizes))
    return words


def plant(card: Card, words: Any, rows: Rows, n_environments: int) -> None:
    """Overwrite columns: some whose conjunction is the label, some that follow it at one place.

    A row with the label 0 lacks one of the causes, drawn at random.
    """
    rng = np.random.default_rng(1)
    n_rows = len(rows)
    cells = np.repeat(np.arange(2 * n_environments), np.diff(rows.bounds))
    label = cells // n_environments
    environment = cells % n_environments

    bits = np.zeros((N_CAUSES + N_SPURIOUS, words.shape[1] * 32), dtype=np.uint8)
    lacking = rng.integers(0, N_CAUSES, n_rows)
    for cause in range(N_CAUSES):
        bits[cause, :n_rows] = (label == 1) | (lacking != cause)
    for spurious in range(N_CAUSES, len(bits)):
        elsewhere = rng.random(n_rows) < 0.3 + 0.2 * label
        bits[spurious, :n_rows] = np.where(environment == 0, label, elsewhere)
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)

    positions = np.linspace(0, len(words) - 1, len(bits)).astype(np.int64)
    words[card.send(rng.permutation(positions))] = card.send(packed)


def make_rows(n_samples: int, n_environments: int) -> Rows:
    """Segments of unequal sizes: the label's rate differs between environments."""
    share = 0.4 + 0.2 * np.arange(n_environments) / max(1, n_environments - 1)
    sizes = np.concatenate((1 - share, share)) / n_environments
    ends = np.rint(np.cumsum(sizes) * n_samples).astype(np.int64)
    return Rows(None, np.concatenate(([0], ends)))


def make_source(card: Card, words: Any, rows: Rows, n_environments: int) -> StoredSource:
    store = CardBits(card, np.arange(len(words)), words, rows)
    info = SourceInfo(PresenceMap(), ("no", "yes"), tuple(range(n_environments)))
    return StoredSource(info, [store], rows, np.arange(len(rows)))


class BitTimes(NamedTuple):
    """Seconds of one kernel, of scans in two orders, and of a search; and the rules it finds."""

    kernel: float
    scan: float
    nearest: float
    fit: float
    n_rules: int


def time_bits(
    card: Card, words: Any, n_samples: int, n_environments: int, settings: Settings
) -> BitTimes:
    rows = make_rows(n_samples, n_environments)
    plant(card, words, rows, n_environments)
    source = make_source(card, words, rows, n_environments)
    (store,) = source.piece.stores
    assert isinstance(store, CardBits)
    query = ask_for_shortlist(source, settings)
    columns = CountedBits(store, rows)
    shortlister = CardShortlister(columns)
    print_times_of_parts(card, store, columns, query)
    nearest_query = replace(query, order=ShortlistOrder.P_VALUE)
    kernel = take_time(card, lambda: shortlister.examine_all(query.criteria))
    scan = take_time(card, lambda: list(shortlister.shortlist(query).cubes))
    nearest = take_time(card, lambda: list(shortlister.shortlist(nearest_query).cubes), 1)
    start = time.perf_counter()
    model, trace = find_model(source, settings)
    fit = time.perf_counter() - start
    if n_environments == 4:
        first = trace.steps[0]
        print(f"  {model.rules[:2]} {first.n_candidates:,} {first.n_rejected} {trace.stop_reason}")
    return BitTimes(kernel=kernel, scan=scan, nearest=nearest, fit=fit, n_rules=len(model.rules))


def ask_for_shortlist(source: StoredSource, settings: Settings) -> ShortlistQuery:
    """The question of the first scan of a search."""
    view = ConjunctionView(source, settings)
    root = view.make_root()
    utility = make_utility(settings.p, n_rows=root.n_rows)
    query = make_query(view, ShortlistOrder.UTILITY, utility=utility, uncovered=root)
    assert query is not None
    return query


def print_times_of_parts(
    card: Card, store: CardBits, columns: CountedBits, shortlist_query: ShortlistQuery
) -> None:
    """The time of the parts of a scan, on some of the columns."""
    words = store.words[: 2**22]
    n_columns = len(words)
    segments = columns.segments
    query = CardShortlister(columns).send_criteria(shortlist_query.criteria)
    plain = replace(query, criteria=replace(query.criteria, statistic="none"))
    # what the kernels fill
    out = card.xp.empty((n_columns, 2 * segments.n_environments), dtype=np.int32)
    totals = card.xp.empty((n_columns, 2), dtype=np.int32)
    codes = card.xp.empty(n_columns, dtype=np.uint8)
    kernels = card.kernels
    times = {
        "counted": take_time(card, lambda: kernels.count_bits(words, segments, out)),
        "without a test": take_time(
            card, lambda: kernels.judge_bits(words, segments, plain, totals, codes)
        ),
        "judged": take_time(
            card, lambda: kernels.judge_bits(words, segments, query, totals, codes)
        ),
        "next": take_time(
            card, lambda: kernels.find_next(totals, codes, query, (2, 3, 4, 5), FIRST)
        ),
        "tally": take_time(card, lambda: kernels.tally_codes(codes, None)),
        "listed": take_time(card, lambda: kernels.list_columns(totals, codes, query, (6,))),
    }
    listed = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in times.items())
    print(f"  {n_columns:,} columns, {words.nbytes / 1e9:.2f} GB, in ms: {listed}", flush=True)


def check_some(card: Card, words: Any, options: argparse.Namespace) -> None:
    """The first columns and the planted ones give the same model and trace on the CPU."""
    n_environments = 20
    n_columns = min(len(words), 20_000)
    rows = make_rows(options.samples, n_environments)
    few_words = words[:n_columns].copy()
    plant(card, few_words, rows, n_environments)
    source_on_card = make_source(card, few_words, rows, n_environments)

    # the same bits in memory, which has them at other positions of its words
    store = BitStore(np.arange(n_columns), rows, 1, ORDERED)
    bits_of_card = np.unpackbits(card.bring(few_words).view(np.uint8), axis=1, bitorder="little")
    bits = np.zeros((n_columns, store.words.shape[1] * 64), dtype=np.uint8)
    bits[:, store.bits] = bits_of_card[:, : options.samples]
    store.words = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    source = StoredSource(source_on_card.info, [store], rows, source_on_card.position)

    for model_type in ("conjunction", "disjunction"):
        for test in (None, ChiSquaredTest(), GTest()):
            settings = replace(PLAIN, test=test, model_type=model_type)
            is_equal = find_model(source, settings) == find_model(source_on_card, settings)
            print(f"{model_type}, {test}: equal to the CPU: {is_equal}", flush=True)


# --- loading -------------------------------------------------------------------


def measure_loading(card: Card, options: argparse.Namespace) -> None:
    """Columns sent from this memory once, and again for each scan."""
    n_words = -(-options.samples // 64) * 2
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, (options.loaded, n_words), dtype=np.uint32)
    order = rng.permutation(options.samples).astype(np.uint32)
    all_columns = slice(0, len(words))

    sender = Sender(card, UnsortedBits(*words.shape, words.__getitem__, order))
    seconds = take_time(card, lambda: sender.send(all_columns), 2)
    print(f"sent and sorted: {words.nbytes / seconds / 1e9:.1f} GB/s ({words.nbytes / 1e9:.1f} GB)")

    words_on_card = card.send(words)
    order_on_card = card.send(order)
    out = card.xp.empty((len(words), count_padded(options.samples) // 32), dtype=np.uint32)
    seconds = take_time(card, lambda: card.kernels.sort_bits(words_on_card, order_on_card, out), 3)
    print(f"sorted on the card: {words.nbytes / seconds / 1e9:.1f} GB/s", flush=True)

    rows = make_rows(options.samples, 4)
    full_card = card._replace(count_free=lambda: 0)  # with no room for them
    unsorted = UnsortedBits(*words.shape, words.__getitem__, order)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        streamed = put_bits(full_card, np.arange(len(words)), unsorted, rows)
    print(*[str(warning.message) for warning in shown], sep="\n")

    stored = CardBits(card, np.arange(len(words)), sender.send(all_columns), rows)
    info = SourceInfo(PresenceMap(), ("no", "yes"), tuple(range(4)))
    models = []
    query = ask_for_shortlist(StoredSource(info, [stored], rows, np.arange(len(rows))), PLAIN)
    for name, store in (("on the card", stored), ("sent for each scan", streamed)):
        shortlister = store.make_shortlister(rows)
        seconds = take_time(card, partial(scan, shortlister, query), 3)
        rate = words.nbytes / seconds / 1e9
        print(f"a scan {name}: {1e3 * seconds:.1f} ms, {rate:.1f} GB/s", flush=True)
        models.append(find_model(StoredSource(info, [store], rows, np.arange(len(rows))), PLAIN))
    print(f"equal: {models[0] == models[1]}", flush=True)


def scan(shortlister: Any, query: ShortlistQuery) -> None:
    for _ in shortlister.shortlist(query).cubes:
        pass


# --- dense ---------------------------------------------------------------------


def measure_dense(card: Card, options: argparse.Namespace) -> None:
    """A table of floats: from this memory and from the card's, on the card and on all cores."""
    n_rows = options.rows
    n_columns = 232 if n_rows > 10_000 else 20
    rng = np.random.default_rng(0)
    environments = rng.integers(0, 51, n_rows)
    X = rng.random((n_rows, n_columns), dtype=np.float64)
    is_wrong = rng.random(n_rows) < 0.02 * (environments % 4)
    labels = ((X[:, :3] > 0.3).all(axis=1) ^ is_wrong) * 1
    X_on_card = card.send(X)
    device = "cpu" if options.stand_in else "cuda"

    # where the table is, and what fits
    cases = {"CPU": (X, "cpu"), "host": (X, device), "card": (X_on_card, device)}
    learner = ICSCMClassifier(stop="coverage", pruning="always", min_utility=0.0, n_jobs=-1)
    traces = {}
    for name, (table, device_of_case) in cases.items():
        learner.set_params(device=device_of_case)
        rows = {"X": table, "y": labels, "environments": environments}
        opened = take_time(card, partial(open_memory, **rows, preparation=learner.prepare()), 3)
        countable = open_memory(**rows, preparation=learner.prepare())
        settings = learner.make_settings(countable)
        searched = take_time(card, partial(find_model, countable.source, settings), 3)
        fitted = take_time(card, partial(learner.fit, **rows), 3)
        traces[name] = learner.fit(**rows).trace_
        print(
            f"{n_rows:,} x {n_columns} from the {name}: opened {opened:.3f} s, searched "
            f"{searched:.3f} s, fit {fitted:.3f} s",
            flush=True,
        )
    print(f"equal: {traces['CPU'] == traces['host'] == traces['card']}", flush=True)
    measure_trees(X, X_on_card, labels, environments, device)


def measure_trees(X: Any, X_on_card: Any, labels: Any, environments: Any, device: str) -> None:
    """A tree and a forest, on the processor and on the card."""
    for learner in (
        InvariantTreeClassifier(n_jobs=-1),
        InvariantForestClassifier(n_estimators=100, random_state=0, n_jobs=-1),
    ):
        for device_of_fit, table in (("cpu", X), (device, X_on_card)):
            learner.set_params(device=device_of_fit)
            start = time.perf_counter()
            learner.fit(table, labels, environments=environments)
            seconds = time.perf_counter() - start
            print(f"{type(learner).__name__} on {device_of_fit}: {seconds:.2f} s", flush=True)


# --- estimators ------------------------------------------------------------------


def measure_estimators(options: argparse.Namespace) -> None:
    """From a packed store on disk to a model, on the processor and on the card."""
    n_samples = min(options.samples, 10_000)
    rng = np.random.default_rng(0)
    labels = pd.DataFrame({"name": [f"s{number}" for number in range(n_samples)]})
    labels["y"] = rng.integers(0, 2, n_samples)
    labels["e"] = rng.integers(0, 4, n_samples)
    device = "cpu" if options.stand_in else "cuda"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.bits"
        write_store(path, labels["name"].tolist(), options.loaded, rng)
        size = path.stat().st_size / 1e9
        traces = {}
        for device_of_fit in dict.fromkeys(("cpu", device)):
            learner = ICSCMClassifier(max_rules=3, min_utility=0.0, device=device_of_fit, n_jobs=-1)
            start = time.perf_counter()
            countable = open_bits(
                path, labels, "y", environments="e", preparation=learner.prepare()
            )
            opened = time.perf_counter() - start
            traces[device_of_fit] = learner.fit_counts(countable).trace_
            total = time.perf_counter() - start
            print(f"{size:.1f} GB .bits, {device_of_fit}: opened {opened:.2f} s, all {total:.2f} s")
        print(f"equal: {traces['cpu'] == traces[device]}", flush=True)


def write_store(path: Path, names: list[str], n_columns: int, rng: np.random.Generator) -> None:
    """Write random columns; bits beyond the last sample are 0."""
    n_samples = len(names)
    n_words = count_words(n_samples)
    last_word = (n_samples - 1) // 64
    mask_of_last = np.uint64(2**64 - 1) >> np.uint64(-n_samples % 64)

    def fill(writer: Any) -> None:
        for start in range(0, n_columns, 2**16):
            shape = min(2**16, n_columns - start), n_words
            words = rng.integers(0, 2**64, shape, dtype=np.uint64)
            words[:, last_word] &= mask_of_last
            words[:, last_word + 1 :] = 0
            writer.add(words)

    write_bits(path, names, fill)


if __name__ == "__main__":
    main()
