"""Count the calls of functions of this package in a fit, a report and a command.

    python benchmarks/trace_calls.py            a table: calls, distinct functions, modules
    python benchmarks/trace_calls.py --list     and the functions, by the number of calls

Calls of Python functions defined in the package, in the thread that calls; comprehensions and
lambdas count with the function around them. Compiled kernels are not traced. Each call is traced at
its second run: the first one compiles and imports. To trace another checkout, set PYTHONPATH to its
src folder.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import icscm
from icscm import ICSCMClassifier, InvariantTreeClassifier
from icscm.cli import main as run_command
from icscm.datasets import make_conjunction, make_hospitals

PACKAGE = str(Path(icscm.__file__).parent)


def trace(task: Callable[[], Any]) -> Counter[CodeType]:
    """How often each of our functions is called."""
    calls: Counter[CodeType] = Counter()

    def record(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_ours = code.co_filename.startswith(PACKAGE)
        is_named = not code.co_name.startswith("<")  # no comprehension, no lambda
        if event == "call" and is_ours and is_named:
            calls[code] += 1

    task()
    sys.setprofile(record)
    try:
        task()
    finally:
        sys.setprofile(None)
    return calls


def make_tasks(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    data = make_conjunction(8_000, 7, random_state=0)  # 16,000 x 10
    X = data.X.to_numpy()
    yield (
        "`ICSCMClassifier().fit(array)`",
        lambda: ICSCMClassifier(n_jobs=-1).fit(X, data.y, environments=data.environments),
    )

    admissions = make_hospitals(random_state=0)
    tree = InvariantTreeClassifier(n_jobs=-1)
    tree.fit(admissions.X, admissions.y, environments=admissions.environments)
    yield "tree `report().to_html()`", lambda: tree.report().to_html()

    path = folder / "x.csv"
    data.X.assign(y=data.y, site=data.environments).to_csv(path, index=False)
    words = ["fit", str(path), "--target", "y", "--environment", "site"]

    def fit_file() -> None:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            run_command(words)

    yield "`icscm fit x.csv`", fit_file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="the functions, by number of calls")
    is_listed = parser.parse_args().list
    warnings.simplefilter("ignore")
    print("| way | calls | functions | modules |\n|---|--:|--:|--:|")
    calls_by_task = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, task in make_tasks(Path(folder)):
            calls = trace(task)
            calls_by_task[name] = calls
            modules = {code.co_filename for code in calls}
            print(f"| {name} | {calls.total():,} | {len(calls):,} | {len(modules)} |", flush=True)
    if is_listed:
        for name, calls in calls_by_task.items():
            print(f"\n{name}")
            print_functions(calls)


def print_functions(calls: Counter[CodeType]) -> None:
    """Print the functions, the most frequent ones first."""
    for code, n in calls.most_common():
        module = os.path.relpath(code.co_filename, PACKAGE)
        print(f"{n:6,}  {module}:{code.co_firstlineno} {code.co_qualname}")


if __name__ == "__main__":
    main()
