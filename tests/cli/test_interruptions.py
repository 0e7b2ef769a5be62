"""Commands that are stopped, or run out of memory or disk: one line, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from llvmlite.binding.ffi import ObjectRef

from icscm import __main__ as program
from icscm.cli import main
from icscm.writing import write_text
from support.processes import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and limits of Linux")

# what the command does, after telling that it is about to; a shell in the background ignores SIGINT
START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from icscm.__main__ import main; import os; os.write(2, b'!'); main()"
)


def start(code, *arguments):
    """Start a process of this code; it has written one character to standard error."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    os.read(process.stderr.fileno(), 1)
    return process


def wait_for_end(process):
    """Wait for the end of a process that got a signal; return what it says before."""
    try:
        _, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"the signal did not end the process within {PATIENCE} seconds")
    return said


def is_waiting(process):
    """Whether the main thread waits for something, by what Linux tells of it."""
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S"


def make_table():
    """A small table, whose label is one of its columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 2, 200), "b": rng.random(200)})
    return frame.assign(y=frame["a"], site=np.arange(200) % 2)


@pytest.fixture
def data(tmp_path):
    make_table().to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="SIGINT"),
        pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.thorough),
    ],
)
def test_stopped_in_the_first_second(data, tmp_path, number):
    """Ctrl-C during imports showed a traceback; later, now and then, it was swallowed by one."""
    out = tmp_path / "never read"
    os.mkfifo(out)  # so that no process ends by itself
    fit = ["fit", data, "--target", "y", "--environment", "site", "-q", "--out", out]
    processes = [start(START, *fit) for _ in range(4)]

    for process in processes:
        time.sleep(0.05)  # some are stopped early, some later
        process.send_signal(number)

    for process in processes:
        said = wait_for_end(process)
        assert said.splitlines()[-1] == "Stopped."
        assert "Traceback" not in said
        assert process.returncode == 128 + number


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="INT", marks=pytest.mark.thorough),
        pytest.param(signal.SIGTERM, id="TERM"),
        pytest.param(signal.SIGKILL, id="KILL", marks=pytest.mark.thorough),
    ],
)
def test_stopped_while_a_store_is_written(tmp_path, number):
    """SIGTERM left `.icscm-<hex>.bits` beside the store, and SIGKILL for good."""
    table = tmp_path / "table.tsv"
    os.mkfifo(table)
    process = start(START, "pack", table, "--out", tmp_path / "store.bits", "-q")
    with table.open("w") as stream:
        stream.write("Gene\tg1\tg2\nmecA\t0\t1\n")
        stream.flush()
        wait_until(lambda: list(tmp_path.glob(".icscm-*")), "no store is being filled")
        process.send_signal(number)
        said = wait_for_end(process)
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
    command = [sys.executable, "-B", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE)
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
            time.sleep(PATIENCE)
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
    process = start(code)
    wait_until(lambda: is_waiting(process), "the process does not wait for its lock")
    process.send_signal(signal.SIGTERM)
    said = wait_for_end(process)
    assert (process.returncode, said) == (143, "Stopped.\n")


LIMITED = """
import resource, sys
import icscm.cli, icscm.io.streams, icscm.validation.checkup, pyarrow.parquet
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**26,) * 2)
icscm.cli.main(sys.argv[1:])
"""


@pytest.mark.thorough
def test_out_of_memory_is_not_the_files_fault(tmp_path):
    """ "big.parquet cannot be read as Parquet: malloc of size 160000000 failed"."""
    import pyarrow
    from pyarrow import parquet

    big = tmp_path / "big.parquet"
    zeros = pyarrow.array(np.zeros(20_000_000, dtype=np.int64))
    parquet.write_table(pyarrow.table({"a": zeros, "y": zeros, "site": zeros}), big)
    check = ["check", str(big), "--target", "y", "--environment", "site", "-q"]
    plain = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # others reserve memory beforehand
    command = [sys.executable, "-c", LIMITED, *check]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=plain)
    advice = "use fewer columns (--only, --drop); use fewer rows"
    assert (done.returncode, done.stderr) == (2, f"Error: out of memory; {advice}\n")


def test_a_parquet_file_too_large_for_memory_is_not_called_damaged(tmp_path, monkeypatch):
    """The same in this process, with the error that pyarrow raises."""
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "big.parquet"
    parquet.write_table(pyarrow.table({"y": [0, 1]}), path)

    def fail(*_, **__):
        raise pyarrow.ArrowMemoryError("malloc of size 160000000 failed")

    monkeypatch.setattr("icscm.io.streams.ParquetFile", fail)
    done = CliRunner().invoke(main, ["check", str(path), "--target", "y", "--environment", "y"])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("Error: out of memory; ")


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

    monkeypatch.setattr("icscm.io.streams.load_table", fail)
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


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model file, and the table that it was learned from, in a folder of their own."""
    folder = tmp_path_factory.mktemp("dash")
    make_table().to_csv(folder / "data.csv", index=False)
    fit = ["fit", str(folder / "data.csv"), "--target", "y", "--environment", "site", "-q"]
    done = CliRunner().invoke(main, [*fit, "--out", str(folder / "model.json")])
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize(("command", "begin"), OUTPUTS, ids=[each[0][0] for each in OUTPUTS])
def test_a_dash_is_standard_output(model, monkeypatch, capfd, command, begin):
    """`--out -` wrote a file called `-`."""
    monkeypatch.chdir(model)
    before = sorted(model.iterdir())
    with pytest.raises(SystemExit) as ended:
        main([*command, "--out", "-"])
    assert ended.value.code == 0
    shown = capfd.readouterr().out
    assert shown.startswith(begin)
    assert "Written" not in shown
    assert sorted(model.iterdir()) == before


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
