"""`icscm screen`: which columns of a table are shortcuts, for the user's own learner."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import console, shared
from icscm.cli.group import main
from icscm.cli.routes import read_samples
from icscm.cli.shared import COLUMNS, FILE, LABELS, READING, Options, add_options
from icscm.exceptions import IcscmError
from icscm.formatting import format_name, shorten_list
from icscm.io.formats import describe_path, name_data
from icscm.writing import STDOUT, write_text

if TYPE_CHECKING:
    from icscm.estimators.selector import InvariantFeatureSelector


@main.command()
@click.argument("data", type=FILE)
@add_options(*COLUMNS, "group", "out", "report", "force", "estimator", "tolerance")
@add_options("min_replication", "cv", "validate", "keep_columns", "n_jobs", "random_state")
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
    shared.check_ending(report, ".html", ".md", ".json")
    shared.check_outputs([out, report], force=force, inputs=[data])
    from icscm.estimators.learners import make_estimator
    from icscm.estimators.selector import InvariantFeatureSelector
    from icscm.report.screen import render_screen
    from icscm.validation.folds import drop_columns, make_cohort
    from icscm.validation.path import tolerance_path
    from icscm.validation.screening import validate_screen

    names = "tolerance", "min_replication", "cv", "n_jobs", "random_state"
    settings = {name: options[name] for name in names}
    if ":" in options["estimator"]:
        sys.path.insert(0, "")  # modules in the current folder can be imported, as with python -m
    selector = InvariantFeatureSelector(make_estimator(options["estimator"], 0), **settings)
    progress = console.Progress(quiet=quiet)
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_samples(data, options)
    kept = shared.find_kept(samples.X.column_names, options, "the table")
    cohort = make_cohort(samples.X.to_pandas(), samples.y, environments=samples.environments)
    cohort, dropped = drop_columns(cohort, kept)
    table = cohort.X, samples.y
    more = {"environments": samples.environments, "groups": samples.groups}
    if not cohort.X.shape[1]:
        raise IcscmError("no column is left to screen; --keep-columns keeps dropped columns")
    text = f"Screening {cohort.X.shape[1]:,} columns"
    with progress.stage(text), console.hide_repeated_warnings():
        selector.fit(*table, **more)
    found: dict[str, Any] = {}
    if options["validate"]:
        text = "Screening without each environment"
        with progress.stage(text), console.hide_repeated_warnings():
            found["validation"] = validate_screen(selector, *table, **more)
    if _needs_path(selector, options) and (report is not None or console.is_json()):
        with progress.stage("Screening at other tolerances"):
            found["path"] = tolerance_path(
                selector,
                cohort.X,
                samples.y,
                environments=samples.environments,
                groups=samples.groups,
                leave_one_out=options["validate"],
            )
    found |= {"target": samples.target, "environment": samples.environment}
    made = selector.report(data_name=name_data(data), **found)
    if report is not None:
        made.save(report, force=force)
    if out is not None:
        write_text(out, "".join(f"{name}\n" for name in selector.kept_))
    sizes = len(samples.y), int(cohort.is_positive.sum()), cohort.X.shape[1], len(cohort.labels)
    facts = console.list_data_facts(data, samples, *sizes)
    if dropped:
        reasons = [f"{format_name(name)} ({why})" for name, why in dropped.items()]
        facts.append(["Dropped", f"{shorten_list(reasons, '; ')} (--keep-columns keeps them)"])
    console.print_all(console.make_console(stderr=out == STDOUT), render_screen(made, facts))
    console.print_written(out, report)
    return made.to_dict()


def _needs_path(selector: InvariantFeatureSelector, options: Options) -> bool:
    """Whether other tolerances need a new screen: some may reject more, or they are validated."""
    from icscm.report.screen import SCREEN_TOLERANCES, find_known_tolerance

    known = find_known_tolerance(selector.screen_, selector.tolerance)
    return not options["no_path"] and (options["validate"] or known > min(SCREEN_TOLERANCES))
