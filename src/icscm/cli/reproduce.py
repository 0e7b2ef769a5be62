"""`icscm reproduce` and `icscm datasets`: the paper's experiments and its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from icscm.cli.console import make_console, print_written
from icscm.cli.group import main
from icscm.cli.shorthand import flag, number, value
from icscm.exceptions import IcscmError

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
    "Folder of the raw data files for `real`.  [default: $ICSCM_DATA]",
    click.Path(exists=True, file_okay=False, path_type=Path),
)
def reproduce(names: tuple[str, ...], out: Path, data: Path | None, **options: Any) -> None:
    """Repeat the paper's experiments beside its published numbers.

    NAME is one or more of identification, dimensions, runtime, precision-recall, alpha,
    structures, samples, sharper, real; or all. Results go to --out row by row; then tables
    (Markdown, LaTeX), figures (PNG, SVG) and one page, index.html, that shows everything.

    \b
    Example:
      icscm reproduce identification --quick
    """
    from icscm.experiments.reproduction import reproduce_experiments

    if str(out) == "-":
        raise IcscmError("reproduce writes many files, to no standard output; name a folder: --out")
    page = reproduce_experiments(names, out, data_home=data, **options)
    print_written(make_console(), page)


@main.command(short_help="List the real data sets, and whether their files are there.")
@value("--data FOLDER", "Folder of the raw data files.  [default: $ICSCM_DATA]", _FOLDER)
def datasets(data: Path | None) -> None:
    """List the real data sets: size, source, licence, and whether the files are there.

    \b
    Example:
      icscm datasets --data ~/data
    """
    from icscm.datasets import list_datasets
    from icscm.report.terminal import make_table

    rows = [
        (
            info.name,
            f"{info.title}\n{info.source}\nlicence: {info.licence}",
            f"{info.n_samples:,}",
            "yes" if info.present else "no",
        )
        for info in list_datasets(data)
    ]
    table = make_table(("name", "what, source and licence", ">samples", ">here"), rows)
    table.leading = 1
    make_console().print(table)
