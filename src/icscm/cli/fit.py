"""`icscm fit`: from a file to a rule, a model file and a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from icscm.cli.console import (
    Progress,
    list_data_facts,
    make_console,
    print_all,
    print_written,
    said_below,
)
from icscm.cli.group import main, name_option
from icscm.cli.learner_options import (
    check_cv,
    check_model_options,
    check_route,
    choose_parameters,
    cv_options,
    learner_options,
    make_learner,
    model_option,
    print_choice,
)
from icscm.cli.options import (
    FILE,
    OUTPUT,
    apply,
    check_outputs,
    column_options,
    find_kept,
    force_option,
    read_labelled,
    reading_options,
    value,
)
from icscm.cli.routes import BITS, MEMORY, choose_route, learn_elsewhere, scale_options
from icscm.exceptions import IcscmError
from icscm.formatting import as_text, count, format_name, shorten_list
from icscm.io.formats import describe_path, find_format, name_data
from icscm.io.roles import Labelling
from icscm.writing import STDOUT, check_free, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.estimators.base import BaseRuleClassifier
    from icscm.sources.countable import Countable
    from icscm.sources.memory import MemorySource
    from icscm.studies.stability import StabilitySelection
    from icscm.studies.tuning import GridSearch

REPORT_ENDINGS = (".html", ".md", ".json")

# What trees and forests are for, by what is required to be homogeneous.
_PURPOSES = {
    "effect": "prediction at a new site: effects of splits are required to be homogeneous; a "
    "child of the label may pass (--invariance rate looks for parents)",
    "rate": "looking for parents: the label's rate in each leaf is required to be homogeneous "
    "(--invariance effect predicts better at a new site)",
    "plain": "comparison: a plain model, without any requirement",
}

# Levels of a category up to which the model file lists them; of more, new ones are no news.
_MAX_LEVELS = 1_000

output_options = apply(
    value(
        "--out FILE",
        "Write the model here, as JSON, for icscm predict, show and export; - for standard output.",
        OUTPUT,
    ),
    value("--report FILE", "Write a report here: .html (a page to read), .md or .json.", FILE),
    force_option,
)


@main.command()
@click.argument("data", type=FILE)
@column_options(needs_environment=False)
@output_options
@model_option
@cv_options
@learner_options
@scale_options
@reading_options
@click.pass_context
def fit(ctx: click.Context, /, data: Path, quiet: bool, **options: Any) -> None:
    """Learn a rule, a tree or a forest from a table.

    Numbers give rules such as age > 63, text and booleans smoker == yes; missing values are
    handled by the rule itself. The rule, how it was found and how it fares in each environment
    are printed; --out keeps the model, --report a page to read and to hand on. Where one rule
    predicts too little, --model tree grows a tree of such rules, --model forest many.

    DATA is a .csv, .tsv, .txt, .data (also .gz, .bz2, .zst, .zip), .parquet or .feather file, or
    - for CSV from standard input. A folder of Parquet or CSV files, or a file too large for memory,
    is read in passes (--max-memory) or on a Dask cluster (--dask, --workers); a .bits file comes
    from icscm pack and needs --labels.

    \b
    Examples:
      icscm fit heart.csv --target ill --environment hospital \\
          --out model.json --report report.html
      icscm fit heart.csv --target ill --environment hospital --model tree
      icscm fit visits.csv --target readmitted --positive '<30' \\
          --positive '>30' --environment source --na '?' --drop id,ssn
    """
    _check_options(ctx, data, options)
    progress = Progress(quiet=quiet)
    console = make_console(stderr=options["out"] == STDOUT)  # which is for the model, then
    route = choose_route(data, options)
    check_route(route, options)
    learn = _fit_in_memory if route == MEMORY else _fit_elsewhere
    fitted = learn(route, data, options, progress)
    try:  # first to files: what a terminal cannot show must not lose them
        written = _write(fitted, data, options, progress)
    finally:
        print_fit(console, fitted, name_data(data))
    for path in written:
        print_written(console, path)
    if not written:
        nothing = "Nothing was written; --out keeps the model, --report the evidence."
        console.print(nothing, style="dim")


class Fitted(NamedTuple):
    """A fitted learner, what is known of its data, the counts if here, and what was asked of it."""

    learner: BaseRuleClassifier
    samples: Labelling
    countable: Countable[MemorySource] | None = None
    choice: GridSearch | None = None
    stability: StabilitySelection | None = None

    def name_things(self, name: str) -> dict[str, Any]:
        """What to call things in a report, and what was found besides the rule."""
        return {
            "stability": self.stability,
            "data_name": name,
            "target": self.samples.target,
            "environment": self.samples.environment,
            "class_names": self.samples.class_names,
            "words": name_option,
        }


def _fit_in_memory(_: str, data: Path, options: dict[str, Any], progress: Progress) -> Fitted:
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = read_labelled(data, options)
    from icscm.sources.memory import open_memory

    table = samples.X, samples.y, samples.environments
    kept = find_kept(samples.X.column_names, options, "the table")
    learner = make_learner(options, kept)
    choice = choose_parameters(learner, table, options, progress)
    with progress.stage(f"Learning from {samples.X.num_rows:,} rows"), said_below():
        countable = open_memory(*table, preparation=learner.prepare())
        learner.fit_counts(countable)
    stability = None
    if options["stability"]:
        from icscm.studies.stability import stability_selection

        n_halves, seed = options["stability"], options["random_state"]
        with progress.stage(f"Learning from {count(n_halves, 'random half')}"), said_below():
            stability = stability_selection(learner, *table, n_halves, random_state=seed)
    return Fitted(learner, samples, countable, choice, stability)


def _fit_elsewhere(route: str, data: Path, options: dict[str, Any], progress: Progress) -> Fitted:
    learner = make_learner(options)
    with said_below():
        samples = learn_elsewhere(learner, route, data, options, progress)
    return Fitted(learner, samples)


def _check_options(ctx: click.Context, data: Path, options: dict[str, Any]) -> None:
    """Raise for what cannot work, before anything is read."""
    check_model_options(ctx, options)
    report = options["report"]
    if report is not None and report.suffix.lower() not in REPORT_ENDINGS:
        raise IcscmError(f"{report} must end in {', '.join(REPORT_ENDINGS)}: the kind of report")
    check_outputs([options["out"], report], force=options["force"], inputs=[data])
    learner = make_learner(options)
    learner.prepare()
    if report is not None and not hasattr(learner, "report"):
        raise IcscmError(f"no report is made of a {options['model']}; --out keeps the model")
    check_cv(ctx, learner, options)


def _write(fitted: Fitted, data: Path, options: dict[str, Any], progress: Progress) -> list[Path]:
    """Make all outputs, then write them."""
    from icscm.model.saved import make_saved_model
    from icscm.report.page import make_report

    out, path, force = options["out"], options["report"], options["force"]
    learner, countable, report = fitted.learner, fitted.countable, None
    if path is not None:
        with progress.stage("Making the report"):
            names = fitted.name_things(name_data(data))
            if countable is not None and not options["no_path"]:
                names |= _follow_path(learner, countable)
            report = make_report(learner, **names)
    text, saved = "", make_saved_model(learner)
    if out is not None:  # before the report is written: not every model can be saved
        settings = {**saved.settings, "table": _describe_table(fitted, data, options)}
        text = replace(saved, settings=settings).to_json()
    if report is not None:  # first, as it has more that could go wrong
        report.save(path, force=force)
    if out is not None:
        check_free(out, force=force)
        write_text(out, text)
    return [each for each in (out, path) if each is not None]


def _follow_path(learner: Any, countable: Countable[MemorySource]) -> dict[str, Any]:
    """The models at other alphas, or the trees at other tolerances, for the report."""
    from icscm.report.path import compute_alpha_path, compute_tolerance_path

    source, settings = countable.source, learner.make_settings(countable)
    if getattr(learner, "tolerance_", None) is not None:
        return {"path": compute_tolerance_path(source, settings)}
    if hasattr(learner, "alpha_"):
        return {"path": compute_alpha_path(source, settings)}
    return {}


def _describe_table(fitted: Fitted, data: Path, options: dict[str, Any]) -> dict[str, Any]:
    """How the file was read, so that `icscm predict` reads others alike."""
    samples, is_packed = fitted.samples, data.suffix.lower() == BITS
    alike = getattr(fitted.learner, "equivalent_rules_", []) if is_packed else []
    equivalents = [[str(rule) for rule in rules] for rules in alike]
    return {
        **({"equivalents": equivalents} if equivalents else {}),
        "target": samples.target,
        "positive": [str(value) for value in samples.positive],
        "environment": samples.environment,
        "environment_columns": list(samples.roles.places),
        "exclude_environment": list(samples.roles.excluded),
        "merge_environments": list(samples.roles.merged),
        "na": list(options["na"]),
        "default_na": not options["no_default_na"],
        "format": "parquet" if is_packed else find_format(data, options["member"]),
        "decimal": options["decimal"] or ".",
        "levels": _list_levels(fitted.learner),
    }


def _list_levels(learner: BaseRuleClassifier) -> dict[str, list[Any]]:
    """Of categories in rules, the levels that there were: `icscm evaluate` tells of new ones."""
    from icscm.tables.columns import sort_key

    known = getattr(learner, "levels_", {})  # a packed store has none
    return {
        str(name): sorted(known[name], key=sort_key)
        for name in learner.features_used_
        if len(known.get(name, ())) in range(1, _MAX_LEVELS + 1)
    }


def print_fit(console: Console, fitted: Fitted, name: str) -> None:
    """What was given, what was chosen, and the rule with all that is known of it."""
    from icscm.estimators.tree import BaseTreeClassifier
    from icscm.report.summary import make_summary
    from icscm.report.terminal import make_fact_table, render_summary

    learner, table = fitted.learner, fitted.samples
    n_negative, n_positive = map(sum, learner.class_counts_)
    facts = list_data_facts(
        name,
        table,
        n_rows=n_negative + n_positive,
        n_positive=n_positive,
        n_columns=learner.n_features_in_ - len(learner.dropped_columns_),
        n_environments=len(learner.environments_ or ()),
    )
    if learner.dropped_columns_:
        facts.append(
            ("Dropped", f"{_join_reasons(learner.dropped_columns_)} (--keep-columns keeps them)")
        )
    if isinstance(learner, BaseTreeClassifier):
        plain = learner.trace_.tolerance is None
        facts.append(("Purpose", _PURPOSES["plain" if plain else learner.invariance]))
    console.print(make_fact_table(facts))
    if fitted.choice is not None:
        print_choice(console, fitted.choice)
    console.print()
    print_all(console, render_summary(make_summary(learner, **fitted.name_things(name))))
    console.print()


def _join_reasons(left_out: Mapping[str | int, str]) -> str:
    """Columns by the reason for which they were left out."""
    by_reason: dict[str, list[str]] = {}
    for column, why in left_out.items():
        by_reason.setdefault(as_text(why), []).append(format_name(column))
    return "; ".join(f"{shorten_list(names)}: {why}" for why, names in by_reason.items())
