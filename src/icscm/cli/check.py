"""`icscm check`: the environments of a table, before fitting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.genomes import open_genome_file, read_labels
from icscm.cli.group import main, name_option
from icscm.cli.options import COLUMNS, FILE, LABELS, READING, Options, add_options
from icscm.io.locating import describe_path

if TYPE_CHECKING:
    from icscm.io.roles import Roles
    from icscm.validation.checkup import CheckUp

# Lines of a table without --all.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "alpha", "all", *LABELS, *READING)
def check(data: Path, alpha: float, show_all: bool, quiet: bool, **options: Any) -> Options:
    """Check the environments before fitting.

    Rows, rate of the positive label and missing values in each environment; classes with too
    few rows; columns associated with the environment; columns that `fit` will drop; and the
    minimum detectable difference between environments.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. Genomes (.bits, .rtab) need --labels.

    \b
    Example:
      icscm check heart.csv --target ill --environment hospital --na '?'
    """
    progress = console.Progress(quiet=quiet)
    if files.check_labels(data, options["labels"]):
        with progress.stage(f"Reading {data}"):
            checkup, roles = _check_genomes(data, options, alpha)
    else:
        checkup, roles = _check_table(data, options, alpha, progress=progress)
    _print_checkup(data, checkup, roles, max_lines=None if show_all else _N_SHOWN)

    # the texts of each column that were read as missing, with their number of cells
    missing_texts: dict[str, dict[str, int]] = {}
    for (column, text), n_cells in roles.misread.items():
        missing_texts.setdefault(column, {})[text] = n_cells
    return checkup.to_dict() | {"read_as_missing": missing_texts}


def _check_table(
    data: Path, options: Options, alpha: float, *, progress: console.Progress
) -> tuple[CheckUp, Roles]:
    """Check a table in memory."""
    from icscm.validation.checkup import check_environments

    with progress.stage(f"Reading {describe_path(data)}"):
        samples = files.read_labelled(data, options)
    with progress.stage("Checking the environments"):
        checkup = check_environments(
            samples.X,
            samples.y,
            environments=samples.environments,
            alpha=alpha,
            words=name_option,
        )
    return checkup, samples


def _check_genomes(data: Path, options: Options, alpha: float) -> tuple[CheckUp, Roles]:
    """Check a packed store, or a table that is packed to a temporary file."""
    from icscm.sources.bits.opening import open_bits
    from icscm.validation.checkup import check_presence

    labels, roles = read_labels(options)
    with open_genome_file(data, options) as store:
        countable = open_bits(
            store,
            labels,
            roles.target,
            environments=roles.environment,
            sample_column=options["sample_column"],
        )
        return check_presence(countable, alpha=alpha, words=name_option), roles


def _print_checkup(data: Path, checkup: CheckUp, roles: Roles, *, max_lines: int | None) -> None:
    """Print the findings, the largest environments first."""
    from icscm.report.documents.checkup import write_document

    facts = console.list_data_facts(
        data,
        roles,
        n_rows=checkup.n_rows,
        n_positive=sum(environment.n_positive for environment in checkup.environments),
        n_columns=checkup.n_columns - len(checkup.dropped),
        n_environments=len(checkup.environments),
    )
    document = write_document(
        checkup.to_dict(),
        facts=facts,
        n_strong=len(checkup.strong_associations),
        n_listed=max_lines,
    )
    console.print_document(console.make_console(), document)
