"""Does rejection at the training environments predict which columns fail at the one left out?

On tables as they are, with nothing planted. The effect of a column in an environment is the log
odds ratio of its strongest cut: alone, and given the other columns, whose logistic regression on
the training environments is an offset. A column fails where its effect in the environment left
out has the other sign than the mean over the training environments, or differs from it by more
than two standard errors. The sign of a weak effect changes by chance; `both` is a change of sign
beyond that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from icscm import InvariantFeatureSelector
from paper.base import Options, Summary, Table, make_long_plan
from paper.runner import Plan, Row, Rows, Task, split_failed
from paper.screen_tables import TITLES, list_cells, load
from paper.selection import (
    LEARNERS,
    Floats,
    compute_auc,
    encode_columns,
    fit_logistic,
    make_learner,
)

if TYPE_CHECKING:
    import pandas

TITLE = "Rejected columns at sites left out"
DESCRIPTION = (
    "Columns of tables with nothing planted, screened in all environments but one: do rejected "
    "ones fail in the one left out more often than kept ones?"
)

COLUMNS_OUT = ("pairs", "seconds")
VIEWS = ("alone", "given the others")
FAILURES = ("changed sign", "differs", "both")
# What might predict a failure: the share of heterogeneity, the verdict, and a weak effect.
PREDICTORS = ("share", "rejected", "weakness")
_N_QUANTILES, _MAX_LEVELS, _LEAST_ROWS, _NEWTON_STEPS = 20, 20, 10, 25
_RIDGE = 0.01  # keeps the effect of a cut finite that separates the labels of an environment


class Effect(NamedTuple):
    """The effect of a cut in an environment and its standard error."""

    value: float
    error: float


def make_plan(options: Options) -> Plan:
    """A task for each table, environment left out and learner."""
    learners = LEARNERS[:1] if options.quick else LEARNERS
    cells = list_cells(options)
    tasks = [{**cell, "learner": each} for cell in cells for each in learners]
    return make_long_plan(options, tasks, partial(run_task, options=options), COLUMNS_OUT)


def run_task(task: Task, _: int, options: Options) -> Row:
    """Screen the columns in the other environments; all pairs as JSON in one field."""
    start = perf_counter()
    data, learner = load(task["table"], options), make_learner(task["learner"])
    is_in = data.environments != task["out"]
    X = data.X[is_in].reset_index(drop=True)
    selector = InvariantFeatureSelector(learner, random_state=0, n_jobs=1)
    screen = selector.fit(X, data.y[is_in], environments=data.environments[is_in]).screen_
    effects = measure_effects(data.X, data.y, data.environments, task["out"])
    pairs = [
        {
            "column": name,
            "rejected": int(verdict == "rejected"),
            "share": round(float(share), 6),
            "effects": effects[name],
        }
        for name, verdict, share in zip(*(screen[k] for k in _SCREEN), strict=True)
        if name in effects
    ]
    return {"pairs": json.dumps(pairs), "seconds": perf_counter() - start}


_SCREEN = ("column", "verdict", "share")


def measure_effects(
    X: pandas.DataFrame, y: NDArray[np.int64], environments: NDArray[Any], out: str
) -> dict[str, dict[str, list[float]]]:
    """By column and view: mean effect and error at the training environments, and both at `out`.

    Columns that do not vary enough for a cut, at the training environments or where left out, are
    not in it.
    """
    is_in, blocks = environments != out, encode_columns(X)
    places, site = np.unique(environments, return_inverse=True)
    intercepts = (site[:, np.newaxis] == np.flatnonzero(places != out)[1:]).astype(float)
    found = {}
    for name in X:
        cut = find_cut(X[name], y, site, is_in)
        if cut is None or min(cut[~is_in].sum(), (~cut[~is_in]).sum()) < _LEAST_ROWS:
            continue
        others = [block for other, block in blocks.items() if other != name]
        Z = np.hstack([np.ones((len(y), 1)), *others, intercepts])
        offset = Z @ fit_logistic(Z[is_in], y[is_in], np.zeros(1))
        views = zip(VIEWS, (np.zeros(len(y)), offset), strict=True)
        found[name] = {view: _compare(cut, y, site, is_in, each) for view, each in views}
    return found


def find_cut(
    column: pandas.Series, y: NDArray[np.int64], site: NDArray[np.int64], rows: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """The cut that explains most within the environments of some rows, by a score test."""
    sizes = np.maximum(np.bincount(site[rows]), 1)
    rate = (np.bincount(site[rows], y[rows]) / sizes)[np.minimum(site, len(sizes) - 1)]
    g, h = (y - rate)[rows], (rate * (1.0 - rate))[rows]
    total = np.bincount(site[rows], h)
    best, strongest = None, 0.0
    for cut in _list_cuts(column, rows):
        own = np.bincount(site[rows], h * cut[rows])
        variance = float((own * (total - own) / np.maximum(total, 1e-12)).sum())
        n_true = int(cut[rows].sum())
        if min(n_true, int(rows.sum()) - n_true) < _LEAST_ROWS or variance < 1e-9:
            continue
        if (strength := float(g[cut[rows]].sum() ** 2 / variance)) > strongest:
            best, strongest = cut, strength
    return best


def _list_cuts(column: pandas.Series, rows: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Quantiles of numbers, frequent levels of others, and missing values."""
    from pandas.api.types import is_numeric_dtype

    if is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        known = values[rows & ~np.isnan(values)]
        levels = np.linspace(0.0, 1.0, _N_QUANTILES + 1)[:-1]
        quantiles = np.unique(np.quantile(known, levels)).tolist() if len(known) else []
        yield from (values > each for each in quantiles)
    else:
        text = column.astype(object)
        for level in text[rows].value_counts().index[:_MAX_LEVELS]:
            yield (text == level).to_numpy(dtype=bool)
    yield column.isna().to_numpy(dtype=bool)


def _compare(
    cut: NDArray[np.bool_],
    y: NDArray[np.int64],
    site: NDArray[np.int64],
    is_in: NDArray[np.bool_],
    offset: Floats,
) -> list[float]:
    """The mean over the training environments, weighted by precision, and the one left out."""
    inside = [fit_effect(cut[own], y[own], offset[own]) for own in _split(site, is_in)]
    weights = np.array([each.error**-2 for each in inside])
    mean = float(np.average([each.value for each in inside], weights=weights))
    outside = fit_effect(cut[~is_in], y[~is_in], offset[~is_in])
    return [round(each, 4) for each in (mean, float(weights.sum() ** -0.5), *outside)]


def _split(site: NDArray[np.int64], rows: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    for each in np.unique(site[rows]):
        yield np.flatnonzero(site == each)


def fit_effect(cut: NDArray[np.bool_], y: NDArray[np.int64], offset: Floats) -> Effect:
    """Log odds ratio of a cut, given an offset and an intercept.

    The error is the model's or, if larger, the robust one: a regression on the other columns may
    be wrong in the environment left out.

    >>> cut = np.repeat([True, True, False, False], [30, 10, 10, 30])
    >>> effect = fit_effect(cut, np.repeat([1, 0, 1, 0], [30, 10, 10, 30]), np.zeros(80))
    >>> round(effect.value, 2)  # of log 9, hardly shrunk
    2.19
    """
    Z: Floats = np.column_stack((np.ones(len(y)), cut)).astype(np.float64)
    beta, ridge = np.zeros(2), np.array([1e-6, _RIDGE])

    def measure_loss(beta: Floats) -> float:
        score = Z @ beta + offset
        return float(np.logaddexp(0.0, score).sum() - score @ y + 0.5 * ridge @ beta**2)

    for _ in range(_NEWTON_STEPS):
        p = expit(Z @ beta + offset)
        hessian = (Z * (p * (1.0 - p))[:, np.newaxis]).T @ Z + np.diag(ridge)
        step = np.linalg.solve(hessian, Z.T @ (y - p) - ridge * beta)
        # a whole step may lead away where the offset is far off
        while measure_loss(beta + step) > measure_loss(beta) and np.abs(step).max() > 1e-9:
            step = step / 2
        beta = beta + step
    inverse = np.linalg.inv(hessian)
    robust = inverse @ ((Z * ((y - p) ** 2)[:, np.newaxis]).T @ Z) @ inverse
    return Effect(float(beta[1]), float(np.sqrt(max(inverse[1, 1], robust[1, 1]))))


def judge_pair(effect: list[float]) -> dict[str, float]:
    """Whether a column failed, in each way, and how weak it was at the training environments."""
    mean, error, value, own_error = effect
    is_changed = mean * value < 0
    is_different = abs(value - mean) > 2.0 * float(np.hypot(error, own_error))
    return {
        "changed sign": float(is_changed),
        "differs": float(is_different),
        "both": float(is_changed and is_different),
        "weakness": -abs(mean) / error,
    }


def unfold(rows: Rows) -> Iterator[Row]:
    """A row for each table, environment left out, learner, column and view."""
    for row in rows:
        for pair in json.loads(row["pairs"]):
            for view, effect in pair["effects"].items():
                known = {name: row[name] for name in ("table", "out", "learner")}
                yield {**known, **pair, "view": view, **judge_pair(effect)}


def summarise(rows: Rows) -> Summary:
    """AUC of three predictors of failing, and failures among rejected and kept columns."""
    rows, failures = split_failed(rows)
    pairs = list(unfold(rows))
    lines = [line for table in (*TITLES, "all") for line in _describe(table, pairs)]
    header = ["table", "learner", "effect", "failure", "pairs", "rejected", "fail if rejected",
              "fail if kept", *(f"AUC of {each}" for each in PREDICTORS)]  # fmt: skip
    caption = (
        "Pairs of column and environment left out, nothing planted: how often columns fail that "
        "were rejected or kept in the other environments, and how well the share of "
        "heterogeneity, the verdict, and the weakness of the effect there predict failing. "
        "By table: changes of sign only."
    )
    return Summary([Table("screen-shifts", caption, header, lines)], (), [*_find(pairs), *failures])


def _describe(table: str, pairs: list[Row]) -> Iterator[list[str]]:
    own = [pair for pair in pairs if table in ("all", pair["table"])]
    for learner in (each for each in LEARNERS if any(pair["learner"] == each for pair in own)):
        for view in VIEWS:
            cell = [pair for pair in own if (pair["learner"], pair["view"]) == (learner, view)]
            for failure in FAILURES:
                if table != "all" and (view, failure) != (VIEWS[-1], FAILURES[0]):
                    continue
                shown = [_fail(cell, failure, is_rejected) for is_rejected in (1, 0)]
                aucs = [_format(_predict(cell, failure, each)) for each in PREDICTORS]
                n_rejected = sum(pair["rejected"] for pair in cell)
                title = TITLES.get(table, table)
                counts = [str(len(cell)), str(n_rejected)]
                yield [title, learner, view, failure, *counts, *shown, *aucs]


def _fail(pairs: list[Row], failure: str, is_rejected: int) -> str:
    own = [pair[failure] for pair in pairs if pair["rejected"] == is_rejected]
    return f"{np.mean(own):.3f} ({sum(own):.0f} of {len(own)})" if own else "-"


def _predict(pairs: list[Row], failure: str, predictor: str) -> float | None:
    failed = np.array([int(pair[failure]) for pair in pairs])
    if not 0 < failed.sum() < len(failed):
        return None
    return compute_auc(failed, np.array([float(pair[predictor]) for pair in pairs]))


def _format(auc: float | None) -> str:
    return "-" if auc is None else f"{auc:.2f}"


def _find(pairs: list[Row]) -> Iterator[str]:
    for line in _describe("all", pairs):
        _, learner, view, failure, n_pairs, n_rejected, rejected, kept, *aucs = line
        yield (
            f"{learner}, effect {view}, {failure}: {rejected} of the rejected and {kept} of the "
            f"kept columns ({n_rejected} of {n_pairs} pairs rejected); AUC of the share {aucs[0]}, "
            f"of the verdict {aucs[1]}, of weakness {aucs[2]}."
        )
