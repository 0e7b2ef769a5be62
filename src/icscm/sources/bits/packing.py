"""From presence/absence tables, genes or k-mers in lines, genomes in columns, to a packed store.

Gene    g1  g2  g3
blaTEM  0   1   1
mecA    1   0   0
"""

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import ROW_DTYPE, WORD_DTYPE
from icscm._lazy import is_sparse
from icscm._types import Array, IntArray
from icscm.engine import _kernels
from icscm.engine.bits import PatternNumbers, make_copies, set_bits
from icscm.engine.threads import count_threads
from icscm.exceptions import IcscmError
from icscm.sources.bits import store as bitfile
from icscm.sources.bits.store import (
    BLOCK_PATTERNS,
    BitFile,
    add_to_sums,
    check_samples,
    count_words,
    open_store,
)
from icscm.writing import check_free, write_whole

# Bytes of text parsed at a time.
CHUNK_BYTES = 2**24
# Names of features that are added at a time.
_BATCH = 2**16
# Bytes of names copied at a time.
_COPIED = 2**24
_NO_NAMES, _NO_ENDS = np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64)


def pack_table(
    path: str | Path,
    out: str | Path,
    *,
    delimiter: str | None = None,
    force: bool = False,
    on_chunk: Callable[[int], None] = lambda _: None,
) -> None:
    """Pack a table of 0 and 1 into a store of bits.

    The table is read once, in chunks, and never held in memory; the store is written completely or
    not at all.

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
    on_chunk : callable, optional
        Called with the bytes of the table that have been read, to show progress.

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
    with _clear_errors(path), open(path, "rb") as raw, ExitStack() as stack:
        is_zipped = path.suffix.lower() == ".gz"
        file: Any = stack.enter_context(gzip.open(raw)) if is_zipped else raw
        samples, cut = _read_header(path, file, delimiter)

        def fill(writer: "BitWriter") -> None:
            n_read, any_lines = 1, False  # lines of the file so far: the header
            while chunk := file.read(CHUNK_BYTES):
                chunk += file.readline()
                text = cut(chunk if chunk.endswith(b"\n") else chunk + b"\n")
                any_lines |= _add_lines(text, samples, writer, path, n_read)
                n_read += text.count(b"\n")
                on_chunk(raw.tell() if raw.seekable() else 0)
            if not any_lines:
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
    if is_sparse(X):
        matrix = X if X.format in ("csr", "csc") else X.tocsr()
    else:
        matrix = np.asarray(X)
        matrix = matrix.view(np.uint8) if matrix.dtype == np.bool_ else matrix
    words = np.zeros((n_features, count_words(n_samples)), dtype=WORD_DTYPE)
    if not set_bits(matrix, np.arange(n_samples, dtype=ROW_DTYPE), words, count_threads(-1)):
        raise IcscmError("the matrix holds values other than 0 and 1; binarize it")

    def fill(writer: "BitWriter") -> None:
        for start in range(0, n_features, _BATCH):
            part = slice(start, start + _BATCH)
            encoded = [name.encode() for name in names[part]] if names is not None else []
            ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
            writer.add(words[part], np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)

    with _clear_errors(out):
        write_bits(out, list(map(str, samples)), fill)


@contextmanager
def open_packed(path: Path, delimiter: str | None = None) -> Iterator[BitFile]:
    """A packed store, or that of a table of genomes, which is packed to a temporary file."""
    with TemporaryDirectory() as folder:
        is_packed = path.suffix.lower() == ".bits"
        packed = path if is_packed else Path(folder, "packed.bits")
        if not is_packed:
            pack_table(path, packed, delimiter=delimiter)
        store = open_store(packed)
        store.path = path  # for errors
        yield store


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Turn system errors into one clear sentence."""
    try:
        yield
    except OSError as error:
        raise IcscmError(f"cannot read or write {error.filename or path}: {error}") from None
    except UnicodeEncodeError:
        raise IcscmError("a name holds a lone surrogate, which is not UTF-8; rename it") from None
    except (EOFError, zlib.error):
        raise IcscmError(f"{path} is damaged: its compressed data are truncated") from None


def _read_header(
    path: Path, file: IO[bytes], delimiter: str | None
) -> tuple[list[str], Callable[[bytes], bytes]]:
    """The genomes, and the function that puts tabs between the cells of the lines below."""
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise IcscmError(f"the delimiter must be one ASCII character; got {delimiter!r}")
    line = file.readline()
    shown = next((each for each in (b"\t", b",", b";") if each in line), b" ")
    cut = _choose_cut(delimiter.encode() if delimiter else shown)
    try:
        header = cut(line).decode("utf-8-sig").rstrip("\r\n").split("\t")
    except UnicodeDecodeError:
        raise IcscmError(f"{path} is not a text file in UTF-8") from None
    samples = header[1:]
    if not samples:
        why = f"the first line of {path} does not name genomes, separated by tabs"
        raise IcscmError(f"{why}; give a presence/absence table, or its --delimiter")
    if "" in samples:
        raise IcscmError(f"{path}: column {samples.index('') + 2} of the header has no name")
    return samples, cut


def _choose_cut(delimiter: bytes) -> Callable[[bytes], bytes]:
    """A function that puts tabs between the cells of whole lines, and removes quotes."""
    if delimiter == b"\t":
        return lambda text: text
    if delimiter == b" ":
        ends, blanks = re.compile(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)"), re.compile(rb"[ \t]+")
        return lambda text: blanks.sub(b"\t", ends.sub(b"", text))
    tabs = bytes.maketrans(delimiter, b"\t")
    return lambda text: text.translate(tabs, b'"')


def _add_lines(
    chunk: bytes, samples: Sequence[str], writer: "BitWriter", path: Path, n_read: int
) -> bool:
    """Parse some lines and write their features; False if all lines are empty."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    most = len(text) // (2 * len(samples)) + 1
    words = np.zeros((most, count_words(len(samples))), dtype=WORD_DTYPE)
    names, ends = np.empty_like(text), np.empty(most, dtype=np.int64)
    n_lines, stop = _kernels.parse_lines(text, len(samples), words, names, ends)
    if stop < len(text):
        number = n_read + chunk.count(b"\n", 0, stop) + 1
        where = f"{path}, line {number}"
        line = chunk[stop : chunk.index(b"\n", stop)].rstrip(b"\r")
        cells, n = [cell.decode(errors="replace") for cell in line.split(b"\t")][1:], len(samples)
        if len(cells) != n:
            raise IcscmError(f"{where} has {len(cells)} values, but the header names {n} genomes")
        column = next(j for j, cell in enumerate(cells) if cell not in ("0", "1"))
        why = f"{where}, column {column + 2} ({samples[column]!r}) holds {cells[column]!r}"
        raise IcscmError(f"{why}; a presence/absence table holds 0 and 1 only")
    if n_lines:
        names = names[: ends[n_lines - 1]]
        try:
            names.tobytes().decode()
        except UnicodeDecodeError:
            line_number = n_read + chunk.count(b"\n") + 1
            where = f"before line {line_number}"
            raise IcscmError(f"{path} holds names that are not UTF-8, {where}") from None
        writer.add(words[:n_lines], names, ends[:n_lines])
    return bool(n_lines)


class BitWriter:
    """Writes a store feature by feature; identical patterns are written once.

    Keeps some 20 bytes of memory for each pattern and 16 for each feature. See `write_bits`.
    """

    def __init__(self, file: IO[bytes], samples: Sequence[str], names: IO[bytes]) -> None:
        self._file, self._samples, self._names = file, samples, names
        self._n_words = count_words(len(samples))
        self._patterns = PatternNumbers()
        self._numbers: list[NDArray[np.uint32]] = []
        self._hashes: list[NDArray[np.uint64]] = []
        self._name_ends: list[IntArray] = []
        self._block_sums: list[NDArray[np.uint64]] = []
        self._sums: dict[str, list[int]] = {}
        self._file.write(bitfile.HEADER)

    def add(self, words: Array, names: Array = _NO_NAMES, ends: Array = _NO_ENDS) -> None:
        """Add features: their words, and their names, if any, as `parse_lines` returns them."""
        first = self._patterns.n_patterns
        stored = np.empty((0, self._n_words), dtype=WORD_DTYPE)
        if first:  # the patterns written so far
            shape = first, self._n_words
            stored = np.memmap(self._file, "<u8", mode="r", offset=bitfile.ALIGNMENT, shape=shape)
        numbers, new = self._patterns.add(words, np.asarray(stored))
        self._numbers.append(numbers)
        fresh = words if len(new) == len(words) else words[new]
        for start in range(-(first % BLOCK_PATTERNS), len(fresh), BLOCK_PATTERNS):
            if start >= 0:  # else the last block is continued
                self._block_sums.append(np.zeros(2, dtype=np.uint64))
            own = fresh[max(0, start) : start + BLOCK_PATTERNS]
            _kernels.sum_words(own.ravel(), self._block_sums[-1])
        self._file.write(np.ascontiguousarray(fresh, dtype="<u8").data)
        self._file.flush()
        hashes = np.empty(len(ends), dtype=np.uint64)
        _kernels.hash_names(names, ends, hashes)
        self._hashes.append(hashes)
        self._name_ends.append(ends + self._names.tell())
        self._names.write(names.data)

    def finish(self) -> None:
        """Write what follows the words."""
        if not self._numbers:
            raise IcscmError("there is no feature to pack")
        numbers = np.concatenate(self._numbers)
        copies = make_copies(numbers, self._patterns.n_patterns)
        name_ends = np.concatenate(self._name_ends)
        if len(name_ends):
            self._check_distinct(name_ends)
        self._file.seek(bitfile.ALIGNMENT + self._patterns.n_patterns * self._n_words * 8)
        sections: dict[str, Array] = {"sums": np.concatenate(self._block_sums), "numbers": numbers}
        sections |= {"offsets": copies.offsets, "members": copies.members, "name_ends": name_ends}
        for name, array in sections.items():
            self._write(name, [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data])
        self._names.seek(0)
        self._write("names", iter(lambda: self._names.read(_COPIED), b""))
        n_name_bytes = int(name_ends[-1]) if len(name_ends) else None
        sizes = len(numbers), self._patterns.n_patterns, n_name_bytes
        self._write_footer((list(self._samples), *sizes, self._sums))
        self._file.flush()

    def _write(self, name: str, parts: Iterable[Any]) -> None:
        sums, length = np.zeros(2, dtype=np.uint64), 0
        for part in parts:
            add_to_sums(part, sums)
            self._file.write(part)
            length += len(part)
        self._file.write(bytes(-length % bitfile.ALIGNMENT))
        self._sums[name] = sums.tolist()

    def _write_footer(self, footer: bitfile.Footer) -> None:
        text, offset = bitfile.format_footer(footer), self._file.tell()
        trailer = offset, len(text), zlib.crc32(text), bitfile.MAGIC
        self._file.write(text + bitfile.TRAILER.pack(*trailer))

    def _check_distinct(self, ends: IntArray) -> None:
        """Raise if two features share a name, by which rules refer to them."""
        hashes = np.concatenate(self._hashes)
        order = np.argsort(hashes, kind="stable")
        again = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        for pair in zip(order[again].tolist(), order[again + 1].tolist(), strict=True):
            names = []
            for feature in pair:
                start = int(ends[feature - 1]) if feature else 0
                self._names.seek(start)
                names.append(self._names.read(int(ends[feature]) - start))
            if names[0] == names[1]:
                why = f"{names[0].decode(errors='replace')!r} names more than one feature"
                raise IcscmError(f"{why}; names must differ, since rules refer to features by name")


def write_bits(out: Path, samples: Sequence[str], fill: "Callable[[BitWriter], None]") -> None:
    """Let `fill` add features to a new store, which is written completely or not at all.

    The names of the samples must differ.
    """
    check_samples(samples)

    def write(file: IO[bytes]) -> None:
        with TemporaryFile(dir=out.parent) as names:
            writer = BitWriter(file, samples, names)
            fill(writer)
            writer.finish()

    write_whole(out, write)
