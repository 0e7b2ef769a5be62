"""A screen of columns at several tolerances: a record, its table and its figure.

The columns are screened again at each tolerance (`icscm.validation.path`): a column that a larger
tolerance keeps changes what the model learns from the others, and so their verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icscm._repr import Display, display_frame
from icscm.drawing import Figure
from icscm.drawing.path import ScoreLine, ScorePath, draw_scores
from icscm.drawing.shapes import Role
from icscm.formatting import format_name, format_number
from icscm.report.content.screen import ToleranceLevel
from icscm.report.scored_path import ScoredPath, name_tolerances
from icscm.report.wording.screening import PATH, SCORE_NAMES
from icscm.tables.outcomes import OutcomeKind

if TYPE_CHECKING:
    import pandas

# A column may lose so much of its worth in a new environment, from loose to strict.
SCREEN_TOLERANCES: Final = (1.5, 1.0, 0.75, 0.5, 0.25)


@dataclass(frozen=True)
class ScreenPoint:
    """The screen at one tolerance.

    Attributes
    ----------
    tolerance : float
        The tolerance.
    kept, rejected : tuple of columns
        The columns kept, in the order of the table, and those rejected, in the order of rejection.
    score, loss : float or None
        Cross-validated, at the training environments: AUC and log loss of two classes, mean AUC and
        log loss of several, R2 and RMSE of numbers; None where no column is left.
    scores_left_out : tuple of float or None, optional
        The score in each environment of the learner fitted without it on the columns kept; None
        where it is undefined, such as the AUC of a single class.

    Examples
    --------
    >>> from icscm.report.screen_path import ScreenPoint
    >>> point = ScreenPoint(0.5, ("age", "lactate"), ("billing_code",), 0.84, 0.49)
    >>> point.kept, point.rejected
    (('age', 'lactate'), ('billing_code',))
    """

    tolerance: float
    kept: tuple[Any, ...]
    rejected: tuple[Any, ...]
    score: float | None
    loss: float | None
    scores_left_out: tuple[float | None, ...] | None = None

    @property
    def known_scores(self) -> list[float]:
        """The scores of environments left out in which they are defined."""
        return [score for score in self.scores_left_out or () if score is not None]

    @property
    def mean_score(self) -> float | None:
        """The mean score in environments left out, each with equal weight."""
        return float(np.mean(self.known_scores)) if self.known_scores else None

    @property
    def worst_score(self) -> float | None:
        """The lowest score in an environment left out."""
        return min(self.known_scores, default=None)


@dataclass(frozen=True, repr=False)
class ScreenPath(ScoredPath):
    """A screen at several tolerances, from loose to strict.

    Attributes
    ----------
    points : tuple of ScreenPoint
        One for each tolerance.
    own : float
        The tolerance of the selector itself.
    outcome : OutcomeKind
        The kind of the outcome, which decides what the scores are.

    Examples
    --------
    >>> from icscm.report.screen_path import ScreenPath, ScreenPoint
    >>> loose = ScreenPoint(1.5, ("age", "billing_code"), (), 0.9, 0.4)
    >>> strict = ScreenPoint(0.5, ("age",), ("billing_code",), 0.84, 0.49)
    >>> path = ScreenPath((loose, strict), own=0.5)
    >>> [(level.name, level.is_own, level.leave) for level in path.list_levels()]
    [('1.5', False, []), ('0.5', True, ['billing_code'])]
    """

    points: tuple[ScreenPoint, ...]
    own: float
    outcome: OutcomeKind = OutcomeKind.TWO_CLASSES

    def list_levels(self) -> list[ToleranceLevel]:
        """Return the tolerances as records, as a report shows them."""
        levels = []
        rejected_before: tuple[Any, ...] = ()
        for point in self.points:
            leave = [column for column in point.rejected if column not in rejected_before]
            levels.append(
                ToleranceLevel(
                    tolerance=point.tolerance,
                    name=format_number(point.tolerance),
                    is_own=point.tolerance == self.own,
                    n_columns=len(point.kept),
                    rejected=[format_name(column) for column in point.rejected],
                    leave=[format_name(column) for column in leave],
                    score=point.score,
                    loss=point.loss,
                    score_left_out=point.mean_score,
                    worst_score_left_out=point.worst_score,
                )
            )
            rejected_before = point.rejected
        return levels

    def to_frame(self) -> pandas.DataFrame:
        """A row for each tolerance.

        Returns
        -------
        pandas.DataFrame
            Columns kept and rejected, the cross-validated score and loss at the training
            environments, and the score in environments left out where it is known.
        """
        frame = self._make_level_frame().drop(columns=["name", "is_own", "leave"])
        frame["rejected"] = frame["rejected"].map(", ".join)
        return frame

    def plot(self) -> Figure:
        """Draw the score along the tolerance, with the columns that are rejected.

        Returns
        -------
        icscm.drawing.Figure
            Cross-validated at the training environments and, where known, by
            leave-one-environment-out; the selector's own tolerance is marked.
        """
        scores = draw_scores(make_score_path(self.list_levels()))
        name = SCORE_NAMES[self.outcome].score
        return Figure(scores, f"{name} along the tolerance of the screen.")

    def _display(self) -> Display:
        return display_frame(fill(f"From loose to strict. {PATH}", 80), self.to_frame())


def make_score_path(levels: Sequence[ToleranceLevel]) -> ScorePath:
    """Return the scores along the tolerance, with the columns that leave, as they are drawn."""
    return ScorePath(
        names=name_tolerances(levels),
        lines=[
            ScoreLine(
                "training environments, cross-validated",
                values=[level.score for level in levels],
                role=Role.PATH_CURVE,
            ),
            ScoreLine(
                "leave-one-environment-out, mean",
                values=[level.score_left_out for level in levels],
                role=Role.OVERALL_CURVE,
            ),
            ScoreLine(
                "leave-one-environment-out, worst",
                values=[level.worst_score_left_out for level in levels],
                role=Role.WORST_CURVE,
            ),
        ],
        rejected=[f"without {', '.join(level.leave)}" if level.leave else "" for level in levels],
    )
