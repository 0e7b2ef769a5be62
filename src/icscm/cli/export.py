"""`icscm export`: a model file as code."""

from __future__ import annotations

from pathlib import Path

import click

from icscm.cli import console
from icscm.cli.files import check_outputs
from icscm.cli.group import main
from icscm.cli.model_files import load_with_threshold
from icscm.cli.options import FILE, Options, add_options
from icscm.exceptions import IcscmError
from icscm.writing import STDOUT, write_text


@main.command()
@click.argument("model", type=FILE)
@add_options("to", "threshold", "table", "schema", "out", "force")
def export(
    model: Path,
    to: str,
    threshold: str | None,
    table: str,
    schema: str | None,
    out: Path | None,
    force: bool,
) -> Options | None:
    """Export a model file as SQL, Python, R, JSON or text.

    The code works without this package and predicts exactly what `icscm predict` does, missing
    values included: text declared missing for fit is missing in the code, too.

    \b
    Example:
      icscm export model.json --to sql --table patients --out model.sql
    """
    from icscm.export import export_model

    if schema is not None and to != "sql":
        raise IcscmError("--schema is for --to sql")
    out = None if out == STDOUT else out
    check_outputs([out], force=force, inputs=[model])
    text = export_model(load_with_threshold(model, threshold), to, table=table, schema=schema)
    text = text if text.endswith("\n") else f"{text}\n"
    if out is not None:
        write_text(out, text)
        console.print_written(out)
        return None
    if not console.is_json():
        console.open_output().write(text)
    return {"to": to, "text": text}
