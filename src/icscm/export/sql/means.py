"""The mean over leaves, for rows in which a value is missing that never was at fitting.

A split is written as t * (one side) + (1 - t) * (other), in which t is 1 where its rule is true, 0
where it is false, and the share of training rows where the value is missing. So each side is
written once; the deeper one comes first, which is easier to parse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icscm.export.conditions import make_condition, make_leaves
from icscm.export.sql.cases import write_probability
from icscm.export.sql.conditions import ConditionWriter
from icscm.export.sql.literals import format_sql_number
from icscm.model.saved import SavedModel
from icscm.model.splits import Split, decode_leaf, is_leaf
from icscm.model.tree import Tree

# Symbols that a mean over leaves may keep on the stack of SQLite's parser, which holds 100.
MAX_SQL_SYMBOLS: Final = 60
# Symbols on the stack before the first side of a sum, and before the second.
_N_BEFORE_FIRST: Final = 3
_N_BEFORE_SECOND: Final = 5


@dataclass(frozen=True)
class Mean:
    """The mean over leaves below a node, and their number; `n_symbols` is how deep they nest."""

    n_symbols: int
    probability: str
    n_leaves: str


def make_mean(saved: SavedModel, tree: Tree, writer: ConditionWriter) -> Mean | None:
    """Make the mean over the leaves of a tree; None if it is too deep for SQL."""
    leaves = [Mean(0, write_probability(leaf), "1") for leaf in make_leaves(saved, tree)]
    means: dict[int, Mean] = {}

    def find(child: int) -> Mean:
        return leaves[decode_leaf(child)] if is_leaf(child) else means[child]

    shares = tree.shares
    for number in reversed(range(len(tree.splits))):
        split = tree.splits[number]
        if_true = _weigh(saved, split, find(split.if_true), writer, shares[number], is_true=True)
        if_false = _weigh(
            saved, split, find(split.if_false), writer, 1.0 - shares[number], is_true=False
        )
        mean = _add(if_true, if_false)
        if mean.n_symbols > MAX_SQL_SYMBOLS:
            return None
        means[number] = mean
    return means[0] if means else leaves[0]


def _weigh(
    saved: SavedModel,
    split: Split,
    mean: Mean,
    writer: ConditionWriter,
    share: float,
    *,
    is_true: bool,
) -> Mean:
    """Weigh one side of a split: its probability by the share of rows, its leaves by 1."""
    condition = make_condition(split.rule, saved)
    truth = writer.write(condition)
    missing = writer.write_is_missing(condition) if split.rule.is_unsure else ""

    def weigh_by(weight: str) -> str:
        if_missing = f"WHEN {missing} THEN {weight} " if missing else ""
        if_true, if_false = int(is_true), int(not is_true)
        return f"CASE {if_missing}WHEN {truth} THEN {if_true} ELSE {if_false} END"

    return Mean(
        n_symbols=mean.n_symbols,
        probability=f"{weigh_by(format_sql_number(share))} * ({mean.probability})",
        n_leaves=f"{weigh_by('1')} * ({mean.n_leaves})",
    )


def _add(if_true: Mean, if_false: Mean) -> Mean:
    """Add the two sides of a split, the deeper one first."""

    def rank(side: Mean) -> tuple[int, str, str]:
        return side.n_symbols, side.probability, side.n_leaves

    first, second = sorted((if_true, if_false), key=rank, reverse=True)
    return Mean(
        n_symbols=max(first.n_symbols + _N_BEFORE_FIRST, second.n_symbols + _N_BEFORE_SECOND),
        probability=f"{first.probability}\n    + {second.probability}",
        n_leaves=f"{first.n_leaves}\n    + {second.n_leaves}",
    )
