"""The sections on errors, on subsamples, and on the task: data, settings and dropped columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from icscm.formatting import clip
from icscm.report.content.errors import ErrorInEnvironment, ErrorRate, Errors
from icscm.report.content.learner import LearnerContent
from icscm.report.content.stability import Frequency
from icscm.report.content.task import Setting
from icscm.report.drawing import (
    DrawnPlot,
    Limits,
    choose_largest,
    make_error_row,
    make_plot,
    make_rate_row,
)
from icscm.report.wording.errors import name_measured_rows
from icscm.report.wording.model import describe_worst
from icscm.report.wording.requirement import describe_requirement
from icscm.report.wording.stability import describe_own_frequencies

# Frequencies on subsamples that are listed.
N_FREQUENT = 10


# --- errors ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ErrorSection:
    """The errors overall and by environment.

    Parameters
    ----------
    overall : Errors
        Those of all rows.
    rows : list of ErrorRate
        All rows, then the environments that are listed, where there are several.
    measured_on, worst_text : str
        The rows on which errors were measured, and the environment of the largest error.
    plot, caption, columns : DrawnPlot, str, list of str
        The drawn errors, and the caption and titles of the table below.
    """

    overall: Errors
    rows: list[ErrorRate]
    measured_on: str
    worst_text: str
    plot: DrawnPlot
    caption: str
    columns: list[str]


def lay_out_errors(content: LearnerContent, limits: Limits) -> ErrorSection:
    """Return the errors overall and by environment."""
    errors = content.errors
    environments: list[ErrorInEnvironment] = []
    if len(errors.environments) > 1:
        environments = choose_largest(errors.environments, limits.environments)
    plot = make_plot(
        [make_error_row(place.environment, place) for place in errors.environments],
        make_error_row("all", errors),
        limits,
        by_name=True,
    )
    measures = [">AUC", ">Brier score"]
    if not errors.is_out_of_bag:
        measures = [">sensitivity", ">specificity"]
    place = clip(content.names.place, limits.characters)
    return ErrorSection(
        overall=errors,
        rows=[errors, *environments],
        measured_on=name_measured_rows(errors),
        worst_text=describe_worst(errors, content.names) or "",
        plot=plot,
        caption=describe_measures(content, limits),
        columns=[place, ">wrong", ">samples", *measures, ">baseline error"],
    )


def describe_measures(content: LearnerContent, limits: Limits) -> str:
    """Return the caption of the table of errors."""
    if content.errors.is_out_of_bag:
        return "Metrics"
    positive = clip(content.names.positive, limits.characters)
    negative = clip(content.names.negative, limits.characters)
    return (
        f"Sensitivity is the share of {positive} predicted as such, specificity that of {negative}"
    )


# --- subsamples -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FrequencyTable:
    """The most frequent columns, rules or models on subsamples."""

    name: str
    noun: str
    caption: str
    rows: Sequence[Frequency]


@dataclass(frozen=True, kw_only=True)
class StabilitySection:
    """How often columns, rules and models were found on subsamples."""

    text: str
    tables: list[FrequencyTable]


def lay_out_stability(content: LearnerContent) -> StabilitySection | None:
    """Return the most frequent columns, rules and models; None where not computed."""
    stability = content.stability
    if stability is None:
        return None
    tables = [
        make_frequency_table("column", stability.features),
        make_frequency_table("rule", stability.rules),
        make_frequency_table("model", stability.models),
    ]
    return StabilitySection(
        text=describe_own_frequencies(stability, is_forest=content.model.noun == "forest"),
        tables=[table for table in tables if table.rows],
    )


def make_frequency_table(noun: str, frequencies: Sequence[Frequency]) -> FrequencyTable:
    """Return a table of the first frequencies, which are the highest."""
    what = f"{noun}s".capitalize()
    if len(frequencies) > N_FREQUENT:
        what = f"The {N_FREQUENT} most frequent of {len(frequencies)} {noun}s"
    return FrequencyTable(
        name=f"stability-{noun}s",
        noun=noun,
        caption=f"{what} of the subsamples",
        rows=frequencies[:N_FREQUENT],
    )


# --- the task -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TaskSection:
    """The data and the settings.

    Parameters
    ----------
    requirement_text : str
        What the search required of the model.
    plot : DrawnPlot
        The rates in the data.
    chosen, not_chosen : list of Setting
        Settings that differ from their defaults, and those that do not.
    n_more_dropped : int
        Dropped columns that are not listed.
    """

    requirement_text: str
    plot: DrawnPlot
    chosen: list[Setting]
    not_chosen: list[Setting]
    n_more_dropped: int


def lay_out_task(content: LearnerContent, limits: Limits) -> TaskSection:
    """Return the rates in the data, the settings and the dropped columns."""
    task = content.task
    return TaskSection(
        requirement_text=describe_requirement(content.nodes, content.names, content.model.kind),
        plot=make_plot(
            [make_rate_row(rate.environment, rate) for rate in task.environments],
            make_rate_row("all", task.overall),
            limits,
            by_name=True,
        ),
        chosen=[setting for setting in task.settings if not setting.is_default],
        not_chosen=[setting for setting in task.settings if setting.is_default],
        n_more_dropped=max(len(task.dropped) - limits.environments, 0),
    )
