"""Threads over independent pieces of work. Results never depend on how many there are."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from icscm._constants import CODED_ROWS, COLUMN_GROUP

Task = TypeVar("Task")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads to use, counted from that of all cores when negative.

    None means what it means in scikit-learn: 1, or the value of a `joblib.parallel_config` around
    the call. In a worker of joblib it is 1: its neighbours have the other cores.

    >>> count_threads(3), count_threads(None)
    (3, 1)
    """
    if n_jobs is None:
        n_jobs = 1
        parallel = sys.modules.get("joblib.parallel")
        if parallel is not None:  # without joblib nothing can ask for more
            backend, n_wanted = parallel.get_active_backend()
            n_jobs = 1 if backend.nesting_level else n_wanted or 1
    find_cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return n_jobs if n_jobs > 0 else max(1, len(find_cores(0)) + 1 + n_jobs)


def run_tasks(
    function: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int
) -> list[Result]:
    """`function` of each task, in the order of the tasks; the first error is raised."""
    tasks = list(tasks)
    if n_threads == 1 or len(tasks) < 2:
        return [function(task) for task in tasks]
    with ThreadPoolExecutor(min(n_threads, len(tasks))) as pool:
        return list(pool.map(function, tasks))


def run_in_parts(
    function: Callable[[Task], Result], tasks: Sequence[Task], n_threads: int
) -> list[Result]:
    """As `run_tasks`, with one part of the tasks for each thread: for many small tasks."""
    parts = [tasks[part] for part in split_evenly(len(tasks), n_threads)]
    done = run_tasks(lambda part: [function(task) for task in part], parts, n_threads)
    return [result for part in done for result in part]


def run_ahead(
    function: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int
) -> Iterator[Result]:
    """`function` of each task, in their order; the next ones while the caller is at the last."""
    tasks = list(tasks)
    if n_threads == 1 or len(tasks) < 2:
        yield from map(function, tasks)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting = deque(pool.submit(function, task) for task in tasks[:n_threads])
        for task in tasks[n_threads:]:
            result = waiting.popleft().result()
            waiting.append(pool.submit(function, task))
            yield result
        yield from (each.result() for each in waiting)


def read_ahead(items: Iterator[Result], n_threads: int) -> Iterator[Result]:
    """The items; the next one is made while the caller is at the last, if there are threads."""
    if n_threads == 1:
        yield from items
        return
    end = object()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, end)
        while (item := waiting.result()) is not end:
            waiting = pool.submit(next, items, end)
            yield item  # type: ignore[misc]


def split_columns(n_columns: int, n_parts: int) -> list[slice]:
    """Columns in parts that do not share cache lines, unless that leaves some without work."""
    is_enough = n_columns >= 2 * n_parts * COLUMN_GROUP
    return split_evenly(n_columns, n_parts, COLUMN_GROUP if is_enough else 1)


def split_rows(n_rows: int, n_threads: int) -> list[slice]:
    """Rows in parts of whole blocks, several for each thread: some are held up by others' work."""
    return split_evenly(n_rows, 4 * n_threads if n_threads > 1 else 1, CODED_ROWS)


def split_evenly(n: int, n_parts: int, multiple: int = 1) -> list[slice]:
    """`range(n)` in at most `n_parts` slices whose starts are multiples of `multiple`.

    >>> split_evenly(20, 2, multiple=8)
    [slice(0, 16, None), slice(16, 20, None)]
    """
    size = max(multiple, -(-n // max(1, n_parts) // multiple) * multiple)
    return [slice(start, min(n, start + size)) for start in range(0, n, size)]
