"""`icscm show`, `predict` and `export`: what can be done with a model file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, make_console, print_heading, print_note, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    check_outputs,
    force_option,
    quiet_option,
    read_data,
    reading_options,
)
from icscm.exceptions import IcscmError

if TYPE_CHECKING:
    import pyarrow
    from rich.console import Console

    from icscm.model.saved import SavedModel

# Environments of a leaf that are listed before it says how many more there are.
_N_SHOWN = 10

# Columns that predictions add.
_ADDED = ("probability", "class", "rule")


def _load(path: Path) -> SavedModel:
    from icscm.model.saved import load

    return load(path)


# Presence/absence tables: features in rows, genomes in columns.
GENOME_ENDINGS = (".bits", ".rtab", ".rtab.gz")


@main.command()
@click.argument("model", type=FILE)
@click.option("--all", "show_all", is_flag=True, help="Every environment of every leaf.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for other programs.")
def show(model: Path, show_all: bool, as_json: bool) -> None:
    """Show what is in a model file.

    The rule, its leaves with counts for each environment, the settings it was learned with, and
    with which version.

    \b
    Example:
      icscm show model.json
    """
    saved = _load(model)
    if as_json:
        click.echo(json.dumps(saved.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print_saved(make_console(), saved, None if show_all else _N_SHOWN)


def _print_saved(console: Console, saved: SavedModel, most: int | None) -> None:
    from icscm.report.errors import is_positive
    from icscm.report.terminal import (
        as_text,
        describe_errors,
        describe_guess,
        list_leaves,
        make_fact_table,
        make_leaf_detail,
    )

    rules, environments = saved.model, saved.environments or ("all",)
    console.print(make_fact_table([(a, as_text(b)) for a, b in _list_facts(saved)]))
    console.print()
    console.print(
        make_fact_table(
            [
                ("Rule", f"positive where {rules}" if rules.rules else str(rules)),
                ("Error", describe_errors(rules, environments)),
                ("", describe_guess(rules)),
            ]
        )
    )
    probabilities = rules.leaf_probabilities()
    for number, (text, counts) in enumerate(zip(list_leaves(rules), rules.leaves, strict=True)):
        verdict = saved.classes[int(is_positive(rules, number))]
        print_heading(console, f"Leaf {number + 1}: {text}")
        console.print(
            f"predicts {as_text(verdict)}; the probability of {as_text(saved.classes[1])} is "
            f"{probabilities[number]:.3f}"
        )
        console.print(make_leaf_detail(counts, environments, most))
        if most is not None and len(environments) > most:
            print_note(console, f"and {len(environments) - most:,} more; --all shows them")
    print_heading(console, "Settings")
    settings = [(as_text(a), as_text(b)) for a, b in saved.settings.items() if a != "table"]
    console.print(make_fact_table(settings))


def _list_facts(saved: SavedModel) -> list[tuple[str, str]]:
    from icscm.model.saved import get_table_settings
    from icscm.report.terminal import count
    from icscm.text import shorten_list

    used = list(dict.fromkeys(str(rule.feature) for rule in saved.model.rules))
    negative, positive = saved.classes
    told = get_table_settings(saved)
    return [
        ("Model", f"{saved.model.kind} of {count(len(saved.model.rules), 'rule')}"),
        *([("Target", _describe_target(told))] if told.get("target") else []),
        ("Classes", f"{positive} (positive) and {negative}"),
        ("Columns", f"{len(used)} used ({shorten_list(used) or 'none'}) of {len(saved.features)}"),
        ("Environments", _describe_environments(saved, told)),
        ("Version", f"icscm {saved.version}"),
    ]


def _describe_target(told: dict[str, Any]) -> str:
    positive = told.get("positive") or []
    values = f", positive where it is {' or '.join(map(str, positive))}" if positive else ""
    return f"{told['target']}{values}"


def _describe_environments(saved: SavedModel, told: dict[str, Any]) -> str:
    if saved.environments is None:
        return "none: nothing was tested for invariance"
    column = told.get("environment")
    return f"{len(saved.environments):,}{f', by {column}' if column else ''}"


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="Write predictions here: .csv, .tsv or .parquet.  [default: as CSV to standard output]",
)
@click.option(
    "--keep-columns",
    multiple=True,
    metavar="COLUMNS",
    help="Columns of DATA to carry over, such as an identifier: A,B. Repeatable.",
)
@force_option
@reading_options
@quiet_option
def predict(model: Path, data: Path, out: Path | None, quiet: bool, **options: Any) -> None:
    """Predict new rows with a model file.

    Writes one line for each row of DATA, in the same order: the probability of the positive
    class, the class that the rule predicts, and the rule that decided. Columns are found by
    name, in any order; only those in the model's rules are needed, and no environment is. Text
    that meant missing for fit (--na) does so here. DATA may also be a presence/absence table
    (.Rtab, genes in rows) or what icscm pack made of it; then each line names its genome.

    \b
    Example:
      icscm predict model.json new.csv --keep-columns id --out predictions.csv
    """
    from icscm.io.locating import describe_path
    from icscm.io.table_writing import check_output_kind, make_table_writer, write_text_table
    from icscm.writing import write_whole

    if out is not None:
        check_output_kind(out)
        check_outputs([out], force=options["force"], inputs=[model, data])
    saved = _load(model)
    progress = Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        table, kept = _read_rows(saved, data, options)
    with progress.stage(f"Predicting {table.num_rows:,} rows"):
        predictions = predict_table(saved, table, kept)
    if out is None:
        write_text_table(predictions, sys.stdout)
        return
    write_whole(out, make_table_writer(predictions, out))
    print_written(make_console(), out, f" ({predictions.num_rows:,} rows)")


def _read_rows(
    saved: SavedModel, data: Path, options: dict[str, Any]
) -> tuple[pyarrow.Table, list[str]]:
    """The table, with columns read as they were at fitting, and the names to carry over."""
    from icscm.io.locating import describe_path
    from icscm.io.naming import check_columns
    from icscm.io.samples import split_names

    where = describe_path(data)
    if data.name.lower().endswith(GENOME_ENDINGS):
        from icscm.sources.bits.opening import read_genomes

        return read_genomes(data, _list_used(saved)), ["genome"]
    table = read_data(data, _read_alike(saved, options), types=find_types(saved))
    check_columns(_list_used(saved), table.column_names, where)
    kept = split_names(options["keep_columns"], table.column_names, where)
    clash = [name for name in kept if name in _ADDED]
    if clash:
        raise IcscmError(
            f"{where} has a column {clash[0]!r}, as the predictions do; rename it to carry it over"
        )
    return table, kept


def _read_alike(saved: SavedModel, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with what meant missing, or a fraction, at fitting, if the file says so."""
    from icscm.model.saved import get_table_settings

    told = get_table_settings(saved)
    known = told.get("na")
    texts = [text for text in known if isinstance(text, str)] if isinstance(known, list) else []
    return options | {
        "na": (*options["na"], *texts),
        "no_default_na": options["no_default_na"] or told.get("default_na") is False,
        "decimal": options["decimal"] or ("," if told.get("decimal") == "," else "."),
    }


def _list_used(saved: SavedModel) -> list[str]:
    return list(dict.fromkeys(str(rule.feature) for rule in saved.model.rules))


def find_types(saved: SavedModel) -> dict[str, str]:
    """How a text file's columns must be read: as what the rules compare them with.

    A level knows what it is: text that looks like a number stays text, and True is no text.
    """
    from icscm.io.formats import BOOLEAN, CATEGORY, NUMBER
    from icscm.model.rules import CategoryRule, ThresholdRule

    types = {
        str(each.name): each.type for each in saved.features if each.type in (NUMBER, CATEGORY)
    }
    for rule in saved.model.rules:
        if isinstance(rule, ThresholdRule):
            types[str(rule.feature)] = NUMBER
        elif isinstance(rule, CategoryRule):
            kinds = {type(level) for level in rule.levels}
            name = {bool: BOOLEAN, int: NUMBER, float: NUMBER}.get(min(kinds, key=str), CATEGORY)
            types[str(rule.feature)] = name if len(kinds) == 1 else CATEGORY
    used = set(_list_used(saved))
    return {name: kind for name, kind in types.items() if name in used}


def predict_table(saved: SavedModel, table: pyarrow.Table, kept: list[str]) -> pyarrow.Table:
    """What was carried over, the probability, the class and the rule that decided."""
    import pyarrow

    decisions = saved.decide(table)
    added = (
        pyarrow.array(decisions.probability),
        pyarrow.array(decisions.prediction.tolist()),
        pyarrow.array(decisions.decided_by.tolist(), type=pyarrow.string()),
    )
    columns = {name: table.column(name) for name in kept}
    return pyarrow.table(columns | dict(zip(_ADDED, added, strict=True)))


@main.command()
@click.argument("model", type=FILE)
@click.option(
    "--to",
    required=True,
    type=click.Choice(["sql", "python", "json", "text"]),
    help="sql: a SELECT for SQLite, DuckDB and others. python: a function without imports. json: "
    "rules and leaves. text: the rule in words.",
)
@click.option(
    "--table",
    default="data",
    show_default=True,
    metavar="NAME",
    help="For sql: the table to select from.",
)
@click.option("--schema", metavar="NAME", help="For sql: the schema of the table.  [default: none]")
@click.option(
    "--out", type=FILE, metavar="FILE", help="Write it here.  [default: to standard output]"
)
@force_option
def export(
    model: Path, to: str, table: str, schema: str | None, out: Path | None, force: bool
) -> None:
    """Turn a model file into code that predicts without this package.

    The code predicts exactly what `icscm predict` does, missing values included: texts that meant
    missing for fit do so in the code.

    \b
    Example:
      icscm export model.json --to sql --table patients --out model.sql
    """
    from icscm.export import export_model
    from icscm.writing import write_text

    if schema is not None and to != "sql":
        raise IcscmError("--schema is for --to sql")
    check_outputs([out], force=force, inputs=[model])
    text = export_model(_load(model), to, table=table, schema=schema)
    text = text if text.endswith("\n") else f"{text}\n"
    if out is None:
        click.echo(text, nl=False)
        return
    write_text(out, text)
    print_written(make_console(), out)
