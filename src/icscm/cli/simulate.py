"""`icscm simulate` and `icscm demo`: data whose causes are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from icscm.cli.console import make_console, print_heading, print_note, print_written
from icscm.cli.group import main
from icscm.cli.options import FILE, Decorated, apply, check_outputs, force_option

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.datasets import Simulation
    from icscm.estimators.base import CoverClassifier

DEMO_REPORT = "icscm-demo.html"

size_options = apply(
    click.option(
        "--samples",
        default=10_000,
        show_default=True,
        type=click.IntRange(1),
        metavar="NUMBER",
        help="Rows in each environment.",
    ),
    click.option(
        "--distractors",
        default=3,
        show_default=True,
        type=click.IntRange(0),
        metavar="NUMBER",
        help="Features that are pure noise.",
    ),
)


def _seed_option(default: int) -> Callable[[Decorated], Decorated]:
    return click.option(
        "--seed",
        default=default,
        show_default=True,
        type=click.IntRange(0),
        metavar="NUMBER",
        help="Of the random numbers.",
    )


def _rate_option(name: str, text: str) -> Callable[[Decorated], Decorated]:
    return click.option(
        name,
        default=0.05,
        show_default=True,
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help=text,
    )


def _number_option(
    name: str, default: int, least: int, text: str
) -> Callable[[Decorated], Decorated]:
    return click.option(
        name,
        default=default,
        show_default=True,
        type=click.IntRange(least),
        metavar="NUMBER",
        help=text,
    )


def _choice_option(
    name: str, choices: Sequence[str], text: str, *names: str
) -> Callable[[Decorated], Decorated]:
    return click.option(
        name, *names, default=choices[0], show_default=True, type=click.Choice(choices), help=text
    )


@main.command()
@click.option(
    "--out",
    required=True,
    type=FILE,
    metavar="FILE",
    help="Write the data here: .csv, .tsv or .parquet.",
)
@size_options
@_number_option("--environments", 2, 1, "How many environments.")
@_number_option("--parents", 2, 1, "Features A that cause the label.")
@_number_option("--children", 1, 0, "Features C that are its effects.")
@_choice_option(
    "--type",
    ["conjunction", "disjunction", "tree"],
    "How the parents make the label.",
    "model_type",
)
@_choice_option("--noise", ["coin", "flip"], "The label is now and then a coin's, or inverted.")
@_rate_option("--label-noise", "How often that happens.")
@_choice_option("--child", ["code", "text"], "An effect's errors: as in the paper's code or text.")
@_rate_option("--child-noise", "How often an effect shows the environment, not the label.")
@click.option("--continuous", is_flag=True, help="Features in [0, 1] that are cut at 0.5.")
@_seed_option(1)
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
    from icscm.io.table_writing import check_output_kind, make_table_writer
    from icscm.writing import write_whole

    check_output_kind(out)
    check_outputs([out], force=force)
    data = make_conjunction(
        options["samples"],
        options["distractors"],
        n_parents=options["parents"],
        n_children=options["children"],
        n_environments=options["environments"],
        model_type=options["model_type"],
        noise=options["noise"],
        child=options["child"],
        label_noise=options["label_noise"],
        child_noise=options["child_noise"],
        continuous=options["continuous"],
        random_state=options["seed"],
    )
    features = {name: data.X[name].to_numpy() for name in data.X.columns}
    table = pyarrow.table(features | {"y": data.y, "environment": data.environments})
    write_whole(out, make_table_writer(table, out))
    more = f" ({table.num_rows:,} rows; causes: {', '.join(data.parents)})"
    print_written(make_console(), out, more)


@main.command(short_help="See both learners on the paper's simulation.")
@size_options
@_seed_option(1)
@click.option(
    "--report",
    type=FILE,
    metavar="FILE",
    default=DEMO_REPORT,
    show_default=True,
    help="Write the report on ICSCM here: .html, .md or .json.",
)
@click.option("--no-report", is_flag=True, help="Write no report.")
@force_option
@click.pass_context
def demo(
    ctx: click.Context,
    /,
    samples: int,
    distractors: int,
    seed: int,
    report: Path,
    no_report: bool,
    force: bool,
) -> None:
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
    data = make_conjunction(samples, distractors, random_state=seed)
    console.print(
        f"The paper's simulation: 2 environments of {samples:,} samples. A1 and A2 cause the "
        f"label, C1 is an effect of label and environment, {distractors} features B are noise.\n"
    )
    plain = SCMClassifier().fit(data.X, data.y, environments=data.environments)
    invariant = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    if is_wanted:
        _write_report(invariant, data, report, force=force)
    _print_model(console, "SCM", plain, data)
    _print_model(console, "ICSCM", invariant, data)
    _print_search(console, invariant)
    if is_wanted:
        console.print()
        print_written(console, report, ", the report on ICSCM")
    elif is_kept and not no_report:
        console.print(f"\n{report} is there already and was kept; --force writes it anew.")


def _print_model(console: Console, name: str, learner: CoverClassifier, data: Simulation) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"{name:6}", "bold"), (str(learner.model_), "cyan")))
    console.print("      " + _describe_features(learner.features_used_, data.parents))
    console.print(f"      accuracy {learner.score(data.X, data.y):.1%}\n")


def _print_search(console: Console, learner: Any) -> None:
    from icscm.report.terminal import (
        describe_pruning,
        describe_verdicts,
        make_rate_table,
        make_refusal_table,
        make_step_table,
    )

    console.print("How ICSCM searched", style="bold underline")
    console.print(make_step_table(learner.trace_))
    print_note(
        console,
        "\np leaf: is the label independent of the environment among the samples that the "
        f"rule settles? Refused unless above {learner.alpha}.\n"
        "p rest: the same for the samples that remain; the search ends when above "
        f"{learner.alpha}.\n",
    )
    console.print(learner.trace_.stop_text)
    console.print(describe_pruning(learner.trace_))
    print_heading(console, "What it refused")
    console.print(make_refusal_table(learner.trace_))
    print_heading(console, "Positive labels in each leaf, by environment")
    console.print(make_rate_table(learner.model_, learner.trace_.environments, learner.verdicts_))
    print_note(console, "\n" + describe_verdicts(learner.verdicts_, learner.margin))


def _describe_features(used: Sequence[str | int], parents: Sequence[str]) -> str:
    """Which features are true parents, which are not, which are missing."""
    marks = [f"{name} {'✓ parent' if name in parents else '✗ not a parent'}" for name in used]
    missing = [f"{name} missing" for name in parents if name not in used]
    return ", ".join(marks + missing)


def _write_report(learner: Any, data: Simulation, path: Path, *, force: bool) -> None:
    found = learner.report(data.X, data.y, data.environments, data_name="the paper's simulation")
    found.save(path, force=force)
