"""`icscm datasets`: the real data sets, and whether their files are there."""

from __future__ import annotations

import os
from pathlib import Path

from icscm.cli import console
from icscm.cli.group import main
from icscm.cli.options import Options, add_options
from icscm.formatting import escape_controls


@main.command(short_help="List the real data sets, and whether their files are there.")
@add_options("data")
def datasets(data: Path | None) -> Options:
    """List the real data sets: size, source, licence, whether they are present, how to get them.

    Some can be downloaded with one line of Python (with the extra `data`); others have to be
    downloaded from their publisher's page and saved in the folder under the name shown.

    \b
    Example:
      icscm datasets --data ~/data
    """
    from icscm.datasets import list_datasets
    from icscm.datasets._files import DATA_VARIABLE

    screen = console.make_console()
    infos = list_datasets(data)
    for info in infos:
        is_here = "here" if info.present else "not here"
        text = (
            f"{info.name}: {info.title}; {info.n_samples:,} samples, {is_here}\n  {info.source}\n"
            f"  licence: {info.licence}\n  to get it: {info.advice}\n"
        )
        screen.print(escape_controls(text, keep="\n"), soft_wrap=True)  # addresses are not broken
    folder = data or os.environ.get(DATA_VARIABLE)
    where = f"here {folder}" if folder else f"not set; use --data or ${DATA_VARIABLE}"
    screen.print(escape_controls(f"FOLDER holds the raw files; {where}."), soft_wrap=True)
    return {"datasets": [vars(info) | {"loader": info.loader.__name__} for info in infos]}
