"""The page of a fitted learner: its sections in the order of the template."""

from dataclasses import dataclass
from typing import Any

from icscm.report.content.learner import LearnerContent
from icscm.report.drawing import Limits
from icscm.report.layout.leaves import lay_out_leaves, lay_out_new_environments
from icscm.report.layout.left_out import lay_out_left_out
from icscm.report.layout.model import lay_out_model
from icscm.report.layout.paths import lay_out_path
from icscm.report.layout.search import lay_out_search
from icscm.report.layout.task import lay_out_errors, lay_out_stability, lay_out_task
from icscm.report.wording.advice import list_not_shown, list_shown, list_warnings
from icscm.report.wording.facts import Answer, Fact
from icscm.report.wording.headline import write_headline
from icscm.report.wording.model import name_model
from icscm.report.wording.paths import describe_path
from icscm.report.wording.suggestions import list_suggestions

# Facts that the page repeats below its headline.
REPEATED_FACTS = ("Shape", "Stability")


@dataclass(frozen=True, kw_only=True)
class Caution:
    """A list of warnings or suggestions below its title."""

    title: str
    points: list[str]


@dataclass(frozen=True, kw_only=True)
class StartSection:
    """What the top of the page shows.

    Parameters
    ----------
    title, page_title : str
        That of the report, and that of the page, which names the model.
    model, answers : Answer, list of Answer
        The answer on the model, and those on the other topics.
    cautions, facts : list of Caution, list of Fact
        Warnings and suggestions, and the facts that are repeated.
    path_text : str
        How the model depends on alpha or the tolerance; empty where there is one model only.
    """

    title: str
    page_title: str
    model: Answer
    answers: list[Answer]
    cautions: list[Caution]
    facts: list[Fact]
    path_text: str


@dataclass(frozen=True, kw_only=True)
class MeaningSection:
    """What the result shows and what it does not show."""

    shows: list[str]
    does_not_show: list[str]


def lay_out_learner(content: LearnerContent, limits: Limits) -> dict[str, Any]:
    """Return what the template of a fitted learner places: records, and a record by section."""
    return {
        "limits": limits,
        "names": content.names,
        "task": content.task,
        "model": content.model,
        "nodes": content.nodes,
        "start": lay_out_start(content),
        "left_out": lay_out_left_out(content, limits),
        "shown_model": lay_out_model(content, limits),
        "search": lay_out_search(content, limits),
        "leaves": lay_out_leaves(content, limits),
        "new_environments": lay_out_new_environments(content, limits),
        "errors": lay_out_errors(content, limits),
        "stability": lay_out_stability(content),
        "path": lay_out_path(content, limits),
        "data": lay_out_task(content, limits),
        "meaning": MeaningSection(shows=list_shown(content), does_not_show=list_not_shown(content)),
    }


def lay_out_start(content: LearnerContent) -> StartSection:
    """Return the title, the answers on each topic, and warnings."""
    headline = write_headline(content)
    suggestions = list_suggestions(content, content.words, content.commands)
    cautions = [
        Caution(title="Warnings", points=list_warnings(content)),
        Caution(title="Suggestions", points=suggestions),
    ]
    path = content.path
    has_several_models = path is not None and path.n_models > 1
    return StartSection(
        title=headline.title,
        page_title=name_page(content),
        model=headline.model,
        answers=[headline.new_sites, headline.error, headline.invariance, headline.rejected],
        cautions=[caution for caution in cautions if caution.points],
        facts=[fact for fact in headline.facts if fact.term in REPEATED_FACTS],
        path_text=describe_path(path) if path is not None and has_several_models else "",
    )


def name_page(content: LearnerContent) -> str:
    """Return the name of the model, or that there is none."""
    if content.model.n_rules:
        return name_model(content.learned, content.model.features)
    return "No rule found" if content.model.is_rule_set else "No split was made"
