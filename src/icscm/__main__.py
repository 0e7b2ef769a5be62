"""The program: `icscm`, and `python -m icscm` for where the command is not on the path.

It imports little before it heeds signals, so that it can be stopped while it imports the rest.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_PATIENCE, _MOMENT = 5.0, 0.05  # seconds
_SHOW_CURSOR = b"\x1b[?25h"  # which a line that moves has hidden


def main() -> None:
    """Run the command line, which ends with 128 + the number of a signal, as shells count."""
    _heed(_leave)
    if os.name == "posix":
        _watch()
    from icscm.cli import main as run

    try:
        _heed(_stop)
        run()
    except KeyboardInterrupt as stopped:
        _leave(*stopped.args)
    finally:
        _heed(_leave)


def _heed(handle: Callable[[int, FrameType | None], None]) -> None:
    for name in _SIGNALS:
        number = getattr(signal, name, None)  # not all are known everywhere
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def _watch() -> None:
    """Leave some seconds after a signal in any case: compiled code that waits heeds none."""
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    numbers = [getattr(signal, name) for name in _SIGNALS]

    def wait() -> None:
        while (number := os.read(receiver, 1)[0]) not in numbers:
            pass
        time.sleep(_PATIENCE)
        _leave(number)

    threading.Thread(target=wait, daemon=True).start()


def _stop(number: int, frame: FrameType | None) -> None:
    """Stop what is done and clean up; in an import, which may swallow that, leave at once.

    The compiler goes on for a moment: it may have freed something and not noted yet that it did.
    """
    at = frame
    while at is not None:
        if at.f_code.co_filename.startswith("<frozen importlib"):
            _leave(number)
        if at.f_globals.get("__name__", "").startswith(("llvmlite.", "numba.")):
            again = threading.Timer(_MOMENT, os.kill, (os.getpid(), number))
            again.daemon = True
            return again.start()
        at = at.f_back
    raise KeyboardInterrupt(number)


def _leave(number: int = signal.SIGINT, _: FrameType | None = None) -> None:
    message = b"Stopped.\n"
    os.write(2, _SHOW_CURSOR + message if os.isatty(2) else message)
    os._exit(128 + number)


if __name__ == "__main__":
    main()
