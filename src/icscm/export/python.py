"""A model as a module that needs nothing but Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from icscm.export.branches import (
    Condition,
    Leaf,
    fill_template,
    find_absent,
    list_trees,
    make_branches,
    make_condition,
    make_leaves,
    say_origin,
)
from icscm.export.prose import make_leaf_table
from icscm.formatting import count, format_exactly, format_level
from icscm.model.forests import Forest
from icscm.model.rule_sets import RuleSet
from icscm.model.saved import SavedModel
from icscm.model.trees import Tree
from icscm.tables.columns import Level


def make_python(saved: SavedModel) -> str:
    """A module that predicts, without imports."""
    if isinstance(saved.model, RuleSet):
        return _make_list(saved, saved.model)
    return _make_trees(saved, saved.model)


def _make_list(saved: SavedModel, model: RuleSet) -> str:
    """Conditions one after the other."""
    branches, last = make_branches(saved, model)
    asked = [each.condition for each in branches]
    pools: dict[str, tuple[Level, ...]] = {
        f"LEVELS_{number}": each.value
        for number, each in enumerate(asked, start=1)
        if isinstance(each.value, tuple) and _is_pool(each.value)
    }
    frame = _make_frame(saved, asked, pools)
    return fill_template(
        "model.py.txt",
        saved,
        **frame,
        leaves=map(_escape, make_leaf_table(saved, model)),
        branches=[
            (_read_value(each, reader), _make_condition(number, each), _make_leaf(branch.then))
            for number, (branch, each, reader) in enumerate(
                zip(branches, asked, frame["readers"], strict=True), start=1
            )
        ],
        last=_make_leaf(last),
    )


def _make_trees(saved: SavedModel, model: Tree | Forest) -> str:
    """Tables of rules, splits and leaves: nested blocks would reach Python's limit of 100."""
    rules = dict.fromkeys(model.rules)
    numbers = {rule: number for number, rule in enumerate(rules)}
    asked = [make_condition(rule, saved, is_true=True) for rule in rules]
    frame = _make_frame(saved, asked, {})
    negative, positive = map(quote_python, saved.classes)
    make_leaf = _make_leaf if isinstance(model, Tree) else partial(_make_vote, saved)
    return fill_template(
        "trees.py.txt",
        saved,
        **frame,
        rules=map(_make_rule, asked, frame["readers"]),
        trees=[
            (
                [(numbers[each.rule], each.if_true, each.if_false) for each in tree.splits],
                [make_leaf(leaf) for leaf in make_leaves(saved, tree)],
            )
            for tree in list_trees(model)
        ],
        is_forest=isinstance(model, Forest),
        n_trees=count(len(list_trees(model)), "tree"),
        negative_literal=negative,
        positive_literal=positive,
    )


def _make_frame(
    saved: SavedModel, asked: Sequence[Condition], pools: dict[str, tuple[Level, ...]]
) -> dict[str, Any]:
    """What all modules have: words about the model, what means missing, how values are read."""
    absent = find_absent(saved)
    readers = [_find_reader(each, has_texts=absent is not None) for each in asked]
    sets = dict(pools)
    if absent is not None and any(readers):
        sets["MISSING_TEXTS"] = absent.texts
        sets |= {"MISSING_NUMBERS": absent.numbers} if absent.numbers else {}
    lines = str(saved).replace("\n", "\n    ")
    return {
        "facts": _escape(f"{say_origin(saved)}\n\n    {lines}"),
        "keys": "name" if saved.has_names else "position",
        "positive": _escape(format_level(saved.classes[1])),
        "absent": absent,
        "stripped": "value.strip()" if absent is None or absent.is_trimmed else "value",
        "sets": {name: map(quote_python, values) for name, values in sets.items()},
        "readers": readers,
        "is_asking": bool(asked) or not isinstance(saved.model, RuleSet),
    }


def _escape(text: str) -> str:
    """Text inside a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _find_reader(condition: Condition, *, has_texts: bool) -> str:
    """The function that makes a value comparable; none where there is nothing to do."""
    if condition.compares == "numbers":
        return "as_number"
    return {"booleans": "as_boolean", "text": "as_level"}[condition.compares] if has_texts else ""


def _read_value(condition: Condition, reader: str) -> str:
    value = f"row[{_quote_column(condition)}]"
    return f"{reader}({value})" if reader else value


def _quote_column(condition: Condition) -> str:
    return quote_python(condition.position if condition.column is None else condition.column)


def _make_condition(number: int, condition: Condition) -> str:
    """The condition; None and NaN equal no level, so only comparisons need to ask for them."""
    if condition.value is None:
        return "is_missing(value)" if condition.if_missing else "not is_missing(value)"
    if not isinstance(condition.value, tuple):
        truth = f"value {condition.operator} {format_exactly(condition.value)}"
    elif _is_pool(condition.value):
        truth = f"value {condition.operator} LEVELS_{number}"
    else:
        sign = "==" if condition.operator == "in" else "!="
        truth = f"value {sign} {quote_python(condition.value[0])}"
    if condition.operator == ("not in" if condition.if_missing else "in"):
        return truth
    start = "is_missing(value) or" if condition.if_missing else "not is_missing(value) and"
    return f"{start} {truth}"


def _is_pool(levels: tuple[Level, ...]) -> bool:
    """Whether levels stand apart: several, or booleans, which `==` is not meant for."""
    return len(levels) > 1 or isinstance(levels[0], bool)


def _make_leaf(leaf: Leaf) -> str:
    above, below = leaf.fraction or (leaf.probability, 1)
    return f"{quote_python(leaf.prediction)}, {above} / {below}, {quote_python(leaf.decided_by)}"


def _make_vote(saved: SavedModel, leaf: Leaf) -> str:
    above, below = leaf.fraction or (leaf.probability, 1)
    return f"{above} / {below}, {leaf.prediction == saved.classes[1]}"


def _make_rule(condition: Condition, reader: str) -> str:
    """An entry of the table of rules; of being missing nothing is left to compare."""
    value = "()"
    if isinstance(condition.value, tuple):
        value = f"{{{', '.join(map(quote_python, condition.value))}}}"
    elif condition.value is not None:
        value = format_exactly(condition.value)
    operator = "in" if condition.operator == "is missing" else condition.operator
    operator = "not in" if operator == "is present" else operator
    start = f"{_quote_column(condition)}, {reader or 'as_found'}"
    return f'{start}, "{operator}", {value}, {condition.if_missing}'


def quote_python(value: Level) -> str:
    """A literal: `repr`, with the quotes that most code has where the text allows them.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    literal = repr(value)
    is_simple = isinstance(value, str) and literal == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_simple else literal
