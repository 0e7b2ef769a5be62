"""A tree as nested CASEs.

Of the two sides of a split, the one of fewer leaves becomes a nested CASE, and the other continues
the CASE of the split itself:

    split 0: age > 63 --true--> split 1: smoker == yes --true--> leaf 0
        |false                      |false
      leaf 2                      leaf 1

    CASE
      WHEN d."age" <= 63 THEN (leaf 2)
      WHEN d."smoker" = 'yes' THEN (leaf 0)
      ELSE (leaf 1)
    END

So each split is written once, and thousands of splits nest no deeper than log2 of the number of
leaves; SQLite's parser stops at about twenty levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icscm.export.conditions import Leaf, make_condition, make_leaves
from icscm.export.sql.conditions import ConditionWriter
from icscm.export.sql.literals import format_sql_number, quote_label, quote_text
from icscm.model.saved import SavedModel
from icscm.model.splits import Split, decode_leaf, is_leaf
from icscm.model.tree import Tree

# What a leaf gives, each written as a CASE of its own; a vote is 1 for the positive class, else 0.
_LEAF_COLUMNS = ("prediction", "probability", "decided_by", "vote")


@dataclass(frozen=True)
class Branch:
    """A condition, and what follows where it is true."""

    condition: str
    case: Case


@dataclass(frozen=True)
class Case:
    """Branches, of which the first whose condition is true decides, and the result if none is.

    A result has the values of several columns, by their names; `write` writes one of them.
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


# Where a value is missing that never was at fitting, no single leaf decides.
_UNKNOWN = Case([], otherwise=dict.fromkeys(_LEAF_COLUMNS, "NULL"))


@dataclass(frozen=True)
class Subtree:
    """The CASE of a node and the leaves below it: how many, and the lowest of their numbers."""

    n_leaves: int
    first_leaf: int
    case: Case


def make_case(saved: SavedModel, tree: Tree, writer: ConditionWriter) -> Case:
    """Make the CASE of a tree, whose results have the columns of a leaf.

    They are NULL where a value is missing that never was at fitting. The CASE of a split is made
    of those of its two children, so it is made after them, from the last split to the first.
    """
    leaves = [
        Subtree(n_leaves=1, first_leaf=number, case=_make_leaf_case(saved, leaf))
        for number, leaf in enumerate(make_leaves(saved, tree))
    ]
    if not tree.splits:
        return leaves[0].case

    subtrees: dict[int, Subtree] = {}

    def get_subtree(child: int) -> Subtree:
        return leaves[decode_leaf(child)] if is_leaf(child) else subtrees[child]

    # children have greater numbers than their parent
    for number in reversed(range(len(tree.splits))):
        split = tree.splits[number]
        subtrees[number] = _join_sides(
            saved,
            split,
            if_true=get_subtree(split.if_true),
            if_false=get_subtree(split.if_false),
            writer=writer,
        )
    return subtrees[0].case


def _join_sides(
    saved: SavedModel, split: Split, *, if_true: Subtree, if_false: Subtree, writer: ConditionWriter
) -> Subtree:
    """Join the CASEs of the two sides of a split to that of the split.

    It has a branch to the smaller side, whose CASE is nested, and then the branches of the larger
    side, which nests no deeper by that. Of sides of the same size, that of the lower leaf is first.
    """
    size_if_true = (if_true.n_leaves, if_true.first_leaf)
    size_if_false = (if_false.n_leaves, if_false.first_leaf)
    is_true_smaller = size_if_true < size_if_false
    smaller, larger = (if_true, if_false) if is_true_smaller else (if_false, if_true)

    # the condition that leads to the smaller side: the rule of the split, or its opposite
    condition = make_condition(split.rule, saved, is_true=is_true_smaller)
    branches = [Branch(writer.write(condition), smaller.case), *larger.case.branches]
    if split.rule.is_unsure:
        # asked before the condition, which would take a missing value for false
        branches.insert(0, Branch(writer.write_is_missing(condition), _UNKNOWN))

    return Subtree(
        n_leaves=if_true.n_leaves + if_false.n_leaves,
        first_leaf=min(if_true.first_leaf, if_false.first_leaf),
        case=Case(branches, otherwise=larger.case.otherwise),
    )


def _make_leaf_case(saved: SavedModel, leaf: Leaf) -> Case:
    """Make the CASE of a leaf, which has no branches."""
    is_positive = leaf.prediction == saved.classes[1]
    result = {
        "prediction": quote_label(leaf.prediction),
        "probability": write_probability(leaf),
        "decided_by": quote_text(leaf.decided_by),
        "vote": str(int(is_positive)),
    }
    return Case([], otherwise=result)


def write_probability(leaf: Leaf) -> str:
    """Write the probability of a leaf, as a fraction of counts where that is exact."""
    if leaf.fraction is None:
        return format_sql_number(leaf.probability)
    numerator, denominator = leaf.fraction
    return f"{numerator}e0 / {denominator}e0"
