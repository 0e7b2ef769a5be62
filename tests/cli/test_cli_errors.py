"""Errors are one line on standard error with status 2; outputs come whole or not at all."""

import gzip
import json
import pickle
import re
import shutil
import sys
import warnings
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import icscm.io.streams
import icscm.io.writing_tables
from icscm import ICSCMClassifier
from icscm.cli import main
from icscm.cli.group import name_option
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.sources.gpu.card import find_card


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with data and a model."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    n = 400
    a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
    y = (a & b) ^ (rng.random(n) < 0.05)
    frame = pd.DataFrame({"a": a, "b": b, "site": np.arange(n) % 2, "y": y})
    frame.to_csv(folder / "data.csv", index=False)
    frame.drop(columns="b").to_csv(folder / "lacks.csv", index=False)
    frame.assign(b="x").to_csv(folder / "text.csv", index=False)
    (folder / "broken.json").write_text('{"format": "icscm-model"')
    (folder / "exists.csv").write_text("old")
    (folder / "exists.html").write_text("old")
    with chdir(folder):
        run([*FIT, "--out", "model.json"], status=0)
    return folder


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A copy of it, the current folder."""
    monkeypatch.chdir(shutil.copytree(files, tmp_path, dirs_exist_ok=True))
    return tmp_path


FIT = ["fit", "data.csv", "--target", "y", "--environment", "site"]


def run(arguments, status=2):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == status, done.output
    return done


ERRORS = [
    (["frobnicate"], "No such command 'frobnicate'"),
    (["fit"], "Missing argument 'DATA'. See 'main fit --help'."),
    (["fit", "data.csv"], "Missing option '--target'"),
    (["fit", "data.csv", "--target", "y", "--colour", "red"], "No such option"),
    (["fit", "data.csv", "--target", "y"], "name the column of environments with --environ"),
    (["check", "data.csv", "--target", "y"], "Missing option '--environment'"),
    (["fit", "nowhere.csv", *FIT[2:]], "there is no file nowhere.csv"),
    (["check", ".", *FIT[2:]], "and data.csv have different columns"),
    (["fit", "data.csv", *FIT[2:], "--member", "x"], "data.csv is not a .zip archive"),
    (["fit", "data.csv", "--target", "z", "--environment", "site"], "has no column 'z'"),
    (["fit", "data.csv", "--target", "y", "--environment", "sit"], "did you mean 'site'?"),
    (["fit", "data.csv", "--target", "y", "--environment", "y"], "are both 'y'"),
    ([*FIT, "--drop", "aa"], "data.csv has no column 'aa'"),
    ([*FIT, "--only", "y"], "'y' is the target"),
    ([*FIT, "--categories", "q"], "has no column 'q'"),
    (
        [*FIT, "--keep-columns", "q"],
        "there is no --keep-columns any more: a column that looks",
    ),
    ([*FIT, "--positive", "2"], "the target 'y' has no value '2'"),
    ([*FIT, "--p", "0"], "Invalid value for '--p'"),
    ([*FIT, "--p", "-1"], "Invalid value for '--p'"),
    ([*FIT, "--alpha", "high"], "'high' is not a number between 0 and 1, both excluded, or 'auto'"),
    ([*FIT, "--alpha", "1.5"], "'1.5' is not a number between 0 and 1"),
    ([*FIT, "--alpha", "nan"], "'nan' is not a number between 0 and 1"),
    (
        [*FIT, "--p", "nan"],
        "Invalid value for '--p': 'nan' is not a number above 0 and at most 1e+100",
    ),
    ([*FIT, "--p", "inf"], "Invalid value for '--p'"),
    ([*FIT, "--margin", "0"], "Invalid value for '--margin'"),
    ([*FIT, "--margin", "1"], "a number between 0 and 1"),
    (
        [*FIT, "--model", "scm", "--margin", "0.1"],
        "--margin is for --model rule",
    ),
    ([*FIT, "--out", "data.csv", "--force"], "data.csv is an input file; choose another"),
    (
        ["predict", "model.json", "data.csv", "--out", "./data.csv", "--force"],
        "data.csv is an input file",
    ),
    (
        ["export", "model.json", "--to", "sql", "--out", "model.json", "--force"],
        "model.json is an input file",
    ),
    (["export", "model.json", "--to", "json", "--schema", "s"], "--schema is for --to sql"),
    ([*FIT, "--decimal", ";"], "';' is not one of '.', ','"),
    ([*FIT, "--evidence", "step"], "there is no --evidence any more: every step tests all"),
    ([*FIT, "--max-thresholds", "many"], "'many' is not a whole number of at least 1, or none"),
    ([*FIT, "--max-thresholds", "0"], "'0' is not a whole number of at least 1, or none"),
    ([*FIT, "--test", "t"], "'t' is not one of 'chi2', 'g', 'fisher'"),
    # a cluster of this many processes was started
    ([*FIT, "--workers", "1000000000000"], "'1000000000000' is not a whole number from 1 to 1000"),
    ([*FIT, "--cv", "1,x"], "'x' is not a number above 0 and at most 1e+100, or "),
    ([*FIT, "--cv", "p=1,0"], "'0' is not a number above 0 and at most 1e+100, or "),
    ([*FIT, "--cv", "q=1"], "--cv cannot choose 'q'; there are 'p', 'model_type'"),
    ([*FIT, "--cv", "model_type=both"], "'both' is not one of 'conjunction', 'disjunction'"),
    ([*FIT, "--cv", "margin=2"], "a number between 0 and 1"),
    ([*FIT, "--cv-folds", "environments"], "--cv-folds is only used with --cv"),
    (
        [*FIT, "--cv", "model_type=disjunction", "--model-type", "disjunction"],
        "sets model_type and --cv",
    ),
    ([*FIT, "--model", "scm", "--cv", "alpha=0.1"], "--cv alpha= is not for --model scm"),
    ([*FIT, "--cv", "1,2", "--p", "3"], "--p sets p and --cv chooses it"),
    ([*FIT, "--model", "scm", "--alpha", "0.1"], "--alpha is for --model rule, not for scm"),
    ([*FIT, "--model", "scm", "--pruning", "false"], "--pruning is for --model rule, not for scm"),
    ([*FIT, "--out", "exists.csv"], "exists.csv exists; choose another name, or use --force"),
    ([*FIT, "--report", "exists.html"], "exists.html exists"),
    ([*FIT, "--report", "r.pdf"], "r.pdf must end in .html, .md, .json"),
    ([*FIT, "--out", "no/m.json"], "there is no folder no"),
    ([*FIT, "--out", "."], "is a folder; name a file"),
    ([*FIT, "--out", "m.json", "--report", "./m.json"], "is named for two outputs"),
    ([*FIT, "--delimiter", ",,"], "delimiter must be one character"),
    ([*FIT, "--delimiter", ";"], "has no column 'y'"),
    ([*FIT, "--encoding", "utf-9"], "there is no encoding 'utf-9'"),
    ([*FIT, "--debug", "--drop", "aa"], "has no column 'aa'"),
    (["--debug", *FIT, "--drop", "aa"], "has no column 'aa'"),
    (["show", "nowhere.json"], "nowhere.json"),
    (["show", "broken.json"], "broken.json"),
    (["show", "data.csv"], "data.csv"),
    (["predict", "model.json", "lacks.csv"], "lacks.csv has no column 'b'"),
    (
        ["predict", "model.json", "text.csv"],
        "'b' of text.csv held numbers at fitting and holds 'x'",
    ),
    (["predict", "model.json", "data.csv", "--keep-columns", "id"], "has no column 'id'"),
    (
        ["predict", "model.json", "data.csv", "--out", "p.xlsx"],
        "must end in .csv, .tsv or .parquet",
    ),
    (["predict", "model.json", "data.csv", "--out", "exists.csv"], "exists.csv exists"),
    (["predict", "broken.json", "data.csv"], "broken.json"),
    (["export", "model.json"], "Missing option '--to'"),
    (["export", "model.json", "--to", "fortran"], "is not one of 'sql', 'python', 'r', 'json'"),
    (["export", "model.json", "--to", "sql", "--out", "exists.csv"], "exists.csv exists"),
    (["export", "broken.json", "--to", "sql"], "broken.json"),
    (["simulate"], "Missing option '--out'"),
    (["simulate", "--out", "d.xlsx"], "must end in .csv, .tsv or .parquet"),
    (["simulate", "--out", "exists.csv"], "exists.csv exists"),
    (["simulate", "--out", "d.csv", "--n-rows", "9"], "--n-rows is for --hospitals only"),
    (["simulate", "--out", "d.csv", "--hospitals", "--n-samples", "9"], "is not for --hospitals"),
    (
        ["simulate", "--out", "d.csv", "--hospitals", "--n-rows", "9"],
        "--n-rows must be a whole number",
    ),
    (["simulate", "--out", "d.csv", "--hospitals", "--new-hospital", "d.csv"], "two outputs"),
    (["simulate", "--out", "d.csv", "--hospitals", "--new-hospital", "exists.csv"], "exists"),
    (["simulate", "--out", "d.csv", "--model-type", "tree"], "a tree takes 1, 3, 7, 15, .."),
    (["demo", "--report", "exists.html"], "exists.html exists"),
    (["demo", "--n-samples", "0"], "Invalid value for '--n-samples'"),
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    ERRORS,
    ids=lambda each: " ".join(each)[:60] if isinstance(each, list) else "",
)
def test_errors_are_one_line(here, arguments, message):
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    done = run(arguments)
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("Error: ")
    assert message in lines[-1]
    if "--debug" in arguments:
        assert "Traceback (most recent call last)" in done.stderr
    else:
        assert [line for line in lines if not line.endswith(" ...")] == [lines[-1]]
    assert done.stdout == ""
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_outputs_are_checked_before_the_data_are_read(here):
    """An hour's work must not end in a file that exists."""
    done = run(["fit", "nowhere.csv", *FIT[2:], "--out", "exists.csv"])
    assert "exists.csv exists" in done.stderr
    assert "Reading" not in done.stderr


def test_force_overwrites(here):
    run([*FIT, "--out", "exists.csv", "--report", "exists.html", "--force"], status=0)
    assert (here / "exists.csv").read_text().startswith("{")
    run(["predict", "model.json", "data.csv", "--out", "exists.csv", "--force"], status=0)
    assert (here / "exists.csv").read_text().startswith("prediction,")
    run(["export", "model.json", "--to", "text", "--out", "exists.csv", "--force"], status=0)
    run(["simulate", "--out", "exists.csv", "--force", "--n-samples", "9"], status=0)
    assert (here / "exists.csv").read_text().startswith("A1,")


class Disk:
    """A file that is full after a few lines."""

    def __init__(self, stream, *_, **__):
        self.stream = stream

    def writerow(self, row):
        self.stream.write("some\n")
        self.stream.flush()

    def writerows(self, rows):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "model.json", "data.csv", "--out", "exists.csv", "--force"],
        ["predict", "model.json", "data.csv", "--out", "new.csv"],
        ["simulate", "--out", "new.csv", "--n-samples", "9"],
    ],
    ids=" ".join,
)
def test_a_full_disk_leaves_no_half_file(here, monkeypatch, arguments):
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    monkeypatch.setattr(icscm.io.writing_tables.csv, "writer", Disk)
    done = run(arguments)
    assert f"the disk is full: {arguments[arguments.index('--out') + 1]} needs" in done.stderr
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["new", "over an old one"])
def test_a_report_that_fails_leaves_no_model(here, monkeypatch, force):
    from icscm.report import page

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page.Report, "to_html", fail)
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    name = "exists.html" if force else "new.html"
    done = run([*FIT, "--out", "new.json", "--report", name, *force])
    assert "no space left on device" in done.stderr
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


UNFORESEEN = [
    (MemoryError(), "Error: out of memory; set a smaller --max-memory, with which", 2),
    (KeyError("what"), "Error: unexpected error (KeyError: 'what'); run it again", 2),
    (RuntimeError("a\nb\x1b[2J"), r"Error: unexpected error (RuntimeError: a b\x1b[2J)", 2),
    (ValueError("Feature names unseen:\n- weight\n"), "Error: Feature names unseen: - weight", 2),
    (KeyboardInterrupt(), "Stopped.", 130),
]


@pytest.mark.parametrize(("error", "message", "status"), UNFORESEEN, ids=repr)
def test_whatever_happens_there_is_no_traceback(here, monkeypatch, error, message, status):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("icscm.io.streams.load_table", fail)
    done = run(FIT, status=status)
    assert done.stderr.splitlines()[-1].startswith(message)
    assert "Traceback" not in done.stderr
    assert "Traceback" in run([*FIT, "--debug"], status=status).stderr


def test_warnings_are_one_line_each_and_come_once(here, monkeypatch):
    read = icscm.io.streams.load_table

    def warn_and_read(*args, **kwargs):
        for _ in range(3):
            warnings.warn("Mind the gap:\n  it is\x07 wide.", IcscmWarning, stacklevel=1)
        return read(*args, **kwargs)

    monkeypatch.setattr("icscm.io.streams.load_table", warn_and_read)
    done = run(FIT, status=0)
    found = re.findall(r"^Warning.*$", done.stderr, re.MULTILINE)
    assert found == [r"Warning: Mind the gap: it is\x07 wide."]


def test_on_a_terminal_messages_are_folded(monkeypatch, capsys):
    from icscm.cli import console

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    console.print_line("Error: " + "word " * 30)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 40


def test_progress_on_a_terminal(monkeypatch, capsys):
    """Time left was shown for none of the commands that read a file."""
    from icscm.cli.console import Progress

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    progress = Progress(quiet=False)
    with progress.stage("Reading [red]x"):
        pass
    with progress.stage("Counting [red]x", 100) as show:
        show()
        show(60)
        show(80)
    shown = capsys.readouterr().err
    assert "Counting [red]x" in shown
    assert "80%" in shown
    assert re.search(r"[\d-]:[\d-]{2}:[\d-]{2}", shown)  # the time left


@pytest.mark.parametrize("name", ["genes.Rtab", "genes.Rtab.gz"])
def test_pack_shows_the_bytes_that_were_read(name, tmp_path, monkeypatch):
    from icscm.sources.bits.packing import pack_table

    monkeypatch.chdir(tmp_path)
    text = b"Gene\tone\ttwo\n" + b"gyrA\t1\t0\nparC\t1\t1\nblaZ\t0\t1\n"
    Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    shown: list[int] = []
    monkeypatch.setattr("icscm.sources.bits.packing.CHUNK_BYTES", 10)
    pack_table(name, "genes.bits", on_chunk=shown.append)
    assert shown == sorted(shown)
    assert shown[-1] == Path(name).stat().st_size


@pytest.mark.parametrize(
    "options",
    [
        ["--alpha", "2"],
        ["--p", "nan"],
        ["--max-thresholds", "0"],
        ["--margin", "1"],
    ],
    ids=" ".join,
)
def test_wrong_settings_fail_before_the_data_are_read(here, options):
    """`--alpha 2` was told after minutes of reading: here the file is not even there."""
    done = run(["fit", "nowhere.csv", *FIT[2:], *options])
    assert "nowhere" not in done.stderr


def test_messages_speak_of_options(here):
    """Errors on the command line advised Python parameters, such as keep_columns."""
    frame = pd.read_csv("data.csv")
    frame.assign(a=[f"row {k}" for k in range(len(frame))], b=2).to_csv("same.csv", index=False)
    done = run(["fit", "same.csv", *FIT[2:]])
    assert "should be used must be named in --categories" in done.stderr
    assert "categorical column" not in done.stderr
    assert "(force=True)" not in run([*FIT, "--out", "exists.csv"]).stderr


@pytest.mark.parametrize(
    ("parameter", "python", "option"),
    [
        (Parameter("margin", None), "margin=None", "--margin none"),
        (Parameter("test", "g"), "test='g'", "--test g"),
        (Parameter("min_samples_leaf"), "min_samples_leaf", "--min-samples-leaf"),
        (Parameter("force", True), "force=True", "--force"),
        (Parameter("X"), "X", "the table"),
    ],
)
def test_messages_name_parameters_in_the_readers_words(parameter, python, option):
    """What a user called a column stays as it is, even if it is the name of a parameter."""
    column = "column 'margin=None' of X"
    error = IcscmError(f"{column} needs ", parameter, ".")
    assert str(error) == f"{column} needs {python}."
    assert error.render(name_option) == f"{column} needs {option}."
    from_a_worker = pickle.loads(pickle.dumps(error))
    assert from_a_worker.render(name_option) == error.render(name_option)


def test_every_option_that_messages_name_is_one(here):
    """Advice named options by rewriting words; each parameter is now looked up among them."""
    options = {
        each for command in main.commands.values() for p in command.params for each in p.opts
    }
    learner = ICSCMClassifier()
    names = [*learner.get_params(), "force"]
    unset = {"pruning"}
    assert {name_option(Parameter(name)) for name in names if name not in unset} <= options


def test_columns_of_lists_and_structs(here):
    """As target or environment they were "something unforeseen: unhashable type"."""
    (here / "folder").mkdir()
    frame = pd.read_csv("data.csv")
    for name in ("a", "site", "y"):
        for nest in (lambda value: [value], lambda value: {"part": value}):
            nested = frame.assign(**{name: frame[name].map(nest)})
            nested.to_parquet("x.parquet")
            nested.to_parquet("folder/x.parquet")
            for command in (["check", "x.parquet"], ["fit", "folder"]):
                told = run([*command, *FIT[2:]]).stderr
                assert re.search(rf"column '{name}'.* is of type (list|struct)<.* convert", told)


def test_settings_of_another_type_in_a_model_file(here):
    """show raised a TypeError for a file whose settings.table.positive was a number; later such
    settings were ignored, and evaluate read other labels than fit had.
    """
    text = (here / "model.json").read_text()
    wrong = {"positive": 16, "target": 3, "environment": {"a": []}, "na": "?", "levels": {"a": 5}}
    for key, value in (wrong | {"default_na": 0, "merge_environments": [["a"]]}).items():
        saved = json.loads(text)
        saved["settings"]["table"][key] = value
        (here / "model.json").write_text(json.dumps(saved))
        for command in (["show"], ["export", "--to", "sql"], ["predict", "data.csv"]):
            told = run([command[0], "model.json", *command[1:]], status=2).stderr
            assert re.fullmatch(rf"Error: .* settings\.table\.{key}.* must be .*\n", told)


def test_without_cupy_a_command_ends_at_once(here, monkeypatch):
    """`--device cuda` read the table and imported all learners before it said so."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    find_card.cache_clear()
    (here / "data.csv").write_text("this is no table")
    done = run([*FIT, "--device", "cuda"])
    assert done.stderr == (
        "Error: --device cuda needs CuPy, which is not installed: pip install 'icscm[cuda]'\n"
    )
