"""A summary as a page, as Markdown and as JSON.

The summary holds all that is said; here it is only laid out. The page is one file that opens
offline: drawings are SVG in the markup, and its content security policy lets it load nothing
and run no script but its own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from icscm.exceptions import IcscmError
from icscm.formatting import clip, format_number
from icscm.model.learner import Learner
from icscm.model.plain import dump_json
from icscm.report.drawing import Limits, choose_largest, draw_tree, make_plot
from icscm.report.effects import format_ratio
from icscm.report.elsewhere import say_expected, say_range
from icscm.report.leaves import say_conclusions
from icscm.report.steps import list_looks
from icscm.report.summary import make_summary
from icscm.report.tree_drawing import draw_effects, draw_nodes, draw_tolerance_path
from icscm.report.tree_summary import is_of_tree, list_tree_looks
from icscm.report.words import Plain, format_p, format_points, format_share, format_utility
from icscm.writing import check_free, write_text

# A page stays below this, whatever the data: mail and review systems refuse more.
MAX_HTML_BYTES = 2_000_000


@dataclass(frozen=True, repr=False)
class Report:
    """What is known about one fitted learner, ready to be read; in a notebook it shows itself.

    Parameters
    ----------
    summary : dict
        What `icscm.report.summary.make_summary` returned, and describes.
    """

    summary: Plain

    def to_dict(self) -> Plain:
        """All that the report says.

        Returns
        -------
        dict
            Values that JSON knows; `icscm.report.summary` describes the keys.
        """
        return deepcopy(self.summary)

    def to_json(self) -> str:
        """The dict as JSON.

        Returns
        -------
        str
            With all that the report says, nothing cut short.
        """
        return dump_json(self.summary, indent=2) + "\n"

    def to_html(self) -> str:
        """One page without anything beside it; less is listed where it would grow too large.

        Returns
        -------
        str
            HTML of less than 2 MB that opens offline.
        """
        limits = Limits()
        while len((page := _render_html(self.summary, limits)).encode()) > MAX_HTML_BYTES:
            if limits == limits.halve():
                break
            limits = limits.halve()
        return page

    def to_markdown(self) -> str:
        """The same as text with tables.

        Returns
        -------
        str
            Markdown; names in it are text whatever characters they hold.
        """
        environment = _make_environment(Limits(), is_html=False)
        name, content = _lay_out(self.summary, Limits())
        return environment.get_template(f"{name}.md").render(content).strip() + "\n"

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the report as its file's ending says, whole or not at all.

        Parameters
        ----------
        path : str or path
            It ends in `.html`, `.md` or `.json`.
        force : bool, default=False
            Whether a file of that name may be replaced.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        IcscmError
            If the file is there already, or its name has another ending.
        """
        path = Path(path)
        writers = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}
        write = {**writers, ".htm": self.to_html}.get(path.suffix.lower())
        if write is None:
            raise IcscmError(
                f"a report is written as .html, .md or .json; {path.name!r} ends in none of these"
            )
        check_free(path, force=force)
        write_text(path, write())
        return path

    def __repr__(self) -> str:
        return f"<icscm report: {self.summary['model']['name']}>"

    def _repr_html_(self) -> str:
        """The page in a frame: neither its styles nor its script can touch the notebook.

        A notebook that is not trusted shows the sentence behind the frame instead.
        """
        sentence, page = self.summary["model"]["sentence"], self.to_html()
        return make_frame(sentence, page)


_FRAME = (
    '<div style="position:relative;height:720px;max-height:85vh">'
    "<p>{sentence} (Trust this notebook to see the whole report.)</p>"
    '<iframe title="icscm report" sandbox="allow-scripts" srcdoc="{page}" '
    'style="position:absolute;inset:0;width:100%;height:100%;border:0;background:Canvas">'
    "</iframe></div>"
)


def make_frame(sentence: str, page: str) -> str:
    """A page within another, and a sentence for who may not see it."""
    return _FRAME.format(sentence=escape(sentence), page=escape(page))


def make_report(learner: Learner, **options: Any) -> Report:
    """A report on a fitted learner.

    Parameters
    ----------
    learner : SCMClassifier, ICSCMClassifier or InvariantTreeClassifier
        A fitted one.
    **options : optional
        As for `icscm.report.summary.make_summary`: what to call the data, the label, its classes
        and the environments, columns left out, the models at other levels or tolerances, words for
        parameters.

    Returns
    -------
    Report
        The page and its other renderings.

    Examples
    --------
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
    return Report(make_summary(learner, **options))


def _render_html(summary: Plain, limits: Limits) -> str:
    name, content = _lay_out(summary, limits)
    return render_page(f"{name}.html", content, limits)


def render_page(name: str, content: Plain, limits: Limits) -> str:
    """A page from its template.

    The page loads nothing; its one style sheet and its one script are named by their hashes.
    """
    folder = files("icscm.report") / "templates"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    digests = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    styles, scripts = (f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    policy = (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = _make_environment(limits, is_html=True).get_template(name)
    return template.render(content, style=style, script=script, policy=policy)


@lru_cache(maxsize=8)
def _make_environment(limits: Limits, *, is_html: bool) -> Environment:
    """What renders templates; every value is escaped on its way out."""
    environment = Environment(
        loader=PackageLoader("icscm.report"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        autoescape=is_html,
        finalize=None if is_html else escape_markdown,
    )
    environment.filters |= {
        "share": format_share,
        "points": format_points,
        "p": format_p,
        "value": format_value,
        "interval": format_interval,
        "expected": say_expected,
        "count": lambda n: f"{n:,}",
        "level": lambda alpha: f"{alpha:g}",
        "percent": lambda share: f"{100 * share:.4g}%",
        "utility": format_utility,
        "ratio": format_ratio,
        "variation": lambda share: "-" if share is None else f"{share:.0%}",
        "score": lambda value: "" if value is None else f"{value:.3f}",
        "deviance": lambda value: f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}",
        "clip": lambda text: clip(text, limits.characters),
        "prose": lambda text: clip(text, 8 * limits.characters),  # a sentence that holds names
    }
    return environment


def _lay_out(summary: Plain, limits: Limits) -> tuple[str, Plain]:
    """The template's name, and the summary with its drawings, no more than the limits allow."""
    if is_of_tree(summary):
        name, parts = "tree", _lay_out_tree(summary, limits)
    else:
        name, parts = "report", _lay_out_rules(summary, limits)
    return name, {**summary, "limits": limits, **_lay_out_shared(summary, limits), **parts}


def _lay_out_shared(summary: Plain, limits: Limits) -> Plain:
    asked, errors, standard = summary["asked"], summary["errors"], summary["invariance"]
    band = standard["margin"] if standard["margin_on"] == "rate" else None
    *first, last = summary["leaves"]  # where no rule settles is always shown
    shown = [*first[: limits.leaves - 1], last]
    return {
        "shown_leaves": [
            {**leaf, "plot": make_plot(leaf["environments"], leaf, "rate", limits, band, "name")}
            for leaf in shown
        ],
        "elsewhere_plot": _lay_out_elsewhere(summary, shown, limits),
        "environment_plot": make_plot(
            asked["environments"], asked["overall"], "rate", limits, None, "name"
        ),
        "error_plot": make_plot(errors["environments"], errors, "error", limits, None, "name"),
        "error_rows": choose_largest(errors["environments"], limits.environments, "name"),
    }


def _lay_out_tree(summary: Plain, limits: Limits) -> Plain:
    path = summary["tolerance_path"]
    return {
        "tree_drawing": draw_nodes(summary["tree"], limits),
        "effects": draw_effects(summary["splits"], limits),
        "looks": list_tree_looks(summary),
        "path": path and {**path, "drawing": draw_tolerance_path(path)},
    }


def _lay_out_rules(summary: Plain, limits: Limits) -> Plain:
    return {
        "tree_drawing": draw_tree(summary["tree"], limits),
        "shown_sets": summary["search"]["sets"][: limits.sets],
        "looks": list_looks(summary["search"]),
        "path": summary["alpha_path"] and _lay_out_path(summary["alpha_path"], limits),
    }


def _lay_out_elsewhere(summary: Plain, shown: Sequence[Plain], limits: Limits) -> Plain | None:
    """A row for each leaf, and one for all samples, of which something can be expected."""
    overall = {**summary["asked"]["overall"], **summary["elsewhere"]["overall"]}
    told = [leaf for leaf in shown if leaf["new_interval"] is not None]
    if overall["new_interval"] is None or not told:
        return None
    rows = [
        {
            **leaf,
            "environment": f"{leaf['number']}: {leaf['condition']}",
            "rate_interval": leaf["new_interval"],
        }
        for leaf in told
    ]
    pooled = {**overall, "rate_interval": overall["new_interval"]}
    plot = make_plot(rows, pooled, "rate", limits._replace(environments=len(rows)))
    pairs = zip(plot["rows"], told, strict=True)
    return {
        **plot,
        "line": None,  # leaves are meant to differ
        "rows": [
            {**row, "seen": say_range(leaf["environments"]), "tau": leaf["tau"]}
            for row, leaf in pairs
        ],
        "pooled": {
            **plot["pooled"],
            "seen": say_range(summary["asked"]["environments"]),
            "tau": overall["tau"],
        },
    }


def _lay_out_path(path: Plain, limits: Limits) -> Plain:
    """The models with their drawings, and what the slider says at each of its places."""
    models, own_place = [], 0
    places: list[Plain] = []
    for number, model in enumerate(path["models"]):
        drawing, spans = draw_tree(model["tree"], limits), _join_levels(model["levels"])
        models.append({**model, "drawing": drawing, "spans": spans})
        rule, error = clip(model["text"], limits.characters), format_share(model["errors"]["error"])
        for level in model["levels"]:
            alpha, verdicts = f"{level['alpha']:g}", say_conclusions(level["conclusions"])
            own = " (the level of this report)" if level["is_own"] else ""
            told = f"model {model['name']}, {rule}; wrong for {error}; leaves: {verdicts}."
            own_place = len(places) if level["is_own"] else own_place
            places.append(
                {"alpha": alpha, "model": number, "text": f"alpha = {alpha}{own}: {told}"}
            )
    return {**path, "models": models, "places": places, "own_place": own_place}


def _join_levels(levels: Sequence[Plain]) -> list[Plain]:
    """Neighbouring levels with the same conclusions as one line; the report's own stands alone."""
    told = [
        (each["is_own"], say_conclusions(each["conclusions"]), each["alpha"]) for each in levels
    ]
    spans = []
    for (is_own, conclusions), group in groupby(told, key=itemgetter(0, 1)):
        ends = [f"{alpha:g}" for *_, alpha in group]
        text = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
        spans.append({"is_own": is_own, "conclusions": conclusions, "text": text})
    return spans


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


# what has a meaning within a line; a colon only in addresses and in :names: of pictures
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#]|:(?=//|\w+:)|(?<=www)\.)")


def escape_markdown(value: Any) -> str:
    r"""Text that every kind of Markdown shows as it is.

    >>> print(escape_markdown("a|b *c* <i>d</i>"))
    a\|b \*c\* &lt;i>d&lt;/i>
    """
    text = str(value).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKDOWN_SPECIAL.sub(r"\\\1", text)
