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
from itertools import product
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
    Floats,
    compute_auc,
    encode_columns,
    fit_logistic,
)
from paper.shares import group_rows

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
# What might predict a failure: the worth that the column may lose in a new environment by the
# screen, the verdict, and a weak effect.
PREDICTORS = ("lost worth", "rejected", "weakness")
# Cuts tried of a column: at quantiles of its numbers, or at its most frequent levels.
_N_QUANTILES = 20
_MAX_LEVELS = 20
# Rows on each side of a cut that are needed to estimate its effect.
_LEAST_ROWS = 10
_NEWTON_STEPS = 25
_RIDGE = 0.01  # keeps the effect of a cut finite that separates the labels of an environment


class Effect(NamedTuple):
    """The effect of a cut in an environment and its standard error."""

    value: float
    error: float


def make_plan(options: Options) -> Plan:
    """A task for each table and environment left out."""
    return make_long_plan(
        options, list_cells(options), partial(run_task, options=options), COLUMNS_OUT
    )


def run_task(task: Task, _: int, options: Options) -> Row:
    """Screen the columns in the other environments; all pairs as JSON in one field."""
    start = perf_counter()
    data = load(task["table"], options)
    is_in = data.environments != task["out"]
    X = data.X[is_in].reset_index(drop=True)
    selector = InvariantFeatureSelector(random_state=0, n_jobs=1)
    screen = selector.fit(X, data.y[is_in], environments=data.environments[is_in]).screen_
    effects = measure_effects(data.X, data.y, data.environments, task["out"])

    pairs = []
    # a column that the model does not use has nothing to lose
    lost_worths = (1.0 - screen["worth_low"]).fillna(0.0)
    for name, verdict, lost_worth in zip(
        screen["column"], screen["verdict"], lost_worths, strict=True
    ):
        if name not in effects:
            continue
        pairs.append(
            {
                "column": name,
                "rejected": int(verdict == "rejected"),
                "lost worth": round(float(lost_worth), 6),
                "effects": effects[name],
            }
        )
    return {"pairs": json.dumps(pairs), "seconds": perf_counter() - start}


def measure_effects(
    X: pandas.DataFrame, y: NDArray[np.int64], environments: NDArray[Any], out: str
) -> dict[str, dict[str, list[float]]]:
    """By column and view: mean effect and error at the training environments, and both at `out`.

    Columns that do not vary enough for a cut, at the training environments or where left out, are
    not in it.
    """
    is_in = environments != out
    blocks = encode_columns(X)
    names, site = np.unique(environments, return_inverse=True)
    # an intercept for each training environment but the first
    training_sites = np.flatnonzero(names != out)
    intercepts = (site[:, np.newaxis] == training_sites[1:]).astype(float)

    effects = {}
    for name in X:
        cut = find_cut(X[name], y, site, is_in)
        if cut is None:
            continue
        cut_outside = cut[~is_in]
        if min(cut_outside.sum(), (~cut_outside).sum()) < _LEAST_ROWS:
            continue
        other_blocks = [block for other, block in blocks.items() if other != name]
        Z = np.hstack([np.ones((len(y), 1)), *other_blocks, intercepts])
        offset = Z @ fit_logistic(Z[is_in], y[is_in], np.zeros(1))
        offsets = dict(zip(VIEWS, (np.zeros(len(y)), offset), strict=True))
        effects[name] = {
            view: _compare(cut, y, site, is_in, offset_of_view)
            for view, offset_of_view in offsets.items()
        }
    return effects


def find_cut(
    column: pandas.Series, y: NDArray[np.int64], site: NDArray[np.int64], rows: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """The cut that explains most within the environments of some rows, by a score test.

    With residuals g and variances h of the label, given its rate in the environment, the statistic
    of a cut is G^2 / V: G sums g over the rows of the cut, and V sums H (T - H) / T over the
    environments, where H sums h over the rows of the cut and T over all rows.
    """
    site_of_rows = site[rows]
    sizes = np.maximum(np.bincount(site_of_rows), 1)
    rate_of_site = np.bincount(site_of_rows, y[rows]) / sizes
    rate = rate_of_site[site_of_rows]
    g = y[rows] - rate
    h = rate * (1.0 - rate)
    T = np.bincount(site_of_rows, h)

    best = None
    strongest = 0.0
    for cut in _list_cuts(column, rows):
        is_true = cut[rows]
        n_true = int(is_true.sum())
        H = np.bincount(site_of_rows, h * is_true)
        V = float((H * (T - H) / np.maximum(T, 1e-12)).sum())
        if min(n_true, len(is_true) - n_true) < _LEAST_ROWS or V < 1e-9:
            continue
        G = g[is_true].sum()
        strength = float(G**2 / V)
        if strength > strongest:
            best = cut
            strongest = strength
    return best


def _list_cuts(column: pandas.Series, rows: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Quantiles of numbers, frequent levels of others, and missing values."""
    from pandas.api.types import is_numeric_dtype

    if is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        known = values[rows & ~np.isnan(values)]
        levels = np.linspace(0.0, 1.0, _N_QUANTILES + 1)[:-1]
        quantiles = np.unique(np.quantile(known, levels)).tolist() if len(known) else []
        yield from (values > quantile for quantile in quantiles)
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
    inside = []
    for training_site in np.unique(site[is_in]):
        rows = np.flatnonzero(site == training_site)
        inside.append(fit_effect(cut[rows], y[rows], offset[rows]))
    weights = np.array([effect.error**-2 for effect in inside])
    mean = float(np.average([effect.value for effect in inside], weights=weights))
    error_of_mean = float(weights.sum() ** -0.5)
    outside = fit_effect(cut[~is_in], y[~is_in], offset[~is_in])
    return [round(number, 4) for number in (mean, error_of_mean, outside.value, outside.error)]


def fit_effect(cut: NDArray[np.bool_], y: NDArray[np.int64], offset: Floats) -> Effect:
    """Log odds ratio of a cut, given an offset and an intercept, by Newton's method.

    The error is the model's or, if larger, the robust one: a regression on the other columns may
    be wrong in the environment left out.

    >>> cut = np.repeat([True, True, False, False], [30, 10, 10, 30])
    >>> effect = fit_effect(cut, np.repeat([1, 0, 1, 0], [30, 10, 10, 30]), np.zeros(80))
    >>> round(effect.value, 2)  # of log 9, hardly shrunk
    2.19
    """
    Z: Floats = np.column_stack((np.ones(len(y)), cut)).astype(np.float64)
    beta = np.zeros(2)  # the intercept and the effect
    ridge = np.array([1e-6, _RIDGE])

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
    model_variances = np.linalg.inv(hessian)
    squared_residuals = (Z * ((y - p) ** 2)[:, np.newaxis]).T @ Z
    robust_variances = model_variances @ squared_residuals @ model_variances
    variance = max(model_variances[1, 1], robust_variances[1, 1])
    return Effect(value=float(beta[1]), error=float(np.sqrt(variance)))


def judge_pair(effect: list[float]) -> dict[str, float]:
    """Whether a column failed, in each way, and how weak it was at the training environments."""
    mean, error_of_mean, value_outside, error_outside = effect
    is_changed = mean * value_outside < 0
    error_of_difference = float(np.hypot(error_of_mean, error_outside))
    is_different = abs(value_outside - mean) > 2.0 * error_of_difference
    return {
        "changed sign": float(is_changed),
        "differs": float(is_different),
        "both": float(is_changed and is_different),
        "weakness": -abs(mean) / error_of_mean,
    }


def unfold(rows: Rows) -> Iterator[Row]:
    """A row for each table, environment left out, column and view."""
    for row in rows:
        for pair in json.loads(row["pairs"]):
            for view, effect in pair["effects"].items():
                task = {name: row[name] for name in ("table", "out")}
                yield {**task, **pair, "view": view, **judge_pair(effect)}


def summarise(rows: Rows) -> Summary:
    """AUC of three predictors of failing, and failures among rejected and kept columns."""
    rows, failures = split_failed(rows)
    pairs = list(unfold(rows))
    lines = [line for table in (*TITLES, "all") for line in _describe(table, pairs)]
    header = ["table", "effect", "failure", "pairs", "rejected", "fail if rejected",
              "fail if kept", *(f"AUC of {each}" for each in PREDICTORS)]  # fmt: skip
    caption = (
        "Pairs of column and environment left out, nothing planted: how often columns fail that "
        "were rejected or kept in the other environments, and how well the worth that the screen "
        "says may be lost, the verdict, and the weakness of the effect there predict failing. "
        "By table: changes of sign only."
    )
    return Summary([Table("screen-shifts", caption, header, lines)], (), [*_find(pairs), *failures])


def _describe(table: str, pairs: list[Row]) -> Iterator[list[str]]:
    """Lines on a table, or on "all": for each kind of effect and kind of failure."""
    pairs_of_table = [pair for pair in pairs if table in ("all", pair["table"])]
    if not pairs_of_table:
        return
    cells = group_rows(pairs_of_table, "view")
    for view, failure in product(VIEWS, FAILURES):
        is_main = (view, failure) == (VIEWS[-1], FAILURES[0])
        if table != "all" and not is_main:
            continue
        cell = cells.get(view, [])
        rejected = [pair for pair in cell if pair["rejected"]]
        kept = [pair for pair in cell if not pair["rejected"]]
        counts = [str(len(cell)), str(len(rejected))]
        shares = [_count_failures(rejected, failure), _count_failures(kept, failure)]
        aucs = [_format(_predict(cell, failure, predictor)) for predictor in PREDICTORS]
        yield [TITLES.get(table, table), view, failure, *counts, *shares, *aucs]


def _count_failures(pairs: list[Row], failure: str) -> str:
    """The share of the pairs that fail, and their number."""
    failed = [pair[failure] for pair in pairs]
    return f"{np.mean(failed):.3f} ({sum(failed):.0f} of {len(failed)})" if failed else "-"


def _predict(pairs: list[Row], failure: str, predictor: str) -> float | None:
    """The AUC with which a predictor tells failures; None if all or none fail."""
    failed = np.array([int(pair[failure]) for pair in pairs])
    if not 0 < failed.sum() < len(failed):
        return None
    return compute_auc(failed, np.array([float(pair[predictor]) for pair in pairs]))


def _format(auc: float | None) -> str:
    return "-" if auc is None else f"{auc:.2f}"


def _find(pairs: list[Row]) -> Iterator[str]:
    for line in _describe("all", pairs):
        _, view, failure, n_pairs, n_rejected, rejected, kept, *aucs = line
        if view != VIEWS[-1]:
            continue
        yield (
            f"Effect {view}, {failure}: {rejected} of the rejected and {kept} of the kept columns "
            f"({n_rejected} of {n_pairs} pairs rejected); AUC of the lost worth {aucs[0]}, of the "
            f"verdict {aucs[1]}, of weakness {aucs[2]}."
        )
