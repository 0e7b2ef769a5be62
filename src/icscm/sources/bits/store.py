"""A packed store on disk: which samples have which feature, a bit each, in one file.

    header     64 bytes: what it is
    sections   each from a multiple of 64 bytes on
      words      uint64 (pattern, word): bit i of a pattern is sample i
      sums       uint64 (block, 2): checksums of the words, `BLOCK_PATTERNS` patterns at a time
      numbers    uint32 (feature): its pattern
      offsets    int64 (pattern + 1): where its features begin in `members`
      members    uint32 (feature): features by pattern
      name_ends  int64 (feature): where its name ends in `names`
      names      UTF-8, one after the other
    footer     JSON: sizes, samples, where the sections are and their checksums
    trailer    32 bytes: where the footer is, its own checksum

Numbers are little-endian. The trailer comes last, so a file that was cut off has none.
"""

from __future__ import annotations

import json
import mmap
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import WORD_BITS, WORD_DTYPE
from icscm._types import Array, IntArray
from icscm.engine import _kernels
from icscm.engine.copies import Copies, PatternNumbers, make_copies
from icscm.exceptions import IcscmError
from icscm.writing import write_whole

ALIGNMENT = 64
HEADER = b"icscm bits: samples by pattern, a bit each\n".ljust(ALIGNMENT, b"\0")
SCHEMA = 1
# Patterns that share a checksum: verified as they are first read.
BLOCK_PATTERNS = 2**14
# Footer's place, length and checksum, then what tells that this is a trailer.
TRAILER = struct.Struct("<QQQ8s")
MAGIC = b"icscmbit"
# Bytes copied at a time.
_COPIED = 2**24
_NO_NAMES = np.empty(0, dtype=np.uint8)


def count_words(n_samples: int) -> int:
    """Words of a pattern: an even number, since two are counted at a time."""
    return 2 * -(-n_samples // (2 * WORD_BITS))


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
        self._sums: list[NDArray[np.uint64]] = []
        self._sections: dict[str, dict[str, Any]] = {}
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
                self._sums.append(np.zeros(2, dtype=np.uint64))
            _kernels.sum_words(words[start : start + room].ravel(), self._sums[-1])
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
        length = self._patterns.n_patterns * self._n_words * 8
        self._sections["words"] = {"offset": ALIGNMENT, "length": length}
        self._file.seek(ALIGNMENT + length)
        sections: dict[str, Array] = {"sums": np.concatenate(self._sums), "numbers": numbers}
        sections |= {"offsets": copies.offsets, "members": copies.members, "name_ends": name_ends}
        for name, array in sections.items():
            self._write(name, _iterate(array))
        self._names.seek(0)
        self._write("names", iter(lambda: self._names.read(_COPIED), b""))
        self._write_footer(len(numbers))
        self._file.flush()

    def _write(self, name: str, parts: Iterator[Any]) -> None:
        offset, sums = self._file.tell(), np.zeros(2, dtype=np.uint64)
        length = 0
        for part in parts:
            padded = bytes(part) + bytes(-len(part) % 8)  # only the last is not a multiple already
            _kernels.sum_words(np.frombuffer(padded, dtype="<u8"), sums)
            self._file.write(part)
            length += len(part)
        self._file.write(bytes(-length % ALIGNMENT))
        self._sections[name] = {"offset": offset, "length": length, "sums": sums.tolist()}

    def _write_footer(self, n_features: int) -> None:
        footer = {
            "schema": SCHEMA,
            "n_features": n_features,
            "n_patterns": self._patterns.n_patterns,
            "n_words": self._n_words,
            "samples": list(self._samples),
            "sections": self._sections,
        }
        text = json.dumps(footer, ensure_ascii=False).encode()
        offset = self._file.tell()
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
    if len(samples) == 0:
        raise IcscmError("there is no sample to pack")
    name, n_times = Counter(samples).most_common(1)[0]
    if n_times > 1:
        raise IcscmError(f"{name!r} names more than one sample; names must differ")

    def write(file: IO[bytes]) -> None:
        with closing(BitWriter(file, samples, out.parent)) as writer:
            fill(writer)
            writer.finish()

    write_whole(out, write)


def check_samples(samples: Sequence[str]) -> None:
    """Raise unless there are samples, each with a name of its own."""
    if len(samples) == 0:
        raise IcscmError("there is no sample to pack")
    name, n_times = Counter(samples).most_common(1)[0]
    if n_times > 1:
        raise IcscmError(f"{name!r} names more than one sample; names must differ")


def _iterate(array: Array) -> Iterator[Any]:
    """An array's bytes, some at a time."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return (flat[start : start + _COPIED].data for start in range(0, len(flat), _COPIED))


class FeatureNames(Sequence[str]):
    """Names of features, read when they are asked for."""

    def __init__(self, names: Array, ends: Array) -> None:
        self._names = names
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, feature: Any) -> Any:
        start = self._ends[feature - 1] if feature else 0
        return self._names[start : self._ends[feature]].tobytes().decode()

    def find(self, name: str) -> int | None:
        """The number of a name; None if it is not there."""
        wanted = name.encode()
        joined = self._names.tobytes()
        at = joined.find(wanted)
        while at >= 0:
            number = int(np.searchsorted(self._ends, at + len(wanted), side="left"))
            if number < len(self) and self[number] == name:
                return number
            at = joined.find(wanted, at + 1)
        return None


class BitFile:
    """A packed store, mapped into memory; open it with `open_store`."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path = path
        self._content = content
        footer = self._read_footer()
        self.samples: list[str] = footer["samples"]
        self.n_features: int = footer["n_features"]
        self.n_patterns: int = footer["n_patterns"]
        self._sections = footer["sections"]
        self.words = self._read("words", "<u8").reshape(self.n_patterns, footer["n_words"])
        self._sums = self._read("sums", "<u8").reshape(-1, 2)
        self._is_checked = np.zeros(len(self._sums), dtype=np.bool_)
        parts = (self._read("numbers", "<u4"), self._read("offsets", "<i8"))
        self.copies = Copies(*parts, self._read("members", "<u4"))
        ends = self._read("name_ends", "<i8")
        self.names = FeatureNames(self._read("names", np.uint8), ends) if len(ends) else None

    def _read_footer(self) -> dict[str, Any]:
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
        footer: dict[str, Any] = json.loads(text)
        if footer["schema"] != SCHEMA:
            raise IcscmError(
                f"{self.path} is of schema {footer['schema']}, which this version does not know; "
                "pack the table again"
            )
        return footer

    def _read(self, name: str, dtype: Any) -> Array:
        section = self._sections[name]
        n_values = section["length"] // np.dtype(dtype).itemsize
        found = np.frombuffer(self._content, dtype, n_values, section["offset"])
        if "sums" in section:
            self._check(found, section["sums"], f"its {name} have")
        return found

    def _check(self, found: Array, expected: Any, what: str) -> None:
        raw = found.reshape(-1).view(np.uint8)
        whole, rest = np.split(raw, [len(raw) // 8 * 8])
        sums = np.zeros(2, dtype=np.uint64)
        for part in (whole, np.append(rest, np.zeros(-len(rest) % 8, dtype=np.uint8))):
            _kernels.sum_words(part.view("<u8"), sums)
        if sums.tolist() != list(expected):
            self._refuse(f"{what} changed")

    def check_words(self, block: int) -> None:
        """Raise if a block of patterns is not as it was written; looks at it once."""
        if not self._is_checked[block]:
            patterns = self.words[block * BLOCK_PATTERNS : (block + 1) * BLOCK_PATTERNS]
            self._check(patterns, self._sums[block].tolist(), "its words have")
            self._is_checked[block] = True

    def release(self, patterns: slice) -> None:
        """Let go of the memory that some patterns take; they are read again when needed."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        width = self.words.shape[1] * 8
        first = ALIGNMENT + patterns.start * width
        start = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        stop = (ALIGNMENT + patterns.stop * width) // mmap.PAGESIZE * mmap.PAGESIZE
        if stop > start:
            self._content.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def _refuse(self, why: str) -> None:
        raise IcscmError(f"{self.path} is no packed store, or a damaged one: {why}")


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
