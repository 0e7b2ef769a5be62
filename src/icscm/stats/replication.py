"""In how many environments a leaf lies: what lies in a single one has nothing to be compared with.

The effective number of environments is (sum n_e)^2 / sum n_e^2: K where K hold equally many, near
1 where one holds nearly all. Exact for up to 2**32 samples.
"""

from __future__ import annotations

import numpy as np

from icscm._types import BoolArray, CountArray, FloatArray
from icscm.stats import _kernels


def count_effective(tables: CountArray) -> FloatArray:
    """Effective number of environments of each leaf (n, label, K); 1 where it is empty.

    >>> count_effective(np.array([[[30, 40], [20, 10]], [[50, 2], [66, 4]]])).round(2).tolist()
    [2.0, 1.1]
    """
    effective = np.empty(len(tables))
    _kernels.measure_spread(np.ascontiguousarray(tables), effective)
    return effective


def find_replicated(tables: CountArray, in_play: CountArray, least: float) -> BoolArray:
    """Which leaves (n, label, K) lie in enough environments, next to the samples in play.

    Their effective number of environments less 1 must be at least the share `least` of the same
    for the samples in play.
    """
    replicated: BoolArray = count_effective(tables) - 1.0 >= find_least_spread(in_play, least)
    return replicated


def find_least_spread(in_play: CountArray, least: float) -> float:
    """What a leaf's effective number of environments less 1 must reach."""
    return float(least * (count_effective(in_play[np.newaxis])[0] - 1.0))
