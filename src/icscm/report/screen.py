"""A report on a screen of columns: verdicts, effects by environment, costs, other tolerances.

The summary is a dict: `columns` (verdict, reason, share of heterogeneity, rule, effects by
environment, pooled effect and prediction interval), `costs` by round at the training environments,
`path` along the tolerance, `validation` by leave-one-environment-out or None, `limits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.pipeline import Pipeline

from icscm.exceptions import IcscmError
from icscm.formatting import as_text, clip, count, format_name, format_number, make_plain
from icscm.parameters import check_matplotlib
from icscm.report.canvas import ACCENT, INK, LINE, SOFT, make_figure
from icscm.report.drawing import Limits, draw_forest
from icscm.report.formatting import Plain, format_share
from icscm.report.page import Report, render_page, render_template
from icscm.report.screen_path import SCREEN_TOLERANCES, ScreenPath, describe_price, make_screen_path
from icscm.report.summary import ABOUT
from icscm.report.terminal import render_blocks
from icscm.stats.heterogeneity import pool_effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import RenderableType

LIMITS: Final = (
    "Rejection protects against shortcuts that differ between the environments at hand; it does "
    "not forecast which columns will fail at a new site.",
    "A shortcut that is equally strong in all environments is not detected.",
    "With few environments or few rows only large differences are detected, and two environments "
    "show little: kept means that no difference beyond the tolerance was found, not that the "
    "effect is the same everywhere.",
)
_ORDER: Final = ("rejected", "cannot tell", "kept")
# The half-width of a 95% interval in standard errors; columns that `plot` draws by itself.
_Z: Final = 1.959964
_N_DRAWN: Final = 6
# Kept columns that the terminal lists.
_N_KEPT: Final = 15
# Odds ratios beyond exp(50) are all the same.
_MAX_LOG: Final = 50.0


class ScreenReport(Report):
    """A report on a screen of columns; a notebook displays it."""

    def to_html(self) -> str:
        """One self-contained page, as that of a learner."""
        return render_page("screen.html", lambda limits: _lay_out(self.summary, limits))

    def to_markdown(self) -> str:
        """The report as text with tables."""
        return _render_markdown(self.summary, brief=False)


def make_screen_report(
    selector: Any, path: ScreenPath | None, validation: Any, names: Plain
) -> ScreenReport:
    """A report on a fitted `InvariantFeatureSelector`."""
    environments = selector.environments_ or ()
    known = selector.screen_["verdict"].map(_ORDER.index)
    number, by = selector.screen_["round"].where(known == 0), ["order", "number", "share"]
    ordered = selector.screen_.assign(order=known, number=number)
    ordered = ordered.sort_values(by, ascending=[True, True, False], kind="stable")
    columns = [_describe_column(row, selector.effects_) for row in ordered.to_dict("records")]
    if path is None and environments:
        frames = selector.screen_, selector.rounds_
        path = make_screen_path(*frames, SCREEN_TOLERANCES, selector.tolerance)
    verdicts = [each["verdict"] for each in columns]
    counts = {verdict: verdicts.count(verdict) for verdict in _ORDER}
    n, n_columns = counts["rejected"], len(columns)
    rejected = f"{n or 'None'} of {count(n_columns, 'column')} {'are' if n > 1 else 'is'} rejected"
    sentence = f"{rejected} at tolerance {format_number(selector.tolerance)}."
    summary: Plain = {
        "about": ABOUT,
        "model": {"name": sentence.removesuffix("."), "sentence": sentence},
        "task": {
            **{key: None if name is None else as_text(name) for key, name in names.items()},
            "environments": [as_text(each) for each in environments],
            "estimator": _name_estimator(selector.estimator),
            "tolerance": selector.tolerance,
        },
        "counts": counts,
        "kept": make_plain([*selector.kept_], str),
        "rejected": make_plain([*selector.rejected_], str),
        "columns": columns,
        "costs": [*_describe_costs(selector.rounds_, selector.screen_)],
        "price": describe_price(selector.tolerance),
        "path": None if path is None else path.describe_points(),
        "validation": None if validation is None else validation.to_dict(),
        "limits_of_the_screen": [*LIMITS],
    }
    return ScreenReport(summary)


def _describe_column(row: Plain, effects: Any) -> Plain:
    """A row of `screen_`, with the effect in each environment and in a new one."""
    own = effects[effects["column"] == row["column"]]
    values, errors = (own[key].to_numpy(dtype=float) for key in ("effect", "standard_error"))
    places = []
    for environment, effect, error in zip(own["environment"], values, errors, strict=True):
        is_known = np.isfinite(effect) and np.isfinite(error)
        ends = [effect - _Z * error, effect + _Z * error] if is_known else None
        place = {"environment": as_text(environment), **_describe_ratio(effect, ends)}
        places.append({**place, "effect": _number(effect), "standard_error": _number(error)})
    known = [each for each in places if each["odds_ratio"] is not None]
    pooled = pool_effects(values, errors)
    mean = None
    if pooled is not None:
        reach = _Z * pooled.standard_error
        mean = _describe_ratio(pooled.mean, [pooled.mean - reach, pooled.mean + reach])
        new = pooled.interval and _describe_ratio(pooled.mean, [*pooled.interval])["interval"]
        mean |= {"tau": pooled.tau, "prediction_interval": new}
    numbers = {key: _number(row[key]) for key in ("share", "p_value", "tau", "i2", "replication")}
    return {
        "column": format_name(row["column"]),
        **{key: row[key] for key in ("verdict", "reason", "question", "rule")},
        "round": int(row["round"]),
        **numbers,
        "environments": places,
        "lowest": min(known, key=lambda each: each["odds_ratio"], default=None),
        "highest": max(known, key=lambda each: each["odds_ratio"], default=None),
        "pooled": mean,
    }


def _describe_ratio(effect: float, ends: list[float] | None) -> Plain:
    """A log odds ratio and its interval as odds ratios."""
    if ends is None:
        return {"odds_ratio": None, "interval": None}
    ratios = [exp(min(max(each, -_MAX_LOG), _MAX_LOG)) for each in (effect, *ends)]
    return {"odds_ratio": ratios[0], "interval": ratios[1:]}


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _describe_costs(rounds: Any, screen: Any) -> Iterator[Plain]:
    """The scores with all columns, and after each rejection."""
    rejected = screen[screen["verdict"] == "rejected"]
    without = ""
    for row in rounds.to_dict("records"):
        scores = {key: _number(row[key]) for key in ("auc", "log_loss")}
        yield {"n_columns": int(row["n_columns"]), "without": without or None, **scores}
        own = rejected.loc[rejected["round"] == row["round"], "column"]
        without = ", ".join(map(format_name, own))
    if without:  # every column was rejected
        yield {"n_columns": 0, "without": without, "auc": None, "log_loss": None}


def _name_estimator(estimator: Any) -> str:
    estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    kinds = {"logistic": "logistic regression", "tree": "a tree of 64 leaves"}
    kind = "hgb" if estimator is None else getattr(estimator, "kind", None)
    default = "histogram gradient boosting"
    return default if kind == "hgb" else kinds.get(str(kind)) or type(estimator).__name__


def _lay_out(summary: Plain, limits: Limits) -> Plain:
    """The summary with its forest plots, no more than the limits allow."""
    drawn = [each for each in summary["columns"] if each["lowest"]][: limits.leaves]
    n_more = sum(each["lowest"] is not None for each in summary["columns"]) - len(drawn)
    shown = summary["columns"][: limits.environments]
    forest = {"forest": draw_forest(drawn, limits), "n_more_forests": n_more}
    return {**summary, "limits": limits, "shown": shown, **forest}


def _render_markdown(summary: Plain, *, brief: bool, facts: Any = ()) -> str:
    n_kept = _N_KEPT if brief else len(summary["columns"])
    others = [each for each in summary["columns"] if each["verdict"] != "kept"]
    kept = [each for each in summary["columns"] if each["verdict"] == "kept"]
    lists = {"shown": [*others, *kept[:n_kept]], "n_more": len(kept[n_kept:])}
    return render_template("screen.md", {**summary, **lists, "brief": brief, "facts": facts})


def render_screen(report: ScreenReport, facts: Any) -> Iterator[RenderableType]:
    """The report as the terminal shows it, below the facts about the data."""
    return render_blocks(_render_markdown(report.summary, brief=True, facts=facts))


def draw_forests(selector: Any, column: Any = None) -> Figure:
    """Forest plots of one column, or of those with the largest shares of heterogeneity."""
    check_matplotlib()
    screen = selector.screen_
    if column is not None and column not in [*screen["column"]]:
        raise IcscmError(f"there is no column {column!r} in the screen")
    rows = screen if column is None else screen[screen["column"] == column]
    rows = rows.sort_values("share", ascending=False, kind="stable").to_dict("records")
    described = [_describe_column(row, selector.effects_) for row in rows]
    found = [each for each in described if each["lowest"]][:_N_DRAWN]
    if not found:
        raise IcscmError("no effect is known that could be drawn; see the reasons in screen_")
    heights = [len(each["environments"]) + 3.5 for each in found]
    height = 0.6 + 0.22 * sum(heights)
    figure = make_figure((7.0, height), is_registered=True, layout="constrained")
    panels = figure.subplots(len(found), 1, sharex=True, squeeze=False, height_ratios=heights)
    for axes, each in zip(panels[:, 0], found, strict=True):
        _draw_forest(axes, each)
    panels[-1, 0].set_xlabel("odds ratio, other columns held fixed, with 95% intervals")
    return figure


def _draw_forest(axes: Axes, column: Plain) -> None:
    """The environments from top to bottom, then the pooled effect and the prediction interval."""
    pooled = column["pooled"]
    rows = [(each["environment"], each, INK, 1.2) for each in column["environments"]]
    rows.append(("pooled", pooled, ACCENT, 2.5))
    new = {**pooled, "interval": pooled["prediction_interval"]}
    if new["interval"] is not None:
        rows.append(("new environment", new, SOFT, 2.5))
    for y, (_, each, color, width) in enumerate(rows):
        if each["odds_ratio"] is None:
            continue
        axes.plot(each["interval"], [y, y], color=color, linewidth=width)
        if each is not new:
            axes.plot([each["odds_ratio"]], [y], "o", color=color, markersize=4.5)
    axes.axvline(1.0, color=SOFT, linewidth=0.8, linestyle="--")
    known = [each["odds_ratio"] for _, each, *_ in rows if each["odds_ratio"] is not None]
    axes.set_xscale("log")
    axes.set_xlim(exp(log(min(*known, 0.5)) - 1), exp(log(max(*known, 2.0)) + 1))
    axes.set_yticks(range(len(rows)), [clip(name, 24) for name, *_ in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    share = f"{column['verdict']}, share of heterogeneity {format_share(column['share'])}"
    title = f"{clip(column['rule'] or column['column'], 60)}: {share}"
    axes.set_title(title, fontsize=9, loc="left", parse_math=False)
    axes.grid(axis="x", color=LINE, linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
