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

# Significant digits that every SQLite reads exactly. Of a longer number, versions before 3.43 can
# get the last bit wrong, and a threshold is a value that was observed.
MAX_SQL_DIGITS: Final = 15

# The largest power of ten that a float64 holds exactly.
MAX_TEN_POWER: Final = 22

# The largest power of two in a product; that and an odd factor are exact.
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
    """Whether a number is a quotient of two exact floats, which is rounded once."""
    _, digits, exponent = Decimal(text).as_tuple()
    return len(digits) <= MAX_SQL_DIGITS and -MAX_TEN_POWER <= int(exponent) <= 0


def _write_quotient(value: float) -> str:
    """Write a number as a quotient of whole numbers; its usual form is a comment."""
    numerator, denominator = abs(value).as_integer_ratio()
    product = " * ".join(f"{factor}e0" for factor in factor_exactly(numerator) or [1])
    divisors = "".join(f" / {factor}e0" for factor in factor_exactly(denominator))
    sign = "-" if value < 0 else ""
    return f"({sign}{product}{divisors} /* {value!r} */)"


def factor_exactly(number: int) -> Sequence[int]:
    """Return an odd number and powers of two, all below 2**53, that multiply to this one.

    Taken in order, no product or quotient of them is rounded.

    >>> factor_exactly(3 * 2**60) == [3, 2**52, 2**8], factor_exactly(1)
    (True, [])
    """
    n_twos = (number & -number).bit_length() - 1
    odd = number >> n_twos
    n_largest, n_rest = divmod(n_twos, _MAX_TWO_POWER)
    factors = [odd] if odd > 1 else []
    factors += [2**_MAX_TWO_POWER] * n_largest
    if n_rest > 0:
        factors.append(2**n_rest)
    return factors


def quote_text(text: str) -> str:
    """Write text as SQL does, between apostrophes."""
    return _quote(text, "'")


def quote_name(name: str) -> str:
    """Write the name of a column or a table."""
    return _quote(name, '"')


def _quote(text: str, mark: str) -> str:
    """Quote text; raises for characters that no SQL statement can hold."""
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    if has_surrogates or "\0" in text:
        what = "surrogates" if has_surrogates else "NUL characters"
        raise IcscmError(
            f"{escape_controls(repr(text))} holds {what}, which SQL cannot; rename it, or export "
            "to 'python' or 'json'"
        )
    return mark + text.replace(mark, 2 * mark) + mark


def quote_level(level: Level) -> str:
    """Write a level of a category."""
    if isinstance(level, bool):  # SQLite reads TRUE as a column where there is one of that name
        return f"CAST({int(level)} AS BOOLEAN)"
    return quote_text(level) if isinstance(level, str) else format_sql_number(level)


def quote_label(label: Label) -> str:
    """Write a class, so that SQL returns it with its type."""
    if isinstance(label, float) and is_exact_whole(label):
        return f"{int(label)}e0"
    return quote_level(label)


def is_in(subject: str, texts: Sequence[str], operator: str = "IN") -> str:
    """Write that a value is among some, or with NOT IN that it is not."""
    if len(texts) == 1:
        return f"{subject} {'=' if operator == 'IN' else '<>'} {texts[0]}"
    return f"{subject} {operator} ({', '.join(texts)})"
