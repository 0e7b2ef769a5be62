"""Patterns: rows by the truth of several rules.

    row    rule 1   rule 2          pattern          rows
    0      true     false           false  false     0
    1      true     true      -->   true   false     2
    2      true     false           true   true      1

The patterns that occur are numbered in ascending order, false before true. A hundred rules have no
more patterns than there are rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icscm._constants import COUNT_DTYPE
from icscm._types import Array, BoolArray, IntArray
from icscm.engine.counts import PatternTable

# Patterns that could occur are numbered anew before they pass this, so that counting stays cheap.
_MAX_POSSIBLE_PATTERNS = 2**16


@dataclass(frozen=True, eq=False)
class RowPatterns:
    """The patterns (pattern, rule) that occur among some rows, and the number of each row's."""

    patterns: BoolArray
    numbers: IntArray


def find_patterns(truths: Sequence[BoolArray], n_rows: int) -> RowPatterns:
    """Find the patterns of some rows, given for each rule of which rows it is true.

    The truths of a row are the digits of a binary number. It would soon be too long, so after a few
    rules the numbers that occur are replaced by 0, 1, 2, ..., in the same order.
    """
    numbers = np.zeros(n_rows, dtype=np.int64)
    # Without any rule there is one pattern, that of no truths.
    found = RowPatterns(patterns=np.zeros((1, 0), dtype=np.bool_), numbers=numbers)
    n_new_rules = 0
    for is_true in truths:
        # Append the truth of this rule to the number of each row, as its last binary digit.
        numbers <<= 1
        numbers |= is_true
        n_new_rules += 1

        n_possible_patterns = len(found.patterns) * 2**n_new_rules
        if n_possible_patterns > _MAX_POSSIBLE_PATTERNS:
            found = _renumber(numbers, found.patterns, n_new_rules)
            numbers = found.numbers
            n_new_rules = 0
    return _renumber(numbers, found.patterns, n_new_rules)


def _renumber(numbers: IntArray, patterns: BoolArray, n_new_rules: int) -> RowPatterns:
    """Find which patterns occur, and number the rows by these.

    `numbers` has a number for each row. It is the number of one of the `patterns` (pattern, rule)
    of earlier rules, followed by a binary digit for each new rule. So it counts the patterns that
    are possible: each of the earlier ones with each ending. With two patterns and one new rule (F
    false, T true):

        patterns      possible patterns      rows have             occurs    new number
        0  F T        0  F T F               1 2 2 1               no
        1  T T        1  F T T                                     yes       0
                      2  T T F               renumbered            yes       1
                      3  T T T               0 1 1 0               no
    """
    endings = _list_combinations(n_new_rules)
    beginnings_of_possible = np.repeat(patterns, len(endings), axis=0)
    endings_of_possible = np.tile(endings, (len(patterns), 1))
    possible = np.column_stack((beginnings_of_possible, endings_of_possible))

    occurs = np.bincount(numbers, minlength=len(possible)) > 0
    new_numbers = np.cumsum(occurs) - 1
    return RowPatterns(patterns=possible[occurs], numbers=new_numbers[numbers])


def _list_combinations(n_rules: int) -> BoolArray:
    """List all combinations (combination, rule) of truths: of two rules FF, FT, TF and TT.

    Combination i has the binary digits of i: the last rule is true if i contains 1, the one before
    if i contains 2, then 4, and so on.
    """
    combinations = np.arange(2**n_rules)
    digit_values = 2 ** np.arange(n_rules)[::-1]
    return np.asarray(combinations[:, np.newaxis] & digit_values != 0)


def count_patterns(truths: Sequence[BoolArray], cells: Array, n_environments: int) -> PatternTable:
    """Count rows by pattern, outcome and environment.

    `truths` say of each rule for which rows it is true. A row's outcome and environment come as
    the number of its cell, outcome * n_environments + environment. With 3 environments:

        environment     0   1   2
        outcome 0       0   1   2
        outcome 1       3   4   5

    The counts of all cells of pattern 0 come first, then those of pattern 1, and so on: in the
    order of an array (pattern, outcome, environment).
    """
    found = find_patterns(truths, len(cells))
    n_patterns = len(found.patterns)
    n_cells = 2 * n_environments

    place_of_row = found.numbers * n_cells + cells
    n_rows_by_place = np.bincount(place_of_row, minlength=n_patterns * n_cells)
    counts = n_rows_by_place.astype(COUNT_DTYPE).reshape(n_patterns, 2, n_environments)
    return PatternTable(patterns=found.patterns, counts=counts)


def merge_patterns(table: PatternTable, rules: Sequence[int]) -> PatternTable:
    """Make the table over some of the rules."""
    truths = [table.patterns[:, rule] for rule in rules]
    found = find_patterns(truths, len(table.patterns))
    counts = np.zeros((len(found.patterns), *table.counts.shape[1:]), dtype=COUNT_DTYPE)
    np.add.at(counts, found.numbers, table.counts)
    return PatternTable(found.patterns, counts)


def add_patterns(tables: Sequence[PatternTable]) -> PatternTable:
    """Make one table of the rows of several."""
    with_rows = [table for table in tables if len(table.patterns)]
    if not with_rows:
        return tables[0]
    if len(with_rows) == 1:
        return with_rows[0]
    stacked = PatternTable(
        patterns=np.concatenate([table.patterns for table in with_rows]),
        counts=np.concatenate([table.counts for table in with_rows]),
    )
    return merge_patterns(stacked, range(stacked.patterns.shape[1]))
