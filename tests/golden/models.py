"""The cases of the zoo after fitting: their results, reports and exports."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from sklearn.base import clone

import icscm
from golden.tables import Table
from golden.writing import Golden, drop_unknown
from golden.zoo import CASES
from icscm import leave_one_environment_out, stability_selection
from icscm.export import export_model
from icscm.validation.path import alpha_path, tolerance_path

# Rows whose predictions are held.
N_PREDICTED = 30
# What users read of a fitted learner; not every learner has all of them.
ATTRIBUTES = (
    "alpha_",
    "tolerance_",
    "dropped_columns_",
    "feature_types_",
    "features_used_",
    "environments_",
    "rule_importances_",
    "equivalent_rules_",
    "feature_importances_",
    "out_of_bag_",
    "shape_",
)
# What a trace says of the search as a whole, and of each scan of all candidates.
SEARCH_FACTS = (
    "stop_reason",
    "invariance",
    "alpha",
    "tolerance",
    "heterogeneity_share",
    "lone_environment",
    "notes",
    "untested",
    "pruned",
    "discarded",
    "verdicts",
    "screening",
)
SCAN_FACTS = ("path", "n_candidates", "n_rejected", "end")
TRACE_TABLES = ("steps", "rejected", "columns", "pruning", "sets", "tried")
# Some models in each language; `tests/export` runs the exports of many more.
EXPORTS = {
    "effect_tree_missing.sql": "a tree on categories and missing values in SQL",
    "forest.sql": "a mean over trees in SQL",
    "score.sql": "a sum of points in SQL",
    "missing.py.txt": "rules on categories and missing values in Python",
    "missing.R": "the same rules in R",
    "missing.json": "the same rules as JSON, for programs in other languages",
    "missing.txt": "the same rules in words",
}
# Ruff and pytest would take a file that ends in .py for theirs.
LANGUAGES = {"sql": "sql", "py.txt": "python", "R": "r", "json": "json", "txt": "text"}


@dataclass(frozen=True)
class FittedCase:
    """A case's learner after `fit`, its table, and the warnings of `fit`."""

    learner: Any
    table: Table
    warnings: list[str]


def save_and_load(learner: Any) -> Any:
    """Return the model as it is read from the file that the learner saves."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        learner.save(path)
        return icscm.load(path)


@contextmanager
def ignore_warnings() -> Iterator[None]:
    """Leave out warnings where another file holds them."""
    with warnings.catch_warnings(action="ignore"):
        yield


@cache
def fit_case(name: str) -> FittedCase:
    """Fit a case of the zoo, once for all that is held of it."""
    case = CASES[name]
    table = case.make_table()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = clone(case.estimator).fit(table.X, table.y, environments=table.environments)
    messages = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return FittedCase(learner, table, messages)


def describe_result(name: str) -> dict[str, Any]:
    """Return what fitting a case gave: the model, how it was found, and what it predicts."""
    fitted = fit_case(name)
    learner = fitted.learner
    first_rows = fitted.table.X[:N_PREDICTED]
    result = {
        "why": CASES[name].why,
        "warnings": fitted.warnings,
        "model": describe_model(fitted),
        "fitted": {key: getattr(learner, key) for key in ATTRIBUTES if hasattr(learner, key)},
        "trace": describe_trace(name),
        "probabilities": learner.predict_proba(first_rows)[:, 1],
        "predictions": learner.predict(first_rows),
    }
    if not name.startswith("forest"):
        result["leaves"] = learner.describe_leaves()
    return result


def describe_model(fitted: FittedCase) -> dict[str, Any]:
    """Return the content of the saved file, of its settings only those that were chosen.

    A new parameter of a learner would otherwise change the files of all cases.
    """
    content = json.loads(save_and_load(fitted.learner).to_json())
    defaults = type(fitted.learner)().get_params()
    settings = content["settings"]
    content["settings"] = {
        key: value for key, value in settings.items() if value != defaults.get(key)
    }
    return content


def describe_trace(name: str) -> dict[str, Any]:
    """Return how the model was found: facts on the search, each scan, and tables of candidates."""
    trace = fit_case(name).learner.trace_
    plain = trace.to_dict()
    description = {
        **{key: plain[key] for key in SEARCH_FACTS},
        "scans": [{key: scan[key] for key in SCAN_FACTS} for scan in plain["nodes"]],
        **{part: fold_counts(trace.to_frame(part)) for part in TRACE_TABLES},
    }
    return drop_empty(description)


def drop_empty(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without the fields that do not apply to it."""
    return {key: value for key, value in record.items() if value not in (None, [], {})}


def fold_counts(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a trace's table, with a list of counts in place of many columns.

    The columns "covered yes in p1", "covered yes in p2", ... become "covered yes": [41, 25, ...].
    """
    rows = []
    for row in table.to_dict("records"):
        folded: dict[str, Any] = {}
        for name, value in drop_unknown(row).items():
            match = re.fullmatch(r"((?:un)?covered .+) in .+", str(name))
            if match is None:
                folded[name] = value
            else:
                folded.setdefault(match[1], []).append(value)
        rows.append(folded)
    return rows


@cache
def make_report(name: str) -> Any:
    """Make the report of a case, with the parts that the case asks for."""
    case, fitted = CASES[name], fit_case(name)
    table = fitted.table
    rows = {"X": table.X, "y": table.y, "environments": table.environments}
    options: dict[str, Any] = {}
    if case.n_subsamples:
        options["stability"] = resample(case.estimator, fitted.table, case.n_subsamples, seed=0)
    with ignore_warnings():
        if case.is_validated:
            options["validation"] = leave_one_environment_out(fitted.learner, **rows)
        if case.alphas is not None:
            options["path"] = alpha_path(fitted.learner, **rows, alphas=case.alphas)
        if case.tolerances is not None:
            options["path"] = tolerance_path(
                fitted.learner, **rows, tolerances=case.tolerances, leave_one_out=False
            )
        return fitted.learner.report(data_name="zoo.csv", **options)


def describe_report(name: str) -> dict[str, Any]:
    """Return the content of a report, of the settings only those that were chosen."""
    content = make_report(name).to_dict()
    task = content["task"]
    task["settings"] = [setting for setting in task["settings"] if not setting["is_default"]]
    return {"why": CASES[name].why_report, **content}


def resample(estimator: Any, table: Table, n_subsamples: int, seed: int) -> Any:
    """Learn from random halves of a table."""
    with ignore_warnings():
        return stability_selection(
            estimator,
            table.X,
            table.y,
            environments=table.environments,
            n_resamples=n_subsamples,
            random_state=seed,
        )


def export(file_name: str) -> Any:
    """Export the model of a case to the language of the file."""
    name, ending = file_name.split(".", 1)
    text = export_model(save_and_load(fit_case(name).learner), LANGUAGES[ending])
    return json.loads(text) if ending == "json" else text


def list_models() -> dict[str, Golden]:
    """Return the result of each case, and its report where the case gives a reason for it."""
    goldens: dict[str, Golden] = {}
    for name, case in CASES.items():
        goldens[f"models/{name}.json"] = Golden(case.why, partial(describe_result, name))
        if case.why_report is not None:
            make = partial(describe_report, name)
            goldens[f"reports/{name}.json"] = Golden(case.why_report, make)
    return goldens


def list_exports() -> dict[str, Golden]:
    """Return the exports, in files of their languages."""
    return {f"exports/{name}": Golden(why, partial(export, name)) for name, why in EXPORTS.items()}
