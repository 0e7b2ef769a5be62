"""What is tried: areas, how many cases of each by default, and one case from start to end."""

from __future__ import annotations

import ctypes
import json
import shutil
import signal
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz import (
    calls,
    files,
    kills,
    limits,
    models,
    names,
    newcomers,
    parallel,
    roles,
    sites,
    stores,
    surveys,
    wide,
)
from fuzz.judging import make_kind
from fuzz.processes import empty_folder, warm_up
from fuzz.shrinking import Spec, measure, shrink

_PR_SET_PDEATHSIG = 1
# Seconds to look for a smaller case.
PATIENCE = 40.0


@dataclass(frozen=True)
class Area:
    """Cases of one sort; `what` is for the table in the docs."""

    name: str
    n_cases: int
    what: str
    make: Callable[[Random], Spec]
    judge: Callable[[Spec, Path], list[str]]


AREAS = {
    area.name: area
    for area in (
        Area("calls", 3500, "tables and options for every command", calls.make, calls.judge),
        Area("models", 2400, "mutated and crafted model files", models.make, models.judge),
        Area("stores", 1900, "damaged and crafted `.bits` files", stores.make, stores.judge),
        Area("files", 1400, "damaged data files", files.make, files.judge),
        Area("names", 60, "hostile names, through every output", names.make, names.judge),
        Area(
            "roles", 1200, "a hostile name in each role of every command", roles.make, roles.judge
        ),
        Area(
            "newcomers",
            800,
            "levels written otherwise, absent columns, other units and types",
            newcomers.make,
            newcomers.judge,
        ),
        Area(
            "surveys",
            400,
            "weights times a factor, groups in three layouts",
            surveys.make,
            surveys.judge,
        ),
        Area("kills", 330, "kills by SIGINT, SIGTERM and SIGKILL", kills.make, kills.judge),
        Area("disk", 120, "a full disk", limits.make_disk, limits.judge_disk),
        Area("memory", 120, "limited memory", limits.make_memory, limits.judge_memory),
        Area(
            "rights", 16, "folders that cannot be written", limits.make_rights, limits.judge_rights
        ),
        Area("sites", 1000, "federated sites that lie or fail", sites.make, sites.judge),
        Area(
            "threads",
            150,
            "one model used by several threads or processes at once",
            parallel.make_threads,
            parallel.judge_threads,
        ),
        Area("dask", 50, "Dask frames and clusters", parallel.make_dask, parallel.judge_dask),
        Area("wide", 8, "many environments, levels, columns", wide.make, wide.judge),
    )
}


@dataclass(frozen=True)
class Result:
    """What became of a case."""

    area: str
    index: int
    seconds: float
    faults: list[str]


def draw_case(seed: int, area: str, index: int) -> Spec:
    """A case; the same for the same seed."""
    spec = AREAS[area].make(Random(f"{seed} {area} {index}"))
    return json.loads(json.dumps(spec))  # type: ignore[no-any-return]


def run_case(area: str, spec: Spec, keep: Path | None = None) -> list[str]:
    """Run a case in an empty folder; what was violated. `keep` gets what lay there."""
    with empty_folder() as folder:
        try:
            faults = AREAS[area].judge(spec, folder)
        except Exception:
            faults = [f"the trial itself failed: {traceback.format_exc()[-1500:]}"]
        if keep is not None:
            shutil.copytree(folder / "work", keep / "files", dirs_exist_ok=True)
        return faults


def keep_smallest(area: str, spec: Spec, faults: list[str], folder: Path) -> None:
    """Shrink a failing case and keep it, unless a smaller one of its kind is there already."""
    kind = make_kind(faults[0])
    place = folder / f"{area}-{abs(hash_text(kind)):08x}"
    known = place / "case.json"
    if known.exists() and measure(json.loads(known.read_text())["spec"]) <= measure(spec):
        return
    place.mkdir(parents=True, exist_ok=True)

    def fails(smaller: Spec) -> bool:
        return any(make_kind(fault) == kind for fault in run_case(area, smaller))

    smallest = shrink(spec, fails, PATIENCE)
    shutil.rmtree(place / "files", ignore_errors=True)
    faults = run_case(area, smallest, keep=place) or faults
    case = {"area": area, "faults": faults, "spec": smallest}
    known.write_text(json.dumps(case, indent=1))


def hash_text(text: str) -> int:
    """The same in every process."""
    return zlib.crc32(text.encode())


def prepare() -> None:
    """Of a process that runs cases: it ends with the one that started it, which Ctrl-C is for."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warm_up()


def try_case(seed: int, area: str, index: int, folder: Path) -> Result:
    """One case; if it fails, the smallest like it is kept."""
    start = time.monotonic()
    spec = draw_case(seed, area, index)
    faults = run_case(area, spec)
    seconds = time.monotonic() - start
    if faults:
        keep_smallest(area, spec, faults, folder)
    return Result(area, index, seconds, faults)
