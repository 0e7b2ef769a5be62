"""`icscm check`: the environments before fitting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icscm.cli.console import Progress, list_data_facts, make_console, print_all
from icscm.cli.group import main
from icscm.cli.options import column_options, read_labelled, reading_options
from icscm.cli.shorthand import FILE, Share, flag, value
from icscm.cli.words import name_option
from icscm.io.locating import describe_path, name_data

_LEVEL = Share(is_open=True)

# Lines of a table before it says how many more there are.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@column_options(needs_environment=True)
@value("--alpha NUMBER", "Level of the tests whose power is told.", _LEVEL, 0.05)
@flag("--all show_all", "Every environment and column.")
@flag("--json as_json", "As JSON, for other programs.")
@reading_options
def check(
    data: Path, alpha: float, show_all: bool, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Look at the environments before fitting.

    Rows, rate of the positive label and missing values in each environment; classes with too
    few rows; columns that give the environment away; columns that `fit` will leave out; and the
    difference between environments that a test could see at all.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input.

    \b
    Example:
      icscm check heart.csv --target ill --environment hospital --na '?'
    """
    from icscm.cli.rendering import render_checkup
    from icscm.model.plain import dump_json
    from icscm.studies.checkup import check_environments

    progress = Progress(quiet=quiet)
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
    if as_json:
        click.echo(dump_json(found.to_dict(), indent=2))
        return
    facts = list_data_facts(
        name_data(data),
        samples,
        n_rows=found.n_rows,
        n_positive=sum(each.n_positive for each in found.environments),
        n_columns=found.n_columns - len(found.left_out),
        n_environments=len(found.environments),
    )
    print_all(make_console(), render_checkup(found, facts, None if show_all else _N_SHOWN))
