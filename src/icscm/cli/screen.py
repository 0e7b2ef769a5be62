"""`icscm screen`: which columns of a table are shortcuts, for the user's own learner."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, files
from icscm.cli.genomes import read_any_samples
from icscm.cli.group import main
from icscm.cli.options import COLUMNS, FILE, LABELS, READING, Options, add_options
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
@add_options(*COLUMNS, "group", "out", "report", "force", "estimator", "tolerance")
@add_options("min_replication", "cv", "validate", "n_jobs", "random_state")
@add_options("no_path", *LABELS, *READING)
def screen(data: Path, report: Path | None, quiet: bool, **options: Any) -> Options:
    """Find shortcuts: columns whose effect differs by site.

    Any learner (--estimator) is cross-fitted on all columns. The column whose effect differs most
    between environments, given all others, is rejected if its share of heterogeneity is above
    --tolerance and significant. This is repeated without it until no column is rejected.
    The verdicts are printed; --out writes the names of the columns kept, --report a page with the
    effect of every column in each environment.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, a
    folder of such files, or - for CSV from standard input; it is read into memory. Genomes
    (.bits, .rtab) need --labels; genes that are present in the same genomes are one column.

    \b
    Examples:
      icscm screen heart.csv --target ill --environment hospital
      icscm screen heart.csv --target ill --environment hospital \\
          --estimator logistic --validate --report screen.html --out kept.txt
    """
    out, force = options["out"], options["force"]
    files.check_ending(report, ".html", ".md", ".json")
    files.check_outputs([out, report], force=force, inputs=[data])
    selector = _make_selector(options)
    progress = console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_any_samples(data, options)
    table = _drop_columns(samples)
    page = _screen_table(table, selector, data, report=report, options=options, progress=progress)

    if report is not None:
        page.save(report, force=force)
    if out is not None:
        write_text(out, "".join(f"{name}\n" for name in selector.kept_))
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
        }


def _drop_columns(samples: Samples) -> _ScreenedTable:
    """Drop columns such as identifiers; raise if none is left."""
    from icscm.validation.cohort import drop_columns, make_cohort

    cohort = make_cohort(samples.X.to_pandas(), samples.y, environments=samples.environments)
    cohort, dropped = drop_columns(cohort)
    table = _ScreenedTable(samples=samples, cohort=cohort, dropped=dropped)
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
    from icscm.validation.path import tolerance_path
    from icscm.validation.screening import validate_screen

    is_validated = options["validate"]
    has_page = report is not None or console.is_json()
    validation: Any = None
    path: Any = None

    with progress.stage(f"Screening {table.n_columns:,} columns"), console.hide_repeated_warnings():
        selector.fit(**table.arguments)
    if is_validated:
        text = "Screening without each environment"
        with progress.stage(text), console.hide_repeated_warnings():
            validation = validate_screen(selector, **table.arguments)
    if has_page and _needs_path(selector, options):
        with progress.stage("Screening at other tolerances"):
            path = tolerance_path(selector, **table.arguments, leave_one_out=is_validated)

    return selector.report(
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
        n_positive=int(table.cohort.is_positive.sum()),
        n_columns=table.n_columns,
        n_environments=len(table.cohort.environment_labels),
    )
    if table.dropped:
        reasons = [f"{format_name(name)} ({why})" for name, why in table.dropped.items()]
        facts.append(Fact("Dropped", shorten_list(reasons, "; ")))
    console.print_all(console.make_console(stderr=to_stderr), render_screen(page, facts))


def _make_selector(options: Options) -> InvariantFeatureSelector:
    """The screen that the options describe."""
    from icscm.estimators.learners import make_estimator
    from icscm.estimators.selector import InvariantFeatureSelector

    if ":" in options["estimator"]:
        sys.path.insert(0, "")  # modules in the current folder can be imported, as with python -m
    return InvariantFeatureSelector(
        make_estimator(options["estimator"], 0),
        tolerance=options["tolerance"],
        min_replication=options["min_replication"],
        cv=options["cv"],
        n_jobs=options["n_jobs"],
        random_state=options["random_state"],
    )


def _needs_path(selector: InvariantFeatureSelector, options: Options) -> bool:
    """Whether other tolerances need a new screen: some may reject more, or they are validated."""
    from icscm.report.screen_path import SCREEN_TOLERANCES, find_known_tolerance

    if options["no_path"]:
        return False
    known = find_known_tolerance(selector.screen_, selector.tolerance)
    return options["validate"] or known > min(SCREEN_TOLERANCES)
