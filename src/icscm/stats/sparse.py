"""Pearson's statistic added up over many small tables, by its exact mean and variance.

Given their margins, tables of label against environment are drawn without replacement, and the
first two moments of the statistic are known however small the counts (Haldane 1940, Dawson 1954).
A chi-squared variable of the same two, scaled, stands for their sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

from icscm._types import CountArray, FloatArray
from icscm.stats.independence import ChiSquaredTest

# Below this a table says next to nothing, and its variance is not defined.
_LEAST = 4


class PearsonSum(NamedTuple):
    """The statistic, its mean and its variance if label and environment are independent."""

    statistic: float
    mean: float
    variance: float

    @property
    def p_value(self) -> float:
        """Probability of a sum at least as large; 1 where no table can tell."""
        if self.variance <= 0:
            return 1.0
        shape = self.mean**2 / self.variance
        return float(gammaincc(shape, self.statistic * self.mean / self.variance))


def sum_pearson(tables: CountArray) -> PearsonSum:
    """Add up over tables (label, environment); those of one label or environment carry nothing."""
    statistics, dof = ChiSquaredTest(yates=False).compute_statistics(tables)
    sizes = tables.sum(axis=(1, 2))
    can_tell = (dof > 0) & (sizes >= _LEAST)
    n = sizes[can_tell].astype(np.float64)
    rows, columns = (tables[can_tell].sum(axis=axis) for axis in (2, 1))
    (v_rows, w_rows), (v_columns, w_columns) = _measure_margin(rows, n), _measure_margin(columns, n)
    mean = n * dof[can_tell] / (n - 1)
    variance = 2 * n / (n - 3) * (v_rows - w_rows) * (v_columns - w_columns)
    variance += n**2 / (n - 1) * w_rows * w_columns
    return PearsonSum(*(float(each.sum()) for each in (statistics[can_tell], mean, variance)))


def _measure_margin(counts: CountArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a margin adds to the variance: by its number of classes, and by how uneven they are."""
    n_classes = np.count_nonzero(counts, axis=1)
    uneven = np.where(counts > 0, n[:, np.newaxis] / np.maximum(counts, 1), 0.0).sum(axis=1)
    return (n_classes - 1) * (n - n_classes) / (n - 1), (uneven - n_classes**2) / (n - 2)
