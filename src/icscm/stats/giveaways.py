"""Columns that determine the environment: there is nothing to compare their effect with.

A column *determines the environment* if, knowing its value, one knows the environment. A value is
a bin of the column; missing values are one, too. There are three ways:

    1. It is constant within each environment, but not over all (the hospital's region).
    2. It varies within one environment only, of three or more (a test that one hospital does).
    3. Each of its large bins lies in one environment, not all of them in the same, and these bins
       hold most rows (a laboratory's code for the same finding).

The first two are required to be no chance: in environments of few rows, columns are often constant.
For the third, a bin is *large* if it has `MIN_ROWS` rows or more, and *lies in* an environment that
has 99 % of its rows. A large bin that lies in one is *lone*.

All is computed from counts by (column, bin, environment), so that learners and the screen find the
same columns wherever the rows are. All arrays here have their axes in this order.
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
# Constancy that has a smaller probability than this, if environments did not matter, is no chance.
MAX_CHANCE: Final = 0.001
# Cramer's V from which on a column nearly determines the environment.
NEARLY: Final = 0.9


@dataclass(frozen=True, eq=False)
class Giveaways:
    """Which columns give the environment away.

    Both are by column, and never both true. A column is nearly determining if its Cramer's V with
    the environment is above .9.
    """

    is_determining: BoolArray
    is_nearly_determining: BoolArray


def find_giveaways(counts: CountArray) -> Giveaways:
    """Find the columns that give the environment away.

    >>> region = [[50, 50, 0], [0, 0, 50]]
    >>> sex = [[20, 30, 25], [30, 20, 25]]
    >>> find_giveaways(np.array([region, sex])).is_determining.tolist()
    [True, False]
    """
    is_determining = find_determining(counts)
    is_associated = compute_cramers_v(counts) > NEARLY
    return Giveaways(
        is_determining=is_determining, is_nearly_determining=is_associated & ~is_determining
    )


def find_determining(counts: CountArray) -> BoolArray:
    """Return which columns determine the environment, in any of the three ways."""
    fast_counts = store_by_column_last(counts)
    is_filled = fast_counts > 0
    n_varying = count_varying_environments(is_filled)

    is_constant_within_each = are_constant_within_each(is_filled, n_varying)
    is_candidate = is_constant_within_each | are_varying_within_one(is_filled, n_varying)
    is_no_chance = np.zeros(len(counts), dtype=np.bool_)
    is_no_chance[is_candidate] = compute_chance_of_constancy(counts[is_candidate]) < MAX_CHANCE
    return is_no_chance | have_bins_apart(fast_counts)


def store_by_column_last(counts: CountArray) -> CountArray:
    """Return the same counts, stored such that neighbours in memory are neighbouring columns.

    There may be a million columns of two bins: sums over bins and environments are many times as
    fast in this order of storage. The axes are as before.
    """
    columns_last = np.ascontiguousarray(counts.transpose(1, 2, 0))
    return columns_last.transpose(2, 0, 1)


# --- constant within environments -----------------------------------------------------------------


def are_constant_within_each(is_filled: BoolArray, n_varying: IntArray) -> BoolArray:
    """Return which columns are constant within each environment, but not over all (the first way).

    `is_filled` says which bins have rows, by (column, bin, environment), and `n_varying` within how
    many environments each column varies.
    """
    n_bins = is_filled.any(axis=2).sum(axis=1)
    return np.asarray((n_varying == 0) & (n_bins >= 2))


def are_varying_within_one(is_filled: BoolArray, n_varying: IntArray) -> BoolArray:
    """Return which columns vary within one environment only, of three or more (the second way)."""
    n_environments = is_filled.any(axis=1).sum(axis=1)
    return np.asarray((n_varying == 1) & (n_environments >= 3))


def count_varying_environments(is_filled: BoolArray) -> IntArray:
    """Count the environments within which each column varies: there it has rows in two bins."""
    n_bins_of_environment = is_filled.sum(axis=1, dtype=np.int16)  # (column, environment)
    return np.asarray((n_bins_of_environment >= 2).sum(axis=1))


def compute_chance_of_constancy(counts: CountArray) -> FloatArray:
    """Compute the probability of each column's constancy, if environments did not matter.

    With the share p_b of each bin in all rows, the n rows of an environment all fall in one bin
    with probability  sum over b of p_b^n.  These are multiplied over the environments within which
    the column is constant.
    """
    is_constant_within = (counts > 0).sum(axis=1) == 1  # (column, environment)
    n_rows_of_environment = counts.sum(axis=1)
    n_rows_of_bin = counts.sum(axis=2)
    n_rows = n_rows_of_bin.sum(axis=1, keepdims=True)

    shares = n_rows_of_bin / np.maximum(n_rows, 1)
    powers = shares[:, :, np.newaxis] ** n_rows_of_environment[:, np.newaxis, :]
    chances = powers.sum(axis=1)  # (column, environment)
    return np.asarray(np.where(is_constant_within, chances, 1.0).prod(axis=1))


# --- bins that lie in one environment -------------------------------------------------------------


def have_bins_apart(counts: CountArray) -> BoolArray:
    """Return which columns have their large bins apart, in different environments (the third way).

    Each large bin lies in one environment, not all in the same, and large bins hold most rows.
    """
    n_rows = counts.sum(axis=2)  # (column, bin)
    is_large = n_rows >= MIN_ROWS
    is_lone = find_lone_bins(counts)
    is_every_large_bin_lone = (is_lone | ~is_large).all(axis=1)

    # Few columns get here, so that the rest is computed of these only.
    candidates = np.flatnonzero(is_every_large_bin_lone)
    lies_in = find_environments_of_bins(counts[candidates])
    n_environments_of_bins = lies_in.any(axis=1).sum(axis=1)

    n_rows_of_large = np.where(is_large, n_rows, 0)[candidates].sum(axis=1)
    hold_most_rows = n_rows_of_large >= MIN_SHARE_OF_ROWS * n_rows[candidates].sum(axis=1)

    are_apart = np.zeros(len(counts), dtype=np.bool_)
    are_apart[candidates] = (n_environments_of_bins >= 2) & hold_most_rows
    return are_apart


def find_lone_bins(counts: CountArray) -> BoolArray:
    """Return which bins are large and lie in one environment; counts are (..., environment)."""
    return np.asarray(find_environments_of_bins(counts).any(axis=-1))


def find_environments_of_bins(counts: CountArray) -> BoolArray:
    """Return whether each bin is large and lies in each environment: (..., bin, environment).

    It lies in one of them at most.
    """
    n_rows = counts.sum(axis=-1, keepdims=True)
    return np.asarray((n_rows >= MIN_ROWS) & (counts >= MIN_SHARE * n_rows))


# --- association with the environment -------------------------------------------------------------


def compute_cramers_v(counts: CountArray) -> FloatArray:
    """Return Cramer's V of environment and bin, of each column.

    With n_be rows in bin b and environment e, n_b and n_e in all, and k the smaller of the numbers
    of bins and of environments in use,

        phi^2 = sum over b, e of n_be^2 / (n_b n_e) - 1          V = sqrt(phi^2 / (k - 1))

    It is 1 for a function, and 0 where there is nothing to compare.
    """
    n_be = store_by_column_last(counts)
    n_b = n_be.sum(axis=2)  # (column, bin)
    n_e = n_be.sum(axis=1)  # (column, environment)

    terms = np.square(n_be, dtype=np.float64)
    terms /= np.maximum(n_e, 1.0)[:, np.newaxis, :]
    sums = (terms.sum(axis=2) / np.maximum(n_b, 1.0)).sum(axis=1)
    phi_squared = np.maximum(sums - 1.0, 0.0)

    k: IntArray = np.minimum((n_b > 0).sum(axis=1), (n_e > 0).sum(axis=1))
    v = np.sqrt(phi_squared / np.maximum(k - 1, 1))
    return np.asarray(np.where(k < 2, 0.0, v))
