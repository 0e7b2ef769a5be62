"""`icscm screen`: which columns of a table are shortcuts, for the user's own learner."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.genomes import read_any_samples
from icscm.cli.group import main, mark_interrupted
from icscm.cli.options import COLUMNS, FILE, LABELS, READING, Options, add_options
from icscm.cli.outcomes import TargetValues, find_outcome
from icscm.exceptions import IcscmError
from icscm.formatting import format_name, shorten_list
from icscm.io.locating import describe_path, name_data
from icscm.io.roles import Samples
from icscm.report.wording.facts import Fact
from icscm.writing import STDOUT, write_text

if TYPE_CHECKING:
    from icscm.estimators.selector import InvariantFeatureSelector
    from icscm.report.screen import ScreenReport
    from icscm.validation.cohort import Cohort


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "outcome", "group", "weight", "out", "report", "force", "tolerance")
@add_options("on_undecided", "estimator", "cv", "validate", "n_jobs", "random_state")
@add_options("no_path", *LABELS, *READING)
def screen(data: Path, report: Path | None, quiet: bool, **options: Any) -> Options:
    """Find shortcuts: columns whose effect differs by site.

    The outcome may be two classes, several classes, or a number. A boosted model of all columns is
    cross-fitted, and for each column it is estimated what the column is worth in each environment:
    1 if it says there what the model has learned, 0 nothing, below 0 the reverse. Of the columns
    whose worth differs and may fall too low in a new environment (--tolerance) the worst is
    rejected. This is repeated without it until no column is rejected; Ctrl-C shows the rounds so
    far. The verdicts are printed; --out writes the names of the columns kept, --report a page with
    the worth and the effect of every column in each environment.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, a
    folder of such files, or - for CSV from standard input; it is read into memory. Genomes
    (.bits, .rtab) need --labels; genes that are present in the same genomes are one column.

    \b
    Examples:
      icscm screen heart.csv --target ill --environment hospital
      icscm screen heart.csv --target creatinine --environment hospital \\
          --estimator linear --validate --report screen.html --out kept.txt
    """
    out, force = options["out"], options["force"]
    files.check_ending(report, ".html", ".md", ".json")
    files.check_outputs([out, report], force=force, inputs=[data])
    progress = console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_any_samples(data, options | {"takes_any_outcome": True})
    table = _prepare_table(samples, options["outcome"])
    selector = _make_selector(options, is_number=table.outcome.is_number)
    page = _screen_table(table, selector, data, report=report, options=options, progress=progress)

    if report is not None:
        page.save(report, force=force)
    if out is not None:
        write_text(out, "".join(f"{name}\n" for name in page.content.kept))
    # standard output is for the names of columns if --out says so
    _print_page(page, data, table, to_stderr=out == STDOUT)
    console.print_written(out, report)
    return page.to_dict()


@dataclass(frozen=True)
class _ScreenedTable:
    """A table without the columns that no screen should have, and why these were dropped."""

    samples: Samples
    cohort: Cohort
    dropped: dict[Any, str]
    outcome: TargetValues

    @property
    def n_columns(self) -> int:
        """The number of columns to screen."""
        n_columns: int = self.cohort.X.shape[1]
        return n_columns

    @property
    def arguments(self) -> dict[str, Any]:
        """What functions that take a table are called with."""
        return {
            "X": self.cohort.X,
            "y": self.samples.y,
            "environments": self.samples.environments,
            "groups": self.samples.groups,
            "sample_weight": self.samples.weights,
        }


def _prepare_table(samples: Samples, outcome: str | None) -> _ScreenedTable:
    """Find what the outcome is, and drop columns such as identifiers; raise if none is left."""
    from icscm.validation.cohort import drop_columns, make_any_cohort

    target_values = find_outcome(samples.y, outcome)
    cohort = make_any_cohort(
        samples.X.to_pandas(),
        samples.y,
        environments=samples.environments,
        is_number=target_values.is_number,
    )
    cohort, dropped = drop_columns(cohort)
    table = _ScreenedTable(
        samples=samples,
        cohort=cohort,
        dropped=dropped,
        outcome=target_values,
    )
    if table.n_columns == 0:
        raise IcscmError("no column is left to screen; --categories keeps what is no identifier")
    return table


def _screen_table(
    table: _ScreenedTable,
    selector: InvariantFeatureSelector,
    data: Path,
    *,
    report: Path | None,
    options: Options,
    progress: console.Progress,
) -> ScreenReport:
    """Screen the columns, and again without each environment or at other tolerances if needed."""
    from icscm.estimators.selector import make_verdicts
    from icscm.screening.measuring import MeasuredRounds
    from icscm.validation.path import tolerance_path
    from icscm.validation.screening import validate_screen

    is_validated = options["validate"]
    has_path = (report is not None or console.is_json()) and not options["no_path"]
    validation: Any = None
    path: Any = None

    # the path begins with the rounds of this screen
    verdicts = make_verdicts(selector, MeasuredRounds() if has_path else None)
    with progress.stage(f"Screening {table.n_columns:,} columns"), console.hide_repeated_warnings():
        verdicts.fit(**table.arguments)
    if not verdicts.is_complete_:  # the user wants an end, and what there is
        mark_interrupted()
        is_validated = False
        has_path = False
    if is_validated:
        text = "Screening without each environment"
        with progress.stage(text), console.hide_repeated_warnings():
            validation = validate_screen(selector, **table.arguments)
    if has_path:
        with progress.stage("Screening at other tolerances"):
            path = tolerance_path(verdicts, **table.arguments, leave_one_out=is_validated)

    return verdicts.report(
        data_name=name_data(data),
        target=table.samples.target,
        environment=table.samples.environment,
        validation=validation,
        path=path,
    )


def _print_page(page: ScreenReport, data: Path, table: _ScreenedTable, *, to_stderr: bool) -> None:
    """Print the data, the dropped columns and the verdicts."""
    from icscm.report.screen import render_screen

    facts = console.list_data_facts(
        data,
        table.samples,
        n_rows=len(table.samples.y),
        n_columns=table.n_columns,
        n_environments=len(table.cohort.environment_labels),
        outcome=table.outcome.describe(table.samples, table.samples.weights),
    )
    if table.dropped:
        reasons = [f"{format_name(name)} ({why})" for name, why in table.dropped.items()]
        facts.append(Fact("Dropped", shorten_list(reasons, "; ")))
    console.print_all(console.make_console(stderr=to_stderr), render_screen(page, facts))


def _make_selector(options: Options, *, is_number: bool) -> InvariantFeatureSelector:
    """The screen that the options describe."""
    from icscm.estimators.learners import make_estimator
    from icscm.estimators.selector import InvariantFeatureSelector

    if ":" in options["estimator"]:
        sys.path.insert(0, "")  # modules in the current folder can be imported, as with python -m
    return InvariantFeatureSelector(
        make_estimator(options["estimator"], 0, is_number=is_number),
        tolerance=options["tolerance"],
        on_undecided=options["on_undecided"],
        cv=options["cv"],
        n_jobs=options["n_jobs"],
        random_state=options["random_state"],
    )
