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

from icscm import interruptions
from icscm.writing import hidden_files

# Signals that stop the program, where the system has them.
_SIGNALS = [
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
# Seconds after a signal until the program exits, although compiled code blocks its handler.
_GRACE_PERIOD = 5.0
# Seconds until a signal is sent again that came while the compiler worked.
_RETRY_DELAY = 0.05
# A progress bar hides the cursor.
_SHOW_CURSOR = b"\x1b[?25h"
# What shells add to the number of a signal to get an exit status.
_STOPPED_BY_SIGNAL = 128


def main() -> None:
    """Run the command line; when a signal stops it, the exit status is 128 + its number."""
    _replace_streams()
    _set_handlers(_exit_now)  # while modules are imported, there is nothing to clean up
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


def _replace_streams() -> None:
    """Buffer standard output, and open streams that are closed.

    Without a buffer, as with PYTHONUNBUFFERED, Python drops what does not fit on the disk. The
    number of a stream that is closed, as by `>&-`, would be that of the next file to be opened.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    else:
        sys.stdout = open(1, "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _set_handlers(handle: Callable[[int, FrameType | None], None]) -> None:
    """Handle the signals that the caller, such as nohup, does not ignore."""
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def _start_watchdog() -> None:
    """Exit some seconds after a signal, even if compiled code blocks the handler.

    Python runs a handler only between two of its own instructions, but writes the number of each
    signal to a pipe at once; a thread waits at the other end.
    """
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)

    def wait_for_signals() -> None:
        while True:
            n_ended_before = interruptions.count_ended()
            number = os.read(receiver, 1)[0]
            if number not in _SIGNALS:
                continue
            time.sleep(_GRACE_PERIOD)
            if number != signal.SIGINT or not interruptions.may_end_early(n_ended_before):
                _exit_now(number)

    threading.Thread(target=wait_for_signals, daemon=True).start()


def _stop(number: int, frame: FrameType | None) -> None:
    """Stop and clean up, unless the interrupted code is an import or the compiler.

    An import may swallow the exception, so the program exits at once. The compiler may have freed
    memory without recording that yet, so it continues, and the signal is sent again in a moment.
    """
    interrupted = frame
    while interrupted is not None:
        if interrupted.f_code.co_filename.startswith("<frozen importlib"):
            _exit_now(number)
        if interrupted.f_globals.get("__name__", "").startswith(("llvmlite.", "numba.")):
            _send_again(number)
            return
        interrupted = interrupted.f_back
    raise KeyboardInterrupt(number)


def _send_again(number: int) -> None:
    """Send a signal to this program in a moment."""
    timer = threading.Timer(_RETRY_DELAY, os.kill, (os.getpid(), number))
    timer.daemon = True  # the program need not wait for it to exit
    timer.start()


def _exit_now(number: int = signal.SIGINT, _: FrameType | None = None) -> None:
    """End the process without Python's clean-up, except for files that are half written."""
    message = b"Stopped.\n"
    is_terminal = os.isatty(2)
    os.write(2, _SHOW_CURSOR + message if is_terminal else message)
    for path in hidden_files:
        path.unlink(missing_ok=True)
    os._exit(_STOPPED_BY_SIGNAL + number)


if __name__ == "__main__":
    main()
