"""The order in which a screen takes the rows of a table: by their content.

Rows are dealt to folds at random, and sums of floating-point numbers differ in the last digit with
the order of what is added. So that neither depends on how a table happens to be sorted, its rows
are first sorted by a hash of all that a screen knows of them:

    hash of a row = h(bins of its columns, rank of its outcome, weight; its environment; its group)

Bins and ranks do not depend on the units of columns and outcome.
The names of environments and groups are no content: an environment is known by the hashes of its
rows, and a group as well. Rows of equal hashes are equal in everything, and it does not matter
which comes first. The order of the columns does matter: they have hashes of their own.
"""

import numpy as np

from icscm._types import Array, FloatArray, Hashes, IntArray
from icscm.engine import _kernels
from icscm.engine.sampling import make_salt
from icscm.screening.screened_table import ScreenedTable


def sort_by_content(
    table: ScreenedTable, values: Array, *, weights: FloatArray | None, groups: IntArray | None
) -> IntArray:
    """Return the rows of a table in an order that depends on their content only.

    `values` are the outcomes, `weights` relative weights, and `groups` the number of each row's
    group, if rows belong together.
    """
    hashes = hash_rows(table, values, weights)
    hashes = add_members(hashes, table.places.numbers)
    if groups is not None:
        hashes = add_members(hashes, groups)
    return np.argsort(hashes, kind="stable")


def hash_rows(table: ScreenedTable, values: Array, weights: FloatArray | None) -> Hashes:
    """Hash the bins, the rank of the outcome and the weight of each row."""
    salt_of_columns = make_salt(table.n_columns + 2)
    *salts, salt_of_values, salt_of_weights = salt_of_columns
    hashes = np.zeros(table.n_rows, dtype=np.uint64)
    for bins, salt in zip(table.columns.bins, salts, strict=True):
        _kernels.hash_column(bins.astype(np.float64), salt, hashes)
    ranks = np.unique(values, return_inverse=True)[1]
    _kernels.hash_column(ranks.astype(np.float64), salt_of_values, hashes)
    if weights is not None:
        _kernels.hash_column(weights, salt_of_weights, hashes)
    return hashes


def add_members(hashes: Hashes, numbers: IntArray) -> Hashes:
    """Hash rows with all that are in the same set, whose number `numbers` has for each row.

    A set is known by the sum of its rows' hashes, whatever its number and their order.
    """
    sums = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.uint64)
    np.add.at(sums, numbers, scramble(hashes))
    return scramble(hashes + scramble(sums)[numbers])


def scramble(hashes: Hashes) -> Hashes:
    """Spread the differences of hashes over all of their bits, so that sums hide none."""
    return np.asarray(_kernels.mix(_kernels.mix(hashes)))


def number_by_appearance(codes: IntArray) -> IntArray:
    """Number what has the same code in the order in which the codes appear.

    >>> number_by_appearance(np.array([7, 3, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    import pandas  # slow to import

    return np.asarray(pandas.factorize(codes)[0], dtype=np.int64)
