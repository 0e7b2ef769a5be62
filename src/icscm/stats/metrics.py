"""Numbers that reports and studies share: the ranking of labels, environments that stand out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icscm._types import CountArray, FloatArray


def compute_auc(counts: CountArray, scores: FloatArray) -> float | None:
    """Chance that a positive sample has the higher score than a negative one; ties count half.

    `counts` (score, label) may be weights. None where a label is absent.

    >>> compute_auc(np.array([[3, 1], [1, 3]]), np.array([0.2, 0.8]))
    0.75
    """
    negative, positive = counts.sum(axis=0).astype(float)
    if not negative or not positive:
        return None
    above = (scores[:, np.newaxis] > scores) + (scores[:, np.newaxis] == scores) / 2
    return float((counts[:, 1] / positive) @ above @ (counts[:, 0] / negative))


def find_extreme_environments(values: Sequence[float | None]) -> tuple[int, int] | None:
    """Positions of the lowest and the highest value, the first of equals; None without any.

    >>> find_extreme_environments([0.3, None, 0.1, 0.3])
    (2, 0)
    """
    known = [(value, k) for k, value in enumerate(values) if value is not None]
    if not known:
        return None
    return min(known)[1], max(known, key=lambda each: each[0])[1]
