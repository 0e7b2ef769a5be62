"""Names that mean harm, from the table to all that commands print and write."""

import csv
import io
import json
import os
import pty
import re
import sys
import tty
import zipfile
from contextlib import suppress
from threading import Thread

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

from icscm.cli import main
from icscm.exceptions import IcscmError
from icscm.formatting import clip_message, dump_json
from icscm.io.writing_tables import disarm_formulas, write_text_table
from support.hostile import HOSTILE_NAMES

# What steers a terminal, or hides in it: C0, DEL and C1, lines of other kinds, bidi, zero width.
STEERING = (
    "\r\x1b[2J\x1b]0;t\x07\x08\x0b\x0c\x7f\x85\x9b2J\x9d\xad\u061c\u200b\u200d\u200e\u200f\u2028"
    "\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\U000e0041"
)
TARGET, PLACE, KEPT = f"y{STEERING}", f"site{STEERING}", f"=id{STEERING}"
BAD_GENE = STEERING.replace("\r", "")
LONG = "long name " * 1_000
# What rich itself sends: styles, and a cursor that hides, goes up and clears its line.
OWN_SEQUENCES = re.compile(r"\x1b\[(\d*(;\d+)*m|\?25[lh]|\d?A|2K)|\r(?=\x1b)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data whose names, labels and environments are hostile, and a model of them."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    n = 150
    frame = pd.DataFrame(rng.integers(0, 2, (n, 4)), columns=[f"a{STEERING}", "=b", LONG, "d"])
    y = (frame.iloc[:, 0] & frame.iloc[:, 2]) ^ (rng.random(n) < 0.02)
    frame[f"level{STEERING}"] = np.where(rng.random(n) < 0.5, f"one{STEERING}", "two\n")
    frame[TARGET] = np.where(y, f"yes{STEERING}", f"no{STEERING}")
    frame[PLACE] = np.array([f"=1{STEERING}", f"+2{STEERING}", "3"])[np.arange(n) % 3]
    frame[KEPT] = np.array(["=1+1", "-1+1", "-5", f"{STEERING}", "\rx", "\t=x"])[np.arange(n) % 6]
    frame.to_parquet(folder / "data.parquet")
    frame.drop(columns=LONG).to_parquet(folder / "lacks.parquet")
    frame.assign(**{TARGET: LONG}).to_parquet(folder / "one.parquet")
    frame.assign(**{LONG: LONG}).to_parquet(folder / "text.parquet")
    genes = "\n".join([f"Gene\ta{BAD_GENE}\tb", f"x{BAD_GENE}\t0\t1", f"x{BAD_GENE}\t1\t2"])
    (folder / "genes.Rtab").write_bytes(genes.encode())
    with zipfile.ZipFile(folder / "zipped.zip", "w") as archive:
        archive.writestr(f"a{BAD_GENE}.csv", "x")
        archive.writestr(f"b{BAD_GENE}.csv", "x")
    roles = ["--target", TARGET, "--environment", PLACE]
    outputs = ["--out", folder / "model.json", "--report", folder / "report.json"]
    fit = ["fit", folder / "data.parquet", *roles, "--drop", KEPT, *outputs]
    done = CliRunner().invoke(
        main, list(map(str, [*fit, "--stop", "coverage", "--pruning", "false"]))
    )
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def run(*arguments, status=0):
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == status, done.output
    return done


def run_on_terminal(monkeypatch, arguments):
    """What a terminal receives on standard output and standard error."""
    terminal, ours = pty.openpty()
    tty.setraw(ours)
    received = []

    def listen():
        try:
            while part := os.read(terminal, 4096):
                received.append(part)
        except OSError:  # the other side is closed
            return

    listener = Thread(target=listen)
    listener.start()
    monkeypatch.setenv("TERM", "xterm-256color")
    with (
        open(ours, "w", encoding="utf-8") as stream,
        monkeypatch.context() as patch,
        suppress(SystemExit),
    ):
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", stream)
        main([*map(str, arguments)])
    listener.join()
    os.close(terminal)
    return b"".join(received).decode("utf-8")


ROLES = ["--target", TARGET, "--environment", PLACE]
BAD = f"x{STEERING}"
COMMANDS = [
    ["check", "data.parquet", *ROLES, "--all"],
    ["check", "data.parquet", *ROLES, "--json"],
    ["fit", "data.parquet", *ROLES, "--cv", "1,2"],
    ["fit", "data.parquet", *ROLES, "--search", "exhaustive"],
    ["fit", "data.parquet", *ROLES, "--alpha", "0.999"],
    ["fit", "data.parquet", *ROLES, "--out", f"model {STEERING}.json", "--force"],
    ["fit", "text.parquet", *ROLES],
    ["fit", "one.parquet", *ROLES],
    ["fit", "data.parquet", "--target", BAD, "--environment", PLACE],
    ["fit", "data.parquet", *ROLES, "--drop", BAD],
    ["fit", "data.parquet", *ROLES, "--positive", BAD],
    ["fit", "data.parquet", *ROLES, "--alpha", BAD],
    ["fit", "data.parquet", *ROLES, "--test", BAD],
    ["fit", "data.parquet", *ROLES, f"--{BAD}"],
    ["fit", "data.parquet", *ROLES, "--delimiter", BAD],
    ["fit", "data.parquet", *ROLES, "--encoding", BAD],
    ["fit", BAD, *ROLES],
    ["fit", BAD, *ROLES, "--debug"],
    ["evaluate", "model.json", "data.parquet", *ROLES, "--all"],
    ["evaluate", "model.json", "data.parquet", "--target", BAD],
    ["screen", "data.parquet", *ROLES, "--validate", "--estimator", "logistic"],
    ["compare", "data.parquet", *ROLES, "--candidates", "baseline,scm"],
    ["recalibrate", "model.json", "data.parquet", "--target", TARGET, "--out", f"{BAD}.json"],
    ["show", "model.json"],
    ["show", "model.json", "--json"],
    ["show", BAD],
    ["export", "model.json", "--to", "sql"],
    ["export", "model.json", "--to", "sql", "--table", BAD, "--schema", BAD],
    ["export", "model.json", "--to", "python"],
    ["export", "model.json", "--to", "json"],
    ["export", "model.json", "--to", "text"],
    ["predict", "model.json", "data.parquet", "--keep-columns", KEPT],
    ["predict", "model.json", "data.parquet", "--keep-columns", KEPT, "--safe-csv"],
    ["predict", "model.json", "lacks.parquet"],
    ["predict", "model.json", "text.parquet"],
    ["simulate", "--n-samples", "9", "--out", f"{BAD}.csv", "--force"],
    ["demo", "--n-samples", "99", "--report", f"{BAD}.md", "--force"],
    ["pack", "genes.Rtab", "--out", f"{BAD}.bits", "--force"],
    ["pack", f"{BAD}.Rtab", "--out", f"{BAD}.bits", "--force"],
    ["fit", "zipped.zip", *ROLES, "--member", BAD],
    ["fit", "zipped.zip", *ROLES],
    ["fit", "data.parquet", *ROLES, "--na", BAD, "--report", f"{BAD}.html", "--force"],
    ["datasets", "--data", BAD],
    [BAD],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: " ".join(each[:2])[:20])
def test_nothing_steers_a_terminal(here, monkeypatch, arguments):
    """A name's control characters were sent raw.

    By `show --json`, `export --to sql` and `predict`, later by `evaluate` and `screen --validate`.
    """
    received = OWN_SEQUENCES.sub("", run_on_terminal(monkeypatch, arguments))
    assert received
    assert {each for each in received if not each.isprintable()} <= {"\n", "\t"}


def test_files_and_pipes_get_names_as_they_are(here):
    """Only a person at a terminal needs escapes: to others the names are data."""
    assert KEPT in run("predict", "model.json", "data.parquet", "--keep-columns", KEPT).stdout
    assert f"yes{STEERING}" in run("export", "model.json", "--to", "sql").stdout
    run("predict", "model.json", "data.parquet", "--keep-columns", KEPT, "--out", "p.parquet")
    frame = pd.read_parquet("data.parquet")
    assert pd.read_parquet("p.parquet")[KEPT].tolist() == frame[KEPT].tolist()
    shown = run("show", "model.json", "--json").stdout
    assert json.loads(shown)["classes"] == [f"no{STEERING}", f"yes{STEERING}"]
    assert shown.replace("\n", "").isprintable()


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def test_all_json_is_json(here, tmp_path):
    """`check --json` wrote Infinity, which other programs refuse."""
    frame = pd.read_parquet("data.parquet")
    frame[PLACE] = np.array([np.inf, -np.inf, 1.0])[np.arange(len(frame)) % 3]
    frame.to_parquet("infinite.parquet")
    fit = ["fit", "infinite.parquet", *ROLES, "--force", "--out", "inf.json", "--report"]
    run(*fit, "inf-report.json")
    texts = [
        run("check", "infinite.parquet", *ROLES, "--json", "-q").stdout,
        run("show", "inf.json", "--json").stdout,
        run("export", "inf.json", "--to", "json").stdout,
        *((here / name).read_text() for name in ("inf.json", "inf-report.json", "report.json")),
        dump_json({"low": -np.inf, "high": [np.float64("inf")], "none": np.nan}),
    ]
    for text in texts:
        json.loads(text, parse_constant=refuse)


def test_json_has_stand_ins_for_what_it_cannot_hold():
    assert json.loads(dump_json([np.inf, np.nan, "\x9b"])) == ["inf", "nan", "\x9b"]


ERRORS = [
    ["fit", "data.parquet", "--target", LONG * 2, "--environment", PLACE],
    ["fit", "data.parquet", "--target", LONG[:-5], "--environment", PLACE],
    ["fit", "data.parquet", *ROLES, "--only", "W" * 9_999],
    ["fit", "data.parquet", *ROLES, "--drop", ",".join(f"{i}{LONG}" for i in range(9))],
    ["fit", "data.parquet", *ROLES, "--positive", LONG],
    ["fit", "data.parquet", *ROLES, "--alpha", LONG],
    ["fit", "data.parquet", *ROLES, "--test", LONG],
    ["fit", "one.parquet", *ROLES],
    ["fit", LONG[:100], *ROLES],
    ["fit", "W" * 200, *ROLES],
    ["predict", "model.json", "lacks.parquet"],
    ["predict", "model.json", "text.parquet"],
    ["export", "model.json", "--to", LONG],
    [LONG],
]


@pytest.mark.parametrize("arguments", ERRORS, ids=lambda each: " ".join(each)[:40])
def test_error_lines_are_short(here, arguments):
    """A column's name of 10,000 characters made an error of as many, and hid what to do."""
    *_, line = run(*arguments, status=2).stderr.splitlines()
    assert line.startswith("Error: ")
    assert len(line) < 450


def test_terminal_tables_are_short(here):
    """A long name filled the screen several times over; files still have all of it."""
    for arguments in (["fit", "data.parquet"], ["check", "data.parquet"]):
        assert len(run(*arguments, *ROLES).output) < 16_000
    assert len(run("show", "model.json").output) < 16_000
    assert LONG in (here / "report.json").read_text()


def test_messages_keep_their_ends():
    """Long messages keep their beginning and end; short ones are unchanged."""
    error = IcscmError(f"the paper's column {'x' * 999!r} isn't there; the others' are 'a', 'b'")
    assert str(error).startswith("the paper's column 'xxx")
    assert str(error).endswith("xxx' isn't there; the others' are 'a', 'b'")
    assert len(str(error)) < 150
    told = "'a' is a name, and this a sentence of ours that is long; it has no names but 'b' in it"
    assert clip_message(told) == told
    assert len(clip_message("without any quotes " * 999)) <= 600


def read_csv(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def test_spreadsheets_compute_nothing(here):
    """A cell =1+1 of the data was a formula in the predictions; numbers must stay numbers."""
    command = ["predict", "model.json", "data.parquet", "--keep-columns", KEPT, "-q"]
    plain, (header, *safe) = (
        read_csv(run(*command, *more).stdout) for more in ([], ["--safe-csv"])
    )
    assert plain[0][0] == KEPT
    assert header[0] == f"'{KEPT}"
    kept = [row[0] for row in safe[:6]]
    assert kept == ["'=1+1", "'-1+1", "-5", f"'{STEERING}", "'\rx", "'\t=x"]
    assert [float(row[2]) for row in safe] == [float(row[2]) for row in plain[1:]]
    run(*command, "--safe-csv", "--out", "safe.tsv")
    assert (here / "safe.tsv").read_bytes().decode().startswith(f"\"'{KEPT}")
    done = run(*command, "--safe-csv", "--out", "safe.parquet", status=2)
    assert "--safe-csv is for .csv and .tsv" in done.stderr


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_formulas_of_any_text_type_are_disarmed(kind):
    texts = ["=a", "+1", "-1.5e3", "@x", "\n=", "\uff1dx", "-", None, "", "a=", "'=a"]
    safe = ["'=a", "+1", "-1.5e3", "'@x", "'\n=", "'\uff1dx", "'-", None, "", "a=", "'=a"]
    column = pa.array(texts).cast(kind)
    table = pa.table({"=x": column, "n": pa.array(range(-5, 6)), "none": pa.nulls(11)})
    found = disarm_formulas(table).to_pydict()
    assert found == {"'=x": safe, "n": list(range(-5, 6)), "none": [None] * 11}
    assert disarm_formulas(table.slice(0, 0)).num_rows == 0
    coded = pa.table({"x": pa.array(texts).dictionary_encode()})
    assert disarm_formulas(coded)["x"].to_pylist() == safe


def test_csv_holds_every_name():
    """A lone carriage return stood there without quotes, and cut the row in two for readers."""
    table = pa.table({"x": HOSTILE_NAMES, "y": HOSTILE_NAMES})
    stream = io.StringIO(newline="")
    write_text_table(table, stream)
    assert read_csv(stream.getvalue()) == [["x", "y"], *([name, name] for name in HOSTILE_NAMES)]
    assert stream.getvalue().startswith("x,y\n")
