"""Fits of a dense table in memory on all cores, against their targets.

    python benchmarks/cores.py [--rows 832000] [--columns 232] [--jobs 1,2,4,8,16]

From raw floats to the model, ten rules at most. A copy is `np.copyto` of the same array.
"""

import argparse
import os
import time

import numpy as np

from icscm import ICSCMClassifier, SCMClassifier

# by number of cores: required speed relative to one thread
SPEEDUPS = {2: 1.8, 16: 8.0}
MOST_COPIES = 8.0
MOST_FOR_RULES = 1.3


def make_table(n_rows, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_columns))
    y = (X[:, :3] > 0.2).all(axis=1) ^ (rng.random(n_rows) < 0.1)
    return X, y.astype(np.int64), rng.integers(0, 2, n_rows)


def take_least(function, repeats):
    """Seconds of the fastest of some calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def tell(what, target, measured, is_met, details=""):
    verdict = "met" if is_met else "MISSED"
    print(f"{what:<34}{target:>16}{measured:>16}  {verdict}  {details}".rstrip(), flush=True)


def measure_copies(X, y, e, repeats):
    """Copies that a fit takes, by order and type, on two cores."""
    learner, least = ICSCMClassifier(stop="coverage", n_jobs=2), {}
    for dtype in (np.float64, np.float32):
        for order in "CF":
            own = np.array(X, dtype=dtype, order=order)
            target = np.ones_like(own)
            learner.fit(own[:20_000], y[:20_000], environments=e[:20_000])  # compiles
            fit = take_least(lambda own=own: learner.fit(own, y, environments=e), repeats)
            copy = take_least(lambda own=own, to=target: np.copyto(to, own), repeats + 2)
            what = f"{np.dtype(dtype).name}, {order} order, two threads"
            ratio, least[dtype, order] = fit / copy, fit
            target = f"{MOST_COPIES:.0f} copies"
            tell(what, target, f"{ratio:.1f} copies", ratio <= MOST_COPIES, f"{fit:.2f} s")
    for order in "CF":
        share = least[np.float32, order] / least[np.float64, order]
        tell(f"float32 of float64, {order} order", "about 0.5", f"{share:.2f}", share <= 0.6)


def measure_speedup(X, y, e, jobs, repeats):
    """How threads speed a fit up."""
    one = None
    for n_jobs in jobs:
        learner = ICSCMClassifier(stop="coverage", n_jobs=n_jobs)
        fit = take_least(lambda learner=learner: learner.fit(X, y, environments=e), repeats)
        one = one or fit
        target = SPEEDUPS.get(n_jobs)
        if target is None:
            print(f"n_jobs={n_jobs:<27}{'':>16}{one / fit:>14.1f} x          {fit:.2f} s")
            continue
        is_met = one / fit >= target
        tell(f"n_jobs={n_jobs}", f"{target:.1f} x", f"{one / fit:.1f} x", is_met, f"{fit:.2f} s")


def measure_rules(X, repeats):
    """The time of a hundred rules relative to ten, where as many are found."""
    y = (X[:, :100] > 1 / 51).all(axis=1)  # the lowest of 50 thresholds
    seconds, n_rules = [], []
    for most in (10, 100):
        learner = SCMClassifier(p=10, max_rules=most, n_jobs=-1)
        seconds.append(take_least(lambda learner=learner: learner.fit(X, y), repeats))
        n_rules.append(len(learner.rules_))
    ratio = seconds[1] / seconds[0]
    found = f"{n_rules[0]} and {n_rules[1]} rules"
    is_met = ratio <= MOST_FOR_RULES
    tell("max_rules=100 against 10", f"{MOST_FOR_RULES} x", f"{ratio:.2f} x", is_met, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=832_000)
    parser.add_argument("--columns", type=int, default=232)
    parser.add_argument("--repeats", type=int, default=3)
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    default = ",".join(str(n) for n in (1, 2, 4, 8, 16) if n <= n_cores)
    parser.add_argument("--jobs", default=default, help="numbers of threads, from 1 on")
    options = parser.parse_args()
    X, y, e = make_table(options.rows, options.columns)
    print(f"{options.rows:,} x {options.columns}, {n_cores} cores")
    print(f"{'':<34}{'target':>16}{'measured':>16}")
    measure_copies(X, y, e, options.repeats)
    measure_speedup(X, y, e, [int(n) for n in options.jobs.split(",")], options.repeats)
    measure_rules(X, options.repeats)


if __name__ == "__main__":
    main()
