"""The command line: each command a few lines over the library."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm import __version__
from icscm.exceptions import IcscmError

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.datasets import Simulation
    from icscm.estimators import ICSCMClassifier, SCMClassifier


class _OneLineErrors(click.Group):
    """A group whose commands end in one line on standard error, never in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except (IcscmError, OSError) as error:
                raise click.UsageError(str(error)) from error


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"Warning: {message}", err=True)


@click.group(cls=_OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="icscm")
def main() -> None:
    """Learn short rules that hold in every environment.

    Invariant Causal Set Covering Machines: from data collected in several environments
    (hospitals, countries, years) learn "age > 63 and smoker > 0", refusing rules under which
    the outcome shifts between environments.
    """


@main.command()
@click.option(
    "--samples", default=10_000, show_default=True, type=click.IntRange(1), help="Per environment."
)
@click.option(
    "--distractors",
    default=3,
    show_default=True,
    type=click.IntRange(0),
    help="Features that are pure noise.",
)
@click.option(
    "--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the random numbers."
)
def demo(samples: int, distractors: int, seed: int) -> None:
    """Simulate the paper's data and learn from it with and without invariance.

    A1 and A2 cause the label and C1 is its effect, a better predictor than the causes. The plain
    learner falls for C1. The invariant learner sees that the label given C1 shifts between the
    two environments.
    """
    from rich.console import Console
    from rich.text import Text

    from icscm.datasets import make_conjunction
    from icscm.estimators import ICSCMClassifier, SCMClassifier
    from icscm.report.terminal import (
        describe_pruning,
        describe_verdicts,
        make_rate_table,
        make_refusal_table,
        make_step_table,
    )

    console = Console(highlight=False)
    data = make_conjunction(samples, distractors, random_state=seed)
    console.print(
        f"The paper's simulation: 2 environments of {samples:,} samples. A1 and A2 cause the "
        f"label, C1 is an effect of label and environment, {distractors} features B are noise.\n"
    )
    plain = SCMClassifier().fit(data.X, data.y, environments=data.environments)
    invariant = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    _print_model(console, "SCM", plain, data)
    _print_model(console, "ICSCM", invariant, data)
    console.print("How ICSCM searched", style="bold underline")
    console.print(make_step_table(invariant.trace_))
    console.print(
        "\n[dim]p leaf: is the label independent of the environment among the samples that the "
        f"rule settles? Refused unless above {invariant.alpha}.\n"
        "p rest: the same for the samples that remain; the search ends when above "
        f"{invariant.alpha}.[/dim]\n"
    )
    console.print(invariant.trace_.stop_text)
    console.print(Text(describe_pruning(invariant.trace_)))
    console.print("\nWhat it refused", style="bold underline")
    console.print(make_refusal_table(invariant.trace_))
    console.print("\nPositive labels in each leaf, by environment", style="bold underline")
    verdicts = invariant.verdicts_
    console.print(make_rate_table(invariant.model_, invariant.trace_.environments, verdicts))
    console.print(f"\n[dim]{describe_verdicts(verdicts, invariant.margin)}[/dim]")


def _print_model(
    console: Console, name: str, learner: SCMClassifier | ICSCMClassifier, data: Simulation
) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"{name:6}", "bold"), (str(learner.model_), "cyan")))
    console.print(Text("      " + _describe_features(learner.features_used_, data.parents)))
    console.print(f"      accuracy {learner.score(data.X, data.y):.1%}\n")


def _describe_features(used: Sequence[str | int], parents: Sequence[str]) -> str:
    """Which features are true parents, which are not, which are missing."""
    marks = [f"{name} {'✓ parent' if name in parents else '✗ not a parent'}" for name in used]
    missing = [f"{name} missing" for name in parents if name not in used]
    return ", ".join(marks + missing)


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    default="reproduction",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for results; a run that was stopped goes on there.",
)
@click.option(
    "--runs", type=click.IntRange(1), help="Repetitions per cell.  [default: the paper's]"
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all random numbers."
)
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: all cores]")
@click.option("--quick", is_flag=True, help="Small sizes, to see that it works: a minute in all.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the raw data files for `real`.  [default: $ICSCM_DATA]",
)
def reproduce(
    names: tuple[str, ...],
    out: Path,
    runs: int | None,
    seed: int,
    jobs: int | None,
    quick: bool,
    data: Path | None,
) -> None:
    """Repeat the paper's experiments beside its published numbers.

    NAME is one or more of identification, dimensions, runtime, precision-recall, alpha,
    structures, samples, sharper, real; or all. Results go to --out row by row; then tables
    (Markdown, LaTeX), figures (PNG, SVG) and one page, index.html, that shows everything.
    """
    from icscm.experiments.reproduction import reproduce_experiments

    page = reproduce_experiments(
        names, out, runs=runs, seed=seed, jobs=jobs, quick=quick, data_home=data
    )
    click.echo(f"Written: {page}")


@main.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the raw data files.  [default: $ICSCM_DATA]",
)
def datasets(data: Path | None) -> None:
    """List the real data sets: size, source, licence, and whether the files are there."""
    from rich.console import Console

    from icscm.datasets import list_datasets
    from icscm.report.terminal import make_dataset_table

    Console(highlight=False).print(make_dataset_table(list_datasets(data)))
