"""A packed store on disk: which samples have which feature, a bit each, in one file.

    header     64 bytes: what it is
    sections   one after the other, all but the words filled up to a multiple of 64 bytes
      words      uint64 (pattern, word): bit i of a pattern is sample i
      sums       uint64 (block, 2): checksums of the words, `BLOCK_PATTERNS` patterns at a time
      numbers    uint32 (feature): its pattern
      offsets    int64 (pattern + 1): where its features begin in `members`
      members    uint32 (feature): features by pattern
      name_ends  int64 (feature): where its name ends in `names`
      names      UTF-8, one after the other
    footer     JSON: sizes, samples, where the sections are and their checksums; see `footer`
    trailer    32 bytes: where the footer is, its own checksum

Numbers are little-endian. The trailer comes last, so a file that was cut off has none.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from icscm._constants import WORD_BITS, WORD_DTYPE
from icscm._types import Array, IntArray
from icscm.engine import _kernels
from icscm.engine.bits import Copies, PatternNumbers, make_copies
from icscm.exceptions import IcscmError
from icscm.sources.bits.footer import (
    ALIGNMENT,
    BLOCK_PATTERNS,
    MAGIC,
    SCHEMA,
    TRAILER,
    Footer,
    OtherSchemaError,
    check_samples,
    count_words,
    parse_footer,
)
from icscm.writing import write_whole

HEADER = b"icscm bits: samples by pattern, a bit each\n".ljust(ALIGNMENT, b"\0")
# Bytes copied at a time, and names searched.
_COPIED = 2**24
_SEARCHED = 2**16
_NO_NAMES = np.empty(0, dtype=np.uint8)


class BitWriter:
    """Writes a store feature by feature; identical patterns are written once.

    Keeps some 20 bytes of memory for each pattern and 16 for each feature. See `write_bits`.
    """

    def __init__(self, file: IO[bytes], samples: Sequence[str], folder: Path) -> None:
        self._samples = samples
        self._n_words = count_words(len(samples))
        self._patterns = PatternNumbers()
        self._numbers: list[NDArray[np.uint32]] = []
        self._hashes: list[NDArray[np.uint64]] = []
        self._name_ends: list[IntArray] = [np.zeros(1, dtype=np.int64)]
        self._block_sums: list[NDArray[np.uint64]] = []
        self._sums: dict[str, list[int]] = {}
        self._file = file
        self._names: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115 (closed by `close`)
        self._file.write(HEADER)

    def add(self, words: Array, names: Array = _NO_NAMES, ends: Array | None = None) -> None:
        """More features: their words, and their names as `parse_lines` gives them."""
        numbers, new = self._patterns.add(words, self._map_words())
        self._numbers.append(numbers)
        fresh = words if len(new) == len(words) else words[new]
        self._add_to_sums(fresh, self._patterns.n_patterns - len(new))
        self._file.write(np.ascontiguousarray(fresh, dtype="<u8").data)
        self._file.flush()
        if ends is not None:
            hashes = np.empty(len(ends), dtype=np.uint64)
            _kernels.hash_names(names, ends, hashes)
            self._hashes.append(hashes)
            self._names.write(names.data)
            self._name_ends.append(ends + self._name_ends[-1][-1])

    def _map_words(self) -> Array:
        """The patterns written so far."""
        shape = self._patterns.n_patterns, self._n_words
        if shape[0] == 0:
            return np.frombuffer(b"", dtype=WORD_DTYPE).reshape(shape)
        return np.asarray(np.memmap(self._file, "<u8", mode="r", offset=ALIGNMENT, shape=shape))

    def _add_to_sums(self, words: Array, first: int) -> None:
        start = 0
        while start < len(words):
            room = BLOCK_PATTERNS - (first + start) % BLOCK_PATTERNS
            if room == BLOCK_PATTERNS:
                self._block_sums.append(np.zeros(2, dtype=np.uint64))
            _kernels.sum_words(words[start : start + room].ravel(), self._block_sums[-1])
            start += room

    def finish(self) -> None:
        """Write what follows the words."""
        if not self._numbers:
            raise IcscmError("there is no feature to pack")
        numbers = np.concatenate(self._numbers)
        copies = make_copies(numbers, self._patterns.n_patterns)
        name_ends = np.concatenate(self._name_ends)[1:]
        if len(name_ends):
            self._check_distinct(name_ends)
        self._file.seek(ALIGNMENT + self._patterns.n_patterns * self._n_words * 8)
        sections: dict[str, Array] = {"sums": np.concatenate(self._block_sums), "numbers": numbers}
        sections |= {"offsets": copies.offsets, "members": copies.members, "name_ends": name_ends}
        for name, array in sections.items():
            self._write(name, _iterate(array))
        self._names.seek(0)
        self._write("names", iter(lambda: self._names.read(_COPIED), b""))
        n_name_bytes = int(name_ends[-1]) if len(name_ends) else None
        sizes = len(numbers), self._patterns.n_patterns, n_name_bytes
        self._write_footer(Footer(list(self._samples), *sizes, self._sums))
        self._file.flush()

    def _write(self, name: str, parts: Iterator[Any]) -> None:
        sums, length = np.zeros(2, dtype=np.uint64), 0
        for part in parts:
            padded = bytes(part) + bytes(-len(part) % 8)  # only the last is not a multiple already
            _kernels.sum_words(np.frombuffer(padded, dtype="<u8"), sums)
            self._file.write(part)
            length += len(part)
        self._file.write(bytes(-length % ALIGNMENT))
        self._sums[name] = sums.tolist()

    def _write_footer(self, footer: Footer) -> None:
        text, offset = footer.format(), self._file.tell()
        self._file.write(text)
        self._file.write(TRAILER.pack(offset, len(text), zlib.crc32(text), MAGIC))

    def _check_distinct(self, ends: IntArray) -> None:
        """Rules go by names: raise if two features share one."""
        hashes = np.concatenate(self._hashes)
        order = np.argsort(hashes, kind="stable")
        again = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        for i in again.tolist():
            one, other = (self._read_name(ends, int(order[i + k])) for k in (0, 1))
            if one == other:
                raise IcscmError(
                    f"{one.decode(errors='replace')!r} names more than one feature; names must "
                    "differ, since rules go by them"
                )

    def _read_name(self, ends: IntArray, feature: int) -> bytes:
        start = int(ends[feature - 1]) if feature else 0
        self._names.seek(start)
        return self._names.read(int(ends[feature]) - start)

    def close(self) -> None:
        self._names.close()


def write_bits(out: Path, samples: Sequence[str], fill: Callable[[BitWriter], None]) -> None:
    """Let `fill` add features to a new store: it is there whole, or not at all.

    Each sample needs a name of its own.
    """
    check_samples(samples)

    def write(file: IO[bytes]) -> None:
        with closing(BitWriter(file, samples, out.parent)) as writer:
            fill(writer)
            writer.finish()

    write_whole(out, write)


def _iterate(array: Array) -> Iterator[Any]:
    """An array's bytes, some at a time."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return (flat[start : start + _COPIED].data for start in range(0, len(flat), _COPIED))


class FeatureNames(Sequence[str]):
    """Names of features, read when they are asked for; `refuse` is told of what cannot be."""

    def __init__(self, names: Array, ends: Array, refuse: Callable[[str], NoReturn]) -> None:
        self._names = names
        self._ends = ends
        self._refuse = refuse
        if ends[0] < 0 or ends[-1] != len(names) or not (ends[1:] >= ends[:-1]).all():
            refuse("its names do not end where it says")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, feature: Any) -> Any:
        start = self._ends[feature - 1] if feature else 0
        try:
            return self._names[start : self._ends[feature]].tobytes().decode()
        except UnicodeDecodeError:
            self._refuse(f"the name of feature {feature:,} is not UTF-8")

    def find(self, name: str) -> int | None:
        """The number of a name; None if it is not there."""
        wanted = np.frombuffer(name.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        found: list[int] = []
        for first in range(0, len(self), _SEARCHED):
            ends = self._ends[first : first + _SEARCHED]
            starts = np.append(self._ends[first - 1] if first else 0, ends[:-1])
            near = np.flatnonzero(ends - starts == len(wanted))
            for i in reversed(range(len(wanted))):  # names differ in the end more than before
                near = near[self._names[starts[near] + i] == wanted[i]]
            found += (first + near).tolist()
        if len(found) > 1:
            self._refuse(f"{name!r} names {len(found):,} features")
        return found[0] if found else None


class BitFile:
    """A packed store, mapped into memory; open it with `open_store`.

    Nothing in it is taken on trust: a checksum says that it is as it was written, not by whom.
    """

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path = path
        self._content = content
        self._footer = footer = self._read_footer()
        self.samples, self.n_features = footer.samples, footer.n_features
        self.n_patterns, self.n_words = footer.n_patterns, footer.n_words
        self._words = self._map("words", "<u8").reshape(self.n_patterns, self.n_words)
        self._sums = self._read("sums", "<u8").reshape(-1, 2)
        self._is_checked = np.zeros(len(self._sums), dtype=np.bool_)
        parts = (self._read("numbers", "<u4"), self._read("offsets", "<i8"))
        self.copies = Copies(*parts, self._read("members", "<u4"))
        if not _kernels.are_groups(*parts, self.copies.members):
            self._refuse("its features and its patterns do not go together")
        names, ends = self._read("names", np.uint8), self._read("name_ends", "<i8")
        has_names = footer.n_name_bytes is not None
        self.names = FeatureNames(names, ends, self._refuse) if has_names else None

    def _read_footer(self) -> Footer:
        if len(self._content) < len(HEADER) + TRAILER.size:
            self._refuse("it is too short")
        if self._content[: len(HEADER)] != HEADER:
            self._refuse("it does not begin as one")
        offset, length, checksum, magic = TRAILER.unpack(self._content[-TRAILER.size :])
        if magic != MAGIC or offset + length + TRAILER.size != len(self._content):
            self._refuse("its end is missing")
        text = self._content[offset : offset + length]
        if zlib.crc32(text) != checksum:
            self._refuse("its footer has changed")
        try:
            return parse_footer(text, offset)
        except OtherSchemaError:
            raise IcscmError(
                f"{self.path} is of another schema than {SCHEMA}, the one that this version knows; "
                "pack the table again"
            ) from None
        except ValueError:
            self._refuse("its footer is none that packing writes")

    def _map(self, name: str, dtype: Any) -> Array:
        place = self._footer.place_sections()[name]
        return np.frombuffer(
            self._content, dtype, len(place) // np.dtype(dtype).itemsize, place.start
        )

    def _read(self, name: str, dtype: Any) -> Array:
        found = self._map(name, dtype)
        self._check(found, self._footer.sums[name], f"its {name} have")
        return found

    def _check(self, found: Array, expected: Any, what: str) -> None:
        raw = found.reshape(-1).view(np.uint8)
        whole, rest = np.split(raw, [len(raw) // 8 * 8])
        sums = np.zeros(2, dtype=np.uint64)
        for part in (whole, np.append(rest, np.zeros(-len(rest) % 8, dtype=np.uint8))):
            _kernels.sum_words(part.view("<u8"), sums)
        if sums.tolist() != expected:
            self._refuse(f"{what} changed")

    def read_words(self, patterns: slice) -> Array:
        """The words of some patterns, checked: there is no other way to them."""
        for block in range(patterns.start // BLOCK_PATTERNS, -(-patterns.stop // BLOCK_PATTERNS)):
            if not self._is_checked[block]:
                whole = self._words[block * BLOCK_PATTERNS : (block + 1) * BLOCK_PATTERNS]
                self._check(whole, self._sums[block].tolist(), "its words have")
                self._check_ends(whole)
                self._is_checked[block] = True
        return self._words[patterns]

    def _check_ends(self, words: Array) -> None:
        """Raise if there are bits beyond the last sample."""
        first, n_bits = divmod(len(self.samples), WORD_BITS)
        ends = words[:, first:] >> np.array([n_bits, 0][: self.n_words - first], dtype=WORD_DTYPE)
        if ends.any():
            self._refuse("its words go beyond its samples")

    def read_feature(self, feature: int) -> Array:
        """The words of one feature, checked."""
        number = int(self.copies.numbers[feature])
        words: Array = self.read_words(slice(number, number + 1))[0]
        return words

    def release(self, patterns: slice) -> None:
        """Let go of the memory that some patterns take; they are read again when needed."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        width = self.n_words * 8
        first = ALIGNMENT + patterns.start * width
        start = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        stop = (ALIGNMENT + patterns.stop * width) // mmap.PAGESIZE * mmap.PAGESIZE
        if stop > start:
            self._content.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def _refuse(self, why: str) -> NoReturn:
        raise IcscmError(
            f"{self.path} is no packed store, or a damaged one: {why}; pack the table again"
        )


def open_store(path: str | Path) -> BitFile:
    """Map a packed store; everything but the words is checked now, these as they are read.

    Parameters
    ----------
    path : str or Path
        What `pack_table` or `pack_matrix` wrote.

    Returns
    -------
    BitFile
        Its words, samples and names of features.

    Raises
    ------
    IcscmError
        If it cannot be read, or is no packed store.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file cannot be mapped
        raise IcscmError(f"{path} is no packed store, or a damaged one: it is empty") from None
    except OSError as error:
        raise IcscmError(f"cannot read {path}: {error.strerror}") from None
    return BitFile(path, content)
