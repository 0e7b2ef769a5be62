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
from typing import Any

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
N_CAUSES, N_SPURIOUS = 10, 100
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
        options.columns, options.samples, options.rows, options.loaded = 3000, 1000, 2000, 500
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
        start, seed, n_failed = time.perf_counter(), 0, 0
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
    bandwidth = measure_copy(card, 2**20 if options.quick else 2**33)
    print(f"copy: {bandwidth / 1e12:.2f} TB/s", flush=True)
    if card.xp is not np:
        card.xp.get_default_memory_pool().free_all_blocks()
    start = time.perf_counter()
    words = make_words(card, options.columns, options.samples)
    synchronize(card)
    n_bytes, made = words.nbytes, time.perf_counter() - start
    print(f"{options.columns:,} x {options.samples:,}: {n_bytes / 1e9:.1f} GB in {made:.1f} s")
    print("| environments | test | kernel | TB/s | of copy | scan | nearest | 10 rules |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for blocks in options.blocks.split(","):
        if card.xp is not np and blocks != "4":
            kernels = launching.CompiledKernels(card.xp, (f"-DBLOCKS={blocks}",))
            kernels._n_blocks = kernels._n_blocks // 4 * int(blocks)
            card = card._replace(kernels=kernels)
        for n_environments in map(int, options.environments.split(",")):
            try:
                for test in (ChiSquaredTest(), GTest()):
                    settings = Settings(**{**vars(PLAIN), "test": test})
                    line = describe_bits(card, words, options.samples, n_environments, settings)
                    kernel = line["kernel"]
                    rate = n_bytes / kernel
                    name = f"{n_environments} | {type(test).__name__} ({blocks} blocks)"
                    print(
                        f"| {name} | {1e3 * kernel:.1f} ms | {rate / 1e12:.2f} | "
                        f"{rate / bandwidth:.2f} | {1e3 * line['scan']:.1f} ms | "
                        f"{1e3 * line['nearest']:.0f} ms | {line['fit']:.3f} s, "
                        f"{line['n_rules']:.0f} rules |",
                        flush=True,
                    )
            except Exception:
                traceback.print_exc(file=sys.stdout)
    check_some(card, words, options)


def measure_copy(card: Card, n_bytes: int) -> float:
    source = card.xp.ones(n_bytes // 8, dtype=np.int64)
    target = card.xp.empty_like(source)
    copy = card.xp.copyto
    return 2 * n_bytes / take_time(card, lambda: copy(target, source), 20)


def make_words(card: Card, n_columns: int, n_samples: int) -> Any:
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
    """Columns whose conjunction is the label, and some that follow it in one environment."""
    rng, n = np.random.default_rng(1), len(rows)
    cells = np.repeat(np.arange(2 * n_environments), np.diff(rows.bounds))
    label, environment = cells // n_environments, cells % n_environments
    bits = np.zeros((N_CAUSES + N_SPURIOUS, words.shape[1] * 32), dtype=np.uint8)
    which = rng.integers(0, N_CAUSES, n)
    for j in range(N_CAUSES):
        bits[j, :n] = (label == 1) | (which != j)
    for j in range(N_CAUSES, len(bits)):
        bits[j, :n] = np.where(environment == 0, label, rng.random(n) < 0.3 + 0.2 * label)
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    at = np.linspace(0, len(words) - 1, len(bits)).astype(np.int64)
    words[card.send(rng.permutation(at))] = card.send(packed)


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


def describe_bits(
    card: Card, words: Any, n_samples: int, n_environments: int, settings: Settings
) -> dict[str, float]:
    rows = make_rows(n_samples, n_environments)
    plant(card, words, rows, n_environments)
    source = make_source(card, words, rows, n_environments)
    (store,) = source.piece.stores
    assert isinstance(store, CardBits)
    query = ask_for_shortlist(source, settings)
    columns = CountedBits(store, rows)
    shortlister = CardShortlister(columns)
    describe_part(card, store, columns, query)
    nearest = replace(query, order=ShortlistOrder.P_VALUE)
    found = {
        "kernel": take_time(card, lambda: shortlister.examine_all(query.criteria)),
        "scan": take_time(card, lambda: list(shortlister.shortlist(query).cubes)),
        "nearest": take_time(card, lambda: list(shortlister.shortlist(nearest).cubes), 1),
    }
    start = time.perf_counter()
    model, trace = find_model(source, settings)
    found |= {"fit": time.perf_counter() - start, "n_rules": len(model.rules)}
    if n_environments == 4:
        scan = trace.steps[0]
        print(f"  {model.rules[:2]} {scan.n_candidates:,} {scan.n_rejected} {trace.stop_reason}")
    return found


def ask_for_shortlist(source: StoredSource, settings: Settings) -> ShortlistQuery:
    """The question of the first scan of a search."""
    view = ConjunctionView(source, settings)
    root = view.make_root()
    utility = make_utility(settings.p, n_rows=root.n_rows)
    query = make_query(view, ShortlistOrder.UTILITY, utility=utility, uncovered=root)
    assert query is not None
    return query


def describe_part(
    card: Card, store: CardBits, columns: CountedBits, shortlist_query: ShortlistQuery
) -> None:
    """The time of the parts of a scan, on some of the columns."""
    words = store.words[: 2**22]
    segments = columns.segments
    n, n_segments = len(words), 2 * segments.n_environments
    query = CardShortlister(columns).send_criteria(shortlist_query.criteria)
    out = card.xp.empty((n, n_segments), dtype=np.int32)
    totals, codes = card.xp.empty((n, 2), dtype=np.int32), card.xp.empty(n, dtype=np.uint8)
    plain = replace(query, criteria=replace(query.criteria, statistic="none"))
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
    each = ", ".join(f"{name} {1e3 * taken:.2f}" for name, taken in times.items())
    print(f"  {n:,} columns, {words.nbytes / 1e9:.2f} GB, in ms: {each}", flush=True)


def check_some(card: Card, words: Any, options: argparse.Namespace) -> None:
    """The first columns and the planted ones give the same model and trace on the CPU."""
    n_environments, n_columns = 20, min(len(words), 20_000)
    rows = make_rows(options.samples, n_environments)
    some = words[:n_columns].copy()
    plant(card, some, rows, n_environments)
    source = make_source(card, some, rows, n_environments)
    store = BitStore(np.arange(n_columns), rows, 1, ORDERED)
    bits = np.zeros((n_columns, store.words.shape[1] * 64), dtype=np.uint8)
    given = np.unpackbits(card.bring(some).view(np.uint8), axis=1, bitorder="little")
    bits[:, store.bits] = given[:, : options.samples]
    store.words = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    plain = StoredSource(source.info, [store], rows, source.position)
    for model_type in ("conjunction", "disjunction"):
        for test in (None, ChiSquaredTest(), GTest()):
            own = Settings(**{**vars(PLAIN), "test": test, "model_type": model_type})
            wanted, found = (find_model(each, own) for each in (plain, source))
            print(f"{model_type}, {test}: equal to the CPU: {wanted == found}", flush=True)


# --- loading -------------------------------------------------------------------


def measure_loading(card: Card, options: argparse.Namespace) -> None:
    rng, n_words = np.random.default_rng(0), -(-options.samples // 64) * 2
    words = rng.integers(0, 2**32, (options.loaded, n_words), dtype=np.uint32)
    source = rng.permutation(options.samples).astype(np.uint32)
    sender = Sender(card, UnsortedBits(*words.shape, words.__getitem__, source))
    sent = take_time(card, lambda: sender.send(slice(0, len(words))), 2)
    print(f"sent and sorted: {words.nbytes / sent / 1e9:.1f} GB/s ({words.nbytes / 1e9:.1f} GB)")
    on_card = card.send(words)
    out = card.xp.empty((len(words), count_padded(options.samples) // 32), dtype=np.uint32)
    places = card.send(source)
    sort = take_time(card, lambda: card.kernels.sort_bits(on_card, places, out), 3)
    print(f"sorted on the card: {words.nbytes / sort / 1e9:.1f} GB/s", flush=True)
    rows = make_rows(options.samples, 4)
    small = card._replace(count_free=lambda: 0)  # a card that is too small for them
    unsorted = UnsortedBits(*words.shape, words.__getitem__, source)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        streamed = put_bits(small, np.arange(len(words)), unsorted, rows)
    print(*[str(each.message) for each in told], sep="\n")
    here = CardBits(card, np.arange(len(words)), sender.send(slice(0, len(words))), rows)
    info = SourceInfo(PresenceMap(), ("no", "yes"), tuple(range(4)))
    query = ask_for_shortlist(StoredSource(info, [here], rows, np.arange(len(rows))), PLAIN)
    for name, store in (("on the card", here), ("sent for each scan", streamed)):
        shortlister = store.make_shortlister(rows)
        taken = take_time(card, lambda own=shortlister: list(own.shortlist(query).cubes), 3)
        rate = words.nbytes / taken / 1e9
        print(f"a scan {name}: {1e3 * taken:.1f} ms, {rate:.1f} GB/s", flush=True)
    found = [
        find_model(StoredSource(info, [each], rows, np.arange(len(rows))), PLAIN)
        for each in (here, streamed)
    ]
    print(f"equal: {found[0] == found[1]}", flush=True)


# --- dense ---------------------------------------------------------------------


def measure_dense(card: Card, options: argparse.Namespace) -> None:
    """A table of floats: from this memory and from the card's, on the card and on all cores."""
    n_rows, n_columns, n_environments = options.rows, 232 if options.rows > 10_000 else 20, 51
    rng = np.random.default_rng(0)
    environments = rng.integers(0, n_environments, n_rows)
    X = rng.random((n_rows, n_columns), dtype=np.float64)
    labels = ((X[:, :3] > 0.3).all(axis=1) ^ (rng.random(n_rows) < 0.02 * (environments % 4))) * 1
    there, device = card.send(X), "cpu" if options.stand_in else "cuda"
    learner = ICSCMClassifier(stop="coverage", pruning="always", min_utility=0.0, n_jobs=-1)
    found = {}
    for name, table, where in (("CPU", X, "cpu"), ("host", X, device), ("card", there, device)):
        learner.set_params(device=where)
        rows = {"X": table, "y": labels, "environments": environments}
        opened = take_time(card, partial(open_memory, **rows, preparation=learner.prepare()), 3)
        samples = open_memory(**rows, preparation=learner.prepare())
        settings = learner.make_settings(samples)
        searched = take_time(card, partial(search_again, samples.source, settings), 3)
        fitted = take_time(card, partial(learner.fit, **rows), 3)
        found[name] = learner.fit(**rows).trace_
        print(
            f"{n_rows:,} x {n_columns} from the {name}: opened {opened:.3f} s, searched "
            f"{searched:.3f} s, fit {fitted:.3f} s",
            flush=True,
        )
    print(f"equal: {found['CPU'] == found['host'] == found['card']}", flush=True)
    measure_trees(X, there, labels, environments, device)


def search_again(source: StoredSource, settings: Settings) -> None:
    find_model(source, settings)


def measure_trees(X: Any, there: Any, labels: Any, environments: Any, device: str) -> None:
    for learner in (
        InvariantTreeClassifier(n_jobs=-1),
        InvariantForestClassifier(n_estimators=100, random_state=0, n_jobs=-1),
    ):
        for where, table in (("cpu", X), (device, there)):
            learner.set_params(device=where)
            start = time.perf_counter()
            learner.fit(table, labels, environments=environments)
            taken = time.perf_counter() - start
            print(f"{type(learner).__name__} on {where}: {taken:.2f} s", flush=True)


# --- estimators ------------------------------------------------------------------


def measure_estimators(options: argparse.Namespace) -> None:
    """From a packed store on disk to a model, on the processor and on the card."""
    n_samples, n_columns = min(options.samples, 10_000), options.loaded
    rng = np.random.default_rng(0)
    labels = pd.DataFrame({"name": [f"s{i}" for i in range(n_samples)]})
    labels["y"], labels["e"] = rng.integers(0, 2, n_samples), rng.integers(0, 4, n_samples)
    device = "cpu" if options.stand_in else "cuda"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.bits"
        n_words, last = count_words(n_samples), (n_samples - 1) // 64

        def fill(writer: Any) -> None:
            beyond = np.uint64(2**64 - 1) >> np.uint64(-n_samples % 64)
            for start in range(0, n_columns, 2**16):
                shape = min(2**16, n_columns - start), n_words
                words = rng.integers(0, 2**64, shape, dtype=np.uint64)
                words[:, last] &= beyond
                words[:, last + 1 :] = 0
                writer.add(words)

        write_bits(path, labels["name"].tolist(), fill)
        found = {}
        for where in dict.fromkeys(("cpu", device)):
            learner = ICSCMClassifier(max_rules=3, min_utility=0.0, device=where, n_jobs=-1)
            start = time.perf_counter()
            samples = open_bits(path, labels, "y", environments="e", preparation=learner.prepare())
            opened = time.perf_counter() - start
            found[where] = learner.fit_counts(samples)
            taken = time.perf_counter() - start
            size = path.stat().st_size / 1e9
            print(f"{size:.1f} GB .bits, {where}: opened {opened:.2f} s, all {taken:.2f} s")
        print(f"equal: {found['cpu'].trace_ == found[device].trace_}", flush=True)


if __name__ == "__main__":
    main()
