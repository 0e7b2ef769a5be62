"""A model as a JSON document that a program in any language can follow."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from icscm.export.branches import (
    find_absent,
    list_trees,
    make_branches,
    make_condition,
    make_leaves,
    say_refused,
)
from icscm.model.forests import Forest
from icscm.model.plain import format_json, make_plain
from icscm.model.rule_sets import RuleSet
from icscm.model.saved import SavedModel
from icscm.model.trees import Tree

FORMATS: Final = {"tree": "icscm-decision-tree", "forest": "icscm-decision-forest"}
LIST_FORMAT: Final = "icscm-decision-list"
SCHEMA: Final = 1

_FOLLOW_LIST: Final = (
    "Go through the conditions in order. The first that is true gives the result; if "
    "none is, 'otherwise' does."
)
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
    """The conditions and leaves, for a program in any language."""
    model = saved.model
    if isinstance(model, RuleSet):
        return _lay_out(saved, LIST_FORMAT, _FOLLOW_LIST, _describe_list(saved, model))
    trees = [_describe_tree(saved, tree) for tree in list_trees(model)]
    if isinstance(model, Forest):
        return _lay_out(saved, FORMATS[model.kind], _FOLLOW_FOREST, {"trees": trees})
    return _lay_out(saved, FORMATS[model.kind], _FOLLOW_TREE, trees[0])


def _lay_out(saved: SavedModel, form: str, follow: str, content: dict[str, Any]) -> str:
    absent = find_absent(saved)
    return format_json(
        {
            "format": form,
            "schema": SCHEMA,
            "version": saved.version,
            "how_to_read": (
                f"{follow} For a missing value (null, NaN) a condition is what "
                "its if_missing says. Columns without a name are found by position, from 0. Text "
                "that is in missing_texts, spaces around it aside, is missing, and in columns of "
                "numbers all that is in missing_numbers is."
                + "".join(f" {line}" for line in say_refused(saved))
            ),
            "missing_texts": [] if absent is None else list(absent.texts),
            "missing_numbers": [] if absent is None else list(absent.numbers),
            "rule": str(saved),
            "classes": list(saved.classes),
            **content,
        }
    )


def _describe_list(saved: SavedModel, model: RuleSet) -> dict[str, Any]:
    branches, last = make_branches(saved, model)
    return {
        "conditions": [
            make_plain({**asdict(each.condition), "then": asdict(each.then)}) for each in branches
        ],
        "otherwise": make_plain(asdict(last)),
    }


def _describe_tree(saved: SavedModel, tree: Tree) -> dict[str, Any]:
    splits = [
        {
            **asdict(make_condition(each.rule, saved, is_true=True)),
            "if_true": each.if_true,
            "if_false": each.if_false,
        }
        for each in tree.splits
    ]
    leaves = [asdict(leaf) for leaf in make_leaves(saved, tree)]
    return {"splits": make_plain(splits), "leaves": make_plain(leaves)}
