"""The mean over leaves, for rows in which a value is missing that never was at fitting.

Below a split, the mean probability p and the number n of leaves that a row may fall in are

    p = t * p(true side) + (1 - t) * p(false side)
    n = u * n(true side) + v * n(false side)

where t is 1 if the split's rule is true, 0 if it is false, and the share of training rows of which
it was true if the value is missing; u and v are 1 for the sides that the row may be on, else 0.

So each side is written once. The deeper one comes first, which takes less room in SQLite's parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icscm.export.conditions import make_condition, make_leaves
from icscm.export.sql.cases import write_probability
from icscm.export.sql.conditions import ConditionWriter
from icscm.export.sql.literals import format_sql_number
from icscm.model.rules import Rule
from icscm.model.saved import SavedModel
from icscm.model.splits import decode_leaf, is_leaf
from icscm.model.tree import Tree

# Symbols that a mean over leaves may keep on the stack of SQLite's parser, which holds 100.
MAX_SQL_SYMBOLS: Final = 60
# Symbols on the stack before the first side of a sum, `weight * (`, and before the second,
# `sum + weight * (`.
_N_BEFORE_FIRST: Final = 3
_N_BEFORE_SECOND: Final = 5


@dataclass(frozen=True)
class Mean:
    """The mean probability over the leaves below a node and their number, as SQL.

    `n_symbols` is the largest number of symbols that a parser keeps while it reads them.
    """

    n_symbols: int
    probability: str
    n_leaves: str


@dataclass(frozen=True)
class SplitTruth:
    """Whether a split's rule is true and whether its value is missing, as conditions in SQL.

    `is_missing` is None where the rule itself says what a missing value means.
    """

    is_true: str
    is_missing: str | None

    def write_weight(self, *, of_true_side: bool, if_missing: str) -> str:
        """Write the weight of a side: 1 if the row is on it, else 0; `if_missing` if unknown."""
        missing_branch = ""
        if self.is_missing is not None:
            missing_branch = f"WHEN {self.is_missing} THEN {if_missing} "
        if_true = int(of_true_side)
        if_false = int(not of_true_side)
        return f"CASE {missing_branch}WHEN {self.is_true} THEN {if_true} ELSE {if_false} END"


def make_mean(saved: SavedModel, tree: Tree, writer: ConditionWriter) -> Mean | None:
    """Make the mean over the leaves of a tree; None if it is too deep for SQLite's parser.

    The mean of a split is a sum of those of its children, so it is made after them, from the last
    split to the first.
    """
    leaves = [
        Mean(n_symbols=0, probability=write_probability(leaf), n_leaves="1")
        for leaf in make_leaves(saved, tree)
    ]
    if not tree.splits:
        return leaves[0]

    means: dict[int, Mean] = {}

    def get_mean(child: int) -> Mean:
        return leaves[decode_leaf(child)] if is_leaf(child) else means[child]

    # children have greater numbers than their parent
    for number in reversed(range(len(tree.splits))):
        split = tree.splits[number]
        share_of_true = tree.shares[number]  # of the training rows that reach the split
        truth = _write_truth(saved, split.rule, writer)

        mean_if_true = get_mean(split.if_true)
        mean_if_false = get_mean(split.if_false)
        true_side = _weigh(mean_if_true, truth, of_true_side=True, share=share_of_true)
        false_side = _weigh(mean_if_false, truth, of_true_side=False, share=1.0 - share_of_true)
        mean = _add(true_side, false_side)
        if mean.n_symbols > MAX_SQL_SYMBOLS:
            return None
        means[number] = mean
    return means[0]


def _write_truth(saved: SavedModel, rule: Rule, writer: ConditionWriter) -> SplitTruth:
    condition = make_condition(rule, saved)
    return SplitTruth(
        is_true=writer.write(condition),
        is_missing=writer.write_is_missing(condition) if rule.is_unsure else None,
    )


def _weigh(mean: Mean, truth: SplitTruth, *, of_true_side: bool, share: float) -> Mean:
    """Weigh one side of a split; where the value is missing, by its share of the training rows."""
    weight = truth.write_weight(of_true_side=of_true_side, if_missing=format_sql_number(share))
    # all leaves of both sides count
    leaf_weight = truth.write_weight(of_true_side=of_true_side, if_missing="1")
    return Mean(
        n_symbols=mean.n_symbols,
        probability=f"{weight} * ({mean.probability})",
        n_leaves=f"{leaf_weight} * ({mean.n_leaves})",
    )


def _add(true_side: Mean, false_side: Mean) -> Mean:
    """Add the two sides of a split, the deeper one first; equally deep ones go by their texts."""

    def rank(side: Mean) -> tuple[int, str, str]:
        return side.n_symbols, side.probability, side.n_leaves

    second, first = sorted((true_side, false_side), key=rank)
    return Mean(
        n_symbols=max(first.n_symbols + _N_BEFORE_FIRST, second.n_symbols + _N_BEFORE_SECOND),
        probability=f"{first.probability}\n    + {second.probability}",
        n_leaves=f"{first.n_leaves}\n    + {second.n_leaves}",
    )
