"""What paths have in common: points with the AUC where rows were left out, and their table.

`icscm.report.path` has the models along alpha or the tolerance, `icscm.report.screen_path` the
screens of columns along the tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from icscm._repr import DisplayMixin
from icscm.drawing.path import write_tolerance
from icscm.report.formatting import Plain

if TYPE_CHECKING:
    import pandas


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
        return [auc for auc in self.aucs or () if auc is not None]


class ScoredPath(DisplayMixin):
    """Points along a parameter, from loose to strict; a subclass says what a report shows of them.

    A level is a record of a point in numbers and names.
    """

    points: tuple[Any, ...]

    def list_levels(self) -> Sequence[Any]:
        """Return the points as records, as a report shows them."""
        raise NotImplementedError

    @property
    def _has_scores(self) -> bool:
        """Whether the AUC in environments left out is known."""
        return self.points[0].aucs is not None

    def describe_points(self) -> list[Plain]:
        """Return every point as plain values, as in the JSON of a report.

        Returns
        -------
        list of dict
            The fields of each level.
        """
        return [asdict(level) for level in self.list_levels()]

    def _make_level_frame(self) -> pandas.DataFrame:
        """Return a row for each level, the columns that leave and enter as text."""
        import pandas

        frame = pandas.DataFrame(self.describe_points())
        for name in {"leave", "enter"}.intersection(frame):
            frame[name] = frame[name].map(", ".join)
        return frame


class NamedLevel(Protocol):
    """A tolerance by its name, and whether it is the learner's own."""

    @property
    def name(self) -> str: ...
    @property
    def is_own(self) -> bool: ...


def name_tolerances(levels: Sequence[NamedLevel]) -> list[str]:
    """Return the names on the axis of a figure; the learner's own is marked."""
    return [write_tolerance(level.name, is_own=level.is_own) for level in levels]
