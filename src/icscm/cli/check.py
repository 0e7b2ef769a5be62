"""`icscm check`: the environments before fitting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, list_data_facts, make_console, print_all
from icscm.cli.group import main, name_option
from icscm.cli.options import (
    BITS,
    COLUMNS,
    FILE,
    GENOME_ENDINGS,
    LABELS,
    READING,
    add_options,
    check_labels,
    read_delimiter,
    read_labelled,
)
from icscm.cli.routes import read_labels
from icscm.formatting import as_text, format_name
from icscm.io.formats import describe_path

if TYPE_CHECKING:
    from rich.console import RenderableType

    from icscm.io.roles import Roles
    from icscm.studies.checkup import CheckUp

# Lines of a table without --all.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "alpha", "all", "json", *LABELS, *READING)
def check(
    data: Path, alpha: float, show_all: bool, as_json: bool, quiet: bool, **options: Any
) -> None:
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
    from icscm.formatting import dump_json
    from icscm.studies.checkup import check_environments

    progress = Progress(quiet=quiet)
    labels: Roles
    if check_labels(data, options["labels"], GENOME_ENDINGS):
        with progress.stage(f"Reading {data}"):
            found, labels = _check_genomes(data, options, alpha)
    else:
        with progress.stage(f"Reading {describe_path(data)}"):
            labels = samples = read_labelled(data, options)
        with progress.stage("Checking the environments"):
            table, kept = (samples.X, samples.y, samples.environments), samples.asked_for or None
            found = check_environments(*table, alpha=alpha, keep_columns=kept, words=name_option)
    if as_json:
        misread: dict[str, dict[str, int]] = {}
        for (column, text), n in labels.misread.items():
            misread.setdefault(column, {})[text] = n
        click.echo(dump_json(found.to_dict() | {"read_as_missing": misread}, indent=2))
        return
    n_positive = sum(each.n_positive for each in found.environments)
    sizes = n_positive, found.n_columns - len(found.dropped), len(found.environments)
    facts = list_data_facts(data, labels, found.n_rows, *sizes)
    print_all(make_console(), render_checkup(found, facts, None if show_all else _N_SHOWN))


def _check_genomes(data: Path, options: dict[str, Any], alpha: float) -> tuple[CheckUp, Roles]:
    """Of a packed store, or of a table that is packed for the time being."""
    from icscm.sources.bits.opening import open_bits
    from icscm.sources.bits.packing import pack_table
    from icscm.studies.checkup import check_presence

    with TemporaryDirectory() as folder:
        (table, labels), store = read_labels(options), data
        if data.suffix.lower() != BITS:
            store = Path(folder) / f"packed{BITS}"
            pack_table(data, store, delimiter=read_delimiter(options["delimiter"]))
        roles, column = (labels.target, labels.environment), options["sample_column"]
        with open_bits(store, table, *roles, sample_column=column) as countable:
            return check_presence(countable, alpha=alpha, words=name_option), labels


def render_checkup(
    found: CheckUp, facts: list[tuple[str, str]], most: int | None
) -> Iterator[RenderableType]:
    """A check-up, below the facts about the data, with at most so many lines of a table."""
    from icscm.report.page import render_template
    from icscm.report.terminal import render_blocks

    content = found.to_dict() | {
        "facts": facts,
        "environments": sorted(found.to_dict()["environments"], key=lambda each: -each["n_rows"]),
        "n_strong": len(found.strong_associations),
        "most": most,
        "as_text": as_text,
        "format_name": format_name,
    }
    return render_blocks(render_template("checkup.md", content))
