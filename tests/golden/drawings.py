"""What a figure or a page draws, as text: an element of SVG on each line."""

from __future__ import annotations

import re


def list_svg(page: str) -> str:
    """Return the drawings of a page or a file; marks of verdicts and styles are left out."""
    drawings = re.findall(r"<svg(?! class=\"(?:mark|unseen)\").*?</svg>", page, flags=re.DOTALL)
    without_style = re.sub(r"<style>.*?</style>", "", "\n".join(drawings), flags=re.DOTALL)
    return re.sub(r">\s*<", ">\n<", without_style) + "\n"
