"""A model as a JSON document that a program in any language can follow."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from icscm.export.conditions import (
    describe_missing_error,
    find_absent,
    list_trees,
    make_condition,
    make_leaves,
)
from icscm.formatting import format_json, make_plain
from icscm.model.forest import Forest
from icscm.model.saved import SavedModel
from icscm.model.tree import Tree

SCHEMA: Final = 1

_FOLLOW_TREE: Final = (
    "Begin at split 0, or at leaf 0 if there is none. Where a split's condition is true go to "
    "if_true, else to if_false: a number from 0 is that of a split, -1 is leaf 0, -2 leaf 1 and so "
    "on."
)
_FOLLOW_FOREST: Final = (
    f"In each tree: {_FOLLOW_TREE} The probability is the mean of the leaves' probabilities, "
    "added in order; above 1/2 it is the second of the classes, else the first."
)


def make_json(saved: SavedModel) -> str:
    """The splits and leaves, for a program in any language."""
    trees: list[dict[str, Any]] = [_describe_tree(saved, tree) for tree in list_trees(saved.model)]
    form, follow, content = "tree", _FOLLOW_TREE, trees[0]
    if isinstance(saved.model, Forest):
        form, follow, content = "forest", _FOLLOW_FOREST, {"trees": trees}
    absent = find_absent(saved)
    return format_json(
        {
            "format": f"icscm-decision-{form}",
            "schema": SCHEMA,
            "version": saved.version,
            "how_to_read": (
                f"{follow} For a missing value (null, NaN) a condition is what "
                "its if_missing says. Columns without a name are found by position, from 0. Text "
                "that is in missing_texts, spaces around it aside, is missing, and in columns of "
                "numbers all that is in missing_numbers is."
                + "".join(f" {line}" for line in describe_missing_error(saved))
            ),
            "missing_texts": [] if absent is None else list(absent.texts),
            "missing_numbers": [] if absent is None else list(absent.numbers),
            "rule": str(saved),
            "classes": list(saved.classes),
            **content,
        }
    )


def _describe_tree(saved: SavedModel, tree: Tree) -> dict[str, Any]:
    splits = [
        {
            **asdict(make_condition(each.rule, saved)),
            "if_true": each.if_true,
            "if_false": each.if_false,
        }
        for each in tree.splits
    ]
    leaves = [asdict(leaf) for leaf in make_leaves(saved, tree)]
    return {"splits": make_plain(splits), "leaves": make_plain(leaves)}
