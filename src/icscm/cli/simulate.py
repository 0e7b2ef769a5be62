"""`icscm simulate` and `icscm demo`: simulated data with known causes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource

from icscm.cli.console import make_console, print_all, print_written, said_below
from icscm.cli.group import main, name_option
from icscm.cli.options import (
    FILE,
    OUTPUT,
    Decorator,
    apply,
    check_outputs,
    choice,
    flag,
    force_option,
    number,
    value,
)
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import as_text
from icscm.io.formats import check_output_kind, write_table
from icscm.writing import STDOUT

if TYPE_CHECKING:
    import pandas
    from rich.console import Console

    from icscm.datasets import Simulation
    from icscm.estimators.cover import SCMClassifier

DEMO_REPORT = "icscm-demo.html"

# Options of only one of the two simulations.
_PAPERS = (
    *("samples", "distractors", "children", "noise", "label_noise"),
    *("child", "child_noise", "continuous"),
)
_HOSPITALS = "rows", "shortcut_strength", "missing", "missing_when", "label_shift", "new_hospital"

size_options = apply(
    number("--samples", 10_000, "Rows in each environment."),
    number("--distractors", 3, "Features that are pure noise.", "int [0, inf)"),
)
seed_option = number("--random-state", 1, "Random seed.", "int [0, inf)")


def _share(name: str, text: str, default: float = 0.05) -> Decorator:
    return number(f"{name} SHARE", default, text, "float [0, 1]")


hospital_options = apply(
    flag("--hospitals", "Simulated admissions at hospitals, instead of the paper's data."),
    number("--rows", 10_000, "Admissions at all hospitals together."),
    _share("--shortcut-strength", "How often shortcuts follow the outcome, at most.", 0.95),
    _share("--missing", "Share of laboratory values that were not measured.", 0.3),
    choice("--missing-when normal random", "Which values of lactate are missing: normal, or any."),
    value("--label-shift NUMBER", "Direct effect of hospitals on the log odds.", float, 0.0),
    value(
        "--new-hospital FILE",
        "Write admissions at a hospital where the shortcuts are reversed.  [default: none]",
        OUTPUT,
    ),
)


@main.command()
@value(
    "--out FILE",
    "Write the data here: .csv, .tsv or .parquet; - for CSV to standard output.",
    OUTPUT,
    required=True,
)
@size_options
@number("--environments", None, "How many environments.  [default: 2; 5 hospitals]")
@number("--parents", 2, "Features that cause the label.")
@number("--children", 1, "Features C that are children of the label.", "int [0, inf)")
@choice("--model-type conjunction disjunction tree", "How the parents determine the label.")
@choice("--noise coin flip", "Label noise: replaced by a fair coin, or inverted.")
@_share("--label-noise", "Probability of label noise.")
@choice("--child code text", "Errors of children: as in the paper's code or text.")
@_share("--child-noise", "How often a child has the environment's mark, not the label.")
@flag("--continuous", "Features in [0, 1] that are cut at 0.5.")
@hospital_options
@seed_option
@force_option
@click.pass_context
def simulate(
    ctx: click.Context,
    /,
    out: Path,
    force: bool,
    hospitals: bool,
    new_hospital: Path | None,
    **options: Any,
) -> None:
    """Write simulated data with known causes.

    The paper's simulation: features A1, A2, .. cause the label y, C1, .. are children of label and
    environment, B1, .. are noise. The columns y and environment come last.

    With --hospitals: simulated admissions, none of them a patient's. age and lactate cause that a
    patient deteriorated; billing_code and troponin are shortcuts, which are specific to a site.
    --rows, --shortcut-strength, --missing, --missing-when, --label-shift and --new-hospital are
    for these alone. The columns deteriorated and hospital come last.

    \b
    Examples:
      icscm simulate --out data.parquet
      icscm fit data.parquet --target y --environment environment
      icscm simulate --hospitals --out admissions.csv --new-hospital new.csv
      icscm fit admissions.csv --target deteriorated --environment hospital
    """
    import pyarrow

    foreign = _PAPERS if hospitals else _HOSPITALS
    for name in foreign:
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            not_one = "not for --hospitals" if hospitals else "for --hospitals only"
            raise IcscmError(f"{name_option(Parameter(name))} is {not_one}")
        options.pop(name, None)
    outputs = [each for each in (out, new_hospital) if each is not None]
    for each in outputs:
        check_output_kind(each)
    check_outputs(outputs, force=force)
    if options["environments"] is None:
        options["environments"] = 5 if hospitals else 2
    console = make_console(stderr=STDOUT in outputs)  # standard output is for the data then
    tables = _make_hospitals(options) if hospitals else _make_conjunction(options)
    for path, (columns, note) in zip(outputs, tables, strict=False):
        table = pyarrow.table(columns)
        write_table(table, path)
        print_written(console, path, f" ({table.num_rows:,} rows{note})")


def _make_conjunction(options: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """The columns of the paper's data, and a note on them."""
    from icscm.datasets import make_conjunction

    numbers = "samples", "distractors", "parents", "children", "environments"
    renamed = {f"n_{name}": options.pop(name) for name in numbers}
    data = make_conjunction(**renamed, **options)
    columns = _to_arrow(data.X) | {"y": data.y, "environment": data.environments}
    return [(columns, f"; causes: {', '.join(data.parents)}")]


def _make_hospitals(options: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """The columns of admissions and of those at the new hospital, and a note on each."""
    from icscm.datasets import make_hospitals

    names = {"rows": "n_rows", "environments": "n_hospitals", "parents": "n_causes"}
    data = make_hospitals(**{names.get(name, name): each for name, each in options.items()})
    home = _to_arrow(data.X) | {"deteriorated": data.y, "hospital": data.environments}
    hospital = np.full(len(data.y_new), "New")
    new = _to_arrow(data.X_new) | {"deteriorated": data.y_new, "hospital": hospital}
    causes, shortcuts = ", ".join(data.parents), ", ".join(data.shortcuts)
    note = f", simulated;\n causes: {causes}; shortcuts: {shortcuts}"
    return [(home, note), (new, ", simulated;\n the shortcuts are reversed")]


def _to_arrow(features: pandas.DataFrame) -> dict[str, Any]:
    import pyarrow

    return {name: pyarrow.array(features[name], from_pandas=True) for name in features.columns}


@main.command(short_help="Compare both learners on the paper's simulation.")
@size_options
@seed_option
@value("--report FILE", "Write the report on ICSCM here: .html, .md or .json.", FILE, DEMO_REPORT)
@flag("--no-report", "Write no report.")
@force_option
@click.pass_context
def demo(ctx: click.Context, /, report: Path, no_report: bool, force: bool, **sizes: int) -> None:
    """Simulate the paper's data and learn from it with and without invariance.

    A1 and A2 cause the label and C1 is its child, a better predictor than the causes. The plain
    learner uses C1. The invariant learner rejects it, since the label given C1 shifts between the
    two environments. A report is written to the current folder; an existing one is kept unless
    --force is given.

    \b
    Example:
      icscm demo --samples 1000 --no-report
    """
    from rich.text import Text

    from icscm.datasets import make_conjunction
    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
    from icscm.report.summary import make_summary
    from icscm.report.terminal import render_summary

    is_own_choice = ctx.get_parameter_source("report") is not ParameterSource.DEFAULT
    is_kept = not is_own_choice and not force and report.exists()
    is_wanted = not (no_report or is_kept)
    if is_wanted:
        check_outputs([report], force=force)
    console = make_console()
    samples, distractors = sizes["samples"], sizes["distractors"]
    data = make_conjunction(samples, distractors, random_state=sizes["random_state"])
    console.print(
        f"The paper's simulation: 2 environments of {samples:,} samples. A1 and A2 cause the "
        f"label, C1 is a child of label and environment, {distractors} features B are noise.\n"
    )
    with said_below():
        plain = SCMClassifier().fit(data.X, data.y, environments=data.environments)
        invariant = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    if is_wanted:
        name = "the paper's simulation"
        found = invariant.report(data.X, data.y, data.environments, data_name=name)
        found.save(report, force=force)
    _print_model(console, "SCM", plain, data)
    _print_model(console, "ICSCM", invariant, data)
    summary = make_summary(invariant, words=name_option)
    console.print(Text("What ICSCM found, as shown by icscm fit", style="bold"))
    print_all(console, render_summary(summary, with_rejected=True))
    if is_wanted:
        console.print()
        print_written(console, report, ", the report on ICSCM")
    elif is_kept and not no_report:
        console.print(f"\n{as_text(report)} exists and was kept; --force overwrites it.")


def _print_model(console: Console, name: str, learner: SCMClassifier, data: Simulation) -> None:
    """The model, which of its features are true parents, which parents are missing, accuracy."""
    from rich.text import Text

    used, parents = learner.features_used_, data.parents
    marks = [f"{each} {'✓ parent' if each in parents else '✗ not a parent'}" for each in used]
    marks += [f"{each} missing" for each in parents if each not in used]
    console.print(Text.assemble((f"{name:6}", "bold"), (str(learner.model_), "cyan")))
    console.print("      " + ", ".join(marks))
    console.print(f"      accuracy {learner.score(data.X, data.y):.1%}\n")
