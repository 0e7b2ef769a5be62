"""`icscm predict`: new rows, by a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, make_console, open_output, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    GENOME_ENDINGS,
    READING,
    add_options,
    check_outputs,
    read_data,
    read_delimiter,
)
from icscm.exceptions import IcscmError
from icscm.io import formats
from icscm.io.formats import BOOLEAN, CATEGORY, NUMBER
from icscm.io.naming import check_columns
from icscm.io.roles import split_names
from icscm.writing import STDOUT

if TYPE_CHECKING:
    import pyarrow

    from icscm.model.saved import SavedModel

# Columns that predictions add.
_ADDED = ("probability", "class", "rule")


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@add_options("out", "keep_columns", "safe_csv", "force", *READING)
def predict(
    model: Path, data: Path, out: Path | None, safe_csv: bool, quiet: bool, **options: Any
) -> None:
    """Predict new rows with a model file.

    Writes one line for each row of DATA, in the same order: the probability of the positive
    class, the predicted class, and the rule that decided. Columns are found by name, in any order;
    only those in the model's rules are needed, and no environment is. Text that meant missing for
    fit (--na) does so here. DATA may also be a presence/absence table (.Rtab, genes in rows) or a
    store that icscm pack made; then each line names its genome.

    Names and texts are written as DATA has them; only on a terminal are characters that do not
    print escaped. To a spreadsheet a text that begins with =, +, - or @ is a formula: where DATA
    comes from others, --safe-csv puts an apostrophe before it, and leaves numbers as they are.

    \b
    Example:
      icscm predict model.json new.csv --keep-columns id --out predictions.csv
    """
    import pyarrow

    from icscm.model.saved import load

    out = None if out == STDOUT else out
    if out is not None:
        formats.check_output_kind(out)
        if safe_csv and out.suffix.lower() in formats.PARQUET_ENDINGS:
            raise IcscmError("--safe-csv is for .csv and .tsv; a Parquet file holds no formulas")
        check_outputs([out], force=options["force"], inputs=[model, data])
    saved, progress = load(model), Progress(quiet=quiet)
    with progress.stage(f"Reading {formats.describe_path(data)}"):
        table, kept = _read_rows(saved, data, options)
    with progress.stage(f"Predicting {table.num_rows:,} rows"):
        decisions = saved.decide(table)
    columns = {name: table.column(name) for name in kept}
    columns["probability"] = pyarrow.array(decisions.probability)
    columns["class"] = pyarrow.array(decisions.prediction.tolist())
    columns["rule"] = pyarrow.array(decisions.decided_by.tolist(), type=pyarrow.string())
    predictions = pyarrow.table(columns)
    if safe_csv:
        predictions = formats.disarm_formulas(predictions)
    if out is None:
        formats.write_text_table(predictions, open_output())
        return
    formats.write_table(predictions, out)
    print_written(make_console(), out, more=f" ({predictions.num_rows:,} rows)")


def _read_rows(
    saved: SavedModel, data: Path, options: dict[str, Any]
) -> tuple[pyarrow.Table, list[str]]:
    """The table, with columns read as they were at fitting, and the names to carry over."""
    from icscm.model.saved import list_used

    where = formats.describe_path(data)
    if data.name.lower().endswith(GENOME_ENDINGS):
        from icscm.sources.bits.opening import read_genomes

        delimiter = read_delimiter(options["delimiter"])
        return read_genomes(data, list_used(saved), delimiter), ["genome"]
    table = read_alike(saved, data, options, find_types(saved))
    check_columns(list_used(saved), table.column_names, where)
    kept = split_names(options["keep_columns"], table.column_names, where)
    for name in kept:
        if name in _ADDED:
            raise IcscmError(
                f"{where} has a column {name!r}, as the predictions do; rename it to carry it over"
            )
    return table, kept


def read_alike(
    saved: SavedModel, path: Path, options: dict[str, Any], types: dict[str, str]
) -> pyarrow.Table:
    """A file, with the settings for missing values and decimals of the model's own table."""
    from icscm.model.saved import get_table_settings, list_missing_texts

    settings = get_table_settings(saved)
    alike = options | {
        "na": (*options["na"], *list_missing_texts(settings)),
        "no_default_na": options["no_default_na"] or settings.get("default_na") is False,
        "decimal": options["decimal"] or ("," if settings.get("decimal") == "," else "."),
    }
    return read_data(path, alike, types=types)


def find_types(saved: SavedModel) -> dict[str, str]:
    """How a text file's columns must be read: as the rules compare them.

    A level knows its type: text that looks like a number stays text, and True is no text.
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
