"""Scores of the candidates of a comparison, the conclusions in sentences, and the figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icscm.parameters import check_matplotlib
from icscm.report.canvas import make_figure
from icscm.studies.folds import Scores, average_scores
from icscm.studies.scores import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = "error", "balanced_accuracy", "auc"

_OURS = ("rules", "invariant", "trees")
_GROUPS = {
    ("rules", "invariant"): "rule sets",
    ("invariant",): "rule sets tested for invariance",
    ("trees",): "trees tested for invariance",
}
_WAYS = {"rows": "Cross-validation by rows", "environments": "Leave-one-environment-out"}
# Differences of errors below this are reported as equal.
_NEGLIGIBLE = 0.0005
_COLORS = {
    "baseline": "#5b5852",
    "rules": "#7fa8b0",
    "invariant": "#0b6170",
    "trees": "#3f7d3a",
    "other": "#b5651d",
}


@dataclass(frozen=True)
class CandidateScores:
    """The performance of one candidate; see `compare`.

    Attributes
    ----------
    name, kind : str
        Its name; "baseline", "rules" (not tested), "invariant" (rules tested for invariance),
        "trees" (our trees and forests) or "other".
    by_rows, by_environment : tuple of dict
        Error, balanced accuracy and AUC in each fold of rows, and in each held-out environment;
        None where the fit failed, or a metric is undefined.
    gain : tuple of float
        By rows: the error of the baseline minus that of the candidate, with its 95% interval.
    seconds : float
        Mean time of a fit.
    model : str or None
        The rules learned from all rows, or the size of a tree; None for other classifiers.
    failure : str or None
        Why a fit failed.
    """

    name: str
    kind: str
    by_rows: tuple[Scores | None, ...]
    by_environment: tuple[Scores | None, ...]
    gain: tuple[float, float, float] | None
    seconds: float
    model: str | None
    failure: str | None

    @property
    def rows(self) -> Scores:
        """Means over the folds of rows; None where a fit failed."""
        return average_scores(self.by_rows, MEASURES)

    @property
    def environments(self) -> Scores:
        """Unweighted means over the held-out environments."""
        return average_scores(self.by_environment, MEASURES)

    @property
    def worst(self) -> Scores:
        """The worst value of each metric over the held-out environments."""
        found: Scores = dict.fromkeys(MEASURES)
        for name, mean in self.environments.items():
            if mean is not None:
                values = [v for e in self.by_environment if e and (v := e[name]) is not None]
                found[name] = max(values) if name == "error" else min(values)
        return found

    def get_error(self, way: str) -> float:
        """The mean error by "rows" or "environments", where every fit succeeded."""
        return float(getattr(self, way)["error"])


def list_conclusions(candidates: Sequence[CandidateScores]) -> Iterator[str]:
    """The best candidate, the best of ours, and whether they are better than the baseline."""
    ranked = {way: _rank(candidates, way) for way in _WAYS}
    for way, order in ranked.items():
        if len(order) > 1:
            yield from _conclude(order, way)
    both = [each for each in ranked["rows"] if each in ranked["environments"]]
    changes = []
    for kinds in (("other",), *list(_GROUPS)[::2], ("baseline",)):
        best = next((each for each in both if each.kind in kinds), None)
        if best is not None:
            change = best.get_error("environments") - best.get_error("rows")
            changes.append(f"{best.name} {100 * change:+.1f}")
    if len(changes) > 1:
        listed = ", ".join(changes)
        yield f"Change of the error from rows to held-out environments, in points: {listed}."


def _rank(candidates: Sequence[CandidateScores], way: str) -> list[CandidateScores]:
    """Those with an error, the smallest first; ties in the order given."""
    known = [each for each in candidates if getattr(each, way)["error"] is not None]
    return sorted(known, key=lambda each: each.get_error(way))


def _conclude(ranked: list[CandidateScores], way: str) -> Iterator[str]:
    """Sentences about one kind of folds."""
    best, baseline = ranked[0], next(each for each in ranked if each.kind == "baseline")
    error = baseline.get_error(way)
    if best is baseline:
        text = f"no candidate has a smaller error than the majority-class baseline, {error:.1%}"
    else:
        text = f"{best.name} has the smallest error, {best.get_error(way):.1%}"
        text += f", {_compare_with(baseline, best, way)}"
    yield f"{_WAYS[way]}: {text}."
    named = [best, baseline]
    for kinds, group in _GROUPS.items():
        leader = next((each for each in ranked if each.kind in kinds), None)
        if leader is not None and leader not in named:
            named.append(leader)
            text = f"Best of the {group}: {leader.name}, {leader.get_error(way):.1%}"
            more = leader.get_error(way) - best.get_error(way)
            if best is not baseline and more >= _NEGLIGIBLE:
                text += f", {100 * more:.1f} points more than {best.name}"
            yield f"{text}; {_compare_with(baseline, leader, way)}."
    worse = [
        f"{each.name} (by {100 * (each.get_error(way) - error):.1f} points)"
        for each in ranked
        if each.kind in _OURS and each.get_error(way) - error >= _NEGLIGIBLE
    ]
    if worse:
        yield f"{_WAYS[way]}: worse than the majority-class baseline: {', '.join(worse)}."


def _compare_with(baseline: CandidateScores, each: CandidateScores, way: str) -> str:
    """Better or worse than the baseline; by rows the interval of the difference decides."""
    error = baseline.get_error(way)
    gain = low = high = error - each.get_error(way)
    if way == "rows" and each.gain is not None:
        _, low, high = each.gain
    if abs(gain) < _NEGLIGIBLE:
        return f"the same as the baseline ({error:.1%})"
    if low <= 0 <= high:
        return f"not significantly different from the baseline ({error:.1%})"
    return f"{100 * abs(gain):.1f} points {'less' if gain > 0 else 'more'} than the baseline"


def draw_comparison(candidates: Sequence[CandidateScores]) -> Figure:
    """A row for each candidate: by rows, the mean over held-out environments, and the worst."""
    check_matplotlib()
    n = len(candidates)
    figure = make_figure((10.0, 1.5 + 0.32 * n), is_registered=True, layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, measure in zip(panels, MEASURES, strict=True):
        _draw_panel(axes, candidates, measure)
    panels[0].set_yticks(range(n), labels=[each.name for each in candidates], parse_math=False)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def _draw_panel(axes: Axes, candidates: Sequence[CandidateScores], measure: str) -> None:
    marks = (
        ("worst", "|", "worst environment"),
        ("environments", "o", "held-out environments, mean"),
        ("rows", ".", "by rows"),
    )
    for place, each in enumerate(candidates):
        color = _COLORS[each.kind]
        reach = [getattr(each, way)[measure] for way in ("environments", "worst")]
        if None not in reach:
            axes.plot(reach, [place, place], color=color, linewidth=1)
        for way, marker, label in marks:
            value = getattr(each, way)[measure]
            if value is not None:
                face = "white" if marker == "o" else color
                style: dict[str, Any] = {"color": color, "markerfacecolor": face}
                axes.plot(value, place, marker, label=label if place == 0 else None, **style)
    baseline = candidates[0].rows[measure]
    if baseline is not None:
        axes.axvline(baseline, color="#d9d5cc", linewidth=1, zorder=0)
    axes.set_xlabel(f"{TITLES[measure]} ({'less' if measure == 'error' else 'more'} is better)")
    axes.spines[["top", "right"]].set_visible(False)
