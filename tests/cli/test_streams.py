"""Closed pipes, full disks, and messages on standard error."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from icscm import ICSCMClassifier
from icscm.cli import main
from icscm.datasets import make_conjunction
from icscm.validation.path import alpha_path
from support.processes import PATIENCE, run_program

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    data = make_conjunction(300, random_state=1)
    ICSCMClassifier().fit(data.X, data.y, environments=data.environments).save(folder / "m.json")
    data.X.to_csv(folder / "new.csv", index=False)
    return folder


def run(*words):
    """The status of a command, run as the program does."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


@pytest.mark.parametrize("words", [["predict", "m.json", "new.csv"], ["show", "m.json"]])
def test_a_closed_pipe_is_no_error(folder, words, monkeypatch, capsys):
    """`icscm predict | head -1` ended with 1, and later still `icscm show`, which rich prints."""
    monkeypatch.chdir(folder)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert run(*words) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(">&-", marks=pytest.mark.thorough),
        pytest.param("2>&-", marks=pytest.mark.thorough),
        ">&- 2>&-",
    ],
)
def test_a_stream_that_is_closed_is_discarded(folder, closed):
    """`icscm predict >&-` ended with an unexpected AttributeError."""
    program = f"'{sys.executable}' -m icscm"
    done = subprocess.run(
        f"{program} predict m.json new.csv {closed} && ! {program} show none.json {closed}",
        shell=True, cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0
    assert "unexpected" not in done.stderr
    assert done.stderr == "" or closed == ">&-"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_little_output_on_a_full_disk(folder):
    """What fits in Python's buffer failed only at its end: the status was 120, with a traceback."""
    with open("/dev/full", "wb") as full:
        export = "export", folder / "m.json", "--to", "text"
        done = run_program(*export, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "Error: no space left on device: standard output is incomplete\n"


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")
@pytest.mark.parametrize("unbuffered", [pytest.param("", marks=pytest.mark.thorough), "1"])
def test_output_that_does_not_fit_is_an_error(folder, unbuffered):
    """With PYTHONUNBUFFERED the rest was lost without a word, and the status was 0."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (999, 999)); "
    code = f"{limit}from icscm.__main__ import main; main()"
    with (folder / "m.sql").open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-B", "-c", code, "export", folder / "m.json", "--to", "sql"],
            stdout=file, stderr=subprocess.PIPE, timeout=PATIENCE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == b"Error: no space left on device: standard output is incomplete\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_device_is_one_sentence(folder, capsys):
    """It said that /dev/full needs more than the 80 GB that another disk has left."""
    assert run("export", folder / "m.json", "--to", "sql", "--out", "/dev/full") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "Error: the disk is full: /dev/full is incomplete; free space and run again"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("words", [["predict", "m.json", "new.csv"], ["show", "m.json"]])
def test_standard_output_on_a_full_disk(folder, words, monkeypatch, capsys):
    """The message was that of Python: "[Errno 28] No space left on device"."""
    monkeypatch.chdir(folder)
    with suppress(OSError), open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "Error: no space left on device: standard output is incomplete"


@pytest.mark.parametrize("is_quiet", [False, True])
def test_written_files_are_named_on_standard_error(folder, tmp_path, is_quiet, capsys):
    """The line went to standard output, which may be data, and was printed with -q, too."""
    words = ["predict", folder / "m.json", folder / "new.csv", "--out", tmp_path / "p.csv"]
    assert run(*words, *["-q"] * is_quiet) == 0
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.endswith(f"Written: {tmp_path / 'p.csv'} (600 rows)\n") is not is_quiet


def test_reports_of_two_runs_are_equal():
    """A report held the seconds that its path along alpha took."""
    data = make_conjunction(300, random_state=1)
    learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    rows = {"X": data.X, "y": data.y, "environments": data.environments}
    reports = [learner.report(path=alpha_path(learner, **rows)) for _ in range(2)]
    assert reports[0].to_json() == reports[1].to_json()
    assert "seconds" not in reports[0].to_json()
