"""The leaves of rows in a tree: one or, with a value missing that never was at fitting, several.

age missing     age > 63 --30 % of the training samples--> .40      .3 * .40 + .7 * .10 = .19
                    |70 %
                   .10
"""

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm._types import Array, BoolArray, FloatArray
from icscm.formatting import clip, format_name
from icscm.model.rules import Rule, warn_of_unseen
from icscm.model.splits import MAX_RULE, Split
from icscm.tables.columns import Column, Numbers, read_column

Columns = dict[str | int, Column]
# Rows with a missing value in a column that had none at fitting, by column.
Unseen = dict[str | int, BoolArray]


def read_columns(X: Any, rules: Sequence[Rule]) -> tuple[Columns, Unseen]:
    """The columns that rules use, each read once.

    Also returns the rows with missing values, for columns that had none at fitting.
    """
    rules_of: dict[str | int, list[Rule]] = {}
    for rule in rules:
        rules_of.setdefault(rule.feature, []).append(rule)
    columns: Columns = {}
    unseen: Unseen = {}
    for feature, those in rules_of.items():
        column = read_column(X, those[0].column, those[0].name)
        if isinstance(column, Numbers):  # a column of a C-ordered array is strided in memory
            column = replace(column, values=np.ascontiguousarray(column.values))
        if (missing := warn_of_unseen(those, column)) is not None:
            unseen[feature] = missing
        columns[feature] = column
    return columns, unseen


def find_leaves(splits: Sequence[Split], columns: Columns, n_rows: int) -> NDArray[np.intp]:
    """The leaf of each row."""
    leaves = np.zeros(n_rows, dtype=np.intp)
    rows_at = {0: np.arange(n_rows)}
    for number, split in enumerate(splits):
        rows = rows_at.pop(number)
        truth = split.rule.judge(columns[split.rule.feature].take(rows))
        for child, part in ((split.if_true, rows[truth]), (split.if_false, rows[~truth])):
            if child < 0:
                leaves[part] = ~child
            else:
                rows_at[child] = part
    return leaves


# Rows times splits at a time.
_BLENDED_CELLS: Final = 2**21


class Blend(NamedTuple):
    """Rows that fall into several leaves: their mean, number of leaves, and likeliest leaf."""

    rows: NDArray[np.intp]
    probability: FloatArray
    n_leaves: NDArray[np.intp]
    leaf: NDArray[np.intp]


_NOBODY: Final = np.zeros(0, dtype=np.intp)
NO_BLEND: Final = Blend(_NOBODY, np.zeros(0), _NOBODY, _NOBODY)


def blend(
    splits: Sequence[Split],
    shares: Sequence[float],
    probabilities: FloatArray,
    columns: Columns,
    unseen: Unseen,
) -> Blend:
    """The rows that lack a value needed by a rule on their path and never missing at fitting.

    Such a row follows both branches, as in C4.5: its probability is their mean, weighted by their
    shares of the training samples. `unseen` is from `read_columns`.
    """
    rows = np.flatnonzero(np.logical_or.reduce([*unseen.values()]))
    parts, step = [NO_BLEND], max(_BLENDED_CELLS // len(splits), 1)
    leaves = [(each, 1, leaf) for leaf, each in enumerate(probabilities.tolist())]
    for part in (rows[start : start + step] for start in range(0, len(rows), step)):
        nodes: list[Any] = [None] * len(splits)
        for number, split in reversed([*enumerate(splits)]):
            rule = split.rule
            truth = rule.judge(columns[rule.feature].take(part)).astype(np.float64)
            both = unseen[rule.feature][part] if rule.is_unsure and rule.feature in unseen else None
            children = split.if_true, split.if_false
            one, other = (leaves[~each] if each < 0 else nodes[each] for each in children)
            n_leaves = np.where(truth, one[1], other[1])
            if both is not None:
                truth[both] = shares[number]
                n_leaves = np.where(both, one[1] + other[1], n_leaves)
            mean = truth * one[0] + (1.0 - truth) * other[0]
            nodes[number] = mean, n_leaves, np.where(truth >= 0.5, one[2], other[2])
        is_blended = nodes[0][1] > 1
        parts.append(Blend(part[is_blended], *(each[is_blended] for each in nodes[0])))
    return Blend(*map(np.concatenate, zip(*parts, strict=True)))


def name_missing(feature: str | int, averaged: Container[str | int] = ()) -> str:
    """A missing feature as named in `decided_by`; a score may give it average points."""
    return f"{clip(format_name(feature), MAX_RULE)} missing{' (average)' * (feature in averaged)}"


def name_unseen(
    unseen: Unseen, rows: NDArray[np.intp], averaged: Container[str | int] = ()
) -> Array:
    """`age missing, bmi missing: ` for each of some rows."""
    names = [name_missing(each, averaged) for each in unseen]
    lacking = np.array([each[rows] for each in unseen.values()]).reshape(len(names), -1).T
    patterns, which = np.unique(lacking, axis=0, return_inverse=True)
    texts = [f"{', '.join(compress(names, those))}: " for those in patterns.tolist()]
    return np.array(texts, dtype=object)[which.ravel()]
