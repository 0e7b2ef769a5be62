"""`icscm compare`: rules and other classifiers, cross-validated over rows and environments."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import Progress, list_data_facts, make_console, print_all, print_written
from icscm.cli.group import main
from icscm.cli.options import (
    COLUMNS,
    FILE,
    READING,
    add_options,
    check_ending,
    check_outputs,
    read_labelled,
)
from icscm.formatting import as_text, shorten_list
from icscm.io.formats import describe_path, disarm_formulas, write_table
from icscm.io.roles import split_commas
from icscm.parameters import check_matplotlib
from icscm.writing import write_text, write_whole

if TYPE_CHECKING:
    from rich.console import RenderableType

    from icscm.studies.comparison import Comparison


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "candidates", "n_folds", "min_rows", "min_positives", "out", "plot")
@add_options("json", "random_state", "force", *READING)
def compare(
    data: Path, out: Path | None, plot: Path | None, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Compare rules and other classifiers.

    Each candidate is fitted without each of five folds of the rows, then without each environment,
    and scored on the held-out rows: error, balanced accuracy, AUC, beside those of the
    majority-class baseline. scm are plain rules, icscm rules that are invariant across environments
    (-or: disjunctions), invariant-tree and invariant-forest have splits whose effect is homogeneous
    across environments; tree (at most 16 leaves), forest (100 trees), logistic (a regression) and
    boosting are scikit-learn's.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input.

    \b
    Examples:
      icscm compare heart.csv --target ill --environment hospital --na '?'
      icscm compare heart.csv --target ill --environment hospital \\
          --candidates icscm,tree --out table.md --plot table.svg
    """
    check_ending(out, ".csv", ".tsv", ".parquet", ".md")
    check_ending(plot, ".svg", ".png", ".pdf")
    if plot is not None:
        check_matplotlib()
    check_outputs([out, plot], force=options["force"], inputs=[data])
    from icscm.formatting import dump_json
    from icscm.studies.candidates import choose_candidates
    from icscm.studies.comparison import compare as compare_candidates

    names = split_commas([options["candidates"]]) if options["candidates"] else None
    choose_candidates(names)
    progress = Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_labelled(data, options)
    found = compare_candidates(
        samples.X,
        samples.y,
        samples.environments,
        names,
        **{name: options[name] for name in ("n_folds", "min_rows", "min_positives")},
        keep_columns=samples.asked_for or None,
        seed=options["random_state"],
        stage=progress.stage,
    )
    _write(found, out, plot)
    if as_json:
        click.echo(dump_json(found.to_dict(), indent=2))
        return
    n_columns = samples.X.num_columns - len(found.dropped)
    n_environments = len(found.environments) + len(found.kept_in)
    sizes = found.n_rows, found.n_positive, n_columns, n_environments
    console = make_console()
    print_all(console, render_comparison(found, list_data_facts(data, samples, *sizes)))
    print_written(console, out, plot)


def _write(found: Comparison, out: Path | None, plot: Path | None) -> None:
    import pyarrow

    if plot is not None:
        kind = plot.suffix.lower().removeprefix(".")
        write_whole(plot, partial(found.plot().savefig, format=kind, dpi=150))
    if out is not None and out.suffix.lower() == ".md":
        write_text(out, found.to_markdown())
    elif out is not None:
        table = pyarrow.Table.from_pandas(found.to_frame(), preserve_index=False)
        write_table(disarm_formulas(table), out)


def render_comparison(found: Comparison, facts: list[tuple[str, str]]) -> Iterator[RenderableType]:
    """Two tables, the rules, and the conclusions, below the facts about the data."""
    from icscm.report.page import render_template
    from icscm.report.terminal import render_blocks

    if found.dropped:
        columns = shorten_list(list(found.dropped))
        facts.append(("Dropped", as_text(f"{columns}, for all candidates; see icscm check")))
    if found.kept_in:
        names = [f"{name} ({n:,} rows)" for name, (n, _) in found.kept_in.items()]
        facts.append(("Too small", as_text(f"to be held out: {shorten_list(names)}")))
    content = found.to_dict() | {"facts": facts, "cells": _format_scores, "as_text": as_text}
    return render_blocks(render_template("comparison.md", content))


def _format_scores(*scores: dict[str, float | None]) -> list[str]:
    """Cells of a table: each score of the first dict, then the same one of the others."""
    cells = []
    for name in scores[0]:
        form = ".1%" if name == "error" else ".3f"
        cells += ["-" if each[name] is None else f"{each[name]:{form}}" for each in scores]
    return cells
