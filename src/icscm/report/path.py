"""Models along alpha or the tolerance: a record, its table and its figure.

`icscm.validation.path` computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from icscm._repr import Display
from icscm.drawing import Figure
from icscm.drawing.path import ScoreLine, ScorePath, draw_path, draw_scores
from icscm.drawing.shapes import Role, place_beside
from icscm.formatting import clip, format_name, format_number
from icscm.report.content.candidates import measure_effect
from icscm.report.content.paths import TreeAtTolerance
from icscm.report.drawn_curves import make_path_dots
from icscm.report.formatting import format_score
from icscm.report.scored_path import ScoredPath, ScoredPoint, name_tolerances
from icscm.report.wording.paths import CAUTION
from icscm.search.records import Candidate
from icscm.stats.splits import compute_rate_heterogeneity

if TYPE_CHECKING:
    import pandas

# Characters of the columns that leave and enter, so that the table fits a terminal.
_MAX_CHANGES: Final = 26


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
        importances = self.trace.list_importances()
        return tuple(sorted(importances, key=lambda feature: -importances[feature][0]))

    @property
    def deviance_explained(self) -> float:
        """Deviance explained by all splits; for effects, by those common to all environments."""
        if self.trace.invariance == "rate":
            return float(sum(split.deviance_explained or 0.0 for split in self._list_chosen()))
        return sum(measure_effect(split).deviance_explained for split in self._list_chosen())

    @property
    def heterogeneity(self) -> float:
        """Heterogeneity of the effects of all splits beyond chance, a deviance."""
        return sum(measure_effect(split).heterogeneity for split in self._list_chosen())

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

    def _list_chosen(self) -> list[Candidate]:
        """Return the splits of the tree, as the search chose them."""
        return [step.chosen for step in self.trace.steps]


@dataclass(frozen=True, repr=False)
class Path(ScoredPath):
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
        return next(point for point in self.points if point.value == self.own)

    @property
    def values(self) -> tuple[float | None, ...]:
        """Every value tried."""
        return tuple(point.value for point in self.points)

    @property
    def groups(self) -> list[list[PathPoint]]:
        """Neighbouring points with the same model; a model may come back later."""
        return [list(group) for _, group in groupby(self.points, key=lambda point: point.model)]

    def list_changes(self) -> list[tuple[list[str], list[str]]]:
        """The columns that leave at each tolerance, and those that enter.

        Returns
        -------
        list of pairs of lists of str
            Each relative to the tolerance before it; of the first, both are empty.
        """
        return [(changes.leave, changes.enter) for changes in self._compare_columns()]

    def _compare_columns(self) -> list[ColumnChanges]:
        """Compare the columns at each tolerance with those at the tolerance before it."""
        changes = []
        columns_before = self.points[0].features
        for point in self.points:
            changes.append(find_changes(columns_before, point.features))
            columns_before = point.features
        return changes

    def list_levels(self) -> list[TreeAtTolerance]:
        """Return the trees as records, as a report shows them."""
        return [
            TreeAtTolerance(
                tolerance=point.value,
                name="plain" if point.value is None else format_number(point.value),
                is_own=point.value == self.own,
                n_leaves=len(point.model.leaves),
                features=[format_name(column) for column in point.features],
                leave=changes.leave,
                enter=changes.enter,
                deviance_explained=point.deviance_explained,
                heterogeneity=point.heterogeneity,
                rate_heterogeneity=point.rate_heterogeneity,
                varies=point.varies,
                mean_auc=point.mean_auc,
                worst_auc=point.worst_auc,
                aucs=None if point.aucs is None else list(point.aucs),
                text=str(point.model),
            )
            for point, changes in zip(self.points, self._compare_columns(), strict=True)
        ]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each tolerance.

        Returns
        -------
        pandas.DataFrame
            Leaves, `deviance_explained`, `heterogeneity` and `rate_heterogeneity`, columns that
            leave and enter, and the leave-one-environment-out AUC where it is known; NaN is the
            plain tree.
        """
        measures = ["deviance_explained", "heterogeneity", "rate_heterogeneity"]
        names = [self.parameter, "n_leaves", "n_features", *measures, "leave", "enter"]
        if self._has_scores:
            names += ["auc_left_out", "worst_auc_left_out"]
        frame = self._make_level_frame()
        frame["n_features"] = frame["features"].map(len)
        renamed = frame.rename(
            columns={"mean_auc": "auc_left_out", "worst_auc": "worst_auc_left_out"}
        )
        return renamed[names].astype({self.parameter: float})

    def plot(self) -> Figure:
        """Deviance explained against heterogeneity, with the columns that leave.

        Returns
        -------
        icscm.drawing.Figure
            One dot for each tolerance, the learner's own larger, and the AUCs where known.
        """
        trees = self.list_levels()
        panel = draw_path(make_path_dots(trees))
        if self._has_scores:
            panel = place_beside([panel, draw_scores(_make_score_path(trees))], gap=24.0)
        return Figure(panel, "Deviance explained and heterogeneity along the tolerance.")

    def _display(self) -> Display:
        line = "From a plain tree to a strict one; * is the tolerance of the learner."
        columns = ["tolerance", "leave (-), enter (+)", ">leaves", ">deviance", ">varies"]
        if self._has_scores:
            line += f"\n{fill(CAUTION, 80)}"
            columns += [">AUC out", ">worst"]
        rows = [_write_row(tree, has_scores=self._has_scores) for tree in self.list_levels()]
        return Display(line, columns, rows)


class ColumnChanges(NamedTuple):
    """The columns of the tree before that a tree does without, and those that it has besides."""

    leave: list[str]
    enter: list[str]


def find_changes(
    columns_before: Sequence[str | int], columns: Sequence[str | int]
) -> ColumnChanges:
    """Compare the columns of a tree with those of the tree before.

    >>> find_changes(["age", "code"], ["age", "dose"])
    ColumnChanges(leave=['code'], enter=['dose'])
    """
    return ColumnChanges(
        leave=[format_name(column) for column in columns_before if column not in columns],
        enter=[format_name(column) for column in columns if column not in columns_before],
    )


def _write_row(tree: TreeAtTolerance, *, has_scores: bool) -> list[str]:
    """Write the row of a tolerance in the table that a path prints as."""
    changes = []
    if tree.leave:
        changes.append(f"- {', '.join(tree.leave)}")
    if tree.enter:
        changes.append(f"+ {', '.join(tree.enter)}")
    scores = [format_score(tree.mean_auc), format_score(tree.worst_auc)] if has_scores else []
    return [
        f"{tree.name}*" if tree.is_own else tree.name,
        clip("; ".join(changes), _MAX_CHANGES),
        f"{tree.n_leaves:,}",
        f"{round(tree.deviance_explained):,}",
        f"{round(tree.varies):,}",
        *scores,
    ]


def _make_score_path(trees: Sequence[TreeAtTolerance]) -> ScorePath:
    """Make the record of the AUCs in environments left out, along the tolerance."""
    return ScorePath(
        names=name_tolerances(trees),
        lines=[
            ScoreLine(
                "leave-one-environment-out, mean",
                values=[tree.mean_auc for tree in trees],
                role=Role.OVERALL_CURVE,
            ),
            ScoreLine(
                "leave-one-environment-out, worst",
                values=[tree.worst_auc for tree in trees],
                role=Role.WORST_CURVE,
            ),
        ],
        rejected=[""] * len(trees),
        spread=[[auc for auc in tree.aucs or () if auc is not None] for tree in trees],
    )
