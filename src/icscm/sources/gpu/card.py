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
_CUDA, _CPU = Parameter("device", "cuda"), Parameter("device", "cpu")


class Card(NamedTuple):
    """A card, or a substitute in tests: `xp` is CuPy or NumPy, `kernels` as in `launching`."""

    xp: Any
    special: Any
    kernels: Any
    count_free: Callable[[], int]

    def send(self, array: Array) -> Any:
        """The array on the card."""
        return self.xp.asarray(array)

    def take(self, array: Any, rows: Any) -> Any:
        """Some rows of an array on the card: a slice, or their numbers, wherever they are."""
        return array[rows if isinstance(rows, slice) else self.send(rows)]

    def bring(self, array: Any) -> Array:
        """The array in this memory."""
        return np.asarray(array.get() if hasattr(array, "get") else array)


def choose_card(device: str, n_bytes: int) -> Card | None:
    """The card for so many bytes of columns; None where they stay with the processor.

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
    return card if device == "cuda" or has_room(card, n_bytes) else None


def has_room(card: Card, n_bytes: int) -> bool:
    """Whether columns of so many bytes fit, with the results computed from them."""
    return n_bytes + n_bytes // 16 + _COMPUTED_BYTES <= card.count_free()


def check_room(card: Card, n_bytes: int) -> None:
    """Raise if a table that must be on the card at once does not fit."""
    if not has_room(card, n_bytes):
        size = f"the table takes {n_bytes / 1e9:,.1f} GB of the card's memory, of which "
        free = f"{card.count_free() / 1e9:,.1f} GB are free; give fewer columns, or leave "
        raise IcscmError(size, free, _CPU)


@cache
def find_card() -> Card:
    """The first card of this machine.

    Raises
    ------
    IcscmError
        If there is none that can be used; the message says why.
    """
    try:
        import cupy
        from cupyx.scipy import special as on_card
    except ImportError:
        why = " needs CuPy, which is not installed: pip install 'icscm[cuda]'"
        raise IcscmError(_CUDA, why) from None
    check_card(cupy)
    with translate_card_errors():
        kernels = launching.CompiledKernels(cupy)
    pool = cupy.get_default_memory_pool()
    device = cupy.cuda.Device
    return Card(cupy, on_card, kernels, lambda: int(device().mem_info[0] + pool.free_bytes()))


def check_card(cupy: Any) -> None:
    """Raise if CuPy finds no card that it can use."""
    try:
        n_cards = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        why = str(error).partition(":")[2].strip() or str(error)
        reason = f" found no NVIDIA card that it can use ({why}); check the driver with "
        raise IcscmError(_CUDA, reason, "nvidia-smi, or leave ", _CPU) from None
    if n_cards == 0:
        raise IcscmError(_CUDA, " found no NVIDIA card; leave ", _CPU)


@contextmanager
def translate_card_errors() -> Iterator[None]:
    """Turn CuPy's errors for a full or failing card into one clear sentence."""
    try:
        yield
    except Exception as error:
        kind = type(error).__name__
        if kind == "OutOfMemoryError":
            full = f"the card's memory is full ({error}); free some, or leave "
            raise IcscmError(full, _CPU) from None
        if kind in ("CUDARuntimeError", "CUDADriverError", "CompileException", "NVRTCError"):
            failed = f"the card failed ({str(error).strip().splitlines()[0]})"
            raise IcscmError(f"{failed}; update its driver, or leave ", _CPU) from None
        raise
