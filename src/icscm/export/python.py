"""A model as a Python module without dependencies."""

from __future__ import annotations

from icscm.export.conditions import (
    Condition,
    Leaf,
    describe_origin,
    fill_template,
    find_absent,
    list_trees,
    make_condition,
    make_leaves,
)
from icscm.formatting import count, format_exactly, format_level
from icscm.model.forest import Forest
from icscm.model.saved import SavedModel
from icscm.tables.columns import Level


def make_python(saved: SavedModel) -> str:
    """A module that predicts, without imports.

    It holds tables of rules, splits and leaves: nested blocks would reach Python's limit of 100.
    """
    model, absent = saved.model, find_absent(saved)
    rules = dict.fromkeys(model.rules)
    numbers = {rule: number for number, rule in enumerate(rules)}
    conditions = [make_condition(rule, saved) for rule in rules]
    readers = [_find_reader(each, has_texts=absent is not None) for each in conditions]
    sets: dict[str, tuple[Level, ...]] = {}
    if absent is not None and any(readers):
        sets["MISSING_TEXTS"] = absent.texts
        sets |= {"MISSING_NUMBERS": absent.numbers} if absent.numbers else {}
    is_forest = isinstance(model, Forest)
    trees = [
        (
            [(numbers[each.rule], each.if_true, each.if_false) for each in tree.splits],
            [_make_leaf(leaf, saved, is_forest=is_forest) for leaf in make_leaves(saved, tree)],
        )
        for tree in list_trees(model)
    ]
    lines = str(saved).replace("\n", "\n    ")
    negative, positive = map(quote_python, saved.classes)
    return fill_template(
        "model.py.txt",
        saved,
        facts=_escape(f"{describe_origin(saved)}\n\n    {lines}"),
        keys="name" if saved.has_names else "position",
        positive=_escape(format_level(saved.classes[1])),
        absent=absent,
        stripped="value.strip()" if absent is None or absent.is_trimmed else "value",
        sets={name: map(quote_python, values) for name, values in sets.items()},
        readers=readers,
        rules=map(_make_rule, conditions, readers),
        trees=trees,
        is_forest=is_forest,
        n_trees=count(len(trees), "tree"),
        negative_literal=negative,
        positive_literal=positive,
    )


def _escape(text: str) -> str:
    """Text inside a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _find_reader(condition: Condition, *, has_texts: bool) -> str:
    """Name of the function that converts a value for comparison, or an empty text."""
    if condition.compares == "numbers":
        return "as_number"
    return {"booleans": "as_boolean", "text": "as_level"}[condition.compares] if has_texts else ""


def _make_leaf(leaf: Leaf, saved: SavedModel, *, is_forest: bool) -> str:
    """What `predict` returns for a leaf; in a forest what is summed over its trees."""
    above, below = leaf.fraction or (leaf.probability, 1)
    if is_forest:
        return f"{above} / {below}, {leaf.prediction == saved.classes[1]}"
    return f"{quote_python(leaf.prediction)}, {above} / {below}, {quote_python(leaf.decided_by)}"


def _make_rule(condition: Condition, reader: str) -> str:
    """An entry of the table of rules; being missing leaves nothing to compare."""
    value = "()"
    if isinstance(condition.value, tuple):
        value = f"{{{', '.join(map(quote_python, condition.value))}}}"
    elif condition.value is not None:
        value = format_exactly(condition.value)
    operator = "in" if condition.operator == "is missing" else condition.operator
    operator = "not in" if operator == "is present" else operator
    column = quote_python(condition.position if condition.column is None else condition.column)
    return f'{column}, {reader or "as_found"}, "{operator}", {value}, {condition.if_missing}'


def quote_python(value: Level) -> str:
    """A literal: `repr`, with the quotes that most code has where the text allows them.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    literal = repr(value)
    is_simple = isinstance(value, str) and literal == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_simple else literal
