"""Damaged data files of every format; where there is a checksum, nothing may be silently wrong."""

from __future__ import annotations

import random
from pathlib import Path
from random import Random

from fuzz.calls import write_model
from fuzz.judging import DONE, find_faults, find_strays, list_files
from fuzz.processes import call, in_child
from fuzz.tables import Column, Spec, draw_table, encode, make_columns
from support import damage

_FORMATS = (
    *({"ending": ".feather", "packing": each} for each in ("lz4", "zstd", "none")),
    *({"ending": ".parquet", "packing": each} for each in ("snappy", "zstd", "none")),
    *({"ending": f".csv{each}"} for each in ("", ".gz", ".bz2", ".zst", ".zip")),
    {"ending": ".tsv", "delimiter": "\t"},
)
_CHECKED = (".gz", ".bz2", ".zip")
_COMMANDS = ("check", "fit", "predict")


def make(rng: Random) -> Spec:
    """A table in a file with some damage."""
    table = draw_table(rng, plain=True)
    table["columns"] = list(range(rng.randrange(4, 7)))
    return {
        "table": table,
        "format": rng.choice(_FORMATS),
        "edits": [rng.randrange(2**32) for _ in range(rng.choice((1, 1, 2)))],
        "command": rng.choice(_COMMANDS),
    }


def judge(spec: Spec, folder: Path) -> list[str]:
    """Refused in a sentence or read; where a checksum tells, as if nothing had happened."""
    work, ending = folder / "work", spec["format"]["ending"]
    sound = in_child(encode, _name_columns(make_columns(spec["table"])), spec["format"])
    content = sound
    for seed in spec["edits"]:
        content = damage.damage(content, random.Random(seed)) if content else content
    name = f"data{ending}"
    (work / name).write_bytes(content)
    asked = ["--target", "y", "--environment", "place", "--quiet"]
    argv = ["predict", write_model(work), name, "--quiet"]
    if spec["command"] != "predict":
        argv = [spec["command"], name, *asked]
    before = list_files(work)
    outcome = call(folder, argv)
    faults = find_faults(outcome) + find_strays(folder, before)
    if outcome.status == DONE and ending.endswith(_CHECKED):
        (work / name).write_bytes(sound)
        if call(folder, argv).out != outcome.out:
            faults.append(f"silently wrong: {spec['command']} of a damaged {ending} file")
    return faults


def _name_columns(columns: list[Column]) -> list[Column]:
    """The same, with numbers where the model asks for them."""
    return [
        (name, "float", [float(i) for i in range(len(cells))]) if name in ("x0", "x1") else
        (name, kind, cells) for name, kind, cells in columns
    ]  # fmt: skip
