"""`icscm check`: the environments before fitting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, make_console, print_all, print_heading, print_note
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    column_options,
    quiet_option,
    read_data,
    reading_options,
    take_apart,
)

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.io.samples import Samples
    from icscm.studies.checkup import CheckUp

# Lines of a table before it says how many more there are.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@column_options(needs_environment=True)
@click.option(
    "--alpha",
    default=0.05,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="NUMBER",
    help="Level of the tests whose power is told.",
)
@click.option("--all", "show_all", is_flag=True, help="Every environment and column.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for other programs.")
@reading_options
@quiet_option
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
    from icscm.io.locating import describe_path
    from icscm.studies.checkup import check_environments

    progress = Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = take_apart(read_data(data, options), data, options)
    with progress.stage("Looking at the environments"):
        found = check_environments(
            samples.X,
            samples.y,
            samples.environments,
            alpha=alpha,
            keep_columns=samples.asked_for or None,
        )
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, default=str))
    else:
        _print(make_console(), found, samples, data, None if show_all else _N_SHOWN)


def _print(
    console: Console, found: CheckUp, samples: Samples, data: Path, most: int | None
) -> None:
    from icscm.io.locating import name_data
    from icscm.report.terminal import as_text, count, make_fact_table

    n_environments = len(found.environments)
    n_used = found.n_columns - len(found.left_out)
    size = f"{count(found.n_rows, 'row')}, {count(n_used, 'column')} to learn from"
    facts = [
        ("Data", f"{name_data(data)}: {size}"),
        ("Positive", f"{samples.positive_text}, in {_compute_rate(found):.1%} of the rows"),
        ("Environments", f"{n_environments:,}, by {samples.environment}"),
    ]
    if samples.n_dropped:
        facts.append(
            ("Dropped", f"{count(samples.n_dropped, 'row')} without target or environment")
        )
    console.print(make_fact_table([(name, as_text(text)) for name, text in facts]))
    _print_environments(console, found, most)
    _print_columns(console, found, most)
    _print_power(console, found)
    if found.advice:
        print_heading(console, "Advice")
        print_all(console, make_fact_table([("-", text) for text in found.advice]))


def _compute_rate(found: CheckUp) -> float:
    return sum(each.n_positive for each in found.environments) / found.n_rows


def _print_environments(console: Console, found: CheckUp, most: int | None) -> None:
    from icscm.report.terminal import as_text, format_p, make_environment_table

    print_heading(console, "Environments")
    console.print(make_environment_table(found, most))
    _print_rest(console, len(found.environments), most, "environments")
    print_note(
        console,
        "\npositive: share of positive labels. missing: share of empty cells. would see: the "
        "smallest difference from the others' rate that a test would likely notice.",
    )
    console.print(
        f"Does the label's rate differ between environments? p = {format_p(found.p_value)}."
    )
    if found.sparse:
        cells = [
            f"{'positive' if cell.label == found.classes[1] else 'negative'} in "
            f"{as_text(cell.environment)}: {cell.n_rows}"
            for cell in found.sparse[:most]
        ]
        print_heading(console, "Sparse: rows of a class in an environment")
        print_all(console, *cells)
        _print_rest(console, len(found.sparse), most, "cells")


def _print_columns(console: Console, found: CheckUp, most: int | None) -> None:
    from icscm.report.terminal import as_text, make_fact_table, make_giveaway_table

    if found.left_out:
        print_heading(console, "Columns that fit will leave out unless asked for (--keep)")
        left_out = list(found.left_out.items())
        console.print(make_fact_table([(as_text(name), why) for name, why in left_out[:most]]))
        _print_rest(console, len(left_out), most, "columns")
    shown = found.strong_giveaways[:most] or found.giveaways[:3]
    if most is None:
        shown = found.giveaways
    strong = bool(found.strong_giveaways)
    title = (
        "Columns that give the environment away"
        if strong
        else ("No column gives the environment away; the most telling")
    )
    print_heading(console, title)
    console.print(make_giveaway_table(shown))
    if strong:
        _print_rest(console, len(found.strong_giveaways), most, "columns")
    print_note(
        console,
        "\nCramer's V with the environment: 0 unrelated, 1 one tells the other, from 0.5 listed. "
        "Numbers are cut into 16 bins; missing values are looked at apart.",
    )


def _print_power(console: Console, found: CheckUp) -> None:
    from icscm.report.terminal import format_difference, make_fact_table

    names = {1.0: "whole table", 0.5: "a half of it", 0.1: "a tenth"}
    print_heading(console, "What could be seen")
    console.print(
        make_fact_table(
            [
                (names[each.share], f"{each.n_rows:,} rows: {format_difference(each.difference)}")
                for each in found.detectable
            ]
        )
    )
    print_note(
        console,
        "\nThe smallest difference of the label's rate between the two largest environments that "
        f"a test at alpha {found.alpha} sees with 80 % power, in leaves of this size.",
    )


def _print_rest(console: Console, n: int, most: int | None, what: str) -> None:
    if most is not None and n > most:
        print_note(console, f"and {n - most:,} more {what}; --all shows them")
