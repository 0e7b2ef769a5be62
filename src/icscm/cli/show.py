"""`icscm show`: what is in a model file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from icscm.cli.console import make_console, print_all
from icscm.cli.group import main
from icscm.cli.shorthand import FILE, flag

# Environments of a leaf that are listed before it says how many more there are.
_N_SHOWN = 10


@main.command()
@click.argument("model", type=FILE)
@flag("--all show_all", "Every environment of every leaf.")
@flag("--json as_json", "As JSON, for other programs.")
def show(model: Path, show_all: bool, as_json: bool) -> None:
    """Show what is in a model file.

    The rule, its leaves with counts for each environment, the settings it was learned with, and
    with which version.

    \b
    Example:
      icscm show model.json
    """
    from icscm.cli.rendering import render_saved
    from icscm.model.saved import load

    saved = load(model)
    if as_json:
        click.echo(json.dumps(saved.to_dict(), indent=2, ensure_ascii=False))
    else:
        print_all(make_console(), render_saved(saved, None if show_all else _N_SHOWN))
