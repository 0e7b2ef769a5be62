"""A screen of columns at other tolerances: a record, its table and its figure.

The screen always rejects the worst column first, so that another tolerance only stops the same
sequence of rejections earlier or later: a column is rejected at tolerances below the smallest share
so far. Stricter tolerances than the screen's own are known only as far as it went on;
`icscm.validation.path` screens again for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from icscm._constants import CHANCE_LEVEL
from icscm._repr import Display, display_frame
from icscm.drawing import Figure
from icscm.drawing.path import ScoreLine, ScorePath, draw_scores
from icscm.drawing.shapes import Role
from icscm.formatting import format_name, format_number
from icscm.parameters import allow, check_value
from icscm.report.content.screen import REJECTED, ToleranceLevel
from icscm.report.scored_path import ScoredPath, ScoredPoint, name_tolerances
from icscm.report.wording.screening import describe_price

if TYPE_CHECKING:
    import pandas

SCREEN_TOLERANCES: Final = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)


@dataclass(frozen=True)
class ScreenPoint(ScoredPoint):
    """The screen at one tolerance.

    Attributes
    ----------
    tolerance : float
        The tolerance.
    kept, leave : tuple of columns
        The columns kept, and those rejected here but not at the next larger tolerance.
    auc, log_loss : float or None
        Cross-validated, at the training environments; None where no column is left.
    aucs : tuple of float or None, optional
        The AUC in each environment of the learner fitted without it on the columns kept; None
        where an environment has a single class.

    Examples
    --------
    >>> from icscm.report.screen_path import ScreenPoint
    >>> point = ScreenPoint(0.01, ("age", "lactate"), ("billing_code",), 0.84, 0.49)
    >>> point.kept, point.leave
    (('age', 'lactate'), ('billing_code',))
    """

    tolerance: float
    kept: tuple[Any, ...]
    leave: tuple[Any, ...]
    auc: float | None
    log_loss: float | None
    aucs: tuple[float | None, ...] | None = None


@dataclass(frozen=True, repr=False)
class ScreenPath(ScoredPath):
    """A screen at several tolerances, from loose to strict.

    Attributes
    ----------
    points : tuple of ScreenPoint
        One for each tolerance.
    own : float
        The tolerance of the selector itself.
    falls : dict
        The tolerance below which each rejected column is rejected, in the order of rejection;
        infinite where it is informative in too few environments.

    Examples
    --------
    >>> from icscm.report.screen_path import ScreenPath, ScreenPoint
    >>> loose = ScreenPoint(0.1, ("age", "billing_code"), (), 0.9, 0.4)
    >>> strict = ScreenPoint(0.01, ("age",), ("billing_code",), 0.84, 0.49)
    >>> path = ScreenPath((loose, strict), own=0.01, falls={"billing_code": 0.05})
    >>> [(level.name, level.is_own) for level in path.list_levels()]
    [('0.1', False), ('0.01', True)]
    """

    points: tuple[ScreenPoint, ...]
    own: float
    falls: dict[Any, float]

    def list_levels(self) -> list[ToleranceLevel]:
        """The tolerances as records, as a report shows them."""
        return [
            ToleranceLevel(
                tolerance=point.tolerance,
                name=format_number(point.tolerance),
                is_own=point.tolerance == self.own,
                n_columns=len(point.kept),
                leave=[format_name(column) for column in point.leave],
                auc=point.auc,
                log_loss=point.log_loss,
                auc_left_out=point.mean_auc,
                worst_auc_left_out=point.worst_auc,
            )
            for point in self.points
        ]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each tolerance.

        Returns
        -------
        pandas.DataFrame
            Columns left and rejected, cross-validated AUC and log loss at the training
            environments, and the leave-one-environment-out AUC where it is known.
        """
        return self._make_level_frame().drop(columns=["name", "is_own"])

    def plot(self) -> Figure:
        """AUC along the tolerance, with the columns that are rejected.

        Returns
        -------
        icscm.drawing.Figure
            Cross-validated at the training environments and, where known, by
            leave-one-environment-out; the selector's own tolerance is marked.
        """
        scores = draw_scores(make_score_path(self.list_levels()))
        return Figure(scores, "AUC along the tolerance of the screen.")

    def _display(self) -> Display:
        price = describe_price(self.own)
        return display_frame(fill(f"From loose to strict. {price}", 80), self.to_frame())


def make_score_path(levels: Sequence[ToleranceLevel]) -> ScorePath:
    """Return the AUCs along the tolerance, with the columns that leave, as they are drawn."""
    return ScorePath(
        names=name_tolerances(levels),
        lines=[
            ScoreLine(
                "training environments, cross-validated",
                values=[level.auc for level in levels],
                role=Role.PATH_CURVE,
            ),
            ScoreLine(
                "leave-one-environment-out, mean",
                values=[level.auc_left_out for level in levels],
                role=Role.OVERALL_CURVE,
            ),
            ScoreLine(
                "leave-one-environment-out, worst",
                values=[level.worst_auc_left_out for level in levels],
                role=Role.WORST_CURVE,
            ),
        ],
        rejected=[f"without {', '.join(level.leave)}" if level.leave else "" for level in levels],
    )


def find_known_tolerance(screen: pandas.DataFrame, own: float) -> float:
    """Return the smallest tolerance at which a screen would be the same as at its own.

    No column that was kept has a larger share that is significant.
    """
    is_significant = (screen["verdict"] != REJECTED) & (screen["p_value"] < CHANCE_LEVEL)
    if not is_significant.any():
        return 0.0
    return float(min(own, screen.loc[is_significant, "share"].max()))


def make_screen_path(
    screen: pandas.DataFrame,
    rounds: pandas.DataFrame,
    tolerances: Iterable[float],
    *,
    own: float,
    strictest: float | None = None,
) -> ScreenPath:
    """Return the path of a fitted selector, given its `screen_` and `rounds_`.

    Tolerances below `strictest`, which the screen does not decide, are ignored; by default those
    below `find_known_tolerance`.
    """
    values = {*tolerances, own}
    for tolerance in values:
        check_value("each of tolerances", tolerance, allow("float [0, inf)"))
    if strictest is None:
        strictest = find_known_tolerance(screen, own)

    rejections = list_rejections(screen)
    loose_to_strict = sorted((value for value in values if value >= strictest), reverse=True)
    points: list[ScreenPoint] = []
    kept_before = {*screen["column"]}
    for tolerance in loose_to_strict:
        rejected = [rejection for rejection in rejections if rejection.fall > tolerance]
        rejected_columns = [rejection.column for rejection in rejected]
        kept = tuple(column for column in screen["column"] if column not in rejected_columns)
        scores = find_scores(rounds, rejected)
        points.append(
            ScreenPoint(
                tolerance=float(tolerance),
                kept=kept,
                leave=tuple(column for column in rejected_columns if column in kept_before),
                auc=scores.auc,
                log_loss=scores.log_loss,
            )
        )
        kept_before = {*kept}
    falls = {rejection.column: rejection.fall for rejection in rejections}
    return ScreenPath(tuple(points), own=own, falls=falls)


class ColumnRejection(NamedTuple):
    """A rejected column, its round, and the tolerance below which it is rejected (`fall`)."""

    column: Any
    round: int
    fall: float


def list_rejections(screen: pandas.DataFrame) -> list[ColumnRejection]:
    """Return the rejected columns in the order of rejection.

    A column is rejected only after those before it, so that it is rejected at tolerances below the
    smallest share so far. Columns of round 0 are rejected at any tolerance, without a test:

        round   share   fall
        0       -       inf
        1       0.30    0.30
        2       0.05    0.05
        3       0.12    0.05    (it was tested without the columns before)
    """
    rejected = screen[screen["verdict"] == REJECTED].sort_values("round", kind="stable")
    falls = rejected["share"].where(rejected["round"] > 0, inf).cummin()
    columns = zip(rejected["column"], rejected["round"], falls, strict=True)
    return [ColumnRejection(column, number, fall) for column, number, fall in columns]


class RoundScores(NamedTuple):
    """Scores of the columns left, cross-validated at the training environments."""

    auc: float | None
    log_loss: float | None


def find_scores(rounds: pandas.DataFrame, rejected: Sequence[ColumnRejection]) -> RoundScores:
    """Return the scores without some rejected columns: those of the round after their last one.

    No round follows where every column was rejected; the scores are then not known.
    """
    n_rounds = len({rejection.round for rejection in rejected} - {0})
    if n_rounds >= len(rounds):
        return RoundScores(auc=None, log_loss=None)
    scores = rounds.iloc[n_rounds]
    return RoundScores(auc=float(scores["auc"]), log_loss=float(scores["log_loss"]))
