"""All kinds of models, and how each is made of plain values."""

from __future__ import annotations

from typing import Any, Final

from icscm.exceptions import IcscmError
from icscm.formatting import count
from icscm.model.forests import Forest
from icscm.model.leaves import freeze_counts
from icscm.model.rule_sets import MODEL_KINDS, RuleSet
from icscm.model.rules import make_rule
from icscm.model.trees import Split, Tree

Model = RuleSet | Tree | Forest

KINDS: Final = (*MODEL_KINDS, Tree.kind, Forest.kind)


def make_model(fields: dict[str, Any]) -> Model:
    """The model that `to_dict` described.

    >>> from icscm import Conjunction
    >>> empty = Conjunction(rules=(), leaves=(((3, 1), (2, 2)),))
    >>> make_model(empty.to_dict()) == empty
    True
    """
    kind = fields.get("kind")
    if kind in MODEL_KINDS:
        rules = tuple(make_rule(rule) for rule in fields["rules"])
        return MODEL_KINDS[kind](rules, freeze_counts(fields["leaves"]))
    if kind == Tree.kind:
        return _make_tree(fields)
    if kind == Forest.kind:
        return Forest(tuple(map(_make_tree, fields["trees"])))
    raise IcscmError(f"unknown kind of model {kind!r}; this version knows {sorted(KINDS)}")


def describe_size(model: Model) -> str:
    """What it is, and how large: `tree of 15 splits`."""
    what = {Tree.kind: "split", Forest.kind: "tree"}.get(model.kind, "rule")
    return f"{model.kind} of {count(len(model), what)}"


def _make_tree(fields: dict[str, Any]) -> Tree:
    splits = (Split(**each | {"rule": make_rule(each["rule"])}) for each in fields["splits"])
    return Tree(tuple(splits), freeze_counts(fields["leaves"]), fields["balanced"])
