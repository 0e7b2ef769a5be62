"""Many environments, levels and columns: done in time."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

from fuzz.judging import DONE, find_faults, find_strays
from fuzz.processes import call, in_child
from fuzz.tables import Spec

# Seconds, on a machine that has other things to do.
_LIMIT = 300.0
# Rows, environments, levels of a column of text, columns of numbers.
_SHAPES = (
    (300_000, 10_000, 10, 3), (40_000, 4_000, 10, 3), (20_000, 9_000, 10, 3),
    (60_000, 3, 50_000, 2), (200, 2, 10, 20_000), (2_000, 500, 1_000, 200), (1_000, 400, 999, 9),
)  # fmt: skip


def make(rng: Random) -> Spec:
    """A large table of some shape."""
    rows, places, levels, columns = rng.choice(_SHAPES)
    return {
        "shape": {"rows": rows, "places": places, "levels": levels, "columns": columns},
        "seed": rng.randrange(2**32),
        "command": rng.choice(("fit", "fit", "fit", "check")),
        "report": rng.random() < 0.5,
    }


def _encode(spec: Spec) -> bytes:
    import numpy as np
    import pandas as pd

    rng, shape = np.random.default_rng(spec["seed"]), spec["shape"]
    n = shape["rows"]
    y = rng.random(n) < 0.5
    numbers = rng.random((n, shape["columns"]), dtype=np.float32) + 0.3 * y[:, None]
    table = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(shape["columns"])])
    table["level"] = rng.integers(shape["levels"], size=n).astype(str)
    table["y"] = np.where(y, "yes", "no")
    table["place"] = rng.permutation(np.arange(n) % shape["places"]).astype(str)
    stream = io.BytesIO()
    table.to_parquet(stream)
    return stream.getvalue()


def judge(spec: Spec, folder: Path) -> list[str]:
    """It ends, in time, with a result."""
    (folder / "work" / "data.parquet").write_bytes(in_child(_encode, spec))
    argv = [spec["command"], "data.parquet", "--target", "y", "--environment", "place", "--quiet"]
    outputs = ["m.json", "r.html"] if spec["report"] and spec["command"] == "fit" else []
    argv += ["--out", "m.json", "--report", "r.html"] if outputs else []
    outcome = call(folder, argv, limit=_LIMIT)
    faults = find_faults(outcome) + find_strays(folder, ["data.parquet"], outputs)
    if outcome.status != DONE:
        faults.append(f"no result for {spec['shape']}: {outcome.err[-300:]!r}")
    return faults
