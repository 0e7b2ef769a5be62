"""Try hostile inputs, and say how many did harm: `make fuzz`.

python tests/fuzz                           all areas, minutes; run again, it goes on
python tests/fuzz --areas calls,stores      some of them
python tests/fuzz --share 0.1               a tenth of the cases
python tests/fuzz --replay .fuzz/calls-1b   a failing case again
python tests/fuzz --table docs/reliability.md   write the table of what was tried there
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# before NumPy is imported, here and by those that are started: forks and threads do not mix
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
sys.path[0] = str(Path(__file__).parents[1])  # the package is called fuzz here as in the tests
ROOT = Path(__file__).parents[2]

from fuzz.areas import AREAS, Result, prepare, run_case, try_case  # noqa: E402
from fuzz.processes import SOURCES, warm_up  # noqa: E402
from icscm import __version__  # noqa: E402

# Cases handed out ahead of the one that is next in the table: some take a minute.
_AHEAD = 200
BEGIN, END = "<!-- tried: written by make fuzz -->", "<!-- end of what make fuzz writes -->"


def main() -> int:
    """Try what has not been tried yet; 0 if nothing was violated."""
    options = read_options()
    if options.replay is not None:
        return replay(options.replay)
    state = State(options.folder, options.seed, fresh=options.fresh)
    if options.table is not None:
        write_table(options.table, options.folder)
        return 0
    areas = options.areas.split(",") if options.areas else list(AREAS)
    wanted = {name: max(1, round(AREAS[name].n_cases * options.share)) for name in areas}
    until = time.monotonic() + 60 * options.minutes
    start, n_before = time.monotonic(), state.n_tried
    for result in run_all(state, wanted, options):
        state.add(result)
        for fault in result.faults[:1]:
            print(f"{result.area} {result.index}: {fault[:400]}", flush=True)
        if time.monotonic() > until:
            print("Time is up; run it again to go on.")
            break
    seconds = time.monotonic() - start
    n = state.n_tried - n_before
    print(format_table([state]))
    print(f"{n:,} cases in {seconds:.0f} s with {options.jobs} processes.")
    return int(state.n_failed > 0)


def read_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description="Try hostile inputs.")
    parser.add_argument("--seed", type=int, default=0, help="of the cases")
    parser.add_argument("--areas", help=f"some of {','.join(AREAS)}")
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of cases")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after so many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--folder", type=Path, default=ROOT / ".fuzz", help="for what was tried")
    parser.add_argument("--fresh", action="store_true", help="forget what was tried")
    parser.add_argument("--replay", type=Path, metavar="CASE", help="run a kept case again")
    parser.add_argument("--table", type=Path, metavar="PAGE", help="write what was tried there")
    return parser.parse_args()


# --- what was tried -------------------------------------------------------------------------------


class State:
    """What was tried, by area, in a folder: a run that was stopped goes on from there.

    With other code all begins anew: what older code did tells nothing. Each seed has its own file.
    """

    def __init__(self, folder: Path, seed: int, *, fresh: bool) -> None:
        self.folder, self.seed = folder, seed
        self._path = folder / f"state-{seed}.json"
        self.areas: dict[str, dict[str, Any]] = {}
        self.code = compute_code()
        folder.mkdir(exist_ok=True)
        if self._path.exists() and not fresh:
            known = json.loads(self._path.read_text())
            if known["code"] == self.code:
                self.areas = known["areas"]
            else:
                print("The code has changed: all is tried anew.", flush=True)

    @property
    def n_tried(self) -> int:
        """Cases, in all areas."""
        return sum(area["tried"] for area in self.areas.values())

    @property
    def n_failed(self) -> int:
        """Of them, those in which something was violated."""
        return sum(len(area["failed"]) for area in self.areas.values())

    def get(self, area: str) -> dict[str, Any]:
        """What is known of an area."""
        return self.areas.setdefault(area, {"tried": 0, "failed": [], "seconds": 0.0})

    def add(self, result: Result) -> None:
        """One more case, and save."""
        area = self.get(result.area)
        area["tried"] += 1
        area["seconds"] += result.seconds
        area["failed"] += [result.index] if result.faults else []
        document = {"seed": self.seed, "code": self.code, "areas": self.areas}
        partial = self._path.with_suffix(".new")
        partial.write_text(json.dumps(document))
        partial.replace(self._path)


def compute_code() -> str:
    """A checksum of the package and of this trial."""
    paths = [*SOURCES.glob("icscm/**/*.py"), *Path(__file__).parent.glob("*.py")]
    total = hashlib.blake2b(digest_size=8)
    for path in sorted(paths):
        total.update(path.read_bytes())
    return total.hexdigest()


def format_table(states: Sequence[State]) -> str:
    """Tried and failed, by area and seed, as Markdown."""
    seeds = "".join(f" tried, seed {state.seed} | violations |" for state in states)
    lines = [f"| area | what |{seeds}", "|---|---|" + "--:|--:|" * len(states)]
    for name, area in AREAS.items():
        known = [state.areas.get(name, {"tried": 0, "failed": []}) for state in states]
        cells = "".join(f" {each['tried']:,} | {len(each['failed']):,} |" for each in known)
        lines += [f"| {name} | {area.what} |{cells}"] if any(k["tried"] for k in known) else []
    cells = "".join(f" {state.n_tried:,} | {state.n_failed:,} |" for state in states)
    return "\n".join([*lines, f"| all | |{cells}"])


def write_table(page: Path, folder: Path) -> None:
    """Put the table, of all seeds that were tried, between its marks."""
    seeds = sorted(int(path.stem.partition("-")[2]) for path in folder.glob("state-*.json"))
    states = [state for seed in seeds if (state := State(folder, seed, fresh=False)).n_tried]
    head, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    table = f"icscm {__version__}.\n\n{format_table(states)}"
    page.write_text(f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}", "utf-8")


# --- trying ---------------------------------------------------------------------------------------


def run_all(state: State, wanted: dict[str, int], options: argparse.Namespace) -> Iterator[Result]:
    """What has not been tried yet, in order, in some processes."""
    pool = ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), initializer=prepare)
    try:
        futures = (
            pool.submit(try_case, options.seed, area, index, options.folder)
            for area, index in list_cases(state, wanted)
        )
        running = list(islice(futures, _AHEAD))
        while running:
            yield running.pop(0).result()
            running += islice(futures, 1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def list_cases(state: State, wanted: dict[str, int]) -> list[tuple[str, int]]:
    """Areas in turn, each as often as there are cases: whenever it stops, all have been tried."""
    cases = [
        ((i + 0.5) / n, name, i)
        for name, n in wanted.items()
        for i in range(state.get(name)["tried"], n)
    ]
    return [(name, i) for _, name, i in sorted(cases)]


def replay(path: Path) -> int:
    """A case that was kept, once more."""
    warm_up()
    case = json.loads((path / "case.json" if path.is_dir() else path).read_text())
    faults = run_case(case["area"], case["spec"])
    print(*(faults or ["Nothing was violated."]), sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
