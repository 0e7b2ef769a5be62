"""A summary as a page, as Markdown and as JSON.

The summary holds all that is said; here it is only laid out. The page is one file that opens
offline: drawings are SVG in the markup, and its content security policy lets it load nothing
and run no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icscm.exceptions import IcscmError
from icscm.model.learner import Learner
from icscm.report.drawing import Limits, choose_largest, clip, draw_tree, format_tick, make_plot
from icscm.report.summary import LeftOut, make_summary
from icscm.report.terminal import format_p
from icscm.report.words import Plain, format_points, format_share
from icscm.text import format_number
from icscm.writing import check_free, write_text

if TYPE_CHECKING:
    from jinja2 import Environment

    from icscm.report.path import AlphaPath

# A page stays below this, whatever the data: mail and review systems refuse more.
MAX_HTML_BYTES = 2_000_000


@dataclass(frozen=True, repr=False)
class Report:
    """What is known about one fitted learner, ready to be read; see `make_report`.

    `to_dict` describes itself in `icscm.report.summary`. In a notebook it shows itself.
    """

    summary: Plain

    def to_dict(self) -> Plain:
        """All that the report says, as values that JSON knows."""
        return deepcopy(self.summary)

    def to_json(self) -> str:
        """The dict as JSON."""
        return json.dumps(self.summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """One page without anything beside it; less is listed where it would grow too large."""
        limits = Limits()
        while len((page := _render_html(self.summary, limits)).encode()) > MAX_HTML_BYTES:
            if limits == limits.halve():
                break
            limits = limits.halve()
        return page

    def to_markdown(self) -> str:
        """The same as text with tables; names in it are text whatever characters they hold."""
        template = _make_markdown_environment().get_template("report.md")
        return template.render(_lay_out(self.summary, Limits())).strip() + "\n"

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the report as its file's ending says: `.html`, `.md` or `.json`.

        Whole or not at all, and over an existing file only with `force`.
        """
        path = Path(path)
        writers = {
            ".html": self.to_html,
            ".htm": self.to_html,
            ".md": self.to_markdown,
            ".json": self.to_json,
        }
        write = writers.get(path.suffix.lower())
        if write is None:
            raise IcscmError(
                f"a report is written as .html, .md or .json; {path.name!r} ends in none of these"
            )
        check_free(path, force=force)
        write_text(path, write())
        return path

    def __repr__(self) -> str:
        return f"<icscm report: {self.summary['model']['text']}>"

    def _repr_html_(self) -> str:
        """The page in a frame: neither its styles nor its script can touch the notebook.

        A notebook that is not trusted shows the sentence behind the frame instead.
        """
        return _FRAME.format(
            sentence=escape(self.summary["model"]["sentence"]), page=escape(self.to_html())
        )


_FRAME = (
    '<div style="position:relative;height:720px;max-height:85vh">'
    "<p>{sentence} (Trust this notebook to see the whole report.)</p>"
    '<iframe title="icscm report" sandbox="allow-scripts" srcdoc="{page}" '
    'style="position:absolute;inset:0;width:100%;height:100%;border:0;background:Canvas">'
    "</iframe></div>"
)


def make_report(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    left_out: LeftOut | None = None,
    alpha_path: AlphaPath | None = None,
    class_names: tuple[str, str] | None = None,
    translate: Callable[[str], str] = str,
) -> Report:
    """A report on a fitted learner.

    Parameters
    ----------
    learner : a fitted `SCMClassifier` or `ICSCMClassifier`.
    data_name, target, environment : what to call the data, the label's column and that of
        the environments.
    left_out : columns that were not used, each with the reason: a mapping, or pairs.
    alpha_path : the models at other levels, from `icscm.report.path.compute_alpha_path`.
    class_names : what to call the negative and the positive class, if not as the labels.
    translate : puts advice that names parameters into other words.

    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> report = make_report(learner, data_name="the paper's simulation")
    >>> report
    <icscm report: A1 > 0 and A2 > 0>
    >>> report.to_dict()["answers"]["error"]["answer"]
    'Wrong for 2.4% of 20,000 samples'
    """
    return Report(
        make_summary(
            learner,
            data_name=data_name,
            target=target,
            environment=environment,
            left_out=left_out,
            alpha_path=alpha_path,
            class_names=class_names,
            translate=translate,
        )
    )


def _render_html(summary: Plain, limits: Limits) -> str:
    environment = _make_html_environment(limits)
    style, script = (_read_template(environment, name) for name in ("report.css", "report.js"))
    return environment.get_template("report.html").render(
        _lay_out(summary, limits),
        style=style,
        script=script,
        policy=_make_policy(style, script),
    )


@lru_cache(maxsize=8)
def _make_html_environment(limits: Limits) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("icscm.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= _make_filters(limits)
    return environment


def _read_template(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _make_policy(style: str, script: str) -> str:
    """Nothing is loaded; the one style sheet and the one script are named by their hashes."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _lay_out(summary: Plain, limits: Limits) -> Plain:
    """The summary with its drawings, and no more of it than the limits allow."""
    asked, errors, standard = summary["asked"], summary["errors"], summary["invariance"]
    band = standard["margin"] if standard["margin_on"] == "rate" else None
    leaves = summary["leaves"]
    # the last leaf, where no rule settles, is always shown
    shown = leaves if len(leaves) <= limits.leaves else [*leaves[: limits.leaves - 1], leaves[-1]]
    return {
        **summary,
        "limits": limits,
        "shown_leaves": [
            {**leaf, "plot": make_plot(leaf["environments"], leaf, "rate", limits, band)}
            for leaf in shown
        ],
        "tree_drawing": draw_tree(summary["tree"], limits),
        "environment_plot": make_plot(asked["environments"], asked["overall"], "rate", limits),
        "error_plot": make_plot(errors["environments"], errors, "error", limits),
        "error_rows": choose_largest(errors["environments"], limits.environments),
        "shown_sets": _choose_sets(summary["search"]["sets"], limits.sets),
        "looks": _list_looks(summary["search"]),
        "path": summary["alpha_path"] and _lay_out_path(summary["alpha_path"], limits),
    }


def _list_looks(search: Plain) -> list[Plain]:
    """Every look at the candidates that refused some, with the number of its step."""
    looks = [step["look"] for step in search["steps"]] + [search["last_look"]]
    return [{"number": number, **look} for number, look in enumerate(looks, start=1) if look]


def _choose_sets(sets: Sequence[Plain], limit: int) -> list[Plain]:
    """Those of largest p-value, the accepted ones among them first."""
    return sorted(sets, key=lambda each: -each["p_value"])[:limit]


def _lay_out_path(path: Plain, limits: Limits) -> Plain:
    """The models with their drawings, and what the slider says at each of its places."""
    models = [
        {
            **each,
            "drawing": draw_tree(each["tree"], limits),
            "spans": _join_levels(each["levels"]),
        }
        for each in path["models"]
    ]
    places = [
        {
            "alpha": f"{level['alpha']:g}",
            "model": number,
            "text": _describe_place(model, level, limits),
        }
        for number, model in enumerate(path["models"])
        for level in model["levels"]
    ]
    own = next(
        number
        for number, level in enumerate(each for m in path["models"] for each in m["levels"])
        if level["is_own"]
    )
    return {**path, "models": models, "places": places, "own_place": own}


def _join_levels(levels: Sequence[Plain]) -> list[Plain]:
    """Neighbouring levels with the same conclusions as one line; the report's own stands alone."""
    groups = groupby(levels, key=lambda each: (each["is_own"], _list_conclusions(each)))
    spans = []
    for (is_own, conclusions), group in groups:
        ends = [f"{each['alpha']:g}" for each in group]
        text = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
        spans.append({"is_own": is_own, "conclusions": conclusions, "text": text})
    return spans


def _list_conclusions(level: Plain) -> str:
    return ", ".join(f"{n} {name}" for name, n in level["conclusions"].items())


def _describe_place(model: Plain, level: Plain, limits: Limits) -> str:
    verdicts = _list_conclusions(level)
    own = " (the level of this report)" if level["is_own"] else ""
    return (
        f"alpha = {level['alpha']:g}{own}: model {model['name']}, "
        f"{clip(model['text'], limits.characters)}; wrong for "
        f"{format_share(model['errors']['error'])}; leaves: {verdicts}."
    )


def format_value(value: Any) -> str:
    """A setting's value as one would write it.

    >>> [format_value(each) for each in (None, True, 1.0, "chi2")]
    ['none', 'yes', '1', 'chi2']
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_number(value) if isinstance(value, int | float) else str(value)


def format_interval(interval: Sequence[float] | None) -> str:
    """From where to where.

    >>> format_interval([0.1, 0.25]), format_interval(None)
    ('10.0% to 25.0%', '')
    """
    return "" if interval is None else f"{format_share(interval[0])} to {format_share(interval[1])}"


def _make_filters(limits: Limits) -> dict[str, Callable[..., str]]:
    """What templates call to write numbers and names; `prose` is for sentences that hold names."""
    return {
        "share": format_share,
        "points": format_points,
        "p": format_p,
        "value": format_value,
        "interval": format_interval,
        "tick": format_tick,
        "count": lambda n: f"{n:,}",
        "level": lambda alpha: f"{alpha:g}",
        "percent": lambda share: f"{100 * share:.4g}%",
        "utility": lambda utility: f"{utility:,.10g}",
        "clip": lambda text: clip(text, limits.characters),
        "prose": lambda text: clip(text, 8 * limits.characters),
    }


# what has a meaning within a line; a colon only in addresses and in :names: of pictures
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#]|:(?=//|\w+:)|(?<=www)\.)")


def escape_markdown(value: Any) -> str:
    r"""Text that every kind of Markdown shows as it is.

    >>> print(escape_markdown("a|b *c* <i>d</i>"))
    a\|b \*c\* &lt;i>d&lt;/i>
    """
    text = str(value).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN_SPECIAL.sub(r"\\\1", text)


@lru_cache(maxsize=1)
def _make_markdown_environment() -> Environment:
    """Every value is escaped on its way out, as HTML's are by autoescape."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("icscm.report"),
        autoescape=False,
        finalize=escape_markdown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= _make_filters(Limits())
    return environment
