"""Templates, and the sentences of a report, which are the blocks of `templates/texts.jinja`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from icscm.formatting import as_text, clip, count, shorten_list
from icscm.report import formatting
from icscm.report.sections.errors import format_error, format_metrics
from icscm.report.sections.leaves import (
    count_conclusions,
    format_conclusions,
    format_detectable,
    format_extremes,
)
from icscm.report.sections.nodes import format_odds_range


@lru_cache(maxsize=8)
def make_environment(n_characters: int, **options: Any) -> Environment:
    """The renderer of templates; names longer than so many characters are cut."""
    environment = Environment(
        loader=PackageLoader("icscm.report"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        **options,
    )
    environment.filters |= {
        "share": formatting.format_share,
        "points": formatting.format_points,
        "p": formatting.format_p,
        "value": formatting.format_value,
        "interval": formatting.format_interval,
        "prediction": formatting.format_prediction_interval,
        "utility": formatting.format_utility,
        "ratio": formatting.format_ratio,
        "deviance": formatting.format_deviance,
        "score": formatting.format_score,
        "join_words": formatting.join_words,
        "features": formatting.name_features,
        "odds_range": format_odds_range,
        "rate_range": format_extremes,
        "error": format_error,
        "metrics": format_metrics,
        "detectable": format_detectable,
        "conclusions": lambda leaves: format_conclusions(
            count_conclusions(leaf["conclusion"] for leaf in leaves)
        ),
        "text": as_text,
        "shorten": shorten_list,
        "of": count,
        "count": "{:,}".format,
        "level": "{:g}".format,
        "percent": lambda share: f"{100 * share:.4g}%",
        "variation": "{:.0%}".format,
        "clip": lambda text: clip(text, n_characters),
        "prose": lambda text: clip(text, 8 * n_characters),  # a sentence that holds names
    }
    return environment


def write_lines(block: str, **content: Any) -> list[str]:
    """The lines of a block that are not empty."""
    template = make_environment(0).get_template("texts.jinja")
    text = "".join(template.blocks[block](template.new_context(content)))
    return [line.strip() for line in text.splitlines() if line.strip()]


def write_text(block: str, **content: Any) -> str:
    """A block as one line."""
    return " ".join(write_lines(block, **content))
