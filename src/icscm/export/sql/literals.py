"""Values in SQL: text, numbers and classes, such that SQLite and DuckDB read exactly these."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from icscm._constants import LARGEST_EXACT
from icscm.exceptions import IcscmError
from icscm.formatting import escape_controls
from icscm.model.parsing import Label
from icscm.tables.columns import Level

# Significant digits that every SQLite reads exactly. Versions before 3.43 can get the last bit of a
# longer number wrong; then a threshold, which is a value that was observed, would miss that value.
MAX_SQL_DIGITS: Final = 15

# The largest power of ten that a float64 holds exactly.
MAX_TEN_POWER: Final = 22

# The exponent of the largest power of two that is written as a factor.
_MAX_TWO_POWER: Final = 52


def format_sql_number(value: float) -> str:
    """Write a number that SQLite and DuckDB read as exactly this one.

    DuckDB reads 0.1 as a decimal and 0.1e0 as a float. SQLite does not read every long number
    exactly: such numbers are written as quotients of numbers that it reads exactly.

    >>> format_sql_number(63.0), format_sql_number(-0.5), format_sql_number(0.1 + 0.2)
    ('63', '-0.5e0', '(1351079888211149e0 / 4503599627370496e0 /* 0.30000000000000004 */)')
    """
    if isinstance(value, int) or is_exact_whole(value):
        return str(int(value))
    text = repr(value)
    if _is_read_exactly(text):
        return text if "e" in text else f"{text}e0"
    return _write_quotient(value)


def is_exact_whole(value: float) -> bool:
    """Whether a number is whole, and small enough that its neighbours are other floats."""
    return value.is_integer() and abs(value) < LARGEST_EXACT


def _is_read_exactly(text: str) -> bool:
    """Whether every SQLite reads a decimal number exactly.

    It is read as digits / 10**places. Both are exact floats if they are small enough, and then
    their quotient is rounded only once: 0.25 is 25 / 10**2.
    """
    _, digits, exponent = Decimal(text).as_tuple()
    has_exact_digits = len(digits) <= MAX_SQL_DIGITS
    has_exact_power = -MAX_TEN_POWER <= int(exponent) <= 0
    return has_exact_digits and has_exact_power


def _write_quotient(value: float) -> str:
    """Write a number as a quotient of whole numbers; its usual form is a comment."""
    numerator, denominator = abs(value).as_integer_ratio()
    sign = "-" if value < 0 else ""
    product = " * ".join(f"{factor}e0" for factor in factor_exactly(numerator) or [1])
    divisors = "".join(f" / {factor}e0" for factor in factor_exactly(denominator))
    return f"({sign}{product}{divisors} /* {value!r} */)"


def factor_exactly(number: int) -> Sequence[int]:
    """Return an odd number and powers of two, all below 2**53, that multiply to this one.

    Taken in order, no product or quotient of them is rounded: the numerator of a float is an odd
    number of at most 53 bits times a power of two, and its denominator is a power of two.

    >>> factor_exactly(3 * 2**60) == [3, 2**52, 2**8], factor_exactly(1)
    (True, [])
    """
    lowest_bit = number & -number
    n_twos = lowest_bit.bit_length() - 1
    odd_part = number >> n_twos

    factors = [odd_part] if odd_part > 1 else []
    n_full_powers, n_twos_left = divmod(n_twos, _MAX_TWO_POWER)
    factors += [2**_MAX_TWO_POWER] * n_full_powers
    if n_twos_left > 0:
        factors.append(2**n_twos_left)
    return factors


def quote_text(text: str) -> str:
    """Write text as SQL does, between apostrophes."""
    return _quote(text, "'")


def quote_name(name: str) -> str:
    """Write the name of a column or a table."""
    return _quote(name, '"')


def _quote(text: str, mark: str) -> str:
    """Quote text, each quotation mark in it doubled.

    Raises for characters that no SQL statement can hold.
    """
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    if has_surrogates or "\0" in text:
        characters = "surrogates" if has_surrogates else "NUL characters"
        raise IcscmError(
            f"{escape_controls(repr(text))} holds {characters}, which SQL cannot; rename it, or "
            "export to 'python' or 'json'"
        )
    doubled = text.replace(mark, 2 * mark)
    return f"{mark}{doubled}{mark}"


def quote_level(level: Level) -> str:
    """Write a level of a category."""
    if isinstance(level, bool):
        # SQLite reads TRUE as a column where there is one of that name
        return f"CAST({int(level)} AS BOOLEAN)"
    return quote_text(level) if isinstance(level, str) else format_sql_number(level)


def quote_label(label: Label) -> str:
    """Write a class, so that SQL returns it with its type."""
    if isinstance(label, float) and is_exact_whole(label):
        return f"{int(label)}e0"
    return quote_level(label)


def write_is_in(expression: str, literals: Sequence[str], operator: str = "IN") -> str:
    """Write that the value of an expression is among literals, or with NOT IN that it is not."""
    if len(literals) == 1:
        equality = "=" if operator == "IN" else "<>"
        return f"{expression} {equality} {literals[0]}"
    return f"{expression} {operator} ({', '.join(literals)})"
