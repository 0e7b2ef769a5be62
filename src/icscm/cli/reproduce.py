"""`icscm reproduce` and `icscm datasets`: the paper's experiments and its data."""

from __future__ import annotations

from pathlib import Path

import click

from icscm.cli.console import make_console
from icscm.cli.group import main


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    default="reproduction",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for results; a run that was stopped goes on there.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Repetitions per cell.  [default: the paper's]",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    metavar="NUMBER",
    help="Of all random numbers.",
)
@click.option(
    "--jobs", type=click.IntRange(1), metavar="NUMBER", help="Processes.  [default: all cores]"
)
@click.option("--quick", is_flag=True, help="Small sizes, to see that it works: a minute in all.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder of the raw data files for `real`.  [default: $ICSCM_DATA]",
)
def reproduce(
    names: tuple[str, ...],
    out: Path,
    runs: int | None,
    seed: int,
    jobs: int | None,
    quick: bool,
    data: Path | None,
) -> None:
    """Repeat the paper's experiments beside its published numbers.

    NAME is one or more of identification, dimensions, runtime, precision-recall, alpha,
    structures, samples, sharper, real; or all. Results go to --out row by row; then tables
    (Markdown, LaTeX), figures (PNG, SVG) and one page, index.html, that shows everything.

    \b
    Example:
      icscm reproduce identification --quick
    """
    from icscm.experiments.reproduction import reproduce_experiments

    page = reproduce_experiments(
        names, out, runs=runs, seed=seed, jobs=jobs, quick=quick, data_home=data
    )
    click.echo(f"Written: {page}")


@main.command(short_help="List the real data sets, and whether their files are there.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder of the raw data files.  [default: $ICSCM_DATA]",
)
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
