"""`icscm fit`: from a file to a rule, a model file and a report; `--cv` chooses parameters."""

from __future__ import annotations

import inspect
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from icscm._lazy import postpone_imports
from icscm.cli import console, shared
from icscm.cli.console import Progress, hide_repeated_warnings
from icscm.cli.group import main, name_option
from icscm.cli.routes import DASK, MEMORY, choose_route, learn_elsewhere
from icscm.cli.shared import FILE, Options, add_options, is_given
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import as_text, count, escape_controls, format_name, shorten_list
from icscm.io.formats import describe_path, find_format, name_data
from icscm.io.roles import Roles
from icscm.model.thresholds import Threshold, fix_threshold, read_threshold
from icscm.parameters import get_spec
from icscm.writing import STDOUT, check_free, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.validation.tuning import GridSearch

# Values of each parameter that --cv tries.
Grid = dict[str, list[Any]]
# The class of each --model.
MODELS: Final = {
    "icscm": "ICSCMClassifier",
    "scm": "SCMClassifier",
    "tree": "InvariantTreeClassifier",
    "forest": "InvariantForestClassifier",
    "score": "InvariantScoreClassifier",
}

PARAMETERS: Final = (
    *("model_type", "p", "alpha", "max_rules", "max_thresholds", "test", "stop", "pruning"),
    *("search", "min_samples_leaf", "min_replication", "min_utility", "criterion", "margin"),
    *("margin_on", "correction", "evidence", "conclusion", "invariance"),
    *("tolerance", "max_leaves", "max_terms", "max_points"),
    *("probabilities", "n_estimators", "max_features", "resample", "missing", "n_jobs", "device"),
)
# Options besides these that only some models have.
_ONLY_FOR: Final = {"no_path": ("icscm", "scm", "tree")}
# Parameters that --cv can choose.
_CHOSEN = (
    *("p", "model_type", "alpha", "margin", "tolerance", "max_leaves", "min_samples_leaf"),
    *("max_rules", "n_estimators", "max_features", "max_terms", "max_points"),
)

# What trees and forests are for, by what is required to be homogeneous.
_PURPOSES = {
    "effect": "prediction at a new site: effects of columns are required to be homogeneous; a "
    "consequence of the label, such as a treatment, may pass (--invariance rate finds parents)",
    "rate": "finding parents: the label's rate in each leaf is required to be homogeneous "
    "(--invariance effect predicts better at a new site)",
    "plain": "comparison: a plain model, without any requirement",
}

# Advice where rows are not in memory.
_ELSEWHERE = "needs all rows in memory; give a number, costs=1:10 or a smaller table"

# Steps of a scan (see `count_steps`) times environments up to which leave-one-environment-out runs
# by default: a minute or two on two cores, longer for a score. A size, not a time, so that results
# are reproducible.
_MAX_STEPS = dict.fromkeys(MODELS, 20 * 10**6) | dict.fromkeys(("forest", "score"), 5 * 10**6)
# Levels of a category up to which the model file lists them, so that new ones can be reported.
_MAX_LEVELS = 1_000
# Rows in which a report permutes columns: a forest predicts them about thirty times.
_MAX_PERMUTED = 3_000


@main.command()
@click.argument("data", type=FILE)
@add_options(*shared.COLUMNS, "group", "out", "report", "tripod", "force", "model")
@add_options("threshold", "cv", "cv_scorer", "cv_folds")
@add_options(*PARAMETERS, "keep_columns", "stability", "random_state", "no_path")
@add_options("validation", "no_validation")
@add_options("max_memory", "temp_dir", "dask", "workers", *shared.LABELS, *shared.READING)
@click.pass_context
def fit(ctx: click.Context, /, data: Path, quiet: bool, **options: Any) -> Options:
    """Learn a rule, tree, forest or points score from a table.

    Numbers give rules such as age > 63, text and booleans smoker == yes; missing values are
    handled by the rule itself. The rule, its performance in environments left out and the search
    are printed; --out saves the model, --report writes a page to read and to share. Where one
    rule predicts poorly, --model tree grows a tree of such rules, --model forest many trees;
    --model score gives points to a few columns.

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
    out, report, tripod = (options[name] for name in ("out", "report", "tripod"))
    learner = make_learner(ctx, data, options)
    shared.check_ending(report, ".html", ".md", ".json")
    shared.check_ending(tripod, ".html", ".md")
    shared.check_outputs([out, report, tripod], force=options["force"], inputs=[data])
    grid, route = make_grid(ctx, learner, options), choose_route(data, options)
    if (threshold := options["threshold"]) is not None:
        read_threshold(threshold) if route == MEMORY else fix_threshold(threshold, _ELSEWHERE)
    progress = Progress(quiet=quiet)
    choice: GridSearch | None = None
    found: dict[str, Any] = {}
    if route == MEMORY:
        labels, choice, found = _fit_in_memory(learner, grid, data, options, progress)
    else:
        with progress.stage(f"Learning from {data}"), hide_repeated_warnings():
            labels = learn_elsewhere(learner, route, data, options)
        needed = "it needs a table in memory"
        found["unvalidated"] = "--no-validation" if options["no_validation"] else needed
    if threshold is not None:
        with progress.stage("Choosing the threshold"), hide_repeated_warnings():
            cut = _choose_threshold(learner, labels, options)
        learner.model_ = replace(learner.model_, threshold=cut)
    path = found.pop("path", None)
    names = found | {
        "data_name": name_data(data),
        "commands": _list_commands(ctx, data, options),
        "target": labels.target,
        "environment": labels.environment,
        "class_names": labels.class_names,
        "words": name_option,
    }
    screen = console.make_console(stderr=out == STDOUT)  # standard output is for the model then
    try:  # first to files: a terminal that fails must not lose them
        _write(learner, labels, data, options, names | {"path": path}, progress)
    finally:
        summary = print_fit(screen, data, learner, labels, choice, names)
    console.print_written(out, report, tripod)
    if out is None and report is None and tripod is None and not quiet:
        console.print_line("No file was written; --out saves the model, --report writes a report.")
    return summary


# `icscm report DATA --tripod FILE`: a report needs the search, which a model file does not have.
click.Group.add_command(main, fit, "report")


def _fit_in_memory(
    learner: Any, grid: Grid, data: Path, options: Options, progress: Progress
) -> tuple[Roles, GridSearch | None, dict[str, Any]]:
    """The roles of columns, the choice of --cv, and the path and stability for the report."""
    with progress.stage(f"Reading {describe_path(data)}"):
        samples = shared.read_labelled(data, options)
    from icscm.search.shape import count_steps
    from icscm.sources.memory import open_memory
    from icscm.validation.importances import permutation_importance
    from icscm.validation.path import compute_alpha_path, compute_tolerance_path
    from icscm.validation.stability import MAX_BRIEF_STEPS, N_BRIEF, stability_selection
    from icscm.validation.tuning import grid_search

    table = samples.X, samples.y
    places: Options = {"environments": samples.environments}
    own: Options = places | {"groups": samples.groups}
    learner.keep_columns = shared.find_kept(samples.X.column_names, options, "the table")
    seed, choice = options["random_state"], None
    found: dict[str, Any] = {}
    if grid:
        ways = {"scorer": options["cv_scorer"], "folds": options["cv_folds"]} | own
        with progress.stage(f"Cross-validating {', '.join(grid)}"):
            choice = grid_search(learner, *table, grid=grid, **ways, random_state=seed)
        learner.set_params(**choice.best)
    with progress.stage(f"Learning from {samples.X.num_rows:,} rows"), hide_repeated_warnings():
        countable = open_memory(*table, **own, preparation=learner.prepare())
        learner.fit_counts(countable)
    found |= _validate(learner, samples, options, progress, countable)
    n_subsamples, n_steps = options["stability"], count_steps(countable, samples.X.num_rows)
    is_brief = n_subsamples is None and options["model"] in ("icscm", "scm")
    is_brief = is_brief and bool(learner.model_.rules) and n_steps <= MAX_BRIEF_STEPS
    if n_subsamples or is_brief:
        n = n_subsamples or N_BRIEF
        text = f"Learning from {count(n, 'random subsample')}"
        with progress.stage(text), hide_repeated_warnings():
            halved = stability_selection(learner, *table, n_resamples=n, random_state=seed, **own)
        same = round(halved.columns_frequency * n)
        found |= {"n_returned": (same, n)} if is_brief else {"stability": halved}
    if options["report"] is not None and options["model"] == "forest":
        with progress.stage("Permuting columns"):
            found["importances"] = permutation_importance(
                learner, *table, **places, n_repeats=3, max_rows=_MAX_PERMUTED
            )
    if options["report"] is not None and not options["no_path"] and options["model"] != "score":
        settings = learner.make_settings(countable)
        with progress.stage("Learning with other settings"):
            if getattr(learner, "tolerance_", None) is not None:
                found["path"] = compute_tolerance_path(countable.source, settings)
            elif hasattr(learner, "alpha_"):
                found["path"] = compute_alpha_path(countable.source, settings)
    return samples, choice, found


def _choose_threshold(learner: Any, labels: Roles, options: Options) -> Threshold:
    """The threshold; of rows outside memory it is a number or costs."""
    from icscm.validation.tuning import choose_threshold

    rows: Options = {name: getattr(labels, name, None) for name in ("X", "y", "environments")}
    rows |= {"groups": getattr(labels, "groups", None), "random_state": options["random_state"]}
    return choose_threshold(learner, threshold=options["threshold"], **rows)


def _validate(
    learner: Any, samples: Any, options: Options, progress: Progress, countable: Any
) -> dict[str, Any]:
    """Validate by leave-one-environment-out; where that is not done, return the reason."""
    n, wanted = len(learner.environments_ or ()), options["validation"]
    if options["no_validation"] or n < 2:
        return {"unvalidated": "--no-validation" if n > 1 else "the data have no environments"}
    from icscm.search.shape import count_steps
    from icscm.validation.transfer import leave_one_environment_out

    n_steps = n * count_steps(countable, samples.X.num_rows, n_steps_of_number=4)
    if not wanted and n_steps > (most := _MAX_STEPS[options["model"]]):
        why = f"too many cells and environments ({n_steps:,} steps, by default at most {most:,})"
        return {"unvalidated": f"{why}; --validation measures it"}
    text = f"Validating in {n} environments left out (--no-validation omits it)"
    try:
        with progress.stage(text), hide_repeated_warnings():
            found = leave_one_environment_out(
                learner,
                samples.X,
                samples.y,
                environments=samples.environments,
                groups=samples.groups,
            )
    except IcscmError as error:
        if wanted:
            raise
        return {"unvalidated": str(error)}
    return {"validation": found}


def _write(
    learner: Any, labels: Roles, data: Path, options: Options, names: Options, progress: Progress
) -> None:
    """Make all outputs, then write them."""
    from icscm.model.saved import make_saved_model
    from icscm.report.page import make_report

    out, path, tripod, force = (options[name] for name in ("out", "report", "tripod", "force"))
    report, saved = None, make_saved_model(learner)
    if path is not None or tripod is not None:
        with progress.stage("Making the report"):
            report = make_report(learner, **names)
    table = _describe_table(learner, labels, data, options)
    text = replace(saved, settings={**saved.settings, "table": table}).to_json()
    if report is not None and path is not None:  # first, since it is most likely to fail
        report.save(path, force=force)
    if report is not None and tripod is not None:
        write_text(tripod, report.to_tripod(as_html=tripod.suffix.lower() == ".html"))
    if out is not None:
        check_free(out, force=force)
        write_text(out, text)


def _list_commands(ctx: click.Context, data: Path, options: Options) -> dict[str, str]:
    """The commands that learn a tree and make a screen of the same data."""
    roles = []
    for name in (*shared.COLUMNS, "group", *shared.LABELS, *shared.READING):
        if is_given(ctx, name) and name != "quiet":
            option, value = name_option(Parameter(name)), options[name]
            values = value if isinstance(value, tuple) else (value,)
            for v in values:
                roles += [option] if v is True else [option, str(v)]
    given = escape_controls(shlex.join([str(data), *roles]))
    commands = {name: f"icscm fit {given} --model {name}" for name in ("tree", "score")}
    commands["screen"] = f"icscm screen {given}"
    if options["labels"] is not None or data.is_dir() or options["environment"] is None:
        del commands["screen"]  # it needs a table with environments
    return commands


def _describe_table(learner: Any, labels: Roles, data: Path, options: Options) -> dict[str, Any]:
    """How the file was read, so that `icscm predict` reads other files the same way."""
    from icscm.tables.columns import sort_key

    is_packed = data.suffix.lower() == shared.BITS
    alike = getattr(learner, "equivalent_rules_", []) if is_packed else []
    known = getattr(learner, "levels_", {})  # a packed store has none
    return {
        **({"equivalents": [[str(rule) for rule in rules] for rules in alike]} if alike else {}),
        "target": labels.target,
        "positive": [str(value) for value in labels.positive],
        "environment": labels.environment,
        "environment_columns": list(labels.places),
        "exclude_environment": list(labels.exclude_environment),
        "merge_environments": list(labels.merge_environments),
        "na": list(options["na"]),
        "default_na": not options["no_default_na"],
        "format": "parquet" if is_packed else find_format(data, options["member"]),
        "decimal": options["decimal"] or ".",
        "levels": {
            str(name): sorted(known[name], key=sort_key)
            for name in learner.features_used_
            if 0 < len(known.get(name, ())) <= _MAX_LEVELS
        },
    }


def print_fit(
    screen: Console,
    data: Path,
    learner: Any,
    labels: Roles,
    choice: GridSearch | None,
    names: Options,
) -> Options:
    """Print the data, the choice of --cv and the model; return its summary."""
    from icscm.estimators.tree import BaseTreeClassifier
    from icscm.report.summary import make_summary
    from icscm.report.terminal import make_fact_table, render_summary
    from icscm.validation.scores import TITLES

    n_negative, n_positive = map(sum, learner.class_counts_)
    n_columns = learner.n_features_in_ - len(learner.dropped_columns_)
    sizes = n_negative + n_positive, n_positive, n_columns, len(learner.environments_ or ())
    facts = console.list_data_facts(data, labels, *sizes)
    by_reason: dict[str, list[str]] = {}
    for column, why in learner.dropped_columns_.items():
        by_reason.setdefault(as_text(why), []).append(format_name(column))
    if by_reason:
        dropped = "; ".join(f"{shorten_list(each)}: {why}" for why, each in by_reason.items())
        facts.append(["Dropped", f"{dropped} (--keep-columns keeps them)"])
    if isinstance(learner, BaseTreeClassifier):
        plain = learner.trace_.tolerance is None
        facts.append(["Purpose", _PURPOSES["plain" if plain else learner.invariance]])
    if isinstance(cut := learner.model_.threshold, Threshold):
        facts.append(["Threshold", cut.describe()])
    screen.print(make_fact_table(facts))
    if choice is not None:
        tried = {**vars(choice), "beats_baseline": choice.beats_baseline, "titles": TITLES}
        console.print_all(screen, console.render("grid_search.md", tried))
    screen.print()
    summary = make_summary(learner, **names)
    console.print_all(screen, render_summary(summary))
    screen.print()
    return summary


def make_learner(ctx: click.Context, data: Path, options: Options) -> Any:
    """The learner that the options describe.

    Raises for options that its model does not have, and for missing environments.
    """
    import icscm

    postpone_imports()
    model, settings = options["model"], {}
    learner_class = getattr(icscm, MODELS[model])
    parameters = inspect.signature(learner_class).parameters
    for name in (*PARAMETERS, *_ONLY_FOR):
        if not is_given(ctx, name):
            continue
        is_known = name in parameters if name in PARAMETERS else model in _ONLY_FOR[name]
        if not is_known:
            owners = _ONLY_FOR.get(name) or _list_owners(name)
            others = f"{', '.join(owners[:-1])} or {owners[-1]}".removeprefix(" or ")
            raise IcscmError(Parameter(name), f" is for --model {others}, not for {model}")
        if name in PARAMETERS:
            settings[name] = options[name]
    is_grown = "tolerance" in parameters
    is_plain = settings.get("tolerance", "") is None if is_grown else model == "scm"
    if options["environment"] is None and not is_plain:
        other = "--tolerance none" if is_grown else "--model scm"
        advice = "name the column of environments with --environment"
        raise IcscmError(f"{advice}, or learn without them with {other}")
    if settings.get("margin_on") == "odds_ratio":
        settings.setdefault("margin", 1.5)
    if model in ("forest", "score"):
        settings["random_state"] = options["random_state"]
    if model in ("icscm", "scm") and choose_route(data, options) != DASK:
        is_searched = any("type=" in each for each in options["cv"])
        settings.setdefault("model_type", "conjunction" if is_searched else "auto")
    learner = learner_class(**settings)
    learner.prepare()
    return learner


def _list_owners(parameter: str) -> list[str]:
    """The models that have a parameter."""
    import icscm

    found = {name: inspect.signature(getattr(icscm, each)) for name, each in MODELS.items()}
    return [name for name, signature in found.items() if parameter in signature.parameters]


def make_grid(ctx: click.Context, learner: Any, options: Options) -> Grid:
    """The values of each parameter that --cv tries; raise if it cannot choose a parameter."""
    grid: Grid = {}
    for text in options["cv"]:
        name, values = _read_values(text)
        grid[name] = list(dict.fromkeys((*grid.get(name, ()), *values)))
    for name in ("cv_scorer", "cv_folds"):
        if not grid and is_given(ctx, name):
            raise IcscmError(Parameter(name), " is only used with --cv; name the parameters to try")
    for name in grid:
        if name not in learner.get_params(deep=False):
            raise IcscmError(f"--cv {name}= is not for --model {options['model']}")
        if is_given(ctx, name):
            option = name_option(Parameter(name))
            raise IcscmError(f"{option} sets {name} and --cv chooses it; give only one")
    if not grid:
        return grid
    from icscm.validation.tuning import list_combinations

    for each in list_combinations(learner, grid):
        type(learner)(**{**learner.get_params(deep=False), **each}).prepare()
    return grid


def _read_values(text: str) -> tuple[str, list[Any]]:
    """A parameter and the values to try, as in p=0.1,1,balanced; without a name, values of p.

    >>> _read_values("model_type=conjunction,disjunction"), _read_values("0.5,1")
    (('model_type', ['conjunction', 'disjunction']), ('p', [0.5, 1.0]))
    """
    name, _, values = text.rpartition("=")
    name = {"": "p", "type": "model_type"}.get(name.strip(), name.strip())  # as in version 0.2
    if name not in _CHOSEN:
        known = ", ".join(_CHOSEN)
        raise IcscmError(f"--cv cannot choose {name!r}; use {known}, as in p=0.1,1,balanced")
    allowed = get_spec(name).allowed
    assert allowed is not None
    try:
        return name, [allowed.parse(each.strip()) for each in values.split(",")]
    except IcscmError as error:
        raise IcscmError(f"--cv {name}=: {error}") from None
