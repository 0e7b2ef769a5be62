"""`icscm fit`: from a file to a model, a model file and a report."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.console import Progress, hide_repeated_warnings
from icscm.cli.grid import make_grid
from icscm.cli.group import main, name_option
from icscm.cli.learners import MODELS, check_device, make_learner
from icscm.cli.learning import Learned, learn
from icscm.cli.options import (
    COLUMNS,
    FILE,
    LABELS,
    READING,
    Options,
    add_options,
    is_given,
    list_learner_options,
)
from icscm.cli.routes import Route, choose_route
from icscm.exceptions import Parameter
from icscm.formatting import as_text, escape_controls, format_name, shorten_list
from icscm.io.locating import name_data
from icscm.model.thresholds import Threshold, fix_threshold, read_threshold
from icscm.report.wording.data import describe_positive
from icscm.report.wording.facts import Fact
from icscm.writing import STDOUT, check_free, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.report.page import Report

# What trees and forests are for, by what is required to be homogeneous.
_PURPOSES = {
    "effect": "prediction at a new site: effects of columns are required to be homogeneous; a "
    "consequence of the label, such as a treatment, may pass (--invariance rate finds parents)",
    "rate": "finding parents: the label's rate in each leaf is required to be homogeneous "
    "(--invariance effect predicts better at a new site)",
}
_PLAIN_PURPOSE = "comparison: a plain model, without any requirement"
# Advice where rows are not in memory.
_ELSEWHERE = "needs all rows in memory; give a number, costs=1:10 or a smaller table"


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "group", "weight", "out", "report", "tripod", "force", "model", "threshold")
@add_options("cv", "cv_scorer", "cv_folds")
@add_options(*list_learner_options(), "stability", "random_state")
@add_options("no_path", "validation", "no_validation")
@add_options("max_memory", "temp_dir", "dask", "workers", *LABELS, *READING)
@click.pass_context
def fit(ctx: click.Context, /, data: Path, quiet: bool, **options: Any) -> Options:
    """Learn a rule, tree, forest or points score from a table.

    Numbers give rules such as age > 63, text and booleans smoker == yes; missing values are
    handled by the rule itself. The rule, its performance in environments left out and the search
    are printed; --out saves the model, --report writes a page to read and to share. Where one
    rule predicts poorly, --model tree grows a tree of such rules, --model forest many trees;
    --model score gives points to a few columns.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. A folder of Parquet or CSV files, or a file too large for memory,
    is read in passes (--max-memory) or on a Dask cluster (--dask, --workers). Genomes are an .Rtab
    table or a .bits file that icscm pack made of it; they need --labels.

    \b
    Examples:
      icscm fit heart.csv --target ill --environment hospital \\
          --out model.json --report report.html
      icscm fit heart.csv --target ill --environment hospital --model tree
      icscm fit visits.csv --target readmitted --positive '<30' \\
          --positive '>30' --environment source --na '?' --drop id,ssn
      icscm fit genes.Rtab --labels phenotypes.tsv --target resistant \\
          --environment country
    """
    check_device(options)
    outputs = [options["out"], options["report"], options["tripod"]]
    route = choose_route(data, options)
    learner = make_learner(ctx, options, is_on_dask=route == Route.DASK)
    files.check_ending(options["report"], ".html", ".md", ".json")
    files.check_ending(options["tripod"], ".html", ".md")
    files.check_outputs(outputs, force=options["force"], inputs=[data])
    grid = make_grid(ctx, learner, options)
    _check_threshold(options["threshold"], route)

    progress = Progress(quiet=quiet)
    learned = learn(learner, route, data, options=options, grid=grid, progress=progress)
    if options["threshold"] is not None:
        _set_threshold(learned, options, progress)

    facts = _collect_facts(ctx, learned, data, options)
    # standard output is for the model if --out says so
    screen = console.make_console(stderr=options["out"] == STDOUT)
    try:  # first to files: a terminal that fails must not lose them
        _write_outputs(learned, options=options, facts=facts, progress=progress)
    finally:
        summary = print_fit(screen, data, learned, facts)
    console.print_written(*outputs)
    if not any(outputs) and not quiet:
        console.print_line("No file was written; --out saves the model, --report writes a report.")
    return summary


# `icscm report DATA --tripod FILE`: a report needs the search, which a model file does not have.
click.Group.add_command(main, fit, "report")


# --- the threshold ------------------------------------------------------------------


def _check_threshold(threshold: str | None, route: Route) -> None:
    """Raise for a threshold that cannot be read, or needs rows that cannot be taken."""
    if threshold is None:
        return
    if route in (Route.MEMORY, Route.PACKED):
        read_threshold(threshold)
    else:
        fix_threshold(threshold, _ELSEWHERE)


def _set_threshold(learned: Learned, options: Options, progress: Progress) -> None:
    """Give the model its threshold; without rows it is a number, or follows from costs."""
    from icscm.validation.tuning import choose_threshold

    samples = learned.samples  # None where rows cannot be taken, and none are needed
    with progress.stage("Choosing the threshold"), hide_repeated_warnings():
        threshold = choose_threshold(
            learned.learner,
            None if samples is None else samples.X,
            None if samples is None else samples.y,
            environments=None if samples is None else samples.environments,
            groups=None if samples is None else samples.groups,
            sample_weight=None if samples is None else samples.weights,
            threshold=options["threshold"],
            random_state=options["random_state"],
        )
    learned.learner.model_ = replace(learned.learner.model_, threshold=threshold)


# --- what is written ----------------------------------------------------------------


def _collect_facts(
    ctx: click.Context, learned: Learned, data: Path, options: Options
) -> dict[str, Any]:
    """What a report says besides the model, as arguments of `make_report`."""
    return learned.findings | {
        "data_name": name_data(data),
        "commands": _list_commands(ctx, data, options),
        "target": learned.roles.target,
        "environment": learned.roles.environment,
        "class_names": learned.roles.class_names,
        "words": name_option,
    }


def _list_commands(ctx: click.Context, data: Path, options: Options) -> dict[str, str]:
    """The commands that learn other models or make a screen of the same data."""
    words = [str(data)]
    for name in (*COLUMNS, "group", "weight", *LABELS, *READING):
        if is_given(ctx, name) and name != "quiet":
            words += _repeat_option(name, options[name])
    same_data = escape_controls(shlex.join(words))

    commands = {model: f"icscm fit {same_data} --model {model}" for model in ("tree", "score")}
    is_table = options["labels"] is None and not data.is_dir()
    if is_table and options["environment"] is not None:
        commands["screen"] = f"icscm screen {same_data}"
    return commands


def _repeat_option(name: str, value: Any) -> list[str]:
    """An option as the user gave it; a flag has no value, and some are given several times."""
    option = name_option(Parameter(name))
    if value is True:
        return [option]
    values = value if isinstance(value, tuple) else (value,)
    words = []
    for given_value in values:
        words += [option, str(given_value)]
    return words


def _write_outputs(
    learned: Learned, *, options: Options, facts: dict[str, Any], progress: Progress
) -> None:
    """Make all outputs, then write them, the one that is most likely to fail first."""
    report_path = options["report"]
    tripod_path = options["tripod"]
    model_path = options["out"]
    model_text = _make_model_file(learned, options)
    report: Report | None = None
    if report_path is not None or tripod_path is not None:
        from icscm.report.page import make_report

        with progress.stage("Making the report"):
            report = make_report(learned.learner, **facts)
    if report is not None and report_path is not None:
        report.save(report_path, force=options["force"])
    if report is not None and tripod_path is not None:
        is_page = tripod_path.suffix.lower() == ".html"
        write_text(tripod_path, report.to_tripod(as_html=is_page))
    if model_path is not None:
        check_free(model_path, force=options["force"])
        write_text(model_path, model_text)


def _make_model_file(learned: Learned, options: Options) -> str:
    """The model file; it says how the table was read, so that predict reads others alike."""
    from icscm.model.saved import make_saved_model

    saved = make_saved_model(learned.learner)
    settings = {**saved.settings, "table": _describe_table(learned, options)}
    return replace(saved, settings=settings).to_json()


def _describe_table(learned: Learned, options: Options) -> dict[str, Any]:
    """How the file was read, and the meaning of its columns."""
    roles = learned.roles
    description = {
        "target": roles.target,
        "positive": [str(value) for value in roles.positive],
        "environment": roles.environment,
        "environment_columns": list(roles.environment_columns),
        "exclude_environment": list(roles.exclude_environment),
        "merge_environments": list(roles.merge_environments),
        "na": list(options["na"]),
        "default_na": not options["no_default_na"],
        "format": learned.table_format,
        "decimal": options["decimal"] or ".",
    }
    if learned.is_packed and MODELS[options["model"]].is_rule:
        # many genes are present in the same genomes: each rule has others that say the same
        equivalents = [[str(rule) for rule in rules] for rules in learned.learner.equivalent_rules_]
        if equivalents:
            return {"equivalents": equivalents} | description
    return description


# --- what is printed ----------------------------------------------------------------


def print_fit(screen: Console, data: Path, learned: Learned, facts: dict[str, Any]) -> Options:
    """Print the data, the choice of --cv and the model; return its summary."""
    from icscm.report.content.learner import make_learner_content
    from icscm.report.documents.learner import write_document
    from icscm.report.summary import summarize
    from icscm.report.terminal import make_fact_table

    console.print_all(screen, [make_fact_table(_list_facts(data, learned))])
    if learned.choice is not None:
        from icscm.report.documents.grid_search import write_document as write_choice
        from icscm.validation.scores import TITLES

        choice = learned.choice
        document = write_choice(
            best=choice.best,
            tried=choice.tried,
            scores=choice.scores,
            baseline=choice.baseline,
            scorer=choice.scorer,
            title=TITLES.get(choice.scorer, choice.scorer),
            n_folds=choice.n_folds,
            folds=choice.folds,
            beats_baseline=choice.beats_baseline,
        )
        console.print_document(screen, document)
    screen.print()
    # the models at other levels are for reports only
    content = make_learner_content(learned.learner, **(facts | {"path": None}))
    console.print_document(screen, write_document(content, is_brief=True))
    screen.print()
    return summarize(content)


def _list_facts(data: Path, learned: Learned) -> list[Fact]:
    """The first lines: the data, dropped columns, the purpose of a tree, the threshold."""
    from icscm.estimators.tree import BaseTreeClassifier

    learner = learned.learner
    n_negative, n_positive = (sum(counts) for counts in learner.class_counts_)  # by environment
    # with weights a row counts several times, or not at all
    n_counted = n_negative + n_positive
    samples = learned.samples
    facts = console.list_data_facts(
        data,
        learned.roles,
        n_rows=n_counted if samples is None else len(samples.y),
        outcome=describe_positive(
            learned.roles.positive_text, n_positive=n_positive, n_rows=n_counted
        ),
        n_columns=learner.n_features_in_ - len(learner.dropped_columns_),
        n_environments=len(learner.environments_ or ()),
    )
    if learner.dropped_columns_:
        facts.append(Fact("Dropped", _describe_dropped(learner.dropped_columns_)))
    if isinstance(learner, BaseTreeClassifier):
        is_plain = learner.trace_.tolerance is None
        purpose = _PLAIN_PURPOSE if is_plain else _PURPOSES[learner.invariance]
        facts.append(Fact("Purpose", purpose))
    threshold = learner.model_.threshold
    if isinstance(threshold, Threshold):
        facts.append(Fact("Threshold", threshold.describe()))
    return facts


def _describe_dropped(dropped: dict[Any, str]) -> str:
    """The columns that were dropped, by reason."""
    columns_by_reason: dict[str, list[str]] = {}
    for column, reason in dropped.items():
        columns_by_reason.setdefault(as_text(reason), []).append(format_name(column))
    return "; ".join(
        f"{shorten_list(columns)}: {reason}" for reason, columns in columns_by_reason.items()
    )
