"""A model as a JSON document: splits and leaves, or points and risks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from icscm.export.conditions import (
    find_missing_texts,
    list_known_columns,
    list_points,
    list_trees,
    make_condition,
    make_leaves,
)
from icscm.export.templates import fill_template
from icscm.formatting import format_json, make_plain
from icscm.model.forest import Forest
from icscm.model.saved import SavedModel
from icscm.model.score import Score
from icscm.model.tree import Tree

SCHEMA: Final = 3


def make_json(saved: SavedModel) -> str:
    """Write the model for a program in any language."""
    how_to_read = fill_template("how_to_read.txt", saved)
    missing = find_missing_texts(saved)
    facts = {
        "format": _name_format(saved),
        "schema": SCHEMA,
        "version": saved.version,
        "how_to_read": " ".join(how_to_read.split()),
        "missing_texts": [] if missing is None else list(missing.texts),
        "missing_numbers": [] if missing is None else list(missing.numbers),
        "rule": str(saved),
        "classes": list(saved.classes),
        "levels": make_plain(_list_levels(saved)),
    }
    return format_json(facts | _describe_model(saved) | _describe_decision(saved))


def _name_format(saved: SavedModel) -> str:
    if isinstance(saved.model, Score):
        return "icscm-score"
    if isinstance(saved.model, Forest):
        return "icscm-decision-forest"
    return "icscm-decision-tree"


def _list_levels(saved: SavedModel) -> list[dict[str, Any]]:
    """List the levels that training had, by column; others are missing."""
    return [
        {"column": known.column, "position": known.position, "levels": known.levels}
        for known in list_known_columns(saved)
    ]


def _describe_model(saved: SavedModel) -> dict[str, Any]:
    """Describe the points of a score, or the splits and leaves of trees."""
    model = saved.model
    if isinstance(model, Score):
        columns = [
            [term.condition.to_dict() | {"points": term.points} for term in terms]
            for terms in list_points(saved, model)
        ]
        return {
            "columns": make_plain(columns),
            "risks": model.compute_risks().tolist(),
            "cut": model.cut,
        }
    trees = [_describe_tree(saved, tree) for tree in list_trees(model)]
    return {"trees": trees} if isinstance(model, Forest) else trees[0]


def _describe_tree(saved: SavedModel, tree: Tree) -> dict[str, Any]:
    """Describe a tree by its splits, each with its condition and its children, and its leaves."""
    splits = [
        {
            **make_condition(split.rule, saved).to_dict(),
            "if_true": split.if_true,
            "if_false": split.if_false,
            "share_true": share,
        }
        for split, share in zip(tree.splits, tree.shares, strict=True)
    ]
    leaves = [asdict(leaf) for leaf in make_leaves(saved, tree)]
    return {"splits": make_plain(splits), "leaves": make_plain(leaves)}


def _describe_decision(saved: SavedModel) -> dict[str, Any]:
    """Describe calibration and threshold where they are not those of every model.

    Probabilities in the leaves of a tree are calibrated; those of a forest's trees are not.
    """
    model = saved.model
    if isinstance(model, Forest) and model.is_moved:
        return {"calibration": model.calibration, "cut": model.find_cut()}
    if model.threshold is not None:
        return {"threshold": model.threshold}
    return {}
