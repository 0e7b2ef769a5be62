"""How a text file is to be read: what the user may say of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icscm.exceptions import IcscmError

# What stands for "missing" in text files besides an empty cell. "none" and "na" are not among
# them: in lower case they are levels ("none", "mild", "severe") as often as not.
MISSING_TEXTS = (
    "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "NaT",
)  # fmt: skip

# Kinds of columns that a model may ask for.
NUMBER, CATEGORY, BOOLEAN = "number", "category", "boolean"

# How whole numbers look, and all that pyarrow takes for numbers.
WHOLE_LOOK = r"^-?[0-9]+$"
_FINITE_LOOK = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$"
NUMBER_LOOK = _FINITE_LOOK + r"|^[+-]?(inf|infinity|nan(\([a-z0-9_]*\))?)$"
# Digits of the longest whole numbers that a column can hold; Python reads no more than some 4,000.
_MAX_DIGITS = 76


@dataclass(frozen=True)
class TextFormat:
    """How a text file is to be read.

    Parameters
    ----------
    na : sequence of str
        Texts that stand for missing, besides the empty one.
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
    plain = [text.strip() for text in texts if re.match(_FINITE_LOOK, text.strip())]
    is_whole = [re.match(WHOLE_LOOK, text) and len(text) <= _MAX_DIGITS for text in plain]
    numbers = [int(t) if whole else float(t) for t, whole in zip(plain, is_whole, strict=True)]
    return [number for number in dict.fromkeys(numbers) if abs(number) < float("inf")]
