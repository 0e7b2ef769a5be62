"""The program: `icscm`, and `python -m icscm` for where the command is not on the path.

Signal handlers are set before the slow imports, so that the program can be stopped during them.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_GRACE_PERIOD, _RETRY_DELAY = 5.0, 0.05  # seconds
_SHOW_CURSOR = b"\x1b[?25h"  # a progress bar hides the cursor


def main() -> None:
    """Run the command line; when a signal stops it, the exit status is 128 + its number."""
    # Without a buffer, as with PYTHONUNBUFFERED, Python drops what does not fit on the disk. The
    # number of a stream that is closed, as by `>&-`, would be that of the next file to be opened.
    coding = getattr(sys.stdout, "encoding", None)
    sys.stdout = open(1 if coding else os.devnull, "w", encoding=coding, closefd=not coding)  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    _set_handlers(_exit_now)
    if os.name == "posix":
        _start_watchdog()
    from icscm.cli import main as run

    try:
        _set_handlers(_stop)
        run()
    except KeyboardInterrupt as stopped:
        _exit_now(*stopped.args)
    finally:
        _set_handlers(_exit_now)


def _set_handlers(handle: Callable[[int, FrameType | None], None]) -> None:
    for name in _SIGNALS:
        number = getattr(signal, name, None)  # not every system has all of them
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def _start_watchdog() -> None:
    """Exit some seconds after a signal, even if compiled code blocks the handler."""
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    numbers = [getattr(signal, name) for name in _SIGNALS]

    def wait() -> None:
        while (number := os.read(receiver, 1)[0]) not in numbers:
            pass
        time.sleep(_GRACE_PERIOD)
        _exit_now(number)

    threading.Thread(target=wait, daemon=True).start()


def _stop(number: int, frame: FrameType | None) -> None:
    """Stop and clean up; during an import, which may swallow the exception, exit at once.

    The compiler continues for a moment: it may have freed memory without recording that yet.
    """
    at = frame
    while at is not None:
        if at.f_code.co_filename.startswith("<frozen importlib"):
            _exit_now(number)
        if at.f_globals.get("__name__", "").startswith(("llvmlite.", "numba.")):
            again = threading.Timer(_RETRY_DELAY, os.kill, (os.getpid(), number))
            again.daemon = True
            return again.start()
        at = at.f_back
    raise KeyboardInterrupt(number)


def _exit_now(number: int = signal.SIGINT, _: FrameType | None = None) -> None:
    message = b"Stopped.\n"
    os.write(2, _SHOW_CURSOR + message if os.isatty(2) else message)
    for path in getattr(sys.modules.get("icscm.writing"), "hidden_files", ()):
        path.unlink(missing_ok=True)
    os._exit(128 + number)


if __name__ == "__main__":
    main()
