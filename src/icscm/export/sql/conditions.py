"""Conditions on a column in SQL; NULL, NaN and texts that mean missing are treated as by the rule.

There are two forms of a condition. A model that was fitted on a table of typed columns, in which
only NULL and NaN are missing, has the *plain* form, `d."age" > 63`. A model that was fitted on a
file whose texts such as "?" mean missing has the *guarded* form, which looks for these texts first.

A CASE takes NULL for false: where missing is false, or was decided before, NULL needs no mention.
Columns are written with their table (d."age"), since SQLite reads a lone "age" as text where there
is no such column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from icscm._constants import LARGEST_EXACT
from icscm.export.conditions import Condition, MissingTexts
from icscm.export.sql.literals import (
    format_sql_number,
    quote_level,
    quote_name,
    quote_text,
    write_is_in,
)
from icscm.formatting import format_name
from icscm.model.parsing import NUMBER

# Above every number but NaN, which DuckDB holds to be larger.
_INFINITY: Final = "9e999"
_NAN_TEXTS: Final = ("NaN", "nan", "-nan")


@dataclass(frozen=True)
class ConditionWriter:
    """Writes conditions for a table; `missing` has the texts that mean missing in it, if any."""

    missing: MissingTexts | None

    def write(self, condition: Condition) -> str:
        """Write a condition."""
        name = format_name(condition.position) if condition.column is None else condition.column
        column = f"d.{quote_name(name)}"
        is_number = condition.compares == "numbers"
        if self.missing is None:
            write_plain = _write_plain_number if is_number else _write_plain_text
            return write_plain(condition, column)
        write_guarded = _write_guarded_number if is_number else _write_guarded_text
        return write_guarded(condition, column, self.missing)

    def write_is_missing(self, condition: Condition) -> str:
        """Write that the value which a condition needs is missing."""
        return self.write(replace(condition, operator="is missing", if_missing=True))


# --- columns in which NULL and NaN are missing ----------------------------------------------------


def _write_plain_number(condition: Condition, column: str) -> str:
    """Write a condition on a column of numbers.

    NaN is greater than any threshold, and is in no list: `>` and `NOT IN` are true of it.
    """
    number = _cast_number(condition, column) if condition.type == NUMBER else column
    is_null = f"{column} IS NULL"
    is_nan = f"{number} > {_INFINITY}"
    is_not_nan = f"{number} <= {_INFINITY}"

    comparison = _compare(condition, number)
    if comparison is None:
        return f"{is_null} OR {is_nan}" if condition.if_missing else is_not_nan
    if condition.if_missing and condition.operator == ">":
        return f"{comparison} OR {is_null}"
    if condition.if_missing:
        return f"{comparison} OR {is_null} OR {is_nan}"
    if condition.operator in (">", "not in"):
        return f"{comparison} AND {is_not_nan}"
    return comparison


def _write_plain_text(condition: Condition, column: str) -> str:
    """Write a condition on a column of texts or booleans."""
    comparison = _compare(condition, column)
    if comparison is None:
        return f"{column} IS NULL" if condition.if_missing else f"{column} IS NOT NULL"
    return f"{comparison} OR {column} IS NULL" if condition.if_missing else comparison


# --- columns in which texts mean missing, too -----------------------------------------------------


def _write_guarded_number(condition: Condition, column: str, missing: MissingTexts) -> str:
    """Write a condition on the number in a column of any type.

    The column may hold text: SQLite reads '' as 0, and DuckDB fails on it. So a value is cast to a
    number inside a CASE, the only expression that both must evaluate in order. What is missing
    becomes NULL.
    """
    # NaN is missing, however it is written
    missing_texts = dict.fromkeys((*missing.texts, *_NAN_TEXTS))
    is_present = write_is_in(
        _cast_text(column, missing),
        [quote_text(text) for text in missing_texts],
        operator="NOT IN",
    )
    number = f"CASE WHEN {is_present} THEN {_cast_number(condition, column)} END"
    for missing_number in missing.numbers:
        number = f"NULLIF({number}, {format_sql_number(missing_number)})"

    comparison = _compare(condition, number)
    if comparison is None:
        return f"{number} IS NULL" if condition.if_missing else f"{number} IS NOT NULL"
    # the comparison with NULL is NULL, which stands for false; 1 = 1 is true in every SQL
    return f"COALESCE({comparison}, 1 = 1)" if condition.if_missing else comparison


def _write_guarded_text(condition: Condition, column: str, missing: MissingTexts) -> str:
    """Write a condition on the text of a column, as a list of texts that it is in, or not in.

    The list has the levels of the condition. The texts that mean missing belong to it where the
    condition has the same truth for them as for the levels.
    """
    text = _cast_text(column, missing)
    missing_texts: Sequence[str] = missing.texts
    if condition.compares == "booleans":
        text = f"LOWER({text})"
        missing_texts = [missing_text.lower() for missing_text in missing.texts]

    listed_texts = _list_levels(condition)
    truth_if_listed = condition.operator in ("in", "is missing")
    if condition.if_missing == truth_if_listed:
        listed_texts += [quote_text(missing_text) for missing_text in missing_texts]
    truth = write_is_in(text, listed_texts, operator="IN" if truth_if_listed else "NOT IN")
    return f"{truth} OR {column} IS NULL" if condition.if_missing else truth


def _list_levels(condition: Condition) -> list[str]:
    """List the levels of a condition as texts; booleans in both ways in which they are written."""
    if condition.operator not in ("in", "not in") or not isinstance(condition.value, tuple):
        return []
    if condition.compares != "booleans":
        return [quote_level(level) for level in condition.value]

    spellings = []
    for level in condition.value:
        as_word = str(level).lower()
        as_digit = str(int(level))
        spellings += [as_word, as_digit]
    return [quote_text(spelling) for spelling in spellings]


def _cast_text(column: str, missing: MissingTexts) -> str:
    """Write the column as text, without the spaces that its file ignores."""
    text = f"CAST({column} AS VARCHAR)"
    return f"TRIM({text})" if missing.is_trimmed else text


# --- comparisons ----------------------------------------------------------------------------------


def _cast_number(condition: Condition, column: str) -> str:
    """Write the column as a number: the cast makes booleans and text of numbers comparable.

    It is left out where it would round: for whole thresholds of more than 53 bits.
    """
    is_long = isinstance(condition.value, int) and abs(condition.value) >= LARGEST_EXACT
    return column if is_long else f"CAST({column} AS DOUBLE)"


def _compare(condition: Condition, expression: str) -> str | None:
    """Write the comparison of an expression; None for a condition on missing values alone."""
    if condition.value is None or condition.operator == "is missing":
        return None
    if isinstance(condition.value, tuple):
        levels = [quote_level(level) for level in condition.value]
        return write_is_in(expression, levels, operator=condition.operator.upper())
    return f"{expression} {condition.operator} {format_sql_number(condition.value)}"
