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
    hashes = mix_in_sets(hashes, table.places.numbers)
    if groups is not None:
        hashes = mix_in_sets(hashes, groups)
    return np.argsort(hashes, kind="stable")


def hash_rows(table: ScreenedTable, values: Array, weights: FloatArray | None) -> Hashes:
    """Hash the bins, the rank of the outcome and the weight of each row."""
    salts = make_salt(table.n_columns + 2)
    column_salts = salts[:-2]
    outcome_salt, weight_salt = salts[-2:]

    hashes = np.zeros(table.n_rows, dtype=np.uint64)  # `hash_column` adds to it in place
    for bins, column_salt in zip(table.columns.bins, column_salts, strict=True):
        _kernels.hash_column(bins.astype(np.float64), column_salt, hashes)
    ranks = np.unique(values, return_inverse=True)[1]
    _kernels.hash_column(ranks.astype(np.float64), outcome_salt, hashes)
    if weights is not None:
        _kernels.hash_column(weights, weight_salt, hashes)
    return hashes


def mix_in_sets(hashes: Hashes, set_of_row: IntArray) -> Hashes:
    """Mix the hash of each row with the hash of its set: of its environment, or of its group.

    `set_of_row` has the number of each row's set. The hash of a set is the sum of its rows' hashes,
    so that neither its number nor the order of its rows matters:

        hash of a set = scramble(sum of scramble(hash of a row))
        new hash of a row = scramble(hash of the row + hash of its set)
    """
    # The hash of a row is a sum over its values. A sum of such sums would not tell which row has
    # which value, and sums of sets and rows could cancel. So each is scrambled before it is added,
    # and the result, a sum as well, before it is used.
    n_sets = int(set_of_row.max(initial=0)) + 1
    sums = np.zeros(n_sets, dtype=np.uint64)
    np.add.at(sums, set_of_row, scramble(hashes))
    set_hashes = scramble(sums)
    return scramble(hashes + set_hashes[set_of_row])


def scramble(hashes: Hashes) -> Hashes:
    """Spread the differences of hashes over all of their bits.

    Mixing spreads a difference to higher bits only, and then folds these back onto the lower ones.
    Done twice, every bit depends on all bits before.
    """
    return np.asarray(_kernels.mix(_kernels.mix(hashes)))


def number_by_appearance(codes: IntArray) -> IntArray:
    """Number what has the same code in the order in which the codes appear.

    >>> number_by_appearance(np.array([7, 3, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    import pandas  # slow to import

    return np.asarray(pandas.factorize(codes)[0], dtype=np.int64)
