"""`icscm show`: what is in a model file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icscm.cli.console import make_console, print_all
from icscm.cli.group import main
from icscm.cli.options import FILE
from icscm.text import as_text, count, shorten_list

if TYPE_CHECKING:
    from rich.console import RenderableType

    from icscm.model.saved import SavedModel

# Environments of a leaf that are listed before it says how many more there are.
_N_SHOWN = 10


@main.command()
@click.argument("model", type=FILE)
@click.option("--all", "show_all", is_flag=True, help="Every environment of every leaf.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for other programs.")
def show(model: Path, show_all: bool, as_json: bool) -> None:
    """Show what is in a model file.

    The rule, its leaves with counts for each environment, the settings it was learned with, and
    with which version.

    \b
    Example:
      icscm show model.json
    """
    from icscm.model.saved import load

    saved = load(model)
    if as_json:
        click.echo(json.dumps(saved.to_dict(), indent=2, ensure_ascii=False))
    else:
        print_all(make_console(), _render(saved, None if show_all else _N_SHOWN))


def _render(saved: SavedModel, most: int | None) -> Iterator[RenderableType]:
    from icscm.report.errors import describe_errors
    from icscm.report.leaves import describe_leaves
    from icscm.report.terminal import (
        list_rule_facts,
        make_environment_table,
        make_fact_table,
        make_heading,
        make_note,
        name_leaf,
    )
    from icscm.report.words import make_names

    model = saved.model
    names = make_names(model, saved.environments or ("all",), saved.classes)
    (_, rule), *errors = list_rule_facts(str(model), describe_errors(model, names))
    yield make_fact_table((word, as_text(text)) for word, text in _list_facts(saved))
    yield ""
    yield make_fact_table([("Rule", rule if model.rules else str(model)), *errors])
    for leaf, chance in zip(
        describe_leaves(model, names), model.leaf_probabilities().tolist(), strict=True
    ):
        yield make_heading(f"Leaf {leaf['number']}: {name_leaf(leaf)}")
        predicted = names.classes[leaf["is_positive"]]
        yield f"predicts {predicted}; the probability of {names.classes[1]} is {chance:.3f}"
        yield make_environment_table(leaf, most)
        n_more = 0 if most is None else len(names.environments) - most
        if n_more > 0:
            yield make_note(f"and {n_more:,} more; --all shows them")
    yield make_heading("Settings")
    settings = [(name, value) for name, value in saved.settings.items() if name != "table"]
    yield make_fact_table((as_text(name), as_text(value)) for name, value in settings)


def _list_facts(saved: SavedModel) -> list[tuple[str, str]]:
    from icscm.model.saved import get_table_settings, list_used

    used = list_used(saved)
    told = get_table_settings(saved)
    target, column = told.get("target"), told.get("environment")
    values = " or ".join(map(str, told.get("positive") or []))
    environments = "none: nothing was tested for invariance"
    if saved.environments is not None:
        environments = f"{len(saved.environments):,}{f', by {column}' if column else ''}"
    return [
        ("Model", f"{saved.model.kind} of {count(len(saved.model.rules), 'rule')}"),
        *(
            [("Target", f"{target}, positive where it is {values}" if values else target)]
            if target
            else []
        ),
        ("Classes", f"{saved.classes[1]} (positive) and {saved.classes[0]}"),
        ("Columns", f"{len(used)} used ({shorten_list(used) or 'none'}) of {len(saved.features)}"),
        ("Environments", environments),
        ("Version", f"icscm {saved.version}"),
    ]
