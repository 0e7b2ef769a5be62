"""Conditions on a column in SQL; NULL, NaN and texts that mean missing are treated as by the rule.

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
from icscm.export.sql.literals import format_sql_number, is_in, quote_level, quote_name, quote_text
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
        if self.missing is None:
            return _write_plain(condition, column)
        if condition.compares == "numbers":
            return _write_guarded_number(condition, column, self.missing)
        return _write_guarded_text(condition, column, self.missing)

    def write_is_missing(self, condition: Condition) -> str:
        """Write that the value which a condition needs is missing."""
        return self.write(replace(condition, operator="is missing", if_missing=True))


# --- columns in which NULL and NaN are missing ----------------------------------------------------


def _write_plain(condition: Condition, column: str) -> str:
    """Write a condition for a column of the type that it had at fitting."""
    if condition.compares != "numbers":
        return _write_plain_text(condition, column)
    number = _cast_number(condition, column) if condition.type == NUMBER else column
    comparison = _compare(condition, number)
    is_above = condition.operator == ">"
    if condition.if_missing:
        # NaN is greater than any threshold
        is_nan = None if is_above else f"{number} > {_INFINITY}"
        return _join_with_or(comparison, f"{column} IS NULL", is_nan)
    if comparison is None:
        return f"{number} <= {_INFINITY}"
    if is_above or condition.operator == "not in":
        return f"{comparison} AND {number} <= {_INFINITY}"
    return comparison


def _write_plain_text(condition: Condition, column: str) -> str:
    comparison = _compare(condition, column)
    if condition.if_missing:
        return _join_with_or(comparison, f"{column} IS NULL")
    return comparison or f"{column} IS NOT NULL"


def _join_with_or(*parts: str | None) -> str:
    return " OR ".join(part for part in parts if part is not None)


# --- columns in which texts mean missing, too -----------------------------------------------------


def _write_guarded_number(condition: Condition, column: str, missing: MissingTexts) -> str:
    """Write a condition on the number in a column of any type.

    The column may hold text: SQLite reads '' as 0, and DuckDB fails on it. So a value is cast to a
    number inside a CASE, the only expression that both must evaluate in order.
    """
    # NaN is missing, however it is written
    texts = dict.fromkeys((*missing.texts, *_NAN_TEXTS))
    is_present = is_in(
        _cast_text(column, missing), [quote_text(text) for text in texts], operator="NOT IN"
    )
    number = f"CASE WHEN {is_present} THEN {_cast_number(condition, column)} END"
    for value in missing.numbers:
        number = f"NULLIF({number}, {format_sql_number(value)})"

    comparison = _compare(condition, number)
    if comparison is None:
        return f"{number} IS {'' if condition.if_missing else 'NOT '}NULL"
    return f"COALESCE({comparison}, 1 = 1)" if condition.if_missing else comparison


def _write_guarded_text(condition: Condition, column: str, missing: MissingTexts) -> str:
    """Write a condition on the text of a column, with the texts that mean missing in its list."""
    is_boolean = condition.compares == "booleans"
    subject = _cast_text(column, missing)
    missing_texts: Sequence[str] = missing.texts
    if is_boolean:
        subject = f"LOWER({subject})"
        missing_texts = [text.lower() for text in missing.texts]

    listed = _list_levels(condition)
    is_affirmative = condition.operator in ("in", "is missing")
    if is_affirmative == condition.if_missing:
        listed += [quote_text(text) for text in missing_texts]
    truth = is_in(subject, listed, operator="IN" if is_affirmative else "NOT IN")
    return f"{truth} OR {column} IS NULL" if condition.if_missing else truth


def _list_levels(condition: Condition) -> list[str]:
    """List the levels of a condition as texts; booleans in both ways in which they are written."""
    if condition.operator not in ("in", "not in") or not isinstance(condition.value, tuple):
        return []
    if condition.compares != "booleans":
        return [quote_level(level) for level in condition.value]
    spellings = [
        spelling for level in condition.value for spelling in (str(level).lower(), str(int(level)))
    ]
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


def _compare(condition: Condition, subject: str) -> str | None:
    """Write the comparison of a value; None for a condition on missing values alone."""
    if condition.value is None or condition.operator == "is missing":
        return None
    if isinstance(condition.value, tuple):
        levels = [quote_level(level) for level in condition.value]
        return is_in(subject, levels, operator=condition.operator.upper())
    return f"{subject} {condition.operator} {format_sql_number(condition.value)}"
