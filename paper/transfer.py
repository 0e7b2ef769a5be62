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
CALIBRATIONS = ("slope", "intercept")
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


# Probabilities in the test rows, and whether a shortcut was used.
Answer = tuple[NDArray[np.float64], bool]


def _predict_rate(sample: Sample) -> Answer:
    return np.full(sample.is_out.sum(), sample.y[~sample.is_out].mean()), False


def _fit_ours(make: Callable[[], Any], sample: Sample) -> Answer:
    out, known = sample.is_out, sample.environments[~sample.is_out]
    learner = make().set_params(n_jobs=1)
    countable = open_memory(
        sample.X[~out],
        sample.y[~out],
        environments=known,
        # a shortcut may look like a copy of the outcome, and must be found out by the learner
        preparation=replace(learner.prepare(), drop_suspicious=False),
    )
    learner.fit_counts(countable)
    used = bool(set(learner.features_used_) & set(COLUMNS))
    return learner.predict_proba(sample.X[out])[:, 1], used


def _fit_sklearn(make: Callable[[], Any], sample: Sample) -> Answer:
    prepared, out = sample.hot(), sample.is_out
    hot = prepared.to_frame().to_numpy(dtype=np.float32)
    learner = make().fit(hot[~out], sample.y[~out])
    last = getattr(learner, "steps", [(None, learner)])[-1][1]
    importances = getattr(last, "feature_importances_", None)
    importances = np.abs(last.coef_[0]) if importances is None else importances
    weights = dict(zip(prepared.columns, importances, strict=True))
    used = any(weights[each] > 0 for each in prepared.find_columns_of(COLUMNS))
    return learner.predict_proba(hot[out])[:, 1], used


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
    models: Any = import_module("time_robust_forest.models")
    prepared, out = sample.hot(), sample.is_out
    periods = np.unique(sample.environments, return_inverse=True)[1]
    hot = prepared.to_frame().assign(period=periods)
    learner = models.TimeForestClassifier(
        n_estimators=10, max_depth=5, min_sample_periods=10, multi=False, random_state=0
    )
    learner.fit(hot[~out].reset_index(drop=True), sample.y[~out])
    used = set(learner.feature_importance().index) & set(prepared.find_columns_of(COLUMNS))
    chance: Any = learner.predict_proba(hot[out].reset_index(drop=True))
    return np.asarray(chance)[:, 1], bool(used)


def _fit_ebm(sample: Sample) -> Answer:
    glassbox: Any = import_module("interpret.glassbox")
    out = sample.is_out
    learner = glassbox.ExplainableBoostingClassifier(random_state=0, n_jobs=1, outer_bags=4)
    learner.fit(sample.X[~out], sample.y[~out])
    weights = dict(zip(learner.term_names_, learner.term_importances(), strict=True))
    used = any(weight > 0 for name, weight in weights.items() if {*name.split(" & ")} & {*COLUMNS})
    return learner.predict_proba(sample.X[out])[:, 1], used


def _make_figs() -> Any:
    return import_module("imodels").FIGSClassifier(max_rules=12)


def _fit_faster_risk(sample: Sample) -> Answer:
    """A score of 12 terms of one-hot columns, numbers cut at their sixths."""
    solver: Any = import_module("fasterrisk.fasterrisk")
    prepared, out = sample.hot(), sample.is_out
    hot, parts, names = prepared.to_frame(), [], []
    for name in hot.columns:
        values = hot[name].to_numpy(dtype=float)
        for cut in np.unique(np.quantile(values[~out], np.arange(1, 6) / 6)):
            above = values > cut
            if 0 < above[~out].mean() < 1:
                parts.append(above)
                names.append(name)
    terms = np.column_stack(parts).astype(float)
    labels = np.where(sample.y == 1, 1, -1)
    search = solver.RiskScoreOptimizer(terms[~out], labels[~out], k=12)
    search.optimize()
    scale, start, points = search.get_models(model_index=0)
    known = {*prepared.find_columns_of(COLUMNS)}
    used = any(name in known for name, each in zip(names, points, strict=True) if each)
    return expit((start + terms[out] @ points) / scale), used


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
        tables, shortcuts = tables[:1], shortcuts[:2]
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
    data, scores, used, seconds = _load(task["table"], data_home), [], 0, 0.0
    for out in np.unique(data.environments):
        parts = task["table"], task["shortcut"], task["run"], out
        X = plant(*data[:3], out, task["shortcut"], make_seed(task["seed"], *parts))
        sample = Sample(X, data.y, data.environments, data.environments == out, partial(_encode, X))
        start = perf_counter()
        chance, uses_shortcut = METHODS[task["method"]](sample)
        seconds += perf_counter() - start
        scores.append(_score(data.y[sample.is_out], chance))
        used += uses_shortcut
    means = {each: float(np.mean([own[each] for own in scores])) for each in MEASURES}
    lists = {name: " ".join(f"{own[each]:.4f}" for own in scores) for each, name in LISTED.items()}
    return {"environments": len(scores), **means, "used": used, "seconds": seconds, **lists}


def _score(y: NDArray[np.int64], chance: NDArray[np.float64]) -> dict[str, float]:
    from sklearn.metrics import log_loss, roc_auc_score

    return {
        "auc": float(roc_auc_score(y, chance)),
        "error": float(((chance > 0.5) != y).mean()),
        "log loss": float(log_loss(y, chance, labels=[0, 1])),
        **dict(zip(CALIBRATIONS, _calibrate(y, chance), strict=True)),
    }


def _calibrate(y: NDArray[np.int64], chance: NDArray[np.float64]) -> tuple[float, float]:
    """The slope of the label on the log odds, and the intercept where the slope is 1."""
    odds = logit(np.clip(chance, 1e-6, 1 - 1e-6))
    shift = brentq(lambda each: expit(odds + each).sum() - y.sum(), -30, 30)
    if np.ptp(odds) < 1e-9:
        return np.nan, float(shift)

    def find_loss(line: NDArray[np.float64]) -> float:
        score = line[0] + line[1] * odds
        return float((np.logaddexp(0, score) - y * score).mean())

    return float(minimize(find_loss, [0.0, 1.0], method="BFGS").x[1]), float(shift)


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
    tables = [_make_table(cells, what, caption) for what, caption in captions.items()]
    tables.append(_make_calibration(cells))
    shown = "AUC in environments left out: circles clean, dots the kinds of planted shortcuts."
    findings = [text for title, cell in cells.items() for text in _find(title, cell)]
    return Summary(tables, [Figure("transfer", shown, lambda: _draw(cells))], findings)


def _make_table(cells: dict[str, list[Row]], what: str, caption: str) -> Table:
    shortcuts = list(dict.fromkeys(row["shortcut"] for cell in cells.values() for row in cell))
    columns = [each for each in shortcuts if what != "used" or each != "clean"]
    lines = []
    for title, cell in cells.items():
        for method, own in group_rows(cell, "method").items():
            by_shortcut = group_rows(own, "shortcut")
            shown = [_show(by_shortcut.get(shortcut, []), what) for shortcut in columns]
            lines.append([title, method, *shown])
    name = f"transfer-{what.replace(' ', '-')}"
    return Table(name, caption, ["table", "method", *columns], lines)


def _make_calibration(cells: dict[str, list[Row]]) -> Table:
    caption = (
        "Clean: mean AUC and log loss over the environments left out; median, lowest and highest "
        "slope and intercept of calibration."
    )
    lines = []
    for title, cell in cells.items():
        for method, own in group_rows(cell, "method").items():
            row = next((each for each in own if each["shortcut"] == "clean"), None)
            if row is not None and row.get("slopes"):
                shown = [f"{float(row[each]):.3f}" for each in ("auc", "log loss")]
                lines.append(
                    [title, method, *shown, *map(_describe, (row["slopes"], row["intercepts"]))]
                )
    header = ["table", "method", "AUC", "log loss", "slope", "intercept"]
    return Table("transfer-calibration", caption, header, lines)


def _describe(values: str) -> str:
    """The median and the range of the values of environments."""
    numbers = np.array(values.split(), dtype=float)
    if np.isnan(numbers).all():
        return "-"
    low, middle, high = np.nanquantile(numbers, [0, 0.5, 1])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def _show(rows: Rows, what: str) -> str:
    if not rows:
        return "-"
    if what != "used":
        return f"{find_mean(rows, what):.3f}"
    return f"{read_numbers(rows, 'used').sum() / read_numbers(rows, 'environments').sum():.2f}"


def _find(title: str, cell: Rows) -> Iterator[str]:
    """Each of ours against its goals, by the numbers."""
    found = {
        key: find_mean(own, "auc") for key, own in group_rows(cell, "method", "shortcut").items()
    }
    for ours, (theirs, within) in PAIRS.items():
        if not {(ours, "clean"), (theirs, "clean")} <= found.keys():
            continue
        clean, other = found[ours, "clean"], found[theirs, "clean"]
        text = f"{title}, {ours}: clean {clean:.3f}, {theirs} {other:.3f}, "
        text += _judge(other - clean, within)
        planted = {h: auc for (method, h), auc in found.items() if method == ours and h != "clean"}
        if planted:
            worst = min(planted, key=lambda shortcut: planted[shortcut])
            text += f"; planted {planted[worst]:.3f} at worst ({worst}), "
            text += _judge(clean - planted[worst], FROM_CLEAN)
            broken = min(found.get((theirs, shortcut), 1.0) for shortcut in planted)
            text += f"; {theirs} then falls to {broken:.3f}"
        yield f"{text}."


def _judge(loss: float, within: float) -> str:
    """Whether a goal is reached, to three decimals as they are shown."""
    is_reached = round(loss, 3) <= within
    return f"within {within:g}" if is_reached else f"NOT within {within:g} ({loss:.3f} less)"


def _draw(cells: dict[str, list[Row]]) -> MatplotlibFigure:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(9.5, 6.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).ravel()
    kinds = [shortcut for shortcut in SHORTCUTS if shortcut != "clean"]
    for axes, (title, cell) in zip(panels, cells.items(), strict=False):
        methods = group_rows(cell, "method")
        for place, own in enumerate(methods.values()):
            by_shortcut = group_rows(own, "shortcut")
            for i, shortcut in enumerate(kind for kind in kinds if kind in by_shortcut):
                aucs = read_numbers(by_shortcut[shortcut], "auc")
                # a little apart, or equal ones would hide each other
                heights = np.full(len(aucs), place + 0.12 * (i - 2))
                axes.plot(aucs, heights, ".", color=f"C{i}", label=shortcut)
            if "clean" in by_shortcut:
                auc = find_mean(by_shortcut["clean"], "auc")
                axes.plot(auc, place, "o", color="black", fillstyle="none", label="clean")
        axes.set_yticks(range(len(methods)), labels=list(methods))
        axes.set(title=title, xlim=(-0.02, 1.0))
        axes.axvline(0.5, color="#d9d5cc", linewidth=1, zorder=0)
        axes.invert_yaxis()
    for axes in panels[len(cells) :]:
        axes.set_axis_off()
    named = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=6, frameon=False)
    figure.supxlabel("AUC in the environment left out")
    return figure
