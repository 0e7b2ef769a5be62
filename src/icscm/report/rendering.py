"""The environment in which templates are rendered."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from icscm.formatting import clip, count, escape_controls, shorten_list
from icscm.report import formatting
from icscm.report.blocks import make_columns
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# The symbol beside a verdict on a leaf, and beside one on a screened column.
MARKS: Mapping[str, str] = {
    INVARIANT: "yes",
    NOT_INVARIANT: "no",
    TOO_LITTLE_DATA: "unsure",
    "kept": "yes",
    "rejected": "no",
    "cannot tell": "unsure",
}
_NO_BREAK_SPACE = "\xa0"
# Characters of a sentence that holds names, relative to those of a name.
SENTENCE = 8


@lru_cache(maxsize=8)
def make_environment(n_characters: int, **options: Any) -> Environment:
    """Return the renderer of templates; names longer than so many characters are cut."""
    environment = Environment(
        loader=PackageLoader("icscm.report"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        optimized=False,  # templates are rendered once: optimizing takes longer
        finalize=make_printable,
        **options,
    )
    environment.filters |= {
        **list_formats(),
        "columns": make_columns,
        "mark": MARKS.__getitem__,
        "shorten": shorten_list,
        "of": count,
        "count": "{:,}".format,
        "level": "{:g}".format,
        "percent": lambda share: f"{100 * share:.4g}%",
        "clip": lambda text: clip(text, n_characters),
        "prose": lambda text: clip(text, SENTENCE * n_characters),
    }
    return environment


def make_printable(value: Any) -> Any:
    """Return a value that a template places with what does not print escaped, if it is text.

    Markup is left as it is: style sheets, scripts and drawings, whose own texts are escaped. So are
    the spaces by which a page keeps numbers together.
    """
    is_plain_text = isinstance(value, str) and not isinstance(value, Markup)
    return escape_controls(value, keep=_NO_BREAK_SPACE) if is_plain_text else value


def list_formats() -> dict[str, Callable[..., str]]:
    """Return the functions of `icscm.report.formatting` by what they write: `format_p` as `p`."""
    prefix = "format_"
    return {
        name.removeprefix(prefix): function
        for name, function in vars(formatting).items()
        if name.startswith(prefix)
    }
