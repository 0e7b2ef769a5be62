"""Text in a drawing: its width, and its lines.

The width of a text is estimated, since a browser chooses the font. Estimates are generous, so that
a text fits its box in any of the usual fonts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from textwrap import wrap
from typing import Final

# Width of an average character of a font, in heights of the font.
_CHARACTER_WIDTH: Final = 0.56


def is_wide(character: str) -> bool:
    """Whether a character is as wide as high, as Chinese ones are."""
    return unicodedata.east_asian_width(character) in "WF"


def estimate_width(text: str, font_size: float) -> float:
    """Estimate the width of a line of text."""
    n_characters = sum(2 if is_wide(character) else 1 for character in text)
    return n_characters * _CHARACTER_WIDTH * font_size


def wrap_text(text: str, *, n_characters: int, max_lines: int) -> Sequence[str]:
    """Break a text into lines; an ellipsis stands for what does not fit.

    A text with wide characters has half as many on a line.

    >>> wrap_text("the rate of deaths", n_characters=10, max_lines=2)
    ['the rate', 'of deaths']
    """
    has_wide = any(map(is_wide, text))
    width = n_characters // 2 if has_wide else n_characters
    lines = wrap(text, width, max_lines=max_lines, placeholder="…", drop_whitespace=True)
    return lines or [""]
