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

import damage
from fuzz.judging import DONE, find_faults, find_strays, list_files
from fuzz.processes import call, empty_folder, in_child
from fuzz.tables import Spec
from icscm.formatting import format_json
from saved_samples import make_grown, make_mixed_table

_FITS = (
    (),
    ("--model-type", "disjunction", "--p", "0.5"),
    ("--missing", "separate", "--alpha", "0.0001"),
    ("--model", "scm", "--max-rules", "4", "--na", "55"),
)
_THEN = ("predict", "predict", "predict", "show", "show --json", "export --to sql",
         "export --to json", "export --to text")  # fmt: skip


# Then a tree, and forests of so many trees.
_GROWN = (None, 1, 3)


def make(rng: Random) -> Spec:
    """A model file with some damage."""
    kind = rng.choice(("bytes", "json", "json", "json"))
    return {
        "base": rng.randrange(len(_FITS) + len(_GROWN)),
        "kind": kind,
        "edits": [rng.randrange(2**32) for _ in range(rng.choice((1, 1, 1, 2, 4)))],
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
        return format_json(make_grown(_GROWN[number - len(_FITS)]).to_dict()).encode()
    with empty_folder() as folder:
        (folder / "work" / "data.parquet").write_bytes(make_base()[0])
        argv = ("fit", "data.parquet", "--target", "y", "--environment", "place", "--out", "m.json")
        outcome = call(folder, (*argv, "--n-jobs", "1", *_FITS[number]))
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
    data = ["data.parquet", "--quiet"] if first == "predict" else []
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
        else:
            document = damage.mutate_json(json.loads(content), rng)
            content = json.dumps(document).encode()
    return content


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
