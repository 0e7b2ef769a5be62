"""`icscm show`: a model file, for reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icscm._lazy import postpone_imports
from icscm.cli import console
from icscm.cli.group import main
from icscm.cli.options import FILE, Options, add_options
from icscm.exceptions import IcscmError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from icscm.model.saved import SavedModel

# Environments of a leaf that are listed without --all.
_N_SHOWN = 10


@main.command()
@click.argument("model", type=FILE)
@add_options("all", "fasta")
def show(model: Path, show_all: bool, fasta: bool) -> Options:
    """Show a model file.

    The model with its errors, its leaves with counts for each environment and the prediction
    interval for a new environment; the settings it was learned with, and with which version.

    \b
    Example:
      icscm show model.json
    """
    from icscm.model.saved import load

    if fasta and (console.is_json() or show_all):
        raise IcscmError("--fasta shows sequences only; omit --json and --all")
    postpone_imports()
    saved = load(model)
    if fasta:
        from icscm.export.fasta import export_fasta

        console.open_output().write(export_fasta(saved))
    else:
        shown = render_saved(saved, None if show_all else _N_SHOWN)
        console.print_all(console.make_console(), shown)
    return saved.to_dict()


def render_saved(saved: SavedModel, max_environments: int | None) -> Iterator[RenderableType]:
    """A model file, up to so many environments of each leaf; None is all, and all leaves."""
    from icscm.report.documents.saved import make_saved_content, write_document
    from icscm.report.terminal import render_blocks

    return render_blocks(write_document(make_saved_content(saved, n_listed=max_environments)))
