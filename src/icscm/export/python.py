"""A model as a module that needs nothing but Python."""

from __future__ import annotations

from icscm.export.branches import (
    Branch,
    Leaf,
    fill_template,
    find_absent,
    make_branches,
    say_origin,
)
from icscm.export.prose import make_leaf_table
from icscm.model.saved import SavedModel
from icscm.tables.columns import Level
from icscm.text import format_exactly, format_level


def make_python(saved: SavedModel) -> str:
    """A module that predicts, without imports."""
    branches, last = make_branches(saved)
    absent = find_absent(saved)
    readers = [_find_reader(each, has_texts=absent is not None) for each in branches]
    sets: dict[str, tuple[Level, ...]] = {
        f"LEVELS_{number}": each.value
        for number, each in enumerate(branches, start=1)
        if isinstance(each.value, tuple) and _is_pool(each.value)
    }
    if absent is not None and any(readers):
        sets["MISSING_TEXTS"] = absent.texts
        sets |= {"MISSING_NUMBERS": absent.numbers} if absent.numbers else {}
    return fill_template(
        "model.py.txt",
        saved,
        facts=_escape(f"{say_origin(saved)}\n\n    {saved}"),
        keys="name" if saved.has_names else "position",
        positive=_escape(format_level(saved.classes[1])),
        leaves=map(_escape, make_leaf_table(saved)),
        absent=absent,
        stripped="value.strip()" if absent is None or absent.is_trimmed else "value",
        sets={name: map(quote_python, values) for name, values in sets.items()},
        readers=readers,
        branches=[
            (_read_value(each, reader), _make_condition(number, each), _make_leaf(each.then))
            for number, (each, reader) in enumerate(zip(branches, readers, strict=True), start=1)
        ],
        last=_make_leaf(last),
    )


def _escape(text: str) -> str:
    """Text inside a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _find_reader(branch: Branch, *, has_texts: bool) -> str:
    """The function that makes a value comparable; none where there is nothing to do."""
    if branch.compares == "numbers":
        return "as_number"
    return {"booleans": "as_boolean", "text": "as_level"}[branch.compares] if has_texts else ""


def _read_value(branch: Branch, reader: str) -> str:
    value = f"row[{quote_python(branch.position if branch.column is None else branch.column)}]"
    return f"{reader}({value})" if reader else value


def _make_condition(number: int, branch: Branch) -> str:
    """The condition; None and NaN equal no level, so only comparisons need to ask for them."""
    if branch.value is None:
        return "is_missing(value)" if branch.if_missing else "not is_missing(value)"
    if not isinstance(branch.value, tuple):
        truth = f"value {branch.operator} {format_exactly(branch.value)}"
    elif _is_pool(branch.value):
        truth = f"value {branch.operator} LEVELS_{number}"
    else:
        truth = f"value {'==' if branch.operator == 'in' else '!='} {quote_python(branch.value[0])}"
    if branch.operator == ("not in" if branch.if_missing else "in"):
        return truth
    start = "is_missing(value) or" if branch.if_missing else "not is_missing(value) and"
    return f"{start} {truth}"


def _is_pool(levels: tuple[Level, ...]) -> bool:
    """Whether levels stand apart: several, or booleans, which `==` is not meant for."""
    return len(levels) > 1 or isinstance(levels[0], bool)


def _make_leaf(leaf: Leaf) -> str:
    above, below = leaf.fraction or (leaf.probability, 1)
    return f"{quote_python(leaf.prediction)}, {above} / {below}, {quote_python(leaf.decided_by)}"


def quote_python(value: Level) -> str:
    """A literal: `repr`, with the quotes that most code has where the text allows them.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    literal = repr(value)
    is_simple = isinstance(value, str) and literal == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_simple else literal
