"""Files are written whole or not at all, and never over others unless asked."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from icscm.exceptions import IcscmError, Parameter


def check_free(path: Path, *, force: bool) -> None:
    """Raise unless a file may be written here; to be asked before the work, not after it."""
    if path.is_dir():
        raise IcscmError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise IcscmError(f"there is no folder {path.parent}; make it, or write elsewhere")
    if is_stream(path):
        return
    target = _follow_links(path)
    if not target.parent.is_dir():
        raise IcscmError(f"{path} is a link into a folder that is not there, {target.parent}")
    if path.exists() and not force:
        overwrite = Parameter("force", True)
        raise IcscmError(f"{path} exists; choose another name, or use ", overwrite)


def is_stream(path: Path) -> bool:
    """Whether writing here goes to a device, a pipe or the like: nothing is there to be kept.

    Redirected to a file, /dev/stdout is that file; to replace it would cut the output off.
    """
    is_device = Path(os.path.abspath(path)).parts[1:2] in (("dev",), ("proc",))
    return path.exists() and (is_device or not path.is_file())


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a new file beside the target, then put it in place: whole or not at all.

    A link stays one: the file that it leads to is written.
    """
    if is_stream(path):
        _write_into(path, write)
        return
    target = _follow_links(path)
    # a name that nobody has; the ending stays last, since matplotlib chooses the format by it
    partial = target.with_name(f".icscm-{secrets.token_hex(8)}{target.suffix}")
    partial.open("xb").close()  # with the rights of any new file
    try:
        write(partial)
        if target.exists():
            shutil.copymode(target, partial)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _follow_links(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise IcscmError(f"{path} is a link that leads in a circle; write elsewhere") from None


def _write_into(path: Path, write: Callable[[Path], object]) -> None:
    """Fill a device or a pipe, which cannot be put in place, from a file elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        partial = Path(folder) / f"partial{path.suffix}"
        write(partial)
        sys.stdout.flush()  # our own standard output goes on from where it is
        is_ours = os.path.samestat(path.stat(), os.fstat(1))
        with (
            partial.open("rb") as content,
            open(1, "wb", closefd=False) if is_ours else path.open("ab") as stream,
        ):
            shutil.copyfileobj(content, stream)
