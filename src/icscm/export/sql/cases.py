"""A tree as nested CASEs.

Each split is written once: the side of fewer leaves as a nested CASE, the other in the CASE of the
split itself. So thousands of splits nest no deeper than log2 of the number of leaves; SQLite's
parser stops at about twenty levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icscm.export.conditions import Leaf, make_condition, make_leaves
from icscm.export.sql.conditions import ConditionWriter
from icscm.export.sql.literals import format_sql_number, quote_label, quote_text
from icscm.model.saved import SavedModel
from icscm.model.splits import decode_leaf, is_leaf
from icscm.model.tree import Tree


@dataclass(frozen=True)
class Branch:
    """A condition, and what follows where it is true."""

    condition: str
    case: Case


@dataclass(frozen=True)
class Case:
    """Branches, of which the first whose condition is true decides, and the result if none is.

    A result has several columns, of which `write` writes one.
    """

    branches: Sequence[Branch]
    otherwise: dict[str, str]

    def write(self, column: str, indent: str = "  ") -> str:
        """Write a CASE for one column of the result, or its value where there is no branch."""
        if not self.branches:
            return self.otherwise[column]
        lines = ["CASE"]
        for branch in self.branches:
            result = branch.case.write(column, indent + 4 * " ")
            lines += [f"  WHEN {branch.condition}", f"    THEN {result}"]
        lines += [f"  ELSE {self.otherwise[column]}", "END"]
        return f"\n{indent}".join(lines)


@dataclass(frozen=True)
class Subtree:
    """The CASE of a node; `first_leaf` is 0 for a split, and orders two leaves."""

    n_leaves: int
    first_leaf: int
    case: Case


def make_case(saved: SavedModel, tree: Tree, writer: ConditionWriter) -> Case:
    """Make the CASE of a tree: prediction, probability, what decided, and the vote in a forest.

    Its results are NULL where a value is missing that never was at fitting.
    """
    leaves = [
        Subtree(n_leaves=1, first_leaf=number, case=_make_leaf_case(saved, leaf))
        for number, leaf in enumerate(make_leaves(saved, tree))
    ]
    unknown = Case([], dict.fromkeys(leaves[0].case.otherwise, "NULL"))
    subtrees: dict[int, Subtree] = {}

    def find(child: int) -> Subtree:
        return leaves[decode_leaf(child)] if is_leaf(child) else subtrees[child]

    for number in reversed(range(len(tree.splits))):
        split = tree.splits[number]
        if_true, if_false = find(split.if_true), find(split.if_false)
        # of two leaves the first comes first
        is_true_smaller = _rank(if_true) <= _rank(if_false)
        smaller, larger = (if_true, if_false) if is_true_smaller else (if_false, if_true)

        condition = make_condition(split.rule, saved, is_true=is_true_smaller)
        branches = [Branch(writer.write(condition), smaller.case), *larger.case.branches]
        if split.rule.is_unsure:
            branches.insert(0, Branch(writer.write_is_missing(condition), unknown))
        subtrees[number] = Subtree(
            n_leaves=if_true.n_leaves + if_false.n_leaves,
            first_leaf=0,
            case=Case(branches, larger.case.otherwise),
        )
    return subtrees[0].case if subtrees else leaves[0].case


def _rank(subtree: Subtree) -> tuple[int, int]:
    """Return what orders the two sides of a split, the smaller one first."""
    return subtree.n_leaves, subtree.first_leaf


def _make_leaf_case(saved: SavedModel, leaf: Leaf) -> Case:
    is_positive = leaf.prediction == saved.classes[1]
    result = {
        "prediction": quote_label(leaf.prediction),
        "probability": write_probability(leaf),
        "decided_by": quote_text(leaf.decided_by),
        "vote": str(int(is_positive)),
    }
    return Case([], result)


def write_probability(leaf: Leaf) -> str:
    """Write the probability of a leaf, as a fraction of counts where that is exact."""
    if leaf.fraction is None:
        return format_sql_number(leaf.probability)
    numerator, denominator = leaf.fraction
    return f"{numerator}e0 / {denominator}e0"
