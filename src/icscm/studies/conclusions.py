"""What a comparison says: in sentences, and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from icscm.parameters import check_matplotlib
from icscm.report.canvas import make_figure
from icscm.studies.scores import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from icscm.studies.comparison import CandidateScores, Comparison

_OURS, _GROWN = ("rules", "invariant"), ("grown",)
_WHOSE = (
    (_OURS, "the rules"),
    (_OURS[1:], "the rules tested for invariance"),
    (_GROWN, "the trees tested for invariance"),
)
# A difference of errors that nobody would speak of.
_TRIFLE = 0.0005
_COLORS = {
    "constant": "#5b5852",
    "rules": "#7fa8b0",
    "invariant": "#0b6170",
    "grown": "#3f7d3a",
    "other": "#b5651d",
}


def list_conclusions(found: Comparison) -> Iterator[str]:
    """Which is best, what rules lose against it, and whether they beat the constant."""
    for way, words in (("rows", "By rows"), ("environments", "In environments left out")):
        ranked = _rank(found, way)
        if len(ranked) > 1:
            yield from _say_way(ranked, way, words)
            yield from _say_worse(ranked, way, words)
    yield from _say_growth(found)


def _rank(found: Comparison, way: str) -> list[CandidateScores]:
    """Those that have an error, the least first; of equal ones that which comes first."""
    known = [each for each in found.candidates if getattr(each, way)["error"] is not None]
    return sorted(known, key=lambda each: _error(each, way))


def _error(each: CandidateScores, way: str) -> float:
    return float(getattr(each, way)["error"])


def _say_way(ranked: list[CandidateScores], way: str, words: str) -> Iterator[str]:
    best = ranked[0]
    constant = next(each for each in ranked if each.kind == "constant")
    if best is constant:
        yield f"{words} no candidate errs less than the constant, {_error(best, way):.1%}."
    else:
        against = _hold_against(best, constant, way)
        yield f"{words} {best.name} errs least: {_error(best, way):.1%}, {against}."
    told = [best, constant]
    for kinds, whose in _WHOSE:
        leader = next((each for each in ranked if each.kind in kinds), None)
        if leader is None or leader in told:
            continue
        told.append(leader)
        text = f"Of {whose} {leader.name} does best: {_error(leader, way):.1%}"
        if best is not constant:
            more = _error(leader, way) - _error(best, way)
            text += f", {_points(more)} more than {best.name}" if more >= _TRIFLE else ""
        yield f"{text}; {_hold_against(leader, constant, way)}."


def _say_worse(ranked: list[CandidateScores], way: str, words: str) -> Iterator[str]:
    """Those of ours that do worse than saying nothing, all of them."""
    constant = next(each for each in ranked if each.kind == "constant")
    ours = [each for each in ranked if each.kind in (*_OURS, *_GROWN)]
    losses = {each.name: _error(each, way) - _error(constant, way) for each in ours}
    worse = [f"{name} (by {_points(loss)})" for name, loss in losses.items() if loss >= _TRIFLE]
    if worse:
        yield f"{words} the constant errs less than {', '.join(worse)}."


def _hold_against(each: CandidateScores, constant: CandidateScores, way: str) -> str:
    """Whether it beats the constant, in words; by rows only beyond chance."""
    gain = low = high = _error(constant, way) - _error(each, way)
    if way == "rows" and each.gain is not None:
        _, low, high = each.gain
    if abs(gain) < _TRIFLE:
        return f"just as the constant does ({_error(constant, way):.1%})"
    if low <= 0 <= high:
        return f"no better than the constant ({_error(constant, way):.1%}) beyond chance"
    if gain > 0:
        return f"{_points(gain)} less than the constant"
    return f"{_points(-gain)} more than the constant: saying nothing is better"


def _say_growth(found: Comparison) -> Iterator[str]:
    """How much more the best rules and the best of the others err elsewhere."""
    both = [each for each in _rank(found, "rows") if each in _rank(found, "environments")]
    groups = [
        [each for each in both if each.kind == "other"],
        [each for each in both if each.kind in _OURS],
        [each for each in both if each.kind in _GROWN],
        [each for each in both if each.kind == "constant"],
    ]
    changes = [
        f"{each[0].name} {100 * (_error(each[0], 'environments') - _error(each[0], 'rows')):+.1f}"
        for each in groups
        if each
    ]
    if len(changes) > 1:
        yield f"Points of error from rows to environments left out: {', '.join(changes)}."


def _points(difference: float) -> str:
    return f"{100 * difference:.1f} points"


def draw_comparison(found: Comparison) -> Figure:
    """A row for each candidate: by rows, the mean over environments left out, and the worst."""
    check_matplotlib()
    n = len(found.candidates)
    figure = make_figure((10.0, 1.5 + 0.32 * n), is_registered=True, layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, measure in zip(panels, ("error", "balanced_accuracy", "auc"), strict=True):
        _draw_panel(axes, found, measure)
    panels[0].set_yticks(range(n), labels=[each.name for each in found.candidates])
    for label in panels[0].get_yticklabels():
        label.set_parse_math(False)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def _draw_panel(axes: Axes, found: Comparison, measure: str) -> None:
    marks = (
        ("worst", "|", "worst environment"),
        ("environments", "o", "environments left out, mean"),
        ("rows", ".", "by rows"),
    )
    for place, each in enumerate(found.candidates):
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
    constant = found.candidates[0].rows[measure]
    if constant is not None:
        axes.axvline(constant, color="#d9d5cc", linewidth=1, zorder=0)
    axes.set_xlabel(f"{TITLES[measure]} ({'less' if measure == 'error' else 'more'} is better)")
    axes.spines[["top", "right"]].set_visible(False)
