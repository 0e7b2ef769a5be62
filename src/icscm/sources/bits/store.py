"""A packed store on disk: which samples have which feature, a bit each, in one file.

    header     64 bytes: the type of the file
    sections   one after the other, all but the words padded to a multiple of 64 bytes
      words      uint64 (pattern, word): bit i of a pattern is sample i
      sums       uint64 (block, 2): checksums of the words, `BLOCK_PATTERNS` patterns at a time
      numbers    uint32 (feature): its pattern
      offsets    int64 (pattern + 1): where its features begin in `members`
      members    uint32 (feature): features by pattern
      name_ends  int64 (feature): where its name ends in `names`
      names      UTF-8, concatenated
    footer     JSON: sizes, samples, positions of the sections and their checksums
    trailer    32 bytes: position, length and checksum of the footer

Numbers are little-endian. The trailer comes last, so a truncated file has none. Sizes and samples
determine all positions, so a footer is accepted only if it equals, byte for byte, what would be
written for its own sizes and samples.
"""

import json
import mmap
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from icscm._constants import WORD_BITS, WORD_DTYPE
from icscm._types import Array, BoolArray
from icscm.engine import _kernels
from icscm.engine.bits import Copies
from icscm.exceptions import IcscmError

ALIGNMENT = 64
SCHEMA = 1
HEADER = b"icscm bits: samples by pattern, a bit each\n".ljust(ALIGNMENT, b"\0")
# Patterns that share a checksum: verified when they are first read.
BLOCK_PATTERNS = 2**14
# Features and patterns are numbered in 32 bits.
MAX_FEATURES = 2**32 - 1
# Position, length and checksum of the footer, then a mark of the trailer.
TRAILER = struct.Struct("<QQQ8s")
MAGIC = b"icscmbit"
# Names searched at a time.
_SEARCHED = 2**16


def count_words(n_samples: int) -> int:
    """Words of a pattern: an even number, since two are counted at a time."""
    return 2 * -(-n_samples // (2 * WORD_BITS))


def add_to_sums(content: Any, sums: Array) -> None:
    """Update checksums with some bytes; only the last ones may end within a word."""
    raw = np.frombuffer(content, np.uint8)
    whole, rest = np.split(raw, [len(raw) // 8 * 8])
    for part in (whole, np.pad(rest, (0, -len(rest) % 8))):
        _kernels.sum_words(part.view("<u8"), sums)


def unpack(words: Array, n_samples: int) -> BoolArray:
    """The bit of each sample."""
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:n_samples].astype(np.bool_)


def check_samples(samples: Sequence[str]) -> None:
    """Raise unless there are samples with distinct names."""
    if len(samples) == 0:
        raise IcscmError("there is no sample to pack")
    name, n_times = Counter(samples).most_common(1)[0]
    if n_times > 1:
        raise IcscmError(f"{name!r} names more than one sample; names must differ")


# Samples, numbers of features and of patterns, bytes of all names (None where features have none),
# and the checksums of all sections but the words, which have a section of their own for them.
Footer = tuple[list[str], int, int, int | None, Mapping[str, list[int]]]


def place_sections(footer: Footer) -> dict[str, range]:
    """The bytes of each section, and where the footer begins."""
    samples, n_features, n_patterns, n_name_bytes, _ = footer
    lengths = {
        "words": 8 * n_patterns * count_words(len(samples)),
        "sums": 16 * -(-n_patterns // BLOCK_PATTERNS),
        "numbers": 4 * n_features,
        "offsets": 8 * (n_patterns + 1),
        "members": 4 * n_features,
        "name_ends": 0 if n_name_bytes is None else 8 * n_features,
        "names": n_name_bytes or 0,
        "footer": 0,
    }
    places, start = {}, ALIGNMENT
    for name, length in lengths.items():
        places[name] = range(start, start + length)
        start += length if name == "words" else -(-length // ALIGNMENT) * ALIGNMENT
    return places


def format_footer(footer: Footer) -> bytes:
    """The footer's text."""
    samples, n_features, n_patterns, _, sums = footer
    places = place_sections(footer)
    del places["footer"]
    sections: dict[str, dict[str, Any]] = {
        name: {"offset": place.start, "length": len(place)} for name, place in places.items()
    }
    for name, found in sums.items():
        sections[name]["sums"] = found
    content: dict[str, Any] = {"schema": SCHEMA, "n_features": n_features, "n_patterns": n_patterns}
    content |= {"n_words": count_words(len(samples)), "samples": samples, "sections": sections}
    return json.dumps(content, ensure_ascii=False).encode()


def parse_footer(text: bytes, offset: int) -> Footer | None:
    """The footer at this offset; None if it has another schema, ValueError if it is damaged."""
    try:
        content = json.loads(text)
        if content["schema"] != SCHEMA:
            return None
        sections, samples = content["sections"], content["samples"]
        sums = {name: each["sums"] for name, each in sections.items() if name != "words"}
        n_bytes = sections["names"]["length"] if sections["name_ends"]["length"] else None
        sizes = n_features, n_patterns, _ = content["n_features"], content["n_patterns"], n_bytes
        is_sound = {type(samples), *map(type, sizes)} - {type(None)} == {list, int}
        is_sound = is_sound and 1 <= n_patterns <= n_features <= MAX_FEATURES
        is_sound = is_sound and 0 <= (n_bytes or 0) <= offset and {*map(type, samples)} == {str}
        check_samples(samples)
        footer = samples, *sizes, sums
        is_sound = is_sound and place_sections(footer)["footer"].start == offset
        if is_sound and format_footer(footer) == text:
            return footer
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        pass
    raise ValueError


class FeatureNames(Sequence[str]):
    """Names of features, read on demand; `reject` is called for damaged ones."""

    def __init__(self, names: Array, ends: Array, reject: Callable[[str], NoReturn]) -> None:
        self._names, self._ends, self._reject = names, ends, reject
        if ends[0] < 0 or ends[-1] != len(names) or not (ends[1:] >= ends[:-1]).all():
            reject("its names are inconsistent")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, feature: Any) -> Any:
        start = self._ends[feature - 1] if feature else 0
        try:
            return self._names[start : self._ends[feature]].tobytes().decode()
        except UnicodeDecodeError:
            self._reject(f"the name of feature {feature:,} is not UTF-8")

    def find(self, name: str) -> int | None:
        """The number of the feature with this name; None if there is none."""
        wanted = np.frombuffer(name.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        found: list[int] = []
        for first in range(0, len(self), _SEARCHED):
            ends = self._ends[first : first + _SEARCHED]
            starts = np.append(self._ends[first - 1] if first else 0, ends[:-1])
            near = np.flatnonzero(ends - starts == len(wanted))
            for i in reversed(range(len(wanted))):  # names differ more often in their last letters
                near = near[self._names[starts[near] + i] == wanted[i]]
            found += (first + near).tolist()
        if len(found) > 1:
            self._reject(f"{name!r} names {len(found):,} features")
        return found[0] if found else None


class BitFile:
    """A packed store, mapped into memory; open it with `open_store`.

    All content is validated, since a file with matching checksums may still be malicious.
    """

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path, self._content = path, content
        footer = self._read_footer()
        self.samples, self.n_features, self.n_patterns, n_name_bytes, self._section_sums = footer
        self._places, self.n_words = place_sections(footer), count_words(len(self.samples))
        self._words = self._map("words", "<u8").reshape(self.n_patterns, self.n_words)
        self._sums = self._read("sums", "<u8").reshape(-1, 2)
        self._is_checked = np.zeros(len(self._sums), dtype=np.bool_)
        parts = (self._read("numbers", "<u4"), self._read("offsets", "<i8"))
        self.copies = Copies(*parts, self._read("members", "<u4"))
        if not self.copies.is_whole():
            self._reject("its features and patterns are inconsistent")
        names, ends = self._read("names", np.uint8), self._read("name_ends", "<i8")
        has_names = n_name_bytes is not None
        self.names = FeatureNames(names, ends, self._reject) if has_names else None

    def _read_footer(self) -> Footer:
        if len(self._content) < len(HEADER) + TRAILER.size:
            self._reject("it is too short")
        if self._content[: len(HEADER)] != HEADER:
            self._reject("its header is wrong")
        offset, length, checksum, magic = TRAILER.unpack(self._content[-TRAILER.size :])
        if magic != MAGIC or offset + length + TRAILER.size != len(self._content):
            self._reject("its end is missing")
        text = self._content[offset : offset + length]
        if zlib.crc32(text) != checksum:
            self._reject("its footer has changed")
        try:
            footer = parse_footer(text, offset)
        except ValueError:
            self._reject("its footer is invalid")
        if footer is None:
            what = f"{self.path} does not have schema {SCHEMA}, the one that this version reads"
            raise IcscmError(f"{what}; pack the table again")
        return footer

    def _map(self, name: str, dtype: Any) -> Array:
        place, size = self._places[name], np.dtype(dtype).itemsize
        return np.frombuffer(self._content, dtype, len(place) // size, place.start)

    def _read(self, name: str, dtype: Any) -> Array:
        found = self._map(name, dtype)
        self._check(found, self._section_sums[name], f"its {name} have")
        return found

    def _check(self, found: Array, expected: Any, what: str) -> None:
        sums = np.zeros(2, dtype=np.uint64)
        add_to_sums(found, sums)
        if sums.tolist() != expected:
            self._reject(f"{what} changed")

    def read_words(self, patterns: slice) -> Array:
        """The words of some patterns, verified; all reading goes through this function."""
        for block in range(patterns.start // BLOCK_PATTERNS, -(-patterns.stop // BLOCK_PATTERNS)):
            if not self._is_checked[block]:
                whole = self._words[block * BLOCK_PATTERNS : (block + 1) * BLOCK_PATTERNS]
                self._check(whole, self._sums[block].tolist(), "its words have")
                first, n_bits = divmod(len(self.samples), WORD_BITS)
                shifts = np.array([n_bits, 0][: self.n_words - first], dtype=WORD_DTYPE)
                if (whole[:, first:] >> shifts).any():
                    self._reject("its words have more bits than samples")
                self._is_checked[block] = True
        return self._words[patterns]

    def read_feature(self, feature: int) -> Array:
        """The words of one feature, verified."""
        number = int(self.copies.numbers[feature])
        return np.asarray(self.read_words(slice(number, number + 1))[0])

    def release(self, patterns: slice) -> None:
        """Release the memory of some patterns; they are read again when needed."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        width = self.n_words * 8
        start = -(-(ALIGNMENT + patterns.start * width) // mmap.PAGESIZE) * mmap.PAGESIZE
        stop = (ALIGNMENT + patterns.stop * width) // mmap.PAGESIZE * mmap.PAGESIZE
        if stop > start:
            self._content.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def _reject(self, why: str) -> NoReturn:
        what = f"{self.path} is not a packed store, or is damaged: {why}"
        raise IcscmError(f"{what}; pack the table again")


def open_store(path: str | Path) -> BitFile:
    """Map a packed store; the words are verified when they are read, everything else now.

    Parameters
    ----------
    path : str or Path
        A file written by `pack_table` or `pack_matrix`.

    Returns
    -------
    BitFile
        Its words, samples and names of features.

    Raises
    ------
    IcscmError
        If it cannot be read, or is not a packed store.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file cannot be mapped
        raise IcscmError(f"{path} is not a packed store, or is damaged: it is empty") from None
    except OSError as error:
        raise IcscmError(f"cannot read {path}: {error.strerror}") from None
    return BitFile(path, content)
