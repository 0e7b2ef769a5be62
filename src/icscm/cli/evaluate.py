"""`icscm evaluate`: a model file on rows that it was not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from icscm._types import Array
from icscm.cli.console import Progress, make_console, print_all, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    check_outputs,
    flag,
    force_option,
    read_data,
    reading_options,
    value,
)
from icscm.cli.predict import GENOME_ENDINGS, find_types, read_alike
from icscm.exceptions import IcscmError
from icscm.formatting import count, shorten_list
from icscm.io.formats import CATEGORY, describe_path, name_data
from icscm.io.naming import check_columns, index_texts, suggest
from icscm.io.roles import Labelling, Roles, find_labelling, split_names, tally_roles
from icscm.writing import write_text

if TYPE_CHECKING:
    import pyarrow

    from icscm.model.saved import SavedModel
    from icscm.studies.evaluation import Evaluation


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@value("--target COLUMN", "The true outcome.  [default: as for fit]")
@value(
    "--environment COLUMN",
    "Where each row comes from; they may be new ones; A,B joins columns.  [default: as for fit, "
    "where DATA has it]",
)
@value(
    "--positive VALUE",
    "A value of the target that counts as positive, all others being negative. Repeatable.  "
    "[default: as for fit]",
    multiple=True,
)
@flag(
    "--drop-missing",
    "Leave out rows in which target or environment is missing, instead of stopping.",
)
@value("--report FILE", "Write a page to read here, with plots: .html.", FILE)
@flag("--all show_all", "Every environment, not only the worst and the best.")
@flag("--json as_json", "As JSON, for other programs.")
@value(
    "--labels FILE",
    "For DATA of genomes (.bits, .Rtab): the table of target and environment, a row a genome.  "
    "[default: DATA has them]",
    FILE,
)
@value("--sample-column COLUMN", "Of --labels: the genomes' names.  [default: its first column]")
@force_option
@reading_options
def evaluate(
    model: Path, data: Path, show_all: bool, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Judge a model file on rows that it was not learned from.

    Error, balanced accuracy, sensitivity, specificity, PPV, NPV, AUC, Brier score and log loss
    with their 95 % intervals, in all and for each environment, beside those of the constant:
    always the class that was more frequent in training. For each leaf, whether the rate of
    positives is still what it was, and in environments never seen in training whether it is where
    95 % of such rates were to be expected. A model no better than the constant is called that
    first.

    Columns are found by name, as for icscm predict. Environments may be new ones, or none.

    \b
    Example:
      icscm evaluate model.json next-year.csv --report evaluation.html
    """
    from icscm.formatting import dump_json
    from icscm.model.saved import load
    from icscm.report.validation import N_LISTED, render_validation
    from icscm.studies.evaluation import evaluate as judge

    report = options["report"]
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise IcscmError(f"{report} must end in .html; --json gives the same as data")
    check_outputs([report], force=options["force"], inputs=[model, data])
    saved, progress = load(model), Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        rows = _read_rows(saved, data, options)
    with progress.stage(f"Evaluating on {rows.X.num_rows:,} rows"):
        found = judge(saved, rows.X, rows.y, rows.environments)
        found = replace(
            found,
            target=rows.labelling.target,
            environment=rows.labelling.environment,
            data=name_data(data),
            notes=(*found.notes, *rows.notes),
            **_name_classes(saved, found, rows.labelling),
        )
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


class _Rows(NamedTuple):
    """New rows, taken apart, what their labels are called, and what to say of them."""

    X: pyarrow.Table
    y: Array
    environments: Array | None
    labelling: Labelling
    notes: list[str]


def _read_rows(saved: SavedModel, data: Path, options: dict[str, Any]) -> _Rows:
    """Features, labels and environments of a file, read as the model's table was."""
    from icscm.model.saved import get_table_settings, list_used

    told, notes = get_table_settings(saved), []
    target = options["target"] or told.get("target")
    if not isinstance(target, str):
        raise IcscmError("the model file does not name the target; name it with --target")
    positive = options["positive"] or _list_texts(told.get("positive"))
    places = [options["environment"]]
    if options["environment"] is None:
        places = list(_list_texts(told.get("environment_columns") or [told.get("environment")]))
    types = _find_label_types(saved, target, places, has_positive=bool(positive))
    table, where = _read_table(saved, data, options, types), describe_path(data)
    if options["environment"] is not None:
        places = split_names(places, table.column_names, where)
    elif absent := [name for name in places if name not in table.column_names]:
        notes.append(f"There is no column {absent[0]!r}, so no environments are distinguished.")
        places = []
    may_drop = options["drop_missing"]
    roles = Roles(target=target, places=tuple(places), positive=positive, drop_missing=may_drop)
    check_columns([*list_used(saved), *roles.columns], table.column_names, where)
    tally = tally_roles(table, roles)
    known = index_texts(list(tally.labels))
    if unknown := [text for text in options["positive"] if text not in known]:
        near = suggest(unknown[0], list(known))
        raise IcscmError(f"the target {target!r} is never {unknown[0]!r}{near}")
    labelling = find_labelling([tally], roles, is_new=True)
    if labelling.n_dropped:
        n_rows = count(labelling.n_dropped, "row")
        notes.append(f"Dropped: {n_rows} without target or environment.")
    table = labelling.apply(table)
    y = _list_values(table, target)
    if positive:
        y = _make_labels([saved.classes[label is True] for label in y.tolist()])
        others = labelling.negative or tuple(sorted(tally.labels, key=str))
        labelling = replace(labelling, positive=positive, negative=others)
    environments = _list_values(table, roles.environment) if roles.environment else None
    return _Rows(table, y, environments, labelling, notes)


def _list_texts(told: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in told if each is not None) if isinstance(told, list) else ()


def _find_label_types(
    saved: SavedModel, target: str, places: Sequence[str], *, has_positive: bool
) -> dict[str, str]:
    """Labels that were text are read as text: 07 is no 7, even where all look like numbers."""
    types = {}
    if not has_positive and all(isinstance(label, str) for label in saved.classes):
        types[target] = CATEGORY
    labels = saved.environments or ()
    if len(places) == 1 and labels and all(isinstance(each, str) for each in labels):
        types[places[0]] = CATEGORY
    return types


def _read_table(
    saved: SavedModel, data: Path, options: dict[str, Any], types: dict[str, str]
) -> pyarrow.Table:
    """The rows, with columns read as they were at fitting."""
    alike, labels = read_alike(saved, options), options["labels"]
    is_packed = data.name.lower().endswith(GENOME_ENDINGS)
    if is_packed == (labels is None):
        raise IcscmError(
            f"{data} holds genomes and needs --labels, the table of target and environment"
            if is_packed
            else f"--labels is for genomes (.bits, .Rtab); {data} has its own target"
        )
    if not is_packed:
        return read_data(data, alike, types=find_types(saved) | types)
    from icscm.model.saved import list_used
    from icscm.sources.bits.opening import read_genomes

    used = list_used(saved)
    genomes, table = read_genomes(data, used), read_data(labels, alike, types=types)
    column = options["sample_column"] or table.column_names[0]
    check_columns([column], table.column_names, describe_path(labels))
    place = {name: i for i, name in enumerate(genomes.column("genome").to_pylist())}
    names = [str(name) for name in table.column(column).to_pylist()]
    absent = [repr(name) for name in names if name not in place]
    if absent:
        raise IcscmError(
            f"{labels} names genomes that {data} does not hold: {shorten_list(absent)}"
        )
    genes = genomes.take([place[name] for name in names])
    for gene in used:
        table = table.append_column(gene, genes.column(gene))
    return table


def _list_values(table: pyarrow.Table, name: str) -> Array:
    return _make_labels(table.column(name).to_pylist())


def _make_labels(labels: list[Any]) -> Array:
    """As they are: NumPy would make one type of them."""
    values = np.empty(len(labels), dtype=object)
    values[:] = labels
    return values


def _name_classes(saved: SavedModel, found: Evaluation, labelling: Labelling) -> dict[str, Any]:
    """What the classes are called where True and False stand for several values."""
    names = labelling.class_names
    if names is None:
        return {}
    classes = names[0] or "anything else", names[1]
    return {"classes": classes, "baseline": classes[saved.classes.index(found.baseline)]}
