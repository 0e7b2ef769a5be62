"""Models along alpha or the tolerance: a record, its table and its figure.

`icscm.validation.path` computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icscm._repr import Display, DisplayMixin
from icscm.drawing import Figure
from icscm.drawing.path import ScoreLine, ScorePath, draw_path, draw_scores, write_tolerance
from icscm.drawing.shapes import Role, place_beside
from icscm.formatting import clip, format_name, format_number
from icscm.report.content.nodes import measure_effect
from icscm.report.drawing import join_points
from icscm.report.formatting import Plain, format_score
from icscm.report.wording.paths import CAUTION
from icscm.stats.splits import compute_rate_heterogeneity

if TYPE_CHECKING:
    import pandas

# Numbers of a point in a report.
_MEASURES: Final = (
    *("deviance_explained", "heterogeneity", "rate_heterogeneity", "varies"),
    *("mean_auc", "worst_auc"),
)
# Characters of the columns that leave and enter, so that the table fits a terminal.
_MAX_CHANGES: Final = 26


class ScoredPoint:
    """A point of a path, with the AUC in each environment of the model learned without it."""

    aucs: tuple[float | None, ...] | None

    @property
    def mean_auc(self) -> float | None:
        """Mean of the AUCs, each environment with equal weight."""
        return float(np.mean(self.known_aucs)) if self.known_aucs else None

    @property
    def worst_auc(self) -> float | None:
        """Lowest AUC of an environment."""
        return min(self.known_aucs, default=None)

    @property
    def known_aucs(self) -> list[float]:
        """The AUCs of environments with both classes."""
        return [each for each in self.aucs or () if each is not None]


@dataclass(frozen=True)
class PathPoint(ScoredPoint):
    """The model at one alpha or tolerance.

    Parameters
    ----------
    value : float or None
        The level or tolerance; None for a plain tree.
    model, trace : Tree, Trace
        The model, and the record of its search.
    aucs : tuple of float or None, optional
        The AUC in each environment of the model learned without it, in the order of the
        environments; None where one has a single class. None where they were not left out.

    Examples
    --------
    >>> from icscm import InvariantTreeClassifier
    >>> from icscm.datasets import make_hospitals
    >>> from icscm.validation.path import tolerance_path
    >>> data = make_hospitals(random_state=0)
    >>> rows = {"X": data.X, "y": data.y, "environments": data.environments}
    >>> tree = InvariantTreeClassifier()
    >>> path = tolerance_path(tree, **rows, tolerances=[0.01], leave_one_out=False)
    >>> path.points[0].value, path.points[0].features
    (0.01, ('lactate', 'age'))
    """

    value: float | None
    model: Any
    trace: Any
    aucs: tuple[float | None, ...] | None = None

    @property
    def features(self) -> tuple[str | int, ...]:
        """Columns of a tree, the one that explains most deviance first."""
        found = self.trace.list_importances()
        return tuple(sorted(found, key=lambda feature: -found[feature][0]))

    @property
    def deviance_explained(self) -> float:
        """Deviance explained by all splits; for effects, by those common to all environments."""
        if self.trace.invariance == "rate":
            return float(sum(each.deviance_explained or 0.0 for each in self._list_chosen()))
        return sum(measure_effect(each)[0] for each in self._list_chosen())

    @property
    def heterogeneity(self) -> float:
        """Heterogeneity of the effects of all splits beyond chance, a deviance."""
        return sum(measure_effect(each)[1] for each in self._list_chosen())

    @property
    def rate_heterogeneity(self) -> float:
        """Dependence of the label on the environment in all leaves: their G statistics."""
        statistics, _ = compute_rate_heterogeneity(np.array(self.model.leaves, dtype=np.int64))
        return float(statistics.sum())

    @property
    def varies(self) -> float:
        """Heterogeneity of effects or rates, whichever must be homogeneous."""
        is_rate = self.trace.invariance == "rate"
        return self.rate_heterogeneity if is_rate else self.heterogeneity

    def _list_chosen(self) -> list[Any]:
        return [step.chosen for step in self.trace.steps]


@dataclass(frozen=True, repr=False)
class Path(DisplayMixin):
    """Models along alpha, ascending, or along the tolerance, from plain to strict.

    Parameters
    ----------
    parameter : {"alpha", "tolerance"}
        What varies.
    points : tuple of PathPoint
        One for each value.
    own : float
        The value of the learner itself.
    environments : tuple
        In the order of `PathPoint.aucs`.

    Examples
    --------
    >>> from icscm import InvariantTreeClassifier
    >>> from icscm.datasets import make_hospitals
    >>> from icscm.validation.path import tolerance_path
    >>> data = make_hospitals(random_state=0)
    >>> rows = {"X": data.X, "y": data.y, "environments": data.environments}
    >>> tolerances = [0.01, 0.1]
    >>> tree = InvariantTreeClassifier()
    >>> path = tolerance_path(tree, **rows, tolerances=tolerances, leave_one_out=False)
    >>> path.parameter, len(path.points)
    ('tolerance', 2)
    """

    parameter: str
    points: tuple[PathPoint, ...]
    own: float | None
    environments: tuple[Any, ...]

    @property
    def own_point(self) -> PathPoint:
        """The model at the value of the learner itself."""
        return next(each for each in self.points if each.value == self.own)

    @property
    def values(self) -> tuple[float | None, ...]:
        """Every value tried."""
        return tuple(each.value for each in self.points)

    @property
    def groups(self) -> list[list[PathPoint]]:
        """Neighbouring points with the same model; a model may come back later."""
        return [list(group) for _, group in groupby(self.points, key=lambda each: each.model)]

    def list_changes(self) -> list[tuple[list[str], list[str]]]:
        """The columns that leave at each tolerance, and those that enter.

        Returns
        -------
        list of pairs of lists of str
            Each relative to the tolerance before it; of the first, both are empty.
        """
        changes: list[tuple[list[str], list[str]]] = []
        for i, point in enumerate(self.points):
            before = self.points[i - 1].features if i else point.features
            left = [format_name(each) for each in before if each not in point.features]
            changes.append((left, [format_name(e) for e in point.features if e not in before]))
        return changes

    def to_frame(self) -> pandas.DataFrame:
        """A row for each tolerance.

        Returns
        -------
        pandas.DataFrame
            Leaves, `deviance_explained`, `heterogeneity` and `rate_heterogeneity`, columns that
            leave and enter, and the leave-one-environment-out AUC where it is known; NaN is the
            plain tree.
        """
        import pandas

        scores = {"mean_auc": "auc_left_out", "worst_auc": "worst_auc_left_out"}
        numbers = ["n_leaves", "n_features", "deviance_explained", "heterogeneity"]
        names = [self.parameter, *numbers, "rate_heterogeneity", "leave", "enter"]
        names += [] if self.points[0].aucs is None else scores.values()
        frame = pandas.DataFrame(self.describe_points()).rename(columns=scores)
        frame["n_features"] = frame["features"].map(len)
        for name in ("leave", "enter"):
            frame[name] = frame[name].map(", ".join)
        return frame[names].astype({self.parameter: float})

    def describe_points(self) -> list[Plain]:
        """Every tolerance with its tree in numbers, and the columns that leave or enter.

        Returns
        -------
        list of dict
            Plain values, as in a report.
        """
        return [
            {
                "tolerance": point.value,
                "name": "plain" if point.value is None else format_number(point.value),
                "is_own": point.value == self.own,
                "n_leaves": len(point.model.leaves),
                "features": [format_name(each) for each in point.features],
                "leave": left,
                "enter": entered,
                **{name: getattr(point, name) for name in _MEASURES},
                "aucs": None if point.aucs is None else [*point.aucs],
                "text": str(point.model),
            }
            for point, (left, entered) in zip(self.points, self.list_changes(), strict=True)
        ]

    def plot(self) -> Figure:
        """Deviance explained against heterogeneity, with the columns that leave.

        Returns
        -------
        icscm.drawing.Figure
            One dot for each tolerance, the learner's own larger, and the AUCs where known.
        """
        points = self.describe_points()
        panel = draw_path(join_points(points))
        if self.points[0].aucs is not None:
            panel = place_beside([panel, draw_scores(_make_score_path(points))], gap=24.0)
        return Figure(panel, "Deviance explained and heterogeneity along the tolerance.")

    def _display(self) -> Display:
        has_scores, rows = self.points[0].aucs is not None, []
        for each in self.describe_points():
            signed = ("-", each["leave"]), ("+", each["enter"])
            changes = "; ".join(f"{sign} {', '.join(names)}" for sign, names in signed if names)
            numbers = each["n_leaves"], round(each["deviance_explained"]), round(each["varies"])
            scores = (each["mean_auc"], each["worst_auc"]) if has_scores else ()
            name = each["name"] + ("*" if each["is_own"] else "")
            cells = [*(f"{number:,}" for number in numbers), *map(format_score, scores)]
            rows.append((name, clip(changes, _MAX_CHANGES), *cells))
        line = "From a plain tree to a strict one; * is the tolerance of the learner."
        columns = "tolerance", "leave (-), enter (+)", ">leaves", ">deviance", ">varies"
        if not has_scores:
            return Display(line, columns, rows)
        caution = fill(CAUTION, 80)
        return Display(f"{line}\n{caution}", (*columns, ">AUC out", ">worst"), rows)


def _make_score_path(points: Sequence[Plain]) -> ScorePath:
    """Make the record of the AUCs in environments left out, along the tolerance."""
    return ScorePath(
        names=[write_tolerance(point["name"], is_own=point["is_own"]) for point in points],
        lines=[
            ScoreLine(
                "leave-one-environment-out, mean",
                values=[point["mean_auc"] for point in points],
                role=Role.OVERALL_CURVE,
            ),
            ScoreLine(
                "leave-one-environment-out, worst",
                values=[point["worst_auc"] for point in points],
                role=Role.WORST_CURVE,
            ),
        ],
        rejected=[""] * len(points),
        spread=[[auc for auc in point["aucs"] if auc is not None] for point in points],
    )
