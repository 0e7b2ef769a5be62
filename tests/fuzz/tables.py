"""Random tables, ordinary and odd, in every format that can be read.

A table is told by a seed and by which of its rows and columns are kept, so that a smaller one is
made by leaving some out.
"""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import decimal
import gzip
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from support.hostile import HOSTILE_NAMES

Spec = dict[str, Any]
# Name, kind and a value for each row, None where it is missing.
Column = tuple[str, str, list[Any]]

SIZES = (0, 1, 2, 7, 30, 80, 80, 200, 200)
_HUGE = (2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**25, 0, 1)
_ODD = (float("inf"), float("-inf"), float("nan"), 1e308, -1e308, 5e-324, -0.0, 0.0, 1.5)
_DAY = dt.date(2020, 2, 29)

# What a cell of a kind may hold, given the row's label as 0 or 1.
_CELLS: dict[str, Callable[[Random, int, int], Any]] = {
    "float": lambda r, row, y: round(r.gauss(50, 10), 1),
    "signal": lambda r, row, y: round(r.gauss(50 + 30 * y, 9), 1),
    "whole": lambda r, row, y: r.randrange(20),
    "bit": lambda r, row, y: int(r.random() < (0.9 if y else 0.2)),
    "boolean": lambda r, row, y: r.random() < (0.8 if y else 0.3),
    "level": lambda r, row, y: r.choice(["a", "b"] if y else ["b", "c", "O'Brien"]),
    "hostile": lambda r, row, y: r.choice(HOSTILE_NAMES[:60]),
    "identifier": lambda r, row, y: f"id {row}",
    "constant": lambda r, row, y: 1,
    "nothing": lambda r, row, y: None,
    "mixed": lambda r, row, y: r.choice([1, 2.5, "x", "True", "1,5", ""]),
    "odd": lambda r, row, y: r.choice(_ODD),
    "huge": lambda r, row, y: r.choice(_HUGE),
    "text": lambda r, row, y: "".join(chr(r.randrange(1, 0x2FF)) for _ in range(r.randrange(9))),
    "long": lambda r, row, y: "long " * 400,
    "date": lambda r, row, y: _DAY + dt.timedelta(r.randrange(900)),
    "time": lambda r, row, y: dt.datetime(2020, 1, 1) + dt.timedelta(hours=r.randrange(9000)),
    "duration": lambda r, row, y: dt.timedelta(seconds=r.randrange(9000)),
    "decimal": lambda r, row, y: decimal.Decimal(r.randrange(900)) / 100,
    "bytes": lambda r, row, y: r.choice([b"", b"a", b"\xff\x00"]),
    "list": lambda r, row, y: [r.randrange(3)] * r.randrange(3),
    "struct": lambda r, row, y: {"a": r.randrange(2), "b": "x"},
}
_USUAL = ("float", "signal", "signal", "whole", "bit", "bit", "boolean", "level", "level")
_TARGETS = ("01", "01", "yes", "yes", "yes", "boolean", "three", "float", "one", "hostile", "list")
_PLACES = ("few", "few", "few", "few", "numbers", "one", "many", "hostile", "struct", "float")


def draw_table(rng: Random, *, plain: bool = False) -> Spec:
    """A table to be made by `make_columns`; a plain one can be learned from."""
    n_rows = rng.choice((80, 200)) if plain else rng.choice(SIZES)
    n_columns = rng.randrange(1 if plain else 0, 7)
    return {
        "seed": rng.randrange(2**32),
        "plain": plain,
        "rows": list(range(n_rows)),
        "columns": list(range(n_columns + 2)),
    }


def make_columns(spec: Spec) -> list[Column]:
    """The columns of a table: target, environment, and others."""
    rng, plain = random.Random(spec["seed"]), spec["plain"]
    n_rows = max(spec["rows"], default=-1) + 1
    n_columns = max(spec["columns"], default=-1) + 1
    y = [int(rng.random() < 0.5) for _ in range(n_rows)]
    columns = [
        ("y", *_make_target("yes" if plain else rng.choice(_TARGETS), y, rng)),
        ("place", *_make_place("few" if plain else rng.choice(_PLACES), n_rows, rng)),
    ]
    for i in range(n_columns - 2):
        usual = plain or rng.random() < 0.7
        kind = rng.choice(_USUAL if usual else list(_CELLS))
        holes = rng.choice((0, 0, 0.1, 0.9)) if not plain else 0
        cells = [_CELLS[kind](rng, row, y[row]) for row in range(n_rows)]
        cells = [None if rng.random() < holes else cell for cell in cells]
        is_odd = not plain and rng.random() < 0.2
        columns.append((rng.choice(HOSTILE_NAMES) if is_odd else f"x{i}", kind, cells))
    kept = [columns[i] for i in spec["columns"] if i < len(columns)]
    return [(name, kind, [cells[row] for row in spec["rows"]]) for name, kind, cells in kept]


def _make_target(kind: str, y: list[int], rng: Random) -> tuple[str, list[Any]]:
    make: dict[str, Callable[[int], Any]] = {
        "01": lambda v: v,
        "yes": lambda v: "yes" if v else "no",
        "boolean": bool,
        "three": lambda v: "b" if v else rng.choice("ac"),
        "float": lambda v: v + 0.5,
        "one": lambda v: "same",
        "hostile": lambda v: HOSTILE_NAMES[v * 5],
        "list": lambda v: [v],
    }
    hole = rng.choice((0, 0, 0, 0, 0.02))
    return kind, [None if rng.random() < hole else make[kind](v) for v in y]


def _make_place(kind: str, n_rows: int, rng: Random) -> tuple[str, list[Any]]:
    make: dict[str, Callable[[int], Any]] = {
        "few": lambda row: ["north", "south", "east"][row % 3],
        "numbers": lambda row: row % 2,
        "one": lambda row: "here",
        "many": lambda row: f"place {row // 2}",
        "hostile": lambda row: rng.choice(HOSTILE_NAMES),
        "struct": lambda row: {"a": row % 2},
        "float": lambda row: rng.choice(_ODD),
    }
    return kind, [make[kind](row) for row in range(n_rows)]


# --- files ----------------------------------------------------------------------------------------

TEXT_ENDINGS = (".csv", ".csv", ".tsv", ".txt", ".data", ".CSV")
PACKINGS = ("", "", "", ".gz", ".bz2", ".zst", ".zip", ".GZ")
ARROW_ENDINGS = (".parquet", ".feather", ".arrow")


def draw_format(rng: Random) -> Spec:
    """How a table is written."""
    if rng.random() < 0.3:
        packing = rng.choice(("lz4", "zstd", "none"))
        return {"ending": rng.choice(ARROW_ENDINGS), "packing": packing, "parts": _draw_parts(rng)}
    ending = rng.choice(TEXT_ENDINGS)
    return {
        "ending": ending + rng.choice(PACKINGS),
        "delimiter": "\t" if ending == ".tsv" else rng.choice(",,,,;\t|:"),
        "newline": rng.choice(("\n", "\n", "\n", "\r\n", "\r\r\n", "\r")),
        "quoting": rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
        "encoding": rng.choice(("utf-8",) * 6 + ("latin-1", "utf-16", "utf-8-sig", "cp1252")),
        "ragged": rng.random() < 0.05,
        "noise": rng.random() < 0.05,
        "parts": _draw_parts(rng),
    }


def _draw_parts(rng: Random) -> int:
    return rng.choice((1,) * 9 + (3,))


def write_table(spec: Spec, form: Spec, folder: Path, name: str = "data") -> str:
    """Write a table; the name of the file, or of the folder when it has parts."""
    columns = make_columns(spec)
    if form.get("parts", 1) == 1:
        path = folder / f"{name}{form['ending']}"
        path.write_bytes(encode(columns, form))
        return path.name
    (folder / name).mkdir()
    n_rows = len(spec["rows"])
    for part in range(form["parts"]):
        rows = slice(part * n_rows // form["parts"], (part + 1) * n_rows // form["parts"])
        some = [(each, kind, cells[rows]) for each, kind, cells in columns]
        (folder / name / f"part-{part}{form['ending']}").write_bytes(encode(some, form))
    return name


def encode(columns: list[Column], form: Spec) -> bytes:
    """A table as the bytes of a file."""
    ending = form["ending"].lower()
    if ending in ARROW_ENDINGS:
        return _encode_arrow(columns, ending, form["packing"])
    content = encode_text(columns, form)
    packing = Path(ending).suffix
    if packing == ".gz":
        return gzip.compress(content, mtime=0)
    if packing == ".bz2":
        return bz2.compress(content)
    if packing == ".zst":
        import pyarrow

        return bytes(pyarrow.Codec("zstd").compress(content, asbytes=True))
    if packing == ".zip":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(f"table{Path(ending).stem}.csv"), content)
        return stream.getvalue()
    return content


def encode_text(columns: list[Column], form: Spec) -> bytes:
    """A table as text, with what people do to such files."""
    stream = io.StringIO()
    writer = csv.writer(
        stream,
        delimiter=form.get("delimiter", ","),
        quoting=form.get("quoting", csv.QUOTE_MINIMAL),
        lineterminator=form.get("newline", "\n"),
    )
    writer.writerow([name for name, _, _ in columns])
    for i, row in enumerate(zip(*(cells for _, _, cells in columns), strict=True)):
        is_short = form.get("ragged") and i == 3
        writer.writerow(["" if cell is None else cell for cell in row[: -1 if is_short else None]])
    encoding = form.get("encoding", "utf-8")
    content = stream.getvalue().encode(encoding, "replace")
    return content + b"\xff\xfe,\xc3\n" if form.get("noise") else content


def _encode_arrow(columns: list[Column], ending: str, packing: str) -> bytes:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.Table.from_arrays(
        [_make_array(kind, cells) for _, kind, cells in columns],
        names=[name for name, _, _ in columns],
    )
    stream = io.BytesIO()
    if ending == ".parquet":
        pa.parquet.write_table(table, stream, compression=packing, row_group_size=64)
    else:
        packing = "uncompressed" if packing == "none" else packing
        pa.feather.write_feather(table, stream, compression=packing, chunksize=64)
    return stream.getvalue()


def _make_array(kind: str, cells: list[Any]) -> Any:
    import pyarrow as pa

    try:
        array = pa.array(cells)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    is_coded = kind == "level" and len(cells) % 2 and pa.types.is_string(array.type)
    return array.dictionary_encode() if is_coded else array


# --- presence/absence ---------------------------------------------------------------------------


def draw_genes(rng: Random, *, plain: bool = False) -> Spec:
    """A presence/absence table; a plain one is as it should be."""
    return {
        "seed": rng.randrange(2**32),
        "plain": plain,
        "genomes": list(range(rng.choice((30, 70, 130) if plain else (0, 1, 3, 70)))),
        "genes": list(range(rng.choice((8, 40) if plain else (0, 1, 9, 40)))),
        "newline": "\n" if plain else rng.choice(("\n", "\n", "\r\n", "\r\r\n", "\r")),
        "mess": [] if plain else rng.choice(([], [], ["cell"], ["short"], ["twin"], ["name"])),
    }


def make_genes(spec: Spec) -> bytes:
    """An .Rtab file: genomes in columns, genes in rows."""
    rng = random.Random(spec["seed"])
    labels = make_labels(spec)
    lines = [["Gene", *(f"g{i}" for i in spec["genomes"])]]
    for gene in spec["genes"]:
        share = rng.choice((0.1, 0.5, 0.9))
        follows = gene % 5 == 0
        cells = [rng.random() < (0.9 * y + 0.05 if follows else share) for y, _ in labels]
        lines.append([f"gene {gene}", *("01"[cell] for cell in cells)])
    for mess in spec["mess"]:
        line = lines[rng.randrange(len(lines))]
        if mess == "cell":
            line[-1] = rng.choice(("2", "", "NA", "0.5", "é", "1 "))
        elif mess == "short":
            line.pop()
        elif mess == "twin":
            lines.append(lines[-1])
        else:
            line[0] = rng.choice(HOSTILE_NAMES)
    text = spec["newline"].join("\t".join(line) for line in lines) + spec["newline"]
    return text.encode("utf-8", "replace")


def make_labels(spec: Spec) -> list[tuple[int, str]]:
    """A label and a place for each genome."""
    return [((i * 7919 >> 3) % 2, ("north", "south")[i % 2]) for i in spec["genomes"]]


def encode_labels(spec: Spec) -> bytes:
    """What `fit --labels` reads."""
    labels = zip(spec["genomes"], make_labels(spec), strict=True)
    return "".join(
        ["genome,y,place\n", *(f"g{i},{y},{place}\n" for i, (y, place) in labels)]
    ).encode()
