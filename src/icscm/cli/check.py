"""`icscm check`: the environments before fitting."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, list_data_facts, make_console, print_all
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    column_options,
    quiet_option,
    read_data,
    reading_options,
    take_apart,
)
from icscm.cli.shorthand import value
from icscm.cli.words import name_option
from icscm.text import as_text, format_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from icscm.studies.checkup import CheckUp

_LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)

# Lines of a table before it says how many more there are.
_N_SHOWN = 15


@main.command()
@click.argument("data", type=FILE)
@column_options(needs_environment=True)
@value("--alpha NUMBER", _LEVEL, "Level of the tests whose power is told.", 0.05)
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
    from icscm.io.locating import describe_path, name_data
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
            words=name_option,
        )
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
        return
    facts = list_data_facts(
        name_data(data),
        samples,
        n_rows=found.n_rows,
        n_positive=sum(each.n_positive for each in found.environments),
        n_columns=found.n_columns - len(found.left_out),
        n_environments=len(found.environments),
    )
    print_all(make_console(), _render(found, facts, None if show_all else _N_SHOWN))


def _render(
    found: CheckUp, facts: Sequence[tuple[str, str]], most: int | None
) -> Iterator[RenderableType]:
    from icscm.report.terminal import make_fact_table, make_heading, make_list

    yield make_fact_table(facts)
    yield from _render_environments(found, most)
    yield from _render_columns(found, most)
    yield from _render_power(found)
    if found.advice:
        yield make_heading("Advice")
        yield make_list(found.advice)


def _render_environments(found: CheckUp, most: int | None) -> Iterator[RenderableType]:
    from icscm.report.terminal import make_heading, make_note, make_table
    from icscm.report.words import format_p

    columns = "environment", ">rows", ">positive", ">95 % interval", ">missing", ">would see"
    ranked = sorted(found.environments, key=lambda each: -each.n_rows)
    rows = [
        (
            as_text(each.label),
            f"{each.n_rows:,}",
            f"{each.rate:.1%}",
            "{:.1%} - {:.1%}".format(*each.rate_interval),
            f"{each.missing:.1%}",
            _format_difference(each.detectable),
        )
        for each in ranked[:most]
    ]
    yield make_heading("Environments")
    yield make_table(columns, rows)
    yield from _render_rest(len(ranked), most, "environments")
    yield make_note(
        "\npositive: share of positive labels. missing: share of empty cells. would see: the "
        "smallest difference from the others' rate that a test would likely notice."
    )
    yield f"Does the label's rate differ between environments? p = {format_p(found.p_value)}."
    if found.sparse:
        yield make_heading("Sparse: rows of a class in an environment")
        for cell in found.sparse[:most]:
            label = "positive" if cell.label == found.classes[1] else "negative"
            yield f"{label} in {as_text(cell.environment)}: {cell.n_rows}"
        yield from _render_rest(len(found.sparse), most, "cells")


def _render_columns(found: CheckUp, most: int | None) -> Iterator[RenderableType]:
    from icscm.report.terminal import make_fact_table, make_heading, make_note, make_table

    if found.left_out:
        left_out = [(as_text(name), why) for name, why in found.left_out.items()]
        yield make_heading("Columns that fit will leave out unless asked for (--keep)")
        yield make_fact_table(left_out[:most])
        yield from _render_rest(len(left_out), most, "columns")
    strong = found.strong_giveaways
    shown = found.giveaways if most is None else strong[:most] or found.giveaways[:3]
    yield make_heading(
        "Columns that give the environment away"
        if strong
        else "No column gives the environment away; the most telling"
    )
    rows = [
        (
            format_name(each.column),
            "copy of it" if each.is_copy else f"{each.values:.2f}",
            "-" if each.missingness is None else f"{each.missingness:.2f}",
        )
        for each in shown
    ]
    yield make_table(("column", ">by its values", ">by being missing"), rows)
    yield from _render_rest(len(strong), most, "columns")
    yield make_note(
        "\nCramer's V with the environment: 0 unrelated, 1 one tells the other, from 0.5 listed. "
        "Numbers are cut into 16 bins; missing values are looked at apart."
    )


def _render_power(found: CheckUp) -> Iterator[RenderableType]:
    from icscm.report.terminal import make_fact_table, make_heading, make_note

    names = {1.0: "whole table", 0.5: "a half of it", 0.1: "a tenth"}
    yield make_heading("What could be seen")
    yield make_fact_table(
        (names[each.share], f"{each.n_rows:,} rows: {_format_difference(each.difference)}")
        for each in found.detectable
    )
    yield make_note(
        "\nThe smallest difference of the label's rate between the two largest environments that "
        f"a test at alpha {found.alpha} sees with 80 % power, in leaves of this size."
    )


def _format_difference(difference: float | None) -> str:
    """A difference of rates, in points."""
    return "none" if difference is None else f"{difference * 100:.1f} points"


def _render_rest(n: int, most: int | None, what: str) -> Iterator[RenderableType]:
    from icscm.report.terminal import make_note

    if most is not None and n > most:
        yield make_note(f"and {n - most:,} more {what}; --all shows them")
