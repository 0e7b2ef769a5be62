"""How a model depends on alpha or the tolerance: the same learner at other values of it.

The table is binned once; each value costs one more search over the same counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icscm._constants import DEFAULT_TOLERANCES
from icscm._repr import Display, DisplayMixin
from icscm.engine.counts import CountSource
from icscm.exceptions import IcscmError
from icscm.formatting import clip, format_name, format_number
from icscm.parameters import allow, check_matplotlib, check_value
from icscm.report.canvas import ACCENT, INK, LINE, SOFT, make_figure
from icscm.report.formatting import format_score
from icscm.report.sections.nodes import measure_effect
from icscm.search.greedy import SharedScans
from icscm.search.grow import TreeSettings
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.trees import find_tree
from icscm.sources.memory import MemorySource
from icscm.stats.splits import compute_rate_heterogeneity

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# 1, 2, 5 in each decade: even steps on a logarithmic scale, in round numbers.
DEFAULT_ALPHAS = tuple(float(f"{digit}e{power}") for power in range(-6, 0) for digit in (1, 2, 5))
# Characters of the columns that leave and enter, so that the table fits a terminal.
_MAX_CHANGES: Final = 26

#: What leave-one-environment-out can show about a tolerance, and what it cannot.
CAUTION: Final = (
    "Leave-one-environment-out shows no shift worse than those between the environments at hand: a "
    "loose tolerance with a good score may fail where a shortcut reverses. Of tolerances with "
    "similar scores, prefer the strict one."
)


@dataclass(frozen=True)
class PathPoint:
    """The model at one alpha or tolerance.

    Parameters
    ----------
    value : float or None
        The level or tolerance; None for a plain tree.
    model, trace : Tree, Trace
        The model, and the record of its search.
    aucs : tuple of float or None, optional
        The AUC in each environment of the model learned without it, in the order of the
        environments; None where one has a single class. Only in `icscm.tolerance_path`.
    """

    value: float | None
    model: Any
    trace: Any
    aucs: tuple[float | None, ...] | None = None

    @property
    def mean_auc(self) -> float | None:
        """Mean of the AUCs, each environment with equal weight."""
        known = self.known_aucs
        return sum(known) / len(known) if known else None

    @property
    def worst_auc(self) -> float | None:
        """Lowest AUC of an environment."""
        return min(self.known_aucs, default=None)

    @property
    def known_aucs(self) -> list[float]:
        """The AUCs of environments with both classes."""
        return [each for each in self.aucs or () if each is not None]

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
        return sum(measure_effect(each).deviance_explained for each in self._list_chosen())

    @property
    def heterogeneity(self) -> float:
        """Heterogeneity of the effects of all splits beyond chance, a deviance."""
        return sum(measure_effect(each).heterogeneity for each in self._list_chosen())

    @property
    def rate_heterogeneity(self) -> float:
        """Dependence of the label on the environment in all leaves: their G statistics."""
        return float(
            compute_rate_heterogeneity(np.array(self.model.leaves, dtype=np.int64))[0].sum()
        )

    @property
    def varies(self) -> float:
        """Heterogeneity of what must be the same everywhere: of effects, or of rates."""
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
    seconds : float
        Duration of all searches.
    """

    parameter: str
    points: tuple[PathPoint, ...]
    own: float | None
    environments: tuple[Any, ...]
    seconds: float

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

        return pandas.DataFrame(
            {
                self.parameter: point.value,
                "n_leaves": len(point.model.leaves),
                "n_features": len(point.features),
                "deviance_explained": point.deviance_explained,
                "heterogeneity": point.heterogeneity,
                "rate_heterogeneity": point.rate_heterogeneity,
                "leave": ", ".join(left),
                "enter": ", ".join(entered),
                **(
                    {}
                    if point.aucs is None
                    else {"auc_left_out": point.mean_auc, "worst_auc_left_out": point.worst_auc}
                ),
            }
            for point, (left, entered) in zip(self.points, self.list_changes(), strict=True)
        ).astype({self.parameter: float})

    def plot(self) -> Figure:
        """Deviance explained against heterogeneity, with the columns that leave.

        Returns
        -------
        matplotlib.figure.Figure
            One dot for each tolerance, the learner's own larger, and the AUCs where known.

        Raises
        ------
        IcscmError
            If matplotlib is not installed.
        """
        check_matplotlib()
        return _draw_path(self)

    def _display(self) -> Display:
        rows = []
        for point, (left, entered) in zip(self.points, self.list_changes(), strict=True):
            numbers = len(point.model.leaves), round(point.deviance_explained), round(point.varies)
            scores = () if point.aucs is None else (point.mean_auc, point.worst_auc)
            rows.append(
                (
                    format_tolerance(point.value) + ("*" if point.value == self.own else ""),
                    clip(format_changes(left, entered), _MAX_CHANGES),
                    *(f"{each:,}" for each in numbers),
                    *map(format_score, scores),
                )
            )
        line = "From a plain tree to a strict one; * is the tolerance of the learner."
        columns = "tolerance", "leave (-), enter (+)", ">leaves", ">deviance", ">varies"
        if self.points[0].aucs is None:
            return Display(line, columns, rows)
        return Display(f"{line}\n{fill(CAUTION, 80)}", (*columns, ">AUC out", ">worst"), rows)


def format_changes(left: Sequence[str], entered: Sequence[str]) -> str:
    """Columns that leave a tree and enter it, after signs.

    >>> format_changes(["age", "sex"], ["code"])
    '- age, sex; + code'
    """
    signed = ("-", left), ("+", entered)
    return "; ".join(f"{sign} {', '.join(names)}" for sign, names in signed if names)


def format_tolerance(tolerance: float | None) -> str:
    """A tolerance as text.

    >>> format_tolerance(None), format_tolerance(0.03)
    ('plain', '0.03')
    """
    return "plain" if tolerance is None else format_number(tolerance)


def format_span(names: Sequence[str]) -> str:
    """Neighbouring values with the same model.

    >>> format_span(["0.3"]), format_span(["0.3", "0.1", "0.05"])
    ('0.3', '0.3 to 0.05')
    """
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def compute_alpha_path(
    source: MemorySource, settings: Settings, alphas: Iterable[float] = DEFAULT_ALPHAS
) -> Path:
    """Learn again at each level; all other settings stay as they are.

    The level of `settings` is always among them. `source` is not changed. The cost is one search
    for each level.

    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources.memory import open_memory
    >>> data = make_conjunction(random_state=1)
    >>> samples = open_memory(data.X, data.y, data.environments)
    >>> settings = ICSCMClassifier().make_settings(samples)
    >>> path = compute_alpha_path(samples.source, settings, alphas=[0.001, 0.01, 0.5])
    >>> for each in path.points:
    ...     print(each.value, each.model)
    0.001 A1 > 0 and C1 > 0
    0.01 A1 > 0 and A2 > 0
    0.05 A1 > 0 and A2 > 0
    0.5 no rule holds in every environment and does better than always negative
    """
    levels = set(alphas)
    for alpha in sorted(levels):
        check_value("each of alphas", alpha, allow("float (0, 1)"))
    if settings.test is None:
        raise IcscmError(
            "a path along alpha needs an ICSCMClassifier fitted with environments: without them "
            "nothing is tested"
        )
    ordered = sorted({*levels, settings.alpha})
    shared = SharedScans(ordered)

    def find(alpha: float) -> tuple[Any, Any]:
        return find_model(source.start_again(), replace(settings, alpha=alpha), shared)

    return _compute_path("alpha", ordered, find, settings.alpha, source)


def compute_tolerance_path(
    source: CountSource,
    settings: TreeSettings,
    tolerances: Iterable[float | None] = DEFAULT_TOLERANCES,
) -> Path:
    """Grow the tree again at each tolerance; all other settings stay as they are.

    >>> from icscm import InvariantTreeClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources.memory import open_memory
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> samples = open_memory(data.X, data.y, data.environments)
    >>> settings = InvariantTreeClassifier(max_leaves=4).make_settings(samples)
    >>> compute_tolerance_path(samples.source, settings, [None, 0.1]).values
    (None, 0.1, 0.03)
    """
    if settings.tolerance is None:
        raise IcscmError(
            "a path along the tolerance needs a tree grown with environments and a tolerance: a "
            "plain tree rejects nothing"
        )

    def find(tolerance: float | None) -> tuple[Any, Any]:
        return find_tree(source, replace(settings, tolerance=tolerance))

    ordered = order_tolerances(tolerances, settings.tolerance)
    return _compute_path("tolerance", ordered, find, settings.tolerance, source)


def order_tolerances(
    tolerances: Iterable[float | None], own: float | None
) -> tuple[float | None, ...]:
    """From plain to strict, each once, the learner's own among them."""
    values = {*tolerances, own}
    for each in values - {None}:
        check_value("each of tolerances", each, allow("float (0, inf)"))
    return tuple(sorted(values, key=lambda each: (each is not None, -(each or 0.0))))


def _compute_path(
    parameter: str, values: Iterable[Any], find: Callable[[Any], Any], own: float, source: Any
) -> Path:
    started = time.perf_counter()
    points = tuple(PathPoint(each, *find(each)) for each in values)
    seconds = time.perf_counter() - started
    return Path(parameter, points, own, tuple(source.environments), seconds)


def _draw_path(path: Path) -> Figure:
    """Deviance explained against heterogeneity, and the leave-one-environment-out AUCs."""
    has_scores = path.points[0].aucs is not None
    figure = make_figure((9.5 if has_scores else 6.4, 4.2), is_registered=True)
    panels: Any = figure.subplots(1, 1 + has_scores, squeeze=False)[0]
    axes = panels[0]
    x = [point.varies for point in path.points]
    y = [point.deviance_explained for point in path.points]
    axes.plot(x, y, "-o", color=SOFT, markerfacecolor=INK, markeredgecolor=INK, markersize=5)
    own = path.own_point
    axes.plot([own.varies], [own.deviance_explained], "o", color=ACCENT, markersize=10)
    placed: dict[tuple[float, float], tuple[list[str], list[str]]] = {}
    for point, (left, _) in zip(path.points, path.list_changes(), strict=True):
        names, gone = placed.setdefault(
            (round(point.varies, 6), round(point.deviance_explained, 6)), ([], [])
        )
        names.append(format_tolerance(point.value))
        gone += left
    for number, (place, (names, gone)) in enumerate(placed.items()):
        without = f"\nwithout {clip(', '.join(gone), 30)}" if gone else ""
        # above and below in turn, so that neighbours do not overlap
        below = {"xytext": (4, -7), "va": "top"} if number % 2 == 0 else {"xytext": (4, 7)}
        options = {"textcoords": "offset points", "fontsize": 8, "parse_math": False, **below}
        axes.annotate(format_span(names) + without, place, **options)
    axes.set_xlim(0, 1.35 * max(*x, 1.0))
    axes.set_ylim(0, 1.1 * max(*y, 1.0))
    axes.set_xlabel("heterogeneity between environments, beyond chance")
    axes.set_ylabel("deviance explained")
    if has_scores:
        _draw_scores(panels[1], path)
    for each in panels:
        each.grid(color=LINE, linewidth=0.6)
        each.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def _draw_scores(axes: Axes, path: Path) -> None:
    """The AUC in each held-out environment, their mean and the lowest."""
    places = range(len(path.points))
    for place, point in zip(places, path.points, strict=True):
        known = point.known_aucs
        axes.plot([place] * len(known), known, "o", color=SOFT, markersize=3, alpha=0.6)
    means, worst = zip(*((each.mean_auc, each.worst_auc) for each in path.points), strict=True)
    for name, values, style in (("mean", means, "-o"), ("worst", worst, "--")):
        numbers = [float("nan") if each is None else each for each in values]
        axes.plot(places, numbers, style, color=ACCENT, markersize=5, label=name)
    axes.set_xticks([*places], [format_tolerance(point.value) for point in path.points])
    axes.set_xlabel("tolerance, from plain to strict")
    axes.set_ylabel("leave-one-environment-out AUC")
    axes.legend(frameon=False)
