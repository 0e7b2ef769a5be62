"""What is held of each model of the zoo, and of each study: functions that return text.

The name of an artefact is how its file ends. Only public names are used.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from click.testing import CliRunner
from drawn import describe_figure, list_svg
from sklearn.base import clone
from zoo import (
    ALPHAS,
    CASES,
    TOLERANCES,
    Case,
    Table,
    make_admissions,
    make_many,
    make_noise,
    make_sites,
)
from zoo import resample as learn_halves

import icscm
from icscm import (
    ICSCMClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    compare,
    evaluate,
    leave_one_environment_out,
    stability_selection,
    tolerance_path,
)
from icscm.cli import main
from icscm.datasets import make_hospitals
from icscm.export import export_model
from icscm.report.texts import write_text
from icscm.search.records import STOP_REASONS, PruningOutcome
from icscm.studies.checkup import check_environments
from icscm.studies.tuning import grid_search

mpl.use("agg")

# The parts of a trace, of rules and of trees.
RULE_PARTS = ("steps", "rejected", "pruning", "sets")
TREE_PARTS = ("splits", "rejected", "tried")


class Fitted:
    """A case, fitted once; what it warned of is kept."""

    def __init__(self, case: Case) -> None:
        self.case, self.table = case, case.make()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X, y, environments = self.table.samples
            self.learner = clone(case.estimator).fit(X, y, environments=environments)
        self.warnings = [f"{each.category.__name__}: {each.message}" for each in caught]

    @property
    def saved(self) -> Any:
        with TemporaryDirectory() as folder:
            self.learner.save(Path(folder) / "model.json")
            return icscm.load(Path(folder) / "model.json")


@cache
def fit(name: str) -> Fitted:
    return Fitted(CASES[name])


@cache
def make_report(name: str) -> Any:
    fitted = fit(name)
    case, table = fitted.case, fitted.table
    options: dict[str, Any] = {"data_name": "zoo.csv"}
    samples: tuple[Any, ...] = ()
    if table.environments is not None and case.follows_path and not case.is_forest:
        samples = table.samples
        options |= {"tolerances": TOLERANCES} if case.is_tree else {"alphas": ALPHAS}
    if case.n_halves is not None:
        options["stability"] = learn_halves(case, table)
    return fitted.learner.report(*samples, **options)


def write_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def write_frame(frame: pd.DataFrame) -> str:
    return frame.to_csv(float_format="%.9g", lineterminator="\n")


def mask_text(text: str) -> str:
    """Without what changes from run to run, or with a release."""
    text = re.sub(r"\d+(\.\d+)?(e[-+]?\d+)? seconds?", "SOME seconds", text)
    return text.replace(icscm.__version__, "VERSION")


class _VisibleText(HTMLParser):
    """The text of a page, a line for each piece; neither styles nor scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self.hidden and data.strip():
            self.pieces.append(" ".join(data.split()))


def strip_tags(page: str) -> str:
    reader = _VisibleText()
    reader.feed(page)
    return "\n".join(reader.pieces) + "\n"


def run(*arguments: str, files: dict[str, str], gives: str | None = None) -> str:
    """What a command prints at 80 columns, in a folder with these files; or a file it writes."""
    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"})
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        with runner.isolated_filesystem(folder):
            for name, text in files.items():
                Path(name).write_text(text, encoding="utf-8")
            done = runner.invoke(main, arguments)
            given = gives and done.exit_code == 0 and Path(gives).read_text(encoding="utf-8")
    assert done.exit_code == 0, done.output
    return given or re.sub(r" +$", "", done.stdout, flags=re.MULTILINE)


def name_columns(table: Table) -> list[str]:
    places = [] if table.environments is None else ["--environment", str(table.environments.name)]
    return ["--target", str(table.y.name), *places]


def write_table(table: Table) -> str:
    return table.frame.to_csv(index=False, lineterminator="\n")


def hold_terminal(name: str) -> str:
    """What `icscm fit` prints, given the same table and settings."""
    case, table = CASES[name], fit(name).table
    halves = [] if case.n_halves is None else ["--stability", str(case.n_halves)]
    asks = [*name_columns(table), *case.asks.split(), *halves]
    if getattr(case.estimator, "model_type", "") == "conjunction":  # the command's own is auto
        asks += ["--model-type", "conjunction"]
    return run("fit", "zoo.csv", "-q", *asks, files={"zoo.csv": write_table(table)})


def hold_show(name: str) -> str:
    return run("show", "model.json", files={"model.json": fit(name).saved.to_json()})


def hold_show_all(name: str) -> str:
    return run("show", "model.json", "--all", files={"model.json": fit(name).saved.to_json()})


def hold_printed(name: str) -> str:
    """The model, its trace and what fitting it warned of."""
    fitted = fit(name)
    learner = fitted.learner
    parts = [str(learner.model_), repr(learner.model_), str(learner.trace_), *fitted.warnings]
    parts += [str(learner.verdicts_)] if hasattr(learner, "verdicts_") else []
    return "\n\n".join(parts) + "\n"


def hold_trace(name: str) -> str:
    """Every part of the trace as a table."""
    fitted = fit(name)
    parts = TREE_PARTS if fitted.case.is_tree or fitted.case.is_forest else RULE_PARTS
    trace = fitted.learner.trace_
    return "\n".join(f"{part}\n{write_frame(trace.to_frame(part))}" for part in parts)


def hold_findings(name: str) -> str:
    """Fitted attributes that users read."""
    learner, found = fit(name).learner, {}
    for each in ("features_used_", "alpha_", "tolerance_", "dropped_columns_", "feature_types_"):
        if hasattr(learner, each):
            found[each] = getattr(learner, each)
    found["rules"] = [str(rule) for rule in getattr(learner, "rules_", ())]
    found["environments"] = [str(each) for each in learner.environments_ or ()]
    if hasattr(learner, "rule_importances_"):
        found["importances"] = [float(each) for each in learner.rule_importances_]
        found["equivalent"] = [[*map(str, each)] for each in learner.equivalent_rules_]
    table = fit(name).table
    found["chances"] = learner.predict_proba(table.X[:40])[:, 1].tolist()
    found["predictions"] = [str(each) for each in learner.predict(table.X[:40])]
    return write_json(found)


@cache
def read_figure(draw: Callable[[], Any]) -> tuple[str, str]:
    """What is written in a figure, and all that is drawn in it."""
    from matplotlib import pyplot
    from matplotlib.text import Text

    figure = draw()
    drawn = describe_figure(figure)
    texts = [each.get_text() for each in figure.findobj(Text)]
    pyplot.close(figure)
    return "\n---\n".join(text for text in texts if text.strip()) + "\n", drawn


@cache
def draw_case(name: str) -> Callable[[], Any]:
    return partial(fit(name).learner.plot)


def draw_within_axes() -> Any:
    """The figure of a tree scaled down to axes of the caller's."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(4, 2))
    return fit("effect_tree").learner.plot(axes) and figure


def draw_by(order: str) -> Any:
    return fit("many_environments").learner.plot(order=order)


def draw_words() -> Any:
    """A tree with so many leaves that each is described in words."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((4_000, 6)).round(2)).add_prefix("x")
    y = (np.sin(9 * X).sum(axis=1) + rng.normal(size=len(X)) > 1).astype(int)
    learner = InvariantTreeClassifier(tolerance=None, max_leaves=42, min_samples_leaf=5)
    with warnings.catch_warnings(action="ignore"):
        return learner.fit(X, y).plot()


Hold = Callable[[str], str]


def hold_texts(name: str) -> str:
    return read_figure(draw_case(name))[0]


def hold_drawn(name: str) -> str:
    return read_figure(draw_case(name))[1]


def hold_svg(name: str) -> str:
    return list_svg(make_report(name).to_html())


OF_ALL: dict[str, Hold] = {
    "printed.txt": hold_printed,
    "terminal.txt": hold_terminal,
    "show.txt": hold_show,
    "trace.csv": hold_trace,
    "findings.json": hold_findings,
    "model.json": lambda name: fit(name).saved.to_json(),
    "export.sql": lambda name: export_model(fit(name).saved, "sql"),
    "export.py.txt": lambda name: export_model(fit(name).saved, "python"),
    "export.txt": lambda name: export_model(fit(name).saved, "text"),
    "export.json": lambda name: export_model(fit(name).saved, "json"),
}
OF_REPORTED: dict[str, Hold] = {
    "report.json": lambda name: write_json(make_report(name).to_dict()),
    "report.md": lambda name: make_report(name).to_markdown(),
    "report.html.txt": lambda name: strip_tags(make_report(name).to_html()),
    "leaves.csv": lambda name: write_frame(fit(name).learner.describe_leaves()),
}
# Figures take longest, so that not all are drawn.
DRAWN = (
    "conjunction",
    "disjunction",
    "nothing",
    "plain",
    "missing",
    "many_environments",
    "effect_tree",
    "effect_tree_missing",
    "rate_tree",
    "tree_nothing",
    "score",
)
# Pages whose drawings are held: every kind of plot is in one of them.
WITH_SVG = ("conjunction", "disjunction", "equivalence", "effect_tree", "rate_tree_beyond", "score")
OF_FORESTS: dict[str, Hold] = {
    **{name: hold for name, hold in OF_REPORTED.items() if name.startswith("report")},
    "show-all.txt": hold_show_all,
    "out-of-bag.csv": lambda name: write_frame(fit(name).learner.out_of_bag_),
}


def list_models() -> dict[tuple[str, str], Callable[[], str]]:
    found: dict[tuple[str, str], Callable[[], str]] = {}
    for name, case in CASES.items():
        holds = {**OF_ALL, **(OF_FORESTS if case.is_forest else OF_REPORTED)}
        holds |= {"figure.txt": hold_texts, "drawn.txt": hold_drawn} if name in DRAWN else {}
        holds |= {"svg.txt": hold_svg} if name in WITH_SVG else {}
        found |= {(name, artefact): partial(hold, name) for artefact, hold in holds.items()}
    return found


# Studies: each gives its artefacts.


def split_table(table: Table, is_new: Any) -> tuple[Table, Table]:
    old, new = (
        Table(
            table.X[rows].reset_index(drop=True),
            table.y[rows].reset_index(drop=True),
            table.environments[rows].reset_index(drop=True),
        )
        for rows in (~is_new, is_new)
    )
    return old, new


@cache
def split_admissions(n: int = 6_000, seed: int = 1) -> tuple[Table, Table]:
    """Every third row is new, and all of one hospital."""
    table = make_admissions(n, seed)
    number = pd.Series(range(len(table.y)))
    return split_table(table, (number % 3 == 0) | (table.environments == "Elm"))


@cache
def fit_admissions() -> dict[str, str]:
    """Files: a model learned from some of the admissions, and the others."""
    old, new = split_admissions()
    few, others = split_admissions(4_000, 0)  # in which no rule is found
    fit_once = "fit", "old.csv", "-q", "--no-validation", "--stability", "0"
    learned = []
    for model in ("icscm", "tree"):
        asked = [*fit_once, *name_columns(old), "--model", model, "--out", "out.json"]
        learned.append(run(*asked, files={"old.csv": write_table(old)}, gives="out.json"))
    asked = [*fit_once, *name_columns(few), "--out", "out.json"]
    nothing = run(*asked, files={"old.csv": write_table(few)}, gives="out.json")
    tables = {"new.csv": write_table(new), "others.csv": write_table(others)}
    return {"model.json": learned[0], "tree.json": learned[1], "nothing.json": nothing, **tables}


@cache
def evaluate_moved() -> Any:
    """A model with shortcuts, at a hospital where they lead astray."""
    data = make_hospitals(2_500, n_new_rows=500, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        learner = SCMClassifier(max_rules=3).fit(data.X, data.y, environments=data.environments)
        return evaluate(learner, data.X_new, data.y_new)


@cache
def evaluate_many() -> Any:
    """A tree in forty environments, twenty of which it knows."""
    table = make_many()
    old, _ = split_table(table, table.environments.str[1:].astype(int) > 20)
    with warnings.catch_warnings(action="ignore"):
        learner = InvariantTreeClassifier(max_leaves=4)
        learner.fit(old.X, old.y, environments=old.environments)
        return evaluate(learner, *table.samples)


@cache
def evaluate_admissions() -> Any:
    old, new = split_admissions()
    with warnings.catch_warnings(action="ignore"):
        learner = ICSCMClassifier().fit(old.X, old.y, environments=old.environments)
        return evaluate(learner, *new.samples)


@cache
def compare_sites() -> Any:
    names = ["scm", "icscm", "icscm-or", "invariant-tree"]
    return compare(*make_sites(1_200, 3).samples, names, n_folds=3, min_rows=100)


def ask_compare(*more: str) -> str:
    table = make_sites(1_200, 3)
    asked = ["compare", "sites.csv", "-q", *name_columns(table), "--n-folds", "3", *more]
    asked += ["--min-rows", "100", "--candidates", "scm,icscm,icscm-or,invariant-tree"]
    printed = run(*asked, files={"sites.csv": write_table(table)})
    return re.sub(r"(?<=  )\d+\.\d\d$", "SOME", printed, flags=re.MULTILINE)  # seconds to fit


@cache
def resample_conjunction() -> Any:
    with warnings.catch_warnings(action="ignore"):
        samples = fit("conjunction").table.samples
        return stability_selection(ICSCMClassifier(), *samples, n_resamples=8, random_state=1)


@cache
def check_admissions() -> Any:
    table = fit("missing").table
    return check_environments(*table.samples)


def check_odd(name: str) -> str:
    """Tables that call for advice: no difference between environments, or nearly all in one."""
    if name == "noise":
        return f"{check_environments(*make_noise().samples)}\n"
    table = make_many()
    region = table.environments.where(table.environments == "r40", "r1")
    region[::60] = "r2"
    X = table.X.assign(copy=region.eq("r1").astype(int), gap=table.X["noise"].where(region == "r1"))
    rows = region != "r40"
    samples = (each[rows].reset_index(drop=True) for each in (X, table.y, region))
    return f"{check_environments(*samples)}\n"


def describe_reasons():
    kinds = "dependent", "small", "unreplicated", "unhelpful", "heterogeneous", "banned", "idle"
    yield {kind: write_text("reason", reason=kind) for kind in kinds}
    outcomes = {kind: PruningOutcome(kind, 0, 0) for kind in ("needed", "single", "not_ended")}
    yield {kind: write_text("pruning", tests=[], pruned=e) for kind, e in outcomes.items()}


def ask_check(name: str, *more: str) -> str:
    table = make_many() if name == "many" else fit("missing").table
    asked = ["check", "zoo.csv", "-q", *name_columns(table), *more]
    return run(*asked, files={"zoo.csv": write_table(table)})


@cache
def transfer_sites() -> Any:
    with warnings.catch_warnings(action="ignore"):
        return leave_one_environment_out(
            InvariantTreeClassifier(max_leaves=4), *make_sites(1_200, 3).samples
        )


@cache
def follow_sites() -> Any:
    with warnings.catch_warnings(action="ignore"):
        learner = InvariantTreeClassifier(max_leaves=4)
        samples = make_sites(1_200, 3).samples
        return tolerance_path(learner, *samples, tolerances=TOLERANCES)


@cache
def choose_for_sites(scorer: str = "balanced_accuracy", folds: str = "rows") -> Any:
    with warnings.catch_warnings(action="ignore"):
        grid = {"p": [0.5, 1.0], "model_type": ["conjunction", "disjunction"]}
        samples = make_sites(1_200, 3).samples
        return grid_search(ICSCMClassifier(), *samples, grid, scorer=scorer, folds=folds)


def describe_choice(scorer: str, folds: str) -> str:
    found = choose_for_sites(scorer, folds)
    ends = f"{found.best}, baseline {found.baseline:.6f}, {found.n_folds} folds of {found.folds}"
    return f"{write_frame(found.to_frame())}{found.scorer}: {ends}\n"


def ask_choice() -> str:
    table = make_sites(1_200, 3)
    asks = "--cv p=0.5,1 --cv type=conjunction,disjunction --cv-folds environments --stability 4"
    asked = ["fit", "sites.csv", "-q", *name_columns(table), *asks.split()]
    return run(*asked, files={"sites.csv": write_table(table)})


STUDIES: dict[tuple[str, str], Callable[[], str]] = {
    ("evaluate", "terminal.txt"): lambda: run(
        "evaluate", "model.json", "new.csv", files=fit_admissions()
    ),
    ("evaluate", "terminal-all.txt"): lambda: run(
        "evaluate", "model.json", "new.csv", "--all", files=fit_admissions()
    ),
    ("evaluate", "terminal.json"): lambda: run(
        "evaluate", "model.json", "new.csv", "--json", files=fit_admissions()
    ),
    ("evaluate", "result.json"): lambda: write_json(evaluate_admissions().to_dict()),
    ("evaluate", "result.csv"): lambda: write_frame(evaluate_admissions().to_frame()),
    ("evaluate", "html.txt"): lambda: strip_tags(evaluate_admissions().to_html()),
    ("evaluate_tree", "terminal.txt"): lambda: run(
        "evaluate", "tree.json", "new.csv", files=fit_admissions()
    ),
    ("evaluate_tree", "terminal.json"): lambda: run(
        "evaluate", "tree.json", "new.csv", "--json", files=fit_admissions()
    ),
    ("evaluate_moved", "result.json"): lambda: write_json(evaluate_moved().to_dict()),
    ("evaluate_moved", "html.txt"): lambda: strip_tags(evaluate_moved().to_html()),
    ("evaluate_many", "result.csv"): lambda: write_frame(evaluate_many().to_frame()),
    ("evaluate_many", "printed.txt"): lambda: f"{evaluate_many()}\n",
    ("evaluate_moved", "printed.txt"): lambda: f"{evaluate_moved()}\n",
    ("evaluate_many", "html.txt"): lambda: strip_tags(evaluate_many().to_html()),
    ("evaluate", "printed.txt"): lambda: f"{evaluate_admissions()!r}\n",
    ("evaluate_nothing", "terminal.txt"): lambda: run(
        "evaluate", "nothing.json", "others.csv", files=fit_admissions()
    ),
    ("compare", "terminal.txt"): ask_compare,
    ("compare", "terminal.json"): lambda: ask_compare("--json"),
    ("compare", "result.json"): lambda: write_json(compare_sites().to_dict()),
    ("compare", "result.csv"): lambda: write_frame(
        compare_sites().to_frame().drop(columns="fit_seconds")
    ),
    ("compare", "conclusions.txt"): lambda: "\n".join(compare_sites().conclusions) + "\n",
    ("stability", "printed.txt"): lambda: f"{resample_conjunction()}\n",
    ("stability", "result.json"): lambda: write_json(resample_conjunction().describe()),
    ("stability", "result.csv"): lambda: write_frame(resample_conjunction().to_frame()),
    ("check", "terminal.txt"): lambda: ask_check("admissions"),
    ("check", "terminal.json"): lambda: ask_check("admissions", "--json"),
    ("check", "printed.txt"): lambda: f"{check_admissions()}\n",
    ("check", "result.json"): lambda: write_json(check_admissions().to_dict()),
    ("check_noise", "printed.txt"): lambda: check_odd("noise"),
    ("check_lopsided", "printed.txt"): lambda: check_odd("lopsided"),
    ("search", "reasons.json"): lambda: write_json([STOP_REASONS, *describe_reasons()]),
    ("check_many", "terminal.txt"): lambda: ask_check("many"),
    ("transfer", "printed.txt"): lambda: f"{transfer_sites()}\n",
    ("transfer", "result.csv"): lambda: write_frame(transfer_sites().to_frame()),
    ("tolerances", "printed.txt"): lambda: f"{follow_sites()}\n",
    ("tolerances", "result.csv"): lambda: write_frame(follow_sites().to_frame()),
    ("choice", "terminal.txt"): ask_choice,
    ("choice", "best.txt"): lambda: describe_choice("balanced_accuracy", "rows"),
    ("choice_log_loss", "best.txt"): lambda: describe_choice("log_loss", "environments"),
    ("choice_accuracy", "best.txt"): lambda: describe_choice("accuracy", "rows"),
    ("choice", "result.csv"): lambda: write_frame(choose_for_sites().to_frame()),
}

FIGURES: dict[str, Callable[[], Any]] = {
    "evaluate": lambda: evaluate_admissions().plot(),
    "evaluate_many": lambda: evaluate_many().plot(),
    "compare": lambda: compare_sites().plot(),
    "transfer": lambda: transfer_sites().plot(),
    "tolerances": lambda: follow_sites().plot(),
    "figure_within_axes": draw_within_axes,
    "figure_by_size": partial(draw_by, "size"),
    "figure_by_rate": partial(draw_by, "rate"),
    "figure_words": draw_words,
}
for study, draw in FIGURES.items():
    if study in ("evaluate", "compare", "transfer", "tolerances"):
        STUDIES[study, "figure.txt"] = lambda draw=draw: read_figure(draw)[0]
    STUDIES[study, "drawn.txt"] = lambda draw=draw: read_figure(draw)[1]
STUDIES["evaluate", "svg.txt"] = lambda: list_svg(evaluate_admissions().to_html())

ARTEFACTS = {**list_models(), **STUDIES}
