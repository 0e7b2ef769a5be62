"""`icscm predict`: new rows, by a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, make_console, open_output, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    OUTPUT,
    check_outputs,
    flag,
    force_option,
    read_data,
    read_delimiter,
    reading_options,
    value,
)
from icscm.exceptions import IcscmError
from icscm.io.formats import (
    BOOLEAN,
    CATEGORY,
    NUMBER,
    PARQUET_ENDINGS,
    check_output_kind,
    describe_path,
    disarm_formulas,
    write_table,
    write_text_table,
)
from icscm.io.naming import check_columns
from icscm.io.roles import split_names
from icscm.writing import STDOUT

if TYPE_CHECKING:
    import pyarrow

    from icscm.model.saved import SavedModel

# Columns that predictions add.
_ADDED = ("probability", "class", "rule")

# Presence/absence tables: features in rows, genomes in columns.
GENOME_ENDINGS = (".bits", ".rtab", ".rtab.gz")


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@value(
    "--out FILE",
    "Write predictions here: .csv, .tsv or .parquet.  [default: as CSV to standard output]",
    OUTPUT,
)
@value(
    "--keep-columns COLUMNS",
    "Columns of DATA to carry over, such as an identifier: A,B. Repeatable.",
    multiple=True,
)
@flag(
    "--safe-csv", "For spreadsheets: an apostrophe before texts that they would take for formulas."
)
@force_option
@reading_options
def predict(
    model: Path, data: Path, out: Path | None, safe_csv: bool, quiet: bool, **options: Any
) -> None:
    """Predict new rows with a model file.

    Writes one line for each row of DATA, in the same order: the probability of the positive
    class, the class that the rule predicts, and the rule that decided. Columns are found by
    name, in any order; only those in the model's rules are needed, and no environment is. Text
    that meant missing for fit (--na) does so here. DATA may also be a presence/absence table
    (.Rtab, genes in rows) or what icscm pack made of it; then each line names its genome.

    Names and texts are written as DATA has them; only a terminal gets escapes for what does not
    print. To a spreadsheet a text that begins with =, +, - or @ is a formula: where DATA comes
    from others, --safe-csv puts an apostrophe before it, and leaves numbers as they are.

    \b
    Example:
      icscm predict model.json new.csv --keep-columns id --out predictions.csv
    """
    from icscm.model.saved import load

    out = None if out == STDOUT else out
    if out is not None:
        check_output_kind(out)
        if safe_csv and out.suffix.lower() in PARQUET_ENDINGS:
            raise IcscmError("--safe-csv is for .csv and .tsv; a Parquet file holds no formulas")
        check_outputs([out], force=options["force"], inputs=[model, data])
    saved = load(model)
    progress = Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        table, kept = _read_rows(saved, data, options)
    with progress.stage(f"Predicting {table.num_rows:,} rows"):
        predictions = predict_table(saved, table, kept)
    if safe_csv:
        predictions = disarm_formulas(predictions)
    if out is None:
        write_text_table(predictions, open_output())
        return
    write_table(predictions, out)
    print_written(make_console(), out, f" ({predictions.num_rows:,} rows)")


def _read_rows(
    saved: SavedModel, data: Path, options: dict[str, Any]
) -> tuple[pyarrow.Table, list[str]]:
    """The table, with columns read as they were at fitting, and the names to carry over."""
    from icscm.model.saved import list_used

    where = describe_path(data)
    if data.name.lower().endswith(GENOME_ENDINGS):
        from icscm.sources.bits.opening import read_genomes

        delimiter = read_delimiter(options["delimiter"])
        return read_genomes(data, list_used(saved), delimiter), ["genome"]
    table = read_data(data, read_alike(saved, options), types=find_types(saved))
    check_columns(list_used(saved), table.column_names, where)
    kept = split_names(options["keep_columns"], table.column_names, where)
    clash = [name for name in kept if name in _ADDED]
    if clash:
        raise IcscmError(
            f"{where} has a column {clash[0]!r}, as the predictions do; rename it to carry it over"
        )
    return table, kept


def read_alike(saved: SavedModel, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with what meant missing, or a fraction, at fitting, if the file says so."""
    from icscm.model.saved import get_table_settings, list_missing_texts

    told = get_table_settings(saved)
    return options | {
        "na": (*options["na"], *list_missing_texts(told)),
        "no_default_na": options["no_default_na"] or told.get("default_na") is False,
        "decimal": options["decimal"] or ("," if told.get("decimal") == "," else "."),
    }


def find_types(saved: SavedModel) -> dict[str, str]:
    """How a text file's columns must be read: as what the rules compare them with.

    A level knows what it is: text that looks like a number stays text, and True is no text.
    """
    from icscm.model.rules import CategoryRule, ThresholdRule
    from icscm.model.saved import list_used

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
    used = set(list_used(saved))
    return {name: kind for name, kind in types.items() if name in used}


def predict_table(saved: SavedModel, table: pyarrow.Table, kept: list[str]) -> pyarrow.Table:
    """What was carried over, the probability, the class and the rule that decided."""
    import pyarrow

    decisions = saved.decide(table)
    columns = {name: table.column(name) for name in kept}
    columns["probability"] = pyarrow.array(decisions.probability)
    columns["class"] = pyarrow.array(decisions.prediction.tolist())
    columns["rule"] = pyarrow.array(decisions.decided_by.tolist(), type=pyarrow.string())
    return pyarrow.table(columns)
