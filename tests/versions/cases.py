"""What both versions compute: fits, studies and commands, each on a small table.

The names of estimators, options and arguments are those of version 0.3.0. Every option of every
estimator occurs with a value other than its default, most of them on a table in which it matters.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from versions.tables import N_TINY, fingerprint_table

Options = dict[str, Any]


@dataclass(frozen=True)
class Fit:
    """An estimator fitted on a table."""

    kind: str  # of the estimator: a key of `names.ESTIMATORS`
    table: str  # a key of `tables.TABLES`
    options: Options = field(default_factory=dict)
    source: str = "memory"  # or where the rows lie: a key of `running.SOURCES`
    form: str = "pandas"  # of the columns in memory: one of `tables.FORMS`
    rows: tuple[str, ...] = ()  # groups and weights that `fit` gets
    names_environments: bool = False  # the environments are a column of the frame
    views: tuple[str, ...] = ()  # what is read besides the model: report, leaves, exports, ...
    fails: bool = False  # an error is what the case is about

    @property
    def name(self) -> str:
        marks = [self.source] * (self.source != "memory") + [self.form] * (self.form != "pandas")
        marks += [*self.rows, *(["environments by name"] if self.names_environments else [])]
        marks += [f"with {view}" for view in self.views]
        return join_name(self.kind, self.table, self.options, marks)

    @property
    def group(self) -> str:
        return "errors" if self.fails else self.kind

    def list_tables(self) -> list[str]:
        return [self.table]


@dataclass(frozen=True)
class Study:
    """A study of one or more learners."""

    study: str  # a key of `running.STUDIES`
    table: str
    kind: str = ""  # of the estimator; "" where the study has its own
    options: Options = field(default_factory=dict)
    arguments: Options = field(default_factory=dict)  # of the study
    rows: tuple[str, ...] = ()
    new_table: str = ""  # for evaluations
    fails: bool = False

    @property
    def name(self) -> str:
        marks = [self.kind] * bool(self.kind) + [*self.rows]
        return join_name(self.study, self.table, self.options | self.arguments, marks)

    @property
    def group(self) -> str:
        return "studies"

    def list_tables(self) -> list[str]:
        return [self.table, *([self.new_table] if self.new_table else [])]


@dataclass(frozen=True)
class Command:
    """Commands of the command line, one after the other in a folder with tables as files."""

    steps: tuple[str, ...]
    tables: tuple[str, ...]
    reads: tuple[str, ...] = ()  # files that are written, and compared
    fails: bool = False

    @property
    def name(self) -> str:
        return f"command/{' && '.join(self.steps)}"

    @property
    def group(self) -> str:
        return "commands"

    def list_tables(self) -> list[str]:
        return list(self.tables)


Case = Fit | Study | Command


def join_name(kind: str, table: str, options: Options, marks: Sequence[str]) -> str:
    listed = [f"{name}={value}" for name, value in options.items()]
    return "/".join([kind, table, *([", ".join([*listed, *marks])] if listed or marks else [])])


def describe_case(case: Case) -> str:
    """The whole definition of a case, as text."""
    return json.dumps({"task": type(case).__name__, **asdict(case)}, sort_keys=True)


def fingerprint_case(case: Case) -> str:
    """A short digest of the definition and of the tables; where it is the same, so are results."""
    parts = [describe_case(case), *map(fingerprint_table, case.list_tables())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


# Of a learner of rules or a tree: all that can be read from it.
EVERYTHING = ("leaves", "report", "exports")
# The settings of the paper.
PAPER: Options = {"pruning": "always", "min_replication": 0, "min_utility": None}
EITHER: Options = {"model_type": "disjunction"}
SEED: Options = {"random_state": 0}
FEW_TREES: Options = SEED | {"n_estimators": 6}
LOGISTIC: Options = SEED | {"estimator": "@logistic"}
# Which column is what, in a file.
BY_PLACE = "--target outcome --environment place"


def fit_each(kind: str, tables: Sequence[str], **more: Any) -> list[Case]:
    """The same settings on several tables."""
    return [Fit(kind, table, **more) for table in tables]


def try_each(kind: str, table: str, settings: Sequence[Options], **more: Any) -> list[Case]:
    """Several settings on the same table."""
    return [Fit(kind, table, options, **more) for options in settings]


RULES: list[Case] = [
    *fit_each("rules", ["network", "admissions", "sites", "lone"], views=EVERYTHING),
    *fit_each(
        "rules",
        [
            *("network-or", "network-5-parents", "network-continuous", "network-small"),
            *("network-noisy", "no-environments", "two-sites", "cohort", "numbers", "shifted"),
            *("rare", "noise", "lopsided", "twins", "kinds", "odd-names", "wide"),
        ],
    ),
    Fit("rules", "network-words", views=(*EVERYTHING, "validation", "recalibration")),
    Fit("rules", "regions", views=("leaves", "report")),
    Fit(
        "rules",
        "admissions-or",
        {"model_type": "disjunction", "stop": "coverage"},
        views=EVERYTHING,
    ),
    Fit("rules", "network-or", EITHER, views=("exports",)),
    *try_each(
        "rules",
        "network-5-parents",
        [
            {"alpha": 0.001},
            {"alpha": 0.3},
            {"alpha": "auto"},
            {"test": "g"},
            {"test": "fisher"},
            {"test": "@rate difference"},
            {"stop": "coverage"},
            {"pruning": False, "stop": "coverage"},
            {"pruning": "always", "stop": "coverage"},
            {"pruning": "shown"},
            PAPER,
            PAPER | {"stop": "coverage", "alpha": 0.2},
            {"max_rules": 1},
            {"evidence": "cumulative"},
            {"correction": "bonferroni"},
            {"correction": "holm", "test": "g"},
            {"correction": "bh", "evidence": "cumulative"},
        ],
    ),
    *try_each(
        "rules",
        "sites",
        [
            {"p": 0.5},
            {"p": 3.0, "stop": "coverage"},
            {"p": "balanced"},
            {"model_type": "auto"},
            {"model_type": "disjunction", "p": "balanced"},
            {"max_thresholds": 5},
            {"max_thresholds": None},
            {"min_samples_leaf": 150},
            {"min_replication": 0.9},
            {"min_replication": 0, "stop": "coverage"},
            {"min_utility": None},
            {"min_utility": 0.0},
            {"min_utility": 60.0},
            {"feature_weights": [1.0, 0.5, 2.0]},
            {"feature_weights": {"age": 0.0}, "stop": "coverage"},
            {"criterion": "equivalence", "margin": 0.2},
            {"criterion": "equivalence", "margin": 2.0, "margin_on": "odds_ratio"},
            {"margin": 1.5, "margin_on": "odds_ratio"},
            {"n_jobs": 1},
            {"n_jobs": 2, "device": "auto"},
        ],
    ),
    *try_each(
        "rules",
        "admissions",
        [
            {"missing": "separate"},
            {"missing": "separate", "model_type": "disjunction", "p": 0.7, "min_utility": 0.0},
            {"keep_columns": "all"},
            {"keep_columns": ["number"], "max_thresholds": 6},
            {"model_type": "auto", "stop": "coverage"},
            {"test": "g", "min_samples_leaf": 40, **PAPER},
        ],
    ),
    *try_each(
        "rules",
        "network-words",
        [
            {"search": "exhaustive", "alpha": "auto"},
            {"search": "exhaustive", "conclusion": "best", "n_candidates": 4},
            {"search": "exhaustive", "screen": "invariance", "min_samples_leaf": 20},
            {"search": "exhaustive", "max_rules": 1},
            {"search": "exhaustive", "model_type": "disjunction"},
        ],
        views=("leaves",),
    ),
    Fit("rules", "network-5-parents", {"search": "exhaustive", "conclusion": "best"}),
    Fit("rules", "network-small", {"search": "exhaustive", "alpha": 0.01}, views=("report",)),
    Fit("rules", "sites", {"search": "exhaustive"}, views=("report",)),
    Fit("rules", "noise", {"min_utility": 0.0}),
    Fit("rules", "rare", {"p": 0.3}),
    Fit("rules", "rare", {"p": "balanced", **PAPER}, views=("report",)),
    Fit("rules", "lone", {"stop": "coverage", **PAPER}),
    Fit("rules", "lone", {"min_samples_leaf": 400}),
    Fit("rules", "kinds", {"missing": "separate", "stop": "coverage"}, views=("exports",)),
    Fit("rules", "twins", {"keep_columns": "all", "stop": "coverage"}),
    Fit("rules", "wide", {"correction": "bh", "stop": "coverage"}),
    Fit("rules", "regions", {"p": "balanced", "alpha": "auto", "stop": "coverage"}),
    *fit_each("rules", ["visits", "genomes"], rows=("groups",), views=("leaves", "report")),
    *(
        Fit("rules", "visits", {"stop": "coverage"}, rows=rows)
        for rows in [
            ("sample_weight",),
            ("frequency_weight",),
            ("groups", "sample_weight"),
            ("groups", "frequency_weight"),
        ]
    ),
    Fit("rules", "visits", {"search": "exhaustive"}, rows=("groups",)),
    Fit("rules", "visits", {"min_samples_leaf": 30, "min_utility": 2.0}, rows=("sample_weight",)),
    Fit("rules", "sites", names_environments=True),
    *(
        Fit("rules", "numbers", {"stop": "coverage"}, form=form)
        for form in [*("numpy", "float32", "fortran", "lists", "sparse", "polars", "arrow")]
    ),
    *(Fit("rules", "kinds", {"stop": "coverage"}, form=form) for form in ("polars", "arrow")),
    *(Fit("rules", "admissions", source=source) for source in ("csv", "parquet", "folder", "dask")),
    *(Fit("rules", "visits", source=s, rows=("groups",)) for s in ("csv", "parquet", "folder")),
    *(Fit("rules", "genomes", source=s, views=("leaves",)) for s in ("bits", "genes", "dask")),
    Fit("rules", "genomes", {"stop": "coverage", **PAPER}, source="bits", rows=("groups",)),
    Fit("rules", "genomes", {"search": "exhaustive"}, source="bits"),
    Fit("rules", "genomes", EITHER, source="genes"),
    *(Fit("rules", table, source="sites") for table in ("sites", "odd-names")),
    Fit("rules", "network-words", {"search": "exhaustive"}, source="sites"),
    Fit("rules", "network-words", EITHER | {"stop": "coverage"}, source="sites"),
]

PLAIN_RULES: list[Case] = [
    *fit_each("plain rules", ["no-environments", "admissions"], views=EVERYTHING),
    *fit_each("plain rules", ["network-words", "rare", "kinds", "regions", "wide"]),
    *try_each(
        "plain rules",
        "sites",
        [
            {"p": 2.0, "model_type": "disjunction"},
            {"p": "balanced", "max_rules": 2},
            {"model_type": "auto"},
            {"max_thresholds": 4, "n_jobs": 1, "device": "auto"},
            {"feature_weights": [0.1, 1.0, 5.0]},
        ],
    ),
    Fit("plain rules", "admissions", {"missing": "separate", "keep_columns": "all"}),
    Fit("plain rules", "visits", rows=("groups", "sample_weight")),
    Fit("plain rules", "genomes", {"max_rules": 3}, source="bits"),
    Fit("plain rules", "admissions", source="parquet"),
]

TREES: list[Case] = [
    *fit_each("tree", ["sites", "admissions", "cohort"], views=(*EVERYTHING, "path")),
    Fit("tree", "odd-names", views=("validation", "exports", "recalibration")),
    *fit_each(
        "tree",
        [
            *("network-words", "two-sites", "numbers", "shifted", "rare", "noise", "lone"),
            *("lopsided", "twins", "kinds", "wide", "no-environments"),
        ],
    ),
    Fit("tree", "regions", {"max_leaves": 4, "tolerance": 0.1}, views=("leaves", "report")),
    *try_each(
        "tree",
        "admissions",
        [
            {"tolerance": None, "max_leaves": 6},
            {"tolerance": 0.001},
            {"max_leaves": 5, "probabilities": "balanced"},
            {"min_samples_leaf": 100},
            {"min_samples_leaf": 0.1, "max_thresholds": 8},
            {"missing": "separate"},
            {"keep_columns": "all", "n_jobs": 1},
            {"min_replication": 0.8, "device": "auto"},
        ],
    ),
    Fit("tree", "cohort", {"max_thresholds": None, "min_replication": 0}),
    Fit("tree", "lone", {"min_replication": 0}),
    Fit("tree", "visits", rows=("groups",), views=("report",)),
    *(Fit("tree", "visits", rows=rows) for rows in [("sample_weight",), ("frequency_weight",)]),
    *(Fit("tree", "cohort", source=s) for s in ("csv", "parquet", "folder", "dask", "sites")),
    *(Fit("tree", "numbers", form=form) for form in ("float32", "sparse", "polars", "arrow")),
    Fit("tree", "genomes", {"max_leaves": 6}, source="bits"),
    Fit("tree", "genomes", {"max_leaves": 6}, source="bits", rows=("groups",)),
]

RATE_TREES: list[Case] = [
    *fit_each("rate tree", ["network-words", "sites"], views=(*EVERYTHING, "path")),
    *fit_each("rate tree", ["network-5-parents", "admissions", "noise", "shifted", "kinds"]),
    *try_each(
        "rate tree",
        "network-5-parents",
        [
            {"tolerance": 0.05, "max_leaves": 4},
            {"tolerance": None},
            {"probabilities": "balanced", "min_samples_leaf": 0.05},
        ],
    ),
    Fit("rate tree", "visits", rows=("groups",)),
    Fit("rate tree", "admissions", source="parquet"),
    Fit("rate tree", "genomes", {"max_leaves": 4}, source="bits"),
]

FORESTS: list[Case] = [
    Fit("forest", "sites", SEED | {"n_estimators": 8}, views=("report", "exports")),
    Fit("forest", "cohort", SEED | {"n_estimators": 12}, views=("validation", "recalibration")),
    *try_each(
        "forest",
        "admissions",
        [
            FEW_TREES | {"max_leaves": 8, "max_features": 1.0},
            FEW_TREES | {"resample": "environments", "invariance": "rate"},
            FEW_TREES | {"tolerance": None, "probabilities": "balanced"},
            {"random_state": 5, "n_estimators": 6, "min_samples_leaf": 0.05, "n_jobs": 1},
            FEW_TREES | {"max_thresholds": 7, "missing": "separate"},
            FEW_TREES | {"keep_columns": "all", "min_replication": 0},
            FEW_TREES | {"tolerance": 0.2, "device": "auto"},
        ],
    ),
    *fit_each("forest", ["noise", "regions", "no-environments"], options=FEW_TREES),
    Fit("forest", "visits", FEW_TREES, rows=("groups",)),
    Fit("forest", "visits", FEW_TREES, rows=("sample_weight",)),
    Fit("forest", "cohort", FEW_TREES, source="parquet"),
]

SCORES: list[Case] = [
    Fit("score", "cohort-small", SEED, views=("leaves", "report", "exports")),
    *fit_each("score", ["network-words", "no-environments", "noise"], options=SEED),
    *try_each(
        "score",
        "cohort-small",
        [
            SEED | {"tolerance": None, "max_terms": 3},
            SEED | {"tolerance": 0.2, "max_points": 2, "n_jobs": 1},
            SEED | {"tolerance": None, "min_samples_leaf": 0.2, "max_thresholds": 5},
            SEED | {"tolerance": None, "min_samples_leaf": 30, "keep_columns": "all"},
            {"random_state": 4, "min_replication": 0.6},
        ],
    ),
    Fit("score", "cohort-small", SEED | {"missing": "error"}, fails=True),
    Fit("score", "sites", SEED | {"missing": "error", "tolerance": None}, views=("recalibration",)),
    Fit("score", "visits", SEED | {"tolerance": None}, rows=("groups",)),
    Fit("score", "visits", SEED | {"tolerance": None}, rows=("sample_weight",)),
    Fit("score", "admissions", SEED | {"tolerance": None}, source="csv"),
]

SCREENS: list[Case] = [
    Fit("screen", "cohort-small", SEED | {"cv": 2}, views=("report",)),
    Fit("screen", "admissions-new", SEED | {"cv": 2}),
    *try_each(
        "screen",
        "numbers",
        [
            LOGISTIC,
            LOGISTIC | {"tolerance": 0.0},
            {"estimator": "@tree", "min_replication": 0.9, "n_jobs": 1, "tolerance": 0.5, **SEED},
            {"estimator": "@logistic", "cv": "@three blocks", "random_state": 3},
            {"estimator": "@tree", "cv": 3, **SEED},
            {"estimator": "@random forest", "cv": 2, "n_jobs": 2, **SEED},
        ],
        views=("report",),
    ),
    *(Fit("screen", "numbers", LOGISTIC, form=form) for form in ("numpy", "arrow")),
    *(
        Fit("screen", table, LOGISTIC, rows=rows)
        for table, rows in [
            ("visits", ("groups",)),
            ("network", ()),
            ("regions", ()),
            ("noise", ()),
            ("no-environments", ()),
            ("lopsided", ()),
        ]
    ),
]

CAUSAL_PREDICTION: list[Case] = [
    *fit_each("icp", ["network", "network-5-parents", "sites", "shifted", "noise"]),
    *try_each(
        "icp",
        "network-continuous",
        [
            {},
            {"alpha": 0.3},
            {"test": "chi2"},
            {"max_set_size": 2},
            {"dof": "nominal"},
            {"max_levels": 2, "conclusion": "best"},
        ],
    ),
    Fit("icp", "numbers", {"conclusion": "best"}, form="numpy"),
    *fit_each("tree icp", ["network", "sites", "numbers", "noise"], options=SEED),
    *try_each(
        "tree icp",
        "network-5-parents",
        [
            SEED,
            SEED | {"alpha": 0.001, "conclusion": "best"},
            SEED | {"max_set_size": 2, "max_leaves": 4},
            SEED | {"max_features": 3},
            {"random_state": 2, "min_samples_leaf": 0.1, "max_thresholds": 4},
        ],
    ),
    Fit("tree icp", "network-noisy", SEED | {"max_features": 4}, form="polars"),
]

ERRORS: list[Case] = [
    *(
        Fit("rules", table, fails=True)
        for table in [
            *("one-class", "three-classes", "missing-outcome", "one-environment"),
            *("missing-environment", "infinite", "four-rows"),
        ]
    ),
    *try_each(
        "rules",
        "network",
        [
            {"alpha": 2},
            {"test": "z"},
            {"margin": 3.0},
            {"criterion": "equivalence", "correction": "holm"},
            {"keep_columns": ["nowhere"]},
            {"feature_weights": {"nowhere": 1.0}},
            {"device": "cuda"},
        ],
        fails=True,
    ),
    Fit("rules", "admissions", {"missing": "error"}, fails=True),
    Fit("tree", "one-environment", fails=True),
    Fit("tree", "sites", {"tolerance": -1}, fails=True),
    Fit("forest", "two-sites", SEED | {"resample": "environments"}, fails=True),
    Fit("forest", "sites", SEED | {"n_estimators": 3}, source="sites", fails=True),
    Fit("icp", "admissions", fails=True),
    Fit("icp", "network-noisy", fails=True),
    Fit("screen", "one-class", {"estimator": "@logistic"}, fails=True),
    Study("validate_screen", "two-sites", "screen", {"estimator": "@logistic"}, fails=True),
    Study("evaluate", "sites", "rules", new_table="numbers", fails=True),
]

STUDIES: list[Case] = [
    *(
        Study("check_environments", table)
        for table in ("admissions", "regions", "noise", "lopsided", "twins", "kinds")
    ),
    Study("check_environments", "admissions", arguments={"alpha": 0.2}),
    Study("leave_one_environment_out", "sites", "tree", {"max_leaves": 4}),
    Study("leave_one_environment_out", "network-words", "rules"),
    Study("leave_one_environment_out", "visits", "plain rules", rows=("groups",)),
    Study("leave_one_environment_out", "numbers", "@logistic", arguments={"scorers": ["auc"]}),
    Study("evaluate", "sites", "rules", {"stop": "coverage"}, new_table="sites-new"),
    Study("evaluate", "sites", "tree", arguments={"threshold": 0.3}, new_table="sites-new"),
    Study("evaluate", "admissions", "rules", new_table="admissions-new"),
    Study("evaluate", "cohort", "forest", FEW_TREES, new_table="cohort-small"),
    Study("evaluate", "cohort-small", "score", SEED | {"tolerance": None}, new_table="cohort"),
    Study("evaluate", "numbers", "@logistic", new_table="numbers-new"),
    Study(
        "compare",
        "sites",
        arguments={
            "candidates": ["scm", "icscm", "icscm-or", "invariant-tree", "logistic"],
            "min_rows": 100,
        },
    ),
    Study(
        "compare",
        "visits",
        arguments={"candidates": ["icscm", "tree"], "n_folds": 2, "random_state": 3},
        rows=("groups",),
    ),
    Study("stability_selection", "network", "rules", arguments={"n_resamples": 8, **SEED}),
    Study(
        "stability_selection",
        "sites",
        "tree",
        {"max_leaves": 4},
        arguments={"n_resamples": 4, "threshold": 0.9, **SEED},
    ),
    Study(
        "stability_selection",
        "visits",
        "rules",
        arguments={"n_resamples": 4, **SEED},
        rows=("groups",),
    ),
    Study("tolerance_path", "sites", "tree", {"max_leaves": 4}, {"tolerances": [None, 0.03, 0.3]}),
    Study("screen_path", "numbers", "screen", LOGISTIC, {"leave_one_out": True}),
    Study("permutation_importance", "sites", "rules", arguments={"n_repeats": 2}),
    Study(
        "permutation_importance",
        "numbers",
        "@logistic",
        arguments={"n_repeats": 3, "max_rows": 500, "random_state": 2},
    ),
    Study("choose_threshold", "sites", "tree"),
    Study(
        "choose_threshold",
        "cohort",
        "rules",
        {"stop": "coverage"},
        {"threshold": "sensitivity=0.9"},
    ),
    Study("choose_threshold", "numbers", "@logistic", arguments={"threshold": "costs=1:5"}),
    Study("validate_screen", "numbers", "screen", LOGISTIC),
    Study("validate_screen", "visits", "screen", {"estimator": "@tree", **SEED}, rows=("groups",)),
    Study(
        "grid_search",
        "sites",
        "rules",
        arguments={"grid": {"p": [0.5, 1.0], "model_type": ["conjunction", "disjunction"]}},
    ),
    Study(
        "grid_search",
        "sites",
        "tree",
        arguments={"grid": {"max_leaves": [2, 4]}, "scorer": "log_loss", "folds": "environments"},
    ),
]

COMMANDS: list[Case] = [
    Command(
        (
            f"fit sites.csv -q {BY_PLACE} --stop coverage --out model.json "
            "--report report.json --json",
            "evaluate model.json sites-new.csv --json",
            "predict model.json sites-new.csv --out predictions.csv",
            "show model.json --all",
            "export model.json --to sql --out model.sql",
            "recalibrate model.json sites-new.csv --target outcome --out moved.json",
        ),
        tables=("sites", "sites-new"),
        reads=("model.json", "report.json", "predictions.csv", "model.sql", "moved.json"),
    ),
    Command(
        (
            f"fit admissions.csv -q {BY_PLACE} --model tree --max-leaves 6 "
            "--probabilities balanced --drop country --report report.json --stability 3",
        ),
        tables=("admissions",),
        reads=("report.json",),
    ),
    Command(
        (f"fit sites.csv -q {BY_PLACE} --cv p=0.5,1 --cv-folds environments --stability 2 --json",),
        tables=("sites",),
    ),
    Command(
        (
            f"fit cohort.csv -q {BY_PLACE} --model forest --n-estimators 5 --threshold youden "
            "--no-validation --stability 0 --json",
        ),
        tables=("cohort",),
    ),
    Command(
        (
            f"fit cohort-small.csv -q {BY_PLACE} --model score --tolerance none --no-validation "
            "--stability 0 --report report.json --json",
        ),
        tables=("cohort-small",),
        reads=("report.json",),
    ),
    Command(
        (
            f"fit visits.csv -q {BY_PLACE} --group patient --model icscm --model-type auto "
            "--search exhaustive --conclusion best --no-validation --stability 2 --json",
        ),
        tables=("visits",),
    ),
    Command(
        (
            f"fit network-words.csv -q {BY_PLACE} --model scm --p balanced --positive no "
            "--only A1,B1,C1 --merge-environments 'clinic 1+clinic 2=first' "
            "--exclude-environment 'clinic 4' --json",
            f"fit odd-names.csv -q {BY_PLACE} --no-validation --stability 0",
        ),
        tables=("network-words", "odd-names"),
    ),
    Command((f"check admissions.csv -q {BY_PLACE} --json",), tables=("admissions",)),
    Command((f"check regions.csv -q {BY_PLACE}",), tables=("regions",)),
    Command(
        (
            f"screen numbers.csv -q {BY_PLACE} --estimator logistic --out kept.txt "
            "--report screen.json --json",
        ),
        tables=("numbers",),
        reads=("kept.txt", "screen.json"),
    ),
    Command(
        (f"compare sites.csv -q {BY_PLACE} --candidates scm,icscm --min-rows 100 --json",),
        tables=("sites",),
    ),
    Command(
        (
            "simulate --n-samples 50 --random-state 3 --out network.csv",
            "simulate --hospitals --n-rows 60 --n-environments 3 --out hospitals.csv",
        ),
        tables=(),
        reads=("network.csv", "hospitals.csv"),
    ),
    Command(
        (f"fit sites.csv {BY_PLACE} --alpha 7", "fit nowhere.csv"), tables=("sites",), fails=True
    ),
]

# Values that options may have, from which the settings of the tiny tables are drawn.
VALUES: dict[str, dict[str, list[Any]]] = {
    "rules": {
        "p": [0.5, 1.0, 2.0, "balanced"],
        "model_type": ["conjunction", "disjunction"],
        "alpha": [0.01, 0.05, 0.2],
        "test": ["chi2", "g", "fisher"],
        "stop": ["independence", "coverage"],
        "pruning": [True, "always"],
        "min_replication": [0, 0.25, 0.5],
        "min_utility": ["auto", None, 0.0, 2.0],
        "search": ["greedy", "greedy", "greedy", "exhaustive"],
        "criterion": ["pvalue", "pvalue", "pvalue", "equivalence"],
        "margin": [0.05, 0.6],
        "max_rules": [2, 10],
    },
    "plain rules": {
        "p": [0.5, 1.0, 2.0, "balanced"],
        "model_type": ["conjunction", "disjunction", "auto"],
    },
    "tree": {
        "tolerance": [None, "auto", 0.1],
        "max_leaves": [3, 16],
        "min_samples_leaf": [1, 5, 0.1],
        "min_replication": [0, 0.25],
        "probabilities": ["pooled", "balanced"],
    },
}
VALUES["rate tree"] = VALUES["tree"]


def draw_fit(kind: str, seed: int) -> Fit:
    """A tiny table with settings drawn at random, so that rare branches and limits are met."""
    draw = random.Random(f"{kind} {seed}")
    options = {name: draw.choice(values) for name, values in VALUES[kind].items()}
    rows = ("groups",) if draw.random() < 0.2 else ()
    return Fit(kind, f"tiny-{seed}", options, rows=rows)


EXACT: list[Case] = [
    *fit_each("rules", ["exact"], options={"p": "balanced", "stop": "coverage"}),
    *try_each(
        "rules",
        "exact",
        [
            {"search": "exhaustive", "conclusion": "best", "min_samples_leaf": 320},
            {"search": "exhaustive", "conclusion": "best", "min_samples_leaf": 321},
            {"p": 0.5, "min_samples_leaf": 160, "stop": "coverage"},
            {"p": 1.0, "min_utility": 16.0, "stop": "coverage"},
            {"p": 1.0, "min_utility": None, "stop": "coverage", "max_rules": 2},
        ],
    ),
    *try_each(
        "tree",
        "exact",
        [
            {"min_samples_leaf": 320},
            {"min_samples_leaf": 160},
            {"min_samples_leaf": 80, "tolerance": None},
            {"min_samples_leaf": 0.125},
        ],
    ),
    *try_each("rate tree", "exact", [{"min_samples_leaf": 160}, {"min_samples_leaf": 0.125}]),
    *try_each("tree icp", "exact", [SEED | {"min_samples_leaf": 0.25}]),
    Fit("score", "exact", SEED | {"tolerance": None, "min_samples_leaf": 0.5}),
]

TINY: list[Case] = [
    *(draw_fit("rules", seed) for seed in range(N_TINY)),
    *(draw_fit("plain rules", seed) for seed in range(0, N_TINY, 4)),
    *(draw_fit("tree", seed) for seed in range(0, N_TINY, 2)),
    *(draw_fit("rate tree", seed) for seed in range(1, N_TINY, 4)),
]

CASES: list[Case] = [
    *(RULES + PLAIN_RULES + TREES + RATE_TREES + FORESTS + SCORES + SCREENS),
    *(CAUSAL_PREDICTION + ERRORS + STUDIES + COMMANDS + EXACT + TINY),
]
