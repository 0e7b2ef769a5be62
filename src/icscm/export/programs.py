"""A model as a program in Python or R that needs nothing else.

A program holds tables of rules, splits and leaves, and functions that follow them for a row:

    RULES = [("age", as_number, ">", 63, False)]        column, reader, operator, value, if_missing
    TREES = [([(0, -1, -2, 0.4)], [(8 / 12, "yes", "age > 63"), (2 / 24, "no", "age <= 63")])]

As nested blocks, a tree would reach Python's limit of 100 levels. The functions are the same in
every program of a language; only the tables differ. The templates write the tables from the records
below; a *reader* is the function of a program that turns a value into what a rule compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icscm.exceptions import IcscmError
from icscm.export.conditions import (
    ComparedKind,
    Condition,
    Leaf,
    MissingTexts,
    find_missing_texts,
    list_known_columns,
    list_reported_columns,
    list_trees,
    make_condition,
    make_leaves,
)
from icscm.export.templates import describe_origin, fill_template
from icscm.formatting import escape_controls, format_exactly, format_level
from icscm.model.rules import Rule
from icscm.model.saved import SavedModel
from icscm.model.score import Score
from icscm.model.tree import Tree
from icscm.tables.columns import Level

# Digits of a number that R reads exactly.
MAX_R_DIGITS: Final = 15
# Characters of a literal; R reads none of more than 10,000 if codes such as \U{e9} are in it.
MAX_R_TEXT: Final = 5_000


@dataclass(frozen=True)
class ProgramRule:
    """A rule of a program: its condition, and the reader of its column; "" if it needs none."""

    condition: Condition
    reader: str


@dataclass(frozen=True)
class ProgramColumn:
    """A column that is named in predictions: where it is, how it is read, and its name.

    `compares` is what its rules compare, and `levels` those that training had, if they are known.
    """

    column: str | int
    reader: str
    compares: ComparedKind
    name: str
    levels: tuple[Level, ...] | None


@dataclass(frozen=True)
class ProgramSplit:
    """A split: the number of its rule, its children, and the share of rows where it is true.

    A child is the number of a split, or below 0 a leaf (see `icscm.model.splits`).
    """

    rule: int
    if_true: int
    if_false: int
    share: float


@dataclass(frozen=True)
class ProgramTree:
    """A tree of a program."""

    splits: Sequence[ProgramSplit]
    leaves: Sequence[Leaf]


@dataclass(frozen=True)
class ProgramPoints:
    """The number of a rule, and the points of rows of which it is true."""

    rule: int
    points: int


def make_python(saved: SavedModel) -> str:
    """Write a module with a function `predict(row)`."""
    return _make_program(saved, template="model.py.txt", quote=quote_python)


def make_r(saved: SavedModel) -> str:
    """Write a function `predict_model(data)` of base R."""
    return _make_program(saved, template="model.r.txt", quote=quote_r)


def _make_program(saved: SavedModel, *, template: str, quote: Callable[[Any], str]) -> str:
    """Fill in the template of a language, in which `quote` writes literals.

    Trees name rules by their numbers, so that a rule of several trees is written once.
    """
    model = saved.model
    missing = find_missing_texts(saved)
    distinct_rules = list(dict.fromkeys(model.rules))
    rule_numbers = {rule: number for number, rule in enumerate(distinct_rules)}
    rules = [_make_rule(saved, rule, missing) for rule in distinct_rules]
    readers = [rule.reader for rule in rules]

    reported_columns = [
        _make_column(make_condition(column.rule, saved), name=column.name, missing=missing)
        for column in list_reported_columns(model)
    ]
    known_columns = [
        _make_column(column.make_unknown_condition(), name=column.name, missing=missing)
        for column in list_known_columns(saved)
    ]
    return fill_template(
        template,
        saved,
        facts=_escape_docstring(_describe_facts(saved)),
        positive=_escape_docstring(format_level(saved.classes[1])),
        stripped="value.strip()" if missing is None or missing.is_trimmed else "value",
        sets=_make_sets(missing) if any(readers) else {},
        readers=readers,
        rules=rules,
        unsure=reported_columns,
        known=known_columns,
        trees=[_make_tree(saved, tree, rule_numbers) for tree in list_trees(model)],
        columns=_make_columns(model, rule_numbers) if isinstance(model, Score) else [],
        quote=quote,
        exact=format_exactly,
    )


def _describe_facts(saved: SavedModel) -> str:
    """Describe where the model comes from, and what it is, its lines indented."""
    model_lines = str(saved).replace("\n", "\n    ")
    return f"{describe_origin(saved)}\n\n    {model_lines}"


def _make_rule(saved: SavedModel, rule: Rule, missing: MissingTexts | None) -> ProgramRule:
    condition = make_condition(rule, saved)
    return ProgramRule(condition, reader=_choose_reader(condition, missing))


def _make_column(condition: Condition, *, name: str, missing: MissingTexts | None) -> ProgramColumn:
    """Make the record of the column of a condition, with its name in predictions."""
    return ProgramColumn(
        column=condition.position if condition.column is None else condition.column,
        reader=_choose_reader(condition, missing),
        compares=condition.compares,
        name=name,
        levels=condition.value if isinstance(condition.value, tuple) else condition.known,
    )


def _choose_reader(condition: Condition, missing: MissingTexts | None) -> str:
    """Choose the reader of the column of a condition; "" where values are compared as they are."""
    if condition.compares == "numbers":
        return "as_number"
    if missing is None:
        return ""
    return "as_boolean" if condition.compares == "booleans" else "as_level"


def _make_sets(missing: MissingTexts | None) -> dict[str, tuple[Level, ...]]:
    """Make the sets that a program compares values with, by their names in it."""
    if missing is None:
        return {}
    sets: dict[str, tuple[Level, ...]] = {"MISSING_TEXTS": missing.texts}
    if missing.numbers:
        sets["MISSING_NUMBERS"] = missing.numbers
    return sets


def _make_tree(saved: SavedModel, tree: Tree, rule_numbers: dict[Rule, int]) -> ProgramTree:
    """Make a tree whose splits name their rules by number."""
    splits = [
        ProgramSplit(
            rule=rule_numbers[split.rule],
            if_true=split.if_true,
            if_false=split.if_false,
            share=share,
        )
        for split, share in zip(tree.splits, tree.shares, strict=True)
    ]
    return ProgramTree(splits, make_leaves(saved, tree))


def _make_columns(model: Score, rule_numbers: dict[Rule, int]) -> list[list[ProgramPoints]]:
    """Make for each column of a score the numbers of its rules, with their points."""
    return [
        [ProgramPoints(rule_numbers[term.rule], term.points) for term in terms]
        for terms in model.list_columns()
    ]


def _escape_docstring(text: str) -> str:
    """Escape what would end a docstring of Python, or be read as another character in it."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def quote_python(value: Level | tuple[Level, ...]) -> str:
    """Write a Python literal: `repr` with double quotes where possible, or a set.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    if isinstance(value, tuple):
        elements = ", ".join(map(quote_python, value))
        return f"{{{elements}}}"
    literal = repr(value)
    needs_no_escapes = literal == f"'{value}'" and '"' not in literal
    return f'"{value}"' if isinstance(value, str) and needs_no_escapes else literal


def quote_r(value: Any) -> str:
    r"""Write a literal of R; numbers that R may misread in the last bit are hexadecimal, as in C.

    >>> print(quote_r(("age", "\xe9")), quote_r(2.5), quote_r(1 / 3), quote_r(True))
    c("age", "\U{e9}") 2.5 0x1.5555555555555p-2 TRUE
    """
    if isinstance(value, list | tuple):
        elements = ", ".join(map(quote_r, value))
        return f"c({elements})"
    if isinstance(value, str):
        return _quote_r_text(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    digits = repr(value)
    is_exact_in_r = "e" not in digits and len(digits) <= MAX_R_DIGITS
    return digits if is_exact_in_r else float(value).hex()


def _quote_r_text(text: str) -> str:
    """Write a text as a literal of R or, if R could not read it, as a call that pastes parts."""
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    if has_surrogates or "\0" in text:
        raise IcscmError(
            f"{escape_controls(repr(text))} holds a character that R cannot; rename it, or export "
            "to 'python' or 'json'"
        )
    if len(text) > MAX_R_TEXT:
        starts = range(0, len(text), MAX_R_TEXT)
        parts = [_quote_r_text(text[start : start + MAX_R_TEXT]) for start in starts]
        arguments = ", ".join(parts)
        return f"paste0({arguments})"
    content = "".join(map(_quote_r_character, text))
    return f'"{content}"'


def _quote_r_character(character: str) -> str:
    """Write a character as it is, or by its code if R or an encoding could misread it."""
    is_plain = " " <= character <= "~" and character not in '"\\'
    return character if is_plain else f"\\U{{{ord(character):x}}}"
