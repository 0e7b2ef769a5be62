"""One call of `icscm` in a process of its own, so that a crash of the interpreter is seen.

Most are forked from here, where everything is imported and compiled already: tens of milliseconds
instead of seconds. Others are real, `python -m icscm` from the start. Nothing here may start a
thread: a forked process would wait for it for ever. So whatever needs one runs in a child, too.
"""

from __future__ import annotations

import atexit
import importlib
import io
import os
import pickle
import pkgutil
import pty
import runpy
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import icscm
from icscm.exceptions import IcscmError

# Seconds after which a call hangs; machines may be busy.
LIMIT = 240.0
# Signals that a call may get before it heeds them.
_KILLS = {signal.SIGINT, signal.SIGTERM}
SOURCES = Path(icscm.__file__).parents[1]
# Of memory allocators, which take care of forks themselves.
_HARMLESS_THREADS = {"jemalloc_bg_thd"}


@dataclass(frozen=True)
class Outcome:
    """How a call ended: minus the signal if by one."""

    argv: Sequence[str]
    status: int
    out: bytes
    err: bytes
    seconds: float
    hung: bool = False
    orphans: int = 0


def warm_up() -> None:
    """Import and compile what commands need: once, so that forked processes have it."""
    import distributed  # noqa: F401
    import duckdb  # noqa: F401
    import pandas as pd
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.feather
    import pyarrow.parquet  # noqa: F401
    import rich.progress  # noqa: F401

    for module in pkgutil.walk_packages(icscm.__path__, "icscm."):
        if not {"gpu", "__main__"} & set(module.name.split(".")):
            importlib.import_module(module.name)
    from icscm.datasets import make_conjunction

    data = make_conjunction(60, 2, random_state=1)
    X = pd.DataFrame(data.X).assign(number=range(120), text=["a", "b", None] * 40)
    table = X, data.y, [row % 3 for row in range(120)]
    with warnings.catch_warnings(action="ignore"):
        for n_thresholds in (50, 5):
            icscm.ICSCMClassifier(n_jobs=1, max_thresholds=n_thresholds).fit(
                *table[:2], environments=table[2]
            )
        for kind in ("ICSCM", "SCM", "InvariantTree", "InvariantForest", "InvariantScore"):
            few = {"n_estimators": 2} if kind == "InvariantForest" else {}
            learner = getattr(icscm, f"{kind}Classifier")(n_jobs=1, **few)
            learner.fit(*table[:2], environments=table[2])
            left_out = icscm.leave_one_environment_out(
                learner, X=table[0], y=table[1], environments=table[2]
            )
            report = learner.report(validation=left_out)
            report.to_html(), report.to_markdown()
    check_threads()


def check_threads() -> None:
    """Raise if something started a thread here."""
    names = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    n_ours = len(list(Path("/proc/self/task").iterdir())) - len(names & _HARMLESS_THREADS)
    if n_ours > 1:
        raise RuntimeError(f"a process with threads must not fork: {sorted(names)}")


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, computed in a forked process: it may start threads."""
    check_threads()
    with tempfile.TemporaryFile() as file:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                pickle.dump(function(*arguments), file)
                file.flush()
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        _, status = os.waitpid(pid, 0)
        if status:
            raise RuntimeError(f"{function.__name__}{arguments!r:.500} ended with {status}")
        file.seek(0)
        return pickle.load(file)


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder for one case: work for inputs and outputs, tmp for temporary files.

    Not by `tempfile.TemporaryDirectory`: a forked process would tidy it away as it ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.chmod(0o755)  # for other users
    (folder / "work").mkdir()
    (folder / "tmp").mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def call(
    folder: Path,
    argv: Sequence[str],
    *,
    real: bool = False,
    prefix: Sequence[str] = (),
    stdin: bytes = b"",
    limit: float = LIMIT,
    terminal: bool = False,
    kill: tuple[int, float] | None = None,
    setup: Callable[[], None] = lambda: None,
    program: Callable[[Sequence[str]], int] | None = None,
) -> Outcome:
    """Run `icscm`, or another program, in `folder`/work, with `folder`/tmp for temporary files.

    `prefix` comes before a real command, `setup` is called in the process before anything else,
    and `kill` is a signal and the seconds after which to send it.
    """
    check_threads()
    sys.stdout.flush()
    sys.stderr.flush()
    given, out, err = (os.memfd_create(name) for name in ("stdin", "stdout", "stderr"))
    os.write(given, stdin)
    os.lseek(given, 0, os.SEEK_SET)
    master, slave = pty.openpty() if terminal else (-1, -1)
    start = time.monotonic()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _KILLS)
    pid = os.fork()
    if pid == 0:
        for number, stream in enumerate((given, *((slave, slave) if terminal else (out, err)))):
            os.dup2(stream, number)
        python = [*prefix, sys.executable] if real else None
        _become(folder, argv, setup, python, program or _run_module)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    pidfd = os.pidfd_open(pid)
    try:
        screen, hung = _watch(pid, pidfd, master, start, limit, kill)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        seconds = time.monotonic() - start
        orphans = _end_group(pid)
        texts = (screen, screen) if terminal else (_read_all(out), _read_all(err))
        return Outcome(argv, status, *texts, seconds, hung, orphans)
    finally:
        for each in (given, out, err, pidfd, *((master, slave) if terminal else ())):
            os.close(each)


def _become(
    folder: Path,
    argv: Sequence[str],
    setup: Callable[[], None],
    python: Sequence[str] | None,
    program: Callable[[Sequence[str]], int],
) -> None:
    """In the forked process: be the command. Never returns."""
    status = 70
    try:
        os.setsid()
        os.chdir(folder / "work")
        # until the command heeds signals itself: this is no part of it
        signal.signal(signal.SIGINT, _stop_early)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.update(TMPDIR=str(folder / "tmp"), PYTHONPATH=str(SOURCES), TERM="dumb")
        setup()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _KILLS)
        if python:
            os.execvp(python[0], [*python, "-m", "icscm", *argv])
        status = program(argv)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def call_python(folder: Path, function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Run a function that uses the package; an `IcscmError` is a refusal, as of a command."""

    def program(_: Sequence[str]) -> int:
        warnings.simplefilter("ignore")
        try:
            print(function(*arguments), flush=True)
        except IcscmError as error:
            print(f"Error: {error}", file=sys.stderr, flush=True)
            return 2
        finally:  # as Python ends: pools are ended before anything waits for their processes
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        return 0

    return call(folder, [function.__name__], program=program)


def _stop_early(number: int, _: Any) -> None:
    os.write(2, b"Stopped.\n")
    os._exit(128 + number)


def _run_module(argv: Sequence[str]) -> int:
    """As `python -m icscm` does, and how that would end."""
    tempfile.tempdir = None
    sys.argv = ["icscm", *argv]
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            open(number, "wb" if number else "rb", closefd=False),  # noqa: SIM115
            encoding="utf-8",
            errors="backslashreplace" if number == 2 else "strict",
            line_buffering=number == 2,
        )
        for number in range(3)
    )
    status = 0
    try:
        runpy.run_module("icscm", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        traceback.print_exc()
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return status


def _watch(
    pid: int, pidfd: int, master: int, start: float, limit: float, kill: tuple[int, float] | None
) -> tuple[bytes, bool]:
    """Wait for the process to end; what it showed on a terminal, and whether it had to be ended."""
    screen = b""
    while True:
        due = min(limit, kill[1]) if kill else limit
        wait = max(0.0, start + due - time.monotonic())
        ready, _, _ = select.select([pidfd, *([master] if master >= 0 else [])], [], [], wait)
        if master in ready:
            screen += os.read(master, 2**16)
        elif pidfd in ready:
            return screen, False
        elif kill is not None and due == kill[1]:
            # Ctrl-C reaches all processes of a terminal, others are sent to one
            try:
                (os.killpg if kill[0] == signal.SIGINT else os.kill)(pid, kill[0])
            except ProcessLookupError:  # it has no group yet
                os.kill(pid, kill[0])
            kill = None
        else:
            os.killpg(pid, signal.SIGKILL)
            return screen, True


def _end_group(group: int, patience: float = 10.0) -> int:
    """Wait for what the process started, then end it; how many had to be."""
    until = time.monotonic() + patience
    while (left := _list_session(group)) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def _list_session(session: int) -> list[int]:
    """Processes of a session that are alive."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return []
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(path.parent.name))
    return found


def _read_all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
