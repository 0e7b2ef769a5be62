"""Options for reading text files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icscm.exceptions import IcscmError

# Texts that mean "missing" besides an empty cell. "none" and "na" are not among them: in lower
# case they are often levels ("none", "mild", "severe").
MISSING_TEXTS = (
    "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "NaT",
)  # fmt: skip

# Types of columns that a model may need.
NUMBER, CATEGORY, BOOLEAN = "number", "category", "boolean"

# Whole numbers, and everything that pyarrow parses as a number.
WHOLE_PATTERN = r"^-?[0-9]+$"
_FINITE_PATTERN = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$"
NUMBER_PATTERN = _FINITE_PATTERN + r"|^[+-]?(inf|infinity|nan(\([a-z0-9_]*\))?)$"
# Digits of the longest whole numbers that a column can hold; Python reads no more than some 4,000.
_MAX_DIGITS = 76


@dataclass(frozen=True)
class TextFormat:
    """How a text file is to be read.

    Parameters
    ----------
    na : sequence of str
        Texts that mean missing, besides the empty one.
    default_na : bool
        Whether `MISSING_TEXTS` do so, too.
    delimiter : str, optional
        By default it is taken from the ending and the first lines.
    encoding : str
        Of the text.
    decimal : {".", ","}
        The mark before the fraction of a number.
    """

    na: Sequence[str] = ()
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
            raise IcscmError(
                f"there is no encoding {self.encoding!r}; utf-8, latin-1 and cp1252 are usual"
            ) from None

    @property
    def missing_texts(self) -> list[str]:
        """All texts that stand for missing."""
        return ["", *(text.strip() for text in self.na), *(MISSING_TEXTS * self.default_na)]

    @property
    def missing_numbers(self) -> list[float]:
        """Texts of the user that are numbers, as such: -9 is missing as -9.0, too."""
        return find_numbers(self.na)


def find_numbers(texts: Iterable[str]) -> list[float]:
    """The numbers among texts.

    >>> find_numbers(["?", "-9", "99.5", "nan"])
    [-9, 99.5]
    """
    plain = [text.strip() for text in texts if re.match(_FINITE_PATTERN, text.strip())]
    is_whole = [re.match(WHOLE_PATTERN, text) and len(text) <= _MAX_DIGITS for text in plain]
    numbers = [int(t) if whole else float(t) for t, whole in zip(plain, is_whole, strict=True)]
    return [number for number in dict.fromkeys(numbers) if abs(number) < float("inf")]
