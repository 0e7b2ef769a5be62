"""Converts the documents of older model files to the present schema, one schema at a time.

    schema 1 --_add_trees--> 2 --_write_rules_as_splits--> 3 --_add_calibration--> 4
    schema 4 --_add_training_values--> 5

| schema | written by |
|---|---|
| 1 | 0.1, and 0.2 for a conjunction or disjunction |
| 2 | 0.2 for a tree or forest |
| 3 | no release |
| 4 | 0.3 |
| 5 | from 0.4 on |

A document is what JSON holds, not yet checked: a step changes what it recognizes and leaves the
rest, for which `parsing` then raises. A new schema needs one more step here, and nothing else that
knows of older files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from icscm.model.splits import CHAINS, make_chain_splits

Document = dict[str, Any]

# The schema that this version writes, and the newest that it reads.
PRESENT_SCHEMA: Final = 5

_KEYS_OF_RULE_LIST: Final = {"kind", "rules", "leaves"}


def convert(document: Document, schema: int) -> Document:
    """Convert a document of some schema, from 1 to the present one, to the present one."""
    for older_schema in range(schema, PRESENT_SCHEMA):
        document = _STEPS[older_schema](document)
    return document


def name_places(message: str, document: Document) -> str:
    """Name places in a message on the converted document as they are called in the file.

    >>> old = {"model": {"kind": "conjunction", "rules": [{}], "leaves": []}}
    >>> name_places("model.splits[0].rule lacks the key 'kind'", old)
    "model.rules[0] lacks the key 'kind'"
    """
    if not _is_rule_list(document.get("model")):
        return message
    return re.sub(r"\bmodel\.splits\[(\d+)\]\.rule\b", r"model.rules[\1]", message)


def _add_trees(document: Document) -> Document:
    """From 1 to 2: trees and forests were added; what schema 1 could say stayed the same."""
    return document


def _write_rules_as_splits(document: Document) -> Document:
    """From 2 to 3: a conjunction or disjunction has splits, as a tree has; it had a list of rules.

    No older conjunction or disjunction weighted its environments equally.
    """
    model: Any = document.get("model")
    if not _is_rule_list(model):
        return document
    splits = [
        {"rule": split.rule, "if_true": split.if_true, "if_false": split.if_false}
        for split in make_chain_splits(model["kind"], model["rules"])
    ]
    chain = {
        "kind": model["kind"],
        "splits": splits,
        "leaves": model["leaves"],
        "balanced": False,
    }
    return document | {"model": chain}


def _add_calibration(document: Document) -> Document:
    """From 3 to 4: a model may have a calibration and a threshold; without them it has none."""
    return document


def _add_training_values(document: Document) -> Document:
    """From 4 to 5: a model has the levels and ranges of training; without them it cannot tell."""
    return document


def _is_rule_list(model: Any) -> bool:
    """Whether a model is a conjunction or disjunction as schemas 1 and 2 wrote it."""
    return (
        isinstance(model, dict)
        and model.keys() == _KEYS_OF_RULE_LIST
        and isinstance(model["kind"], str)
        and model["kind"] in CHAINS
        and isinstance(model["rules"], list)
    )


# The step from each older schema to the next.
_STEPS: Final[dict[int, Callable[[Document], Document]]] = {
    1: _add_trees,
    2: _write_rules_as_splits,
    3: _add_calibration,
    4: _add_training_values,
}
