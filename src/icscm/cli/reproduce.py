"""`icscm reproduce` and `icscm datasets`: the paper's experiments and its data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from icscm.cli.console import make_console, print_written
from icscm.cli.group import main
from icscm.cli.shorthand import flag, number, value
from icscm.exceptions import IcscmError
from icscm.formatting import escape_controls

_FOLDER = click.Path(file_okay=False, path_type=Path)


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@value(
    "--out FOLDER",
    "Folder for results; a run that was stopped goes on there.",
    _FOLDER,
    "reproduction",
)
@number("--runs", None, "Repetitions per cell.  [default: the paper's]")
@number("--seed", 0, "Of all random numbers.", least=0)
@number("--jobs", None, "Processes.  [default: all cores]")
@flag("--quick", "Small sizes, to see that it works: a minute in all.")
@value(
    "--data FOLDER",
    "Folder of the raw data files for `real` and `transfer`.  [default: $ICSCM_DATA]",
    click.Path(exists=True, file_okay=False, path_type=Path),
)
def reproduce(names: tuple[str, ...], out: Path, data: Path | None, **options: Any) -> None:
    """Repeat the paper's experiments beside its published numbers.

    NAME is one or more of identification, dimensions, runtime, precision-recall, alpha,
    structures, samples, sharper, parents, guarantee, real, transfer; or all. Results go to --out
    row by row; then tables (Markdown, LaTeX), figures (PNG, SVG) and one page, index.html, that
    shows everything.

    \b
    Example:
      icscm reproduce identification --quick
    """
    from icscm.experiments.output import QUICK
    from icscm.experiments.reproduction import reproduce_experiments

    if str(out) == "-":
        raise IcscmError("reproduce writes many files, to no standard output; name a folder: --out")
    page = reproduce_experiments(names, out, data_home=data, **options)
    console = make_console()
    if options["quick"]:
        console.print(QUICK)
    print_written(console, page)


@main.command(short_help="List the real data sets, and whether their files are there.")
@value("--data FOLDER", "Folder of the raw data files.  [default: $ICSCM_DATA]", _FOLDER)
def datasets(data: Path | None) -> None:
    """List the real data sets: size, source, licence, whether the files are there, how to get them.

    Some can be fetched by a line of Python (with the extra `data`); others are to be downloaded
    from their publisher's page and saved in the folder under the name that is told.

    \b
    Example:
      icscm datasets --data ~/data
    """
    from icscm.datasets import list_datasets
    from icscm.datasets._files import DATA_VARIABLE

    console = make_console()
    for info in list_datasets(data):
        is_here = "here" if info.present else "not here"
        lines = (
            f"{info.name}: {info.title}; {info.n_samples:,} samples, {is_here}",
            f"  {info.source}",
            f"  licence: {info.licence}",
            f"  to get it: {info.advice}\n",
        )
        for line in lines:  # whole, so that addresses can be copied
            console.print(escape_controls(line, keep="\n"), soft_wrap=True)
    folder = data or os.environ.get(DATA_VARIABLE)
    where = f"here {folder}" if folder else f"none is named here: --data, or ${DATA_VARIABLE}"
    told = escape_controls(f"FOLDER holds the raw files; {where}.")
    console.print(told, soft_wrap=True)
