"""A model as text, for an e-mail or a paper."""

from __future__ import annotations

from icscm._repr import align
from icscm.export.conditions import describe_missing_error, describe_origin, make_leaves
from icscm.formatting import as_text, format_level, format_name
from icscm.model.forest import Forest, Model
from icscm.model.rules import CategoryRule
from icscm.model.saved import SavedModel
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree


def make_text(saved: SavedModel) -> str:
    """The rule or tree with tables of its leaves; of a forest a summary."""
    model = saved.model
    if isinstance(model, Forest):
        parts = [_say_forest(saved, model), _list_pools(model)]
    else:
        table, places = make_leaf_table(saved, model), _make_environment_table(saved, model)
        parts = [_say_rule(saved, model), _list_pools(model), "\n".join(table)]
        parts += [_say_probability(saved, model), places]
    parts += [*describe_missing_error(saved), describe_origin(saved)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _say_probability(saved: SavedModel, model: Tree) -> str:
    first, mean = "The first line that is true of a sample decides.", ""
    if not model.is_chain:
        first = "Each sample is in one of these leaves."
        mean = " in the\nmean over the environments that have samples there" * model.balanced
    positive = format_level(saved.classes[1])
    return f"{first} The probability is\n(samples of {positive} + 1) / (samples + 2){mean}."


def _say_forest(saved: SavedModel, model: Forest) -> str:
    negative, positive = map(format_level, saved.classes)
    return (
        f"Predicts {positive} where the mean of the probabilities that its trees give exceeds "
        f"1/2,\nand {negative} elsewhere: a {model}\n\n"
        "All its trees are in the exports to 'python', 'sql' and 'json'."
    )


def _say_rule(saved: SavedModel, model: Tree) -> str:
    negative, positive = map(format_level, saved.classes)
    if not model.rules:
        always = positive if model.leaf_verdicts[0] else negative
        return f"Predicts {always} for every sample: {model}."
    if not model.is_chain:
        lines = str(model).replace("\n", "\n    ")
        start = f"Predicts {positive} in leaves marked positive and {negative} in others"
        return f"{start} (shares are of {positive}):\n\n    {lines}"
    rules = f"\n   {CHAINS[model.kind].joiner}".join(map(str, model.simple_rules))
    return f"Predicts {positive} where\n\n    {rules}\n\nand {negative} elsewhere."


def _list_pools(model: Model) -> str:
    """The levels that rules pool as rare."""
    return "\n".join(
        f"The rare levels of {format_name(rule.feature)}: "
        f"{', '.join(map(format_level, rule.levels))}."
        for rule in model.rules
        if isinstance(rule, CategoryRule) and rule.pooled
    )


def make_leaf_table(saved: SavedModel, model: Tree) -> list[str]:
    """A line for each leaf."""
    negative, positive = map(format_level, saved.classes)
    header = ["decided by", "predicts", f"probability of {positive}", negative, positive]
    rows = [header]
    for leaf in make_leaves(saved, model):
        counts = (f"{count:,}" for count in leaf.training_samples)
        predicts, probability = format_level(leaf.prediction), f"{leaf.probability:.4f}"
        rows.append([leaf.decided_by, predicts, probability, *counts])
    return align(rows, n_text=2)


def _make_environment_table(saved: SavedModel, model: Tree) -> str:
    """Positive samples / all samples by leaf and environment; a tree has a line for each leaf."""
    if saved.environments is None:
        return ""
    positive = format_level(saved.classes[1])
    columns = [["environment", *map(as_text, saved.environments)]]
    for number, (negatives, positives) in enumerate(model.leaves, start=1):
        pairs = zip(negatives, positives, strict=True)
        columns.append([f"line {number}", *(f"{k:,} / {n + k:,}" for n, k in pairs)])
    title = f"Samples of {positive} / all samples, by environment and line of the table above:"
    rows = list(zip(*columns, strict=True)) if model.is_chain else columns
    return "\n".join([title, "", *align(rows, n_text=1)])
