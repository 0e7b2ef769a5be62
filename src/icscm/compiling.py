"""How kernels are compiled, and cached for the next run."""

# mypy: disable-error-code="attr-defined, no-untyped-call, misc"

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing import parent_process
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

from icscm.exceptions import IcscmWarning, warn


class _LenientCache(FunctionCache):
    """A cache whose faults, such as a full disk or a damaged file, cost time and nothing else."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel when it is first called; it releases the GIL.

    Compiled code is cached beside the source or in the user's cache folder, where numba finds one
    that can be written.
    """
    dispatcher = njit(nogil=True)(function)
    try:
        dispatcher._cache = _LenientCache(function)
    except RuntimeError:  # no such folder
        _warn_of_no_cache()
    return dispatcher


@cache
def _warn_of_no_cache() -> None:
    if parent_process() is None:  # which has warned
        what = "compiled code cannot be cached, neither beside the package nor in the home folder, "
        what += "so each run compiles again, for some seconds; set NUMBA_CACHE_DIR to a folder "
        warn(f"{what}that you can write", IcscmWarning)
