"""Joint counts of whole features: samples by the levels of several features at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, CountArray, IntArray
from icscm.engine.binning import choose_edges

# NumPy allows few more dimensions than a joint table of so many features has.
_MAX_MERGED = 20


@dataclass(eq=False)
class LevelCounts:
    """Counts the tables of sets of features; sets that begin alike share the work for that.

    `cells` numbers the label and environment of each row, label first; `codes[j]` holds its
    level of feature j, one of `n_levels[j]`; `weights` how many samples it stands for.
    """

    codes: Sequence[Array]
    n_levels: IntArray
    cells: Array
    n_environments: int
    weights: Array | None = None

    def __post_init__(self) -> None:
        self._features: list[int] = []
        # keys[i] numbers each row's label, environment and levels of the first i features
        self._keys = [self.cells]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.codes)

    def count(self, features: Sequence[int]) -> CountArray:
        """The table (label and environment, level of the first feature, of the second, ...)."""
        n_shared = count_shared(self._features, features)
        del self._features[n_shared:], self._keys[n_shared + 1 :]
        for feature in features[n_shared:]:
            n_levels = np.int32(self.n_levels[feature])
            self._keys.append(self._keys[-1] * n_levels + self.codes[feature])
            self._features.append(feature)
        shape = self._list_shape(features)
        counts = np.bincount(self._keys[-1], self.weights, minlength=math.prod(shape))
        # weights make floats, exact up to 2**53
        return counts.astype(COUNT_DTYPE, copy=False).reshape(shape)

    def merge_equal(self) -> LevelCounts:
        """One row for each cell of the joint table, if that has fewer cells than there are rows."""
        shape = self._list_shape(range(self.n_features))
        if self.n_features > _MAX_MERGED or math.prod(shape) > len(self.cells):
            return self
        joint = np.bincount(np.ravel_multi_index((self.cells, *self.codes), shape))
        occupied = np.flatnonzero(joint)
        cells, *found = np.unravel_index(occupied, shape)
        codes = [each.astype(old.dtype) for each, old in zip(found, self.codes, strict=True)]
        cells = cells.astype(np.int32)
        return LevelCounts(codes, self.n_levels, cells, self.n_environments, joint[occupied])

    def _list_shape(self, features: Iterable[int]) -> tuple[int, ...]:
        return (2 * self.n_environments, *(int(self.n_levels[j]) for j in features))


def make_level_counts(
    table: Array, labels: IntArray, environments: IntArray, n_environments: int, max_levels: int
) -> LevelCounts:
    """Replace values by levels: one for each value if these are few, else cut at quantiles."""
    codes, n_levels = [], []
    for column in table.T:
        edges, _ = choose_edges(np.sort(column), max_levels - 1)
        codes.append(np.searchsorted(edges, column).astype(np.min_scalar_type(len(edges))))
        n_levels.append(len(edges) + 1)
    cells = (labels * n_environments + environments).astype(np.int32)
    return LevelCounts(codes, np.array(n_levels, dtype=np.int64), cells, n_environments)


def count_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the beginning that both have in common.

    >>> count_shared((0, 1, 2), (0, 1, 5, 7))
    2
    """
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
