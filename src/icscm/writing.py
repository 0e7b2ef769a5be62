"""Files are written completely or not at all, and overwrite others only with `force`.

A file is filled under a hidden name and a lock, then renamed. The file of a killed process is no
longer locked, and the next write into the folder removes it. (`click.open_file(atomic=True)`
renames a file even if writing it failed, and leaves those of killed processes, as `tempfile` does.)
"""

import errno
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from icscm.exceptions import IcscmError, Parameter

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

# Fills a file that is open for reading and writing.
Write = Callable[[IO[bytes]], object]

STDOUT = Path("/dev/stdout")
# Files that are being filled or were: the program removes them when it has to exit at once.
hidden_files: list[Path] = []

# Error codes for lack of space: on the disk, in the user's quota, in a file.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_free(path: Path, *, force: bool) -> None:
    """Raise unless a file can be written here; called before the work starts."""
    if path.is_dir():
        raise IcscmError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise IcscmError(f"there is no folder {path.parent}; create it, or choose another folder")
    if is_stream(path):
        return
    target = _follow_links(path)
    if not target.parent.is_dir():
        raise IcscmError(f"{path} is a link into a folder that does not exist, {target.parent}")
    if path.exists() and not force:
        overwrite = Parameter("force", True)
        raise IcscmError(f"{path} exists; choose another name, or use ", overwrite)
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise IcscmError(f"{path} cannot be written: no permission for its folder; choose another")


def is_stream(path: Path) -> bool:
    """Whether the path is a device or a pipe, which has no content to preserve.

    Redirected to a file, /dev/stdout is that file; replacing it would cut off the output.
    """
    is_device = Path(os.path.abspath(path)).parts[1:2] in (("dev",), ("proc",))
    return path == STDOUT or (path.exists() and (is_device or not path.is_file()))


def write_whole(path: Path, write: Write, *, n_bytes: int | None = None) -> None:
    """Let `write` fill a new file of `n_bytes`, if known; rename it only when complete.

    For a link, its target is written and the link stays.
    """
    if is_stream(path):
        _write_into(path, write)
        return
    target = _follow_links(path)
    machine = zlib.crc32(platform.node().encode())  # others may share the folder, not the locks
    prefix = f".icscm-{machine:08x}-"
    hidden = target.parent / f"{prefix}{secrets.token_hex(8)}"
    hidden_files.append(hidden)
    file: IO[bytes] | None = None
    try:
        with explain_errors(path):
            _remove_abandoned(target.parent, prefix)
            file = _open_locked(hidden)
        with explain_errors(path, n_bytes, file, only_full=True):
            write(file)
        with explain_errors(path, n_bytes, file):
            file.flush()
            if target.exists() and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())  # a network disk may report only now that it is full
            if fcntl is None:
                file.close()  # Windows cannot rename an open file
            os.replace(hidden, target)
    finally:
        with suppress(OSError):
            hidden.unlink()
        if file is not None:
            with suppress(OSError):  # reported before, if the rest does not fit
                file.close()


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    content = text.encode()
    write_whole(path, lambda file: file.write(content), n_bytes=len(content))


@contextmanager
def explain_errors(
    path: Path, n_bytes: int | None = None, file: IO[bytes] | None = None, only_full: bool = False
) -> Iterator[None]:
    """Turn an OSError raised while writing `path` into a message that names it.

    `file` is the file being filled, if another one. With `only_full` only a full disk is explained:
    other errors may come from files that are read at the same time.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise IcscmError(_describe_full(error, path, n_bytes, file)) from error
        if only_full:
            raise
        raise IcscmError(f"{path} cannot be written: {error.strerror}") from error


def _describe_full(error: OSError, path: Path, n_bytes: int | None, file: IO[bytes] | None) -> str:
    if is_stream(path):
        return f"the disk is full: {path} is incomplete; free space and run again"
    folder = _follow_links(path).parent
    room = 0 if file is None else os.fstat(file.fileno()).st_size
    if error.errno == errno.ENOSPC:  # not a quota or a limit on file sizes
        room += shutil.disk_usage(folder).free
    needed = format_size(n_bytes) if n_bytes else f"more than {format_size(room)}"
    why = f"the disk is full: {path} needs {needed}, and nothing was written"
    return f"{why}; free space in {folder}, or choose another folder"


def format_size(n_bytes: int) -> str:
    """A number of bytes with its unit.

    >>> format_size(1_234_567), format_size(12)
    ('1.2 MB', '12 bytes')
    """
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes} bytes"


def _follow_links(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise IcscmError(f"{path} is a link that leads to itself; choose another name") from None


def _open_locked(hidden: Path) -> IO[bytes]:
    """A new file of this name, locked to show that it is in use."""
    while True:
        file = hidden.open("x+b")  # with the permissions of any new file
        if fcntl is None:
            return file
        with suppress(OSError):  # file systems without locks keep abandoned files
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another process removed it before it was locked


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove the hidden files of killed processes of this machine: they are no longer locked."""
    if fcntl is None:
        return
    abandoned = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{16}}")
    with suppress(OSError):  # the folder may not be readable
        for name in filter(abandoned.fullmatch, os.listdir(folder)):
            with suppress(OSError), (folder / name).open("r+b") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                (folder / name).unlink()


def _write_into(path: Path, write: Write) -> None:
    """Fill a device or a pipe, which cannot be renamed into place, from a temporary file."""
    with explain_errors(path, only_full=True), tempfile.TemporaryFile() as file:
        write(file)
        file.seek(0)
        sys.stdout.flush()  # earlier output comes first
        is_ours = path == STDOUT or os.path.samestat(path.stat(), os.fstat(1))
        with open(1, "wb", closefd=False) if is_ours else path.open("ab") as stream:
            shutil.copyfileobj(file, stream)
