"""Section `model`: the model as text, its size, its columns, and rules that were discarded."""

from __future__ import annotations

from typing import Any

from icscm.formatting import count, format_name
from icscm.model.saved import Learner
from icscm.report.formatting import MISSING, Names, Plain, count_samples, name_features
from icscm.report.sections.errors import describe_errors
from icscm.report.texts import write_text


def describe_model(learner: Learner, names: Names, nodes: Plain, errors: Plain) -> Plain:
    """The model in words and numbers; rules with importances are those of a rule set."""
    model = learner.model_
    noun = get_noun(model)
    is_chain, is_forest = noun == "rule", noun == "forest"
    used = [each["feature"] for each in nodes["importances"] or ()]
    if is_chain or is_forest:
        used = [format_name(each) for each in learner.features_used_]
    has_missing = any(getattr(rule, "missing", None) is not None for rule in model.rules)
    name = f"forest of {count(len(model.trees), 'tree')}" if is_forest else ""
    if model.kind == "tree":
        on = f" on {name_features(used)}" if used else ""
        name = f"tree of {count(len(model.leaves), 'leaf')}{on}"
    discarded = learner.trace_.discarded
    always = "" if is_forest else names.predict(bool(model.leaf_verdicts[0]))
    content = {"names": names, "used": used, "always": always, "is_discarded": bool(discarded)}
    sentence = write_text("sentence", model=model, **content)
    return {
        "kind": model.kind,
        "noun": noun,
        "name": name or str(model),
        "text": str(model),
        "sentence": sentence,
        "missing": MISSING if has_missing else None,
        "balanced": getattr(model, "balanced", False),
        "n_rules": len(model.rules),
        "n_leaves": len(getattr(model, "leaves", ())),
        "depth": max((each["depth"] for each in nodes["walk"]), default=0),
        "features": used,
        "simple_rules": [*map(str, model.simple_rules)] if is_chain else [],
        "rules": _describe_rules(learner) if is_chain else [],
        "trees": _describe_trees(model) if is_forest else None,
        "discarded": discarded and _describe_discarded(discarded, errors, names),
    }


def get_noun(model: Any) -> str:
    """Tree, forest or, of a conjunction or disjunction, rule."""
    return str(model.kind) if model.kind in ("tree", "forest") else "rule"


def _describe_rules(learner: Any) -> list[Plain]:
    """The rules of a chain: samples covered, importance, and equivalent rules."""
    model = learner.model_
    parts = model.rules, learner.rule_importances_.tolist(), learner.equivalent_rules_
    return [
        {
            "number": i + 1,
            "text": str(rule),
            "feature": format_name(rule.feature),
            "importance": importance,
            "n_covered": count_samples(model.leaves[i]),
            "equivalent": [*map(str, equivalent)],
        }
        for i, (rule, importance, equivalent) in enumerate(zip(*parts, strict=True))
    ]


def _describe_trees(model: Any) -> Plain:
    """Number and sizes of the trees of a forest, and how many of them use each column."""
    sizes = [len(tree.leaves) for tree in model.trees]
    return {
        "n_trees": len(sizes),
        "n_leaves": [min(sizes), max(sizes)],
        "uses": [
            {"feature": format_name(feature), "n_trees": n, "share": n / len(sizes)}
            for feature, n in model.count_uses().items()
        ],
    }


def _describe_discarded(model: Any, errors: Plain, names: Names) -> Plain:
    """Rules that were found and are no better than the baseline, so that the model has none."""
    own = describe_errors(model, names)
    is_worse = own["n_errors"] >= errors["n_errors"]
    text = write_text("discarded", model=model, own=own, errors=errors)
    worth = "no better than" if is_worse else "too little better than"  # than min_utility requires
    return {"text": str(model), "errors": own, "explanation": text, "worth": worth}
