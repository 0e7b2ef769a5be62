"""`icscm simulate` and `icscm demo`: simulated data with known causes; `icscm datasets`."""

import inspect
import os
from pathlib import Path
from typing import Any

import click
import numpy as np

from icscm.cli import console
from icscm.cli.group import main, name_option
from icscm.cli.shared import Options, add_options, check_outputs, is_given
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import as_text, escape_controls
from icscm.io.formats import check_output_kind, write_table

# Parameters of `make_conjunction` and their names in `make_hospitals`.
_RENAMED = {"n_environments": "n_hospitals", "n_parents": "n_causes"}

_SIZES = "n_samples", "n_distractors"
_PAPER = (
    *("n_environments", "n_parents", "n_children", "model_type", "noise", "label_noise", "child"),
    *("child_noise", "continuous"),
)
_HOSPITALS = "n_rows", "shortcut_strength", "missing", "missing_when", "label_shift"


@main.command()
@add_options("out", *_SIZES, *_PAPER, "hospitals", *_HOSPITALS, "new_hospital")
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
    import pyarrow

    from icscm.datasets import make_conjunction, make_hospitals

    make: Any = make_hospitals if hospitals else make_conjunction
    force = options.pop("force")
    known = inspect.signature(make).parameters
    named = {_RENAMED.get(name, name) if hospitals else name: name for name in options}
    foreign = [name for name in named if name not in known]
    for name in [*foreign, *([] if hospitals else ["new_hospital"])]:
        if is_given(ctx, name):
            kind = "not for --hospitals" if hospitals else "for --hospitals only"
            raise IcscmError(Parameter(name), f" is {kind}")
    outputs = [each for each in (out, new_hospital) if each is not None]
    for each in outputs:
        check_output_kind(each)
    check_outputs(outputs, force=force)
    settings = {new: options[old] for new, old in named.items() if new in known}
    settings = {name: value for name, value in settings.items() if value is not None}
    data, names = make(**settings), ("y", "environment")
    causes = ", ".join(data.parents)
    tables = [(data.X, data.y, data.environments, f"; causes: {causes}")]
    if hospitals:
        names = "deteriorated", "hospital"
        note = f", simulated;\n causes: {causes}; shortcuts: {', '.join(data.shortcuts)}"
        new = data.X_new, data.y_new, np.full(len(data.y_new), "New")
        reversed_note = ", simulated;\n the shortcuts are reversed"
        tables = [(*tables[0][:3], note), (*new, reversed_note)]
    for path, (X, y, environments, note) in zip(outputs, tables, strict=False):
        columns = {name: pyarrow.array(X[name], from_pandas=True) for name in X}
        columns |= dict(zip(names, (y, environments), strict=True))
        write_table(pyarrow.table(columns), path)
        console.print_written(path, more=f" ({len(y):,} rows{note})")


@main.command(short_help="Compare both learners on the paper's simulation.")
@add_options(*_SIZES, "random_state", "report", "no_report", "force")
@click.pass_context
def demo(
    ctx: click.Context, /, report: Path, no_report: bool, force: bool, **settings: Any
) -> Options:
    """Simulate the paper's data and learn from it with and without invariance.

    A1 and A2 cause the label and C1 is its child, a better predictor than the causes. The plain
    learner uses C1. The invariant learner rejects it, since the label given C1 shifts between the
    two environments. A report is written to the current folder; an existing one is kept unless
    --force is given.

    \b
    Example:
      icscm demo --n-samples 1000 --no-report
    """
    from rich.text import Text

    from icscm.datasets import make_conjunction
    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
    from icscm.report.summary import make_summary
    from icscm.report.terminal import render_summary
    from icscm.validation.path import alpha_path

    is_kept = not is_given(ctx, "report") and not force and report.exists()
    is_wanted = not (no_report or is_kept)
    if is_wanted:
        check_outputs([report], force=force)
    screen, data = console.make_console(), make_conjunction(**settings)
    screen.print(
        f"The paper's simulation: 2 environments of {settings['n_samples']:,} samples. A1 and A2 "
        "cause the label, C1 is a child of label and environment, "
        f"{settings['n_distractors']} features B are noise.\n"
    )
    learners = {"SCM": SCMClassifier(), "ICSCM": ICSCMClassifier()}
    with console.hide_repeated_warnings():
        for learner in learners.values():
            learner.fit(data.X, data.y, environments=data.environments)
    if is_wanted:
        name = "the paper's simulation"
        path = alpha_path(learners["ICSCM"], data.X, data.y, environments=data.environments)
        page = learners["ICSCM"].report(data_name=name, path=path)
        page.save(report, force=force)
    found: Options = {}
    for name, learner in learners.items():
        used = learner.features_used_
        marks = [f"{c} {'✓ parent' if c in data.parents else '✗ not a parent'}" for c in used]
        marks += [f"{cause} missing" for cause in data.parents if cause not in used]
        screen.print(Text.assemble((f"{name:6}", "bold"), (str(learner.model_), "cyan")))
        screen.print("      " + ", ".join(marks))
        accuracy = learner.score(data.X, data.y)
        screen.print(f"      accuracy {accuracy:.1%}\n")
        found[name] = {"rule": str(learner.model_), "features": used, "accuracy": accuracy}
    screen.print(Text("Result of ICSCM, as shown by icscm fit", style="bold"))
    summary = make_summary(
        learners["ICSCM"], words=name_option, unvalidated="icscm fit measures it"
    )
    console.print_all(screen, render_summary(summary, with_rejected=True))
    if is_wanted:
        screen.print()
        console.print_written(report, more=", the report on ICSCM")
    elif is_kept and not no_report:
        console.print_line(f"{as_text(report)} exists and was kept; --force overwrites it.")
    return {"parents": data.parents, "learners": found}


@main.command(short_help="List the real data sets, and whether their files are there.")
@add_options("data")
def datasets(data: Path | None) -> Options:
    """List the real data sets: size, source, licence, whether they are present, how to get them.

    Some can be downloaded with one line of Python (with the extra `data`); others have to be
    downloaded from their publisher's page and saved in the folder under the name shown.

    \b
    Example:
      icscm datasets --data ~/data
    """
    from icscm.datasets import list_datasets
    from icscm.datasets._files import DATA_VARIABLE

    screen, known = console.make_console(), list_datasets(data)
    for info in known:
        is_here = "here" if info.present else "not here"
        text = (
            f"{info.name}: {info.title}; {info.n_samples:,} samples, {is_here}\n  {info.source}\n"
            f"  licence: {info.licence}\n  to get it: {info.advice}\n"
        )
        screen.print(escape_controls(text, keep="\n"), soft_wrap=True)  # addresses are not broken
    folder = data or os.environ.get(DATA_VARIABLE)
    where = f"here {folder}" if folder else f"not set; use --data or ${DATA_VARIABLE}"
    screen.print(escape_controls(f"FOLDER holds the raw files; {where}."), soft_wrap=True)
    return {"datasets": [vars(info) | {"loader": info.loader.__name__} for info in known]}
