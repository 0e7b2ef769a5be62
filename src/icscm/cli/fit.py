"""`icscm fit`: from a file to a rule, a model file and a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from icscm._constants import DEFAULT_MARGIN
from icscm.cli.choosing import check_choice, choose_parameters, choosing_options, print_choice
from icscm.cli.console import (
    Progress,
    list_data_facts,
    make_console,
    print_all,
    print_written,
    said_below,
)
from icscm.cli.group import main
from icscm.cli.growing import (
    GROWN,
    MODELS,
    RULES,
    check_model_options,
    check_route,
    growing_options,
    least_option,
    make_grown,
    say_purpose,
)
from icscm.cli.options import (
    check_outputs,
    column_options,
    force_option,
    read_labelled,
    reading_options,
)
from icscm.cli.scale import BITS, MEMORY, choose_route, learn_elsewhere, scale_options
from icscm.cli.shorthand import (
    COST,
    FILE,
    LEVEL,
    OUTPUT,
    apply,
    choice,
    flag,
    number,
    number_or,
    read_positive,
    value,
)
from icscm.cli.words import name_option
from icscm.exceptions import IcscmError
from icscm.formatting import as_text, count, format_name, shorten_list
from icscm.io.locating import describe_path, find_format, name_data
from icscm.io.roles import Labelling, Samples, split_commas, split_names
from icscm.writing import STDOUT, check_free, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.estimators.counted import CountedClassifier
    from icscm.sources.countable import Countable
    from icscm.sources.memory import MemorySource
    from icscm.studies.stability import StabilitySelection
    from icscm.studies.tuning import GridSearch

REPORT_ENDINGS = (".html", ".md", ".json")

# Options that are parameters of the same name: of both learners, and of the invariant one only.
_SHARED = ("p", "model_type", "max_rules", "max_thresholds", "missing")
_OWN = ("alpha", "test", "stop", "search", "min_replication", "min_utility")
_ALSO_OWN = ("criterion", "margin_on", "evidence")
# The words of --pruning as the learner's.
_PRUNING: dict[str, bool | str] = {
    "allowed": True,
    "none": False,
    "shown": "shown",
    "always": "always",
}

# Levels of a category up to which the model file lists them; of more, new ones are no news.
_MAX_LEVELS = 1_000

_DEFAULT_MARGINS = {"rate": DEFAULT_MARGIN, "odds_ratio": 1.5}

_UTILITY = number_or("none", None, float, "a finite number", isfinite)
_MANY = number_or("none", None, int, "a whole number from 1", lambda x: x >= 1)

model_options = apply(
    choice(
        f"--model {' '.join(MODELS)}",
        "icscm: rules that hold in every environment. scm: the plain learner, untested. tree, "
        "forest: splits whose effect is the same in every environment, for predicting elsewhere.",
    ),
    choice(
        "--type conjunction disjunction",
        "Positive where all rules are true, or where any is.",
        "model_type",
    ),
    value(
        "--p NUMBER|balanced",
        "Cost of a row that a rule settles wrongly, against one settled rightly; larger is warier. "
        "balanced: both classes weigh the same, for rare outcomes.",
        COST,
        1.0,
    ),
    choosing_options,
    value(
        "--alpha NUMBER|auto",
        "Level of the tests; larger refuses more rules. auto: min(0.05, 200 / rows).",
        LEVEL,
        0.05,
    ),
    number("--max-rules", 10, "Largest number of rules."),
    value(
        "--max-thresholds NUMBER|none",
        "Thresholds or levels tried per column; rarer levels are pooled. none: all.",
        _MANY,
        50,
    ),
    choice(
        "--test chi2 g fisher",
        "Of independence of label and environment; fisher where counts are small.",
    ),
    choice(
        "--stop independence coverage",
        "End when the rest no longer depends on the environment, or only when covered.",
    ),
    choice(
        "--pruning allowed shown always none",
        "Of columns that invariance could do without: where Proposition 3.2 allows it, only where "
        "shown within --margin, always, or not.",
    ),
    choice(
        "--search greedy exhaustive",
        "exhaustive tests sets of rules: for few rows, best with --alpha auto.",
    ),
    least_option,
    value(
        "--min-replication SHARE",
        "In how many environments a rule's rows must lie, next to all rows; 0: nothing is asked.",
        click.FloatRange(0, 1),
        0.25,
    ),
    value(
        "--min-utility NUMBER|none",
        "Least utility of a rule, and of all together over always saying the same.",
        _UTILITY,
        0.0,
    ),
    choice(
        "--criterion pvalue equivalence",
        "pvalue: a rule holds unless refuted. equivalence: only if shown to, within --margin.",
    ),
    value(
        "--margin NUMBER",
        "Difference between environments that counts as none.  [default: 0.05; with --margin-on "
        "odds_ratio 1.5]",
        read_positive,
    ),
    choice(
        "--margin-on rate odds_ratio",
        "What the margin is a difference of; odds_ratio where the label is rare.",
    ),
    choice(
        "--correction none bonferroni holm bh",
        "Of p-values for the number of candidates; with it fewer are refused.",
    ),
    choice("--evidence step cumulative", "cumulative: a rule once refused is not tried again."),
    growing_options,
    choice(
        "--missing candidate separate error",
        "Missing values: tried on either side of each rule; only in rules 'is missing' and 'is "
        "present'; or refused.",
    ),
    value(
        "--keep COLUMNS",
        "Columns to use although they look like identifiers, constants or copies: A,B, or all. "
        "Repeatable.",
        multiple=True,
    ),
    number(
        "--stability",
        None,
        "Learn again from so many random halves, such as 50, and tell which rules and models come "
        "back.  [default: none]",
    ),
    number("--seed", 0, "Of --cv, --stability and a forest; nothing else is random.", least=0),
    number("--jobs", None, "Threads; no effect on the result.  [default: all cores]"),
    choice(
        "--device cpu cuda auto",
        "Count on the processor, or on a CUDA graphics card; auto: if there is one and the data "
        "are large. No effect on the result.",
    ),
)

output_options = apply(
    value(
        "--out FILE",
        "Write the model here, as JSON, for icscm predict, show and export; - for standard output.",
        OUTPUT,
    ),
    value("--report FILE", "Write a report here: .html (a page to read), .md or .json.", FILE),
    flag(
        "--no-alpha-path",
        "Leave the models at other alphas, or trees at other tolerances, out of the report; saves "
        "a search for each.",
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

    learner: CountedClassifier
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
    learner = make_learner(samples, options)
    choice = choose_parameters(learner, table, options, progress)
    with progress.stage(f"Learning from {samples.X.num_rows:,} rows"), said_below():
        countable = open_memory(*table, preparation=learner.prepare())
        learner.fit_counts(countable)
    stability = None
    if options["stability"]:
        from icscm.studies.stability import stability_selection

        n_halves, seed = options["stability"], options["seed"]
        with progress.stage(f"Learning from {count(n_halves, 'random half')}"), said_below():
            stability = stability_selection(learner, *table, n_halves, random_state=seed)
    return Fitted(learner, samples, countable, choice, stability)


def _fit_elsewhere(route: str, data: Path, options: dict[str, Any], progress: Progress) -> Fitted:
    learner = make_learner(None, options)
    learner.keep_columns = split_commas((*options["only"], *options["keep"])) or None
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
    learner = make_learner(None, options)
    learner.prepare()
    if report is not None and not hasattr(learner, "report"):
        raise IcscmError(f"no report is made of a {options['model']}; --out keeps the model")
    if options["model"] in RULES:
        check_choice(ctx, learner, options)


def make_learner(samples: Samples | None, options: dict[str, Any]) -> Any:
    """The learner that the options describe; columns to keep are known once there are samples."""
    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier

    kept = None if samples is None else _find_kept(samples, options["keep"])
    found = {"n_jobs": options["jobs"], "keep_columns": kept, "device": options["device"]}
    if options["model"] in GROWN:
        return make_grown(options, **found)
    settings = {name: options[name] for name in _SHARED} | found
    if options["model"] == "scm":
        return SCMClassifier(**settings)
    settings |= {name: options[name] for name in (*_OWN, *_ALSO_OWN)}
    return ICSCMClassifier(
        **settings,
        min_samples_leaf=options["min_samples_leaf"] or 1,
        pruning=_PRUNING[options["pruning"]],
        margin=options["margin"] or _DEFAULT_MARGINS[options["margin_on"]],
        correction=None if options["correction"] == "none" else options["correction"],
    )


def _find_kept(samples: Samples, keep: tuple[str, ...]) -> Any:
    names = samples.X.column_names
    if "all" in keep and "all" not in names:
        return "all"
    return [*samples.asked_for, *split_names(keep, names, "the table")] or None


def _write(fitted: Fitted, data: Path, options: dict[str, Any], progress: Progress) -> list[Path]:
    """Make all outputs, then write them."""
    from icscm.model.saved import make_saved_model
    from icscm.report.render import make_report

    out, path, force = options["out"], options["report"], options["force"]
    learner, countable, report = fitted.learner, fitted.countable, None
    if path is not None:
        with progress.stage("Making the report"):
            names = fitted.name_things(name_data(data))
            if countable is not None and not options["no_alpha_path"]:
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
    from icscm.report.path import compute_alpha_path
    from icscm.report.tolerance import compute_tolerance_path

    source, settings = countable.source, learner.make_settings(countable)
    if getattr(learner, "tolerance_", None) is not None:
        return {"tolerance_path": compute_tolerance_path(source, settings)}
    if hasattr(learner, "alpha_"):
        return {"alpha_path": compute_alpha_path(source, settings)}
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


def _list_levels(learner: CountedClassifier) -> dict[str, list[Any]]:
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
    from icscm.cli.forests import render_forest
    from icscm.estimators.forest import InvariantForestClassifier
    from icscm.estimators.tree import GrownClassifier
    from icscm.report.summary import make_summary
    from icscm.report.terminal import make_fact_table, render_summary

    learner, table = fitted.learner, fitted.samples
    n_negative, n_positive = map(sum, learner.class_counts_)
    facts = list_data_facts(
        name,
        table,
        n_rows=n_negative + n_positive,
        n_positive=n_positive,
        n_columns=learner.n_features_in_ - len(learner.left_out_),
        n_environments=len(learner.environments_ or ()),
    )
    if learner.left_out_:
        facts.append(("Left out", f"{_join_reasons(learner.left_out_)} (--keep keeps them)"))
    if isinstance(learner, GrownClassifier):
        facts.append(("For", say_purpose(learner.trace_)))
    console.print(make_fact_table(facts))
    if fitted.choice is not None:
        print_choice(console, fitted.choice)
    console.print()
    if isinstance(learner, InvariantForestClassifier):
        told = render_forest(learner)
    else:
        told = render_summary(make_summary(learner, **fitted.name_things(name)))
    print_all(console, told)
    console.print()


def _join_reasons(left_out: Mapping[str | int, str]) -> str:
    """Columns by the reason for which they were left out."""
    by_reason: dict[str, list[str]] = {}
    for column, why in left_out.items():
        by_reason.setdefault(as_text(why), []).append(format_name(column))
    return "; ".join(f"{shorten_list(names)}: {why}" for why, names in by_reason.items())
