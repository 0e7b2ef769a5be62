"""`icscm datasets`: the real data sets; and where `icscm reproduce` has moved."""

from __future__ import annotations

import os
from pathlib import Path

import click

from icscm.cli.console import make_console
from icscm.cli.group import main
from icscm.cli.options import value
from icscm.exceptions import IcscmError
from icscm.formatting import escape_controls


@main.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("ignored", nargs=-1, type=click.UNPROCESSED)
def reproduce(ignored: tuple[str, ...]) -> None:  # noqa: ARG001
    """Point to the reproduction of the paper, which is no longer part of the package."""
    raise IcscmError(
        "icscm reproduce was removed; run `make paper` in a checkout of the source repository to "
        "reproduce the paper's tables and figures"
    )


@main.command(short_help="List the real data sets, and whether their files are there.")
@value(
    "--data FOLDER",
    "Folder of the raw data files.  [default: $ICSCM_DATA]",
    click.Path(file_okay=False, path_type=Path),
)
def datasets(data: Path | None) -> None:
    """List the real data sets: size, source, licence, whether they are present, how to get them.

    Some can be downloaded with one line of Python (with the extra `data`); others have to be
    downloaded from their publisher's page and saved in the folder under the name shown.

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
    where = f"here {folder}" if folder else f"not set; use --data or ${DATA_VARIABLE}"
    console.print(escape_controls(f"FOLDER holds the raw files; {where}."), soft_wrap=True)
