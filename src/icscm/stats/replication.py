"""In how many environments a leaf lies: what lies in a single one has nothing to be compared with.

The effective number of environments is (sum n_e)^2 / sum n_e^2: K where K hold equally many, near
1 where one holds nearly all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icscm._types import BoolArray, CountArray, FloatArray


def count_effective(n: NDArray[np.int64]) -> FloatArray:
    """Effective number of environments of samples by environment (..., K); 1 where none are.

    >>> count_effective(np.array([[50, 50], [116, 6]])).round(2).tolist()
    [2.0, 1.1]
    """
    exact = n.astype(np.uint64)  # squares of up to 2**32 samples
    total, squares = exact.sum(axis=-1), (exact * exact).sum(axis=-1)
    effective: FloatArray = (total * total) / np.maximum(squares, 1)
    return np.maximum(effective, 1.0)


def find_replicated(tables: CountArray, in_play: CountArray, least: float) -> BoolArray:
    """Which leaves (n, label, K) lie in enough environments, next to the samples in play.

    Their effective number of environments less 1 must be at least the share `least` of the same
    for the samples in play.
    """
    others = count_effective(tables.sum(axis=1)) - 1.0
    replicated: BoolArray = others >= least * (count_effective(in_play.sum(axis=0)) - 1.0)
    return replicated
