"""A model in words, for an e-mail or a paper."""

from __future__ import annotations

from icscm.export.branches import make_leaves, say_origin, say_refused
from icscm.model.rule_sets import RuleSet
from icscm.model.rules import CategoryRule
from icscm.model.saved import SavedModel
from icscm.showing import align
from icscm.text import as_text, format_level, format_name


def make_text(saved: SavedModel) -> str:
    """The rule in words and tables of its leaves."""
    probability = (
        "The first line that is true of a sample decides. The probability is\n"
        f"(samples of {format_level(saved.classes[1])} + 1) / (samples + 2)."
    )
    parts = [_say_rule(saved), _list_pools(saved.model), "\n".join(make_leaf_table(saved))]
    parts += [probability, _make_environment_table(saved), *say_refused(saved), say_origin(saved)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _say_rule(saved: SavedModel) -> str:
    negative, positive = map(format_level, saved.classes)
    model = saved.model
    if not model.rules:
        always = positive if model.leaf_verdicts[0] else negative
        return f"Predicts {always} for every sample: {model}."
    rules = f"\n   {model.joiner}".join(map(str, model.simple_rules))
    return f"Predicts {positive} where\n\n    {rules}\n\nand {negative} elsewhere."


def _list_pools(model: RuleSet) -> str:
    """The levels that a rule sums up as rare."""
    return "\n".join(
        f"The rare levels of {format_name(rule.feature)}: "
        f"{', '.join(map(format_level, rule.levels))}."
        for rule in model.rules
        if isinstance(rule, CategoryRule) and rule.pooled
    )


def make_leaf_table(saved: SavedModel) -> list[str]:
    """A line for each leaf."""
    negative, positive = map(format_level, saved.classes)
    header = ["decided by", "predicts", f"probability of {positive}", negative, positive]
    rows = [header]
    for leaf in make_leaves(saved):
        counts = (f"{count:,}" for count in leaf.training_samples)
        predicts, probability = format_level(leaf.prediction), f"{leaf.probability:.4f}"
        rows.append([leaf.decided_by, predicts, probability, *counts])
    return align(rows, n_text=2)


def _make_environment_table(saved: SavedModel) -> str:
    """Positive samples of all in each leaf, a line for each environment."""
    if saved.environments is None:
        return ""
    positive = format_level(saved.classes[1])
    columns = [["environment", *map(as_text, saved.environments)]]
    for number, (negatives, positives) in enumerate(saved.model.leaves, start=1):
        pairs = zip(negatives, positives, strict=True)
        columns.append([f"line {number}", *(f"{k:,} / {n + k:,}" for n, k in pairs)])
    title = f"Samples of {positive} / all samples, by environment and line of the table above:"
    return "\n".join([title, "", *align(list(zip(*columns, strict=True)), n_text=1)])
