"""The card, and screening on it: from all candidates to the few that the search must test."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from icscm._types import Array
from icscm.exceptions import IcscmError, Parameter
from icscm.sources.gpu import launching

# Bytes of columns from which on a search on the card is faster.
_WORTH_SENDING = 2**27
# Memory for screening in addition to a share of the columns: p-values, and columns being sent.
_COMPUTED_BYTES = 2**30
# Values of the parameter `device`, for messages.
_CUDA = Parameter("device", "cuda")
_CPU = Parameter("device", "cpu")


class Card(NamedTuple):
    """A card, or a substitute in tests.

    Attributes
    ----------
    xp : module
        CuPy, or NumPy.
    special : module
        The special functions of CuPy, or of SciPy.
    kernels : CompiledKernels
        See `icscm.sources.gpu.launching`, or their twins.
    count_free : callable
        Counts the free bytes of the card's memory.
    """

    xp: Any
    special: Any
    kernels: Any
    count_free: Callable[[], int]

    def send(self, array: Array) -> Any:
        """Return an array on the card."""
        return self.xp.asarray(array)

    def take(self, array: Any, rows: Any) -> Any:
        """Take some rows of an array on the card: a slice, or their numbers, wherever these are."""
        if isinstance(rows, slice):
            return array[rows]
        return array[self.send(rows)]

    def bring(self, array: Any) -> Array:
        """Return an array of the card, or of NumPy, in this memory."""
        return np.asarray(array.get() if hasattr(array, "get") else array)


def choose_card(device: str, n_bytes: int) -> Card | None:
    """Choose the card for so many bytes of columns; None where they stay with the processor.

    `"auto"` means a card if there is one that has room for them, and they are enough to pay.
    """
    if device == "cpu" or (device == "auto" and n_bytes < _WORTH_SENDING):
        return None
    try:
        card = find_card()
    except IcscmError:
        if device == "auto":
            return None
        raise
    if device == "auto" and not has_room(card, n_bytes):
        return None
    return card


def check_device(device: str) -> None:
    """Raise for `"cuda"` without a card: before a table is read, which may take long."""
    if device == "cuda":
        find_card()


def has_room(card: Card, n_bytes: int) -> bool:
    """Return whether columns of so many bytes fit, with the results computed from them."""
    n_computed_bytes = n_bytes // 16 + _COMPUTED_BYTES
    return n_bytes + n_computed_bytes <= card.count_free()


def check_room(card: Card, n_bytes: int) -> None:
    """Raise if a table that must be on the card at once does not fit."""
    if has_room(card, n_bytes):
        return
    why = (
        f"the table takes {n_bytes / 1e9:,.1f} GB of the card's memory, of which "
        f"{card.count_free() / 1e9:,.1f} GB are free; give fewer columns, or leave "
    )
    raise IcscmError(why, _CPU)


@cache
def find_card() -> Card:
    """Find the first card of this machine, and compile the kernels for it, once.

    Raises
    ------
    IcscmError
        If there is none that can be used; the message says why.
    """
    try:
        import cupy
        from cupyx.scipy import special
    except ImportError:
        why = " needs CuPy, which is not installed: pip install 'icscm[cuda]'"
        raise IcscmError(_CUDA, why) from None
    check_card(cupy)
    with translate_card_errors():
        kernels = launching.CompiledKernels(cupy)

    def count_free() -> int:
        """Count the bytes that are free on the card, or kept by CuPy for arrays to come."""
        n_free_bytes, _ = cupy.cuda.Device().mem_info
        return int(n_free_bytes + cupy.get_default_memory_pool().free_bytes())

    return Card(xp=cupy, special=special, kernels=kernels, count_free=count_free)


def check_card(cupy: Any) -> None:
    """Raise if CuPy finds no card that it can use."""
    try:
        n_cards = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        _, _, after_code = str(error).partition(":")
        reason = after_code.strip() or str(error)
        why = (
            f" found no NVIDIA card that it can use ({reason}); "
            "check the driver with nvidia-smi, or leave "
        )
        raise IcscmError(_CUDA, why, _CPU) from None
    if n_cards == 0:
        raise IcscmError(_CUDA, " found no NVIDIA card; leave ", _CPU)


# CuPy's errors of a card that fails, by name: CuPy may not be installed.
_CARD_FAILURES = ("CUDARuntimeError", "CUDADriverError", "CompileException", "NVRTCError")


@contextmanager
def translate_card_errors() -> Iterator[None]:
    """Turn CuPy's errors for a full or failing card into one clear sentence."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if name == "OutOfMemoryError":
            why = f"the card's memory is full ({error}); free some, or leave "
            raise IcscmError(why, _CPU) from None
        if name in _CARD_FAILURES:
            first_line = str(error).strip().splitlines()[0]
            why = f"the card failed ({first_line}); update its driver, or leave "
            raise IcscmError(why, _CPU) from None
        raise
