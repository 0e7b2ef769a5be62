"""The environment in which templates are rendered."""

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from icscm.formatting import clip, count, shorten_list
from icscm.report import formatting
from icscm.report.blocks import make_columns
from icscm.report.layout import MARKS


@lru_cache(maxsize=8)
def make_environment(n_characters: int, **options: Any) -> Environment:
    """Return the renderer of templates; names longer than so many characters are cut."""
    environment = Environment(
        loader=PackageLoader("icscm.report"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        optimized=False,  # templates are rendered once: optimizing takes longer
        **options,
    )
    functions = vars(formatting).items()
    environment.filters |= {
        **{name.removeprefix("format_"): each for name, each in functions if "format_" in name},
        "columns": make_columns,
        "mark": MARKS.__getitem__,
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
