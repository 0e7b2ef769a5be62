"""How a file is to be read: what means missing, which columns are categories, the form of text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icscm.exceptions import IcscmError
from icscm.io import naming

# Texts that mean "missing", like an empty cell. "none" and "na" are not among them: in lower
# case they are often levels ("none", "mild", "severe").
MISSING_TEXTS = (
    "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "NaT",
)  # fmt: skip

# One of them is a word: in a column that leaves other cells empty it may be a level.
NONE = "None"

# Types of columns that a model may need.
NUMBER = "number"
CATEGORY = "category"
BOOLEAN = "boolean"

# Whole numbers, and everything that pyarrow parses as a number.
_WHOLE_PATTERN = r"^-?[0-9]+$"
_FINITE_PATTERN = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$"
NUMBER_PATTERN = _FINITE_PATTERN + r"|^[+-]?(inf|infinity|nan(\([a-z0-9_]*\))?)$"
# Digits of the longest whole numbers that a column can hold; Python reads no more than some 4,000.
_MAX_DIGITS = 76


@dataclass(frozen=True)
class TextFormat:
    """How a file is to be read; `na` and `categories` apply to Parquet and Arrow files, too.

    Parameters
    ----------
    na : sequence of str
        Texts that mean missing, in addition to the empty one.
    categories : sequence of str
        Columns that are categories whatever they hold, such as codes written as numbers, or names
        that differ in nearly every row and are no identifiers. A text may name several: `"A,B"`.
    default_na : bool
        Whether `MISSING_TEXTS` mean missing, too.
    delimiter : str, optional
        By default it is detected from the ending and the first lines.
    encoding : str
        Encoding of the text.
    decimal : {".", ","}
        The mark before the fraction of a number.
    """

    na: Sequence[str] = ()
    categories: Sequence[str] = ()
    default_na: bool = True
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise IcscmError(f"decimal must be '.' or ','; got {self.decimal!r}")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise IcscmError(f"delimiter must be one character; got {self.delimiter!r}")
        try:
            "".encode(self.encoding)
        except LookupError:
            why = f"there is no encoding {self.encoding!r}"
            raise IcscmError(f"{why}; utf-8, latin-1 and cp1252 are usual") from None

    @property
    def missing_texts(self) -> list[str]:
        """All texts that stand for missing."""
        declared = [text.strip() for text in self.na]
        return ["", *declared, *(MISSING_TEXTS if self.default_na else ())]

    def find_categories(self, names: Sequence[str], where: object) -> frozenset[str]:
        """Find the columns that are declared categories; raise for one that does not exist."""
        declared = [
            name for text in self.categories for name in naming.split_known(text, ",", names)
        ]
        naming.check_columns(declared, names, str(where))
        return frozenset(declared)


def find_numbers(texts: Iterable[str]) -> list[float]:
    """Find the numbers among texts that mean missing: -9 is missing as -9.0, too.

    >>> find_numbers(["?", "-9", "99.5", "nan"])
    [-9, 99.5]
    """
    numbers: list[float] = []
    for text in texts:
        digits = text.strip()
        if re.match(_WHOLE_PATTERN, digits) and len(digits) <= _MAX_DIGITS:
            numbers.append(int(digits))
        elif re.match(_FINITE_PATTERN, digits):
            numbers.append(float(digits))
    return [number for number in dict.fromkeys(numbers) if abs(number) < float("inf")]
