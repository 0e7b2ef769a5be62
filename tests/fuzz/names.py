"""Hostile names of columns, levels, classes and environments, through every output."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
from pathlib import Path
from random import Random
from typing import Any

from fuzz.judging import DONE, find_faults, find_strays, list_files
from fuzz.models import compare, read_predictions, run_python
from fuzz.processes import LIMIT, call, in_child
from fuzz.readable import find_reading_faults
from fuzz.tables import Column, Spec, encode
from support.hostile import SQL_NAMES

_KINDS = {
    "number": ("REAL", "DOUBLE"),
    "level": ("TEXT", "VARCHAR"),
    "boolean": ("INTEGER", "BOOLEAN"),
}
_TERMINAL = (
    "show m.json", "show m.json --json", "export m.json --to sql", "export m.json --to text",
    "export m.json --to python", "predict m.json data.parquet",
)  # fmt: skip


def make(rng: Random) -> Spec:
    """A table of which everything has a hostile name."""
    names = rng.sample(SQL_NAMES, 24)
    return {
        "seed": rng.randrange(2**32),
        "columns": [[names[i], rng.choice(list(_KINDS))] for i in range(rng.randrange(1, 5))],
        "levels": names[10:14],
        "classes": names[14:16],
        "places": names[16:19],
        "target": names[19],
        "environment": names[20],
        "rows": list(range(240)),
        "options": rng.choice(([], [["--model-type", "disjunction"]], [["--model", "scm"]],
                               [["--model", "tree"]], [["--model", "score"]],
                               [["--model", "forest"], ["--n-estimators", "3"]])),
        "brief": rng.random() < 0.8,
        "report": rng.choice(("r.html", "r.html", "r.md", "r.json")),
        "out": rng.choice(("p.csv", "p.tsv", "p.parquet")),
        "terminal": rng.choice(_TERMINAL),
        "browser": rng.random() < 0.6,
    }  # fmt: skip


def make_columns(spec: Spec) -> list[Column]:
    """Labels, environments and columns that a rule can be made of."""
    rng = random.Random(spec["seed"])
    y = [int(rng.random() < 0.5) for _ in spec["rows"]]
    classes, places, levels = (spec[key] or ["a", "b"] for key in ("classes", "places", "levels"))
    columns: list[Column] = [
        (spec["target"], "level", [classes[v % len(classes)] for v in y]),
        (spec["environment"], "level", [places[row % len(places)] for row in spec["rows"]]),
    ]
    for name, kind in spec["columns"]:
        noisy = [v if rng.random() < 0.85 else 1 - v for v in y]
        cells: list[Any] = [
            {"number": round(v + rng.random(), 3), "boolean": bool(v)}.get(
                kind, levels[(2 * v + int(rng.random() < 0.5)) % len(levels)]
            )
            for v in noisy
        ]
        columns.append((name, kind, [None if rng.random() < 0.05 else cell for cell in cells]))
    return columns


def judge(spec: Spec, folder: Path) -> list[str]:
    """Fit, and compare what everything made of the model says."""
    work, columns = folder / "work", make_columns(spec)
    form = {"ending": ".parquet", "packing": "none"}
    (work / "data.parquet").write_bytes(in_child(encode, columns, form))
    before = list_files(work)
    options = [word for group in spec["options"] for word in group]
    roles = ["--target", spec["target"], "--environment", spec["environment"]]
    written = ["--out", "m.json", "--report", spec["report"], "--tripod", "t.html"]
    written += ["--no-path", "--stability", "0", "--no-validation"] if spec["brief"] else []
    outcome = call(folder, ["fit", "data.parquet", *roles, *written, *options])
    faults = find_faults(outcome)
    if outcome.status != DONE:
        return faults + find_strays(folder, before)
    faults += find_faults(call(folder, spec["terminal"].split(), terminal=True))
    for name in (spec["report"], "t.html"):
        faults += find_reading_faults(work / name)
        if spec["browser"] and name.endswith(".html") and shutil.which("chromium"):
            faults += open_in_browser(work / name, folder / "tmp")
    written = call(folder, ["predict", "m.json", "data.parquet", "--out", spec["out"]])
    faults += find_faults(written)
    faults += find_strays(folder, before, ["m.json", spec["report"], "t.html", spec["out"]])
    return faults + _judge_exports(folder, columns)


def _judge_exports(folder: Path, columns: list[Column]) -> list[str]:
    predicted = call(folder, ["predict", "m.json", "data.parquet", "--quiet"])
    python = call(folder, ["export", "m.json", "--to", "python"])
    sql = call(folder, ["export", "m.json", "--to", "sql"])
    r = call(folder, ["export", "m.json", "--to", "r"])
    faults = [fault for each in (predicted, python, sql, r) for fault in find_faults(each)]
    faults += find_faults(call(folder, ["export", "m.json", "--to", "json"]), is_json=True)
    if predicted.status != DONE:
        return [*faults, f"predict refuses what was learned from: {predicted.err[-300:]!r}"]
    expected = read_predictions(predicted.out)
    names = [name for name, _, _ in columns]
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(*(cells for _, _, cells in columns), strict=True)
    ]
    if r.status == DONE and shutil.which("Rscript"):
        found = run_r(r.out, columns, folder / "tmp")
        faults += [f"R: {each}" for each in compare(expected, found)]
    if python.status == DONE:
        faults += [f"Python: {each}" for each in compare(expected, run_python(python.out, rows))]
    # what two columns that differ by case only are called in SQL nobody can say
    if sql.status == DONE and len({name.lower() for name in names}) == len(names):
        query = sql.out.decode("utf-8")
        faults += [f"SQLite: {each}" for each in compare(expected, run_sqlite(query, columns))]
        found = in_child(run_duckdb, query, columns)
        faults += [f"DuckDB: {each}" for each in compare(expected, found)]
    return faults


def run_sqlite(query: str, columns: list[Column]) -> list[Any]:
    """Prediction, probability and what decided, by SQLite."""
    connection = sqlite3.connect(":memory:")
    try:
        return _run_sql(connection, query, columns, 0)
    finally:
        connection.close()


def run_duckdb(query: str, columns: list[Column]) -> list[Any]:
    """The same by DuckDB; it has threads."""
    import duckdb

    return _run_sql(duckdb.connect(":memory:"), query, columns, 1)


def _run_sql(connection: Any, query: str, columns: list[Column], engine: int) -> list[Any]:
    fields = [
        '"' + name.replace('"', '""') + f'" {_KINDS[kind][engine]}' for name, kind, _ in columns
    ]
    connection.execute(f'CREATE TABLE data ("row number" INTEGER, {", ".join(fields)})')
    marks = ", ".join("?" * (len(columns) + 1))
    rows = zip(*(cells for _, _, cells in columns), strict=True)
    connection.executemany(
        f"INSERT INTO data VALUES ({marks})", [(i, *row) for i, row in enumerate(rows)]
    )
    found = sorted(connection.execute(query).fetchall(), key=lambda row: row[0])
    n_read = 1 + len(columns)
    return [row[n_read : n_read + 3] for row in found]


def run_r(source: bytes, columns: list[Column], folder: Path) -> list[Any]:
    """Prediction and probability by R; texts go there and back as numbers of their characters."""
    lines = [source.decode("utf-8"), f"rows <- data.frame(row.names = 1:{len(columns[0][2])})"]
    for name, kind, cells in columns:
        texts = sorted({cell for cell in cells if isinstance(cell, str)})
        if kind == "level":
            lines.append(f"texts <- c({', '.join(map(_spell_r, texts))})")
            codes = (texts.index(cell) + 1 if cell is not None else "NA" for cell in cells)
        else:
            codes = ({None: "NA", True: "TRUE", False: "FALSE"}.get(cell, cell) for cell in cells)
        values = f"c({', '.join(map(str, codes))})"
        lines.append(f"values <- {values}")
        value = "texts[values]" if kind == "level" else "values"
        lines.append(f"rows[[{_spell_r(name)}]] <- {value}")
    lines.append("found <- predict_model(rows)")
    lines.append("for (i in seq_len(nrow(found))) cat(sprintf('%.17g', found$probability[i]), "
                 "utf8ToInt(enc2utf8(as.character(found$prediction[i]))), '\\n')")  # fmt: skip
    script = folder / "run.R"
    script.write_text("\n".join(lines), "utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", "--encoding=UTF-8", str(script)],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    script.unlink()
    if done.returncode:
        raise RuntimeError(f"R ended with {done.returncode}: {done.stderr[-300:]}")
    found = (line.split() for line in done.stdout.splitlines())
    return [("".join(chr(int(c)) for c in codes), float(p)) for p, *codes in found]


def _spell_r(text: str) -> str:
    return f"intToUtf8(c({', '.join(str(ord(character)) for character in text)}))"


def open_in_browser(path: Path, folder: Path) -> list[str]:
    """Nothing is written to the console of a browser, neither by the page nor about it."""
    alarm = b"<script>window.alert = what => console.error('alert', what)</script>"
    copy = folder / "page.html"
    copy.write_bytes(alarm + path.read_bytes())
    done = subprocess.run(
        ["chromium", "--no-sandbox", "--headless", "--disable-gpu", "--enable-logging=stderr",
         f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=300", "--dump-dom",
         copy.as_uri()],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    shutil.rmtree(folder / "browser", ignore_errors=True)
    copy.unlink()
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    if "</html>" not in done.stdout:
        said.append(f"no page, status {done.returncode}: {done.stderr[-200:]}")
    return [f"the browser says of {path.name}: {line[:300]}" for line in said[:1]]
