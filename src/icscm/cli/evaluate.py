"""`icscm evaluate`: a model file on rows that it was not learned from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.group import main
from icscm.cli.model_files import LabelledRows, list_values, read_labelled_rows
from icscm.cli.options import FILE, LABELS, READING, Options, add_options
from icscm.io import locating
from icscm.io.locating import describe_path
from icscm.io.roles import read_groups, read_weights_of_rows
from icscm.writing import write_text

if TYPE_CHECKING:
    from icscm.model.saved import SavedModel
    from icscm.validation.evaluation import Evaluation


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@add_options("target", "environment", "group", "weight", "positive", "drop_missing", "threshold")
@add_options("report", "all", *LABELS, "force", *READING)
def evaluate(model: Path, data: Path, show_all: bool, quiet: bool, **options: Any) -> Options:
    """Evaluate a model file on rows that it was not learned from.

    AUC, calibration slope and intercept, Brier score, log loss, and at a threshold error,
    balanced accuracy, sensitivity, specificity, PPV and NPV, with their 95% intervals, overall and
    for each environment, next to those of the majority-class baseline of training. For each leaf,
    whether the rate of positives differs from that in training, and whether the rates in new
    environments are within their 95% prediction interval. The report draws calibration and decision
    curves.

    Columns are found by name, as for icscm predict. Environments may be new, or absent.

    \b
    Example:
      icscm evaluate model.json next-year.csv --report evaluation.html
    """
    from icscm.model.saved import load
    from icscm.report.evaluation import N_LISTED, render_evaluation

    report = options["report"]
    files.check_ending(report, ".html", ".htm")
    files.check_outputs([report], force=options["force"], inputs=[model, data])

    saved = load(model)
    progress = console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        rows = read_labelled_rows(saved, data, options)
    with progress.stage(f"Evaluating on {rows.table.num_rows:,} rows"):
        evaluation = _evaluate_rows(saved, rows, threshold=options["threshold"])
    evaluation = replace(evaluation, data=locating.name_data(data))

    if report is not None:
        write_text(report, evaluation.to_html())
    screen = console.make_console()
    n_listed = None if show_all else N_LISTED
    console.print_all(screen, render_evaluation(evaluation.make_content(), n_listed))
    if report is not None:
        screen.print()
        console.print_written(report)
    return evaluation.to_dict()


def _evaluate_rows(saved: SavedModel, rows: LabelledRows, threshold: str | None) -> Evaluation:
    """Evaluate the model, with the names that columns and classes have in the table."""
    from icscm.validation.evaluation import evaluate as evaluate_model

    roles = rows.roles
    evaluation = evaluate_model(
        saved,
        rows.table,
        rows.y,
        environments=list_values(rows.table, roles.environment) if roles.environment else None,
        groups=read_groups(rows.table, roles.group) if roles.group else None,
        sample_weight=read_weights_of_rows(rows.table, roles.weight) if roles.weight else None,
        threshold=threshold,
    )
    evaluation = replace(
        evaluation,
        target=roles.target,
        environment=roles.environment,
        notes=(*evaluation.notes, *rows.notes),
    )
    if roles.class_names is None:
        return evaluation

    # The model predicts True or False, each of which stands for several values of the target.
    negative, positive = roles.class_names
    classes = (negative or "anything else", positive)
    baseline = classes[saved.classes.index(evaluation.baseline)]
    return replace(evaluation, classes=classes, baseline=baseline)
