"""The section on environments left out: scores by environment, pooled, and curves."""

from collections.abc import Mapping
from dataclasses import dataclass

from icscm.formatting import as_text, clip
from icscm.report.content.learner import LearnerContent
from icscm.report.content.validation import (
    LeftOutEnvironment,
    PooledScore,
    Score,
    ValidationRecord,
)
from icscm.report.drawing import Limits
from icscm.report.drawn_curves import AucRow, DrawnDecisions, draw_auc_rows, draw_decisions
from icscm.report.wording.estimates import describe_estimate, has_prediction_interval

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """The scores in an environment, as text."""

    environment: str
    n_samples: int
    scores: list[str]


@dataclass(frozen=True, kw_only=True)
class LeftOutSection:
    """Scores of models in the environments that they were learned without.

    Parameters
    ----------
    auc_rows : list of AucRow
        Drawn AUCs; empty without an AUC.
    columns, rows : list of str, list of ScoreRow
        Of the table of all scores; titles that start with > are of numbers.
    pooled, new : list of str
        The random-effects means, and the prediction intervals in a new environment.
    decisions, n_environments : DrawnDecisions, int
        Curves of calibration and net benefit, and how many environments there are.
    """

    auc_rows: list[AucRow]
    columns: list[str]
    rows: list[ScoreRow]
    pooled: list[str]
    new: list[str]
    decisions: DrawnDecisions
    n_environments: int


def lay_out_left_out(content: LearnerContent, limits: Limits) -> LeftOutSection | None:
    """Return the scores in environments left out, and their curves; None where not measured."""
    validation = content.validation
    if validation is None:
        return None
    pooled = [validation.pooled[name] for name in validation.titles]
    titles = [f">{title}" for title in validation.titles.values()]
    return LeftOutSection(
        auc_rows=draw_auc_rows(validation, limits),
        columns=[clip(content.names.place, limits.characters), ">samples", *titles],
        rows=[
            make_score_row(environment, validation.titles)
            for environment in validation.held_out[: limits.environments]
        ],
        pooled=[format_estimate(score) for score in pooled],
        new=[format_new_score(score) for score in pooled],
        decisions=lay_out_decisions(validation, limits),
        n_environments=len(validation.held_out),
    )


def make_score_row(environment: LeftOutEnvironment, titles: Mapping[str, str]) -> ScoreRow:
    """Return the scores in one environment, in the order of their titles."""
    return ScoreRow(
        environment=as_text(environment.environment),
        n_samples=environment.n_samples,
        scores=[format_estimate(environment.scores[name]) for name in titles],
    )


def lay_out_decisions(validation: ValidationRecord, limits: Limits) -> DrawnDecisions:
    """Return the curves of calibration and net benefit, where they are known."""
    return draw_decisions(
        validation.curves,
        environments=validation.held_out,
        thresholds=validation.thresholds,
        limits=limits,
    )


def format_estimate(score: Score | None) -> str:
    """Return a score with its interval, whose ends stay on one line."""
    return describe_estimate(score).replace(" to ", f"{NO_BREAK_SPACE}to{NO_BREAK_SPACE}")


def format_new_score(pooled: PooledScore | None) -> str:
    """Return the prediction interval of a score, on one line."""
    if pooled is None or not has_prediction_interval(pooled):
        return "-"
    return f"{pooled.new_low:.2f}{NO_BREAK_SPACE}to{NO_BREAK_SPACE}{pooled.new_high:.2f}"
