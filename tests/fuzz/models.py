"""Mutated model files: refused in a sentence, or a model that says the same everywhere."""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import random
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from fuzz.judging import DONE, find_faults, find_strays, list_files
from fuzz.processes import call, empty_folder, in_child
from fuzz.tables import Spec
from icscm.formatting import format_json
from support import damage
from support.saved_models import make_grown, make_grown_score, make_mixed_table

_FITS = (
    (),
    ("--model-type", "disjunction", "--p", "0.5"),
    ("--margin", "0.2", "--alpha", "0.0001"),
    ("--model", "scm", "--max-rules", "4", "--na", "55"),
)
_THEN = ("predict", "predict", "predict", "show", "show --json", "export --to sql",
         "export --to json", "export --to text", "export --to r", "show --all",
         "recalibrate --prevalence 0.2 --out -", "evaluate")  # fmt: skip


_ROLES = ("--target", "y", "--environment", "place", "--quiet")

# Then a tree, forests of so many trees, and a score.
_GROWN = (None, 1, 3, "score")
# Bytes of a crafted file: a gigabyte of trees takes minutes and tells nothing new.
_LARGEST = 30_000_000


def make(rng: Random) -> Spec:
    """A model file with some damage."""
    kind = rng.choice(("bytes", "json", "json", "json", "crafted", "crafted"))
    return {
        "base": rng.randrange(len(_FITS) if kind == "crafted" else 0, len(_FITS) + len(_GROWN)),
        "kind": kind,
        "edits": [
            rng.randrange(2**32)
            for _ in range(1 if kind == "crafted" else rng.choice((1, 1, 1, 2, 4)))
        ],
        "then": rng.choice(_THEN),
        "terminal": rng.random() < 0.1,
    }


@functools.lru_cache
def make_base() -> tuple[bytes, list[dict[str, Any]]]:
    """A Parquet file, and its rows."""
    X, y, places = make_mixed_table(120)
    table = X.assign(y=y, place=places)
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return in_child(_to_parquet, table), rows


def _to_parquet(table: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    table.to_parquet(stream)
    return stream.getvalue()


@functools.lru_cache
def make_model(number: int) -> bytes:
    """A sound model file."""
    if number >= len(_FITS):
        grown = _GROWN[number - len(_FITS)]
        saved = make_grown_score() if grown == "score" else make_grown(grown)
        return format_json(saved.to_dict()).encode()
    with empty_folder() as folder:
        (folder / "work" / "data.parquet").write_bytes(make_base()[0])
        argv = ("fit", "data.parquet", "--target", "y", "--environment", "place", "--out", "m.json")
        few = ("--n-jobs", "1", "--stability", "0", "--no-validation")
        outcome = call(folder, (*argv, *few, *_FITS[number]))
        assert outcome.status == DONE, outcome
        return (folder / "work" / "m.json").read_bytes()


def judge(spec: Spec, folder: Path) -> list[str]:
    """If `predict` takes it, the exported code must predict the same."""
    content, rows = make_base()
    work = folder / "work"
    (work / "data.parquet").write_bytes(content)
    (work / "m.json").write_bytes(_mutate(spec))
    before = list_files(work)
    first, *more = spec["then"].split()
    data = {"predict": ["data.parquet", "--quiet"], "evaluate": ["data.parquet", *_ROLES]}
    data = data.get(first, [])
    outcome = call(folder, [first, "m.json", *data, *more], terminal=spec["terminal"])
    is_json = more in (["--json"], ["--to", "json"]) and not spec["terminal"]
    faults = find_faults(outcome, is_json=is_json) + find_strays(folder, before)
    if first == "predict" and outcome.status == DONE and not spec["terminal"]:
        exported = call(folder, ["export", "m.json", "--to", "python"])
        faults += find_faults(exported)
        if exported.status == DONE:
            faults += compare(read_predictions(outcome.out), run_python(exported.out, rows))
    return faults


def _mutate(spec: Spec) -> bytes:
    content = make_model(spec["base"])
    for seed in spec["edits"]:
        rng = random.Random(seed)
        if spec["kind"] == "bytes":
            content = damage.damage(content, rng) if content else content
        elif spec["kind"] == "crafted":
            document = json.loads(content)
            document["model"] = craft(document["model"], rng)
            crafted = json.dumps(document).encode()
            content = crafted if len(crafted) < _LARGEST else content
        else:
            document = damage.mutate_json(json.loads(content), rng)
            content = json.dumps(document).encode()
    return content


def craft(model: dict[str, Any], rng: Random) -> Any:
    """A tree, forest or score with what no learner would have made of it."""
    if "trees" in model:
        one = rng.randrange(len(model["trees"]))
        kind = rng.choice(("tree", "tree", "none", "forest", "many", "other"))
        made = {"none": [], "forest": [model], "many": model["trees"] * 1500, "other": [{}]}
        trees = [craft(tree, rng) if i == one else tree for i, tree in enumerate(model["trees"])]
        return model | {"trees": made.get(kind, trees)}
    if "terms" in model:
        return _craft_score(model, rng)
    splits, leaves = model["splits"], model["leaves"]
    split, side = rng.choice(splits), rng.choice(("if_true", "if_false"))
    kind = rng.choice(("child", "child", "root", "twins", "deep", "leaves", "counts", "kind"))
    if kind == "child":  # cycles, leaves of two parents, none of any, out of range
        split[side] = rng.choice((*range(-len(leaves) - 2, len(splits) + 2), 2**40, 0.0, None))
    elif kind == "root":
        split[side] = 0
    elif kind == "twins":
        split["if_true"] = split["if_false"]
    elif kind == "deep":
        n = rng.choice((300, 1_000, 9_999, 10_000, 10_001))
        chain = [splits[0] | {"if_true": ~i, "if_false": i + 1} for i in range(n)]
        chain[-1] = chain[-1] | {"if_false": ~n}
        model |= {"splits": chain, "leaves": [leaves[0]] * (n + 1)}
    elif kind == "leaves":
        model["leaves"] = rng.choice((leaves[1:], [*leaves, leaves[0]], [], [[]] * len(leaves)))
    elif kind == "counts":
        rng.choice(leaves)[0][0] = rng.choice((-1, 2**62, 2**63 - 1, 2**63, 0.5, None, True))
    return model | ({"kind": rng.choice(("forest", "score", "conjunction", [], ""))}
                    if kind == "kind" else {})  # fmt: skip


def _craft_score(model: dict[str, Any], rng: Random) -> Any:
    terms, risks = model["terms"], model["log_odds"]
    made: dict[str, Any] = {
        "terms": [terms * 3, terms[::-1], [], [terms[0]] * 10_001, [{"rule": terms[0]["rule"]}]],
        "log_odds": [risks[::-1], risks[1:], [1e308] * len(risks), [-1e308, *risks[1:]], [None]],
        "bounds": [[0], [3, 1], [1, 1], [10_001], [-1], [0.5], model["bounds"][1:]],
        "leaves": [[], model["leaves"][1:], [[[2**63, 0], [0, 0]]] * len(model["leaves"])],
        "calibration": [[1e308, 1e308], [0, -1], [0, 0], [1], ["0", "1"], None],
        "threshold": [0, 1, 1e-300, "0.5", None, 0.5],
        "kind": ["tree", "forest", None],
    }
    if rng.random() < 0.3:
        rng.choice(terms)["points"] = rng.choice((-1, 10_000, 10_001, 2**63, 0.5, True, "1"))
        return model
    key = rng.choice(list(made))
    return model | {key: rng.choice(made[key])}


# --- the same everywhere ------------------------------------------------------------------------


def read_predictions(text: bytes) -> list[tuple[str, float, str]]:
    """Class, probability and rule of each row that `predict` wrote."""
    rows = csv.DictReader(io.StringIO(text.decode("utf-8"), newline=""))
    return [(row["prediction"], float(row["probability"]), row["decided_by"]) for row in rows]


def run_python(source: bytes, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What exported code says of rows; it is a program, and this is its trial."""
    module: dict[str, Any] = {}
    exec(compile(source.decode("utf-8"), "model.py", "exec"), module)
    return [module["predict"](row) for row in rows]


def compare(expected: list[tuple[str, float, str]], found: list[tuple[Any, ...]]) -> list[str]:
    """What differs between `predict` and something else."""
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        label = {True: "true", False: "false"}.get(other[0]) if other[0] in (True, False) else None
        same_class = one[0] in (str(other[0]), label, _as_text(other[0]))
        if not (same_class and math.isclose(one[1], other[1], rel_tol=1e-12)):
            return [f"silently different: row {number} is {one!r:.200} and {other!r:.200}"]
    return []


def _as_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
