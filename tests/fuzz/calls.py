"""Random tables and options for every command, whatever makes sense or not."""

from __future__ import annotations

import resource
from pathlib import Path
from random import Random
from typing import Any

import click

from fuzz.judging import DONE, REFUSED, find_faults, find_json_faults, find_strays, list_files
from fuzz.processes import Outcome, call, in_child
from fuzz.tables import Spec, draw_format, draw_genes, draw_table, make_genes, write_table
from support.hostile import HOSTILE_NAMES

# No call may need more memory than this; some options ask for as much as there is.
_MEMORY = 12 * 2**30
_COMMANDS = ("fit",) * 8 + ("check",) * 4 + ("predict",) * 2 + (
    "show", "export", "pack", "pack", "simulate", "datasets", "demo", "evaluate",
    "evaluate", "compare", "screen", "screen", "recalibrate", "recalibrate",
)  # fmt: skip
# They start clusters, take minutes, or ask for what other areas try.
_LEFT_OUT = {"--dask", "--workers", "--debug", "--help", "--data", "--temp-dir"}
_NUMBERS = ("0", "1", "2", "7", "-1", "1.5", "0.5", "nan", "inf", "1e400", "x", "", "-0", "٣", " 1")
_LARGE = ("9223372036854775808", "1e30", "99999999999999999999999")
_OUTPUTS = {
    "fit": ("model.json", "model.txt"),
    "predict": ("p.csv", "p.tsv", "p.parquet", "p.xlsx"),
    "pack": ("x.bits", "x.txt"),
    "simulate": ("s.csv", "s.tsv", "s.parquet", "s"),
    "compare": ("c.csv", "c.md", "c.parquet", "c"),
    "screen": ("kept.txt", "-"),
    "recalibrate": ("moved.json", "-", "given.json"),
}
# What the rows of a table are given for, by command.
_LABELLED = ("fit", "check", "evaluate", "compare", "screen")
_WITH_MODEL = ("predict", "show", "export", "evaluate", "recalibrate")
# Some options take words of their own.
_VALUES = {
    "--threshold": (
        "0.3",
        "costs=1:10",
        "costs=0:0",
        "youden",
        "sensitivity=0.95",
        "specificity=2",
    ),
    "--cv": ("p=0.1,1", "max_leaves=2,4", "tolerance=0.01", "0.1,1", "p=", "nonsense=1"),
    "--merge-environments": ("north+south=x", "north+north=x", "1+0=north", "+="),
    "--exclude-environment": ("north", "south", "1", "here"),
    "--group": ("x0", "x1", "place", "y", "nothing"),
    "--prevalence": ("0.1", "0.999", "0", "1"),
    "--estimator": ("logistic", "tree", "sklearn.tree:DecisionTreeClassifier", "os:system", "x:y"),
}
# Options that name a file to write.
_FILES = ("--out", "--report", "--plot", "--fasta", "--new-hospital", "--tripod")
_REPORTS = ("r.html", "r.md", "r.json", "r.pdf")
_TEXTS = ("y", "place", "x0", "x1", "x0,x1", "yes", "1", "?", "-9", "NA", "all", "utf-8", "latin-1",
          "utf-16", "nonsense", ",", ";", "\\t", "tab", "2GiB", "1KB", "100MB", "-1MB", "0.1,1,2",
          "auto", "none", "model.json", "")  # fmt: skip


def make(rng: Random) -> Spec:
    """A command, a table and some options."""
    command = rng.choice(_COMMANDS)
    spec: Spec = {
        "command": command,
        "table": draw_table(rng, plain=rng.random() < 0.3),
        "format": draw_format(rng),
        "options": _draw_options(command, rng),
        "terminal": rng.random() < 0.15,
        "stdin": rng.random() < 0.05,
        "then": rng.choice(("show", "show --json", "export --to sql", "export --to python",
                            "export --to json", "export --to text", "export --to r",
                            "recalibrate --prevalence 0.2 --out -")),
    }  # fmt: skip
    if command == "pack":
        spec["genes"] = draw_genes(rng, plain=rng.random() < 0.3)
        spec["ending"] = rng.choice((".Rtab", ".tsv", ".rtab.gz", ".RTAB", ".txt"))
    return spec


def _draw_options(command: str, rng: Random) -> list[list[str]]:
    """Options in groups, each of which may be left out."""
    from icscm.cli import main

    found = []
    if command in _LABELLED:
        found = [["--target", "y"], ["--environment", "place"]]
        found += [["--positive", "yes"]] * (rng.random() < 0.1)
    if command in _OUTPUTS:
        found.append(["--out", rng.choice(_OUTPUTS[command][:1] * 4 + _OUTPUTS[command])])
    if command in ("demo", "simulate"):
        found.append(["--n-samples", rng.choice(("1", "30", "0", *_LARGE))])
    if command == "compare":
        found.append(["--candidates", rng.choice(("constant,scm", "icscm", "tree", "nonsense"))])
    if command == "demo":
        found.append(["--no-report"])
    if command == "fit":
        found.append(["--model", rng.choice(("icscm", "icscm", "scm", "tree", "forest", "score"))])
        found.append(["--n-estimators", "3"])
        # twenty fits more, and one for each environment, tell little about a table
        found += [["--stability", "0"], ["--no-validation"]] * (rng.random() < 0.8)
    if command == "screen":
        found.append(["--estimator", rng.choice(("logistic", "tree", "hgb"))])
    if command in _LABELLED and command != "check" and rng.random() < 0.1:
        found.append(["--group", rng.choice(_VALUES["--group"])])
    known = [each for each in main.commands[command].params if isinstance(each, click.Option)]
    usable = [each for each in known if not _LEFT_OUT & set(each.opts)]
    for option in rng.sample(usable, min(len(usable), rng.choice((0, 0, 1, 2, 3)))):
        name = option.opts[0]
        if not any(group[0] == name for group in found):
            found.append([name, *([] if option.is_flag else [_draw_value(option, rng)])])
    return found


def _draw_value(option: click.Option, rng: Random) -> str:
    name = option.opts[0]
    if name in _FILES:
        return rng.choice((*_REPORTS, "no/such/folder.html", ".", "-", "data.csv"))
    if name in _VALUES and rng.random() < 0.8:
        return rng.choice(_VALUES[name])
    choices = getattr(option.type, "choices", None) or getattr(
        getattr(option.type, "allowed", None), "choices", ()
    )
    if choices and rng.random() < 0.9:
        return str(rng.choice(list(choices))).lower()
    numbers = _NUMBERS if name in ("--n-jobs", "--n-distractors") else _NUMBERS + _LARGE
    pool = rng.choice((numbers, numbers, _TEXTS, _TEXTS, HOSTILE_NAMES))
    return rng.choice(pool).replace("\0", "")


def judge(spec: Spec, folder: Path) -> list[str]:
    """Run it, and after a fit what one does with a model."""
    work, command = folder / "work", spec["command"]
    words = [word for group in spec["options"] for word in group]
    inputs, stdin = _write_inputs(spec, work)
    before = list_files(work)
    outcome = call(folder, [command, *inputs, *words], stdin=stdin, terminal=spec["terminal"],
                   setup=_limit_memory)  # fmt: skip
    is_json = "--json" in words and not spec["terminal"]
    faults = find_faults(outcome, is_json=is_json)
    outputs = [
        str(Path(value)) for name, *more in spec["options"] for value in more
        if name in _FILES
    ]  # fmt: skip
    expected = outputs if outcome.status == DONE else []
    faults += find_strays(folder, before, expected)
    for name in expected:
        is_text = command == "export" and ["--to", "json"] not in spec["options"]
        if name.endswith(".json") and not is_text and (work / name).is_file():
            faults += find_json_faults((work / name).read_text("utf-8"), name)
    if command == "fit" and outcome.status == DONE and (work / "model.json").is_file():
        faults += _use_model(spec, folder, inputs, stdin)
    return faults


def _write_inputs(spec: Spec, work: Path) -> tuple[list[str], bytes]:
    command = spec["command"]
    if command in ("simulate", "demo", "datasets"):
        return [], b""
    if command == "pack":
        content = make_genes(spec["genes"])
        if spec["ending"].endswith(".gz"):
            import gzip

            content = gzip.compress(content)
        (work / f"genes{spec['ending']}").write_bytes(content)
        return [f"genes{spec['ending']}"], b""
    models = [write_model(work)] if command in _WITH_MODEL else []
    if command in ("show", "export"):
        return models, b""
    name = in_child(write_table, spec["table"], spec["format"], work)
    if spec["stdin"] and (work / name).is_file():
        return [*models, "-"], (work / name).read_bytes()
    return [*models, name], b""


def write_model(work: Path, name: str = "given.json") -> str:
    """A small model of the columns that tables usually have."""
    from icscm.model.rules import ThresholdRule
    from icscm.model.saved import SavedModel
    from support.saved_models import Feature, make_saved

    features = (Feature("x0", "number"), Feature("x1", "number"))
    rules = (ThresholdRule(0, "x0", 40.0, above=True),)
    saved: SavedModel = make_saved(rules, features)
    saved.save(work / name)
    return name


def _use_model(spec: Spec, folder: Path, inputs: list[str], stdin: bytes) -> list[str]:
    """A model that was learned can be shown, exported, and predicts what it was learned from."""
    first, *more = spec["then"].split()
    outcome = call(folder, [first, "model.json", *more], terminal=spec["terminal"])
    is_json = more in (["--json"], ["--to", "json"]) and not spec["terminal"]
    faults = find_faults(outcome, is_json=is_json)
    if outcome.status != DONE and more not in (["--to", "sql"], ["--to", "r"]):
        faults.append(f"a model that was written is refused by {first}: {outcome.err[-300:]!r}")
    if any(group[0] in ("--labels", "--member") for group in spec["options"]):
        return faults
    reading = ("--na", "--no-default-na", "--delimiter", "--decimal", "--encoding")
    words = [word for group in spec["options"] if group[0] in reading for word in group]
    outcome = call(folder, ["predict", "model.json", *inputs, "--quiet", *words], stdin=stdin)
    return faults + find_faults(outcome) + _judge_predictions(spec, outcome)


def _judge_predictions(spec: Spec, outcome: Outcome) -> list[str]:
    if outcome.status == REFUSED:
        return []
    n_lines = len(outcome.out.decode("utf-8").split("\n")) - 2
    n_rows = len(spec["table"]["rows"])
    is_plain = spec["table"]["plain"] and not spec["format"].get("noise")
    return [f"{n_lines} predictions for {n_rows} rows"] if is_plain and n_lines != n_rows else []


def _limit_memory(**_: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
