"""Templates, and the sentences of a report, which are the blocks of `templates/texts.jinja`."""

import re
from functools import cache, lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from icscm import _constants
from icscm.formatting import as_text, clip, count, shorten_list
from icscm.report import formatting

_BEST = "the accepted set of lowest BIC, without a guarantee"


@lru_cache(maxsize=8)
def make_environment(n_characters: int, **options: Any) -> Environment:
    """The renderer of templates; names longer than so many characters are cut."""
    environment = Environment(
        loader=PackageLoader("icscm.report"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        optimized=False,  # templates are rendered once: optimizing takes longer
        **options,
    )
    environment.globals["constants"] = _constants
    functions = vars(formatting).items()
    environment.filters |= {
        **{name.removeprefix("format_"): each for name, each in functions if "format_" in name},
        "join_words": formatting.join_words,
        "count_conclusions": formatting.count_conclusions,
        "conclusion": lambda why: _BEST if "best" in why else "what all accepted sets share",
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


@cache
def _compile(block: str) -> Template:
    """A block and those that it uses; to compile all 56 takes longer than `icscm show`."""
    environment = make_environment(0)
    assert environment.loader is not None
    source, *_ = environment.loader.get_source(environment, "texts.jinja")
    blocks = {part.split(maxsplit=1)[0]: part for part in source.split("{% block ")[1:]}
    needed = [block]
    for name in needed:  # which grows
        used = dict.fromkeys(re.findall(r"self\.(\w+)\(", blocks[name]))
        needed += [each for each in used if each not in needed]
    return environment.from_string("".join(f"{{% block {blocks[name]}" for name in needed))


def write_lines(block: str, **content: Any) -> list[str]:
    """The lines of a block that are not empty."""
    template = _compile(block)
    text = "".join(template.blocks[block](template.new_context(content)))
    return [line.strip() for line in text.splitlines() if line.strip()]


def write_text(block: str, **content: Any) -> str:
    """A block as one line."""
    return " ".join(write_lines(block, **content))
