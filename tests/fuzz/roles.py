"""A hostile name in one role, or another one in each role, and every command.

The roles are what a user names: a column, a level, a class, an environment, a group, a file, and
the columns of the outcome, of environments and of groups. Command, role and name are drawn for each
case.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from fuzz.judging import DONE, find_faults, find_strays, list_files
from fuzz.processes import Outcome, call, in_child
from fuzz.readable import find_reading_faults, find_text_faults
from fuzz.tables import Column, Spec, encode
from support.hostile import ROLE_NAMES

_ROLES = (
    "column", "level", "class", "environment", "group", "target", "place", "patient", "file", "all",
)  # fmt: skip
_COMMANDS = (
    "check", "screen", "fit", "evaluate", "compare", "recalibrate", "predict", "show", "export",
    "pack", "simulate",
)  # fmt: skip
_TAME = {
    "column": "dose",
    "level": "low",
    "class": "yes",
    "environment": "north",
    "group": "p1",
    "target": "ill",
    "place": "site",
    "patient": "patient",
    "file": "table",
}
# As a value of the outcome, of an environment or of a level in a text file these may mean missing.
_MISSING = {"", " ", "nan", "None"}
_MODELS = ("rule", "tree", "forest", "score", "scm")
_EXPORTS = ("sql", "python", "r", "json", "text")
_MAX_FILE_NAME = 120
_N_ROWS = 240


@dataclass(frozen=True)
class _Run:
    """A command, the files that it writes, and how its output is judged."""

    argv: Sequence[str]
    writes: Sequence[str] = ()
    #: whether people read standard output: predictions and programs are for machines
    is_readable: bool = True
    is_json: bool = False
    terminal: bool = False


def make(rng: Random) -> Spec:
    """A command with a hostile name in a role."""
    role = rng.choice(_ROLES)
    names = dict(_TAME)
    if role == "all":
        names = dict(zip(_TAME, rng.sample(ROLE_NAMES, len(_TAME)), strict=True))
    else:
        names[role] = rng.choice(ROLE_NAMES)
    return {
        "seed": rng.randrange(2**32),
        "command": rng.choice(_COMMANDS),
        "role": role,
        "names": names,
        "model": rng.choice(_MODELS),
        "ending": rng.choice((".csv", ".parquet")),
        "report": rng.choice((".html", ".md", ".json")),
        "to": rng.choice(_EXPORTS),
        "is_new": rng.random() < 0.3,
        "grouped": rng.random() < 0.4,
        "is_named": rng.random() < 0.3,
        "style": rng.choice(("plain", "plain", "terminal", "json")),
    }


def judge(spec: Spec, folder: Path) -> list[str]:
    """Run the command, after a fit if it needs a model; what is wrong with all that was said."""
    work = folder / "work"
    data = _write_data(spec, work)
    runs = [*_prepare(spec, data), _make_run(spec, data)]
    faults: list[str] = []
    for run in runs:
        before = list_files(work)
        outcome = call(folder, run.argv, terminal=run.terminal)
        faults += _judge_outcome(spec, run, outcome)
        faults += find_strays(folder, before, [str(Path(name)) for name in run.writes])
        if outcome.status != DONE:
            break
        for name in run.writes:
            if Path(name).suffix in (".html", ".md", ".svg", ".json", ".txt"):
                faults += find_reading_faults(work / name)
    return faults


def _judge_outcome(spec: Spec, run: _Run, outcome: Outcome) -> list[str]:
    faults = find_faults(outcome, is_json=run.is_json and not run.terminal)
    shows_data = run.terminal and not run.is_readable  # where names are as the data have them
    if not shows_data:
        err = outcome.err.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
        faults += [f"{fault} on standard error" for fault in find_text_faults(err)]
    if run.is_readable and not run.terminal:
        out = outcome.out.decode("utf-8", "backslashreplace")
        faults += [f"{fault} on standard output" for fault in find_text_faults(out)]
    if outcome.status != DONE and not may_be_refused(spec):
        faults.append(f"refused: {outcome.err.decode(errors='backslashreplace').strip()[-300:]}")
    what = f"{run.argv[0]}, {spec['role']} {spec['names'].get(spec['role'], '')!r:.40}"
    return [f"{fault} [{what}]" for fault in faults]


def may_be_refused(spec: Spec) -> bool:
    """Whether an error is an answer to these names: not all can be written, read or exported."""
    names = spec["names"]
    if spec["role"] == "all":
        return True
    if spec["role"] == "file":
        return False
    name = names[spec["role"]]
    if spec["command"] == "pack" and set(name) & set("\t\r\n"):  # which part its cells and lines
        return True
    if spec["role"] in ("class", "environment", "level", "group"):
        return name in _MISSING or ("\0" in name and spec["command"] == "export")
    # options take names separated by commas, and no argument of a program holds a NUL
    return name.strip() == "" or "\0" in name


# --- tables ---------------------------------------------------------------------------------------


def make_columns(spec: Spec, *, names: dict[str, str]) -> list[Column]:
    """A table that can be learned from, with the names in their roles."""
    rng = random.Random(spec["seed"])
    y = [rng.random() < 0.5 for _ in range(_N_ROWS)]
    places = [names["environment"], "south", "east", "west"]
    other_levels = ["medium", "high"]

    def draw_level(label: bool) -> str:
        is_telling = rng.random() < 0.8
        return names["level"] if label == is_telling else rng.choice(other_levels)

    groups = [names["group"] if row < 2 else f"p{row // 2}" for row in range(_N_ROWS)]
    # the first is a tame one: a byte order mark there is no part of its name
    return [
        ("age", "number", [round(rng.gauss(60 + 8 * label, 9), 1) for label in y]),
        (names["target"], "level", [names["class"] if label else "a" for label in y]),
        (names["place"], "level", [places[row % len(places)] for row in range(_N_ROWS)]),
        (names["column"], "level", [draw_level(label) for label in y]),
        (names["patient"], "level", groups),
    ]


def _write_data(spec: Spec, work: Path) -> str:
    """Write the table; the argument that names it."""
    stem = make_file_stem(spec["names"]["file"])
    if spec["command"] == "pack":
        (work / f"{stem}.Rtab").write_bytes(_make_genes(spec).encode("utf-8", "replace"))
        return f"./{stem}.Rtab"
    names = dict(spec["names"])
    _write_table(spec, names, work / f"{stem}{spec['ending']}")
    if spec["is_new"]:  # the model is learned where the values are others
        names |= {role: _TAME[role] for role in ("level", "environment", "group")}
    _write_table(spec, names, work / f"before{spec['ending']}")
    return f"./{stem}{spec['ending']}"


def _write_table(spec: Spec, names: dict[str, str], path: Path) -> None:
    # quoted, since Python's writer leaves a carriage return as it is
    form = {"ending": spec["ending"], "packing": "none", "quoting": csv.QUOTE_ALL}
    path.write_bytes(in_child(encode, make_columns(spec, names=names), form))


def make_file_stem(name: str) -> str:
    """A name as a file system takes it: without slashes and NULs, and not too long."""
    return name.replace("/", "_").replace("\0", "_")[:_MAX_FILE_NAME] or " "


def _make_genes(spec: Spec) -> str:
    names = spec["names"]
    rng = random.Random(spec["seed"])
    genomes = [names["group"], *(f"genome {number}" for number in range(19))]
    genes = [names["column"], *(f"gene {number}" for number in range(9))]
    lines = [["Gene", *genomes]]
    lines += [[gene, *(rng.choice("01") for _ in genomes)] for gene in genes]
    return "\n".join("\t".join(line) for line in lines) + "\n"


# --- commands -------------------------------------------------------------------------------------


def _prepare(spec: Spec, data: str) -> list[_Run]:
    """The fit of the model that a command needs."""
    if spec["command"] not in ("evaluate", "recalibrate", "predict", "show", "export"):
        return []
    model = f"./{make_file_stem(spec['names']['file'])}.model.json"
    words = ["--model", spec["model"], "--stability", "0", "--no-validation"]
    argv = ["fit", f"before{spec['ending']}", *_name_roles(spec), *words, "--out", model]
    return [_Run(_limit_trees(argv, spec), writes=[model])]


def _name_roles(spec: Spec) -> list[str]:
    names = spec["names"]
    words = ["--target", names["target"], "--environment", names["place"]]
    words += ["--positive", names["class"]]
    words += ["--group" if spec["grouped"] else "--drop", names["patient"]]
    # two environments share each group, so that without a third nothing could be left out
    can_exclude = not spec["is_new"] and not spec["grouped"]
    if spec["is_named"] and can_exclude and spec["role"] == "environment":
        words += ["--exclude-environment", names["environment"]]
    if spec["is_named"] and spec["role"] == "column":
        words += ["--categories", names["column"]]
    return words


def _limit_trees(argv: list[str], spec: Spec) -> list[str]:
    return [*argv, "--n-estimators", "3"] if spec["model"] == "forest" else argv


def _make_run(spec: Spec, data: str) -> _Run:
    """The command of a case."""
    command, names = spec["command"], spec["names"]
    stem = f"./{make_file_stem(names['file'])}"
    model, report = f"{stem}.model.json", f"{stem}.report{spec['report']}"
    page, figure = f"{stem}.report.html", f"{stem}.plot.svg"
    roles = _name_roles(spec)
    target = ["--target", names["target"]]
    is_json, terminal = spec["style"] == "json", spec["style"] == "terminal"
    style: dict[str, Any] = {"is_json": is_json, "terminal": terminal}
    last = ["--json"] if is_json else []

    match command:
        case "check":
            without_group = [*roles[:6], *roles[8:]]
            return _Run(["check", data, *without_group, "--all", *last], **style)
        case "screen":
            more = ["--estimator", "logistic", "--validate", "--no-path", "--report", report]
            return _Run(["screen", data, *roles, *more, *last], writes=[report], **style)
        case "fit":
            more = ["--model", spec["model"], "--stability", "2", "--report", report]
            tripod = f"{stem}.tripod.{'md' if spec['grouped'] else 'html'}"
            argv = ["fit", data, *roles, *more, "--out", model, "--tripod", tripod, *last]
            return _Run(_limit_trees(argv, spec), writes=[report, tripod, model], **style)
        case "evaluate":
            argv = ["evaluate", model, data, *roles[:4], "--report", page, "--all", *last]
            return _Run(argv, writes=[page], **style)
        case "compare":
            table = f"{stem}.table.{'md' if spec['grouped'] else 'csv'}"
            more = ["--candidates", "baseline,scm,tree", "--out", table, "--plot", figure]
            argv = ["compare", data, *roles, *more, *last]
            return _Run(argv, writes=[table, figure], **style)
        case "recalibrate":
            moved = f"{stem}.moved.json"
            argv = ["recalibrate", model, data, *target, "--out", moved, *last]
            return _Run(argv, writes=[moved], **style)
        case "predict":
            words = ["--keep-columns", names["column"]] if "," not in names["column"] else []
            return _Run(["predict", model, data, *words, *last], is_readable=False, **style)
        case "show":
            return _Run(["show", model, "--all", *last], **style)
        case "export":
            table = ["--table", names["file"].replace("\0", "")] if spec["to"] == "sql" else []
            argv = ["export", model, "--to", spec["to"], *table]
            return _Run(argv, is_readable=spec["to"] != "sql", terminal=terminal)
        case "pack":
            return _Run(["pack", data, "--out", f"{stem}.bits", *last],
                        writes=[f"{stem}.bits"], **style)  # fmt: skip
        case "simulate":
            argv = ["simulate", "--n-samples", "30", "--out", f"{stem}.csv", "--force", *last]
            return _Run(argv, writes=[f"{stem}.csv"], **style)
    raise ValueError(f"no run is known for {command!r}")
