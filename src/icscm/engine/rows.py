"""Rows in an order that makes counting simple: sorted by label, then environment.

row          0    1    2    3    4         one segment per (label, environment):
label        1    0    1    0    0         | 0,a | 0,b | 1,a | 1,b |
environment  b    a    a    b    a           1 4    3     2     0     <- rows
                                     bounds 0     2     3     4     5
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icscm._constants import ROW_DTYPE
from icscm._types import Array, BoolArray, IntArray
from icscm.engine import _kernels


@dataclass(frozen=True)
class Rows:
    """Some sorted rows: segment s holds `index[bounds[s]:bounds[s + 1]]`.

    `index` is None when every row is meant; positions and rows are then the same.
    """

    index: NDArray[np.uint32] | None
    bounds: IntArray

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def take(self, values: Array) -> Array:
        """The values of these rows."""
        # half the time of values[self.index]
        return values if self.index is None else values.take(self.index)

    def cut(self, size: int) -> Iterator[Rows]:
        """These rows, at most so many at a time."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            stop = min(len(self), start + size)
            every = np.arange(start, stop, dtype=ROW_DTYPE)
            index = every if self.index is None else self.index[start:stop]
            yield Rows(index, self.bounds.clip(start, stop) - start)

    def split(self, settled: BoolArray) -> tuple[Rows, Rows]:
        """Those that stay and those that leave, given which of these rows are settled."""
        n_settled = int(np.count_nonzero(settled))
        stay = np.empty(len(self) - n_settled + 1, dtype=ROW_DTYPE)
        left, bounds = np.empty(n_settled + 1, dtype=ROW_DTYPE), np.empty_like(self.bounds)
        _kernels.split_rows(self.index, self.bounds, settled, stay, left, bounds)
        return Rows(stay[:-1], self.bounds - bounds), Rows(left[:-1], bounds)


def sort_rows(
    labels: Array, environments: Array, n_environments: int
) -> tuple[NDArray[np.uint32], Rows]:
    """Where each row goes when sorted by (label, environment), and the rows so sorted."""
    position = np.empty(len(labels), dtype=ROW_DTYPE)
    bounds = np.zeros(2 * n_environments + 1, dtype=np.int64)
    _kernels.sort_cells(labels, environments, n_environments, position, bounds)
    return position, Rows(None, bounds)
