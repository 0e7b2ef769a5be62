"""`icscm recalibrate`: a model file for a new site."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.group import main
from icscm.cli.model_files import read_labelled_rows
from icscm.cli.options import FILE, LABELS, READING, Options, add_options
from icscm.cli.predict import read_rows
from icscm.exceptions import IcscmError
from icscm.io.locating import describe_path
from icscm.writing import STDOUT, write_text

if TYPE_CHECKING:
    from icscm.model.saved import SavedModel


@main.command()
@click.argument("model", type=FILE)
@click.argument("data", type=FILE, required=False)
@add_options("out", "target", "positive", "prevalence", "drop_missing")
@add_options(*LABELS, "force", *READING)
def recalibrate(
    model: Path, data: Path | None, out: Path, prevalence: float | None, quiet: bool, **options: Any
) -> Options:
    """Recalibrate a model file for a site.

    From a few rows of the site with their outcome, or from its base rate. The intercept of the log
    odds is shifted; the rules or splits stay the same. The shift is printed with its 95% interval
    and saved in the file. It is shrunk towards 0 where rows are few; from 100 rows of each class
    upwards the slope is estimated, too.

    \b
    Examples:
      icscm recalibrate model.json site.csv --out site-model.json
      icscm recalibrate model.json --prevalence 0.12 --out site-model.json
    """
    from icscm.model.recalibration import Shift
    from icscm.model.saved import load

    if data is None and prevalence is None:
        raise IcscmError("give DATA (rows of the site with their outcome) or --prevalence")
    if prevalence is not None and (options["target"] or options["positive"]):
        raise IcscmError("with --prevalence no outcome is read: omit --target and --positive")
    inputs = [model] if data is None else [model, data]
    files.check_outputs([out], force=options["force"], inputs=inputs)

    saved = load(model)
    site = _Site()
    if data is not None:
        with console.Progress(quiet=quiet).stage(f"Reading {describe_path(data)}"):
            site = _read_site(saved, data, options, has_outcome=prevalence is None)
    recalibrated = saved.recalibrate(site.X, site.y, prevalence=prevalence)

    write_text(out, recalibrated.to_json())
    shift = recalibrated.settings["recalibration"]
    # standard output is for the model if --out says so
    console.make_console(stderr=out == STDOUT).print(str(Shift(**shift)))
    console.print_written(out)
    return {"recalibration": shift}


@dataclass(frozen=True)
class _Site:
    """Rows of the site, if any, and their outcome, where it is known."""

    X: Any = None
    y: Any = None


def _read_site(saved: SavedModel, data: Path, options: Options, *, has_outcome: bool) -> _Site:
    """Read rows of the site, as the table of the model was read."""
    # one site has no environments to tell apart, and nothing is copied to an output
    options_of_site = options | {"environment": None, "group": None, "keep_columns": ()}
    if has_outcome:
        rows = read_labelled_rows(saved, data, options_of_site)
        return _Site(X=rows.table, y=rows.y)
    return _Site(X=read_rows(saved, data, options_of_site).table)
