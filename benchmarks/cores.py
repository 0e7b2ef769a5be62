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
# Copies of the table that a fit may take at most, and a hundred rules relative to ten.
MOST_COPIES = 8.0
MOST_FOR_RULES = 1.3


def make_table(n_rows, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_columns))
    y = (X[:, :3] > 0.2).all(axis=1) ^ (rng.random(n_rows) < 0.1)
    environments = rng.integers(0, 2, n_rows)
    return X, y.astype(np.int64), environments


def take_least(function, repeats):
    """Seconds of the fastest of some calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def print_verdict(what, *, target, measured, is_met, details=""):
    verdict = "met" if is_met else "MISSED"
    print(f"{what:<34}{target:>16}{measured:>16}  {verdict}  {details}".rstrip(), flush=True)


def measure_copies(X, y, environments, repeats):
    """Copies that a fit takes, by order and type, on two cores."""
    fit_seconds = {}
    for dtype in (np.float64, np.float32):
        for order in "CF":
            table = np.array(X, dtype=dtype, order=order)
            seconds = measure_fit(table, y, environments, repeats)
            n_copies = seconds / measure_copy(table, repeats + 2)
            fit_seconds[dtype, order] = seconds
            print_verdict(
                f"{np.dtype(dtype).name}, {order} order, two threads",
                target=f"{MOST_COPIES:.0f} copies",
                measured=f"{n_copies:.1f} copies",
                is_met=n_copies <= MOST_COPIES,
                details=f"{seconds:.2f} s",
            )
    for order in "CF":
        share = fit_seconds[np.float32, order] / fit_seconds[np.float64, order]
        print_verdict(
            f"float32 of float64, {order} order",
            target="about 0.5",
            measured=f"{share:.2f}",
            is_met=share <= 0.6,
        )


def measure_fit(table, y, environments, repeats):
    learner = ICSCMClassifier(stop="coverage", n_jobs=2)
    few = slice(20_000)
    learner.fit(table[few], y[few], environments=environments[few])  # compiles
    return take_least(lambda: learner.fit(table, y, environments=environments), repeats)


def measure_copy(table, repeats):
    target = np.ones_like(table)
    return take_least(lambda: np.copyto(target, table), repeats)


def measure_speedup(X, y, environments, jobs, repeats):
    """How threads speed a fit up, relative to the first number of them."""
    first_seconds = None
    for n_jobs in jobs:
        learner = ICSCMClassifier(stop="coverage", n_jobs=n_jobs)
        seconds = take_least(
            lambda learner=learner: learner.fit(X, y, environments=environments), repeats
        )
        first_seconds = first_seconds or seconds
        speedup = first_seconds / seconds
        target = SPEEDUPS.get(n_jobs)
        if target is None:
            print(f"n_jobs={n_jobs:<27}{'':>16}{speedup:>14.1f} x          {seconds:.2f} s")
            continue
        print_verdict(
            f"n_jobs={n_jobs}",
            target=f"{target:.1f} x",
            measured=f"{speedup:.1f} x",
            is_met=speedup >= target,
            details=f"{seconds:.2f} s",
        )


def measure_rules(X, repeats):
    """The time of a hundred rules relative to ten, where as many are found."""
    y = (X[:, :100] > 1 / 51).all(axis=1)  # the lowest of 50 thresholds
    seconds = {}
    n_rules = {}
    for max_rules in (10, 100):
        learner = SCMClassifier(p=10, max_rules=max_rules, n_jobs=-1)
        seconds[max_rules] = take_least(lambda learner=learner: learner.fit(X, y), repeats)
        n_rules[max_rules] = len(learner.rules_)
    ratio = seconds[100] / seconds[10]
    print_verdict(
        "max_rules=100 against 10",
        target=f"{MOST_FOR_RULES} x",
        measured=f"{ratio:.2f} x",
        is_met=ratio <= MOST_FOR_RULES,
        details=f"{n_rules[10]} and {n_rules[100]} rules",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=832_000)
    parser.add_argument("--columns", type=int, default=232)
    parser.add_argument("--repeats", type=int, default=3)
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    default_jobs = ",".join(str(n) for n in (1, 2, 4, 8, 16) if n <= n_cores)
    parser.add_argument("--jobs", default=default_jobs, help="numbers of threads, from 1 on")
    options = parser.parse_args()
    jobs = [int(n) for n in options.jobs.split(",")]
    X, y, environments = make_table(options.rows, options.columns)
    print(f"{options.rows:,} x {options.columns}, {n_cores} cores")
    print(f"{'':<34}{'target':>16}{'measured':>16}")
    measure_copies(X, y, environments, options.repeats)
    measure_speedup(X, y, environments, jobs, options.repeats)
    measure_rules(X, options.repeats)


if __name__ == "__main__":
    main()
