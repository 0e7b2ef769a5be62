"""Fisher's exact test, two-sided, for many 2 x K tables at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icscm._types import CountArray
from icscm.stats import _kernels


def compute_exact_p_values(tables: CountArray) -> NDArray[np.float64]:
    """Chance of a table as improbable as the one observed, given its margins.

    NaN for three or more environments where more than `MAX_EXACT_TABLES` tables may share them.
    """
    p_values = np.empty(len(tables), dtype=np.float64)
    _kernels.compute_exact(np.ascontiguousarray(tables), p_values)
    return p_values
