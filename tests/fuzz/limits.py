"""Too little of something: disk, memory, rights."""

from __future__ import annotations

import functools
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from fuzz.calls import write_model
from fuzz.judging import DONE, REFUSED, find_faults, find_strays, list_files
from fuzz.kills import make_inputs
from fuzz.processes import Outcome, call, empty_folder
from fuzz.tables import Spec

_ROLES = ("--target", "y", "--environment", "place", "--quiet", "--n-jobs", "1")
_BRIEF = ("--no-path", "--stability", "0", "--no-validation")
# Words, with INPUTS for the folder of what is read, and the files that are written.
_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "fit": (("fit", "INPUTS/data.csv", *_ROLES, *_BRIEF, "--out", "m.json"), ("m.json",)),
    "report": (("fit", "INPUTS/data.csv", *_ROLES, *_BRIEF, "--report", "r.html"), ("r.html",)),
    "passes": (("fit", "INPUTS/parts", *_ROLES, "--out", "m.json"), ("m.json",)),
    "pack": (("pack", "INPUTS/genes.Rtab", "--out", "x.bits", "--quiet"), ("x.bits",)),
    "csv": (("predict", "INPUTS/m.json", "INPUTS/data.csv", "--out", "p.csv"), ("p.csv",)),
    "parquet": (
        ("predict", "INPUTS/m.json", "INPUTS/data.csv", "--out", "p.parquet"),
        ("p.parquet",),
    ),
    "simulate": (("simulate", "--out", "s.csv", "--n-samples", "2000"), ("s.csv",)),
    "export": (("export", "INPUTS/m.json", "--to", "sql", "--out", "e.sql"), ("e.sql",)),
    "tree": (
        (
            "fit",
            "INPUTS/data.csv",
            *_ROLES,
            "--model",
            "tree",
            *_BRIEF,
            "--tripod",
            "t.md",
            "--report",
            "r.html",
        ),
        ("r.html", "t.md"),
    ),
    "score": (
        ("fit", "INPUTS/data.csv", *_ROLES, "--model", "score", *_BRIEF[1:], "--out", "m.json"),
        ("m.json",),
    ),
    "screen": (
        ("screen", "INPUTS/data.csv", *_ROLES, "--estimator", "logistic", "--out", "kept.txt"),
        ("kept.txt",),
    ),
    "compare": (
        ("compare", "INPUTS/data.csv", *_ROLES[:-2], "--candidates", "scm", "--out", "c.csv"),
        ("c.csv",),
    ),
    "evaluate": (
        ("evaluate", "INPUTS/m.json", "INPUTS/data.csv", *_ROLES[:-2], "--report", "v.html"),
        ("v.html",),
    ),
    "recalibrate": (
        ("recalibrate", "INPUTS/m.json", "--prevalence", "0.2", "--out", "moved.json"),
        ("moved.json",),
    ),
    "r": (("export", "INPUTS/m.json", "--to", "r", "--out", "e.R"), ("e.R",)),
    "check": (("check", "INPUTS/data.csv", *_ROLES[:-2]), ()),
    "predict": (("predict", "INPUTS/m.json", "INPUTS/data.csv", "--quiet"), ()),
}
# Outputs that may also be a device or standard output: their endings are not looked at.
_WRITTEN = {"m.json", "kept.txt", "moved.json", "e.sql", "e.R"}
# Another user, who may read everything: Python itself may lie in somebody's home.
_READ = "+dac_read_search"
_AS_NOBODY = (
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
    f"--inh-caps={_READ}", f"--ambient-caps={_READ}",
)  # fmt: skip


def _write_inputs(folder: Path) -> None:
    inputs = folder / "inputs"
    (inputs / "parts").mkdir(parents=True)
    for name, content in make_inputs().items():
        (inputs / name).write_bytes(content)
    for part in "ab":
        (inputs / "parts" / f"{part}.csv").write_bytes(make_inputs()["data.csv"])
    write_model(inputs, "m.json")


def _run(
    folder: Path,
    command: str,
    setup: Callable[[], None],
    instead: Mapping[str, str] = MappingProxyType({}),
    **more: Any,
) -> Outcome:
    words = [instead.get(word, word) for word in _COMMANDS[command][0]]
    words = [word.replace("INPUTS", str(folder / "inputs")) for word in words]
    return call(folder, words, setup=setup, **more)


@functools.lru_cache
def _run_free(command: str) -> dict[str, bytes]:
    """What is written when nothing is short."""
    with empty_folder() as folder:
        _write_inputs(folder)
        outcome = _run(folder, command, lambda: None)
        assert outcome.status == DONE, outcome
        return list_files(folder / "work")


def _judge_outputs(folder: Path, command: str, outcome: Outcome) -> list[str]:
    """What is there is whole, nothing else is, and no hidden file is named."""
    faults = find_faults(outcome)
    expected = _run_free(command)
    outputs = _COMMANDS[command][1]
    faults += find_strays(folder, (), outputs)
    found = list_files(folder / "work")
    for name in outputs:
        # a comparison tells how long it took
        if name in found and _omit_digits(found[name]) != _omit_digits(expected[name]):
            faults.append(f"half-written {name}: {len(found[name])} of {len(expected[name])} bytes")
        if outcome.status == DONE and name not in found:
            faults.append(f"{name} was not written, and nothing said")
    if b".icscm-" in outcome.err:
        faults.append(f"names a hidden file: {outcome.err[-300:]!r}")
    return faults


def _omit_digits(content: bytes) -> bytes:
    """Also without the name of the folder, which commands in a report have."""
    return re.sub(rb"[-+.e0-9]", b"", re.sub(rb"/fuzz-\w+/", b"", content))


# --- disk -----------------------------------------------------------------------------------------


def make_disk(rng: Random) -> Spec:
    """A disk of some kilobytes for outputs, or for temporary files; or one without any."""
    command = rng.choice([name for name, (_, written) in _COMMANDS.items() if written])
    where = rng.choice(("work", "work", "tmp" if command == "passes" else "work", "limit"))
    if _WRITTEN & set(_COMMANDS[command][0]) and rng.random() < 0.3:
        where = rng.choice(("/dev/full", "standard output"))
    return {"command": command, "where": where, "kilobytes": rng.choice((4, 8, 16, 32, 64, 128))}


def judge_disk(spec: Spec, folder: Path) -> list[str]:
    """On a small file system where one can be mounted, otherwise with files that may not grow."""
    _write_inputs(folder)
    if spec["where"] in ("/dev/full", "standard output"):
        return _judge_full(spec, folder)
    _run_free(spec["command"])
    small, size = folder / spec["where"], spec["kilobytes"] * 1024
    is_mounted = (
        os.geteuid() == 0
        and spec["where"] != "limit"
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(small)], check=False
        ).returncode
    )
    try:
        outcome = _run(folder, spec["command"], lambda: None if is_mounted else _limit_files(size))
        faults = _judge_outputs(folder, spec["command"], outcome)
    finally:
        if is_mounted:
            subprocess.run(["umount", str(small)], check=True)
    if outcome.status == REFUSED and not any(
        name.encode() in outcome.err
        for name in (*_COMMANDS[spec["command"]][1], "--temp-dir", "standard output")
    ):
        faults.append(f"neither file nor option is named: {outcome.err[-300:]!r}")
    return faults


def _judge_full(spec: Spec, folder: Path) -> list[str]:
    """Nothing can be written to a device that is full: an error that says where to."""
    is_device = spec["where"] == "/dev/full"
    name = next(name for name in _COMMANDS[spec["command"]][1] if name not in ("r.html", "t.md"))
    other = "/dev/full" if is_device else "-"

    def setup() -> None:
        if not is_device:
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)

    outcome = _run(folder, spec["command"], setup, instead={name: other})
    faults = find_faults(outcome)
    faults += find_strays(folder, (), _COMMANDS[spec["command"]][1])
    named = (b"/dev/full",) if is_device else (b"standard output", b"/dev/stdout")
    if outcome.status == DONE or not any(each in outcome.err for each in named):
        faults.append(f"{spec['where']} is not named: {outcome.status} {outcome.err[-300:]!r}")
    return faults


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


# --- memory ---------------------------------------------------------------------------------------


def make_memory(rng: Random) -> Spec:
    """Some megabytes more than the process has."""
    command = rng.choice([name for name in _COMMANDS if name not in ("simulate", "export", "r")])
    return {"command": command, "megabytes": rng.choice((8, 16, 32, 64, 128, 256))}


def judge_memory(spec: Spec, folder: Path) -> list[str]:
    """Done, or refused with a word about memory."""
    _write_inputs(folder)
    _run_free(spec["command"])
    outcome = _run(folder, spec["command"], lambda: _limit_memory(spec["megabytes"] * 2**20))
    faults = _judge_outputs(folder, spec["command"], outcome)
    if outcome.status == REFUSED and b"memory" not in outcome.err:
        faults.append(f"out of memory is called something else: {outcome.err[-300:]!r}")
    return faults


def _limit_memory(more: int) -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE") + more
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


# --- rights ---------------------------------------------------------------------------------------


_HOMES = ("NUMBA_CACHE_DIR", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


def make_rights(rng: Random) -> Spec:
    """A user who may write almost nowhere."""
    return {
        "command": rng.choice(
            ("fit", "tree", "score", "screen", "check", "pack", "csv", "predict")
        ),
        "home": rng.choice(("none", "read-only")),
        "may_write": rng.choice(("work, tmp", "work, tmp", "work", "tmp", "")),
    }


def judge_rights(spec: Spec, folder: Path) -> list[str]:
    """As another user, whose home and package folder cannot be written."""
    if os.geteuid() != 0:
        return []  # nobody else can be had
    _write_inputs(folder)
    _run_free(spec["command"])
    for name in spec["may_write"].split(", "):
        if name:
            (folder / name).chmod(0o777)
    home = Path("/nonexistent") if spec["home"] == "none" else folder / "home"
    if spec["home"] != "none":
        home.mkdir(mode=0o555)

    def leave_home() -> None:
        os.environ["HOME"] = str(home)
        os.environ.pop("NUMBA_CACHE_DIR", None)
        for name in _HOMES if spec["home"] != "none" else ():
            os.environ[name] = str(home)

    outcome = _run(folder, spec["command"], leave_home, real=True, prefix=_AS_NOBODY)
    shutil.rmtree(folder / "tmp")  # compiled code may be kept there, for the next time
    (folder / "tmp").mkdir()
    faults = _judge_outputs(folder, spec["command"], outcome)
    may_write = "work" in spec["may_write"] or not _COMMANDS[spec["command"]][1]
    if (outcome.status == DONE) != may_write:
        faults.append(f"ended with {outcome.status}: {outcome.err[-300:]!r}")
    return faults
