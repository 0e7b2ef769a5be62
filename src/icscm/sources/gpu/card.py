"""The card: where arrays are put, and what runs on them there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from icscm._types import Array
from icscm.exceptions import IcscmError


class Card(NamedTuple):
    """A card, or what stands in for one: `xp` is CuPy or NumPy, `kernels` as in `_reference`."""

    xp: Any
    special: Any
    kernels: Any
    count_free: Callable[[], int]

    def send(self, array: Array) -> Any:
        """The array on the card."""
        return self.xp.asarray(array)

    def bring(self, array: Any) -> Array:
        """The array in this memory."""
        found: Array = array.get() if hasattr(array, "get") else np.asarray(array)
        return found


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
        from cupyx.scipy import special
    except ImportError:
        raise IcscmError(
            "device='cuda' needs CuPy, which is not installed: pip install 'icscm[cuda]'"
        ) from None
    check_card(cupy)
    from icscm.sources.gpu.launching import CompiledKernels

    with told_plainly():
        kernels = CompiledKernels(cupy)
    return Card(cupy, special, kernels, lambda: int(cupy.cuda.Device().mem_info[0]))


def check_card(cupy: Any) -> None:
    """Raise if CuPy finds no card that it can use."""
    try:
        n_cards = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        why = str(error).partition(":")[2].strip() or str(error)
        raise IcscmError(
            f"device='cuda' found no NVIDIA card that it can use ({why}); see what nvidia-smi "
            "says of the driver, or leave device='cpu'"
        ) from None
    if n_cards == 0:
        raise IcscmError("device='cuda' found no NVIDIA card; leave device='cpu'")


@contextmanager
def told_plainly() -> Iterator[None]:
    """What CuPy raises when the card is full, or fails, becomes a sentence."""
    try:
        yield
    except IcscmError:
        raise
    except Exception as error:
        kind = type(error).__name__
        if kind == "OutOfMemoryError":
            raise IcscmError(
                f"the card's memory is full ({error}); free some, or leave device='cpu'"
            ) from None
        if kind in ("CUDARuntimeError", "CUDADriverError", "CompileException", "NVRTCError"):
            raise IcscmError(
                f"the card failed ({str(error).strip().splitlines()[0]}); update its driver, or "
                "leave device='cpu'"
            ) from None
        raise


def make_stand_in(free: int = 2**40) -> Card:
    """A card that is none: NumPy, and the kernels' twins."""
    from scipy import special

    from icscm.sources.gpu import _reference

    return Card(np, special, SimpleNamespace(**vars(_reference)), lambda: free)
