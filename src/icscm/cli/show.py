"""`icscm show` and `icscm export`: a model file in words, and as code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli.console import make_console, open_output, print_all, print_written
from icscm.cli.group import main
from icscm.cli.options import FILE, add_options, check_outputs
from icscm.exceptions import IcscmError
from icscm.formatting import as_text, shorten_list
from icscm.writing import STDOUT, write_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from icscm.model.saved import SavedModel

# Environments of a leaf without --all.
_N_SHOWN = 10


@main.command()
@click.argument("model", type=FILE)
@add_options("all", "json", "fasta")
def show(model: Path, show_all: bool, as_json: bool, fasta: bool) -> None:
    """Show a model file.

    The model with its errors, its leaves with counts for each environment and the prediction
    interval for a new environment; the settings it was learned with, and with which version.

    \b
    Example:
      icscm show model.json
    """
    from icscm.export.documents import export_fasta
    from icscm.formatting import dump_json
    from icscm.model.saved import load

    if fasta and (as_json or show_all):
        raise IcscmError("--fasta shows sequences only; leave out --json and --all")
    saved = load(model)
    if fasta:
        open_output().write(export_fasta(saved))
    elif as_json:
        click.echo(dump_json(saved.to_dict(), indent=2))
    else:
        print_all(make_console(), render_saved(saved, None if show_all else _N_SHOWN))


def render_saved(saved: SavedModel, most: int | None) -> Iterator[RenderableType]:
    """A model file, up to so many environments of each leaf; None is all, and all leaves."""
    from icscm.model.forest import describe_size
    from icscm.model.saved import get_table_settings, list_used
    from icscm.report.terminal import make_fact_table, make_heading

    used, table = list_used(saved), get_table_settings(saved)
    target, column = table.get("target"), table.get("environment")
    facts = [("Model", describe_size(saved.model))]
    if target:
        values = " or ".join(map(str, table.get("positive") or []))
        facts.append(("Target", f"{target}, positive where it is {values}" if values else target))
    environments = "none: nothing was tested for invariance"
    if saved.environments is not None:
        environments = f"{len(saved.environments):,}{f', by {column}' if column else ''}"
    facts += [
        ("Classes", f"{saved.classes[1]} (positive) and {saved.classes[0]}"),
        ("Columns", f"{len(used)} used ({shorten_list(used) or 'none'}) of {len(saved.features)}"),
        ("Environments", environments),
        ("Version", f"icscm {saved.version}"),
    ]
    yield make_fact_table((word, as_text(text)) for word, text in facts)
    yield ""
    yield from _render_model(saved, most)
    yield make_heading("Settings")
    settings = [(name, value) for name, value in saved.settings.items() if name != "table"]
    yield make_fact_table((as_text(name), as_text(value)) for name, value in settings)


def _render_model(saved: SavedModel, most: int | None) -> Iterator[RenderableType]:
    """The errors and leaves of a rule set or a tree, the trees of a forest."""
    from rich.text import Text

    from icscm.model.forest import Forest, describe_size
    from icscm.model.splits import CHAINS
    from icscm.report import terminal
    from icscm.report.formatting import make_names
    from icscm.report.sections.errors import describe_errors
    from icscm.report.sections.headline import list_facts
    from icscm.report.sections.leaves import describe_leaves

    model, is_chain = saved.model, saved.model.kind in CHAINS
    parts = "trees" if isinstance(model, Forest) else "leaves by environment"
    if not is_chain:
        yield Text(str(model))
    if not isinstance(model, Forest):
        names = make_names(saved.environments or ("all",), saved.classes)
        leaves = describe_leaves(model, names)
        errors = describe_errors(model, names, saved.settings.get("p", 1.0))
        described = {
            "noun": "rule" if is_chain else "tree",
            "text": str(model),
            "name": describe_size(model),
            "n_rules": len(model.rules),
            "discarded": None,
        }
        facts = list_facts({"model": described, "leaves": leaves, "errors": errors})
        yield from () if is_chain else ("",)
        yield terminal.make_fact_table((term, text) for term, text in facts if term != "Tree")
    if most is not None and not is_chain:
        yield terminal.make_note(f"\n--all shows the {parts}")
    elif isinstance(model, Forest):
        for number, tree in enumerate(model.trees, start=1):
            yield terminal.make_heading(f"Tree {number:,}")
            yield Text(str(tree))
    else:
        for leaf, chance in zip(leaves, model.leaf_probabilities().tolist(), strict=True):
            title = leaf["name" if is_chain else "condition"]
            yield terminal.make_heading(f"Leaf {leaf['number']}: {title}")
            predicted, positive = names.classes[leaf["is_positive"]], names.classes[1]
            yield f"predicts {predicted}; the probability of {positive} is {chance:.3f}"
            yield from _render_leaf(leaf, most, has_environments=saved.environments is not None)


def _render_leaf(
    leaf: dict[str, Any], most: int | None, *, has_environments: bool
) -> Iterator[RenderableType]:
    """The prediction interval of a leaf, and its counts in so many environments."""
    from icscm.report.formatting import format_prediction_interval
    from icscm.report.terminal import make_environment_table, make_note

    if leaf["new_interval"] is not None:
        interval = format_prediction_interval(leaf["new_interval"])
        yield f"95% prediction interval for a new environment: {interval}; tau {leaf['tau']:.2f}"
    elif has_environments:
        yield f"no prediction interval for a new environment: {leaf['new_reason']}"
    yield make_environment_table(leaf, most)
    if most is not None and len(leaf["environments"]) > most:
        yield make_note(f"and {len(leaf['environments']) - most:,} more; --all shows them")


@main.command()
@click.argument("model", type=FILE)
@add_options("to", "table", "schema", "out", "force")
def export(
    model: Path, to: str, table: str, schema: str | None, out: Path | None, force: bool
) -> None:
    """Turn a model file into code that predicts without this package.

    The code predicts exactly what `icscm predict` does, missing values included: texts that meant
    missing for fit do so in the code.

    \b
    Example:
      icscm export model.json --to sql --table patients --out model.sql
    """
    from icscm.export import export_model
    from icscm.model.saved import load

    if schema is not None and to != "sql":
        raise IcscmError("--schema is for --to sql")
    out = None if out == STDOUT else out
    check_outputs([out], force=force, inputs=[model])
    text = export_model(load(model), to, table=table, schema=schema)
    text = text if text.endswith("\n") else f"{text}\n"
    if out is None:
        open_output().write(text)
        return
    write_text(out, text)
    print_written(make_console(), out)
