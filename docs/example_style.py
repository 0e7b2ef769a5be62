"""How examples look on the site, whoever writes them; applied before each is run."""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

import matplotlib

COLOURS = ["#2f7d8c", "#d9822b", "#6b5b95", "#4c9a5b", "#b8475a", "#7f7f7f"]


def apply(_: dict[str, Any], __: str) -> None:
    """Quiet figures, and warnings without the path of whoever built the site."""
    matplotlib.rcParams.update(
        {
            "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.dpi": 100,
            "figure.figsize": (7, 3.5),
            "font.size": 10,
            "legend.frameon": False,
        }
    )
    warnings.formatwarning = _format_warning


def _format_warning(message: Warning | str, category: type[Warning], *_: Any) -> str:
    return textwrap.fill(f"{category.__name__}: {message}", 80) + "\n"
