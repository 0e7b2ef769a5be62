"""The leaves of rows in a tree: one or, with a value missing that never was at fitting, several.

A level that training did not have is missing, too (`icscm.model.novelty`).

A rule on such an *unseen* missing value is neither true nor false. The row follows both branches,
and its probability is the mean of theirs, by their shares of the training rows, a *blend*:

    age missing     age > 63 --30 % of the training rows--> .40      .3 * .40 + .7 * .10 = .19
                        |70 %
                       .10
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._types import Array, BoolArray, FloatArray
from icscm.model.novelty import (
    TrainingValues,
    UnknownLevels,
    drop_unknown,
    find_unknown,
    name_column,
    name_unknown,
    report_unknown,
    warn_of_far,
)
from icscm.model.rules import Rule, warn_of_unseen
from icscm.model.splits import Split, decode_leaf, find_leaves, is_leaf
from icscm.tables.columns import Column, Numbers, count_rows, read_column

RowNumbers = NDArray[np.intp]
Columns = dict[str | int, Column]
# Where a value is missing in a column that had all at fitting, by column.
Unseen = dict[str | int, BoolArray]


class ColumnsRead(NamedTuple):
    """The columns that rules use, and where values are missing that never were at fitting.

    Unknown levels are missing in them.
    """

    columns: Columns
    unseen: Unseen


def read_columns(
    X: object, rules: Sequence[Rule], training_values: Sequence[TrainingValues]
) -> ColumnsRead:
    """Read the columns that rules use, each once; tell what training did not have in them.

    These are levels, which become missing, numbers far outside the range, and missing values.
    """
    rules_of_column = _group_by_column(rules)
    columns = _read_each(X, rules_of_column)
    training_of_column = {values.feature: values for values in training_values}

    unknown_levels = find_unknown_levels(columns, training_values)
    report_unknown(list(unknown_levels.values()))

    unseen: Unseen = {}
    for name, its_rules in rules_of_column.items():
        if name in training_of_column:
            warn_of_far(columns[name], training_of_column[name])
        is_missing = warn_of_unseen(its_rules, columns[name])
        if name in unknown_levels:
            columns[name] = drop_unknown(columns[name], unknown_levels[name])
            if any(rule.is_unsure for rule in its_rules):
                is_missing = columns[name].missing
        if is_missing is not None:
            unseen[name] = is_missing
    return ColumnsRead(columns=columns, unseen=unseen)


def name_unknown_levels(
    X: object, rules: Sequence[Rule], training_values: Sequence[TrainingValues]
) -> Array:
    """Name in each row the columns that have an unknown level: `sex, smoker`; '' where none."""
    columns = _read_each(X, _group_by_column(rules))
    unknown_levels = find_unknown_levels(columns, training_values)
    return name_unknown(list(unknown_levels.values()), count_rows(X))


def find_unknown_levels(
    columns: Columns, training_values: Sequence[TrainingValues]
) -> dict[str | int, UnknownLevels]:
    """Find the unknown levels of each column that has some, in the order of the columns."""
    training_of_column = {values.feature: values for values in training_values}
    found = {
        name: find_unknown(column, training_of_column[name])
        for name, column in columns.items()
        if name in training_of_column
    }
    return {name: unknown for name, unknown in found.items() if unknown is not None}


def _group_by_column(rules: Sequence[Rule]) -> dict[str | int, list[Rule]]:
    """Group rules by their column, in the order of their first rules."""
    rules_of_column: dict[str | int, list[Rule]] = {}
    for rule in rules:
        rules_of_column.setdefault(rule.feature, []).append(rule)
    return rules_of_column


def _read_each(X: object, rules_of_column: Mapping[str | int, Sequence[Rule]]) -> Columns:
    """Read the columns of some rules."""
    columns: Columns = {}
    for name, its_rules in rules_of_column.items():
        column = read_column(X, its_rules[0].column, its_rules[0].name)
        if isinstance(column, Numbers):  # a column of a C-ordered array is strided in memory
            column = replace(column, values=np.ascontiguousarray(column.values))
        columns[name] = column
    return columns


def follow_splits(splits: Sequence[Split], columns: Columns, n_rows: int) -> RowNumbers:
    """Find the leaf of each row of some columns."""

    def find_true(split: Split, rows: RowNumbers) -> BoolArray:
        return split.rule.judge(columns[split.rule.feature].take(rows))

    return find_leaves(splits, n_rows, find_true=find_true)


# --- rows that fall in several leaves -------------------------------------------------------------

# Rows times splits at a time.
_BLENDED_CELLS: Final = 2**21


@dataclass(frozen=True)
class Blend:
    """Rows that fall into several leaves: their mean, number of leaves, and likeliest leaf.

    `rows` are their positions among all rows; the other arrays have an entry for each.
    """

    rows: RowNumbers
    probability: FloatArray
    n_leaves: RowNumbers
    leaf: RowNumbers


_NO_ROWS: Final = np.zeros(0, dtype=np.intp)
NO_BLEND: Final = Blend(rows=_NO_ROWS, probability=np.zeros(0), n_leaves=_NO_ROWS, leaf=_NO_ROWS)


@dataclass(frozen=True)
class FollowedRows:
    """Rows that were followed down a tree.

    `leaves` has a leaf for each row, `blend` the rows that fall into several, and `unseen` says
    what these lack.
    """

    leaves: RowNumbers
    blend: Blend
    unseen: Unseen


@dataclass(frozen=True)
class _NodeResult:
    """What rows get that reach a node: an entry for each, or a number for all that reach a leaf.

    Their probability, the number of leaves that they fall into, and the likeliest of these.
    """

    probability: FloatArray | float
    n_leaves: RowNumbers | int
    leaf: RowNumbers | int


def blend(
    splits: Sequence[Split],
    *,
    shares: Sequence[float],
    probabilities: FloatArray,
    columns: Columns,
    unseen: Unseen,
) -> Blend:
    """Find the rows that fall into several leaves, and the mean of these.

    They lack a value that a rule on their path needs, and that never was missing at fitting. Such a
    row follows both branches, as in C4.5 (Quinlan, 1993): with the share s of the training rows for
    which the rule is true,

        probability = s * probability if true + (1 - s) * probability if false.

    Parameters
    ----------
    splits : sequence of Split
        Of the tree.
    shares : sequence of float
        Of each split, the share s.
    probabilities : array of float
        Of each leaf.
    columns, unseen : dict
        From `read_columns`.
    """
    # Rows that lack a value may fall into one leaf still, if no rule on their path needs it.
    lacks_any_value = np.logical_or.reduce([*unseen.values()])
    rows = np.flatnonzero(lacks_any_value)

    # Every split has an array with an entry for each row, so rows are taken in parts.
    n_rows_at_a_time = max(_BLENDED_CELLS // len(splits), 1)
    blends = [NO_BLEND]
    for start in range(0, len(rows), n_rows_at_a_time):
        some_rows = rows[start : start + n_rows_at_a_time]
        result = _follow_both_branches(
            some_rows,
            splits,
            shares=shares,
            probabilities=probabilities,
            columns=columns,
            unseen=unseen,
        )
        blends.append(_select_blended(some_rows, result))
    return _join_blends(blends)


def _follow_both_branches(
    rows: RowNumbers,
    splits: Sequence[Split],
    *,
    shares: Sequence[float],
    probabilities: FloatArray,
    columns: Columns,
    unseen: Unseen,
) -> _NodeResult:
    """Compute what rows get that go down both branches of a split whose column they lack.

    From the leaves up: for every node, what each row would get if it were there. At a leaf this is
    the leaf's probability. A split takes the weighted mean of its two children,

        w * (what the row gets at if_true) + (1 - w) * (what it gets at if_false),

    with w = 1 or 0 where the rule is true or false of the row, and the share of the split where it
    is neither. The row gets what the first split, the root, has in the end. A row's leaf is that
    at the end of the branches of larger weight.
    """
    result_of_leaf = [
        _NodeResult(probability=probability, n_leaves=1, leaf=number)
        for number, probability in enumerate(probabilities.tolist())
    ]
    result_of_split: dict[int, _NodeResult] = {}

    def get_result(child: int) -> _NodeResult:
        return result_of_leaf[decode_leaf(child)] if is_leaf(child) else result_of_split[child]

    for number in reversed(range(len(splits))):  # a child comes after its parent
        split = splits[number]
        rule = split.rule
        if_true = get_result(split.if_true)
        if_false = get_result(split.if_false)

        is_true = rule.judge(columns[rule.feature].take(rows))
        weight_of_true = is_true.astype(np.float64)
        n_leaves = np.where(is_true, if_true.n_leaves, if_false.n_leaves)
        can_be_neither = rule.is_unsure and rule.feature in unseen
        if can_be_neither:
            lacks_value = unseen[rule.feature][rows]
            weight_of_true[lacks_value] = shares[number]
            n_leaves_of_both = if_true.n_leaves + if_false.n_leaves
            n_leaves = np.where(lacks_value, n_leaves_of_both, n_leaves)

        weight_of_false = 1.0 - weight_of_true
        part_if_true = weight_of_true * if_true.probability
        part_if_false = weight_of_false * if_false.probability
        result_of_split[number] = _NodeResult(
            probability=part_if_true + part_if_false,
            n_leaves=n_leaves,
            leaf=np.where(weight_of_true >= 0.5, if_true.leaf, if_false.leaf),
        )
    return result_of_split[0]


def _select_blended(rows: RowNumbers, result: _NodeResult) -> Blend:
    """Select the rows that fall in more than one leaf."""
    is_blended = np.asarray(result.n_leaves) > 1
    return Blend(
        rows=rows[is_blended],
        probability=np.asarray(result.probability)[is_blended],
        n_leaves=np.asarray(result.n_leaves)[is_blended],
        leaf=np.asarray(result.leaf)[is_blended],
    )


def _join_blends(blends: Sequence[Blend]) -> Blend:
    """Join the blends of several parts of the rows."""
    return Blend(
        rows=np.concatenate([blend.rows for blend in blends]),
        probability=np.concatenate([blend.probability for blend in blends]),
        n_leaves=np.concatenate([blend.n_leaves for blend in blends]),
        leaf=np.concatenate([blend.leaf for blend in blends]),
    )


# --- text -----------------------------------------------------------------------------------------


def name_missing(feature: str | int, averaged: Container[str | int] = ()) -> str:
    """Name a missing column as `decided_by` does; a score may give it average points."""
    note = " (average)" if feature in averaged else ""
    return f"{name_column(feature)} missing{note}"


def name_unseen(unseen: Unseen, rows: RowNumbers, averaged: Container[str | int] = ()) -> Array:
    """Name what is missing in each of some rows: `age missing, bmi missing: `.

    `unseen` says of each column in which of all rows it is missing. Many rows lack the same
    columns, so a text is made for each pattern of missing columns, not for each row.
    """
    names = [name_missing(column, averaged) for column in unseen]
    is_missing_by_column = np.array([missing[rows] for missing in unseen.values()])
    is_missing_by_row = is_missing_by_column.reshape(len(names), -1).T

    patterns, pattern_of_row = np.unique(is_missing_by_row, axis=0, return_inverse=True)
    texts = [f"{', '.join(compress(names, pattern))}: " for pattern in patterns.tolist()]
    return np.array(texts, dtype=object)[pattern_of_row.ravel()]
