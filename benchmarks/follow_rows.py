"""Count the functions that a table passes through from `fit` to its first counts.

    python benchmarks/follow_rows.py                these numbers, for arrays and for frames
    python benchmarks/follow_rows.py --functions    and the functions, in the order of their calls

Whoever follows the data has to read these functions: those of the package that are called with the
table, with one of its columns, or with an object that holds them, until a `CountCube` exists. To
follow another version, set PYTHONPATH to the folder that contains it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import icscm
from icscm.datasets import make_conjunction

PACKAGE = str(Path(icscm.__file__).parent)
N_ROWS_OF_ENVIRONMENT = 1237
N_ROWS = 2 * N_ROWS_OF_ENVIRONMENT  # no other size in a fit is the same


class RowFollower:
    """Records the functions that are called with rows, until counts exist."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.has_counts = False

    def __enter__(self) -> RowFollower:
        sys.setprofile(self._record)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)

    def _record(self, frame: FrameType, event: str, result: Any) -> None:
        if self.has_counts or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if event == "return" and type(result).__name__ == "CountCube":
            self.has_counts = True
        is_function = "<" not in frame.f_code.co_qualname  # no comprehension, no generated method
        if event == "call" and is_function and receives_rows(frame):
            self._add(frame)

    def _add(self, frame: FrameType) -> None:
        name = f"{frame.f_globals['__name__']}:{frame.f_code.co_qualname}"
        if name not in self.functions:
            self.functions.append(name)

    def count_packages(self) -> int:
        return len({name.partition(":")[0].split(".")[1] for name in self.functions})


def receives_rows(frame: FrameType) -> bool:
    """Whether an argument is a table or a column of all rows, or holds one as an attribute."""
    arguments = list(frame.f_locals.values())  # at the call there is nothing else
    return any(has_all_rows(value) for value in list_values(arguments))


def list_values(arguments: list[Any]) -> Iterator[Any]:
    for argument in arguments:
        yield argument
        if isinstance(argument, list | tuple):
            yield from argument
        else:
            yield from getattr(argument, "__dict__", {}).values()


def has_all_rows(value: Any) -> bool:
    if not isinstance(value, np.ndarray | pd.DataFrame | pd.Series):
        return False
    return N_ROWS in value.shape


def follow(table: Any, data: Any) -> RowFollower:
    learner = icscm.ICSCMClassifier(model_type="conjunction", n_jobs=1)
    with RowFollower() as follower:
        learner.fit(table, data.y, environments=data.environments)
    return follower


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the functions that rows pass through.")
    parser.add_argument("--functions", action="store_true", help="list them")
    options = parser.parse_args()

    data = make_conjunction(N_ROWS_OF_ENVIRONMENT, random_state=0)
    frame = data.X.assign(age=np.random.default_rng(0).normal(size=N_ROWS))
    print(f"icscm {icscm.__version__}")
    for kind, table in {"array": frame.to_numpy(), "frame": frame}.items():
        follower = follow(table, data)
        n_functions = len(follower.functions)
        print(f"{kind}: {n_functions} functions in {follower.count_packages()} packages")
        if options.functions:
            print("".join(f"  {name}\n" for name in follower.functions))


if __name__ == "__main__":
    main()
