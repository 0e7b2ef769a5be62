"""`icscm simulate`: simulated data with known causes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from icscm._types import Array
from icscm.cli import console
from icscm.cli.files import check_outputs
from icscm.cli.group import main
from icscm.cli.options import Options, add_options, is_given
from icscm.exceptions import IcscmError, Parameter
from icscm.io.writing_tables import check_output_kind, write_table

# Parameters of `make_hospitals` that have another name than the option.
_HOSPITAL_NAMES = {"n_environments": "n_hospitals", "n_parents": "n_causes"}

# Options of both simulations, of the paper's, and of the simulated hospitals.
SIZES = ("n_samples", "n_distractors")
_PAPER = (
    "n_environments",
    "n_parents",
    "n_children",
    "model_type",
    "noise",
    "label_noise",
    "child",
    "child_noise",
    "continuous",
)
_HOSPITALS = ("n_rows", "shortcut_strength", "missing", "missing_when", "label_shift")


@dataclass(frozen=True)
class _Simulated:
    """A table to write: its columns, the last two of them label and environment."""

    columns: Mapping[str, Any]
    n_rows: int
    #: what is printed after the number of rows, such as the causes
    note: str


@main.command()
@add_options("out", *SIZES, *_PAPER, "hospitals", *_HOSPITALS, "new_hospital")
@add_options("random_state", "force")
@click.pass_context
def simulate(
    ctx: click.Context, /, out: Path, new_hospital: Path | None, hospitals: bool, **options: Any
) -> None:
    """Write simulated data with known causes.

    The paper's simulation: features A1, A2, .. cause the label y, C1, .. are children of label and
    environment, B1, .. are noise. The columns y and environment come last.

    With --hospitals: simulated admissions; no row is a real patient. age and lactate cause that a
    patient deteriorated; billing_code and troponin are site-specific shortcuts. --n-rows,
    --shortcut-strength, --missing, --missing-when, --label-shift and --new-hospital need
    --hospitals. The columns deteriorated and hospital come last.

    \b
    Examples:
      icscm simulate --out data.parquet
      icscm fit data.parquet --target y --environment environment
      icscm simulate --hospitals --out admissions.csv --new-hospital new.csv
      icscm fit admissions.csv --target deteriorated --environment hospital
    """
    from icscm.datasets import make_conjunction, make_hospitals

    force = options.pop("force")
    simulation = make_hospitals if hospitals else make_conjunction
    settings = _choose_settings(ctx, simulation, options, hospitals=hospitals)
    outputs = [path for path in (out, new_hospital) if path is not None]
    for path in outputs:
        check_output_kind(path)
    check_outputs(outputs, force=force)

    tables = _simulate_hospitals(settings) if hospitals else [_simulate_paper(settings)]
    for path, table in zip(outputs, tables, strict=False):  # a new hospital may not be wanted
        _write(table, path)


def _choose_settings(
    ctx: click.Context, simulation: Callable[..., Any], options: Options, *, hospitals: bool
) -> dict[str, Any]:
    """The arguments of the simulation; raise for options that belong to the other one."""
    if not hospitals and is_given(ctx, "new_hospital"):
        raise IcscmError(Parameter("new_hospital"), " is for --hospitals only")

    parameters = inspect.signature(simulation).parameters
    settings = {}
    for option, value in options.items():
        parameter = _HOSPITAL_NAMES.get(option, option) if hospitals else option
        is_for_other = parameter not in parameters
        if is_for_other and is_given(ctx, option):
            kind = "not for --hospitals" if hospitals else "for --hospitals only"
            raise IcscmError(Parameter(option), f" is {kind}")
        if not is_for_other and value is not None:
            settings[parameter] = value
    return settings


def _simulate_paper(settings: dict[str, Any]) -> _Simulated:
    """The paper's simulation."""
    from icscm.datasets import make_conjunction

    data = make_conjunction(**settings)
    return _Simulated(
        columns={**data.X, "y": data.y, "environment": data.environments},
        n_rows=len(data.y),
        note=f"; causes: {', '.join(data.parents)}",
    )


def _simulate_hospitals(settings: dict[str, Any]) -> list[_Simulated]:
    """Admissions at several hospitals, and at a new one where shortcuts are reversed."""
    from icscm.datasets import make_hospitals

    data = make_hospitals(**settings)
    causes = ", ".join(data.parents)
    shortcuts = ", ".join(data.shortcuts)
    new_environment: Array = np.full(len(data.y_new), "New")
    return [
        _Simulated(
            columns={**data.X, "deteriorated": data.y, "hospital": data.environments},
            n_rows=len(data.y),
            note=f", simulated;\n causes: {causes}; shortcuts: {shortcuts}",
        ),
        _Simulated(
            columns={**data.X_new, "deteriorated": data.y_new, "hospital": new_environment},
            n_rows=len(data.y_new),
            note=", simulated;\n the shortcuts are reversed",
        ),
    ]


def _write(table: _Simulated, path: Path) -> None:
    """Write a table, and say what is in it."""
    import pyarrow

    columns = {
        name: pyarrow.array(values, from_pandas=True) for name, values in table.columns.items()
    }
    write_table(pyarrow.table(columns), path)
    console.print_written(path, more=f" ({table.n_rows:,} rows{table.note})")
