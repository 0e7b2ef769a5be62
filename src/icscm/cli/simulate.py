"""`icscm simulate` and `icscm demo`: data whose causes are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from icscm.cli.console import make_console, print_all, print_written, said_below
from icscm.cli.group import main
from icscm.cli.options import check_outputs, force_option
from icscm.cli.shorthand import FILE, OUTPUT, Decorator, Share, apply, choice, flag, number, value
from icscm.cli.words import name_option
from icscm.io.table_writing import check_output_kind, write_table
from icscm.text import as_text

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.datasets import Simulation
    from icscm.estimators.base import CoverClassifier

DEMO_REPORT = "icscm-demo.html"

size_options = apply(
    number("--samples", 10_000, "Rows in each environment."),
    number("--distractors", 3, "Features that are pure noise.", least=0),
)
seed_option = number("--seed", 1, "Of the random numbers.", least=0)


def _share(name: str, text: str) -> Decorator:
    return value(f"{name} SHARE", text, Share(), 0.05)


@main.command()
@value(
    "--out FILE",
    "Write the data here: .csv, .tsv or .parquet; - for CSV to standard output.",
    OUTPUT,
    required=True,
)
@size_options
@number("--environments", 2, "How many environments.")
@number("--parents", 2, "Features A that cause the label.")
@number("--children", 1, "Features C that are its effects.", least=0)
@choice("--type conjunction disjunction tree", "How the parents make the label.", "model_type")
@choice("--noise coin flip", "The label is now and then a coin's, or inverted.")
@_share("--label-noise", "How often that happens.")
@choice("--child code text", "An effect's errors: as in the paper's code or text.")
@_share("--child-noise", "How often an effect shows the environment, not the label.")
@flag("--continuous", "Features in [0, 1] that are cut at 0.5.")
@seed_option
@force_option
def simulate(out: Path, force: bool, **options: Any) -> None:
    """Write data of the paper's simulation, whose causes are known.

    Features A1, A2, .. cause the label y, C1, .. are effects of label and environment, B1, .. are
    noise. The columns y and environment come last.

    \b
    Example:
      icscm simulate --out data.parquet
      icscm fit data.parquet --target y --environment environment
    """
    import pyarrow

    from icscm.datasets import make_conjunction

    check_output_kind(out)
    check_outputs([out], force=force)
    numbers = "samples", "distractors", "parents", "children", "environments"
    renamed = {f"n_{name}": options.pop(name) for name in numbers}
    data = make_conjunction(random_state=options.pop("seed"), **renamed, **options)
    features = {name: data.X[name].to_numpy() for name in data.X.columns}
    table = pyarrow.table(features | {"y": data.y, "environment": data.environments})
    write_table(table, out)
    more = f" ({table.num_rows:,} rows; causes: {', '.join(data.parents)})"
    print_written(make_console(), out, more)


@main.command(short_help="See both learners on the paper's simulation.")
@size_options
@seed_option
@value("--report FILE", "Write the report on ICSCM here: .html, .md or .json.", FILE, DEMO_REPORT)
@flag("--no-report", "Write no report.")
@force_option
@click.pass_context
def demo(ctx: click.Context, /, report: Path, no_report: bool, force: bool, **sizes: int) -> None:
    """Simulate the paper's data and learn from it with and without invariance.

    A1 and A2 cause the label and C1 is its effect, a better predictor than the causes. The plain
    learner falls for C1. The invariant learner sees that the label given C1 shifts between the
    two environments. A report on what it did is written to the current folder; one that is there
    already is kept unless --force is given.

    \b
    Example:
      icscm demo --samples 1000 --no-report
    """
    from icscm.datasets import make_conjunction
    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier

    is_own_choice = ctx.get_parameter_source("report") is not ParameterSource.DEFAULT
    is_kept = not is_own_choice and not force and report.exists()
    is_wanted = not (no_report or is_kept)
    if is_wanted:
        check_outputs([report], force=force)
    console = make_console()
    samples, distractors = sizes["samples"], sizes["distractors"]
    data = make_conjunction(samples, distractors, random_state=sizes["seed"])
    console.print(
        f"The paper's simulation: 2 environments of {samples:,} samples. A1 and A2 cause the "
        f"label, C1 is an effect of label and environment, {distractors} features B are noise.\n"
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
    _print_search(console, invariant)
    if is_wanted:
        console.print()
        print_written(console, report, ", the report on ICSCM")
    elif is_kept and not no_report:
        kept = as_text(report)
        console.print(f"\n{kept} is there already and was kept; --force writes it anew.")


def _print_model(console: Console, name: str, learner: CoverClassifier, data: Simulation) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"{name:6}", "bold"), (str(learner.model_), "cyan")))
    console.print("      " + _describe_features(learner.features_used_, data.parents))
    console.print(f"      accuracy {learner.score(data.X, data.y):.1%}\n")


def _print_search(console: Console, learner: CoverClassifier) -> None:
    from rich.text import Text

    from icscm.report.summary import make_summary
    from icscm.report.terminal import make_heading, render_refused, render_summary

    summary = make_summary(learner, words=name_option)
    console.print(Text("What ICSCM found, as icscm fit tells it", style="bold"))
    print_all(console, render_summary(summary))
    console.print(make_heading("What it refused"))
    print_all(console, render_refused(summary))


def _describe_features(used: Sequence[str | int], parents: Sequence[str]) -> str:
    """Which features are true parents, which are not, which are missing."""
    marks = [f"{name} {'✓ parent' if name in parents else '✗ not a parent'}" for name in used]
    missing = [f"{name} missing" for name in parents if name not in used]
    return ", ".join(marks + missing)
