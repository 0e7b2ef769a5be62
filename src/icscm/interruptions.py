"""Ctrl-C in a computation that ends early: it returns what it has instead of nothing.

The program (`icscm.__main__`) exits some seconds after a signal, whatever it does then. So a
computation that ends early says so here, and the program gets the time to show what it has.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class _State:
    """How many computations that end early run at the moment, and how many have ended so."""

    n_running = 0
    n_ended = 0


@contextmanager
def ending_early() -> Iterator[None]:
    """Mark a part of a computation after which it ends early if Ctrl-C interrupts it."""
    _State.n_running += 1
    try:
        yield
    except KeyboardInterrupt as stopped:
        _State.n_ended += is_ctrl_c(stopped)
        raise
    finally:
        _State.n_running -= 1


def is_ctrl_c(stopped: KeyboardInterrupt) -> bool:
    """Return whether it was Ctrl-C, and not another signal such as SIGTERM.

    The program puts the number of the signal into the exception; Python by itself puts nothing.
    """
    return stopped.args in ((), (signal.SIGINT,))


def count_ended() -> int:
    """Return how many computations have ended early so far."""
    return _State.n_ended


def may_end_early(n_ended_before: int) -> bool:
    """Return whether a computation ends early now, or has done so since it was counted."""
    return _State.n_running > 0 or _State.n_ended > n_ended_before
