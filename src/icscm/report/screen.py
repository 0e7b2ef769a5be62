"""A report on a screen of columns: verdicts, effects by environment, costs, other tolerances.

The summary is a dict: `columns` (verdict, reason, share of heterogeneity, rule, effects by
environment, pooled effect and prediction interval), `costs` by round at the training environments,
`path` along the tolerance, `validation` by leave-one-environment-out or None, `limits`.

The worst column is always rejected first, so that tolerances only stop the same sequence earlier or
later: a column is rejected at tolerances below the smallest share so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, inf
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.pipeline import Pipeline

from icscm._constants import CHANCE_LEVEL
from icscm._repr import Display, DisplayMixin, display_frame
from icscm.drawing import Figure
from icscm.drawing.axes import make_ratio_axis
from icscm.drawing.intervals import (
    Background,
    IntervalPanel,
    IntervalRow,
    draw_interval_panel,
)
from icscm.drawing.path import ScoreLine, ScorePath, draw_scores, write_tolerance
from icscm.drawing.shapes import Role, place_below
from icscm.exceptions import IcscmError
from icscm.formatting import as_text, clip, format_name, format_number, make_plain
from icscm.parameters import allow, check_value
from icscm.report.documents.screen import write_document
from icscm.report.drawing import Limits, choose_effects, draw_forest
from icscm.report.formatting import (
    Plain,
    format_heterogeneity,
    format_odds_interval,
    format_ratio,
)
from icscm.report.markdown import render_markdown
from icscm.report.page import Report, render_page
from icscm.report.path import ScoredPoint
from icscm.report.summary import ABOUT
from icscm.report.terminal import render_blocks
from icscm.report.wording.screening import (
    LIMITS,
    PRICE_OF_TRUTH,
    describe_costs,
    describe_price,
    describe_screen,
    judge_costs,
    shows_effects,
)
from icscm.stats.random_effects import pool_effects

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

SCREEN_TOLERANCES: Final = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
# Scores of a path in its figure.
_LINES: Final = (
    ("auc", "training environments, cross-validated", Role.PATH_CURVE),
    ("auc_left_out", "leave-one-environment-out, mean", Role.OVERALL_CURVE),
    ("worst_auc_left_out", "leave-one-environment-out, worst", Role.WORST_CURVE),
)
_ORDER: Final = ("rejected", "cannot tell", "kept")
# The half-width of a 95% interval in standard errors.
_Z: Final = 1.959964
# Columns that `plot` draws by itself, and environments of each.
_N_DRAWN: Final = 6
_MAX_ENVIRONMENTS: Final = 60
# Kept columns that the terminal lists.
_N_KEPT: Final = 15
# Odds ratios beyond exp(50) are all the same.
_MAX_LOG: Final = 50.0


@dataclass(frozen=True)
class ScreenPoint(ScoredPoint):
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

    Examples
    --------
    >>> from icscm.report.screen import ScreenPoint
    >>> point = ScreenPoint(0.01, ("age", "lactate"), ("billing_code",), 0.84, 0.49)
    >>> point.kept, point.leave
    (('age', 'lactate'), ('billing_code',))
    """

    tolerance: float
    kept: tuple[Any, ...]
    leave: tuple[Any, ...]
    auc: float | None
    log_loss: float | None
    aucs: tuple[float | None, ...] | None = None


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
        infinite where it is informative in too few environments.

    Examples
    --------
    >>> from icscm.report.screen import ScreenPath, ScreenPoint
    >>> loose = ScreenPoint(0.1, ("age", "billing_code"), (), 0.9, 0.4)
    >>> strict = ScreenPoint(0.01, ("age",), ("billing_code",), 0.84, 0.49)
    >>> path = ScreenPath((loose, strict), own=0.01, falls={"billing_code": 0.05})
    >>> [(each["name"], each["is_own"]) for each in path.describe_points()]
    [('0.1', False), ('0.01', True)]
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
                "auc_left_out": point.mean_auc,
                "worst_auc_left_out": point.worst_auc,
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
        icscm.drawing.Figure
            Cross-validated at the training environments and, where known, by
            leave-one-environment-out; the selector's own tolerance is marked.
        """
        points = self.describe_points()
        path = ScorePath(
            names=[write_tolerance(point["name"], is_own=point["is_own"]) for point in points],
            lines=[
                ScoreLine(title, values=[point[key] for point in points], role=role)
                for key, title, role in _LINES
            ],
            rejected=[_name_rejected(point["leave"]) for point in points],
        )
        return Figure(draw_scores(path), "AUC along the tolerance of the screen.")

    def _display(self) -> Display:
        price = describe_price(self.own)
        return display_frame(fill(f"From loose to strict. {price}", 80), self.to_frame())


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
    least_so_far = rejected["share"].where(rejected["round"] > 0, inf).cummin()
    falls: dict[Any, float] = dict(zip(rejected["column"], least_so_far, strict=True))
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


class ScreenReport(Report):
    """A report on a screen of columns; a notebook displays it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from icscm import InvariantFeatureSelector
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(1_000, n_environments=3, random_state=1)
    >>> screen = InvariantFeatureSelector(LogisticRegression(), cv=2)
    >>> report = screen.fit(data.X[["A1", "A2"]], data.y, environments=data.environments).report()
    >>> "<html" in report.to_html(), "# " in report.to_markdown()
    (True, True)
    """

    def to_html(self) -> str:
        """One self-contained page, as that of a learner."""
        return render_page("screen.html", lambda limits: _lay_out(self.summary, limits))

    def to_markdown(self) -> str:
        """The report as text with tables."""
        return render_markdown(write_document(self.summary))


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
    sentence = describe_screen(
        counts["rejected"], n_columns=len(columns), tolerance=selector.tolerance
    )
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
        "limits_of_the_screen": list(LIMITS),
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
    without = ", ".join(map(format_name, rejected.loc[rejected["round"] == 0, "column"]))
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
    """The summary with its forest plots and all choices made, no more than the limits allow."""
    task, path = summary["task"], summary["path"]
    known = [column for column in summary["columns"] if column["lowest"]]
    shown = summary["columns"][: limits.environments]
    forest = draw_forest(known[: limits.leaves], limits)
    has_scores = bool(path) and path[0]["auc_left_out"] is not None
    scores = [">AUC held out, mean", ">worst"] if has_scores else []
    answer, detail = judge_costs(summary["costs"])
    return {
        **summary,
        "limits": limits,
        "place": task["environment"] or "environment",
        "cost_answer": clip(answer, limits.characters),
        "cost_detail": clip(detail, limits.characters),
        "costs_text": describe_costs(task["estimator"]),
        "price_of_truth": PRICE_OF_TRUTH,
        "n_undecided": summary["counts"]["cannot tell"],
        "shown": [
            {
                **column,
                "differs": column["lowest"]
                and shows_effects(column["verdict"], column["share"], task["tolerance"]),
            }
            for column in shown
        ],
        "n_more_columns": len(summary["columns"]) - len(shown),
        "forest": {**forest, "columns": list(map(_lay_out_forest, forest["columns"]))},
        "n_more_forests": max(len(known) - limits.leaves, 0),
        "has_scores": has_scores,
        "path_columns": [
            *("tolerance", "also rejected", ">columns left", ">AUC", ">log loss"),
            *scores,
        ],
    }


def _lay_out_forest(column: Plain) -> Plain:
    """A column whose effects are drawn: those of rejected ones are unfolded."""
    rows = [{**row, "is_prediction": row["kind"] == "PREDICTION"} for row in column["rows"]]
    return {**column, "rows": rows, "is_open": column["verdict"] == "rejected"}


def render_screen(report: ScreenReport, facts: Any) -> Iterator[RenderableType]:
    """The report as the terminal shows it, below the facts about the data."""
    return render_blocks(write_document(report.summary, is_brief=True, facts=facts))


def _name_rejected(columns: Sequence[str]) -> str:
    return f"without {', '.join(columns)}" if columns else ""


def draw_forests(selector: Any, column: Any = None) -> Figure:
    """Draw forest plots of one column, or of those with the largest shares of heterogeneity."""
    screen = selector.screen_
    if column is not None and column not in [*screen["column"]]:
        raise IcscmError(f"there is no column {column!r} in the screen")
    rows = screen if column is None else screen[screen["column"] == column]
    rows = rows.sort_values("share", ascending=False, kind="stable").to_dict("records")
    described = [_describe_column(row, selector.effects_) for row in rows]
    known = [description for description in described if description["lowest"]][:_N_DRAWN]
    if not known:
        raise IcscmError("no effect is known that could be drawn; see the reasons in screen_")
    panels = [draw_interval_panel(_make_forest_panel(description)) for description in known]
    names = ", ".join(description["column"] for description in known)
    return Figure(place_below(panels, gap=12.0), f"Odds ratios by environment: {names}.")


def _make_forest_panel(column: Plain) -> IntervalPanel:
    """Make the forest plot of a column: environments, the pooled effect, a new environment."""
    rows = choose_effects(column, _MAX_ENVIRONMENTS)
    share = f"{column['verdict']}, share of heterogeneity {format_heterogeneity(column['share'])}"
    return IntervalPanel(
        title=f"{clip(column['rule'] or column['column'], 50)}: {share}",
        axis=make_ratio_axis(row.estimate for row in rows if row.estimate is not None),
        axis_title="odds ratio, other columns held fixed, with 95% intervals",
        rows=[replace(row, numbers=_write_effect(row)) for row in rows],
        background=Background(guide=1.0),
    )


def _write_effect(row: IntervalRow) -> str:
    """Write an odds ratio with its interval, of a prediction the interval alone."""
    interval = format_odds_interval(row.interval)
    return interval if row.estimate is None else f"{format_ratio(row.estimate)} ({interval})"
