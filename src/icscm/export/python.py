"""A model as a module that needs nothing but Python."""

from __future__ import annotations

from collections.abc import Sequence

from icscm.export.branches import (
    Absent,
    Branch,
    Leaf,
    find_absent,
    indent,
    list_facts,
    make_branches,
    say_refused,
)
from icscm.export.prose import make_leaf_table
from icscm.model.parsing import NUMBER
from icscm.model.saved import SavedModel
from icscm.tables.columns import Level
from icscm.text import format_level, format_number

_PYTHON_HEADER = """\
{facts}
`predict(row)` takes one sample, a dict of its columns by {keys}, and returns the class, the
probability of {positive}, and what decided. None and NaN are missing values; a column that is
not there is a KeyError.{missing}{refused}

The leaves, in the order in which they are tried:

{leaves}
"""


_PYTHON_IS_MISSING = '''

def is_missing(value):
    """Whether a value is None or NaN, which alone does not equal itself."""
    return value is None or value != value
'''


_PYTHON_AS_NUMBER = '''

def as_number(value):
    """A number to compare; a Decimal would go by digits that no threshold has."""
{of_text}    if value is not None and not hasattr(value, "__index__"):
        value = float(value)
    return {result}
'''


_PYTHON_OF_TEXT = """\
    if isinstance(value, str):
        value = {stripped}
        if value in MISSING_TEXTS:
            return None
        value = int(value) if value.isdecimal() else float(value)
"""


_PYTHON_AS_LEVEL = '''

def as_level(value):
    """A category{trimmed}; None where the text stands for a missing value."""
    value = {stripped} if isinstance(value, str) else value
    return None if isinstance(value, str) and value in MISSING_TEXTS else value
'''


_PYTHON_AS_BOOLEAN = '''

def as_boolean(value):
    """True and False, also where they are written as text."""
    value = as_level(value)
    is_text = isinstance(value, str)
    return {"true": True, "false": False}.get(value.lower(), value) if is_text else value
'''


_PYTHON_PREDICT = '''

def predict(row):
    """The class, the probability of the positive one, and what decided."""
'''


def make_python(saved: SavedModel) -> str:
    """A module that predicts, without imports."""
    branches, last = make_branches(saved)
    absent = find_absent(saved)
    sets = [
        _make_set(f"LEVELS_{number + 1}", each.value)
        for number, each in enumerate(branches)
        if _is_pool(each) and isinstance(each.value, tuple)
    ]
    readers = [_find_reader(branch, absent) for branch in branches]
    if absent is not None and any(readers):
        sets += [_make_set("MISSING_TEXTS", absent.texts)]
        sets += [_make_set("MISSING_NUMBERS", absent.numbers)] * bool(absent.numbers)
    parts = [_make_docstring(saved, absent)] + ["\n"] * bool(sets) + sets
    parts += [_PYTHON_IS_MISSING] * bool(branches) + _make_readers({*readers}, absent)
    parts += [_PYTHON_PREDICT]
    parts += [
        _make_python_branch(number, each, reader)
        for number, (each, reader) in enumerate(zip(branches, readers, strict=True))
    ]
    parts += [f"    return {_make_python_leaf(last)}\n"]
    return "".join(parts)


def _find_reader(branch: Branch, absent: Absent | None) -> str:
    """The function that makes a value comparable; none where there is nothing to do."""
    if branch.type == NUMBER or branch.has_number_levels:
        return "as_number"
    if absent is None:
        return ""
    is_boolean = isinstance(branch.value, tuple) and isinstance(branch.value[0], bool)
    return "as_boolean" if is_boolean else "as_level"


def _make_readers(used: set[str], absent: Absent | None) -> list[str]:
    """The functions that the branches call."""
    stripped = "value.strip()" if absent is None or absent.is_trimmed else "value"
    trimmed = " without the spaces around it" if stripped != "value" else ""
    found = []
    if "as_number" in used:
        of_text = "" if absent is None else _PYTHON_OF_TEXT.format(stripped=stripped)
        has_numbers = absent is not None and absent.numbers
        result = "None if value in MISSING_NUMBERS else value" if has_numbers else "value"
        found.append(_PYTHON_AS_NUMBER.format(of_text=of_text, result=result))
    if used & {"as_level", "as_boolean"}:
        found.append(_PYTHON_AS_LEVEL.format(stripped=stripped, trimmed=trimmed))
    return found + [_PYTHON_AS_BOOLEAN] * ("as_boolean" in used)


def _make_docstring(saved: SavedModel, absent: Absent | None) -> str:
    text = _PYTHON_HEADER.format(
        facts="\n".join(list_facts(saved)),
        keys="position" if saved.features[0].name is None else "name",
        positive=format_level(saved.classes[1]),
        missing=""
        if absent is None
        else "\nText in MISSING_TEXTS is missing, as it was at fitting.",
        refused="".join(f"\n{line}" for line in say_refused(saved)),
        leaves=indent(make_leaf_table(saved)),
    )
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{escaped}"""\n'


def _make_python_branch(number: int, branch: Branch, reader: str) -> str:
    key = branch.column if branch.name is None else branch.name
    value = f"row[{quote_python(key)}]"
    return (
        f"    value = {f'{reader}({value})' if reader else value}\n"
        f"    if {_make_python_condition(number, branch)}:\n"
        f"        return {_make_python_leaf(branch.leaf)}\n"
    )


def _make_python_condition(number: int, branch: Branch) -> str:
    """The condition; None and NaN equal no level, so only comparisons need to ask for them."""
    if branch.value is None:
        return "is_missing(value)" if branch.if_missing else "not is_missing(value)"
    truth = _compare_python(number, branch)
    if branch.operator == ("not in" if branch.if_missing else "in"):
        return truth
    return (
        f"is_missing(value) or {truth}"
        if branch.if_missing
        else f"not is_missing(value) and {truth}"
    )


def _compare_python(number: int, branch: Branch) -> str:
    if _is_pool(branch):
        return f"value {branch.operator} LEVELS_{number + 1}"
    if isinstance(branch.value, tuple):
        return f"value {'==' if branch.operator == 'in' else '!='} {quote_python(branch.value[0])}"
    return f"value {branch.operator} {format_number(branch.value or 0)}"


def _is_pool(branch: Branch) -> bool:
    """Whether its levels stand apart: several, or booleans, which `==` is not meant for."""
    levels = branch.value
    return isinstance(levels, tuple) and (len(levels) > 1 or isinstance(levels[0], bool))


def _make_set(name: str, values: Sequence[Level]) -> str:
    lines = "".join(f"    {quote_python(value)},\n" for value in values)
    return f"{name} = {{\n{lines}}}\n"


def _make_python_leaf(leaf: Leaf) -> str:
    above, below = leaf.fraction or (leaf.probability, 1)
    return f"{quote_python(leaf.label)}, {above} / {below}, {quote_python(leaf.decided_by)}"


def quote_python(value: Level) -> str:
    """A literal: `repr`, with the quotes that most code has where the text allows them.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    literal = repr(value)
    is_simple = isinstance(value, str) and literal == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_simple else literal
