"""`icscm evaluate`: a model file on rows that it was not learned from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from icscm._types import Array
from icscm.cli.console import Progress, make_console, print_all, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    GENOME_ENDINGS,
    LABELS,
    READING,
    add_options,
    check_ending,
    check_labels,
    check_outputs,
)
from icscm.cli.predict import find_types, read_alike
from icscm.exceptions import IcscmError
from icscm.formatting import count, shorten_list
from icscm.io.formats import CATEGORY, describe_path, name_data
from icscm.io.naming import check_columns, index_texts, suggest
from icscm.io.roles import Roles, find_labelling, split_names, tally_roles
from icscm.writing import write_text

if TYPE_CHECKING:
    import pyarrow

    from icscm.model.saved import SavedModel


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@add_options("target", "environment", "positive", "drop_missing", "report", "all", "json")
@add_options(*LABELS, "force", *READING)
def evaluate(
    model: Path, data: Path, show_all: bool, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Evaluate a model file on rows that it was not learned from.

    Error, balanced accuracy, sensitivity, specificity, PPV, NPV, AUC, Brier score and log loss
    with their 95% intervals, overall and for each environment, beside those of the majority-class
    baseline of training. For each leaf, whether the rate of positives differs from that of
    training, and whether the rates in new environments are within their 95% prediction interval.

    Columns are found by name, as for icscm predict. Environments may be new, or absent.

    \b
    Example:
      icscm evaluate model.json next-year.csv --report evaluation.html
    """
    from icscm.formatting import dump_json
    from icscm.model.saved import load
    from icscm.report.validation import N_LISTED, render_validation
    from icscm.studies.evaluation import evaluate as evaluate_model

    report = options["report"]
    check_ending(report, ".html", ".htm")
    check_outputs([report], force=options["force"], inputs=[model, data])
    saved, progress = load(model), Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        table, y, labels, notes = _read_rows(saved, data, options)
    with progress.stage(f"Evaluating on {table.num_rows:,} rows"):
        environments = labels.environment and _list_values(table, labels.environment)
        found = evaluate_model(saved, table, y, environments)
        found = replace(
            found,
            target=labels.target,
            environment=labels.environment,
            data=name_data(data),
            notes=(*found.notes, *notes),
        )
        if labels.class_names is not None:  # where True and False stand for several values
            classes = labels.class_names[0] or "anything else", labels.class_names[1]
            baseline = classes[saved.classes.index(found.baseline)]
            found = replace(found, classes=classes, baseline=baseline)
    if report is not None:
        write_text(report, found.to_html())
    if as_json:
        click.echo(dump_json(found.to_dict(), indent=2))
        return
    console = make_console()
    print_all(console, render_validation(found.to_dict(), None if show_all else N_LISTED))
    if report is not None:
        console.print()
        print_written(console, report)


def _read_rows(
    saved: SavedModel, data: Path, options: dict[str, Any]
) -> tuple[pyarrow.Table, Array, Roles, list[str]]:
    """The table, its labels, what these mean, and notes; read as the model's table was."""
    from icscm.model.saved import get_table_settings, list_used

    settings, notes, where = get_table_settings(saved), [], describe_path(data)
    target = options["target"] or settings.get("target")
    if not isinstance(target, str):
        raise IcscmError("the model file does not name the target; name it with --target")
    positive = options["positive"] or _list_texts(settings.get("positive"))
    places = [options["environment"]]
    if options["environment"] is None:
        stored = settings.get("environment_columns") or [settings.get("environment")]
        places = list(_list_texts(stored))
    types = {}  # labels that were text are read as text: 07 is not 7
    if not positive and all(isinstance(label, str) for label in saved.classes):
        types[target] = CATEGORY
    known_places = saved.environments or ()
    if len(places) == 1 and known_places and all(isinstance(each, str) for each in known_places):
        types[places[0]] = CATEGORY
    table = _read_table(saved, data, options, types)
    if options["environment"] is not None:
        places = split_names(places, table.column_names, where)
    elif absent := [name for name in places if name not in table.column_names]:
        notes.append(f"There is no column {absent[0]!r}, so no environments are distinguished.")
        places = []
    may_drop = options["drop_missing"]
    roles = Roles(target=target, places=tuple(places), positive=positive, drop_missing=may_drop)
    check_columns([*list_used(saved), *roles.columns], table.column_names, where)
    tally = tally_roles(table, roles)
    known = index_texts(key[0] for key in tally if None not in key)
    if unknown := [text for text in options["positive"] if text not in known]:
        near = suggest(unknown[0], list(known))
        raise IcscmError(f"the target {target!r} is never {unknown[0]!r}{near}")
    labels = find_labelling([tally], roles, is_new=True)
    if labels.n_dropped:
        notes.append(f"Dropped: {count(labels.n_dropped, 'row')} without target or environment.")
    table = labels.apply(table)
    y = _list_values(table, target)
    if positive:
        y = np.array([saved.classes[label is True] for label in y.tolist()], dtype=object)
        others = labels.negative or tuple(sorted(set(known.values()), key=str))
        labels = replace(labels, positive=positive, negative=others)
    return table, y, labels, notes


def _list_texts(stored: Any) -> tuple[str, ...]:
    is_list = isinstance(stored, list)
    return tuple(str(each) for each in stored if each is not None) if is_list else ()


def _list_values(table: pyarrow.Table, name: str) -> Array:
    """The labels as they are: NumPy would give them one type."""
    return np.array(table.column(name).to_pylist(), dtype=object)


def _read_table(
    saved: SavedModel, data: Path, options: dict[str, Any], types: dict[str, str]
) -> pyarrow.Table:
    """The rows, with columns read as they were at fitting."""
    labels = options["labels"]
    if not check_labels(data, labels, GENOME_ENDINGS):
        return read_alike(saved, data, options, find_types(saved) | types)
    from icscm.model.saved import list_used
    from icscm.sources.bits.opening import read_genomes

    used = list_used(saved)
    genomes, table = read_genomes(data, used), read_alike(saved, labels, options, types)
    column = options["sample_column"] or table.column_names[0]
    check_columns([column], table.column_names, describe_path(labels))
    place = {name: i for i, name in enumerate(genomes.column("genome").to_pylist())}
    names = [str(name) for name in table.column(column).to_pylist()]
    if absent := [repr(name) for name in names if name not in place]:
        raise IcscmError(
            f"{labels} names genomes that {data} does not hold: {shorten_list(absent)}"
        )
    genes = genomes.take([place[name] for name in names])
    for gene in used:
        table = table.append_column(gene, genes.column(gene))
    return table
