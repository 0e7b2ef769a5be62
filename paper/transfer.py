"""Leave-one-environment-out on real tables, clean and with planted shortcuts that reverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from icscm import (
    ICSCMClassifier,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
)
from icscm.datasets import RealData
from icscm.exceptions import IcscmError
from icscm.sources import open_memory
from paper.base import Figure, Options, Summary, Table
from paper.data import TABLES, find_present
from paper.data.preparation import Prepared, prepare_one_hot
from paper.runner import Plan, Row, Rows, Task, make_seed
from paper.shares import find_mean, group_rows, read_numbers
from paper.shortcuts import COLUMNS, SHORTCUTS, plant

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure as MatplotlibFigure

TITLE = "Leave-one-environment-out, clean and with planted shortcuts"
DESCRIPTION = (
    "Each environment of four real tables is left out in turn and used for testing; then with a "
    "planted column that predicts the label in training and its opposite in testing."
)

N_RUNS = 3
MEASURES = ("auc", "error", "log loss")
# The values of each environment are kept, too.
LISTED = {"auc": "aucs", "slope": "slopes", "intercept": "intercepts"}
COLUMNS_OUT = ("environments", *MEASURES, "used", "seconds", *LISTED.values())
# Goals: how far below a plain tree, or scikit-learn's forest, ours may be, and below clean.
PAIRS = {
    "invariant tree": ("plain tree", 0.02),
    "invariant forest": ("sklearn forest", 0.03),
    "invariant score": ("logistic", 0.01),
}
FROM_CLEAN = 0.01


class Sample(NamedTuple):
    """Training and test rows of a method; `hot` makes the same columns one-hot."""

    X: pandas.DataFrame
    y: NDArray[np.int64]
    environments: NDArray[Any]
    is_out: NDArray[np.bool_]
    hot: Callable[[], Prepared]


class Answer(NamedTuple):
    """Probabilities in the test rows, and whether a shortcut was used."""

    probabilities: NDArray[np.float64]
    uses_shortcut: bool


def _predict_rate(sample: Sample) -> Answer:
    """Predict the training rows' rate of the label for all test rows."""
    rate = sample.y[~sample.is_out].mean()
    return Answer(np.full(sample.is_out.sum(), rate), uses_shortcut=False)


def _fit_ours(make: Callable[[], Any], sample: Sample) -> Answer:
    """Fit a learner of this package, which takes columns and environments as they are."""
    out = sample.is_out
    learner = make().set_params(n_jobs=1)
    countable = open_memory(
        sample.X[~out],
        sample.y[~out],
        environments=sample.environments[~out],
        # a shortcut may look like a copy of the outcome, and must be found out by the learner
        preparation=replace(learner.prepare(), drop_suspicious=False),
    )
    learner.fit_counts(countable)
    used_shortcuts = set(learner.features_used_) & set(COLUMNS)
    probabilities = learner.predict_proba(sample.X[out])[:, 1]
    return Answer(probabilities, uses_shortcut=bool(used_shortcuts))


def _fit_sklearn(make: Callable[[], Any], sample: Sample) -> Answer:
    """Fit a learner of scikit-learn, or like these, on one-hot columns."""
    out = sample.is_out
    prepared = sample.hot()
    hot = prepared.to_frame().to_numpy(dtype=np.float32)
    learner = make().fit(hot[~out], sample.y[~out])

    model = (
        learner.steps[-1][1] if hasattr(learner, "steps") else learner
    )  # of a pipeline, the last
    if hasattr(model, "feature_importances_"):
        importances = model.feature_importances_
    else:
        importances = np.abs(model.coef_[0])
    importance_of = dict(zip(prepared.columns, importances, strict=True))
    uses_shortcut = any(importance_of[name] > 0 for name in prepared.find_columns_of(COLUMNS))
    return Answer(learner.predict_proba(hot[out])[:, 1], uses_shortcut=uses_shortcut)


def _make_logistic() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))


def _make_sklearn_tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=0.01, random_state=0)


def _make_sklearn_forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=1)


def _fit_time_robust(sample: Sample) -> Answer:
    """Fit a time-robust forest, whose periods are the environments."""
    models: Any = import_module("time_robust_forest.models")
    out = sample.is_out
    prepared = sample.hot()
    periods = np.unique(sample.environments, return_inverse=True)[1]
    hot = prepared.to_frame().assign(period=periods)
    learner = models.TimeForestClassifier(
        n_estimators=10, max_depth=5, min_sample_periods=10, multi=False, random_state=0
    )
    learner.fit(hot[~out].reset_index(drop=True), sample.y[~out])
    used_columns = set(learner.feature_importance().index)
    used_shortcuts = used_columns & set(prepared.find_columns_of(COLUMNS))
    probabilities: Any = learner.predict_proba(hot[out].reset_index(drop=True))
    return Answer(np.asarray(probabilities)[:, 1], uses_shortcut=bool(used_shortcuts))


def _fit_ebm(sample: Sample) -> Answer:
    """Fit an explainable boosting machine; its terms are columns, or pairs such as "a & b"."""
    glassbox: Any = import_module("interpret.glassbox")
    out = sample.is_out
    learner = glassbox.ExplainableBoostingClassifier(random_state=0, n_jobs=1, outer_bags=4)
    learner.fit(sample.X[~out], sample.y[~out])
    importance_of = dict(zip(learner.term_names_, learner.term_importances(), strict=True))
    used_terms = [term for term, importance in importance_of.items() if importance > 0]
    uses_shortcut = any(set(term.split(" & ")) & set(COLUMNS) for term in used_terms)
    return Answer(learner.predict_proba(sample.X[out])[:, 1], uses_shortcut=uses_shortcut)


def _make_figs() -> Any:
    return import_module("imodels").FIGSClassifier(max_rules=12)


def _fit_faster_risk(sample: Sample) -> Answer:
    """Fit a score of 12 terms of one-hot columns, numbers cut at their sixths."""
    solver: Any = import_module("fasterrisk.fasterrisk")
    out = sample.is_out
    prepared = sample.hot()
    hot = prepared.to_frame()
    columns_of_terms = []
    term_values = []
    for name in hot.columns:
        values = hot[name].to_numpy(dtype=float)
        for cut in np.unique(np.quantile(values[~out], np.arange(1, 6) / 6)):
            is_above = values > cut
            if 0 < is_above[~out].mean() < 1:
                columns_of_terms.append(name)
                term_values.append(is_above)
    terms = np.column_stack(term_values).astype(float)
    labels = np.where(sample.y == 1, 1, -1)

    search = solver.RiskScoreOptimizer(terms[~out], labels[~out], k=12)
    search.optimize()
    scale, intercept, points = search.get_models(model_index=0)
    shortcuts = {*prepared.find_columns_of(COLUMNS)}
    uses_shortcut = any(
        column in shortcuts and points_of_term
        for column, points_of_term in zip(columns_of_terms, points, strict=True)
    )
    probabilities = expit((intercept + terms[out] @ points) / scale)
    return Answer(probabilities, uses_shortcut=uses_shortcut)


METHODS: dict[str, Callable[[Sample], Answer]] = {
    "baseline": _predict_rate,
    "ICSCM": partial(_fit_ours, partial(ICSCMClassifier, p="balanced")),
    "plain tree": partial(_fit_ours, partial(InvariantTreeClassifier, tolerance=None)),
    "invariant tree": partial(_fit_ours, InvariantTreeClassifier),
    "sklearn tree": partial(_fit_sklearn, _make_sklearn_tree),
    "logistic": partial(_fit_sklearn, _make_logistic),
    "time-robust forest": _fit_time_robust,
    "invariant score": partial(_fit_ours, partial(InvariantScoreClassifier, random_state=0)),
    "invariant forest": partial(_fit_ours, partial(InvariantForestClassifier, random_state=0)),
    "sklearn forest": partial(_fit_sklearn, _make_sklearn_forest),
    "EBM": _fit_ebm,
    "FIGS": partial(_fit_sklearn, _make_figs),
    "FasterRisk": _fit_faster_risk,
}
# Run only if their packages are installed.
PEERS = {
    "time-robust forest": "time_robust_forest",
    "EBM": "interpret",
    "FIGS": "imodels",
    "FasterRisk": "fasterrisk",
}
# These take minutes a table: shortcuts are planted once.
SLOW = (*PEERS, "logistic", "invariant score", "invariant forest", "sklearn forest")
_SMALL = ("Heart disease by hospital", "Sachs by experiment")
_SMALL_FIRST = (*_SMALL, "ACS income by state", "Diabetes by source of admission")


def make_plan(options: Options) -> Plan:
    """A task for each table at hand, kind of shortcut, repetition and method; clean needs one."""
    present = find_present(options.data_home)
    tables = [title for title in _SMALL_FIRST if TABLES[title][0] in present]
    if not tables:
        needed = ", ".join(name for name, _ in TABLES.values())
        raise IcscmError(
            f"none of {needed} was found; name the folder of the raw files with --data or the "
            "environment variable ICSCM_DATA (paper/README.md lists them)"
        )
    shortcuts = [*SHORTCUTS]
    if options.quick:
        tables = tables[:1]
        shortcuts = shortcuts[:2]
    tasks = [
        {"seed": options.seed, "method": method, "run": run, "table": title, "shortcut": shortcut}
        for method in METHODS
        for run in range(1 if method in SLOW else options.choose_runs(N_RUNS))
        for title in tables
        for shortcut in shortcuts
        if (run == 0 or shortcut != "clean") and _is_for(method, title, shortcut)
    ]
    run = partial(run_task, data_home=options.data_home)
    return Plan(options.filter(tasks), run, COLUMNS_OUT)


def _is_for(method: str, title: str, shortcut: str) -> bool:
    """Whether a method is run on a table; peers on small tables only, and if installed."""
    if method not in PEERS:
        return True
    # on the others they take minutes a fit
    tables = _SMALL if method == "time-robust forest" else _SMALL_FIRST[:3]
    is_short = title in tables and shortcut in ("clean", "one")
    return is_short and find_spec(PEERS[method]) is not None


@lru_cache(maxsize=len(TABLES))
def _load(title: str, data_home: Path | None) -> RealData:
    return TABLES[title][1](data_home)


def run_task(task: Task, _: int, data_home: Path | None = None) -> Row:
    """One method, tested in each environment left out; all methods get the same shortcuts."""
    data = _load(task["table"], data_home)
    fit_and_predict = METHODS[task["method"]]
    scores = []
    n_used = 0
    seconds = 0.0
    for out in np.unique(data.environments):
        seed = make_seed(task["seed"], task["table"], task["shortcut"], task["run"], out)
        X = plant(data.X, data.y, data.environments, out, task["shortcut"], seed)
        is_out = data.environments == out
        sample = Sample(X, data.y, data.environments, is_out, hot=partial(_encode, X))

        start = perf_counter()
        answer = fit_and_predict(sample)
        seconds += perf_counter() - start
        scores.append(_score(data.y[is_out], answer.probabilities))
        n_used += answer.uses_shortcut

    row: Row = {"environments": len(scores), "used": n_used, "seconds": seconds}
    for measure in MEASURES:
        row[measure] = float(np.mean([score[measure] for score in scores]))
    for measure, column in LISTED.items():
        row[column] = " ".join(f"{score[measure]:.4f}" for score in scores)
    return row


def _score(y: NDArray[np.int64], probabilities: NDArray[np.float64]) -> dict[str, float]:
    """Measures of the predictions at a site left out."""
    from sklearn.metrics import log_loss, roc_auc_score

    calibration = _calibrate(y, probabilities)
    return {
        "auc": float(roc_auc_score(y, probabilities)),
        "error": float(((probabilities > 0.5) != y).mean()),
        "log loss": float(log_loss(y, probabilities, labels=[0, 1])),
        "slope": calibration.slope,
        "intercept": calibration.intercept,
    }


class Calibration(NamedTuple):
    """The slope of the label on the log odds, and the intercept where the slope is 1.

    The slope is NaN where all predictions are the same.
    """

    slope: float
    intercept: float


def _calibrate(y: NDArray[np.int64], probabilities: NDArray[np.float64]) -> Calibration:
    """Calibration by logistic regression of the label on the log odds."""
    log_odds = logit(np.clip(probabilities, 1e-6, 1 - 1e-6))

    def count_too_many(intercept: float) -> float:
        return float(expit(log_odds + intercept).sum() - y.sum())

    intercept = float(brentq(count_too_many, -30, 30))
    if np.ptp(log_odds) < 1e-9:
        return Calibration(slope=np.nan, intercept=intercept)

    def measure_loss(line: NDArray[np.float64]) -> float:
        score = line[0] + line[1] * log_odds
        return float((np.logaddexp(0, score) - y * score).mean())

    line = minimize(measure_loss, [0.0, 1.0], method="BFGS").x
    return Calibration(slope=float(line[1]), intercept=intercept)


def _encode(X: pandas.DataFrame) -> Prepared:
    """A column for each level, those rarer than 1 % pooled; missing numbers below all others."""
    numbers = X.select_dtypes("number")
    return prepare_one_hot(X.assign(**numbers.fillna(numbers.min() - 1.0)), rare_below=0.01)


def summarise(rows: Rows) -> Summary:
    """AUC by method and kind of shortcut, use of shortcuts, errors; and which goals are missed."""
    cells = group_rows(rows, "table")
    captions = {
        "auc": "AUC, mean over the environments left out and over plantings.",
        "used": "Share of the fits that used a planted column.",
        "error": "Share of wrong predictions, likewise.",
        "log loss": "Log loss, likewise.",
    }
    tables = [_make_table(cells, measure, caption) for measure, caption in captions.items()]
    tables.append(_make_calibration(cells))
    legend = "AUC in environments left out: circles clean, dots the kinds of planted shortcuts."
    figure = Figure("transfer", legend, lambda: _draw(cells))
    findings = [text for title, cell in cells.items() for text in _find(title, cell)]
    return Summary(tables, [figure], findings)


def _make_table(cells: dict[str, list[Row]], measure: str, caption: str) -> Table:
    """A measure by table and method, for each kind of shortcut."""
    kinds = list(dict.fromkeys(row["shortcut"] for cell in cells.values() for row in cell))
    if measure == "used":
        kinds = [kind for kind in kinds if kind != "clean"]  # which has none to be used
    lines = []
    for title, cell in cells.items():
        for method, rows_of_method in group_rows(cell, "method").items():
            rows_by_kind = group_rows(rows_of_method, "shortcut")
            values = [_show(rows_by_kind.get(kind, []), measure) for kind in kinds]
            lines.append([title, method, *values])
    name = f"transfer-{measure.replace(' ', '-')}"
    return Table(name, caption, ["table", "method", *kinds], lines)


def _make_calibration(cells: dict[str, list[Row]]) -> Table:
    caption = (
        "Clean: mean AUC and log loss over the environments left out; median, lowest and highest "
        "slope and intercept of calibration."
    )
    lines = []
    for title, cell in cells.items():
        for method, rows_of_method in group_rows(cell, "method").items():
            clean = [row for row in rows_of_method if row["shortcut"] == "clean"]
            if not clean or not clean[0].get("slopes"):
                continue
            row = clean[0]  # a clean table needs no repetition
            means = [f"{float(row[measure]):.3f}" for measure in ("auc", "log loss")]
            calibration = [_describe(row["slopes"]), _describe(row["intercepts"])]
            lines.append([title, method, *means, *calibration])
    header = ["table", "method", "AUC", "log loss", "slope", "intercept"]
    return Table("transfer-calibration", caption, header, lines)


def _describe(values: str) -> str:
    """The median and the range of the values of environments."""
    numbers = np.array(values.split(), dtype=float)
    if np.isnan(numbers).all():
        return "-"
    low, middle, high = np.nanquantile(numbers, [0, 0.5, 1])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def _show(rows: Rows, measure: str) -> str:
    """The mean of a measure or, of fits that used a shortcut, their share in all fits."""
    if not rows:
        return "-"
    if measure != "used":
        return f"{find_mean(rows, measure):.3f}"
    n_used = read_numbers(rows, "used").sum()
    n_fits = read_numbers(rows, "environments").sum()
    return f"{n_used / n_fits:.2f}"


def _find(title: str, cell: Rows) -> Iterator[str]:
    """Each of our learners against its goals, by the numbers."""
    aucs: dict[str, dict[str, float]] = {}  # by method and kind of shortcut
    for (method, kind), rows in group_rows(cell, "method", "shortcut").items():
        aucs.setdefault(method, {})[kind] = find_mean(rows, "auc")

    for ours, (theirs, within) in PAIRS.items():
        our_aucs = aucs.get(ours, {})
        their_aucs = aucs.get(theirs, {})
        if "clean" not in our_aucs or "clean" not in their_aucs:
            continue
        our_clean = our_aucs["clean"]
        their_clean = their_aucs["clean"]
        text = f"{title}, {ours}: clean {our_clean:.3f}, {theirs} {their_clean:.3f}, "
        text += _judge(their_clean - our_clean, within)

        planted = {kind: auc for kind, auc in our_aucs.items() if kind != "clean"}
        if planted:
            worst = min(planted, key=lambda kind: planted[kind])
            text += f"; planted {planted[worst]:.3f} at worst ({worst}), "
            text += _judge(our_clean - planted[worst], FROM_CLEAN)
            their_worst = min(their_aucs.get(kind, 1.0) for kind in planted)
            text += f"; {theirs} then falls to {their_worst:.3f}"
        yield f"{text}."


def _judge(loss: float, within: float) -> str:
    """Whether a goal is reached, to three decimals as they are shown."""
    is_reached = round(loss, 3) <= within
    return f"within {within:g}" if is_reached else f"NOT within {within:g} ({loss:.3f} less)"


def _draw(cells: dict[str, list[Row]]) -> MatplotlibFigure:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(9.5, 6.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).ravel()
    for axes, (title, cell) in zip(panels, cells.items(), strict=False):
        rows_by_method = group_rows(cell, "method")
        for height, rows in enumerate(rows_by_method.values()):
            _draw_method(axes, rows, height)
        axes.set_yticks(range(len(rows_by_method)), labels=list(rows_by_method))
        axes.set(title=title, xlim=(-0.02, 1.0))
        axes.axvline(0.5, color="#d9d5cc", linewidth=1, zorder=0)
        axes.invert_yaxis()
    for axes in panels[len(cells) :]:
        axes.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    handle_of = dict(zip(labels, handles, strict=True))  # each label once
    figure.legend(
        handle_of.values(), handle_of.keys(), loc="outside upper center", ncols=6, frameon=False
    )
    figure.supxlabel("AUC in the environment left out")
    return figure


def _draw_method(axes: Any, rows: Rows, height: int) -> None:
    """Draw the AUCs of a method: a circle for clean tables, a dot for each planting."""
    rows_by_kind = group_rows(rows, "shortcut")
    planted_kinds = [kind for kind in SHORTCUTS if kind != "clean" and kind in rows_by_kind]
    for number, kind in enumerate(planted_kinds):
        aucs = read_numbers(rows_by_kind[kind], "auc")
        # a little apart, or equal ones would hide each other
        heights = np.full(len(aucs), height + 0.12 * (number - 2))
        axes.plot(aucs, heights, ".", color=f"C{number}", label=kind)
    if "clean" in rows_by_kind:
        auc = find_mean(rows_by_kind["clean"], "auc")
        axes.plot(auc, height, "o", color="black", fillstyle="none", label="clean")
