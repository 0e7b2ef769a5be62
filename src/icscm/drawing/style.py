"""The colours of drawings and pages, and the style sheet of drawings."""

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
    """Return the style sheet of drawings; its colours are variables, `var(--ink)`."""
    return (files("icscm.drawing") / "figure.css").read_text("utf-8")


def make_page_style() -> str:
    """Return the style sheet for drawings within a page, with both palettes as variables."""
    light, dark = _declare(LIGHT), _declare(DARK)
    return f":root {{ {light} }}\n{_IF_DARK} {{ :root {{ {dark} }} }}\n{read_rules()}"


def make_file_style(*, has_dark: bool) -> str:
    """Return the style sheet for a drawing that is a file of its own.

    Colours are written out: programs that convert SVG do not know variables.
    """
    light = _write_out(LIGHT)
    return f"{light}\n{_IF_DARK} {{\n{_write_out(DARK)}}}" if has_dark else light


def _declare(palette: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in palette.items())


def _write_out(palette: dict[str, str]) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda match: palette[match[1]], read_rules())
