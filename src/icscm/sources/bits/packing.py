"""From presence/absence tables, genes or k-mers in lines, genomes in columns, to a packed store.

Gene    g1  g2  g3
blaTEM  0   1   1
mecA    1   0   0
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from scipy.sparse import issparse

from icscm._constants import ROW_DTYPE, WORD_DTYPE
from icscm._types import Array
from icscm.engine import _kernels
from icscm.engine.bits import set_bits
from icscm.engine.threads import count_threads
from icscm.exceptions import IcscmError
from icscm.sources.bits.footer import count_words
from icscm.sources.bits.store import BitWriter, write_bits
from icscm.writing import check_free

# Told of the bytes read so far and of all there are.
Progress = Callable[[int, int], None]

# Bytes of text parsed at a time.
CHUNK_BYTES = 2**24
# Names of features that are added at a time.
_BATCH = 2**16


def pack_table(
    path: str | Path,
    out: str | Path,
    *,
    delimiter: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Pack a table of 0 and 1 into a store of bits.

    It is read once, in pieces, and never held whole; the store is there whole or not at all.

    Parameters
    ----------
    path : str or Path
        A table (`.Rtab`, `.tsv`, or either as `.gz`) whose first line names the genomes, each
        other one a feature and then 0 or 1 for each of them.
    out : str or Path
        The store to write.
    delimiter : str, optional
        Between cells: by default a tab, or else what the first line shows. A blank stands for any
        number of blanks and tabs.
    force : bool
        Whether a file of that name may be replaced.
    progress : callable, optional
        Told of the bytes read so far and of all there are.

    Raises
    ------
    IcscmError
        If the table holds anything else, or a file cannot be read or written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from icscm.sources.bits.packing import pack_table
    >>> from icscm.sources.bits.store import open_store
    >>> with TemporaryDirectory() as folder:
    ...     table, store = Path(folder, "genes.Rtab"), Path(folder, "genes.bits")
    ...     _ = table.write_text("Gene\\tone\\ttwo\\ngyrA\\t1\\t0\\nparC\\t1\\t1\\n")
    ...     pack_table(table, store)
    ...     open_store(store).samples, open_store(store).n_features
    (['one', 'two'], 2)
    """
    path, out = Path(path), Path(out)
    check_free(out, force=force)
    with _clear_errors(path), _open_table(path) as (file, tell):
        samples, cut = _read_header(path, file, delimiter)
        size = path.stat().st_size

        def fill(writer: BitWriter) -> None:
            reader = _Reader(path, samples)
            for chunk in _read_lines(file):
                reader.add(cut(chunk), writer)
                if progress is not None:
                    progress(tell(), size)
            if reader.n_lines == 0:
                raise IcscmError(f"{path} has a header and no other line; there is nothing to pack")

        write_bits(out, samples, fill)


def pack_matrix(
    X: Any,
    out: str | Path,
    *,
    names: Sequence[str] | None = None,
    samples: Sequence[object] | None = None,
    force: bool = False,
) -> None:
    """Pack a matrix of 0 and 1 into a store of bits.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Zeros and ones.
    out : str or Path
        The store to write.
    names : sequence of str, optional
        The names of the features, which go by position without them.
    samples : sequence of str, optional
        The names of the samples, by default `"0"`, `"1"`, ...
    force : bool
        Whether a file of that name may be replaced.

    Raises
    ------
    IcscmError
        If the matrix holds other values, names are not distinct, or the file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from icscm.sources.bits.packing import pack_matrix
    >>> from icscm.sources.bits.store import open_store
    >>> with TemporaryDirectory() as folder:
    ...     store = Path(folder, "genes.bits")
    ...     pack_matrix(np.eye(3), store, names=["gyrA", "parC", "blaZ"])
    ...     open_store(store).samples, open_store(store).n_features
    (['0', '1', '2'], 3)
    """
    out = Path(out)
    check_free(out, force=force)
    n_samples, n_features = X.shape
    samples = range(n_samples) if samples is None else samples
    for what, named, n in (("names", names, n_features), ("samples", samples, n_samples)):
        if named is not None and len(named) != n:
            raise IcscmError(f"{what} must be {n:,}, as in the matrix; got {len(named):,}")
    matrix = (X if X.format in ("csr", "csc") else X.tocsr()) if issparse(X) else _as_bytes(X)
    words = np.zeros((n_features, count_words(n_samples)), dtype=WORD_DTYPE)
    if not set_bits(matrix, np.arange(n_samples, dtype=ROW_DTYPE), words, count_threads(None)):
        raise IcscmError("the matrix holds other values than 0 and 1; packing keeps a bit of each")

    def fill(writer: BitWriter) -> None:
        for start in range(0, n_features, _BATCH):
            part = slice(start, start + _BATCH)
            writer.add(words[part], *(() if names is None else _join(names[part])))

    with _clear_errors(out):
        write_bits(out, list(map(str, samples)), fill)


def _as_bytes(X: Any) -> Array:
    array = np.asarray(X)
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def _join(names: Sequence[str]) -> tuple[Array, Array]:
    encoded = [name.encode() for name in names]
    ends = np.cumsum([len(name) for name in encoded])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """What the system says of files, in a sentence."""
    try:
        yield
    except OSError as error:
        raise IcscmError(f"cannot read or write {error.filename or path}: {error}") from None
    except UnicodeEncodeError:
        raise IcscmError("a name holds half a character, which UTF-8 has not; rename it") from None
    except (EOFError, zlib.error):
        raise IcscmError(f"{path} is damaged: its compressed data end too early") from None


@contextmanager
def _open_table(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """The text, and how many bytes of the file have been read."""
    with open(path, "rb") as raw:
        if path.suffix.lower() != ".gz":
            yield raw, raw.tell
            return
        with gzip.GzipFile(fileobj=raw) as text:
            yield text, raw.tell  # type: ignore[misc]


def _read_header(
    path: Path, file: IO[bytes], delimiter: str | None
) -> tuple[list[str], Callable[[bytes], bytes]]:
    """The genomes, and what makes lines of tabs of those below."""
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise IcscmError(f"the delimiter must be one character of ASCII; got {delimiter!r}")
    line = file.readline()
    cut = _choose_cut(delimiter.encode() if delimiter else _find_delimiter(line))
    try:
        header = cut(line).decode("utf-8-sig").rstrip("\r\n").split("\t")
    except UnicodeDecodeError:
        raise IcscmError(f"{path} is not a text file in UTF-8") from None
    samples = header[1:]
    if not samples:
        raise IcscmError(
            f"{path} does not begin with a line of genome names, set apart by tabs; is it a table "
            "of presence and absence (.Rtab, .tsv), or is another --delimiter to be named?"
        )
    if "" in samples:
        raise IcscmError(f"{path}: column {samples.index('') + 2} of the header has no name")
    return samples, cut


def _find_delimiter(line: bytes) -> bytes:
    return next((each for each in (b"\t", b",", b";") if each in line), b" ")


def _choose_cut(delimiter: bytes) -> Callable[[bytes], bytes]:
    """What makes lines of tabs of whole lines; beside other delimiters quotes mean nothing."""
    if delimiter == b"\t":
        return lambda text: text
    if delimiter == b" ":
        return lambda text: re.sub(
            rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", text)
        )
    tabs = bytes.maketrans(delimiter, b"\t")
    return lambda text: text.translate(tabs, b'"')


def _read_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The text in pieces that end where lines do."""
    rest = b""
    while piece := file.read(CHUNK_BYTES):
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += tail
    if rest:
        yield rest + b"\n"


def read_lines(
    path: Path, names: Sequence[str], delimiter: str | None = None
) -> tuple[list[str], dict[str, Array]]:
    """The genomes of a table, and which of them have each of some features."""
    wanted = {name.encode("utf-8", "surrogatepass"): name for name in names}
    found: dict[str, Array] = {}
    with _clear_errors(path), _open_table(path) as (file, _):
        samples, cut = _read_header(path, file, delimiter)
        for line in file:
            name, _, values = cut(line).rstrip(b"\r\n").partition(b"\t")
            if name in wanted:
                cells = values.split(b"\t")
                if len(cells) != len(samples) or not {*cells} <= {b"0", b"1"}:
                    raise IcscmError(
                        f"{path}: the line of {wanted[name]!r} does not hold 0 or 1 for each of "
                        f"the {len(samples):,} genomes"
                    )
                found[wanted[name]] = np.array(cells) == b"1"
    return samples, found


class _Reader:
    """Parses pieces of text and hands them to a writer; `n_lines` were not empty."""

    def __init__(self, path: Path, samples: Sequence[str]) -> None:
        self._path = path
        self._samples = samples
        self._n_words = count_words(len(samples))
        self._n_read = 1  # lines of the file, the header included
        self.n_lines = 0

    def add(self, chunk: bytes, writer: BitWriter) -> None:
        text = np.frombuffer(chunk, dtype=np.uint8)
        most = len(text) // (2 * len(self._samples)) + 1
        words = np.zeros((most, self._n_words), dtype=WORD_DTYPE)
        names, ends = np.empty_like(text), np.empty(most, dtype=np.int64)
        n_lines, stop = _kernels.parse_lines(text, len(self._samples), words, names, ends)
        if stop < len(text):
            self._explain(chunk, stop)
        self.n_lines += n_lines
        self._n_read += chunk.count(b"\n")
        if n_lines:
            names = names[: ends[n_lines - 1]]
            try:
                names.tobytes().decode()
            except UnicodeDecodeError:
                where = f"before line {self._n_read + 1}"
                raise IcscmError(f"{self._path} holds names that are not UTF-8, {where}") from None
            writer.add(words[:n_lines], names, ends[:n_lines])

    def _explain(self, chunk: bytes, start: int) -> NoReturn:
        """Say what is wrong with the line that begins there."""
        number = self._n_read + chunk.count(b"\n", 0, start) + 1
        line = chunk[start : chunk.index(b"\n", start)].rstrip(b"\r")
        cells = [cell.decode(errors="replace") for cell in line.split(b"\t")][1:]
        where, n = f"{self._path}, line {number}", len(self._samples)
        if len(cells) != n:
            raise IcscmError(f"{where} has {len(cells)} values, but the header names {n} genomes")
        column = next(j for j, cell in enumerate(cells) if cell not in ("0", "1"))
        raise IcscmError(
            f"{where}, column {column + 2} ({self._samples[column]!r}) holds {cells[column]!r}; "
            "a table of presence and absence holds 0 and 1"
        )
