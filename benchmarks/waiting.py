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
from pathlib import Path
from tempfile import TemporaryDirectory

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
MANY = "SCMClassifier(p=10, max_rules={}, n_jobs=1)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    trees = [each for each in (options.against, HERE.parent) if each is not None]
    print("|".join(["", "what", *(["before", "after"][-len(trees) :]), "to be", ""]))
    print("|---|" + "---|" * (len(trees) + 1), flush=True)
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(trees, is_quick=options.quick)
        for what, target, found in measure(trees, is_quick=options.quick):
            cells = [f"{value:.3g}" for value in found]
            print("|".join(["", what, *cells, target, ""]), flush=True)


def prepare(trees: list[Path], *, is_quick: bool) -> None:
    data = make_floats(1_000 if is_quick else 20_000, 12)
    frame = pd.DataFrame(data["X"].round(4)).rename(columns=lambda j: f"x{j}")
    frame.assign(y=data["y"], e=data["e"]).to_csv("t.csv", index=False)
    n_rows, n_columns = (1_000, 20) if is_quick else (200_000, 200)
    rng = np.random.default_rng(0)
    words = np.array(["yes", "no", "unknown", "male", "female"])
    wide = {f"n{j}": (100 * rng.random(n_rows)).round(2) for j in range(n_columns // 2)}
    wide |= {f"w{j}": words[rng.integers(0, 5, n_rows)] for j in range(n_columns // 2)}
    wide |= {"y": rng.integers(0, 2, n_rows), "e": rng.integers(0, 3, n_rows)}
    pd.DataFrame(wide).to_csv("wide.csv", index=False)
    for tree in trees:  # each reads the model that it has written
        run(tree, f"{PROGRAM} fit t.csv {ROLES} --no-validation --out {name_model(tree)}")


def name_model(tree: Path) -> str:
    return "m.json" if tree.resolve() == HERE.parent else "before.json"


def adapt(tree: Path, words) -> list[str]:
    """The words of a command as this checkout knows it: 0.2.0 never validates."""
    words = words.split() if isinstance(words, str) else words
    if "icscm" in words and not (tree / "src" / "icscm" / "cli" / "options.toml").exists():
        words = [each for each in words if each != "--no-validation"]
    return [name_model(tree) if each == "m.json" else each for each in words]


def measure(trees: list[Path], *, is_quick: bool):
    n = 1 if is_quick else 5
    numpy = take_turns(trees, ["-c", "import numpy"], n)
    yield "`import numpy`", "-", numpy
    reader = take_turns(trees, ["-c", "import pyarrow.csv; pyarrow.array([1])"], n)
    yield "`import pyarrow.csv`, which imports pandas for its first array", "-", reader
    limit = f"{2 * numpy[-1]:.2g}"
    for words in ("show m.json", "export m.json --to sql"):
        yield f"`icscm {words}`", limit, take_turns(trees, f"{PROGRAM} {words}", n)
    words = f"{PROGRAM} predict m.json t.csv --out p.csv --force"
    both = f"{numpy[-1] + reader[-1]:.2g}"
    yield "`icscm predict`, 20,000 rows", both, take_turns(trees, words, n)
    fit = f"{PROGRAM} fit t.csv {ROLES} --out n.json"
    yield "`icscm fit`, 20,000 x 12, validated", "-", take_turns(trees, fit, n)
    plain = take_turns(trees, f"{fit} --no-validation", n)
    yield "the same with `--no-validation`", "2.5", plain
    first = take_turns(trees, f"{fit} --no-validation", 1, is_first=True)
    beyond = [a - b for a, b in zip(first, plain, strict=True)]
    yield "compilation in the first fit ever", "5", beyond
    wide = f"{PROGRAM} fit wide.csv {ROLES} --no-validation --out w.json"
    what = "`icscm fit`, text of 200,000 x 200, half of it words"
    yield what, "10", take_turns(trees, wide, 2)
    yield from measure_fits(trees, is_quick=is_quick)


def measure_fits(trees: list[Path], *, is_quick: bool):
    small = f"make_few_valued({1_000 if is_quick else 16_000}, 10, 2)"
    for what, table, target in (("array", "data['X']", "0.004"), ("frame", FRAME, "0.0055")):
        code = FIT.format(data=small, table=table, learner="ICSCMClassifier(n_jobs=1)", n=40)
        yield f"default fit, 16,000 x 10, {what}", target, take_turns(trees, ["-c", code], 2, True)
    many = f"make_floats({2_000 if is_quick else 150_000}, {20 if is_quick else 150})"
    fits = []
    for n_rules in (100, 10):
        code = FIT.format(data=many, table="data['X']", learner=MANY.format(n_rules), n=4)
        fits.append(take_turns(trees, ["-c", code], 1, True))
    each = [(a - b) / 90 for a, b in zip(*fits, strict=True)]
    yield "each further rule, 150,000 x 150", "0.0005", each
    code = FIT.format(data=many, table="data['X'].astype('f4')", learner=MANY.format(10), n=4)
    halved = take_turns(trees, ["-c", code], 1, True)
    yield "float32 over float64", "0.6", [a / b for a, b in zip(halved, fits[1], strict=True)]


def take_turns(trees, words, n: int, is_printed: bool = False, *, is_first: bool = False):
    """The least CPU seconds with each checkout, or the least number printed."""
    found: list[list[float]] = [[] for _ in trees]
    for _ in range(n):
        for tree, own in zip(trees, found, strict=True):
            own.append(run(tree, words, is_printed=is_printed, is_first=is_first))
    return [min(own) for own in found]


def run(tree: Path, words, *, is_printed: bool = False, is_first: bool = False) -> float:
    words = adapt(tree, words)
    folder = tree.resolve() / "benchmarks" / ".work" / "waiting"  # kept: code that is compiled
    paths = os.pathsep.join(map(str, (tree.resolve() / "src", HERE)))
    with TemporaryDirectory() as empty:
        own = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
        own["NUMBA_CACHE_DIR"] = empty if is_first else str(folder / "kernels")
        own["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, *words], env=os.environ | own, check=True, capture_output=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if is_printed:
        return float(done.stdout)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
