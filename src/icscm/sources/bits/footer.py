"""What a packed store says of itself at its end: sizes, samples, where the sections are, checksums.

Sizes and samples fix where everything is, so a footer is believed only if it is, byte for byte,
what would be written for its own sizes and samples; nothing in it can disagree with the rest.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icscm._constants import WORD_BITS
from icscm.exceptions import IcscmError

ALIGNMENT = 64
SCHEMA = 1
# Patterns that share a checksum: verified as they are first read.
BLOCK_PATTERNS = 2**14
# Features and patterns are numbered in 32 bits.
MAX_FEATURES = 2**32 - 1
# Footer's place, length and checksum, then what tells that this is a trailer.
TRAILER = struct.Struct("<QQQ8s")
MAGIC = b"icscmbit"


def count_words(n_samples: int) -> int:
    """Words of a pattern: an even number, since two are counted at a time."""
    return 2 * -(-n_samples // (2 * WORD_BITS))


def check_samples(samples: Sequence[str]) -> None:
    """Raise unless there are samples, each with a name of its own."""
    if len(samples) == 0:
        raise IcscmError("there is no sample to pack")
    name, n_times = Counter(samples).most_common(1)[0]
    if n_times > 1:
        raise IcscmError(f"{name!r} names more than one sample; names must differ")


@dataclass(frozen=True)
class Footer:
    """All that is to be known of a store; where the sections are follows.

    `n_name_bytes` is None where the features have no names; `sums` are the checksums of all
    sections but the words, which have a section of them.
    """

    samples: list[str]
    n_features: int
    n_patterns: int
    n_name_bytes: int | None
    sums: Mapping[str, list[int]]

    @property
    def n_words(self) -> int:
        return count_words(len(self.samples))

    def place_sections(self) -> dict[str, range]:
        """The bytes of each section, and where the footer begins."""
        n_names = 0 if self.n_name_bytes is None else self.n_features
        lengths = {
            "words": 8 * self.n_patterns * self.n_words,
            "sums": 16 * -(-self.n_patterns // BLOCK_PATTERNS),
            "numbers": 4 * self.n_features,
            "offsets": 8 * (self.n_patterns + 1),
            "members": 4 * self.n_features,
            "name_ends": 8 * n_names,
            "names": self.n_name_bytes or 0,
            "footer": 0,
        }
        places, start = {}, ALIGNMENT
        for name, length in lengths.items():
            places[name] = range(start, start + length)
            start += length if name == "words" else -(-length // ALIGNMENT) * ALIGNMENT
        return places

    def format(self) -> bytes:
        """The footer's text."""
        sections = {
            name: {"offset": place.start, "length": len(place)}
            | ({"sums": self.sums[name]} if name in self.sums else {})
            for name, place in self.place_sections().items()
            if name != "footer"
        }
        content = {
            "schema": SCHEMA,
            "n_features": self.n_features,
            "n_patterns": self.n_patterns,
            "n_words": self.n_words,
            "samples": self.samples,
            "sections": sections,
        }
        return json.dumps(content, ensure_ascii=False).encode()


class OtherSchemaError(Exception):
    """A footer that another version wrote."""


def parse_footer(text: bytes, offset: int) -> Footer:
    """The footer in a text that begins there; raise ValueError if it was not written so."""
    try:
        told = json.loads(text)
        if told["schema"] != SCHEMA:
            raise OtherSchemaError
        sections = told["sections"]
        sums = {name: each["sums"] for name, each in sections.items() if name != "words"}
        n_bytes = sections["names"]["length"] if sections["name_ends"]["length"] else None
        sizes = told["n_features"], told["n_patterns"], n_bytes
        footer = Footer(told["samples"], *sizes, sums)
        _check_values(footer, offset)
        if footer.place_sections()["footer"].start != offset or footer.format() != text:
            raise ValueError
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise ValueError from None
    return footer


def _check_values(footer: Footer, n_bytes: int) -> None:
    """Raise unless sizes are whole numbers that can be, and samples texts that differ."""
    sizes = footer.n_features, footer.n_patterns, footer.n_name_bytes or 0
    if any(type(size) is not int for size in sizes) or type(footer.samples) is not list:
        raise TypeError
    if not 1 <= footer.n_patterns <= footer.n_features <= MAX_FEATURES:
        raise ValueError
    if not 0 <= sizes[2] <= n_bytes:
        raise ValueError
    if any(type(name) is not str for name in footer.samples):
        raise TypeError
    check_samples(footer.samples)
