"""`icscm fit`: from a file to a rule, a model file and a report."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from icscm._constants import DEFAULT_MARGIN
from icscm.cli.console import Progress, make_console, print_note, print_written
from icscm.cli.findings import print_fit
from icscm.cli.group import main
from icscm.cli.options import (
    FILE,
    NumberOr,
    Numbers,
    PositiveNumber,
    apply,
    check_outputs,
    column_options,
    force_option,
    quiet_option,
    read_data,
    reading_options,
    take_apart,
)
from icscm.cli.scale import BITS, MEMORY, choose_route, learn_elsewhere, scale_options
from icscm.cli.words import translate
from icscm.exceptions import IcscmError, LeftOutWarning, NothingFoundWarning, TooLittleDataWarning
from icscm.io.locating import describe_path, find_format, name_data
from icscm.io.samples import Labelling, Samples, split_commas

if TYPE_CHECKING:
    from icscm.estimators.base import CoverClassifier
    from icscm.report.render import Report
    from icscm.sources.countable import Countable
    from icscm.sources.memory import MemorySource
    from icscm.studies.choice import PChoice

REPORT_ENDINGS = (".html", ".md", ".json")

# Options that only the invariant learner has.
_INVARIANT_ONLY = (
    "alpha", "test", "stop", "no_pruning", "search", "min_samples_leaf", "criterion", "margin",
    "margin_on", "correction", "evidence",
)  # fmt: skip

_DEFAULT_MARGINS = {"rate": DEFAULT_MARGIN, "odds_ratio": 1.5}

model_options = apply(
    click.option(
        "--model",
        type=click.Choice(["icscm", "scm"]),
        default="icscm",
        show_default=True,
        help="icscm: rules that hold in every environment. scm: the plain learner, untested.",
    ),
    click.option(
        "--type",
        "model_type",
        type=click.Choice(["conjunction", "disjunction"]),
        default="conjunction",
        show_default=True,
        help="Positive where all rules are true, or where any is.",
    ),
    click.option(
        "--p",
        type=PositiveNumber(),
        metavar="NUMBER",
        default=1.0,
        show_default=True,
        help="Cost of a row that a rule settles wrongly, against one settled rightly; larger is "
        "warier.",
    ),
    click.option(
        "--cv",
        type=Numbers(),
        metavar="P1,P2,..",
        help="Choose p among these by 5-fold cross-validation, such as 0.1,0.5,1,2.",
    ),
    click.option(
        "--alpha",
        type=NumberOr("auto", float, lambda x: 0 < x < 1, "a number between 0 and 1", value="auto"),
        metavar="NUMBER|auto",
        default=0.05,
        show_default=True,
        help="Level of the tests; larger refuses more rules. auto: min(0.05, 200 / rows).",
    ),
    click.option(
        "--max-rules",
        type=click.IntRange(1),
        metavar="NUMBER",
        default=10,
        show_default=True,
        help="Largest number of rules.",
    ),
    click.option(
        "--max-thresholds",
        type=NumberOr("none", int, lambda x: x >= 1, "a whole number from 1"),
        metavar="NUMBER|none",
        default=50,
        show_default=True,
        help="Thresholds or levels tried per column; rarer levels are pooled. none: all.",
    ),
    click.option(
        "--test",
        type=click.Choice(["chi2", "g", "fisher"]),
        default="chi2",
        show_default=True,
        help="Of independence of label and environment; fisher where counts are small.",
    ),
    click.option(
        "--stop",
        type=click.Choice(["independence", "coverage"]),
        default="independence",
        show_default=True,
        help="End when the rest no longer depends on the environment, or only when covered.",
    ),
    click.option("--no-pruning", is_flag=True, help="Keep rules that invariance could do without."),
    click.option(
        "--search",
        type=click.Choice(["greedy", "exhaustive"]),
        default="greedy",
        show_default=True,
        help="exhaustive tests sets of rules: for few rows, best with --alpha auto.",
    ),
    click.option(
        "--min-samples-leaf",
        type=click.IntRange(1),
        metavar="NUMBER",
        default=1,
        show_default=True,
        help="Fewest rows that a rule must settle, and leave.",
    ),
    click.option(
        "--criterion",
        type=click.Choice(["pvalue", "equivalence"]),
        default="pvalue",
        show_default=True,
        help="pvalue: a rule holds unless refuted. equivalence: only if shown to, within --margin.",
    ),
    click.option(
        "--margin",
        type=PositiveNumber(),
        metavar="NUMBER",
        help="Difference between environments that counts as none.  [default: 0.05; with "
        "--margin-on odds_ratio 1.5]",
    ),
    click.option(
        "--margin-on",
        type=click.Choice(["rate", "odds_ratio"]),
        default="rate",
        show_default=True,
        help="What the margin is a difference of; odds_ratio where the label is rare.",
    ),
    click.option(
        "--correction",
        type=click.Choice(["none", "bonferroni", "holm", "bh"]),
        default="none",
        show_default=True,
        help="Of p-values for the number of candidates; with it fewer are refused.",
    ),
    click.option(
        "--evidence",
        type=click.Choice(["step", "cumulative"]),
        default="step",
        show_default=True,
        help="cumulative: a rule once refused is not tried again.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["candidate", "separate", "error"]),
        default="candidate",
        show_default=True,
        help="Missing values: tried on either side of each rule; only in rules 'is missing' and "
        "'is present'; or refused.",
    ),
    click.option(
        "--keep",
        multiple=True,
        metavar="COLUMNS",
        help="Columns to use although they look like identifiers, constants or copies: A,B, or "
        "all. Repeatable.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        metavar="NUMBER",
        default=0,
        show_default=True,
        help="Of the folds of --cv; nothing else is random.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="NUMBER",
        help="Threads; no effect on the result.  [default: all cores]",
    ),
)

output_options = apply(
    click.option(
        "--out",
        type=FILE,
        metavar="FILE",
        help="Write the model here, as JSON, for icscm predict, show and export.",
    ),
    click.option(
        "--report",
        type=FILE,
        metavar="FILE",
        help="Write a report here: .html (a page to read), .md or .json.",
    ),
    click.option(
        "--no-alpha-path",
        is_flag=True,
        help="Leave the models at other alphas out of the report; saves a search for each.",
    ),
    force_option,
)


@main.command()
@click.argument("data", type=FILE)
@column_options(needs_environment=False)
@output_options
@model_options
@scale_options
@reading_options
@quiet_option
@click.pass_context
def fit(ctx: click.Context, /, data: Path, quiet: bool, **options: Any) -> None:
    """Learn a rule from a table.

    Numbers give rules such as age > 63, text and booleans smoker == yes; missing values are
    handled by the rule itself. The rule, how it was found and how it fares in each environment
    are printed; --out keeps the model, --report a page to read and to hand on.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. A folder of Parquet or CSV files, or a file too large for memory,
    is read in passes (--max-memory) or on a Dask cluster (--dask, --workers); a .bits file comes
    from icscm pack and needs --labels.

    \b
    Examples:
      icscm fit heart.csv --target ill --environment hospital \\
          --out model.json --report report.html
      icscm fit visits.csv --target readmitted --positive '<30' \\
          --positive '>30' --environment source --na '?' --drop id,ssn
    """
    _check_options(ctx, data, options)
    progress, console = Progress(quiet=quiet), make_console()
    route = choose_route(data, options)
    fitted = _fit_in_memory if route == MEMORY else _fit_elsewhere
    learner, samples, countable, choice = fitted(route, data, options, progress)
    try:  # first to files: what a terminal cannot show must not lose them
        written = _write(learner, samples, countable, data, options, progress)
    finally:
        print_fit(console, learner, samples, name_data(data), choice)
    for path in written:
        print_written(console, path)
    if not written:
        print_note(console, "Nothing was written; --out keeps the model, --report the evidence.")


# A fitted learner, what is known of its data, the counts if they are still there, and p's choice.
Fitted = tuple["CoverClassifier", "Labelling", "Countable[MemorySource] | None", "PChoice | None"]


def _fit_in_memory(_: str, data: Path, options: dict[str, Any], progress: Progress) -> Fitted:
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = take_apart(read_data(data, options), data, options)
    from icscm.sources.memory import open_memory

    learner = make_learner(samples, options)
    choice = _choose_p(learner, samples, options, progress)
    with progress.stage(f"Learning from {samples.X.num_rows:,} rows"), _said_below():
        countable = open_memory(
            samples.X, samples.y, samples.environments, preparation=learner.prepare()
        )
        learner.fit_counts(countable)
    return learner, samples, countable, choice


def _fit_elsewhere(route: str, data: Path, options: dict[str, Any], progress: Progress) -> Fitted:
    learner = make_learner(None, options)
    learner.keep_columns = split_commas((*options["only"], *options["keep"])) or None
    with _said_below():
        samples = learn_elsewhere(learner, route, data, options, progress)
    return learner, samples, None, None


@contextmanager
def _said_below() -> Iterator[None]:
    """Without the warnings that are said in other words when the rule is printed."""
    with warnings.catch_warnings():
        for category in (LeftOutWarning, NothingFoundWarning, TooLittleDataWarning):
            warnings.simplefilter("ignore", category)
        yield


def _check_options(ctx: click.Context, data: Path, options: dict[str, Any]) -> None:
    """Raise for what cannot work, before anything is read."""
    if options["model"] == "scm":
        for name in _INVARIANT_ONLY:
            if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
                option = f"--{name.replace('_', '-')}"
                raise IcscmError(f"{option} is for --model icscm; the plain learner tests nothing")
    elif options["environment"] is None:
        raise IcscmError(
            "name the column of the environments with --environment, or learn without them "
            "with --model scm"
        )
    if options["cv"] and ctx.get_parameter_source("p") is not ParameterSource.DEFAULT:
        raise IcscmError("--p sets p and --cv chooses it; give one of the two")
    report = options["report"]
    if report is not None and report.suffix.lower() not in REPORT_ENDINGS:
        raise IcscmError(f"{report} must end in {', '.join(REPORT_ENDINGS)}: the kind of report")
    check_outputs([options["out"], report], force=options["force"], inputs=[data])
    make_learner(None, options).prepare()


def make_learner(samples: Samples | None, options: dict[str, Any]) -> CoverClassifier:
    """The learner that the options describe; columns to keep are known once there are samples."""
    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier

    shared = {
        "p": options["p"],
        "model_type": options["model_type"],
        "max_rules": options["max_rules"],
        "max_thresholds": options["max_thresholds"],
        "n_jobs": options["jobs"],
        "missing": options["missing"],
        "keep_columns": None if samples is None else _find_kept(samples, options["keep"]),
    }
    if options["model"] == "scm":
        return SCMClassifier(**shared)
    return ICSCMClassifier(
        **shared,
        alpha=options["alpha"],
        test=options["test"],
        stop=options["stop"],
        pruning=not options["no_pruning"],
        search=options["search"],
        min_samples_leaf=options["min_samples_leaf"],
        criterion=options["criterion"],
        margin=options["margin"] or _DEFAULT_MARGINS[options["margin_on"]],
        margin_on=options["margin_on"],
        correction=None if options["correction"] == "none" else options["correction"],
        evidence=options["evidence"],
    )


def _find_kept(samples: Samples, keep: tuple[str, ...]) -> Any:
    from icscm.io.samples import split_names

    names = samples.X.column_names
    if "all" in keep and "all" not in names:
        return "all"
    return [*samples.asked_for, *split_names(keep, names, "the table")] or None


def _choose_p(
    learner: CoverClassifier, samples: Samples, options: dict[str, Any], progress: Progress
) -> PChoice | None:
    """Set the learner's p by cross-validation if that is asked for."""
    from icscm.studies.choice import N_FOLDS, choose_p

    if not options["cv"]:
        return None
    with progress.count("Cross-validating p", N_FOLDS) as advance:
        choice = choose_p(
            learner,
            samples.X,
            samples.y,
            samples.environments,
            options["cv"],
            seed=options["seed"],
            on_fold=advance,
        )
    learner.p = choice.best
    return choice


def _write(
    learner: CoverClassifier,
    samples: Labelling,
    countable: Countable[MemorySource] | None,
    data: Path,
    options: dict[str, Any],
    progress: Progress,
) -> list[Path]:
    """Make all outputs, then write them."""
    from icscm.model.saved import make_saved_model

    out, path, force = options["out"], options["report"], options["force"]
    report = None
    if path is not None:
        with progress.stage("Making the report"):
            kept = None if options["no_alpha_path"] else countable
            report = make_fit_report(learner, samples, name_data(data), kept)
    saved = make_saved_model(learner)
    if report is not None:  # first, as it has more that could go wrong
        report.save(path, force=force)
    if out is not None:
        settings = {**saved.settings, "table": _describe_table(samples, data, options)}
        replace(saved, settings=settings).save(out, force=force)
    return [each for each in (out, path) if each is not None]


def _describe_table(samples: Labelling, data: Path, options: dict[str, Any]) -> dict[str, Any]:
    """How the file was read, so that `icscm predict` reads others alike."""
    is_packed = data.suffix.lower() == BITS
    return {
        "target": samples.target,
        "positive": [str(value) for value in samples.positive],
        "environment": samples.environment,
        "na": list(options["na"]),
        "default_na": not options["no_default_na"],
        "format": "parquet" if is_packed else find_format(data, options["member"]),
        "decimal": options["decimal"] or ".",
    }


def make_fit_report(
    learner: CoverClassifier,
    samples: Labelling,
    name: str,
    countable: Countable[MemorySource] | None,
) -> Report:
    """The report on a fitted learner, with the models along alpha if there is a source for them."""
    from icscm.report.path import compute_alpha_path
    from icscm.report.render import make_report

    path = None
    if countable is not None and learner.tests_invariance:
        path = compute_alpha_path(countable.source, learner.make_settings(countable))
    return make_report(
        learner,
        data_name=name,
        target=samples.target,
        environment=samples.environment,
        left_out=learner.left_out_,
        alpha_path=path,
        class_names=samples.class_names,
        translate=translate,
    )
