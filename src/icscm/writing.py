"""Files are written completely or not at all, and overwrite others only with `force`.

A file is filled under a hidden name beside the one to write, its target, and then renamed. While it
is filled it is locked. The hidden file of a killed process is no longer locked, which is how the
next write into the folder recognises it and removes it. (`click.open_file(atomic=True)` renames a
file even if writing it failed, and leaves those of killed processes, as `tempfile` does.)
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
# Hidden files of this process, renamed ones too: a program that exits at once removes what is left.
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
    if path == STDOUT:
        return True
    if not path.exists():
        return False
    absolute = Path(os.path.abspath(path))
    is_device = any(absolute.is_relative_to(folder) for folder in ("/dev", "/proc"))
    return is_device or not path.is_file()


def write_whole(path: Path, write: Write, *, n_bytes: int | None = None) -> None:
    """Write a file completely or not at all: `write` fills a hidden one, which is then renamed.

        1. remove hidden files that killed processes have left, and open a new one
        2. let `write` fill it
        3. rename it
        4. whatever failed, remove the hidden file, if it is still there

    For a link, its target is written and the link stays. `n_bytes` is the size of the file, if it
    is known, for messages.
    """
    if is_stream(path):
        _write_into(path, write)
        return

    target = _follow_links(path)
    prefix = _make_hidden_prefix()
    hidden = target.parent / f"{prefix}{secrets.token_hex(8)}"
    hidden_files.append(hidden)
    file: IO[bytes] | None = None
    try:
        with explain_errors(path):
            _remove_abandoned(target.parent, prefix)
            file = _open_locked(hidden)
        with explain_errors(path, n_bytes=n_bytes, file=file, only_full=True):
            write(file)
        with explain_errors(path, n_bytes=n_bytes, file=file):
            _move(file, hidden, target)
    finally:
        with suppress(OSError):
            hidden.unlink()
        if file is not None:
            with suppress(OSError):  # reported before, if the rest does not fit
                file.close()


def _make_hidden_prefix() -> str:
    """Begin the names of hidden files, by machine: others may share the folder, not the locks."""
    machine = zlib.crc32(platform.node().encode())
    return f".icscm-{machine:08x}-"


def _move(file: IO[bytes], hidden: Path, target: Path) -> None:
    """Put a complete file in the place of the target, with the permissions of the latter."""
    file.flush()
    if target.exists() and hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
    os.fsync(file.fileno())  # a network disk may report only now that it is full
    if fcntl is None:
        file.close()  # Windows cannot rename an open file
    os.replace(hidden, target)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    content = text.encode()
    write_whole(path, lambda file: file.write(content), n_bytes=len(content))


@contextmanager
def explain_errors(
    path: Path,
    *,
    n_bytes: int | None = None,
    file: IO[bytes] | None = None,
    only_full: bool = False,
) -> Iterator[None]:
    """Turn an OSError raised while writing `path` into a message that names it.

    `n_bytes` is the size of the file to write, if known, and `file` the hidden file being filled.
    With `only_full` only a full disk is explained: other errors may come from files that are read
    at the same time.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            message = _describe_full(error, path, n_bytes=n_bytes, file=file)
            raise IcscmError(message) from error
        if only_full:
            raise
        raise IcscmError(f"{path} cannot be written: {error.strerror}") from error


def _describe_full(
    error: OSError, path: Path, *, n_bytes: int | None, file: IO[bytes] | None
) -> str:
    """Describe a lack of space, and how much is needed: at least what there was, if not known."""
    if is_stream(path):
        return f"the disk is full: {path} is incomplete; free space and run again"

    folder = _follow_links(path).parent
    if n_bytes:
        needed = format_size(n_bytes)
    else:
        available_bytes = 0 if file is None else os.fstat(file.fileno()).st_size
        if error.errno == errno.ENOSPC:  # not a quota or a limit on file sizes
            available_bytes += shutil.disk_usage(folder).free
        needed = f"more than {format_size(available_bytes)}"
    return (
        f"the disk is full: {path} needs {needed}, and nothing was written; "
        f"free space in {folder}, or choose another folder"
    )


def format_size(n_bytes: int) -> str:
    """Write a number of bytes with its unit.

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
    """Open a new file of this name, locked to show that it is in use.

    Another process may take the file for an abandoned one, and remove it, in the moment before it
    is locked; then it has no name any more (no link), and another is made.
    """
    while True:
        file = hidden.open("x+b")  # with the permissions of any new file
        if fcntl is None:
            return file
        with suppress(OSError):  # file systems without locks keep abandoned files
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        has_name = os.fstat(file.fileno()).st_nlink > 0
        if has_name:
            return file
        file.close()


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove the hidden files of killed processes of this machine: they are no longer locked."""
    if fcntl is None:
        return
    name_of_hidden = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{16}}")
    with suppress(OSError):  # the folder may not be readable
        for name in os.listdir(folder):
            if not name_of_hidden.fullmatch(name):
                continue
            hidden = folder / name
            with suppress(OSError), hidden.open("r+b") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if it is locked
                hidden.unlink()


def _write_into(path: Path, write: Write) -> None:
    """Write to a device or a pipe, which no file can replace, by way of a temporary file.

    So nothing is written there if `write` fails.
    """
    with explain_errors(path, only_full=True), tempfile.TemporaryFile() as file:
        write(file)
        file.seek(0)
        sys.stdout.flush()  # earlier output comes first
        is_stdout = path == STDOUT or os.path.samestat(path.stat(), os.fstat(1))
        with open(1, "wb", closefd=False) if is_stdout else path.open("ab") as stream:
            shutil.copyfileobj(file, stream)
