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
from dataclasses import dataclass
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
# The first bytes of every store.
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


def round_up(n: int, multiple: int) -> int:
    """Return the next multiple from n on."""
    return -(-n // multiple) * multiple


def count_words(n_samples: int) -> int:
    """Count the words of a pattern: an even number, since two are counted at a time."""
    return 2 * -(-n_samples // (2 * WORD_BITS))


def add_to_sums(content: Any, sums: Array) -> None:
    """Add some bytes into checksums; only the last ones may end within a word."""
    raw = np.frombuffer(content, np.uint8)
    n_whole_bytes = len(raw) // 8 * 8
    rest = raw[n_whole_bytes:]
    _kernels.sum_words(raw[:n_whole_bytes].view("<u8"), sums)
    _kernels.sum_words(np.pad(rest, (0, -len(rest) % 8)).view("<u8"), sums)


def unpack(words: Array, n_samples: int) -> BoolArray:
    """Return the bit of each sample."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return bits[:n_samples].astype(np.bool_)


def check_samples(samples: Sequence[str]) -> None:
    """Raise unless there are samples with distinct names."""
    if len(samples) == 0:
        raise IcscmError("there is no sample to pack")
    name, n_times = Counter(samples).most_common(1)[0]
    if n_times > 1:
        raise IcscmError(f"{name!r} names more than one sample; names must differ")


@dataclass(frozen=True)
class Footer:
    """What a store's footer says, from which the position of every section follows.

    Attributes
    ----------
    samples : list of str
        The names of the samples.
    n_features, n_patterns : int
        The sizes of the table.
    n_name_bytes : int, optional
        How long all names of features are together; None where features have no names.
    sums : dict of str to list of int
        The checksums of all sections but the words, which have a section of their own for them.
    """

    samples: list[str]
    n_features: int
    n_patterns: int
    n_name_bytes: int | None
    sums: Mapping[str, list[int]]


def place_sections(footer: Footer) -> dict[str, range]:
    """Return the bytes of each section, and where the footer begins."""
    n_names = 0 if footer.n_name_bytes is None else footer.n_features
    n_blocks = -(-footer.n_patterns // BLOCK_PATTERNS)
    lengths = {
        "words": 8 * footer.n_patterns * count_words(len(footer.samples)),
        "sums": 16 * n_blocks,
        "numbers": 4 * footer.n_features,
        "offsets": 8 * (footer.n_patterns + 1),
        "members": 4 * footer.n_features,
        "name_ends": 8 * n_names,
        "names": footer.n_name_bytes or 0,
        "footer": 0,
    }
    places = {}
    start = ALIGNMENT
    for name, length in lengths.items():
        places[name] = range(start, start + length)
        start += length if name == "words" else round_up(length, ALIGNMENT)
    return places


def format_footer(footer: Footer) -> bytes:
    """Format a footer as JSON, always in the same bytes."""
    places = place_sections(footer)
    del places["footer"]
    sections: dict[str, dict[str, Any]] = {
        name: {"offset": place.start, "length": len(place)} for name, place in places.items()
    }
    for name, sums in footer.sums.items():
        sections[name]["sums"] = sums
    content = {
        "schema": SCHEMA,
        "n_features": footer.n_features,
        "n_patterns": footer.n_patterns,
        "n_words": count_words(len(footer.samples)),
        "samples": footer.samples,
        "sections": sections,
    }
    return json.dumps(content, ensure_ascii=False).encode()


def parse_footer(text: bytes, offset: int) -> Footer | None:
    """Parse the footer at this offset; None if it has another schema, ValueError if it is damaged.

    It may hold anything, also values that were crafted to do harm. So these are checked before
    anything is computed from them, and then the text must be what would be written for them.
    """
    try:
        content = json.loads(text)
        if content["schema"] != SCHEMA:
            return None
        sections = content["sections"]
        has_names = bool(sections["name_ends"]["length"])
        footer = Footer(
            samples=content["samples"],
            n_features=content["n_features"],
            n_patterns=content["n_patterns"],
            n_name_bytes=sections["names"]["length"] if has_names else None,
            sums={name: part["sums"] for name, part in sections.items() if name != "words"},
        )
        if _is_sound(footer, offset) and format_footer(footer) == text:
            return footer
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        pass
    raise ValueError


def _is_sound(footer: Footer, offset: int) -> bool:
    """Return whether the values have the right types, and sizes that can be those of a store."""
    if type(footer.samples) is not list or {*map(type, footer.samples)} != {str}:
        return False
    check_samples(footer.samples)
    # True and False are numbers to isinstance
    if type(footer.n_features) is not int or type(footer.n_patterns) is not int:
        return False
    if not 1 <= footer.n_patterns <= footer.n_features <= MAX_FEATURES:
        return False
    if footer.n_name_bytes is not None:
        if type(footer.n_name_bytes) is not int:
            return False
        if not 0 <= footer.n_name_bytes <= offset:
            return False
    return place_sections(footer)["footer"].start == offset


class FeatureNames(Sequence[str]):
    """Names of features, read on demand; `reject` is called for damaged ones."""

    def __init__(self, names: Array, ends: Array, reject: Callable[[str], NoReturn]) -> None:
        self._names = names
        self._ends = ends
        self._reject = reject
        is_ascending = bool((ends[1:] >= ends[:-1]).all())
        if ends[0] < 0 or ends[-1] != len(names) or not is_ascending:
            reject("its names are inconsistent")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, feature: Any) -> Any:
        start = self._ends[feature - 1] if feature else 0
        encoded = self._names[start : self._ends[feature]].tobytes()
        try:
            return encoded.decode()
        except UnicodeDecodeError:
            self._reject(f"the name of feature {feature:,} is not UTF-8")

    def find(self, name: str) -> int | None:
        """Find the number of the feature with this name; None if there is none."""
        encoded = np.frombuffer(name.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        features: list[int] = []
        for first in range(0, len(self), _SEARCHED):
            features += self._find_in_part(encoded, first)
        if len(features) > 1:
            self._reject(f"{name!r} names {len(features):,} features")
        return features[0] if features else None

    def _find_in_part(self, encoded: Array, first: int) -> list[int]:
        """Find the features of an encoded name among `_SEARCHED` ones from the first on."""
        ends = self._ends[first : first + _SEARCHED]
        start_of_first = self._ends[first - 1] if first else 0
        starts = np.append(start_of_first, ends[:-1])

        candidates = np.flatnonzero(ends - starts == len(encoded))
        for letter in reversed(
            range(len(encoded))
        ):  # names differ more often in their last letters
            letters = self._names[starts[candidates] + letter]
            candidates = candidates[letters == encoded[letter]]
        matches: list[int] = (first + candidates).tolist()
        return matches


class BitFile:
    """A packed store, mapped into memory; open it with `open_store`.

    All content is validated, since a file with matching checksums may still be malicious.
    """

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path = path
        self._content = content

        footer = self._read_footer()
        self.samples = footer.samples
        self.n_features = footer.n_features
        self.n_patterns = footer.n_patterns
        self.n_words = count_words(len(footer.samples))
        self._section_sums = footer.sums
        self._places = place_sections(footer)

        self._words = self._map("words", "<u8").reshape(self.n_patterns, self.n_words)
        self._sums_of_blocks = self._read("sums", "<u8").reshape(-1, 2)
        self._is_block_checked = np.zeros(len(self._sums_of_blocks), dtype=np.bool_)
        self.copies = Copies(
            numbers=self._read("numbers", "<u4"),
            offsets=self._read("offsets", "<i8"),
            members=self._read("members", "<u4"),
        )
        if not self.copies.is_whole():
            self._reject("its features and patterns are inconsistent")

        names = self._read("names", np.uint8)
        name_ends = self._read("name_ends", "<i8")
        self.names = None
        if footer.n_name_bytes is not None:
            self.names = FeatureNames(names, name_ends, self._reject)

    def _read_footer(self) -> Footer:
        """Read the sizes of the table; reject the store if its ends are damaged."""
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
            raise IcscmError(
                f"{self.path} does not have schema {SCHEMA}, the one that this version reads; "
                "pack the table again"
            )
        return footer

    def _map(self, name: str, dtype: Any) -> Array:
        """Map a section as an array, which is not read yet."""
        place = self._places[name]
        n_values = len(place) // np.dtype(dtype).itemsize
        return np.frombuffer(self._content, dtype, n_values, place.start)

    def _read(self, name: str, dtype: Any) -> Array:
        """Read a section and verify it."""
        section = self._map(name, dtype)
        self._check_sums(section, self._section_sums[name], what=f"its {name} have")
        return section

    def _check_sums(self, content: Array, expected: Any, *, what: str) -> None:
        """Reject the store if some content does not have the checksums that it should have."""
        sums = np.zeros(2, dtype=np.uint64)
        add_to_sums(content, sums)
        if sums.tolist() != expected:
            self._reject(f"{what} changed")

    def read_words(self, patterns: slice) -> Array:
        """Return the words of some patterns, verified; all reading goes through this function."""
        first_block = patterns.start // BLOCK_PATTERNS
        end_of_blocks = -(-patterns.stop // BLOCK_PATTERNS)
        for block in range(first_block, end_of_blocks):
            if not self._is_block_checked[block]:
                self._check_block(block)
                self._is_block_checked[block] = True
        return self._words[patterns]

    def _check_block(self, block: int) -> None:
        """Reject the store if words of a block have changed, or have more bits than samples."""
        words = self._words[block * BLOCK_PATTERNS : (block + 1) * BLOCK_PATTERNS]
        self._check_sums(words, self._sums_of_blocks[block].tolist(), what="its words have")

        # The samples end within this word; if it is not the last one, the last must be empty.
        n_full_words, n_bits = divmod(len(self.samples), WORD_BITS)
        last_words = words[:, n_full_words:]
        used_bits = np.array([n_bits, 0], dtype=WORD_DTYPE)[: self.n_words - n_full_words]
        if (last_words >> used_bits).any():
            self._reject("its words have more bits than samples")

    def read_feature(self, feature: int) -> Array:
        """Return the words of one feature, verified."""
        number = int(self.copies.numbers[feature])
        return np.asarray(self.read_words(slice(number, number + 1))[0])

    def release(self, patterns: slice) -> None:
        """Release the memory of some patterns; they are read again when needed."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        pattern_bytes = self.n_words * 8
        # Only whole pages can be released: those that hold no other pattern.
        start = round_up(ALIGNMENT + patterns.start * pattern_bytes, mmap.PAGESIZE)
        stop = (ALIGNMENT + patterns.stop * pattern_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if stop > start:
            self._content.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def _reject(self, why: str) -> NoReturn:
        """Raise for a store that cannot be used."""
        raise IcscmError(
            f"{self.path} is not a packed store, or is damaged: {why}; pack the table again"
        )


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
