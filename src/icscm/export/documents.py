"""A model as a JSON document that a program in any language can follow."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from icscm.export.branches import find_absent, make_branches, say_refused
from icscm.model.plain import format_json, make_plain
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
            "conditions": [make_plain(asdict(branch)) for branch in branches],
            "otherwise": make_plain(asdict(last)),
        }
    )
