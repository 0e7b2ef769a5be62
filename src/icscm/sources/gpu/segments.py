"""The layout of bits on a card, and the codes and ranks of candidates that kernels share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from icscm._types import Array, IntArray
from icscm.engine.counts import ScreenQuery

# Bits of a chunk, which a lane reads at once, and of a tile, which a warp holds: see `kernels.cu`.
CHUNK_BITS = 128
TILE_BITS = 128 * CHUNK_BITS

# What became of a candidate, as the kernels number it.
CODES = ("none", "allowed", "dependent", "small", "unreplicated", "unhelpful", "open")
NONE, ALLOWED, DEPENDENT, _, _, _, OPEN = range(len(CODES))
REJECTED = range(DEPENDENT, OPEN)
TESTS = ("none", "pearson", "yates", "g")


class Segments(NamedTuple):
    """Samples in play: a bit each, and where segments begin; all but the numbers on the card.

    `bounds` are the bits at which segments begin, and the end of the last; `tiles` the first
    segment of each tile; `in_play` the samples of each segment. Only columns of bits need the
    first three.
    """

    in_play: Any
    n_environments: int
    n_by_label: tuple[int, int]
    mask: Any = None
    bounds: Any = None
    tiles: Any = None


class DeviceQuery(NamedTuple):
    """A question with its critical values on the card, and the labels as it sees them.

    `logarithms` are x log x of the first whole numbers.
    """

    question: ScreenQuery
    lower: Any
    upper: Any
    logarithms: Any
    n_negative: int
    n_positive: int


class Key(NamedTuple):
    """A candidate's rank: the largest utility first, then margin, then by `order` as ties go.

    `order` is twice the column, plus one for the rule that covers the ones.
    """

    utility: int
    margin: int
    order: int


FIRST = Key(2**63 - 1, 2**63 - 1, -1)


def count_chunks(n_samples: int) -> int:
    """Chunks of a column."""
    return max(1, -(-n_samples // CHUNK_BITS))


def find_tiles(bounds: IntArray, n_samples: int) -> Array:
    """The first segment of each tile; those that begin at the very end are in none."""
    end = count_chunks(n_samples) * CHUNK_BITS
    starts = np.minimum(np.arange(-(-end // TILE_BITS) + 1) * TILE_BITS, end)
    return np.searchsorted(bounds[:-1], starts).astype(np.int32)


def compute_keys(totals: Any, query: DeviceQuery, sign: int) -> tuple[Any, Any]:
    """Utility and margin of one of the two rules on each column."""
    a, b = totals[:, 0].astype(np.int64), totals[:, 1].astype(np.int64)
    if sign == 0:
        a, b = query.n_negative - a, query.n_positive - b
    return query.question.den * a - query.question.num * b, a - b
