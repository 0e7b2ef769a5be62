"""Files are written whole or not at all, and never over others unless asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from icscm.exceptions import IcscmError


def check_free(path: Path, *, force: bool) -> None:
    """Raise unless a file may be written here; to be asked before the work, not after it."""
    if path.is_dir():
        raise IcscmError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise IcscmError(f"there is no folder {path.parent}; make it, or write elsewhere")
    if path.exists() and not force:
        raise IcscmError(f"{path} exists; choose another name, or use --force (force=True)")


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside the target, then put it in place: whole or not at all."""
    # the ending stays last: matplotlib chooses the format by it
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""

    def write(partial: Path) -> None:
        partial.write_text(text, encoding="utf-8")

    write_whole(path, write)
