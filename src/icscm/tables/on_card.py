"""Arrays that lie on a graphics card: CuPy's, torch's, any that say so by one of two protocols."""

from __future__ import annotations

from typing import Any

import numpy as np

from icscm._types import Array

# The number of NVIDIA's cards in DLPack.
_DLPACK_CUDA = 2


def is_on_card(X: Any) -> bool:
    """Whether these are values on a card."""
    if type(X) in (np.ndarray, list):  # told at once
        return False
    if hasattr(X, "__cuda_array_interface__"):
        return True
    where = getattr(X, "__dlpack_device__", None)
    return where is not None and hasattr(X, "shape") and where()[0] == _DLPACK_CUDA


def open_on_card(X: Any) -> Any:
    """The same values where they lie, as CuPy sees them."""
    if hasattr(X, "get") and hasattr(X, "ravel"):  # CuPy's own
        return X
    import cupy

    return cupy.asarray(X) if hasattr(X, "__cuda_array_interface__") else cupy.from_dlpack(X)


def bring(values: Any) -> Any:
    """Values from a card in this memory; any others as they are."""
    if not is_on_card(values):
        return values
    found: Array = open_on_card(values).get()
    return found
