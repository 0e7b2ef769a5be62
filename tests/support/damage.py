"""Ways to damage files: at random, where it matters, and crafted so that the checksums are right.

All take and give bytes, and a `random.Random`, so that a seed repeats what it did.
"""

from __future__ import annotations

import json
import zlib
from random import Random
from typing import Any

import numpy as np

from icscm.engine import _kernels
from icscm.sources.bits.store import ALIGNMENT, BLOCK_PATTERNS, MAGIC, TRAILER

# What a number, a text or a list of a document may become.
ODD_VALUES = (
    None, True, False, 0, 1, -1, 2, 63, 64, 2**31, 2**32, 2**53, 2**63, 2**64, 10**30, -(2**63),
    0.5, 1.0, 1e300, float("inf"), float("nan"), "", "0", "\ud800", "x" * 300, [], [[]], [0], {},
    {"offset": 0}, [None, 1],
)  # fmt: skip


# --- any file -----------------------------------------------------------------------------------


def flip_bits(content: bytes, rng: Random, n: int = 1, start: int = 0, stop: int = -1) -> bytes:
    """Invert `n` bits of the bytes from `start` to `stop`, by default the end."""
    changed = bytearray(content)
    stop = len(content) if stop < 0 else stop
    for _ in range(n):
        changed[rng.randrange(start, stop)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut_off(content: bytes, rng: Random) -> bytes:
    """The beginning of a file."""
    return content[: rng.randrange(len(content))]


def damage(content: bytes, rng: Random) -> bytes:
    """What disks and networks do: bits flip, ends go missing, pieces are zero, lost or doubled."""
    start = rng.randrange(len(content))
    stop = min(len(content), start + rng.choice([1, 8, 64, 512, 4096]))
    piece = content[start:stop]
    kind = rng.choice(["flip", "cut", "zero", "lose", "double", "noise", "append"])
    if kind == "flip":
        return flip_bits(content, rng, rng.choice([1, 1, 2, 10]))
    if kind == "cut":
        return cut_off(content, rng)
    if kind == "append":
        return content + rng.randbytes(rng.choice([1, 32, 100]))
    noise = rng.randbytes(len(piece))
    replacements = {"zero": bytes(len(piece)), "lose": b"", "double": piece * 2, "noise": noise}
    return content[:start] + replacements[kind] + content[stop:]


# --- JSON ---------------------------------------------------------------------------------------


def mutate_json(document: Any, rng: Random) -> Any:
    """A document with one value changed, swapped with its neighbour, lost, added or repeated."""
    whole = {"document": json.loads(json.dumps(document))}
    holder = whole
    key = "document"
    # level by level, so that long lists do not get all of the changes
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.9:
        holder = holder[key]
        key = _choose_key(holder, rng)
    kind = rng.choice(["odd", "odd", "near", "near", "swap", "lose", "add"])
    if kind == "near" and type(holder[key]) is int:
        holder[key] += rng.choice([-64, -16, -8, -2, -1, 1, 2, 8, 16, 64])
    elif kind == "near" and isinstance(holder[key], str):
        holder[key] = rng.choice([holder[key] + "x", holder[key][:-1], holder[key].upper()])
    elif kind == "swap":
        other = _choose_key(holder, rng)
        holder[key], holder[other] = holder[other], holder[key]
    elif kind == "lose":
        del holder[key]
    elif kind == "add" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif kind == "add":
        holder["more"] = holder[key]
    else:
        holder[key] = rng.choice(ODD_VALUES)
    return whole.get("document")


def _choose_key(holder: Any, rng: Random) -> Any:
    """A key of an object, or a position of a list."""
    return rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))


# --- packed stores (.bits) ----------------------------------------------------------------------


def read_footer(content: bytes) -> dict[str, Any]:
    """The footer of a store."""
    offset, length, *_ = TRAILER.unpack(content[-TRAILER.size :])
    footer: dict[str, Any] = json.loads(content[offset : offset + length])
    return footer


def replace_footer(content: bytes, footer: Any) -> bytes:
    """The store with another footer, whose checksum is right; bytes are taken as they are."""
    offset, *_ = TRAILER.unpack(content[-TRAILER.size :])
    text = footer
    if not isinstance(footer, bytes):
        text = json.dumps(footer, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return content[:offset] + text + TRAILER.pack(offset, len(text), zlib.crc32(text), MAGIC)


def mutate_footer(content: bytes, rng: Random) -> bytes:
    """The store with one to three changes in its footer, whose checksum is right."""
    footer = read_footer(content)
    if rng.random() < 0.05:
        text = json.dumps(footer).encode()
        return replace_footer(content, damage(text, rng))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        footer = mutate_json(footer, rng)
    return replace_footer(content, footer)


def read_section(content: bytes, name: str) -> bytes:
    """The bytes of a section."""
    section = read_footer(content)["sections"][name]
    return content[section["offset"] : section["offset"] + section["length"]]


def replace_section(content: bytes, name: str, raw: bytes) -> bytes:
    """The store with other bytes in a section, no more and no fewer; all checksums are right."""
    footer = read_footer(content)
    section = footer["sections"][name]
    assert len(raw) == section["length"]
    start = section["offset"]
    content = content[:start] + raw + content[start + len(raw) :]
    if name != "words":
        section["sums"] = compute_sums(raw)
        return replace_footer(content, footer)
    block_bytes = BLOCK_PATTERNS * footer["n_words"] * 8
    starts_of_blocks = range(0, len(raw), block_bytes)
    sums = [compute_sums(raw[begin : begin + block_bytes]) for begin in starts_of_blocks]
    return replace_section(content, "sums", np.array(sums, dtype="<u8").tobytes())


def compute_sums(raw: bytes) -> list[int]:
    """The two checksums of a section or a block."""
    padded = raw + bytes(-len(raw) % 8)
    sums = np.zeros(2, dtype=np.uint64)
    _kernels.sum_words(np.frombuffer(padded, dtype="<u8"), sums)
    return sums.tolist()


def mutate_section(content: bytes, rng: Random) -> bytes:
    """The store with some values of a section changed, all checksums right."""
    sections = read_footer(content)["sections"]
    name = rng.choice([name for name, section in sections.items() if section["length"]])
    raw = bytearray(read_section(content, name))
    width = {"numbers": 4, "members": 4, "names": 1}.get(name, 8)
    positions = range(len(raw) // width)
    for _ in range(rng.choice([1, 1, 2, 5])):
        start = rng.choice(positions) * width
        start_of_other = rng.choice(positions) * width
        place = slice(start, start + width)
        other_place = slice(start_of_other, start_of_other + width)
        kind = rng.choice(["swap", "copy", "odd", "flip", "near"])
        if kind == "swap":
            raw[place], raw[other_place] = raw[other_place], raw[place]
        elif kind == "copy":
            raw[place] = raw[other_place]
        elif kind == "odd":
            raw[place] = rng.choice([bytes(width), b"\xff" * width, b"\x80" * width])
        elif kind == "flip":
            raw[start + rng.randrange(width)] ^= 1 << rng.randrange(8)
        else:
            number = int.from_bytes(raw[place], "little") + rng.choice([-1, 1])
            raw[place] = (number % 256**width).to_bytes(width, "little")
    return replace_section(content, name, bytes(raw))


def flip_word(content: bytes, rng: Random) -> bytes:
    """The store with one bit of its words inverted, as a disk might: a checksum is wrong."""
    stop = ALIGNMENT + read_footer(content)["sections"]["words"]["length"]
    return flip_bits(content, rng, 1, ALIGNMENT, stop)


def is_other_table(content: bytes, crafted: bytes) -> bool:
    """Whether a crafted store is one that packing another table would have written.

    Other words, names of features or samples, all checksums right: nobody can tell.
    """
    for name in ("words", "names", "name_ends"):
        if read_section(content, name) != read_section(crafted, name):
            return True
    footer = read_footer(content)
    crafted_footer = read_footer(crafted)
    samples = footer["samples"]
    has_other_samples = crafted_footer["samples"] != samples
    return has_other_samples and footer == crafted_footer | {"samples": samples}
