"""`icscm show` and `icscm export`: a model file in words, and as code."""

from __future__ import annotations

from pathlib import Path

import click

from icscm.cli.console import make_console, open_output, print_all, print_written
from icscm.cli.group import main
from icscm.cli.options import FILE, OUTPUT, check_outputs, flag, force_option, value
from icscm.exceptions import IcscmError
from icscm.writing import STDOUT, write_text

# Environments of a leaf that are listed before it says how many more there are.
_N_SHOWN = 10


@main.command()
@click.argument("model", type=FILE)
@flag("--all show_all", "Every environment of every leaf, and every tree of a forest.")
@flag("--json as_json", "As JSON, for other programs.")
@flag(
    "--fasta",
    "As FASTA: the k-mers or unitigs in the rules, and those that settle the same genomes.",
)
def show(model: Path, show_all: bool, as_json: bool, fasta: bool) -> None:
    """Show what is in a model file.

    The rule, its leaves with counts for each environment and what to expect in an environment not
    seen, or the tree with its rates; the settings it was learned with, and with which version.

    \b
    Example:
      icscm show model.json
    """
    from icscm.cli.rendering import render_saved
    from icscm.formatting import dump_json
    from icscm.model.saved import load

    if fasta and (as_json or show_all):
        raise IcscmError("--fasta shows sequences only; leave out --json and --all")
    saved = load(model)
    if fasta:
        from icscm.export.fasta import export_fasta

        open_output().write(export_fasta(saved))
    elif as_json:
        click.echo(dump_json(saved.to_dict(), indent=2))
    else:
        print_all(make_console(), render_saved(saved, None if show_all else _N_SHOWN))


@main.command()
@click.argument("model", type=FILE)
@click.option(
    "--to",
    required=True,
    type=click.Choice(["sql", "python", "json", "text"]),
    help="sql: a SELECT for SQLite, DuckDB and others. python: a function without imports. json: "
    "rules and leaves. text: the rule in words.",
)
@value("--table NAME", "For sql: the table to select from.", default="data")
@value("--schema NAME", "For sql: the schema of the table.  [default: none]")
@value("--out FILE", "Write it here.  [default: to standard output]", OUTPUT)
@force_option
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
