"""A model as a JSON document that a program in any language can follow."""

from __future__ import annotations

from typing import Any, Final

from icscm.export.branches import Branch, Leaf, find_absent, make_branches, say_refused
from icscm.model.plain import format_json
from icscm.model.saved import SavedModel

FORMAT: Final = "icscm-decision-list"
SCHEMA: Final = 1


def make_json(saved: SavedModel) -> str:
    """The conditions in order, each with its leaf, for a program in any language."""
    branches, last = make_branches(saved)
    absent = find_absent(saved)
    return format_json(
        {
            "format": FORMAT,
            "schema": SCHEMA,
            "version": saved.version,
            "how_to_read": (
                "Go through the conditions in order. The first that is true gives the result; if "
                "none is, 'otherwise' does. For a missing value (null, NaN) a condition is what "
                "its if_missing says. Columns without a name are found by position, from 0. Text "
                "that is in missing_texts, spaces around it aside, is missing, and in columns of "
                "numbers all that is in missing_numbers is."
                + "".join(f" {line}" for line in say_refused(saved))
            ),
            "missing_texts": [] if absent is None else list(absent.texts),
            "missing_numbers": [] if absent is None else list(absent.numbers),
            "rule": str(saved),
            "classes": list(saved.classes),
            "conditions": [_describe_branch(branch) for branch in branches],
            "otherwise": _describe_leaf(last),
        }
    )


def _describe_branch(branch: Branch) -> dict[str, Any]:
    value = branch.value
    return {
        "column": branch.name,
        "position": branch.column,
        "type": branch.type,
        "operator": branch.operator,
        "value": list(value) if isinstance(value, tuple) else value,
        "if_missing": branch.if_missing,
        "then": _describe_leaf(branch.leaf),
    }


def _describe_leaf(leaf: Leaf) -> dict[str, Any]:
    return {
        "prediction": leaf.label,
        "probability": leaf.probability,
        "decided_by": leaf.decided_by,
        "training_samples": list(leaf.counts),
    }
