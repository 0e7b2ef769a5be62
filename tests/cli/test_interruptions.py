"""Commands that are stopped, or run out of memory or disk: one line, and nothing left behind."""

import os
import random
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from llvmlite.binding.ffi import ObjectRef

from icscm import __main__ as program
from icscm.cli import main
from icscm.writing import write_text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and limits of Linux")

# what the command does, after telling that it is about to
START = "from icscm.__main__ import main; import os; os.write(2, b'!'); main()"


def start(*arguments, **settings):
    command = [sys.executable, "-c", START, *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **settings)
    os.read(process.stderr.fileno(), 1)
    return process


@pytest.fixture
def data(tmp_path):
    """A small table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 2, 200), "b": rng.random(200)})
    frame["y"], frame["site"] = frame["a"], np.arange(200) % 2
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_stopped_in_the_first_second(data, number):
    """Ctrl-C during imports showed a traceback; later, now and then, it was swallowed by one."""
    rng = random.Random(0)
    fit = ["fit", str(data), "--target", "y", "--environment", "site", "-q"]
    running = [(start(*fit), rng.uniform(0, 0.8)) for _ in range(4)]
    for process, delay in sorted(running, key=lambda each: each[1]):
        time.sleep(delay / 4)
        process.send_signal(number)
    for process, _ in running:
        _, said = process.communicate(timeout=600)
        assert said.splitlines()[-1] == "Stopped."
        assert "Traceback" not in said
        assert process.returncode == 128 + number


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["INT", "TERM", "KILL"]
)
def test_stopped_while_a_store_is_written(tmp_path, number):
    """SIGTERM left `.icscm-<hex>.bits` beside the store, and SIGKILL for good."""
    table = tmp_path / "table.tsv"
    os.mkfifo(table)
    process = start("pack", str(table), "--out", str(tmp_path / "store.bits"), "-q")
    with table.open("w") as stream:
        stream.write("Gene\tg1\tg2\nmecA\t0\t1\n")
        stream.flush()
        while not list(tmp_path.glob(".icscm-*")):
            time.sleep(0.02)  # until the store is being filled
        process.send_signal(number)
        _, said = process.communicate(timeout=600)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert said.strip() == ("" if number == signal.SIGKILL else "Stopped.")
    assert len(list(tmp_path.glob(".icscm-*"))) == (number == signal.SIGKILL)
    write_text(tmp_path / "other.txt", "the next run")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.txt", "table.tsv"]


def test_stopped_by_force_while_a_file_is_written(tmp_path):
    """A signal during an import or a long compilation exits at once, and left the hidden file of a
    store that was being packed."""
    (tmp_path / "slow.py").write_text("import os, time; os.kill(os.getpid(), 15); time.sleep(60)")
    code = (
        "import sys; sys.path.insert(0, '.'); from icscm import __main__ as program\n"
        "from pathlib import Path; from icscm.writing import write_whole\n"
        "program._set_handlers(program._stop)\n"
        "def write(file): file.write(b'half'); import slow\n"
        "write_whole(Path('model.json'), write)"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (143, b"Stopped.\n")
    assert [each.name for each in tmp_path.iterdir()] == ["slow.py"]


def test_the_compiler_is_not_stopped_while_it_frees_memory(monkeypatch):
    """A `pack` ended by SIGTERM died of a double free: the signal came after LLVM had freed a
    module and before llvmlite had noted that, so that the module was freed once more.
    """
    n_freed = []

    class Module(ObjectRef):
        def _dispose(self):
            n_freed.append(1)
            signal.raise_signal(signal.SIGUSR1)

    monkeypatch.setattr(program, "_RETRY_DELAY", 0.01)
    before = signal.signal(signal.SIGUSR1, program._stop)
    try:
        module = Module(1)
        module.close()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
        del module
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert n_freed == [1]


def test_compiled_code_that_waits_is_left():
    """A process that waited for a lock in compiled code could only be killed by SIGKILL."""
    code = (
        "import icscm.__main__ as program, os, sys; program._GRACE_PERIOD = 0.1\n"
        "def run():\n"
        "    import ctypes; lock = ctypes.CDLL(None).pthread_mutex_lock; mutex = bytes(64)\n"
        "    lock(mutex); os.write(2, b'!'); lock(mutex)\n"
        "sys.modules['icscm.cli'] = type(sys)('icscm.cli'); sys.modules['icscm.cli'].main = run\n"
        "program.main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    os.read(process.stderr.fileno(), 1)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (143, "Stopped.\n")


LIMITED = """
import resource, sys
import icscm.cli, icscm.io.streams, icscm.studies.checkup, pyarrow.parquet
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**26,) * 2)
icscm.cli.main(sys.argv[1:])
"""


def test_out_of_memory_is_not_the_files_fault(tmp_path):
    """ "big.parquet cannot be read as Parquet: malloc of size 160000000 failed"."""
    import pyarrow
    from pyarrow import parquet

    big = tmp_path / "big.parquet"
    zeros = pyarrow.array(np.zeros(20_000_000, dtype=np.int64))
    parquet.write_table(pyarrow.table({"a": zeros, "y": zeros, "site": zeros}), big)
    check = ["check", str(big), "--target", "y", "--environment", "site", "-q"]
    command = [sys.executable, "-c", LIMITED, *check]
    plain = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # others reserve memory beforehand
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
    advice = "use fewer columns (--only, --drop); use fewer rows"
    assert (done.returncode, done.stderr) == (2, f"Error: out of memory; {advice}\n")


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (["fit", "-", "--target", "y", "--environment", "site"], "--max-memory"),
        (["check", "-", "--target", "y", "--environment", "site"], "--only"),
        (["predict", "model.json", "-"], "fewer rows"),
    ],
    ids=["fit", "check", "predict"],
)
def test_advice_on_memory_names_options_of_the_command(monkeypatch, command, advice):
    def fail(*_, **__):
        raise ImportError("x.so: failed to map segment from shared object")

    monkeypatch.setattr("icscm.io.streams.read_file", fail)
    monkeypatch.setattr("icscm.model.saved.load", fail)
    done = CliRunner().invoke(main, command)
    told = done.stderr.splitlines()[-1]
    assert told.startswith("Error: out of memory; ")
    assert advice in told
    options = {each for option in main.commands[command[0]].params for each in option.opts}
    assert {word.strip(",();") for word in told.split() if "--" in word} <= options


def test_a_temporary_store_that_does_not_fit_names_an_option(data, monkeypatch):
    """The advice was to name another folder with temp_dir, which no option was."""
    folder = data.parent / "parts"
    folder.mkdir()
    data.rename(folder / "part.csv")
    fit = ["fit", str(folder), "--target", "y", "--environment", "site", "-q"]
    done = CliRunner().invoke(main, [*fit, "--temp-dir", str(data.parent / "none")])
    assert "--temp-dir" in done.stderr
    assert "none is not a folder; create it, or name another" in done.stderr
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    done = CliRunner().invoke(main, [*fit, "--temp-dir", str(data.parent)])
    assert "the disk is full: the temporary store needs 200 bytes in" in done.stderr
    assert "name a folder on another disk with --temp-dir" in done.stderr


OUTPUTS = [
    (["simulate", "--n-samples", "3"], "A1,A2,"),
    (["fit", "data.csv", "--target", "y", "--environment", "site", "-q"], "{"),
    (["predict", "model.json", "data.csv", "-q"], "prediction,probability,decided_by"),
    (["export", "model.json", "--to", "sql"], "-- "),
]


@pytest.mark.parametrize(("command", "begin"), OUTPUTS, ids=[each[0][0] for each in OUTPUTS])
def test_a_dash_is_standard_output(data, command, begin):
    """`--out -` wrote a file called `-`."""
    fit = ["fit", str(data), "--target", "y", "--environment", "site", "-q"]
    CliRunner().invoke(main, [*fit, "--out", str(data.with_name("model.json"))])
    before = sorted(data.parent.iterdir())
    line = [sys.executable, "-m", "icscm", *command, "--out", "-"]
    done = subprocess.run(line, cwd=data.parent, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(begin)
    assert "Written" not in done.stdout
    assert sorted(data.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["pack", "t.tsv", "--out", "-"], "- must end in .bits"),
        (["fit", "t.csv", "--target", "y", "--workers", "None"], "is not a whole number from 1 to"),
        (["fit", "t.csv", "--target", "y", "--n-jobs", "0"], "'0' is not none, or a whole number"),
        (["simulate", "--out", "t.csv", "--label-noise", "nan"], "not a number from 0 to 1"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wording(tmp_path, monkeypatch, command, message):
    """A folder called `-` was made; "'None' is not a valid integer range"."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert message in done.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("size", ["lots", "1KB"])
def test_sizes_are_told_by_the_options_name(data, size):
    """ "max_memory must be a number of bytes"."""
    fit = ["fit", str(data), "--target", "y", "--environment", "site", "-q"]
    done = CliRunner().invoke(main, [*fit, "--max-memory", size])
    assert "--max-memory" in done.stderr
    assert "max_memory" not in done.stderr
