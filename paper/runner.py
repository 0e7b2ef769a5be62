"""Run an experiment task by task, row by row into a file, so that it can be killed and go on.

A task is one cell of the experiment and one repetition; its seed follows from its own
description, so that its result depends neither on the order of the tasks nor on the number of
processes. Rows are written in the order of the tasks, whole lines at a time: a resumed run
writes the same file as an uninterrupted one.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import signal
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from math import inf
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

from icscm.exceptions import IcscmError, IcscmWarning

Task = dict[str, Any]
Row = dict[str, Any]
Rows = Sequence[Row]
# A task in, the columns of its row beside the task's own out.
RunTask = Callable[[Task, int], Row]

# Tasks handed out per process ahead of the one that is next in the file.
_AHEAD = 4


@dataclass(frozen=True)
class Plan:
    """What to run: tasks, the function that runs one, and the columns it returns."""

    tasks: Sequence[Task]
    run: RunTask
    columns: Sequence[str]


def make_seed(seed: int, *parts: Any) -> int:
    """A seed that is the same for the same parts, and unrelated for others."""
    text = json.dumps([seed, *parts], sort_keys=True, default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def run_plan(
    plan: Plan,
    path: Path,
    *,
    n_jobs: int,
    on_done: Callable[[], None] = lambda: None,
    until: float = inf,
) -> list[Row]:
    """Run what `path` does not hold yet; return all rows, as strings, in the order of the tasks.

    At the time `until` (of `time.monotonic`) tasks that are not done are given up.
    """
    header = [*plan.tasks[0], *plan.columns]
    n_done = _prepare_file(path, header, plan)
    for _ in range(n_done):
        on_done()
    remaining = plan.tasks[n_done:]
    with path.open("a", newline="", encoding="utf-8") as file:
        for task, result in _run_in_order(plan, remaining, n_jobs=n_jobs, until=until):
            results = [result[name] for name in plan.columns]
            file.write(_format_line([*task.values(), *results]))
            file.flush()
            os.fsync(file.fileno())  # a row that is shown as done stays done
            on_done()
    return read_rows(path)


def read_rows(path: Path) -> list[Row]:
    """All whole rows of a result file."""
    return _parse(_read_whole_lines(path))


def _prepare_file(path: Path, header: Sequence[str], plan: Plan) -> int:
    """Make or mend the file; return how many of the first tasks it holds."""
    first_line = _format_line(header)
    text = _read_whole_lines(path) if path.exists() else ""
    if not text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(first_line, encoding="utf-8")
        return 0
    if not text.startswith(first_line):
        raise IcscmError(
            f"{path} holds the results of another experiment or version; "
            "choose another --out or remove it"
        )
    rows = _parse(text)
    for row, task in zip(rows, plan.tasks, strict=False):
        if any(row[name] != str(value) for name, value in task.items()):
            raise IcscmError(
                f"{path} was made with other settings (--runs, --seed or --quick); "
                "choose another --out or remove it"
            )
    if len(rows) > len(plan.tasks):
        raise IcscmError(f"{path} holds more runs than requested; choose another --out")
    # half a row at the end is cut off, nothing else is touched
    os.truncate(path, len(text.encode("utf-8")))
    return len(rows)


def _read_whole_lines(path: Path) -> str:
    """A killed run may leave half a row, or half a letter, at the end; it does not count."""
    whole = path.read_bytes()
    return whole[: whole.rfind(b"\n") + 1].decode("utf-8")


def _parse(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _format_line(values: Sequence[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def _run_in_order(
    plan: Plan, tasks: Sequence[Task], *, n_jobs: int, until: float
) -> Iterator[tuple[Task, Row]]:
    """Run tasks in this process or in several, until the time is up; results come in order."""
    if n_jobs > 1 and len(tasks) > 1:
        yield from _run_in_processes(plan, tasks, n_jobs=n_jobs, until=until)
        return
    for task in tasks:
        if monotonic() >= until:
            return
        yield task, run_task(plan.run, task)


def _run_in_processes(
    plan: Plan, tasks: Sequence[Task], *, n_jobs: int, until: float
) -> Iterator[tuple[Task, Row]]:
    """Keep processes busy with some tasks ahead of the one whose result comes next."""
    children_before = active_children()
    # fresh processes: forking one that has threads is asking for trouble
    with ProcessPoolExecutor(n_jobs, get_context("spawn"), _follow_parent) as pool:
        # lazy: a task is submitted when it is taken from here
        submitted = ((task, pool.submit(run_task, plan.run, task)) for task in tasks)
        running = deque(islice(submitted, _AHEAD * n_jobs))
        try:
            while running:
                task, future = running.popleft()
                running.extend(islice(submitted, 1))
                time_left = None if until == inf else max(0.0, until - monotonic())
                yield task, future.result(time_left)
        except TimeoutError:
            if monotonic() < until:  # a task's own
                raise
            for process in active_children():
                if process not in children_before:
                    process.terminate()
            running.clear()  # the pool fails those itself, now that its processes are gone
        finally:
            for _, future in running:
                future.cancel()


def _follow_parent() -> None:
    """In a worker: end when the process that started it does, however that is; not before."""
    parent = parent_process()
    if parent is None:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that waits

    def exit_after_parent() -> None:
        parent.join()
        os._exit(1)

    Thread(target=exit_after_parent, daemon=True).start()


def run_task(run: RunTask, task: Task) -> Row:
    """One task with its own seed, quietly: what fits warn of is counted, not shown."""
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        return run(task, make_seed(0, *sorted(task.items())) % (2**63))


def run_or_record(task: Task, seed: int, run: RunTask, columns: Sequence[str]) -> Row:
    """The row of a task and no `error`; of a task that fails, its error and nothing else.

    For studies of hours, which one method that fails must not end.
    """
    try:
        return {**run(task, seed), "error": ""}
    except Exception as error:  # whatever it is, it is shown with the results
        return dict.fromkeys(columns, "") | {"error": f"{type(error).__name__}: {error}"}


def split_failed(rows: Rows) -> tuple[list[Row], list[str]]:
    """The rows without an error, and a sentence for each error."""
    done = [row for row in rows if not row["error"]]
    n_failed = Counter(row["error"] for row in rows if row["error"])
    texts = [f"{n} tasks failed: {error}" for error, n in n_failed.items()]
    return done, texts
