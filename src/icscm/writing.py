"""Files are written whole or not at all, and never over others unless asked.

While it is filled a file has no name, where the system can do that, so that nothing is left of it
however the process ends. Elsewhere it has a hidden one, and a lock that ends with the process.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
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

# What the system says where there is no room: on the disk, for the user, in a file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise IcscmError(f"{path} cannot be written: its folder is closed to you; write elsewhere")


def is_stream(path: Path) -> bool:
    """Whether writing here goes to a device, a pipe or the like: nothing is there to be kept.

    Redirected to a file, /dev/stdout is that file; to replace it would cut the output off.
    """
    is_device = Path(os.path.abspath(path)).parts[1:2] in (("dev",), ("proc",))
    return path == STDOUT or (path.exists() and (is_device or not path.is_file()))


def write_whole(path: Path, write: Write, *, n_bytes: int | None = None) -> None:
    """Let `write` fill a new file of `n_bytes`, if known; put it in place whole or not at all.

    A link stays one: the file that it leads to is written.
    """
    if is_stream(path):
        _write_into(path, write)
        return
    target = _follow_links(path)
    hidden, file = _choose_name(target.parent), None
    try:
        with explained(path):
            _remove_abandoned(target.parent)
            nameless = _open_nameless(target.parent)
            file = nameless or _open_locked(hidden)
        with explained(path, n_bytes, file, only_full=True):
            write(file)
        with explained(path, n_bytes, file):
            file.flush()
            _put_in_place(file, hidden, target, is_named=nameless is None)
    finally:
        with suppress(OSError):
            hidden.unlink()
        if file is not None:
            with suppress(OSError):  # which was told, if what is left does not fit
                file.close()


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    content = text.encode()
    write_whole(path, lambda file: file.write(content), n_bytes=len(content))


@contextmanager
def explained(
    path: Path,
    n_bytes: int | None = None,
    file: IO[bytes] | None = None,
    *,
    only_full: bool = False,
) -> Iterator[None]:
    """What the system says while a file is written, in a sentence that names what was asked for.

    `file` is where it is filled, if not itself; `only_full` is for where other files are read, too,
    which other errors might come from.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise IcscmError(_describe_full(error, path, n_bytes, file)) from error
        if only_full:
            raise
        raise IcscmError(f"{path} cannot be written: {error.strerror}") from error


def _describe_full(error: OSError, path: Path, n_bytes: int | None, file: IO[bytes] | None) -> str:
    folder = Path(tempfile.gettempdir()) if is_stream(path) else _follow_links(path).parent
    room = 0 if file is None else os.fstat(file.fileno()).st_size
    if error.errno == errno.ENOSPC:  # not what a user may have, or a file
        room += shutil.disk_usage(folder).free
    needed = format_size(n_bytes) if n_bytes else f"more than {format_size(room)}"
    return (
        f"the disk is full: {path} needs {needed}, and nothing was written; make room in {folder}, "
        "or write elsewhere"
    )


def format_size(n_bytes: int) -> str:
    """A size to read.

    >>> format_size(1_234_567), format_size(12)
    ('1.2 MB', '12 bytes')
    """
    units = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
    return next(
        (f"{n_bytes / size:,.1f} {unit}" for size, unit in units if n_bytes >= size),
        f"{n_bytes} bytes",
    )


def _follow_links(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise IcscmError(f"{path} is a link that leads in a circle; write elsewhere") from None


def _open_nameless(folder: Path) -> IO[bytes] | None:
    """A file in a folder that has no name yet; None where there is no such thing."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        number = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:  # with a name it works, or fails for the same reason
        return None
    if not os.path.exists(_find_entry(number)):  # by which alone it can be named
        os.close(number)
        return None
    _lock(number)
    return os.fdopen(number, "w+b")


def _open_locked(partial: Path) -> IO[bytes]:
    """A new file of this name that is not taken for abandoned."""
    while True:
        file = partial.open("x+b")  # with the rights of any new file
        _lock(file.fileno())
        if fcntl is None or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # removed before it was locked


def _put_in_place(file: IO[bytes], hidden: Path, target: Path, *, is_named: bool) -> None:
    """Give a file that is filled the target's name, by way of a hidden one if need be."""
    if target.exists() and hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
    if is_named:
        os.fsync(file.fileno())  # on a network this may be where the disk is found to be full
        if fcntl is None:
            file.close()  # an open file cannot be renamed there
    else:
        with suppress(FileExistsError):
            _link(file, target)
            return
        _link(file, hidden)  # no link can take the place of a file, but a name can
    os.replace(hidden, target)


def _link(file: IO[bytes], name: Path) -> None:
    folder = os.open(name.parent, os.O_PATH)
    try:  # `os.link` follows the entry to the file only if told of a folder
        os.link(_find_entry(file.fileno()), name.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _find_entry(number: int) -> str:
    return f"/proc/self/fd/{number}"


def _choose_name(folder: Path) -> Path:
    """A hidden name that nobody has."""
    return folder / f".icscm-{_identify_machine()}-{secrets.token_hex(8)}"


@cache
def _identify_machine() -> str:
    """Tells this machine, since it was started, from others that share a folder with it."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        name = platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def _lock(number: int) -> None:
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks: nothing in it is ever abandoned
            fcntl.flock(number, fcntl.LOCK_EX)


def _remove_abandoned(folder: Path) -> None:
    """Remove what processes of this machine left that were killed: no lock is on it any more."""
    if fcntl is None:
        return
    left = re.compile(rf"\.icscm-{_identify_machine()}-[0-9a-f]{{16}}")
    with suppress(OSError):  # a folder may be closed to readers
        for name in filter(left.fullmatch, os.listdir(folder)):
            with suppress(OSError), (folder / name).open("r+b") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                (folder / name).unlink()


def _write_into(path: Path, write: Write) -> None:
    """Fill a device or a pipe, which cannot be put in place, from a file elsewhere."""
    with explained(path, only_full=True), tempfile.TemporaryFile() as file:
        write(file)
        file.seek(0)
        sys.stdout.flush()  # our own standard output goes on from where it is
        is_ours = path == STDOUT or os.path.samestat(path.stat(), os.fstat(1))
        with open(1, "wb", closefd=False) if is_ours else path.open("ab") as stream:
            shutil.copyfileobj(file, stream)
