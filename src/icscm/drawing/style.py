"""The colours of drawings and pages, and the style sheet of drawings.

The style sheet, `figure.css`, has names of colours: `stroke: var(--ink)`. A page declares them for
light and dark screens; a file of its own has the colours themselves in their place.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

LIGHT: Final = {
    "paper": "#fcfbf8",
    "ink": "#1d1c1a",
    "soft": "#5b5852",
    "line": "#d9d5cc",
    "wash": "#f1eee7",
    "accent": "#0b6170",
    "on-accent": "#ffffff",
    "band": "#dcebec",
}
DARK: Final = {
    "paper": "#15171a",
    "ink": "#e9e6e0",
    "soft": "#aeaaa2",
    "line": "#3a3d42",
    "wash": "#1e2125",
    "accent": "#74c4d2",
    "on-accent": "#10272c",
    "band": "#203a40",
}
_IF_DARK: Final = "@media (prefers-color-scheme: dark)"


@cache
def read_rules() -> str:
    """Return the style sheet of drawings, in which colours are variables."""
    return (files("icscm.drawing") / "figure.css").read_text("utf-8")


def make_page_style() -> str:
    """Return the style sheet for drawings within a page, with both palettes as variables."""
    light = f":root {{ {_declare(LIGHT)} }}"
    dark = f"{_IF_DARK} {{ :root {{ {_declare(DARK)} }} }}"
    return f"{light}\n{dark}\n{read_rules()}"


def make_file_style(*, has_dark: bool) -> str:
    """Return the style sheet for a drawing that is a file of its own.

    Colours are written out: programs that convert SVG do not know variables.
    """
    light = _replace_variables(LIGHT)
    if not has_dark:
        return light
    dark = f"{_IF_DARK} {{\n{_replace_variables(DARK)}}}"
    return f"{light}\n{dark}"


def _declare(palette: dict[str, str]) -> str:
    """Return the declarations of the variables of a palette, `--ink: #1d1c1a; ...`."""
    return " ".join(f"--{name}: {colour};" for name, colour in palette.items())


def _replace_variables(palette: dict[str, str]) -> str:
    """Return the style sheet with the colours of a palette in place of variables."""
    return re.sub(r"var\(--([\w-]+)\)", lambda match: palette[match[1]], read_rules())
