"""Commands on a model file: `icscm show`, `export`, `predict`, `evaluate`, `recalibrate`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from icscm._lazy import postpone_imports, postpone_pandas
from icscm._types import Array
from icscm.cli import console, shared
from icscm.cli.group import main
from icscm.cli.shared import FILE, Options, add_options, check_outputs
from icscm.exceptions import IcscmError, reject_unknown
from icscm.formatting import count, make_plain
from icscm.io import formats
from icscm.io.formats import CATEGORY, describe_path
from icscm.io.naming import check_columns, index_texts, suggest
from icscm.io.roles import Roles, find_labelling, read_groups, split_names, tally_roles
from icscm.writing import STDOUT, write_text

if TYPE_CHECKING:
    import pyarrow
    from rich.console import RenderableType

    from icscm.model.saved import SavedModel

# Environments of a leaf that `show` lists without --all.
_N_SHOWN = 10
# How a text column must be read for levels of a type; others are text.
_KINDS = {bool: formats.BOOLEAN, int: formats.NUMBER, float: formats.NUMBER}
# Advice where a threshold would need labels.
_UNLABELLED = "needs labelled rows; choose it with icscm fit, or give a number or costs=1:10"


@main.command()
@click.argument("model", type=FILE)
@add_options("all", "fasta")
def show(model: Path, show_all: bool, fasta: bool) -> Options:
    """Show a model file.

    The model with its errors, its leaves with counts for each environment and the prediction
    interval for a new environment; the settings it was learned with, and with which version.

    \b
    Example:
      icscm show model.json
    """
    from icscm.model.saved import load

    if fasta and (console.is_json() or show_all):
        raise IcscmError("--fasta shows sequences only; omit --json and --all")
    postpone_imports()
    saved = load(model)
    if fasta:
        from icscm.export.documents import export_fasta

        console.open_output().write(export_fasta(saved))
    else:
        shown = render_saved(saved, None if show_all else _N_SHOWN)
        console.print_all(console.make_console(), shown)
    return saved.to_dict()


def render_saved(saved: SavedModel, most: int | None) -> Iterator[RenderableType]:
    """A model file, up to so many environments of each leaf; None is all, and all leaves."""
    from icscm.model.forest import Forest, describe_size
    from icscm.model.saved import get_table_settings, list_used
    from icscm.model.splits import CHAINS
    from icscm.report.content.errors import make_errors
    from icscm.report.content.leaves import make_leaves
    from icscm.report.content.model import ModelSize, find_noun
    from icscm.report.formatting import make_names
    from icscm.report.wording.headline import list_facts

    model, is_chain = saved.model, saved.model.kind in CHAINS
    names = make_names(saved.environments or ("all",), saved.classes)
    size, facts = describe_size(model), []
    leaves: list[Any] = []
    if not isinstance(model, Forest):
        leaves = make_leaves(model, names)
        described = ModelSize(
            noun=find_noun(model),
            text=str(model),
            n_rules=len(model.rules),
            threshold=model.threshold,
        )
        errors = make_errors(model, names, saved.settings.get("p", 1.0))
        facts = list_facts(described, errors, leaves, name=size)
        leaves = list(zip(leaves, model.leaf_probabilities().tolist(), strict=True))
    table = get_table_settings(saved)
    content = {
        "saved": saved,
        "table": table,
        "positive": table.get("positive", ()),
        "used": list_used(saved),
        "size": size,
        "names": names,
        "is_chain": is_chain,
        "facts": facts,
        "leaves": leaves,
        "trees": getattr(model, "trees", ()),
        "most": most,
    }
    return console.render("saved.md", content)


@main.command()
@click.argument("model", type=FILE)
@add_options("to", "threshold", "table", "schema", "out", "force")
def export(
    model: Path, to: str, threshold: str | None, out: Path | None, force: bool, **how: Any
) -> Options | None:
    """Export a model file as SQL, Python, R, JSON or text.

    The code works without this package and predicts exactly what `icscm predict` does, missing
    values included: text declared missing for fit is missing in the code, too.

    \b
    Example:
      icscm export model.json --to sql --table patients --out model.sql
    """
    from icscm.export import export_model

    if how["schema"] is not None and to != "sql":
        raise IcscmError("--schema is for --to sql")
    out = None if out == STDOUT else out
    check_outputs([out], force=force, inputs=[model])
    text = export_model(load_model(model, threshold), to, **how)
    text = text if text.endswith("\n") else f"{text}\n"
    if out is None and not console.is_json():
        console.open_output().write(text)
    elif out is not None:
        write_text(out, text)
        console.print_written(out)
    return {"to": to, "text": text} if out is None else None


def load_model(path: Path, threshold: str | None) -> SavedModel:
    """The model in a file, with another threshold if one is given."""
    from icscm.model.saved import load
    from icscm.model.thresholds import fix_threshold

    cut = None if threshold is None else fix_threshold(threshold, _UNLABELLED)
    saved = load(path)
    return saved if cut is None else saved.set_threshold(cut)


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@add_options("out", "threshold", "keep_columns", "safe_csv", "force", *shared.READING)
def predict(
    model: Path, data: Path, out: Path | None, safe_csv: bool, quiet: bool, **options: Any
) -> Options | None:
    """Predict new rows with a model file.

    Writes one line for each row of DATA, in the same order, with the columns of exports: the class
    (prediction), the probability of the positive class, and what decided (decided_by): a rule, a
    leaf, the trees or the total of points, and values that were never missing for fit but are here.
    Columns are found by name, in any order; only those in the model's rules are needed, and no
    environment is. Text declared missing for fit (--na) is missing here, too. DATA may also be a
    presence/absence table (.Rtab, genes in rows) or a store that icscm pack made; then each line
    names its genome.

    Names and texts are written as DATA has them; only on a terminal are characters that do not
    print escaped. Spreadsheets read text that begins with =, +, - or @ as a formula: if DATA comes
    from others, --safe-csv puts an apostrophe before such text; numbers stay unchanged.

    \b
    Example:
      icscm predict model.json new.csv --keep-columns id --out predictions.csv
    """
    import pyarrow

    postpone_pandas()
    out = None if out == STDOUT else out
    if out is not None:
        formats.check_output_kind(out)
        if safe_csv and out.suffix.lower() in formats.PARQUET_ENDINGS:
            raise IcscmError("--safe-csv is for .csv and .tsv; Parquet files hold no formulas")
        check_outputs([out], force=options["force"], inputs=[model, data])
    saved, progress = load_model(model, options["threshold"]), console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        table, kept = _read_table(saved, data, options)
    with progress.stage(f"Predicting {table.num_rows:,} rows"):
        decisions = saved.decide(table)
    columns = {name: table.column(name) for name in kept}
    columns |= {name: each.tolist() for name, each in decisions._asdict().items()}
    predictions = pyarrow.table(columns)
    if safe_csv:
        predictions = formats.disarm_formulas(predictions)
    if out is not None:
        formats.write_table(predictions, out)
        console.print_written(out, more=f" ({predictions.num_rows:,} rows)")
    elif console.is_json():
        return {"predictions": make_plain(predictions.to_pylist(), str)}
    else:
        formats.write_text_table(predictions, console.open_output())
    return None


def _read_table(saved: SavedModel, data: Path, options: Options) -> tuple[pyarrow.Table, list[str]]:
    """The table, with columns read as they were at fitting, and the names to carry over."""
    from icscm.model.calibration import Decisions
    from icscm.model.saved import list_used

    where = describe_path(data)
    if data.name.lower().endswith(shared.GENOME_ENDINGS):
        from icscm.sources.bits.opening import read_genomes

        delimiter = shared.read_delimiter(options["delimiter"])
        return read_genomes(data, list_used(saved), delimiter), ["genome"]
    table = read_alike(saved, data, options, find_types(saved))
    check_columns(list_used(saved), table.column_names, where)
    kept = split_names(options["keep_columns"], table.column_names, where)
    for name in kept:
        if name in Decisions._fields:
            why = f"{where} and the predictions both have a column {name!r}"
            raise IcscmError(f"{why}; rename it to keep it")
    return table, kept


def read_alike(
    saved: SavedModel, path: Path, options: Options, types: dict[str, str]
) -> pyarrow.Table:
    """A file, with the settings for missing values and decimals of the model's own table."""
    from icscm.model.saved import get_table_settings, list_missing_texts

    settings = get_table_settings(saved)
    alike = options | {
        "na": (*options["na"], *list_missing_texts(settings)),
        "no_default_na": options["no_default_na"] or settings.get("default_na") is False,
        "decimal": options["decimal"] or ("," if settings.get("decimal") == "," else "."),
    }
    return shared.read_data(path, alike, types=types)


def find_types(saved: SavedModel) -> dict[str, str]:
    """How a text file's columns must be read: as the rules compare them.

    Levels keep their types: text that looks like a number stays text, and True is not text.
    """
    from icscm.model.rules import CategoryRule, ThresholdRule
    from icscm.model.saved import list_used

    kept = formats.NUMBER, CATEGORY
    types = {str(each.name): each.type for each in saved.features if each.type in kept}
    for rule in saved.model.rules:
        if isinstance(rule, ThresholdRule):
            types[str(rule.feature)] = formats.NUMBER
        elif isinstance(rule, CategoryRule):
            kinds = {type(level) for level in rule.levels}
            kind = _KINDS.get(type(rule.levels[0]), CATEGORY)
            types[str(rule.feature)] = kind if len(kinds) == 1 else CATEGORY
    used = set(list_used(saved))
    return {name: kind for name, kind in types.items() if name in used}


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@add_options("target", "environment", "group", "positive", "drop_missing", "threshold")
@add_options("report", "all")
@add_options(*shared.LABELS, "force", *shared.READING)
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
    from icscm.report.validation import N_LISTED, render_validation
    from icscm.validation.evaluation import evaluate as evaluate_model

    report = options["report"]
    shared.check_ending(report, ".html", ".htm")
    check_outputs([report], force=options["force"], inputs=[model, data])
    saved, progress = load(model), console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        table, y, labels, notes = _read_rows(saved, data, options)
    with progress.stage(f"Evaluating on {table.num_rows:,} rows"):
        environments = labels.environment and _list_values(table, labels.environment)
        groups = labels.group and read_groups(table, labels.group)
        found = evaluate_model(
            saved,
            table,
            y,
            environments=environments,
            groups=groups,
            threshold=options["threshold"],
        )
        names: Options = {"target": labels.target, "environment": labels.environment}
        names["data"] = formats.name_data(data)
        found = replace(found, **names, notes=(*found.notes, *notes))
        if labels.class_names is not None:  # where True and False stand for several values
            classes = labels.class_names[0] or "anything else", labels.class_names[1]
            baseline = classes[saved.classes.index(found.baseline)]
            found = replace(found, classes=classes, baseline=baseline)
    if report is not None:
        write_text(report, found.to_html())
    screen = console.make_console()
    console.print_all(screen, render_validation(found.to_dict(), None if show_all else N_LISTED))
    if report is not None:
        screen.print()
        console.print_written(report)
    return found.to_dict()


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE, required=False)
@add_options("out", "target", "positive", "prevalence", "drop_missing")
@add_options(*shared.LABELS, "force", *shared.READING)
def recalibrate(
    model: Path, data: Path | None, out: Path, prevalence: float | None, quiet: bool, **options: Any
) -> Options:
    """Recalibrate a model file for a site.

    From a few rows of the site with their outcome, or from its base rate. The intercept of the log
    odds is shifted; the rules or splits stay the same. The shift is printed with its 95% interval
    and saved in the file. It is shrunk towards 0 where rows are few; from 100 rows of each class
    upwards the slope is estimated, too.

    \b
    Examples:
      icscm recalibrate model.json site.csv --out site-model.json
      icscm recalibrate model.json --prevalence 0.12 --out site-model.json
    """
    from icscm.model.recalibration import Shift
    from icscm.model.saved import load

    if data is None and prevalence is None:
        raise IcscmError("give DATA (rows of the site with their outcome) or --prevalence")
    if prevalence is not None and (options["target"] or options["positive"]):
        raise IcscmError("with --prevalence no outcome is read: omit --target and --positive")
    check_outputs([out], force=options["force"], inputs=[model, *([data] if data else [])])
    saved, progress = load(model), console.Progress(quiet=quiet)
    rows: tuple[Any, Any] = (None, None)
    if data is not None:
        with progress.stage(f"Reading {describe_path(data)}"):
            own = options | {"environment": None, "group": None, "keep_columns": ()}
            if prevalence is None:
                rows = _read_rows(saved, data, own)[:2]
            else:
                rows = _read_table(saved, data, own)[0], None
    moved = saved.recalibrate(*rows, prevalence=prevalence)
    write_text(out, moved.to_json())
    screen, shift = console.make_console(stderr=out == STDOUT), moved.settings["recalibration"]
    screen.print(str(Shift(**shift)))
    console.print_written(out)
    return {"recalibration": shift}


def _read_rows(
    saved: SavedModel, data: Path, options: Options
) -> tuple[pyarrow.Table, Array, Roles, list[str]]:
    """The table, its labels and roles, and notes; read as the model's table was."""
    from icscm.model.saved import get_table_settings, list_used

    settings, notes, where = get_table_settings(saved), [], describe_path(data)
    target = options["target"] or settings.get("target")
    if not isinstance(target, str):
        raise IcscmError("the model file does not name the target; name it with --target")
    positive = options["positive"] or tuple(settings.get("positive", ()))
    places = [options["environment"]]
    if options["environment"] is None:
        stored = settings.get("environment_columns") or [settings.get("environment")]
        places = [name for name in stored if name is not None]
    types = {}  # labels that were text are read as text: 07 is not 7
    if not positive and all(isinstance(label, str) for label in saved.classes):
        types[target] = CATEGORY
    known_places = saved.environments or ()
    if len(places) == 1 and known_places and all(isinstance(each, str) for each in known_places):
        types[places[0]] = CATEGORY
    table = _read_columns(saved, data, options, types)
    if options["environment"] is not None:
        places = split_names(places, table.column_names, where)
    elif absent := [name for name in places if name not in table.column_names]:
        notes.append(f"There is no column {absent[0]!r}, so no environments are distinguished.")
        places = []
    own = {"positive": positive, "drop_missing": options["drop_missing"]}
    roles = Roles(target=target, places=tuple(places), group=options["group"], **own)
    check_columns([*list_used(saved), *roles.columns], table.column_names, where)
    tally = tally_roles(table, roles)
    known = index_texts(key[0] for key in tally if None not in key)
    if unknown := [text for text in options["positive"] if text not in known]:
        near = suggest(unknown[0], list(known))
        raise IcscmError(f"the target {target!r} has no value {unknown[0]!r}{near}")
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


def _list_values(table: pyarrow.Table, name: str) -> Array:
    """The labels as they are: NumPy would give them one type."""
    return np.array(table.column(name).to_pylist(), dtype=object)


def _read_columns(
    saved: SavedModel, data: Path, options: Options, types: dict[str, str]
) -> pyarrow.Table:
    """The rows, with columns read as they were at fitting."""
    labels = options["labels"]
    if not shared.check_labels(data, labels, shared.GENOME_ENDINGS):
        return read_alike(saved, data, options, find_types(saved) | types)
    from icscm.model.saved import list_used
    from icscm.sources.bits.opening import read_genomes

    used = list_used(saved)
    genomes, table = read_genomes(data, used), read_alike(saved, labels, options, types)
    column = options["sample_column"] or table.column_names[0]
    check_columns([column], table.column_names, describe_path(labels))
    place = {name: i for i, name in enumerate(genomes.column("genome").to_pylist())}
    names = [str(name) for name in table.column(column).to_pylist()]
    reject_unknown(names, place, f"{labels} names genomes that {data} does not hold: ")
    genes = genomes.take([place[name] for name in names])
    for gene in used:
        table = table.append_column(gene, genes.column(gene))
    return table
