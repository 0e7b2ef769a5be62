"""How kernels are compiled, and cached for the next run."""

# mypy: disable-error-code="attr-defined, no-untyped-call, misc"

import sys
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
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()
        if found is None:
            _announce()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel when it is first called; it releases the GIL.

    Compiled code is cached beside the source or in the user's cache folder, where numba finds one
    that can be written. Kernels that only kernels call need no entry from Python, and none has
    one from C: these would take a tenth of the time.
    """
    inner: Any = {"no_cpython_wrapper": function.__name__.startswith("_"), "no_cfunc_wrapper": True}
    dispatcher: Any = njit(nogil=True, **inner)(function)
    try:
        dispatcher._cache = _LenientCache(function)
    except RuntimeError:  # no such folder
        _warn_of_no_cache()
    return dispatcher


@cache
def _announce() -> None:
    """Once, on a terminal, where nothing else would show for some seconds."""
    if parent_process() is None and sys.stderr is not None and sys.stderr.isatty():
        print("Compiling kernels, for some seconds; later runs reuse them.", file=sys.stderr)


@cache
def _warn_of_no_cache() -> None:
    if parent_process() is None:  # which has warned
        what = "compiled code cannot be cached, neither beside the package nor in the home folder, "
        what += "so each run compiles again for some seconds; set NUMBA_CACHE_DIR to a folder "
        warn(f"{what}that you can write", IcscmWarning)
