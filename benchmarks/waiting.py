"""Times that a user waits for: commands, imports, the first compilation and small fits.

    python benchmarks/waiting.py                    some minutes
    python benchmarks/waiting.py --against FOLDER   alternating with another checkout
    python benchmarks/waiting.py --quick            small sizes, to see that it runs

All numbers are CPU seconds of user and system, the least of several runs, each in a separate
process. `import numpy` is the reference: on a busy machine all times grow alike.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd

from common import HERE, make_floats

ROLES = "--target y --environment e --force"
PROGRAM = "-m icscm"
# A fit in Python: the least of some, after one that loads the kernels.
FIT = """
import sys, time
import pandas
from common import make_few_valued, make_floats
from icscm import ICSCMClassifier, SCMClassifier
data = {data}
X = {table}
learner = {learner}
times = []
for _ in range({n}):
    start = time.process_time()
    learner.fit(X, data["y"], environments=data["e"])
    times.append(time.process_time() - start)
print(min(times[1:]))
"""
FRAME = "pandas.DataFrame(data['X']).rename(columns=str)"
LEARNER_OF_RULES = "SCMClassifier(p=10, max_rules={}, n_jobs=1)"


class Measurement(NamedTuple):
    """What was measured, the target as text, and the seconds (or a ratio) of each checkout."""

    what: str
    target: str
    numbers: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    checkouts = [HERE.parent] if options.against is None else [options.against, HERE.parent]
    headings = ["after"] if options.against is None else ["before", "after"]
    print("|".join(["", "what", *headings, "to be", ""]))
    print("|---|" + "---|" * (len(checkouts) + 1), flush=True)
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(checkouts, is_quick=options.quick)
        for measured in measure(checkouts, is_quick=options.quick):
            cells = [f"{number:.3g}" for number in measured.numbers]
            print("|".join(["", measured.what, *cells, measured.target, ""]), flush=True)


def prepare(checkouts: list[Path], *, is_quick: bool) -> None:
    """Write the tables, and a model of each checkout."""
    write_narrow(n_rows=1_000 if is_quick else 20_000)
    if is_quick:
        write_wide(n_rows=1_000, n_columns=20)
    else:
        write_wide(n_rows=200_000, n_columns=200)
    for checkout in checkouts:  # each reads the model that it has written
        model = name_model(checkout)
        run(checkout, f"{PROGRAM} fit t.csv {ROLES} --no-validation --out {model}")


def write_narrow(n_rows: int) -> None:
    """Numbers."""
    data = make_floats(n_rows, 12)
    frame = pd.DataFrame(data["X"].round(4)).rename(columns=lambda j: f"x{j}")
    frame.assign(y=data["y"], e=data["e"]).to_csv("t.csv", index=False)


def write_wide(n_rows: int, n_columns: int) -> None:
    """Numbers and words."""
    rng = np.random.default_rng(0)
    words = np.array(["yes", "no", "unknown", "male", "female"])
    columns = {f"n{j}": (100 * rng.random(n_rows)).round(2) for j in range(n_columns // 2)}
    columns |= {f"w{j}": words[rng.integers(0, 5, n_rows)] for j in range(n_columns // 2)}
    columns |= {"y": rng.integers(0, 2, n_rows), "e": rng.integers(0, 3, n_rows)}
    pd.DataFrame(columns).to_csv("wide.csv", index=False)


def name_model(checkout: Path) -> str:
    return "m.json" if checkout.resolve() == HERE.parent else "before.json"


def adapt(checkout: Path, words: str | list[str]) -> list[str]:
    """The words of a command as this checkout knows it: 0.2.0 never validates."""
    if isinstance(words, str):
        words = words.split()
    may_validate = (checkout / "src" / "icscm" / "cli" / "options.toml").exists()
    if "icscm" in words and not may_validate:
        words = [word for word in words if word != "--no-validation"]
    return [name_model(checkout) if word == "m.json" else word for word in words]


def measure(checkouts: list[Path], *, is_quick: bool) -> Iterator[Measurement]:
    n = 1 if is_quick else 5

    def take_cpu_seconds(words: str | list[str], n_turns: int = n) -> list[float]:
        return take_turns(checkouts, words, n_turns)

    numpy = take_cpu_seconds(["-c", "import numpy"])
    reader = take_cpu_seconds(["-c", "import pyarrow.csv; pyarrow.array([1])"])
    yield Measurement("`import numpy`", "-", numpy)
    yield Measurement("`import pyarrow.csv`, which imports pandas for its first array", "-", reader)

    limit = f"{2 * numpy[-1]:.2g}"
    for command in ("show m.json", "export m.json --to sql"):
        yield Measurement(f"`icscm {command}`", limit, take_cpu_seconds(f"{PROGRAM} {command}"))
    predict = f"{PROGRAM} predict m.json t.csv --out p.csv --force"
    limit_of_predict = f"{numpy[-1] + reader[-1]:.2g}"
    yield Measurement("`icscm predict`, 20,000 rows", limit_of_predict, take_cpu_seconds(predict))

    fit = f"{PROGRAM} fit t.csv {ROLES} --out n.json"
    yield Measurement("`icscm fit`, 20,000 x 12, validated", "-", take_cpu_seconds(fit))
    plain = take_cpu_seconds(f"{fit} --no-validation")
    yield Measurement("the same with `--no-validation`", "2.5", plain)
    first_ever = take_turns(checkouts, f"{fit} --no-validation", 1, is_first=True)
    compilation = [first - later for first, later in zip(first_ever, plain, strict=True)]
    yield Measurement("compilation in the first fit ever", "5", compilation)
    fit_wide = f"{PROGRAM} fit wide.csv {ROLES} --no-validation --out w.json"
    yield Measurement(
        "`icscm fit`, text of 200,000 x 200, half of it words", "10", take_cpu_seconds(fit_wide, 2)
    )
    yield from measure_fits(checkouts, is_quick=is_quick)


def measure_fits(checkouts: list[Path], *, is_quick: bool) -> Iterator[Measurement]:
    """Times of fits in Python, without the start of a process."""

    def take_fit_seconds(n_turns: int, **parts: object) -> list[float]:
        code = FIT.format(**parts)
        return take_turns(checkouts, ["-c", code], n_turns, is_printed=True)

    small = f"make_few_valued({1_000 if is_quick else 16_000}, 10, 2)"
    default = "ICSCMClassifier(n_jobs=1)"
    for kind, table, target in (("array", "data['X']", "0.004"), ("frame", FRAME, "0.0055")):
        seconds = take_fit_seconds(2, data=small, table=table, learner=default, n=40)
        yield Measurement(f"default fit, 16,000 x 10, {kind}", target, seconds)

    large = "make_floats(2_000, 20)" if is_quick else "make_floats(150_000, 150)"
    rules_100 = LEARNER_OF_RULES.format(100)
    rules_10 = LEARNER_OF_RULES.format(10)
    seconds_of_100 = take_fit_seconds(1, data=large, table="data['X']", learner=rules_100, n=4)
    seconds_of_10 = take_fit_seconds(1, data=large, table="data['X']", learner=rules_10, n=4)
    of_further_rule = [
        (more - fewer) / 90 for more, fewer in zip(seconds_of_100, seconds_of_10, strict=True)
    ]
    yield Measurement("each further rule, 150,000 x 150", "0.0005", of_further_rule)

    single = "data['X'].astype('f4')"
    seconds_of_single = take_fit_seconds(1, data=large, table=single, learner=rules_10, n=4)
    ratios = [
        single / double for single, double in zip(seconds_of_single, seconds_of_10, strict=True)
    ]
    yield Measurement("float32 over float64", "0.6", ratios)


def take_turns(
    checkouts: list[Path],
    words: str | list[str],
    n_turns: int,
    *,
    is_printed: bool = False,
    is_first: bool = False,
) -> list[float]:
    """The least CPU seconds with each checkout, or the least number printed."""
    numbers_by_checkout: list[list[float]] = [[] for _ in checkouts]
    for _ in range(n_turns):
        for checkout, numbers in zip(checkouts, numbers_by_checkout, strict=True):
            numbers.append(run(checkout, words, is_printed=is_printed, is_first=is_first))
    return [min(numbers) for numbers in numbers_by_checkout]


def run(
    checkout: Path, words: str | list[str], *, is_printed: bool = False, is_first: bool = False
) -> float:
    """CPU seconds of a process with this checkout, or the number that it prints.

    Compiled code is kept from one run to the next, unless this is to be the first ever.
    """
    cache = checkout.resolve() / "benchmarks" / ".work" / "waiting"
    with TemporaryDirectory() as empty:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(checkout.resolve() / "src"), str(HERE)]),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "",
            "NUMBA_CACHE_DIR": empty if is_first else str(cache / "kernels"),
            "PYTHONPYCACHEPREFIX": str(cache / "bytecode"),
        }
        command = [sys.executable, *adapt(checkout, words)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if is_printed:
        return float(done.stdout)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
