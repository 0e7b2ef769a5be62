"""A case in the installed version of the package: a fit, a study or a command.

What is called by name is on this page; names of estimators, options and commands are those of
`names.py`, and results are read by `reading.py`.
"""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from versions import reading
from versions.cases import Case, Command, Fit, Study
from versions.names import (
    IS_BASE,
    REMOVED_OPTIONS,
    GoneError,
    find_candidates,
    find_version,
    load_name,
    translate,
    translate_command,
)
from versions.tables import ENVIRONMENT, GROUP, OUTCOME, Table, convert_columns, load_table

Facts = dict[str, Any]
LANGUAGES = ("sql", "python", "r", "json", "text")
N_EXPORTED_ROWS = 20  # that an exported program predicts
N_PARTITIONS = 3  # of Dask collections, and files of a folder
# Keys of reports whose values change from run to run, or with a release.
VOLATILE = {"seconds", "fit_seconds", "predict_seconds", "version", "schema"}


class RateDifferenceTest:
    """A user's own test of independence: its p-value falls with the largest difference of rates."""

    def compute_p_values(self, tables: np.ndarray) -> np.ndarray:
        sizes = tables.sum(axis=1)
        rates = np.where(sizes > 0, tables[:, 1] / np.maximum(sizes, 1), np.nan)
        known = np.where(np.isnan(rates), np.nanmean(rates, axis=1, keepdims=True), rates)
        gaps = np.nan_to_num(known.max(axis=1) - known.min(axis=1))
        return np.exp(-8.0 * gaps)


# Values of options that are no plain values; a case has their names.
OBJECTS: dict[str, Callable[[], Any]] = {
    "@rate difference": RateDifferenceTest,
    "@logistic": lambda: LogisticRegression(max_iter=300),
    "@tree": lambda: DecisionTreeClassifier(max_leaf_nodes=16, random_state=0),
    "@random forest": lambda: RandomForestClassifier(6, max_leaf_nodes=16, random_state=0),
    "@three blocks": lambda: KFold(3),
}


def run_case(case: Case) -> Facts:
    """The facts of a case; `error` is the only one where it raises."""
    run: Any = {Fit: run_fit, Study: run_study, Command: run_command}[type(case)]
    with warnings.catch_warnings(record=True) as caught, TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        try:
            facts = run(case, Path(folder))
        except GoneError as gone:
            return {"gone": str(gone)}
        except Exception as error:  # the errors of both versions are compared
            facts = {"error": {"kind": type(error).__name__, "text": str(error)}}
        facts["warnings"] = {
            "kinds": [warning.category.__name__ for warning in caught],
            "texts": [str(warning.message) for warning in caught],
        }
        return mask(facts, folder)


def mask(value: Any, folder: str) -> Any:
    """Without what changes from run to run, or with a release."""
    if isinstance(value, dict):
        return {key: None if key in VOLATILE else mask(part, folder) for key, part in value.items()}
    if isinstance(value, list):
        return [mask(part, folder) for part in value]
    if not isinstance(value, str):
        return value
    text = value.replace(folder, "FOLDER").replace(load_name("icscm:__version__"), "VERSION")
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)? seconds?", "SOME seconds", text)


def make_estimator(kind: str, options: dict[str, Any], n_rows: int | None = None) -> Any:
    """An estimator of ours, or a learner of scikit-learn by its name in `OBJECTS`."""
    if kind in OBJECTS:
        return OBJECTS[kind]()
    estimator, options = translate(kind, options, find_version(), n_rows)
    return estimator(**{name: make_value(value) for name, value in options.items()})


def make_value(value: Any) -> Any:
    is_named = isinstance(value, str) and value.startswith("@")
    return OBJECTS[value]() if is_named else value


# --- fits -----------------------------------------------------------------------------------------


def run_fit(case: Fit, folder: Path) -> Facts:
    """Fit an estimator on rows that lie where the case says, and read what it found."""
    table = load_table(case.table)
    repeated = repeat_rows(case, table)
    estimator = make_estimator(case.kind, case.options, len(repeated.columns))
    columns = convert_columns(table.columns, case.form)
    more = choose_rows(case, repeated)
    if case.source == "memory":
        fitted_columns = convert_columns(repeated.columns, case.form)
        environments: Any = repeated.environments
        if case.names_environments:
            columns = convert_columns(name_environments(table), case.form)
            fitted_columns = convert_columns(name_environments(repeated), case.form)
            environments = ENVIRONMENT
        estimator.fit(fitted_columns, repeated.outcome, environments=environments, **more)
    else:
        SOURCES[case.source](estimator, table, folder, "groups" in case.rows)

    facts = reading.read_result(case.kind, estimator, columns)
    rows = get_rows(table) | more | {"X": columns}
    facts |= reading.read_views(case.kind, estimator, case.views, rows)
    if "exports" in case.views:
        facts["exports"] = export(estimator, table, folder)
    if "recalibration" in case.views:
        facts["recalibrated"] = recalibrate(estimator, table)
    return facts


def choose_rows(case: Fit | Study, table: Table) -> dict[str, Any]:
    """What else there is for each row, as arguments of `fit`."""
    every = {
        "groups": table.groups,
        "sample_weight": table.weights,
        "frequency_weight": table.repeats,
    }
    names = [name for name in case.rows if IS_BASE or name != "frequency_weight"]
    return {name: every[name] for name in names}


def repeat_rows(case: Fit, table: Table) -> Table:
    """A table in which each row occurs as often as it counts; 0.3 took the numbers instead."""
    if IS_BASE or "frequency_weight" not in case.rows:
        return table
    numbers = np.repeat(np.arange(len(table.columns)), table.repeats)

    def take(part: Any) -> Any:
        return None if part is None else part.iloc[numbers].reset_index(drop=True)

    return replace(
        table,
        columns=take(table.columns),
        outcome=take(table.outcome),
        environments=take(table.environments),
        groups=take(table.groups),
    )


def name_environments(table: Table) -> pd.DataFrame:
    """The columns with that of the environments among them."""
    return table.columns.assign(**{ENVIRONMENT: table.environments})


def fit_csv(estimator: Any, table: Table, folder: Path, has_groups: bool) -> None:
    table.file.to_csv(folder / "table.csv", index=False)
    groups = GROUP if has_groups else None
    estimator.fit_dataset(folder / "table.csv", OUTCOME, environments=ENVIRONMENT, groups=groups)


def fit_parquet(estimator: Any, table: Table, folder: Path, has_groups: bool) -> None:
    table.file.to_parquet(folder / "table.parquet", row_group_size=400)
    groups = GROUP if has_groups else None
    estimator.fit_dataset(
        folder / "table.parquet", OUTCOME, environments=ENVIRONMENT, groups=groups
    )


def fit_folder(estimator: Any, table: Table, folder: Path, has_groups: bool) -> None:
    parts = folder / "parts"
    parts.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table.outcome)), N_PARTITIONS)):
        table.file.iloc[rows].to_parquet(parts / f"part{number}.parquet")
    groups = GROUP if has_groups else None
    names = list(table.columns.columns)
    estimator.fit_dataset(parts, OUTCOME, environments=ENVIRONMENT, groups=groups, columns=names)


def fit_dask(estimator: Any, table: Table, folder: Path, has_groups: bool) -> None:
    import dask
    from dask.dataframe import from_pandas

    columns, outcome, environments = (
        from_pandas(part, npartitions=N_PARTITIONS)
        for part in (table.columns, table.outcome, table.environments)
    )
    with dask.config.set(scheduler="synchronous"):
        estimator.fit(columns, outcome, environments=environments)


def fit_bits(estimator: Any, table: Table, folder: Path, has_groups: bool) -> None:
    """Genomes packed to bits, from a matrix."""
    from icscm.sources.bits.packing import pack_matrix

    names, samples = list(table.columns.columns), [f"s{i}" for i in range(len(table.outcome))]
    pack_matrix(table.columns.to_numpy(), folder / "genes.bits", names=names, samples=samples)
    fit_genomes(estimator, table, folder / "genes.bits", has_groups)


def fit_genes(estimator: Any, table: Table, folder: Path, has_groups: bool) -> None:
    """Genomes packed to bits, from a text file of genes in lines."""
    from icscm.sources.bits.packing import pack_table

    lines = table.columns.T.set_axis([f"s{i}" for i in range(len(table.outcome))], axis=1)
    lines.to_csv(folder / "genes.Rtab", sep="\t", index_label="Gene")
    pack_table(folder / "genes.Rtab", folder / "genes.bits")
    fit_genomes(estimator, table, folder / "genes.bits", has_groups)


def fit_genomes(estimator: Any, table: Table, path: Path, has_groups: bool) -> None:
    from icscm.sources import open_bits

    labels = table.file[[OUTCOME, ENVIRONMENT, GROUP]]
    labels.insert(0, "sample", [f"s{i}" for i in range(len(labels))])
    groups = GROUP if has_groups else None
    config = estimator.prepare()
    countable = open_bits(
        path, labels, OUTCOME, environments=ENVIRONMENT, groups=groups, preparation=config
    )
    estimator.fit_counts(countable)


def fit_federation(estimator: Any, table: Table, folder: Path, has_groups: bool) -> None:
    """Every environment is a site that keeps its rows and returns counts."""
    from icscm.sources.sites import LocalSite, make_agreement, open_sites

    columns = table.columns
    cuts = {}
    for name in columns:
        values = columns[name].dropna()
        is_number = pd.api.types.is_numeric_dtype(values) and values.dtype != bool
        cuts[name] = np.unique(values)[:-1][::3].tolist() if is_number else sorted(set(values))
    names = sorted(set(table.environments))
    agreement = make_agreement(
        cuts,
        classes=tuple(sorted(set(table.outcome))),
        environments=names,
        missing=[name for name in columns if columns[name].isna().any()],
    )
    sites = []
    for name in names:
        rows = (table.environments == name).to_numpy()
        sites.append(
            LocalSite(columns[rows], table.outcome[rows], environments=name, agreement=agreement)
        )
    estimator.fit_counts(open_sites(sites, agreement))


SOURCES: dict[str, Callable[..., None]] = {
    "csv": fit_csv,
    "parquet": fit_parquet,
    "folder": fit_folder,
    "dask": fit_dask,
    "bits": fit_bits,
    "genes": fit_genes,
    "sites": fit_federation,
}


def export(estimator: Any, table: Table, folder: Path) -> Facts:
    """The model saved, loaded and in other languages; what the exported program predicts."""
    export_model, load = load_name("icscm.export:export_model"), load_name("icscm:load")
    estimator.save(folder / "model.json")
    saved = load(folder / "model.json")
    texts = {language: export_model(saved, language) for language in LANGUAGES}
    program: Facts = {}
    exec(compile(texts["python"], "model.py", "exec"), program)
    rows = table.columns.head(N_EXPORTED_ROWS).astype(object).to_dict("records")
    decisions = [program["predict"](row) for row in rows]
    file = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    for name in (*REMOVED_OPTIONS, "criterion", "margin"):
        file["settings"].pop(name, None)
    return {
        "file": file,
        "texts": {language: text.splitlines() for language, text in texts.items()},
        "program": reading.make_plain([decision[:2] for decision in decisions]),
        "reasons": [decision[2] for decision in decisions],
        "loaded": reading.make_plain(saved.predict_proba(table.columns)[: reading.N_SHOWN, 1]),
    }


def recalibrate(estimator: Any, table: Table) -> Facts:
    """The model moved to a site: by its base rate, and by labelled rows."""
    by_rate = estimator.recalibrate(prevalence=0.2)
    by_rows = estimator.recalibrate(table.columns[::3], table.outcome[::3])
    return {
        "by_rate": reading.read_model(by_rate.model),
        "by_rows": reading.read_model(by_rows.model),
    }


# --- studies --------------------------------------------------------------------------------------


def run_study(case: Study, folder: Path) -> Facts:
    """A study of a learner on a table; most return a dict of plain values."""
    table = load_table(case.table)
    estimator = make_estimator(case.kind, case.options) if case.kind else None
    arguments = {name: make_value(value) for name, value in case.arguments.items()}
    arguments |= choose_rows(case, table)
    found = STUDIES[case.study](estimator, table, case, arguments)
    return reading.split_texts(reading.make_plain(found))


def get_rows(table: Table) -> Facts:
    """The rows as arguments of any function that takes data."""
    return {"X": table.columns, "y": table.outcome, "environments": table.environments}


def check_environments(_: Any, table: Table, case: Study, arguments: Facts) -> Any:
    study = load_name("icscm:check_environments")
    return study(**get_rows(table), **arguments).to_dict()


def leave_out(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    study = load_name("icscm:leave_one_environment_out")
    return study(estimator, **get_rows(table), **arguments).to_dict()


def evaluate(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    """Fit on one table, evaluate on another."""
    fit_learner(estimator, table, case)
    new = load_table(case.new_table)
    study = load_name("icscm:evaluate")
    return study(estimator, **get_rows(new), **arguments).to_dict()


def fit_learner(estimator: Any, table: Table, case: Study) -> None:
    """Fit a learner, with environments unless it is one of scikit-learn."""
    rows = get_rows(table)
    if case.kind in OBJECTS:
        del rows["environments"]
    estimator.fit(**rows)


def compare(_: Any, table: Table, case: Study, arguments: Facts) -> Any:
    candidates = find_candidates(arguments["candidates"])
    arguments = arguments | {"candidates": candidates}
    return load_name("icscm:compare")(**get_rows(table), **arguments).to_dict()


def select_stable(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    study = load_name("icscm:stability_selection")
    found = study(estimator, **get_rows(table), **arguments)
    numbers = {"mean_columns": found.mean_features, "error_bound": found.error_bound}
    return found.describe() | numbers | {"stable": found.stable_features}


def follow_tolerance(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    place = "icscm" if IS_BASE else "icscm.validation.path"
    study = load_name(f"{place}:tolerance_path")
    return study(estimator, **get_rows(table), **arguments).describe_points()


def follow_screen(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    if IS_BASE:
        return estimator.tolerance_path(**get_rows(table), **arguments).describe_points()
    arguments = {"leave_one_out": False} | arguments
    study = load_name("icscm.validation.path:tolerance_path")
    return study(estimator, **get_rows(table), **arguments).describe_points()


def permute(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    fit_learner(estimator, table, case)
    place = "icscm" if IS_BASE else "icscm.validation.importances"
    study = load_name(f"{place}:permutation_importance")
    found = study(estimator, **get_rows(table), **arguments)
    return {"pooled": found.to_frame(), "by_environment": found.to_frame("environments")}


def choose_threshold(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    found = load_name("icscm:choose_threshold")(estimator, **get_rows(table), **arguments)
    return {"threshold": float(found), "reached": vars(found)}


def validate_screen(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    return load_name("icscm:validate_screen")(estimator, **get_rows(table), **arguments).to_dict()


def search_grid(estimator: Any, table: Table, case: Study, arguments: Facts) -> Any:
    study = load_name("icscm.studies.tuning:grid_search")
    found = study(estimator, **get_rows(table), **arguments)
    facts = {"tried": found.tried, "scores": found.scores, "best": found.best}
    return facts | {"baseline": found.baseline, "n_folds": found.n_folds}


STUDIES: dict[str, Callable[..., Any]] = {
    "check_environments": check_environments,
    "leave_one_environment_out": leave_out,
    "evaluate": evaluate,
    "compare": compare,
    "stability_selection": select_stable,
    "tolerance_path": follow_tolerance,
    "screen_path": follow_screen,
    "permutation_importance": permute,
    "choose_threshold": choose_threshold,
    "validate_screen": validate_screen,
    "grid_search": search_grid,
}


# --- commands -------------------------------------------------------------------------------------


def run_command(case: Command, folder: Path) -> Facts:
    """Commands one after the other in a folder with the tables as files; what they write."""
    command_line = load_name("icscm.cli:main")
    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"})
    facts: Facts = {"steps": [], "files": {}}
    with runner.isolated_filesystem(folder) as home:
        for name in case.tables:
            load_table(name).file.to_csv(f"{name}.csv", index=False)
        for step in case.steps:
            arguments = translate_command(shlex.split(step), find_version())
            result = runner.invoke(command_line, arguments)
            facts["steps"].append(read_step(result, home))
        for name in case.reads:
            facts["files"][name] = read_text(Path(name).read_text(encoding="utf-8"))
    return facts


def read_step(result: Any, home: str) -> Facts:
    """How a command ended, and what it printed."""
    printed, complaints = (text.replace(home, "FOLDER") for text in (result.stdout, result.stderr))
    facts = {"status": result.exit_code, **read_text(printed), "stderr": complaints.splitlines()}
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        facts["raised"] = repr(result.exception)
    return facts


def read_text(text: str) -> Facts:
    """A text that is JSON as numbers and texts, any other as lines."""
    try:
        return reading.split_texts(json.loads(text))
    except json.JSONDecodeError:
        return {"lines": text.splitlines()}
