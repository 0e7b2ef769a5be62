"""A report as a page, as Markdown and as JSON.

Records hold the content (`icscm.report.content`), and `icscm.report.layout` what a page shows of
them. The page is one file that opens offline: drawings are SVG in the markup, and its content
security policy allows no loading and no script but its own.
"""

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from markupsafe import Markup

from icscm._version import __version__
from icscm.drawing.style import make_page_style
from icscm.exceptions import IcscmError
from icscm.formatting import dump_json
from icscm.model.saved import Learner
from icscm.report.content.learner import LearnerContent, make_learner_content
from icscm.report.documents import tripod
from icscm.report.documents.learner import write_document
from icscm.report.drawing import Limits
from icscm.report.formatting import Plain
from icscm.report.layout.learner import lay_out_learner
from icscm.report.markdown import render_markdown
from icscm.report.rendering import make_environment
from icscm.report.summary import summarize
from icscm.report.wording.model import name_model
from icscm.report.wording.tripod import Item, fill_checklist
from icscm.writing import check_free, write_text

# The largest size of a page, for any data: mail and review systems reject larger ones.
MAX_HTML_BYTES = 2_000_000


@dataclass(frozen=True, repr=False, kw_only=True)
class BaseReport(ABC):
    """A report that can be saved as a page, as Markdown and as JSON; a notebook displays it.

    Parameters
    ----------
    summary : dict
        The whole content as values that JSON can hold.
    """

    summary: Plain

    @abstractmethod
    def to_html(self) -> str:
        """One self-contained page; long lists are shortened where it would grow too large.

        Returns
        -------
        str
            HTML of less than 2 MB that opens offline.
        """

    @abstractmethod
    def to_markdown(self) -> str:
        """The report as text with tables.

        Returns
        -------
        str
            Markdown; special characters in names are escaped.
        """

    def to_dict(self) -> Plain:
        """The whole content of the report.

        Returns
        -------
        dict
            Values that JSON can hold; `icscm.report.summary` describes the keys.
        """
        return deepcopy(self.summary)

    def to_json(self) -> str:
        """The dict as JSON.

        Returns
        -------
        str
            The complete content.
        """
        return dump_json(self.summary, indent=2) + "\n"

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the report in the format of the file's ending, whole or not at all.

        Parameters
        ----------
        path : str or path
            It ends in `.html`, `.md` or `.json`.
        force : bool, default=False
            Whether to replace an existing file.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        IcscmError
            If the file exists, or its name has another ending.
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
        return f"<icscm report: {self.summary['model']['name']}>"

    def _repr_html_(self) -> str:
        """The page in a frame, so that its styles and script do not affect the notebook.

        A notebook that is not trusted shows the sentence instead of the frame.
        """
        return make_frame(self.summary["model"]["sentence"], self.to_html())


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(BaseReport):
    """A report on one fitted learner; a notebook displays it.

    Parameters
    ----------
    summary : dict
        The value of `icscm.report.summary.make_summary`, which describes it.
    content : LearnerContent
        The records that it is made from.
    """

    content: LearnerContent

    def to_html(self) -> str:
        """One self-contained page; long lists are shortened where it would grow too large.

        Returns
        -------
        str
            HTML of less than 2 MB that opens offline.
        """
        return render_page("report.html", lambda limits: lay_out_learner(self.content, limits))

    def to_markdown(self) -> str:
        """The report as text with tables.

        Returns
        -------
        str
            Markdown; special characters in names are escaped.
        """
        return render_markdown(write_document(self.content))

    def to_tripod(self, *, as_html: bool = False) -> str:
        """The TRIPOD+AI checklist (Collins and others, BMJ 2024), filled in from data and model.

        Parameters
        ----------
        as_html : bool, default=False
            Whether to return a page instead of Markdown.

        Returns
        -------
        str
            A table of the items; those that only the authors know are left open.
        """
        checklist = fill_checklist(self.content)
        if as_html:
            page = lay_out_checklist(self.content, checklist)
            return render_page("tripod.html", lambda _: page)
        return render_markdown(tripod.write_document(self.content, checklist))


def lay_out_checklist(content: LearnerContent, checklist: list[Item]) -> dict[str, Any]:
    """Return what the template of the checklist places."""
    return {
        "model_name": name_model(content.learned, content.model.features),
        "task": content.task,
        "rows": checklist,
    }


def make_frame(sentence: str, page: str) -> str:
    """A page within another, and a sentence where frames are not shown."""
    template = make_environment(0, autoescape=True).get_template("frame.html")
    # escaped here, for the template would also escape what does not print, such as ends of lines
    return template.render(sentence=sentence, page=Markup.escape(page))


def make_report(learner: Learner, **options: Any) -> Report:
    """A report on a fitted learner.

    Parameters
    ----------
    learner : SCMClassifier, ICSCMClassifier, InvariantTreeClassifier or InvariantForestClassifier
        A fitted one.
    **options : optional
        As for `icscm.report.summary.make_summary`: names of the data, the label, its classes and
        the environments, dropped columns, a path, stability.

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
    >>> report.to_dict()["headline"]["error"]["answer"]
    'AUC 0.912 in training'
    """
    content = make_learner_content(learner, **options)
    return Report(summary=summarize(content), content=content)


def render_page(name: str, lay_out: Callable[[Limits], dict[str, Any]]) -> str:
    """A page from its template, with the largest limits that keep it below `MAX_HTML_BYTES`."""
    limits = Limits()
    page = fill_template(name, lay_out(limits), limits)
    while len(page.encode()) > MAX_HTML_BYTES and limits != limits.halve():
        limits = limits.halve()
        page = fill_template(name, lay_out(limits), limits)
    return page


def fill_template(name: str, content: dict[str, Any], limits: Limits) -> str:
    """A page that loads nothing: its style sheet and its script are allowed by their hashes."""
    folder = files("icscm.report") / "templates"
    style = make_page_style() + (folder / "report.css").read_text("utf-8")
    script = (folder / "report.js").read_text("utf-8")
    policy = (
        f"default-src 'none'; style-src {hash_source(style)}; script-src {hash_source(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = make_environment(limits.characters, autoescape=True).get_template(name)
    return template.render(content, version=__version__, style=style, script=script, policy=policy)


def hash_source(text: str) -> str:
    """The hash of a style sheet or script, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
