"""`icscm check`: the environments before fitting."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, list_data_facts, make_console, print_all
from icscm.cli.group import main, name_option
from icscm.cli.options import (
    FILE,
    column_options,
    flag,
    number,
    read_delimiter,
    read_labelled,
    reading_options,
)
from icscm.cli.predict import GENOME_ENDINGS
from icscm.cli.routes import BITS, label_options, read_labels
from icscm.exceptions import IcscmError
from icscm.io.formats import describe_path, name_data

if TYPE_CHECKING:
    from icscm.io.roles import Labelling
    from icscm.studies.checkup import CheckUp

# Lines of a table before it says how many more there are.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@column_options(needs_environment=True)
@number("--alpha", 0.05, "Level of the tests whose power is shown.", "float (0, 1)")
@flag("--all show_all", "Every environment and column.")
@flag("--json as_json", "As JSON, for other programs.")
@label_options
@reading_options
def check(
    data: Path, alpha: float, show_all: bool, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Look at the environments before fitting.

    Rows, rate of the positive label and missing values in each environment; classes with too
    few rows; columns that give the environment away; columns that `fit` will leave out; and the
    difference between environments that a test could see at all.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. Genomes (.bits, .rtab) need --labels.

    \b
    Example:
      icscm check heart.csv --target ill --environment hospital --na '?'
    """
    from icscm.cli.rendering import render_checkup
    from icscm.formatting import dump_json

    progress = Progress(quiet=quiet)
    look = _look_at_genomes if data.name.lower().endswith(GENOME_ENDINGS) else _look_at_rows
    found, samples = look(data, options, progress, alpha)
    if as_json:
        misread: dict[str, dict[str, int]] = {}
        for (column, text), n in samples.misread.items():
            misread.setdefault(column, {})[text] = n
        click.echo(dump_json(found.to_dict() | {"read_as_missing": misread}, indent=2))
        return
    facts = list_data_facts(
        name_data(data),
        samples,
        n_rows=found.n_rows,
        n_positive=sum(each.n_positive for each in found.environments),
        n_columns=found.n_columns - len(found.dropped),
        n_environments=len(found.environments),
    )
    print_all(make_console(), render_checkup(found, facts, None if show_all else _N_SHOWN))


def _look_at_rows(
    data: Path, options: dict[str, Any], progress: Progress, alpha: float
) -> tuple[CheckUp, Labelling]:
    from icscm.studies.checkup import check_environments

    if options["labels"] is not None:
        raise IcscmError(f"--labels is for genomes; {data} has its own target")
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_labelled(data, options)
    with progress.stage("Looking at the environments"):
        found = check_environments(
            samples.X,
            samples.y,
            samples.environments,
            alpha=alpha,
            keep_columns=samples.asked_for or None,
            words=name_option,
        )
    return found, samples


def _look_at_genomes(
    data: Path, options: dict[str, Any], progress: Progress, alpha: float
) -> tuple[CheckUp, Labelling]:
    """Of a packed store, or of a table that is packed for the time being."""
    from icscm.sources.bits.opening import open_bits
    from icscm.sources.bits.packing import pack_table
    from icscm.studies.checkup import check_presence

    if options["labels"] is None:
        raise IcscmError(f"{data} needs --labels, the table of target and environment")
    with progress.stage(f"Reading {data}"), TemporaryDirectory() as folder:
        table, labelling = read_labels(options)
        store = data
        if data.suffix.lower() != BITS:
            store = Path(folder) / f"packed{BITS}"
            pack_table(data, store, delimiter=read_delimiter(options["delimiter"]))
        roles = labelling.target, labelling.environment
        with open_bits(store, table, *roles, sample_column=options["sample_column"]) as countable:
            return check_presence(countable, alpha=alpha, words=name_option), labelling
