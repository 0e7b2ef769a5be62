"""Which environments break a leaf: those without which it would be taken for invariant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icscm._types import CountArray, FloatArray
from icscm.stats.criteria import Criterion

# Environments tried at each removal: those that stand out most.
_N_TRIED = 16


def find_outlier_environments(
    table: CountArray, criterion: Criterion, most: int | None = None
) -> list[int] | None:
    """The environments to leave out of a leaf (label, environment) for it to pass, the first first.

    One is left out after the other, each time that without which label and environment depend least
    on each other. None where as many would have to go as stay: then no environment is the odd one.
    Nor is it where more than `most` would have to go.
    """
    seen = np.flatnonzero(table.sum(axis=0))
    breaking: list[int] = []
    while len(seen) > 1:
        if criterion.find_accepted(table[np.newaxis][..., seen])[0]:
            return breaking
        odd = _find_odd(table[:, seen])
        breaking.append(int(seen[odd]))
        seen = np.delete(seen, odd)
        if len(breaking) >= len(seen) or (most is not None and len(breaking) > most):
            return None
    return None


def _find_odd(table: CountArray) -> int:
    """The environment without which Pearson's statistic is smallest."""
    standing_out = np.argsort(-_compute_parts(table), kind="stable")[:_N_TRIED]
    without = [_compute_parts(np.delete(table, each, axis=1)).sum() for each in standing_out]
    return int(standing_out[np.argmin(without)])


def _compute_parts(table: CountArray) -> FloatArray:
    """What each environment adds to Pearson's statistic."""
    n: NDArray[np.float64] = table.sum(axis=0).astype(np.float64)
    rate = table[1].sum() / n.sum()
    parts: FloatArray = (table[1] - n * rate) ** 2 / (n * max(rate * (1 - rate), 1e-300))
    return parts
