"""`icscm show`: a model file, for reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from icscm.model.forest import Forest, describe_size
    from icscm.model.saved import get_table_settings, list_used
    from icscm.model.splits import CHAINS
    from icscm.report.formatting import make_names

    names = make_names(saved.environments or ("all",), saved.classes)
    size = describe_size(saved.model)
    table = get_table_settings(saved)
    is_forest = isinstance(saved.model, Forest)
    content = {
        "saved": saved,
        "table": table,
        "positive": table.get("positive", ()),
        "used": list_used(saved),
        "size": size,
        "names": names,
        "is_chain": saved.model.kind in CHAINS,
        "trees": saved.model.trees if isinstance(saved.model, Forest) else (),
        "most": max_environments,
        **({"facts": [], "leaves": []} if is_forest else _describe_leaves(saved, names, size)),
    }
    return console.render("saved.md", content)


def _describe_leaves(saved: SavedModel, names: Any, size: str) -> dict[str, Any]:
    """The first lines on a single tree or rule, and its leaves with their probabilities."""
    from icscm.report.content.errors import make_errors
    from icscm.report.content.leaves import make_leaves
    from icscm.report.content.model import ModelSize, find_noun
    from icscm.report.wording.headline import list_facts

    model: Any = saved.model
    leaves = make_leaves(model, names)
    described = ModelSize(
        noun=find_noun(model),
        text=str(model),
        n_rules=len(model.rules),
        threshold=model.threshold,
    )
    errors = make_errors(model, names, saved.settings.get("p", 1.0))
    return {
        "facts": list_facts(described, errors, leaves, name=size),
        "leaves": list(zip(leaves, model.leaf_probabilities().tolist(), strict=True)),
    }
