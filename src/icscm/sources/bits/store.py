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
from icscm.engine.threads import divide_up
from icscm.exceptions import IcscmError

# Sections begin at multiples of so many bytes, the size of a cache line.
ALIGNMENT = 64
# The version of the format.
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
# Names searched at a time: few enough that their positions stay in the cache.
_SEARCHED = 2**16
_WORD_BYTES = WORD_BITS // 8


def round_up(n: int, multiple: int) -> int:
    """Return the next multiple from n on."""
    return divide_up(n, multiple) * multiple


def count_words(n_samples: int) -> int:
    """Count the words of a pattern: an even number, since two are counted at a time."""
    return 2 * divide_up(n_samples, 2 * WORD_BITS)


def add_to_sums(content: Any, sums: Array) -> None:
    """Add some bytes into the two checksums of a section, a word at a time.

    A section may come in parts; only the last one may end within a word, which zeros then fill.
    """
    raw = np.frombuffer(content, np.uint8)
    n_bytes_in_words = len(raw) // _WORD_BYTES * _WORD_BYTES
    words = raw[:n_bytes_in_words].view("<u8")
    _kernels.sum_words(words, sums)

    rest = raw[n_bytes_in_words:]
    n_zeros = -len(rest) % _WORD_BYTES
    last_word = np.pad(rest, (0, n_zeros)).view("<u8")
    _kernels.sum_words(last_word, sums)


def unpack(words: Array, n_samples: int) -> BoolArray:
    """Return the bit of each sample, from the words of a pattern."""
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
    """What a store's footer says: sizes, from which the place of every section follows, and sums.

    Attributes
    ----------
    samples : list of str
        The names of the samples.
    n_features : int
        The number of columns.
    n_patterns : int
        The number of columns that differ from each other.
    n_name_bytes : int, optional
        How long all names of columns are together; None where columns have no names.
    sums : dict of str to list of int
        The two checksums of each section but the words, whose checksums are a section themselves.
    """

    samples: list[str]
    n_features: int
    n_patterns: int
    n_name_bytes: int | None
    sums: Mapping[str, list[int]]


def place_sections(footer: Footer) -> dict[str, range]:
    """Return the range of bytes of each section; that of the footer is empty, at its beginning."""
    n_names = 0 if footer.n_name_bytes is None else footer.n_features
    n_blocks = divide_up(footer.n_patterns, BLOCK_PATTERNS)
    bytes_of_pattern = _WORD_BYTES * count_words(len(footer.samples))
    lengths = {
        "words": bytes_of_pattern * footer.n_patterns,
        "sums": 2 * 8 * n_blocks,  # two checksums of 64 bits
        "numbers": 4 * footer.n_features,
        "offsets": 8 * (footer.n_patterns + 1),
        "members": 4 * footer.n_features,
        "name_ends": 8 * n_names,
        "names": footer.n_name_bytes or 0,
        "footer": 0,
    }
    places = {}
    start = len(HEADER)
    for name, length in lengths.items():
        places[name] = range(start, start + length)
        padded_length = length if name == "words" else round_up(length, ALIGNMENT)
        start += padded_length
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

    It may hold anything, also values that were crafted to do harm: names of samples that are
    numbers, or sizes for which there is no memory. So these are checked before anything is computed
    from them, and then the text must be what would be written for them.
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

    # compared by type, since True and False are numbers to isinstance
    if type(footer.n_features) is not int or type(footer.n_patterns) is not int:
        return False
    if not 1 <= footer.n_patterns <= footer.n_features <= MAX_FEATURES:
        return False

    has_names = footer.n_name_bytes is not None
    if has_names and type(footer.n_name_bytes) is not int:
        return False
    if footer.n_name_bytes is not None and not 0 <= footer.n_name_bytes <= offset:
        return False
    return place_sections(footer)["footer"].start == offset


class FeatureNames(Sequence[str]):
    """The names of the columns of a store, of which there may be millions, read on demand.

        names    blaTEMmecA     bytes of UTF-8, one name after the other
        ends     6 10           where each name ends

    `reject` is called for damaged ones, with the reason.
    """

    def __init__(self, names: Array, ends: Array, reject: Callable[[str], NoReturn]) -> None:
        self._names = names
        self._ends = ends
        self._reject = reject
        is_ascending = bool((ends[1:] >= ends[:-1]).all())
        if ends[0] < 0 or ends[-1] != len(names) or not is_ascending:
            reject("its names are inconsistent")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, column: Any) -> Any:
        start = self._find_start(column)
        encoded_name = self._names[start : self._ends[column]].tobytes()
        try:
            return encoded_name.decode()
        except UnicodeDecodeError:
            self._reject(f"the name of feature {column:,} is not UTF-8")

    def find(self, name: str) -> int | None:
        """Find the number of the column with this name; None if there is none."""
        encoded_name = np.frombuffer(name.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        columns: list[int] = []
        for first in range(0, len(self), _SEARCHED):
            columns += self._find_in_part(encoded_name, first)
        if len(columns) > 1:
            self._reject(f"{name!r} names {len(columns):,} features")
        return columns[0] if columns else None

    def _find_in_part(self, encoded_name: Array, first: int) -> list[int]:
        """Find the columns of this name among `_SEARCHED` columns from the first one on.

        Those whose names have its length are compared with it byte by byte, all at once.
        """
        ends = self._ends[first : first + _SEARCHED]
        starts = np.append(self._find_start(first), ends[:-1])

        candidates = np.flatnonzero(ends - starts == len(encoded_name))
        # backwards, since names differ more often in their last letters
        for place in reversed(range(len(encoded_name))):
            letters = self._names[starts[candidates] + place]
            candidates = candidates[letters == encoded_name[place]]
        columns: list[int] = (first + candidates).tolist()
        return columns

    def _find_start(self, column: int) -> Any:
        """Find where the name of a column begins: where that of the column before it ends."""
        return self._ends[column - 1] if column else 0


class BitFile:
    """A packed store, mapped into memory; open it with `open_store`.

    All content is validated, since a file with matching checksums may still be malicious: words,
    which may be many gigabytes, when a block of patterns is first read, and all else at once.
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
        """Return the words (pattern, word) of some patterns, verified.

        All reading of words goes through this function, so that none is used unverified.
        """
        first_block = patterns.start // BLOCK_PATTERNS
        end_of_blocks = divide_up(patterns.stop, BLOCK_PATTERNS)
        for block in range(first_block, end_of_blocks):
            if not self._is_block_checked[block]:
                self._check_block(block)
                self._is_block_checked[block] = True
        return self._words[patterns]

    def _check_block(self, block: int) -> None:
        """Reject the store if words of a block have changed, or have more bits than samples."""
        words = self._words[block * BLOCK_PATTERNS : (block + 1) * BLOCK_PATTERNS]
        self._check_sums(words, self._sums_of_blocks[block].tolist(), what="its words have")

        # After the words that samples fill comes one that they fill in part, or not at all, and
        # maybe an empty one, since words are even in number.
        n_full_words, n_bits_of_next = divmod(len(self.samples), WORD_BITS)
        n_last_words = self.n_words - n_full_words
        n_used_bits = np.array([n_bits_of_next, 0], dtype=WORD_DTYPE)[:n_last_words]
        unused_bits = words[:, n_full_words:] >> n_used_bits
        if unused_bits.any():
            self._reject("its words have more bits than samples")

    def read_feature(self, feature: int) -> Array:
        """Return the words of one column, verified."""
        pattern = int(self.copies.numbers[feature])
        return np.asarray(self.read_words(slice(pattern, pattern + 1))[0])

    def release(self, patterns: slice) -> None:
        """Release the memory of some patterns; they are read again when needed."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        pattern_bytes = self.n_words * _WORD_BYTES
        first_byte = len(HEADER) + patterns.start * pattern_bytes
        end_byte = len(HEADER) + patterns.stop * pattern_bytes

        # Only whole pages can be released: those that hold no other pattern.
        start = round_up(first_byte, mmap.PAGESIZE)
        stop = end_byte // mmap.PAGESIZE * mmap.PAGESIZE
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
        Its words, samples and names of columns.

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
