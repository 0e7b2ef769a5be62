"""How kernels are compiled, and where what was compiled is kept for the next run."""

# mypy: disable-error-code="attr-defined, no-untyped-call, misc"

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import FunctionCache

from icscm.exceptions import IcscmWarning


class _LenientCache(FunctionCache):
    """A cache whose troubles, a full disk or a damaged file, cost time and nothing else."""

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

    The code is kept beside the source, in the home or, where neither can be written, in the
    temporary folder.
    """
    dispatcher = njit(nogil=True)(function)
    kept = _find_cache(function)
    if kept is not None:
        dispatcher._cache = kept
    return dispatcher


def _find_cache(function: Callable[..., Any]) -> _LenientCache | None:
    with suppress(RuntimeError):  # no place of numba's own can be written
        return _LenientCache(function)
    folder, before = _make_private_folder(), config.CACHE_DIR
    if folder is not None:
        config.CACHE_DIR = str(folder)
        try:
            return _LenientCache(function)
        except RuntimeError:
            pass
        finally:
            config.CACHE_DIR = before
    _say_uncached()
    return None


@cache
def _make_private_folder() -> Path | None:
    """A folder for compiled code that nobody else can have put anything into; None without one.

    What is read from it is run, and everybody may write to the folder that it is in.
    """
    if not hasattr(os, "geteuid"):  # where the temporary folder is the user's own
        return Path(tempfile.gettempdir()) / "icscm-compiled"
    try:
        folder = Path(tempfile.gettempdir()) / f".icscm-compiled-{os.geteuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        around, found = folder.parent.stat(), folder.lstat()
    except OSError:
        return None
    # nobody else may put another folder in its place
    is_safe = around.st_uid in (0, os.geteuid())
    is_safe &= not around.st_mode & 0o022 or bool(around.st_mode & stat.S_ISVTX)
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return folder if is_safe and is_own and not found.st_mode & 0o077 else None


@cache
def _say_uncached() -> None:
    if parent_process() is None:  # which has said so
        warnings.warn(
            IcscmWarning(
                "compiled code cannot be kept, neither beside the package nor in the home or the "
                "temporary folder, so that each run compiles anew, for some seconds; set "
                "NUMBA_CACHE_DIR to a folder of your own"
            ),
            stacklevel=2,
        )
