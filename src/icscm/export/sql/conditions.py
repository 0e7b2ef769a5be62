"""Conditions on a column in SQL; NULL, NaN and texts that mean missing are treated as by the rule.

There are two forms of a condition. A model that was fitted on a table of typed columns, in which
only NULL and NaN are missing, has the *plain* form, `d."age" > 63`. A model that was fitted on a
file whose texts such as "?" mean missing has the *guarded* form, which looks for these texts first.

Every condition has a truth for missing values, `if_missing`. A CASE takes NULL for false, and a
comparison with NULL is NULL. So NULL needs mention only where `if_missing` is true; where it is
None, an earlier branch of the CASE has decided, and it may be treated as false.

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
        """Write a condition, in which levels that training did not have are missing."""
        condition = _list_known_levels(condition)
        if condition.value == ():  # no level is left to compare
            return "1 = 1" if condition.operator == "not in" else "1 = 0"
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


def _list_known_levels(condition: Condition) -> Condition:
    """Return a condition with the same truth for levels that training did not have as for NULL.

    Of the known levels no, light and heavy, for example:

        in {no}, false if missing          in {no}
        in {no}, true if missing           not in {light, heavy}
        not in {no}, false if missing      in {light, heavy}
        is missing                         not in {no, light, heavy}, true if missing

    Where `if_missing` is None, an earlier branch has decided on unknown levels, too.
    """
    if condition.known is None or condition.if_missing is None:
        return condition
    if condition.operator in ("in", "is present"):
        true_levels = condition.known if condition.value is None else condition.value
    else:
        false_levels = condition.known if condition.value is None else condition.value
        if condition.operator == "is missing":
            false_levels = condition.known
        assert isinstance(false_levels, tuple)
        true_levels = tuple(level for level in condition.known if level not in false_levels)
    assert isinstance(true_levels, tuple)

    if not condition.if_missing:
        return replace(condition, operator="in", value=true_levels)
    false_levels = tuple(level for level in condition.known if level not in true_levels)
    return replace(condition, operator="not in", value=false_levels)


# --- columns in which NULL and NaN are missing ----------------------------------------------------


def _write_plain_number(condition: Condition, column: str) -> str:
    """Write a condition on a column of numbers, in which NULL and NaN are missing.

    SQL's own comparisons are NULL, which a CASE takes for false, if the value is NULL. NaN is
    greater than any threshold and in no list, so `>` and `NOT IN` are true of it. What the
    condition wants otherwise for missing values is added to the comparison.
    """
    number = _cast_number(condition, column) if condition.type == NUMBER else column
    is_null = f"{column} IS NULL"
    is_nan = f"{number} > {_INFINITY}"
    is_not_nan = f"{number} <= {_INFINITY}"

    if _asks_only_for_missing(condition):
        return f"{is_null} OR {is_nan}" if condition.if_missing else is_not_nan

    comparison = _compare(condition, number)
    if condition.if_missing:
        if condition.operator == ">":  # NaN is greater already
            return f"{comparison} OR {is_null}"
        return f"{comparison} OR {is_null} OR {is_nan}"
    if condition.operator in (">", "not in"):  # true of NaN, for which the condition is false
        return f"{comparison} AND {is_not_nan}"
    return comparison


def _write_plain_text(condition: Condition, column: str) -> str:
    """Write a condition on a column of texts or booleans, in which NULL is missing.

    A comparison with NULL is NULL, which a CASE takes for false.
    """
    if _asks_only_for_missing(condition):
        return f"{column} IS NULL" if condition.if_missing else f"{column} IS NOT NULL"
    comparison = _compare(condition, column)
    return f"{comparison} OR {column} IS NULL" if condition.if_missing else comparison


# --- columns in which texts mean missing, too -----------------------------------------------------


def _write_guarded_number(condition: Condition, column: str, missing: MissingTexts) -> str:
    """Write a condition on the number in a column of any type, in which texts may mean missing.

    First the column becomes an expression that is its number, or NULL where it is missing; then
    that is compared. With "?" and -9 as missing, `age > 63` is

        NULLIF(CASE WHEN CAST(d."age" AS VARCHAR) NOT IN ('?', ...)
               THEN CAST(d."age" AS DOUBLE) END, -9) > 63
    """
    # NaN is missing, however it is written
    missing_texts = dict.fromkeys((*missing.texts, *_NAN_TEXTS))
    is_present = write_is_in(
        _cast_text(column, missing),
        [quote_text(text) for text in missing_texts],
        operator="NOT IN",
    )
    # Of a text that is no number, SQLite makes 0, and DuckDB an error. So it must not be cast; a
    # CASE is the only expression of which both evaluate no more than they need.
    number = f"CASE WHEN {is_present} THEN {_cast_number(condition, column)} END"
    for missing_number in missing.numbers:
        number = f"NULLIF({number}, {format_sql_number(missing_number)})"

    if _asks_only_for_missing(condition):
        return f"{number} IS NULL" if condition.if_missing else f"{number} IS NOT NULL"
    comparison = _compare(condition, number)
    # the comparison with NULL is NULL, which stands for false; 1 = 1 is true in every SQL
    return f"COALESCE({comparison}, 1 = 1)" if condition.if_missing else comparison


def _write_guarded_text(condition: Condition, column: str, missing: MissingTexts) -> str:
    """Write a condition on the text of a column, as a list of texts that it is in, or not in.

    The list has the levels of the condition. The texts that mean missing join it where the
    condition has the same truth for them as for the levels. With "?" as missing:

        smoker in {yes}, false if missing        d."smoker" = 'yes'
        smoker in {yes}, true if missing         d."smoker" IN ('yes', '?') OR d."smoker" IS NULL
        smoker not in {yes}, false if missing    d."smoker" NOT IN ('yes', '?')
    """
    text = _cast_text(column, missing)
    missing_texts: Sequence[str] = missing.texts
    if condition.compares == "booleans":
        text = f"LOWER({text})"
        missing_texts = [missing_text.lower() for missing_text in missing.texts]

    listed_texts = _list_levels(condition)
    is_true_if_listed = condition.operator in ("in", "is missing")
    if condition.if_missing == is_true_if_listed:
        listed_texts += [quote_text(missing_text) for missing_text in missing_texts]

    operator = "IN" if is_true_if_listed else "NOT IN"
    comparison = write_is_in(text, listed_texts, operator=operator)
    return f"{comparison} OR {column} IS NULL" if condition.if_missing else comparison


def _list_levels(condition: Condition) -> list[str]:
    """List the levels of a condition as SQL texts, none of a condition on missing values alone.

    Booleans are listed in both ways in which files write them, 'true' and '1'.
    """
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


def _asks_only_for_missing(condition: Condition) -> bool:
    """Return whether a condition is "is missing" or "is present", and so compares no value."""
    return condition.value is None or condition.operator == "is missing"


def _compare(condition: Condition, expression: str) -> str:
    """Write the comparison of an expression with the threshold or the levels of a condition."""
    assert condition.value is not None  # see `_asks_only_for_missing`
    if isinstance(condition.value, tuple):
        levels = [quote_level(level) for level in condition.value]
        return write_is_in(expression, levels, operator=condition.operator.upper())
    return f"{expression} {condition.operator} {format_sql_number(condition.value)}"
