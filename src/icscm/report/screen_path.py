"""A screen of columns along the tolerance: which column is rejected below which tolerance.

The worst column is always rejected first, so that a tolerance only stops one and the same sequence:
a column is rejected at tolerances below the smallest share so far.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icscm._constants import CHANCE_LEVEL
from icscm._repr import Display, DisplayMixin, display_frame
from icscm.formatting import clip, format_name, format_number
from icscm.parameters import allow, check_matplotlib, check_value
from icscm.report.canvas import ACCENT, INK, LINE, SOFT, make_figure
from icscm.report.formatting import Plain

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

SCREEN_TOLERANCES: Final = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
# Characters of the columns that are rejected, so that the table fits a terminal.
_MAX_NAMES: Final = 30


def describe_price(tolerance: float) -> str:
    """The heterogeneity that a tolerance accepts, by the information that a column carries.

    >>> print(describe_price(0.01)[-72:])
    by 10% if it carries all of it, by 32% if a tenth, by 100% if 1 percent.
    """
    parts = ((1.0, "it carries all of it"), (0.1, "a tenth"), (0.01, "1 percent"))
    varies = ", ".join(f"by {sqrt(tolerance / share):.0%} if {text}" for share, text in parts)
    return (
        f"At tolerance {format_number(tolerance)}, a column that carries a share s of the model's "
        f"information may have an effect that varies by sqrt({format_number(tolerance)} / s) "
        f"between environments: {varies}."
    )


@dataclass(frozen=True)
class ScreenPoint:
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
    """

    tolerance: float
    kept: tuple[Any, ...]
    leave: tuple[Any, ...]
    auc: float | None
    log_loss: float | None
    aucs: tuple[float | None, ...] | None = None

    @property
    def known_aucs(self) -> list[float]:
        """The AUCs of environments with both classes."""
        return [each for each in self.aucs or () if each is not None]


@dataclass(frozen=True, repr=False)
class ScreenPath(DisplayMixin):
    """A screen at several tolerances, from loose to strict.

    Attributes
    ----------
    points : tuple of ScreenPoint
        One for each tolerance.
    own : float
        The tolerance of the selector itself.
    falls : dict
        The tolerance below which each rejected column is rejected, in the order of rejection;
        infinite where it informs in too few environments.
    """

    points: tuple[ScreenPoint, ...]
    own: float
    falls: dict[Any, float]

    def describe_points(self) -> list[Plain]:
        """Every tolerance as plain values, as in a report."""
        return [
            {
                "tolerance": point.tolerance,
                "name": format_number(point.tolerance),
                "is_own": point.tolerance == self.own,
                "n_columns": len(point.kept),
                "leave": [format_name(each) for each in point.leave],
                "auc": point.auc,
                "log_loss": point.log_loss,
                "auc_left_out": float(np.mean(point.known_aucs)) if point.known_aucs else None,
                "worst_auc_left_out": min(point.known_aucs, default=None),
            }
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
        import pandas

        frame = pandas.DataFrame(self.describe_points()).drop(columns=["name", "is_own"])
        return frame.assign(leave=frame["leave"].map(", ".join))

    def plot(self) -> Figure:
        """AUC along the tolerance, with the columns that are rejected.

        Returns
        -------
        matplotlib.figure.Figure
            Cross-validated at the training environments and, where known, by
            leave-one-environment-out; the selector's own tolerance is marked.

        Raises
        ------
        IcscmError
            If matplotlib is not installed.
        """
        check_matplotlib()
        points, places = self.describe_points(), np.arange(len(self.points))
        figure = make_figure((7.5, 4.2), is_registered=True, layout="constrained")
        axes = figure.subplots()
        for key, label, color, style in (
            ("auc", "training environments, cross-validated", INK, "-o"),
            ("auc_left_out", "leave-one-environment-out, mean", ACCENT, "-o"),
            ("worst_auc_left_out", "leave-one-environment-out, worst", ACCENT, "--"),
        ):
            values = np.array([each[key] for each in points], dtype=float)  # None is NaN
            if np.isfinite(values).any():
                axes.plot(places, values, style, color=color, markersize=5, label=label)
        names = [each["name"] + ("\nown" if each["is_own"] else "") for each in points]
        axes.set_xticks(places, names)
        for place, each in zip(places, points, strict=True):
            if each["leave"]:
                text = clip(f"- {', '.join(each['leave'])}", _MAX_NAMES)
                options: Plain = {"rotation": 90, "fontsize": 8, "color": SOFT, "ha": "right"}
                where = axes.get_xaxis_transform()
                axes.text(float(place), 0.02, text, transform=where, parse_math=False, **options)
        axes.set_xlabel("tolerance, from loose to strict")
        axes.set_ylabel("AUC")
        axes.grid(color=LINE, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
        return figure

    def _display(self) -> Display:
        line = fill(f"From loose to strict. {describe_price(self.own)}", 80)
        return display_frame(line, self.to_frame())


def find_known_tolerance(screen: pandas.DataFrame, own: float) -> float:
    """The smallest tolerance at which a screen would be the same as at its own.

    No column that was kept has a larger share that is significant.
    """
    is_next = (screen["verdict"] != "rejected") & (screen["p_value"] < CHANCE_LEVEL)
    return float(min(own, screen.loc[is_next, "share"].max())) if is_next.any() else 0.0


def make_screen_path(
    screen: pandas.DataFrame,
    rounds: pandas.DataFrame,
    tolerances: Iterable[float],
    own: float,
    kept_own: float | None = None,
) -> ScreenPath:
    """The path of a fitted selector, given its `screen_` and `rounds_`.

    Of `tolerances`, those that it does not decide are ignored: by default all below
    `find_known_tolerance`, else below `kept_own`.
    """
    values = {*tolerances, own}
    for each in values:
        check_value("each of tolerances", each, allow("float [0, inf)"))
    least = find_known_tolerance(screen, own) if kept_own is None else kept_own
    rejected = screen[screen["verdict"] == "rejected"].sort_values("round", kind="stable")
    falls: dict[Any, float] = {}
    for column, number, share in rejected[["column", "round", "share"]].itertuples(index=False):
        falls[column] = min([*falls.values(), share]) if number else inf
    numbers = dict(zip(rejected["column"], rejected["round"], strict=True))
    points: list[ScreenPoint] = []
    for tolerance in sorted((each for each in values if each >= least), reverse=True):
        gone = [column for column, fall in falls.items() if fall > tolerance]
        n_rounds = len({numbers[each] for each in gone} - {0})
        is_known = n_rounds < len(rounds)  # no round follows where every column was rejected
        known = rounds[["auc", "log_loss"]].iloc[n_rounds].tolist() if is_known else (None, None)
        before = {*points[-1].kept} if points else {*screen["column"]}
        kept = tuple(each for each in screen["column"] if each not in gone)
        leave = tuple(each for each in gone if each in before)
        auc, loss = (None if each is None else float(each) for each in known)
        points.append(ScreenPoint(float(tolerance), kept, leave, auc, loss))
    return ScreenPath(tuple(points), own, falls)
