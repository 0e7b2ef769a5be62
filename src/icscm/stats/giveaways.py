"""Columns that determine the environment: there is nothing to compare their effect with.

A column *determines the environment* if, knowing its value, one knows the environment. A value is
a bin of the column; missing values are one, too. There are three ways:

    - it is constant within every environment but not over all of them (the hospital's region);
    - it varies in one environment only, of three or more (a test that one hospital does);
    - each of its bins of `MIN_ROWS` rows or more lies in one environment, by 99 % of its rows, not
      all in the same, and these bins hold most rows.

The first two are required to be no chance: in environments of few rows, columns are often constant.

All is computed from counts by (column, bin, environment), so that learners and the screen find the
same columns wherever the rows are.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from icscm._types import BoolArray, CountArray, FloatArray, IntArray

# Why such a column is rejected, in every learner and table.
DETERMINES: Final = "determines the environment"

# Smaller bins say nothing about where they lie.
MIN_ROWS: Final = 5
# The share of a bin's rows in one environment from which on the bin lies there.
MIN_SHARE: Final = 0.99
# The share of all rows that bins of enough rows must hold to speak for the column.
MIN_SHARE_OF_ROWS: Final = 0.5
# Columns that would be constant in as many environments by chance are fewer than this share.
MAX_CHANCE: Final = 0.001
# Cramer's V from which on a column nearly determines the environment.
NEARLY: Final = 0.9


@dataclass(frozen=True, eq=False)
class Giveaways:
    """Which columns give the environment away.

    `is_determining` and `is_nearly`, its Cramer's V with the environment being above .9, are by
    column, and never both true.
    """

    is_determining: BoolArray
    is_nearly: BoolArray


def find_giveaways(counts: CountArray) -> Giveaways:
    """Find the columns that give the environment away, from counts (column, bin, environment).

    >>> region = [[50, 50, 0], [0, 0, 50]]
    >>> sex = [[20, 30, 25], [30, 20, 25]]
    >>> find_giveaways(np.array([region, sex])).is_determining.tolist()
    [True, False]
    """
    is_determining = determine_environment(counts)
    is_nearly = compute_cramers_v(counts) > NEARLY
    return Giveaways(is_determining=is_determining, is_nearly=is_nearly & ~is_determining)


def put_columns_last(counts: CountArray) -> CountArray:
    """Return counts (column, bin, environment) as (bin, environment, column).

    There may be a million columns of two bins: sums over bins and environments are many times as
    fast if neighbours in memory are neighbouring columns.
    """
    return np.ascontiguousarray(counts.transpose(1, 2, 0))


def determine_environment(counts: CountArray) -> BoolArray:
    """Return which columns determine the environment, from counts (column, bin, environment)."""
    by_bin = put_columns_last(counts)
    is_filled = by_bin > 0  # (bin, environment, column)
    n_bins_of_environment = is_filled.sum(axis=0, dtype=np.int16)  # (environment, column)
    n_environments = (n_bins_of_environment > 0).sum(axis=0)
    n_bins_in_use = is_filled.any(axis=1).sum(axis=0)
    is_comparable = (n_environments >= 2) & (n_bins_in_use >= 2)

    # It is constant within all environments, or within all but one of three or more.
    n_varying = (n_bins_of_environment > 1).sum(axis=0)
    is_rarely_varying = (n_varying == 0) | ((n_varying == 1) & (n_environments > 2))
    is_candidate = is_comparable & is_rarely_varying
    is_constant = np.zeros(len(counts), dtype=np.bool_)
    is_constant[is_candidate] = compute_chance_of_constancy(counts[is_candidate]) < MAX_CHANCE
    return np.asarray(is_constant | (is_comparable & have_bins_at_home(by_bin)))


def compute_chance_of_constancy(counts: CountArray) -> FloatArray:
    """Compute how often columns would be constant where they are, if environments did not matter.

    With the share p_b of each bin in all rows, the n rows of an environment all fall in one bin
    with probability  sum over b of p_b^n.  These are multiplied over the environments in which the
    column is constant; counts are (column, bin, environment).
    """
    is_constant = (counts > 0).sum(axis=1) == 1  # (column, environment)
    n_rows = counts.sum(axis=1)
    totals = counts.sum(axis=2)
    shares = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1)
    chances = (shares[:, :, np.newaxis] ** n_rows[:, np.newaxis, :]).sum(axis=1)
    return np.asarray(np.where(is_constant, chances, 1.0).prod(axis=1))


def have_bins_at_home(by_bin: CountArray) -> BoolArray:
    """Return whether all bins of enough rows lie in one environment each, not all in the same.

    Counts are (bin, environment, column).
    """
    n_rows = by_bin.sum(axis=1)  # (bin, column)
    is_large = n_rows >= MIN_ROWS
    is_lone = is_large & (by_bin.max(axis=1) >= MIN_SHARE * n_rows)
    have_home = np.zeros(by_bin.shape[2], dtype=np.bool_)
    candidates = np.flatnonzero((is_large == is_lone).all(axis=0) & is_large.any(axis=0))
    if len(candidates) == 0:
        return have_home

    is_lone = is_lone[:, candidates]
    n_rows = n_rows[:, candidates]
    homes = by_bin[:, :, candidates].argmax(axis=1)
    n_environments = by_bin.shape[1]
    first_home = np.where(is_lone, homes, n_environments).min(axis=0)
    last_home = np.where(is_lone, homes, -1).max(axis=0)
    n_rows_of_large = np.where(is_lone, n_rows, 0).sum(axis=0)
    is_mostly_large = n_rows_of_large >= MIN_SHARE_OF_ROWS * n_rows.sum(axis=0)
    have_home[candidates] = (first_home < last_home) & is_mostly_large
    return have_home


def find_lone_bins(counts: CountArray) -> BoolArray:
    """Return which bins of enough rows lie in one environment; counts are (..., environment)."""
    n_rows = counts.sum(axis=-1)
    return np.asarray((n_rows >= MIN_ROWS) & (counts.max(axis=-1) >= MIN_SHARE * n_rows))


def compute_cramers_v(counts: CountArray) -> FloatArray:
    """Return Cramer's V of environment and bin, of each column (column, bin, environment).

    With n_be rows in bin b and environment e, n_b and n_e in all, and k the smaller of the numbers
    of bins and of environments in use,

        phi^2 = sum over b, e of n_be^2 / (n_b n_e) - 1          V = sqrt(phi^2 / (k - 1))

    It is 1 for a function, and 0 where there is nothing to compare.
    """
    n_be = put_columns_last(counts).astype(np.float64)
    n_b = n_be.sum(axis=1)  # (bin, column)
    n_e = n_be.sum(axis=0)  # (environment, column)
    n_be *= n_be
    n_be /= np.maximum(n_e, 1.0)
    sums = (n_be.sum(axis=1) / np.maximum(n_b, 1.0)).sum(axis=0)

    k: IntArray = np.minimum((n_b > 0).sum(axis=0), (n_e > 0).sum(axis=0))
    v = np.sqrt(np.maximum(sums - 1.0, 0.0) / np.maximum(k - 1, 1))
    return np.asarray(np.where(k < 2, 0.0, v))
