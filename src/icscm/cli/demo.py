"""`icscm demo`: both learners on the paper's simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console
from icscm.cli.files import check_outputs
from icscm.cli.group import main, name_option
from icscm.cli.options import Options, add_options, is_given
from icscm.cli.simulate import SIZES
from icscm.formatting import as_text

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier

_DATA_NAME = "the paper's simulation"


@main.command(short_help="Compare both learners on the paper's simulation.")
@add_options(*SIZES, "random_state", "report", "no_report", "force")
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
    from icscm.datasets import make_conjunction
    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier

    # A report that exists is kept, unless the user names it or overwrites it.
    is_kept = not is_given(ctx, "report") and not force and report.exists()
    writes_report = not no_report and not is_kept
    if writes_report:
        check_outputs([report], force=force)

    screen = console.make_console()
    data = make_conjunction(**settings)
    screen.print(
        f"The paper's simulation: 2 environments of {settings['n_samples']:,} samples. A1 and A2 "
        "cause the label, C1 is a child of label and environment, "
        f"{settings['n_distractors']} features B are noise.\n"
    )

    plain = SCMClassifier()
    invariant = ICSCMClassifier()
    with console.hide_repeated_warnings():
        plain.fit(data.X, data.y, environments=data.environments)
        invariant.fit(data.X, data.y, environments=data.environments)
    if writes_report:
        _write_report(invariant, data, report, force=force)

    learners = {
        "SCM": _print_learner(screen, "SCM", plain, data),
        "ICSCM": _print_learner(screen, "ICSCM", invariant, data),
    }
    _print_result(screen, invariant)
    if writes_report:
        screen.print()
        console.print_written(report, more=", the report on ICSCM")
    elif is_kept and not no_report:
        console.print_line(f"{as_text(report)} exists and was kept; --force overwrites it.")
    return {"parents": data.parents, "learners": learners}


def _write_report(learner: ICSCMClassifier, data: Any, path: Path, *, force: bool) -> None:
    """Write the report on the invariant learner, with its models at other levels."""
    from icscm.validation.path import alpha_path

    models = alpha_path(learner, data.X, data.y, environments=data.environments)
    learner.report(data_name=_DATA_NAME, path=models).save(path, force=force)


def _print_learner(
    screen: Console, name: str, learner: SCMClassifier | ICSCMClassifier, data: Any
) -> dict[str, Any]:
    """Print the rule of a learner, and which of its columns are causes; return it as JSON."""
    from rich.text import Text

    used_columns = learner.features_used_
    marks = []
    for column in used_columns:
        is_parent = column in data.parents
        marks.append(f"{column} ✓ parent" if is_parent else f"{column} ✗ not a parent")
    marks += [f"{parent} missing" for parent in data.parents if parent not in used_columns]
    accuracy = learner.score(data.X, data.y)
    screen.print(Text.assemble((f"{name:6}", "bold"), (str(learner.model_), "cyan")))
    screen.print("      " + ", ".join(marks))
    screen.print(f"      accuracy {accuracy:.1%}\n")
    return {"rule": str(learner.model_), "features": used_columns, "accuracy": accuracy}


def _print_result(screen: Console, learner: ICSCMClassifier) -> None:
    """Print what `icscm fit` shows of a model."""
    from rich.text import Text

    from icscm.report.content.learner import make_learner_content
    from icscm.report.documents.learner import write_document

    screen.print(Text("Result of ICSCM, as shown by icscm fit", style="bold"))
    content = make_learner_content(learner, words=name_option, unvalidated="icscm fit measures it")
    console.print_document(screen, write_document(content, is_brief=True, with_rejected=True))
