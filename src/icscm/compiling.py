"""How kernels are compiled, and cached for the next run.

numba compiles a kernel when it is first called, for the types of its arguments. That takes seconds,
so compiled code is cached in files. A fault of the cache must not stop a fit.
"""

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
        """Load compiled code; None, if there is none or it is damaged, has it compiled again."""
        code = None
        try:
            code = super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()
        if code is None:
            _announce_compilation()
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code, if there is a place for it."""
        with suppress(OSError):
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel when it is first called; it releases the GIL.

    Compiled code is cached beside the source or in the user's cache folder, where numba finds one
    that can be written. Kernels that only kernels call need no entry from Python, and none has
    one from C: these would take a tenth of the time.
    """
    make_decorator: Any = njit  # whose types lack two of the options
    decorate = make_decorator(
        nogil=True,
        no_cpython_wrapper=function.__name__.startswith("_"),
        no_cfunc_wrapper=True,
    )
    dispatcher = decorate(function)
    try:
        dispatcher._cache = _LenientCache(function)
    except RuntimeError:  # numba finds no folder that can be written
        _warn_of_no_cache()
    return dispatcher


@cache
def _announce_compilation() -> None:
    """Say once, on a terminal, why nothing else shows for some seconds."""
    is_worker = parent_process() is not None
    if is_worker or sys.stderr is None or not sys.stderr.isatty():
        return
    print("Compiling kernels, for some seconds; later runs reuse them.", file=sys.stderr)


@cache
def _warn_of_no_cache() -> None:
    """Warn once that every run will compile again; in a worker its parent has done so."""
    if parent_process() is not None:
        return
    warn(
        "compiled code cannot be cached, neither beside the package nor in the home folder, so "
        "each run compiles again for some seconds; set NUMBA_CACHE_DIR to a folder that you can "
        "write",
        IcscmWarning,
    )
