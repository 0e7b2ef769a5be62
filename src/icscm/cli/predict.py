"""`icscm predict`: new rows with a model file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.group import main
from icscm.cli.model_files import find_types, load_with_threshold, read_alike
from icscm.cli.options import FILE, READING, Options, add_options
from icscm.exceptions import IcscmError, UnknownLevelWarning, warn
from icscm.formatting import make_plain, shorten_list
from icscm.io import locating, writing_tables
from icscm.io.locating import describe_path
from icscm.io.naming import check_columns
from icscm.io.roles import split_names
from icscm.writing import STDOUT

if TYPE_CHECKING:
    import pyarrow

    from icscm.model.novelty import Treatment
    from icscm.model.saved import SavedModel


# The column of predictions that names the columns with a level which training did not have.
UNKNOWN_LEVELS = "unknown_levels"


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE)
@add_options("out", "threshold", "keep_columns", "allow_unknown", "safe_csv", "force", *READING)
def predict(
    model: Path,
    data: Path,
    out: Path | None,
    allow_unknown: bool,
    safe_csv: bool,
    quiet: bool,
    **options: Any,
) -> Options | None:
    """Predict new rows with a model file.

    Writes one line for each row of DATA, in the same order, with the columns of exports: the class
    (prediction), the probability of the positive class, and what decided (decided_by): a rule, a
    leaf, the trees or the total of points, and values that were never missing for fit but are here.
    Columns are found by name, in any order; only those in the model's rules are needed, and no
    environment is. Text declared missing for fit (--na) is missing here, too. DATA may also be a
    presence/absence table (.Rtab, genes in rows) or a store that icscm pack made; then each line
    names its genome.

    A level that training did not have, such as none where it had None, is treated as missing, and
    told with the levels that it resembles. If the model's rules use categories, the column
    unknown_levels names the columns in which a row has one. Where more than half of the rows have
    one in a column, nothing is predicted unless --allow-unknown is given. Numbers far outside their
    range in training are told, too: they may be of another unit.

    Names and texts are written as DATA has them; only on a terminal are characters that do not
    print escaped. Spreadsheets read text that begins with =, +, - or @ as a formula: if DATA comes
    from others, --safe-csv puts an apostrophe before such text; numbers stay unchanged.

    \b
    Example:
      icscm predict model.json new.csv --keep-columns id --out predictions.csv
    """
    file = None if out == STDOUT else out
    if file is not None:
        check_prediction_file(file, safe_csv=safe_csv)
        files.check_outputs([file], force=options["force"], inputs=[model, data])

    saved = load_with_threshold(model, options["threshold"])
    progress = console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        rows = read_rows(saved, data, options)
    with progress.stage(f"Predicting {rows.table.num_rows:,} rows"):
        predictions = predict_rows(saved, rows, unknown="allow" if allow_unknown else "raise")

    if safe_csv:
        predictions = writing_tables.disarm_formulas(predictions)
    if file is not None:
        writing_tables.write_table(predictions, file)
        console.print_written(file, more=f" ({predictions.num_rows:,} rows)")
        return None
    if console.is_json():
        return {"predictions": make_plain(predictions.to_pylist(), str)}
    writing_tables.write_text_table(predictions, console.open_output())
    return None


def check_prediction_file(file: Path, *, safe_csv: bool) -> None:
    """Raise unless the ending is that of a table, and of a text file where formulas matter."""
    writing_tables.check_output_kind(file)
    is_parquet = file.suffix.lower() in locating.PARQUET_ENDINGS
    if safe_csv and is_parquet:
        raise IcscmError("--safe-csv is for .csv and .tsv; Parquet files hold no formulas")


@dataclass(frozen=True)
class Rows:
    """Rows to predict, and the names of the columns to copy to the output.

    These let a reader find the rows again: a patient's number, a genome's name.
    """

    table: pyarrow.Table
    kept: list[str]


def read_rows(saved: SavedModel, data: Path, options: Options) -> Rows:
    """Read the rows of a table or of genomes, with columns read as they were for fit."""
    if files.is_genomes(data):
        return _read_genomes(saved, data, options)

    from icscm.model.saved import list_used

    where = describe_path(data)
    table = read_alike(saved, data, options, find_types(saved))
    check_columns(list_used(saved), table.column_names, where)
    kept = split_names(options["keep_columns"], table.column_names, where)
    _check_kept_columns(kept, where)
    return Rows(table=table, kept=kept)


def _read_genomes(saved: SavedModel, data: Path, options: Options) -> Rows:
    """Read the genes that the model uses; a line of the output names its genome."""
    from icscm.model.saved import list_used
    from icscm.sources.bits.opening import read_genomes

    delimiter = files.read_delimiter(options["delimiter"])
    table = read_genomes(data, list_used(saved), delimiter)
    return Rows(table=table, kept=["genome"])


def _check_kept_columns(kept: list[str], where: str) -> None:
    """Raise if a column to copy has the name of a column of predictions."""
    from icscm.model.calibration import Decisions

    for name in kept:
        if name in (*Decisions._fields, UNKNOWN_LEVELS):
            raise IcscmError(
                f"{where} and the predictions both have a column {name!r}; rename it to keep it"
            )


def _warn_of_unknowable(saved: SavedModel) -> None:
    """Warn of columns in which levels that training did not have cannot be told."""
    from icscm.model.novelty import MAX_KEPT_LEVELS

    unknowable = [repr(column) for column in saved.list_unknowable()]
    if unknowable:
        warn(
            f"The model file does not say which levels {shorten_list(unknowable)} had in training, "
            "so others cannot be told: it was saved before version 0.4, or these were more than "
            f"{MAX_KEPT_LEVELS:,}.",
            UnknownLevelWarning,
        )


def predict_rows(saved: SavedModel, rows: Rows, *, unknown: Treatment) -> pyarrow.Table:
    """Predict rows: the columns to copy, then those of the predictions."""
    import pyarrow

    _warn_of_unknowable(saved)
    decisions = saved.decide(rows.table, unknown=unknown)
    columns = {name: rows.table.column(name) for name in rows.kept}
    for name, values in decisions._asdict().items():
        columns[name] = values.tolist()
    if saved.knows_levels:
        columns[UNKNOWN_LEVELS] = saved.find_unknown_levels(rows.table).tolist()
    return pyarrow.table(columns)
