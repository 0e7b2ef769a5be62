"""How a tree depends on the tolerance: from a plain one to one that hardly forgives anything.

The table was binned once; each tolerance costs one more tree over the same counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icscm._constants import DEFAULT_TOLERANCES
from icscm._repr import Display, DisplayMixin
from icscm.engine.counts import CountSource
from icscm.exceptions import IcscmError
from icscm.formatting import clip, format_name, format_number
from icscm.model.tree import Tree
from icscm.parameters import POSITIVE_NUMBER, check_matplotlib, check_value
from icscm.report.effects import measure_effect
from icscm.search.grow import TreeSettings
from icscm.search.records import Candidate
from icscm.search.trace import Trace
from icscm.search.trees import find_tree
from icscm.stats.splits import compute_rate_heterogeneity

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

# Characters of what leaves and enters, so that the table fits a terminal; `to_frame` has all.
_MAX_CHANGES: Final = 26

#: What leaving environments out can say of a tolerance, and what it cannot.
CAUTION: Final = (
    "An environment left out shows no shift worse than those between the environments at hand: a "
    "loose tolerance that does well there may fail where a shortcut turns round. Of tolerances "
    "that do about as well, prefer the strict one."
)


@dataclass(frozen=True)
class HeldOut:
    """How trees of one tolerance do in environments that they did not see.

    Parameters
    ----------
    aucs : tuple of float or None
        In each environment left out, in their order; None where it has one class only.
    """

    aucs: tuple[float | None, ...]

    @property
    def mean(self) -> float | None:
        """Over environments, whatever their sizes."""
        known = [each for each in self.aucs if each is not None]
        return sum(known) / len(known) if known else None

    @property
    def worst(self) -> float | None:
        """In the environment that came off worst."""
        return min((each for each in self.aucs if each is not None), default=None)


@dataclass(frozen=True)
class TolerancePoint:
    """The tree of one tolerance.

    Parameters
    ----------
    tolerance : float or None
        None for the plain tree.
    model, trace : Tree, Trace
        The tree, and how it came about.
    held_out : HeldOut, optional
        What leaving each environment out says, where that was asked.
    """

    tolerance: float | None
    model: Tree
    trace: Trace
    held_out: HeldOut | None = None

    @property
    def features(self) -> tuple[str | int, ...]:
        """Those used, the most informative first."""
        found = self.trace.list_importances()
        return tuple(sorted(found, key=lambda feature: -found[feature][0]))

    @property
    def information(self) -> float:
        """What all splits tell: for effects, of those common to all environments."""
        chosen = self._list_chosen()
        if self.trace.invariance == "rate":
            return sum(each.deviance_explained or 0.0 for each in chosen)
        return sum(measure_effect(each).information for each in chosen)

    @property
    def excess(self) -> float:
        """By how much the effects of all splits differ between environments beyond chance."""
        return sum(measure_effect(each).excess for each in self._list_chosen())

    @property
    def dependence(self) -> float:
        """How much the label depends on the environment in all leaves: their G statistics."""
        return float(
            compute_rate_heterogeneity(np.array(self.model.leaves, dtype=np.int64))[0].sum()
        )

    @property
    def differs(self) -> float:
        """What of its notion differs between environments: `excess`, or `dependence` for rates."""
        return self.dependence if self.trace.invariance == "rate" else self.excess

    def _list_chosen(self) -> list[Candidate]:
        return [step.chosen for step in self.trace.splits]


@dataclass(frozen=True, repr=False)
class TolerancePath(DisplayMixin):
    """Trees along the tolerance, from plain to strict.

    Parameters
    ----------
    points : tuple of TolerancePoint
        One for each tolerance.
    own : float or None
        The learner's own tolerance.
    environments : tuple
        In the order of `HeldOut.aucs`.
    seconds : float
        What it took.
    """

    points: tuple[TolerancePoint, ...]
    own: float | None
    environments: tuple[Any, ...]
    seconds: float

    @property
    def own_point(self) -> TolerancePoint:
        """The tree of the learner's own tolerance."""
        return next(each for each in self.points if each.tolerance == self.own)

    def list_changes(self) -> list[tuple[list[str], list[str]]]:
        """The features that leave at each tolerance, and those that enter.

        Returns
        -------
        list of pairs of lists of str
            Each against the tolerance before it; of the first, both are empty.
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
            Leaves, information, excess and dependence, features that leave and enter, and the AUC
            in environments left out where that is known; NaN is the plain tree.
        """
        import pandas

        return pandas.DataFrame(
            {
                "tolerance": point.tolerance,
                "n_leaves": len(point.model.leaves),
                "n_features": len(point.features),
                "information": point.information,
                "excess": point.excess,
                "dependence": point.dependence,
                "leave": ", ".join(left),
                "enter": ", ".join(entered),
                **({} if point.held_out is None else _tell_held_out(point.held_out)),
            }
            for point, (left, entered) in zip(self.points, self.list_changes(), strict=True)
        ).astype({"tolerance": float})

    def plot(self) -> Figure:
        """What the trees tell against how much of it differs, and the features that leave.

        Returns
        -------
        matplotlib.figure.Figure
            One dot for each tolerance, and beside it that of the learner ringed.

        Raises
        ------
        IcscmError
            If matplotlib is not installed.
        """
        check_matplotlib()
        from icscm.report.tree_figures import draw_path

        return draw_path(self)

    def _display(self) -> Display:
        has_scores = self.points[0].held_out is not None
        rows = []
        for point, (left, entered) in zip(self.points, self.list_changes(), strict=True):
            own = "*" if point.tolerance == self.own else ""
            changes = say_changes(left, entered)
            scores = _tell_held_out(point.held_out).values() if point.held_out else ()
            numbers = len(point.model.leaves), round(point.information), round(point.differs)
            rows.append(
                (
                    name_tolerance(point.tolerance) + own,
                    clip(changes, _MAX_CHANGES),
                    *(f"{each:,}" for each in numbers),
                    *("-" if each is None else f"{each:.3f}" for each in scores),
                )
            )
        line = "From a plain tree to a strict one; * is this one's tolerance."
        columns = "tolerance", "leave (-), enter (+)", ">leaves", ">tells", ">differs"
        if not has_scores:
            return Display(line, columns, rows)
        return Display(f"{line}\n{fill(CAUTION, 80)}", (*columns, ">AUC out", ">worst"), rows)


def _tell_held_out(held_out: HeldOut) -> dict[str, float | None]:
    return {"auc_left_out": held_out.mean, "worst_auc_left_out": held_out.worst}


def say_changes(left: Sequence[str], entered: Sequence[str]) -> str:
    """What leaves a tree and what enters it, after signs.

    >>> say_changes(["age", "sex"], ["code"])
    '- age, sex; + code'
    """
    signed = ("-", left), ("+", entered)
    return "; ".join(f"{sign} {', '.join(names)}" for sign, names in signed if names)


def name_tolerance(tolerance: float | None) -> str:
    """A tolerance as text.

    >>> name_tolerance(None), name_tolerance(0.03)
    ('plain', '0.03')
    """
    return "plain" if tolerance is None else format_number(tolerance)


def order_tolerances(
    tolerances: Iterable[float | None], own: float | None
) -> tuple[float | None, ...]:
    """From plain to strict, each once, the learner's own among them; raises if one is no number."""
    asked = {*tolerances, own}
    for each in asked - {None}:
        check_value("each of tolerances", each, POSITIVE_NUMBER)
    return tuple(sorted(asked, key=lambda each: (each is not None, -(each or 0.0))))


def grow_along(
    source: CountSource, settings: TreeSettings, tolerances: Sequence[float | None]
) -> list[tuple[Tree, Trace]]:
    """The tree of each tolerance, from the same counts."""
    return [find_tree(source, replace(settings, tolerance=each)) for each in tolerances]


def compute_tolerance_path(
    source: CountSource,
    settings: TreeSettings,
    tolerances: Iterable[float | None] = DEFAULT_TOLERANCES,
) -> TolerancePath:
    """Grow the tree again at each tolerance; all other settings stay as they are.

    >>> from icscm import InvariantTreeClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources.memory import open_memory
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> samples = open_memory(data.X, data.y, data.environments)
    >>> settings = InvariantTreeClassifier(max_leaves=4).make_settings(samples)
    >>> path = compute_tolerance_path(samples.source, settings, [None, 0.1])
    >>> [each.tolerance for each in path.points]
    [None, 0.1, 0.03]
    """
    if settings.tolerance is None:
        raise IcscmError(
            "trees along the tolerance need one that was grown with environments and a tolerance: "
            "a plain tree refuses nothing"
        )
    started = time.perf_counter()
    ordered = order_tolerances(tolerances, settings.tolerance)
    grown = grow_along(source, settings, ordered)
    points = (TolerancePoint(each, *found) for each, found in zip(ordered, grown, strict=True))
    seconds = time.perf_counter() - started
    return TolerancePath(tuple(points), settings.tolerance, tuple(source.environments), seconds)
