"""Signals at random moments: nothing half-written is left, and what was stopped can go on."""

from __future__ import annotations

import functools
import shutil
import signal
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz.calls import write_model
from fuzz.judging import DONE, find_faults, list_files
from fuzz.processes import call, empty_folder, in_child
from fuzz.tables import Spec, draw_genes, draw_table, encode, make_columns, make_genes

SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}
_ROLES = ("--target", "y", "--environment", "place", "--n-jobs", "1")
_PREDICT = ("predict", "given.json", "data.csv", "--force", "--quiet", "--out")
_COMMANDS: dict[str, tuple[str, ...]] = {
    "fit": (
        "fit",
        "data.csv",
        *_ROLES,
        "--out",
        "m.json",
        "--report",
        "r.html",
        "--force",
        "--no-path",
        "--stability",
        "0",
        "--no-validation",
    ),
    "pack": ("pack", "genes.Rtab", "--out", "x.bits", "--quiet", "--force"),
    "predict": (*_PREDICT, "p.csv"),
    "predict parquet": (*_PREDICT, "p.parquet"),
}
_SHARES = ("fit",) * 6 + ("pack",) * 6 + ("predict",) * 4 + ("predict parquet",) * 2


class Undisturbed(NamedTuple):
    """What a command leaves when nobody stops it, and how long it takes."""

    files: dict[str, bytes]
    seconds: float


def make(rng: Random) -> Spec:
    """A command, a signal, and the share of its time after which it comes."""
    command = rng.choice(_SHARES)
    return {
        "command": command,
        "signal": rng.choice(list(SIGNALS)),
        "moment": rng.uniform(0.0, 1.05),
        # imports and compiled code are interrupted only in a process that does them
        "real": rng.random() < 0.1,
    }


@functools.lru_cache
def make_inputs() -> dict[str, bytes]:
    """Tables large enough that writing what comes of them takes a while."""
    table = draw_table(Random(5), plain=True) | {
        "rows": list(range(4_000)),
        "columns": list(range(6)),
    }
    genes = draw_genes(Random(6), plain=True)
    genes |= {"genomes": list(range(130)), "genes": list(range(3_000))}
    columns = in_child(make_columns, table)
    columns[2] = ("x0", "float", [float(i % 90) for i in range(4_000)])
    columns[3] = ("x1", "float", [float(i % 7) for i in range(4_000)])
    return {"data.csv": encode(columns, {"ending": ".csv"}), "genes.Rtab": make_genes(genes)}


def _write_inputs(work: Path) -> None:
    for name, content in make_inputs().items():
        (work / name).write_bytes(content)
    write_model(work)


@functools.lru_cache
def run_undisturbed(command: str, real: bool) -> Undisturbed:
    """The same command without a signal."""
    with empty_folder() as folder:
        _write_inputs(folder / "work")
        outcome = call(folder, _COMMANDS[command], real=real, limit=300)
        assert outcome.status == DONE, outcome
        return Undisturbed(list_files(folder / "work"), outcome.seconds)


def judge(spec: Spec, folder: Path) -> list[str]:
    """Kill it, look at what is there, and run it again."""
    command, number, real = spec["command"], SIGNALS[spec["signal"]], spec["real"]
    undisturbed = run_undisturbed(command, real)
    words, work = _COMMANDS[command], folder / "work"
    _write_inputs(work)
    kill = (number, spec["moment"] * undisturbed.seconds)
    outcome = call(folder, words, real=real, kill=kill, limit=300)
    faults = find_faults(outcome, signalled=number)
    if outcome.status == 130 and b"Stopped." not in outcome.err:
        faults.append(f"no word of having been stopped: {outcome.err[-200:]!r}")
    is_dead = number == signal.SIGKILL
    faults += _judge_files(work, undisturbed, may_be_stale=is_dead)
    if not is_dead:
        left = list_files(folder / "tmp")
        faults += [f"stray temporary file {name} after {spec['signal']}" for name in left]
    shutil.rmtree(folder / "tmp")
    (folder / "tmp").mkdir()
    outcome = call(folder, words, real=real, limit=300)
    faults += find_faults(outcome)
    if list_files(work) != undisturbed.files:
        faults.append(f"run again after {spec['signal']}, {_tell_difference(work, undisturbed)}")
    return faults


def _judge_files(work: Path, undisturbed: Undisturbed, *, may_be_stale: bool) -> list[str]:
    """Every file is whole."""
    faults = []
    for name, content in list_files(work).items():
        whole = undisturbed.files.get(name)
        is_stale = may_be_stale and Path(name).name.startswith(".icscm-")
        if whole is None and not is_stale:
            faults.append(f"stray file {name}")
        elif whole is not None and content != whole:
            faults.append(f"half-written file {name}: {len(content)} of {len(whole)} bytes")
    return faults


def _tell_difference(work: Path, undisturbed: Undisturbed) -> str:
    found, expected = list_files(work), undisturbed.files
    changed = [name for name in found.keys() & expected if found[name] != expected[name]]
    lost, more = sorted(expected.keys() - found), sorted(found.keys() - expected)
    return f"missing {lost}, too many {more}, different {changed}"
