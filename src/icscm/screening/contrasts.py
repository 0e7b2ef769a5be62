"""The effect of a column in words: by how much the score differs between two sides of a cut.

A worth has no unit that a person knows. So each column is shown with the *cut* that divides its
contribution best, such as `age > 63`, and the *contrast* of the two sides: the mean contribution
where the rule is true, less the mean where it is false. Times the worth in an environment that is
the effect of the rule there, all other columns held fixed: a log odds ratio, or for numbers a
difference of means in units of the outcome's standard deviation.
"""

from dataclasses import dataclass

import numpy as np

from icscm._types import FloatArray
from icscm.engine.counts import MISSINGNESS, Cut
from icscm.screening.screened_table import ScreenedTable


@dataclass(frozen=True)
class Contrast:
    """The cut of a column, the contrast of its sides, and the output that they are about."""

    cut: Cut
    difference: float
    output: int


@dataclass(frozen=True, eq=False)
class BinMeans:
    """The number of rows and the mean contribution of each bin of a column."""

    n_rows: FloatArray
    means: FloatArray

    def contrast(self, is_true: FloatArray) -> tuple[float, float]:
        """Return the contrast of some bins with all others, and the variance that it explains."""
        n_true = float((self.n_rows * is_true).sum())
        n_false = float(self.n_rows.sum()) - n_true
        if n_true == 0 or n_false == 0:
            return 0.0, 0.0
        sums = self.n_rows * self.means
        difference = float((sums * is_true).sum()) / n_true
        difference -= float((sums * (1.0 - is_true)).sum()) / n_false
        return difference, difference**2 * n_true * n_false


def find_contrast(table: ScreenedTable, column: int, contributions: FloatArray) -> Contrast:
    """Find the cut that divides the contribution (row, output) of a column best."""
    output = int(contributions.var(axis=0).argmax())
    bins = table.columns.bins[column]
    n_bins = int(table.columns.n_bins[column])
    n_rows = np.bincount(bins, minlength=n_bins).astype(np.float64)
    sums = np.bincount(bins, contributions[:, output], n_bins)
    bin_means = BinMeans(n_rows=n_rows, means=sums / np.maximum(n_rows, 1.0))

    best: Contrast | None = None
    largest = -1.0
    for cut, is_true in list_cuts(table, column):
        difference, explained = bin_means.contrast(is_true)
        if explained > largest:
            largest = explained
            best = Contrast(cut=cut, difference=difference, output=output)
    assert best is not None
    return best


def list_cuts(table: ScreenedTable, column: int) -> list[tuple[Cut, FloatArray]]:
    """List the cuts of a column, each with 1 for the bins where its rule is true and else 0.

    Missing values, in bin 0, are on the false side of every rule but `is missing`.
    """
    n_bins = int(table.columns.n_bins[column])
    first = int(table.has_missing[column])
    numbers = np.arange(n_bins)
    cuts: list[tuple[Cut, FloatArray]] = []
    if first:
        is_missing = Cut(column, MISSINGNESS, negated=False, missing=True)
        cuts.append((is_missing, (numbers == 0).astype(np.float64)))
    if table.columns.is_nominal[column]:
        levels = range(n_bins - first)
        if len(levels) == 2 and not first:  # of no and yes, the rule is about yes
            levels = range(1, 2)
        for level in levels:
            is_true = (numbers == first + level).astype(np.float64)
            cuts.append((Cut(column, level, negated=False), is_true))
        return cuts
    for threshold in range(n_bins - first - 1):
        is_true = (numbers > first + threshold).astype(np.float64)
        cuts.append((Cut(column, threshold, negated=False), is_true))
    return cuts
