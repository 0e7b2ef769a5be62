"""From presence/absence tables, or matrices of 0 and 1, to a packed store.

A presence/absence table has a line for each gene or k-mer, and a column for each genome:

    Gene    g1  g2  g3
    blaTEM  0   1   1
    mecA    1   0   0

So its lines are the columns that rules are about, called features here, and its genomes the
samples. A table is read in chunks of whole lines and never held in memory; `BitWriter` takes the
features of each chunk, and writes patterns, which are features without their copies, one by one.
"""

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, NoReturn

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
# Features of a matrix that are added at a time.
_BATCH = 2**16
# Bytes of names copied at a time.
_COPIED = 2**24
# The names, and where they end, of features without names.
_NO_NAMES = np.empty(0, dtype=np.uint8)
_NO_ENDS = np.empty(0, dtype=np.int64)
# The column of the first genome in messages: they are numbered from 1, after that of the names.
_FIRST_COLUMN = 2


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
        file: Any = raw
        if path.suffix.lower() == ".gz":
            file = stack.enter_context(gzip.open(raw))
        header = _read_header(path, file, delimiter)

        def add_lines(writer: "BitWriter") -> None:
            parser = LineParser(path, header.samples, writer)
            while chunk := file.read(CHUNK_BYTES):
                whole_lines = chunk + file.readline()  # the rest of the last line
                if not whole_lines.endswith(b"\n"):
                    whole_lines += b"\n"
                parser.add(header.put_tabs(whole_lines))
                on_chunk(raw.tell() if raw.seekable() else 0)
            if not parser.has_features:
                raise IcscmError(f"{path} has a header and no other line; there is nothing to pack")

        write_bits(out, header.samples, add_lines)


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
    _check_length(names, n_features, what="names")
    _check_length(samples, n_samples, what="samples")

    words = _pack_words(X)

    def add_columns(writer: "BitWriter") -> None:
        for start in range(0, n_features, _BATCH):
            part = slice(start, start + _BATCH)
            if names is None:
                writer.add(words[part])
                continue
            encoded_names = [name.encode() for name in names[part]]
            writer.add(
                words[part],
                names=np.frombuffer(b"".join(encoded_names), dtype=np.uint8),
                ends=np.cumsum([len(name) for name in encoded_names], dtype=np.int64),
            )

    with _clear_errors(out):
        write_bits(out, [str(sample) for sample in samples], add_columns)


def _check_length(names: Sequence[object] | None, n: int, *, what: str) -> None:
    """Raise if names are given, but not one for each row or column of the matrix."""
    if names is not None and len(names) != n:
        raise IcscmError(f"{what} must be {n:,}, as in the matrix; got {len(names):,}")


def _pack_words(X: Any) -> Array:
    """Pack the columns of a matrix into words (feature, word), a bit for each row."""
    n_samples, n_features = X.shape
    words = np.zeros((n_features, count_words(n_samples)), dtype=WORD_DTYPE)
    bit_of_sample = np.arange(n_samples, dtype=ROW_DTYPE)
    is_binary = set_bits(_as_numbers(X), bit_of_sample, words, count_threads(-1))
    if not is_binary:
        raise IcscmError("the matrix holds values other than 0 and 1; binarize it")
    return words


def _as_numbers(X: Any) -> Any:
    """Return a matrix in one of the forms that bits are set from."""
    if is_sparse(X):
        return X if X.format in ("csr", "csc") else X.tocsr()
    matrix = np.asarray(X)
    return matrix.view(np.uint8) if matrix.dtype == np.bool_ else matrix


@contextmanager
def open_packed(path: Path, delimiter: str | None = None) -> Iterator[BitFile]:
    """Open a packed store, or a table of genomes, which is packed to a temporary file."""
    with TemporaryDirectory() as folder:
        packed = path
        if path.suffix.lower() != ".bits":
            packed = Path(folder, "packed.bits")
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


@dataclass(frozen=True)
class Header:
    """What the first line of a table shows: its genomes, and how the lines below are cut."""

    samples: list[str]
    #: puts tabs between the cells of whole lines, and removes quotes
    put_tabs: Callable[[bytes], bytes]


def _read_header(path: Path, file: IO[bytes], delimiter: str | None) -> Header:
    """Read the first line of a table, and find the delimiter, if it is not given."""
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise IcscmError(f"the delimiter must be one ASCII character; got {delimiter!r}")

    line = file.readline()
    used_delimiter = delimiter.encode() if delimiter else _find_delimiter(line)
    put_tabs = _choose_cutting(used_delimiter)
    try:
        text = put_tabs(line).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise IcscmError(f"{path} is not a text file in UTF-8") from None

    samples = text.rstrip("\r\n").split("\t")[1:]
    if not samples:
        raise IcscmError(
            f"the first line of {path} does not name genomes, separated by tabs; "
            "give a presence/absence table, or its --delimiter"
        )
    if "" in samples:
        column = _FIRST_COLUMN + samples.index("")
        raise IcscmError(f"{path}: column {column} of the header has no name")
    return Header(samples, put_tabs)


def _find_delimiter(line: bytes) -> bytes:
    """Find the delimiter that a line shows; a blank if it shows no other."""
    for delimiter in (b"\t", b",", b";"):
        if delimiter in line:
            return delimiter
    return b" "


def _choose_cutting(delimiter: bytes) -> Callable[[bytes], bytes]:
    """Choose the function that puts tabs between the cells of whole lines, and removes quotes.

    Then there is one delimiter to parse, whatever that of the table is.
    """
    if delimiter == b"\t":
        return lambda text: text
    if delimiter == b" ":
        blanks_at_ends = re.compile(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)")
        blanks = re.compile(rb"[ \t]+")
        return lambda text: blanks.sub(b"\t", blanks_at_ends.sub(b"", text))
    tabs = bytes.maketrans(delimiter, b"\t")
    return lambda text: text.translate(tabs, b'"')


class LineParser:
    """Parses the lines of a table below its header, and adds a feature to the store for each."""

    def __init__(self, path: Path, samples: Sequence[str], writer: "BitWriter") -> None:
        self.has_features = False
        self._path = path
        self._samples = samples
        self._writer = writer
        #: lines of the file so far: the header
        self._n_lines_read = 1

    def add(self, lines: bytes) -> None:
        """Parse some whole lines, with tabs between cells; empty ones are skipped."""
        n_samples = len(self._samples)
        text = np.frombuffer(lines, dtype=np.uint8)

        # Room for what the parser fills in: a feature takes at least a tab and a digit a sample.
        max_features = len(text) // (2 * n_samples) + 1
        words = np.zeros((max_features, count_words(n_samples)), dtype=WORD_DTYPE)
        names = np.empty_like(text)
        name_ends = np.empty(max_features, dtype=np.int64)
        n_features, stop = _kernels.parse_lines(text, n_samples, words, names, name_ends)
        if stop < len(text):
            self._reject_line(lines, stop)

        if n_features:
            end_of_names = name_ends[n_features - 1]
            self._check_names(names[:end_of_names], lines)
            self._writer.add(words[:n_features], names[:end_of_names], name_ends[:n_features])
            self.has_features = True
        self._n_lines_read += lines.count(b"\n")

    def _reject_line(self, lines: bytes, start: int) -> NoReturn:
        """Raise for the line that starts here, which could not be parsed; the message says why.

        It has too many cells or too few, or one that is neither 0 nor 1.
        """
        number = self._n_lines_read + lines.count(b"\n", 0, start) + 1
        place = f"{self._path}, line {number}"

        line = lines[start : lines.index(b"\n", start)].rstrip(b"\r")
        values = [cell.decode(errors="replace") for cell in line.split(b"\t")[1:]]
        n_samples = len(self._samples)
        if len(values) != n_samples:
            raise IcscmError(
                f"{place} has {len(values)} values, but the header names {n_samples} genomes"
            )

        is_wrong = [value not in ("0", "1") for value in values]
        first_wrong = is_wrong.index(True)
        column = _FIRST_COLUMN + first_wrong
        sample = self._samples[first_wrong]
        raise IcscmError(
            f"{place}, column {column} ({sample!r}) holds {values[first_wrong]!r}; "
            "a presence/absence table holds 0 and 1 only"
        )

    def _check_names(self, names: Array, lines: bytes) -> None:
        """Raise if names of features are not UTF-8."""
        try:
            names.tobytes().decode()
        except UnicodeDecodeError:
            next_line = self._n_lines_read + lines.count(b"\n") + 1
            raise IcscmError(
                f"{self._path} holds names that are not UTF-8, before line {next_line}"
            ) from None


class BitWriter:
    """Writes a store a batch of features at a time; patterns that are known are not written again.

    The words of new patterns are written as they come, everything else at the end, when all of it
    is known: `add` as often as you like, then `finish`. Names wait in a file of their own. It keeps
    some 20 bytes of memory for each pattern and 16 for each feature. See `write_bits`.

    Parameters
    ----------
    file : file
        The store, empty.
    samples : sequence of str
        The names of the samples.
    names : file
        An empty file for the names of features until they are copied to the store.
    """

    def __init__(self, file: IO[bytes], samples: Sequence[str], names: IO[bytes]) -> None:
        self._file = file
        self._samples = samples
        self._names = names
        self._n_words = count_words(len(samples))
        self._patterns = PatternNumbers()
        # by batch of features: their patterns, hashes of their names, and where the names end
        self._numbers: list[NDArray[np.uint32]] = []
        self._name_hashes: list[NDArray[np.uint64]] = []
        self._name_ends: list[IntArray] = []
        #: checksums of the words, by block of patterns
        self._sums_of_blocks: list[NDArray[np.uint64]] = []
        #: checksums of the sections that are written after the words
        self._section_sums: dict[str, list[int]] = {}
        self._file.write(bitfile.HEADER)

    def add(self, words: Array, names: Array = _NO_NAMES, ends: Array = _NO_ENDS) -> None:
        """Add features: their words (feature, word), and their names, if they have any.

        Features of the same words share a pattern, which is written once, when it is new. Names are
        bytes, one name after the other, that of feature i up to ends[i]; they wait in a file of
        their own, since they follow the words of all features.
        """
        n_patterns_before = self._patterns.n_patterns
        numbers, new_rows = self._patterns.add(words, self._map_written())
        self._numbers.append(numbers)

        new_words = words if len(new_rows) == len(words) else words[new_rows]
        self._add_sums(new_words, n_patterns_before)
        self._file.write(np.ascontiguousarray(new_words, dtype="<u8").data)
        self._file.flush()

        hashes = np.empty(len(ends), dtype=np.uint64)
        _kernels.hash_names(names, ends, hashes)
        self._name_hashes.append(hashes)
        self._name_ends.append(ends + self._names.tell())
        self._names.write(names.data)

    def finish(self) -> None:
        """Write what follows the words: the other sections, the footer and the trailer."""
        if not self._numbers:
            raise IcscmError("there is no feature to pack")
        n_patterns = self._patterns.n_patterns
        numbers = np.concatenate(self._numbers)
        copies = make_copies(numbers, n_patterns)
        name_ends = np.concatenate(self._name_ends)
        if len(name_ends):
            self._check_distinct(name_ends)

        # Sections are written in the order in which `place_sections` places them.
        n_bytes_of_words = np.dtype(WORD_DTYPE).itemsize * n_patterns * self._n_words
        self._file.seek(len(bitfile.HEADER) + n_bytes_of_words)
        self._write_array("sums", np.concatenate(self._sums_of_blocks))
        self._write_array("numbers", numbers)
        self._write_array("offsets", copies.offsets)
        self._write_array("members", copies.members)
        self._write_array("name_ends", name_ends)
        self._names.seek(0)
        parts_of_names = iter(lambda: self._names.read(_COPIED), b"")
        self._write("names", parts_of_names)

        footer = bitfile.Footer(
            samples=list(self._samples),
            n_features=len(numbers),
            n_patterns=n_patterns,
            n_name_bytes=int(name_ends[-1]) if len(name_ends) else None,
            sums=self._section_sums,
        )
        self._write_footer(footer)
        self._file.flush()

    def _map_written(self) -> Array:
        """Map the words of the patterns that are written so far."""
        n_patterns = self._patterns.n_patterns
        shape = n_patterns, self._n_words
        if n_patterns == 0:  # an empty array cannot be mapped
            return np.empty(shape, dtype=WORD_DTYPE)
        offset = len(bitfile.HEADER)
        words = np.memmap(self._file, "<u8", mode="r", offset=offset, shape=shape)
        return np.asarray(words)

    def _add_sums(self, new_words: Array, n_patterns_before: int) -> None:
        """Add the words of new patterns to the checksums of their blocks.

        The first of them go to the last block, unless that is full.
        """
        n_in_last_block = n_patterns_before % BLOCK_PATTERNS
        room_in_last_block = 0
        if n_in_last_block > 0:
            room_in_last_block = BLOCK_PATTERNS - n_in_last_block
            words_for_last_block = new_words[:room_in_last_block]
            _kernels.sum_words(words_for_last_block.ravel(), self._sums_of_blocks[-1])

        for start in range(room_in_last_block, len(new_words), BLOCK_PATTERNS):
            sums = np.zeros(2, dtype=np.uint64)
            _kernels.sum_words(new_words[start : start + BLOCK_PATTERNS].ravel(), sums)
            self._sums_of_blocks.append(sums)

    def _write_array(self, name: str, array: Array) -> None:
        """Write a section that is an array."""
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        self._write(name, [content])

    def _write(self, name: str, parts: Iterable[Any]) -> None:
        """Write a section, zeros up to where the next one begins, and note its checksums."""
        sums = np.zeros(2, dtype=np.uint64)
        n_bytes = 0
        for part in parts:
            add_to_sums(part, sums)
            self._file.write(part)
            n_bytes += len(part)
        self._file.write(bytes(-n_bytes % bitfile.ALIGNMENT))
        self._section_sums[name] = sums.tolist()

    def _write_footer(self, footer: bitfile.Footer) -> None:
        """Write the footer and, after it, the trailer by which it is found."""
        offset = self._file.tell()
        text = bitfile.format_footer(footer)
        trailer = bitfile.TRAILER.pack(offset, len(text), zlib.crc32(text), bitfile.MAGIC)
        self._file.write(text + trailer)

    def _check_distinct(self, ends: IntArray) -> None:
        """Raise if two features share a name, by which rules refer to them.

        Only names of equal hash are read and compared.
        """
        hashes = np.concatenate(self._name_hashes)
        order = np.argsort(hashes, kind="stable")
        ordered_hashes = hashes[order]
        has_hash_of_next = ordered_hashes[1:] == ordered_hashes[:-1]

        for place in np.flatnonzero(has_hash_of_next).tolist():
            first = int(order[place])
            second = int(order[place + 1])
            name = self._read_name(first, ends)
            if name == self._read_name(second, ends):
                raise IcscmError(
                    f"{name.decode(errors='replace')!r} names more than one feature; "
                    "names must differ, since rules refer to features by name"
                )

    def _read_name(self, feature: int, ends: IntArray) -> bytes:
        """Read the name of a feature, as it is encoded."""
        start = int(ends[feature - 1]) if feature else 0
        self._names.seek(start)
        return self._names.read(int(ends[feature]) - start)


def write_bits(out: Path, samples: Sequence[str], fill: Callable[[BitWriter], None]) -> None:
    """Write a store completely or not at all: `fill` adds the features to a writer.

    The names of the samples must differ.
    """
    check_samples(samples)

    def write(file: IO[bytes]) -> None:
        with TemporaryFile(dir=out.parent) as names:
            writer = BitWriter(file, samples, names)
            fill(writer)
            writer.finish()

    write_whole(out, write)
