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

_PARTS_PER_THREAD = 4


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads to use, counted from that of all cores when negative.

    None means what it means in scikit-learn: 1, or the value of a `joblib.parallel_config` around
    the call. In a worker of joblib it is 1: its neighbours have the other cores.

    >>> count_threads(3), count_threads(None)
    (3, 1)
    """
    if n_jobs is None:
        return count_threads(_find_jobs_of_joblib())
    if n_jobs > 0:
        return n_jobs
    return max(1, _count_cores() + 1 + n_jobs)


def _find_jobs_of_joblib() -> int:
    """Return the `n_jobs` of a `joblib.parallel_config` around the call, by default 1."""
    parallel = sys.modules.get("joblib.parallel")
    if parallel is None:  # without joblib nothing can ask for more
        return 1
    backend, n_jobs = parallel.get_active_backend()
    is_in_worker = backend.nesting_level
    return 1 if is_in_worker else n_jobs or 1


def _count_cores() -> int:
    """Count the cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_tasks(
    function: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int
) -> list[Result]:
    """Return `function` of each task, in the order of the tasks; the first error is raised."""
    tasks = list(tasks)
    if n_threads == 1 or len(tasks) < 2:
        return [function(task) for task in tasks]
    with ThreadPoolExecutor(min(n_threads, len(tasks))) as pool:
        return list(pool.map(function, tasks))


def run_in_parts(
    function: Callable[[Task], Result], tasks: Sequence[Task], n_threads: int
) -> list[Result]:
    """Do as `run_tasks`, with one part of the tasks for each thread: for many small tasks."""

    def run_part(part: slice) -> list[Result]:
        return [function(task) for task in tasks[part]]

    results_of_parts = run_tasks(run_part, split_evenly(len(tasks), n_threads), n_threads)
    return [result for results in results_of_parts for result in results]


def run_ahead(
    function: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int
) -> Iterator[Result]:
    """Yield `function` of each task, in their order; the next ones run while the caller works."""
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
        for future in waiting:
            yield future.result()


def read_ahead(items: Iterator[Result], n_threads: int) -> Iterator[Result]:
    """Yield the items; the next one is made while the caller works, if there are threads."""
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
    """Split columns into parts that do not share cache lines, unless some would have no work."""
    has_enough = n_columns >= 2 * n_parts * COLUMN_GROUP
    return split_evenly(n_columns, n_parts, multiple=COLUMN_GROUP if has_enough else 1)


def split_rows(n_rows: int, n_threads: int) -> list[slice]:
    """Split rows into whole blocks, several for each thread: some are held up by others' work."""
    n_parts = _PARTS_PER_THREAD * n_threads if n_threads > 1 else 1
    return split_evenly(n_rows, n_parts, multiple=CODED_ROWS)


def split_evenly(n: int, n_parts: int, multiple: int = 1) -> list[slice]:
    """Split `range(n)` into at most `n_parts` slices whose starts are multiples of `multiple`.

    >>> split_evenly(20, 2, multiple=8)
    [slice(0, 16, None), slice(16, 20, None)]
    """
    size_of_equal_parts = divide_up(n, max(1, n_parts))
    size_in_multiples = divide_up(size_of_equal_parts, multiple)
    size = max(multiple, size_in_multiples * multiple)
    return [slice(start, min(n, start + size)) for start in range(0, n, size)]


def divide_up(n: int, size: int) -> int:
    """Divide and round up: how many parts of at most some size n things make.

    >>> divide_up(20, 8)
    3
    """
    return (n + size - 1) // size
