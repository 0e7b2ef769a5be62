"""The options of `icscm fit` that are parameters of the learners, and the learner they make."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from icscm.cli.console import Progress
from icscm.cli.group import name_option
from icscm.cli.options import apply, choice, flag, is_given, number, parameter, value
from icscm.cli.routes import DASK
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import format_number
from icscm.parameters import get_spec

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.studies.tuning import GridSearch

# The class of each --model.
MODELS: Final = {
    "icscm": "ICSCMClassifier",
    "scm": "SCMClassifier",
    "tree": "InvariantTreeClassifier",
    "forest": "InvariantForestClassifier",
}

PARAMETERS: Final = (
    *("model_type", "p", "alpha", "max_rules", "max_thresholds", "test", "stop", "pruning"),
    *("search", "min_samples_leaf", "min_replication", "min_utility", "criterion", "margin"),
    *("margin_on", "correction", "evidence", "invariance", "tolerance", "max_leaves"),
    *("probabilities", "n_estimators", "max_features", "resample", "missing", "n_jobs", "device"),
)
# Options besides these that only some models have.
_ONLY_FOR: Final = {
    **dict.fromkeys(("cv", "cv_scorer", "cv_folds", "stability"), ("icscm", "scm")),
    "no_path": ("icscm", "scm", "tree"),
}

model_option = choice(
    f"--model {' '.join(MODELS)}",
    "icscm: rules that are invariant across environments. scm: the plain learner, without tests. "
    "tree, forest: splits whose effect is homogeneous across environments, to predict at a new "
    "site.",
)
learner_options = apply(
    *map(parameter, PARAMETERS),
    value(
        "--keep-columns COLUMNS",
        "Columns to use although they look like identifiers, constants or copies: A,B, or all. "
        "Repeatable.",
        multiple=True,
    ),
    number(
        "--stability",
        None,
        "Learn again from this many random subsamples, such as 50, and report which rules and "
        "models come back.  [default: none]",
    ),
    number("--random-state", 0, "Random seed of --cv, --stability and a forest.", "int [0, inf)"),
    flag("--no-path", "Leave the models at other alphas or tolerances out of the report."),
)


def check_model_options(ctx: click.Context, options: dict[str, Any]) -> None:
    """Raise for options that the chosen model does not have, and for missing environments.

    Adds what the user set to the options, as `given`.
    """
    import icscm

    model = options["model"]
    signatures = {
        name: set(inspect.signature(getattr(icscm, each)).parameters)
        for name, each in MODELS.items()
    }
    given = [name for name in (*PARAMETERS, *_ONLY_FOR) if is_given(ctx, name)]
    for name in given:
        owners = _ONLY_FOR.get(name) or [key for key, own in signatures.items() if name in own]
        if model not in owners:
            others = " or ".join(
                [*([", ".join(owners[:-1])] if len(owners) > 1 else []), owners[-1]]
            )
            raise IcscmError(Parameter(name), f" is for --model {others}, not for {model}")
    options["given"] = {name: options[name] for name in given if name in PARAMETERS}
    is_grown = "tolerance" in signatures[model]
    is_plain = options["given"].get("tolerance", "") is None if is_grown else model == "scm"
    if options["environment"] is None and not is_plain:
        other = "--tolerance none" if is_grown else "--model scm"
        raise IcscmError(
            "name the column of the environments with --environment, or learn without them "
            f"with {other}"
        )


def make_learner(options: Mapping[str, Any], keep_columns: Any = None) -> Any:
    """The learner that the options describe."""
    import icscm

    settings = {**options["given"], "keep_columns": keep_columns}
    if settings.get("margin_on") == "odds_ratio":
        settings.setdefault("margin", 1.5)
    if options["model"] == "forest":
        settings["random_state"] = options["random_state"]
    return getattr(icscm, MODELS[options["model"]])(**settings)


def check_route(route: str, options: Mapping[str, Any]) -> None:
    """Raise where rows cannot be drawn."""
    if options["model"] == "forest" and route == DASK:
        raise IcscmError(
            "--model forest draws rows, which cannot be done on Dask; grow one --model tree, or "
            "leave out --dask and --workers"
        )


# Parameters that can be chosen; `type` is what version 0.2 called `model_type`.
_CHOSEN = ("p", "model_type", "alpha", "margin")


def _read_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """A parameter and the values to try of it, as in p=0.1,1,balanced; without a name they are p's.

    >>> _read_values("model_type=conjunction,disjunction"), _read_values("0.5,1")
    (('model_type', ('conjunction', 'disjunction')), ('p', (0.5, 1.0)))
    """
    name, _, values = text.rpartition("=")
    name = {"": "p", "type": "model_type"}.get(name.strip(), name.strip())
    if name not in _CHOSEN:
        raise click.BadParameter(
            f"{name!r} cannot be chosen; {', '.join(_CHOSEN)} can, as in p=0.1,1,balanced"
        )
    allowed = get_spec(name).allowed
    assert allowed is not None
    try:
        return name, tuple(dict.fromkeys(allowed.parse(each.strip()) for each in values.split(",")))
    except IcscmError as error:
        raise click.BadParameter(str(error)) from None


cv_options = apply(
    value(
        "--cv NAME=V1,V2,..",
        "Choose by 5-fold cross-validation: p=0.1,1,balanced, "
        "model_type=conjunction,disjunction, alpha= or margin=; numbers alone are p. "
        "Repeatable: every combination is tried.",
        _read_values,
        multiple=True,
    ),
    choice("--cv-scorer balanced_accuracy auc log_loss accuracy", "What --cv chooses by."),
    choice(
        "--cv-folds rows environments",
        "What --cv holds out: rows of every environment, or whole environments.",
    ),
)


def check_cv(ctx: click.Context, learner: Any, options: dict[str, Any]) -> None:
    """Raise for what --cv cannot choose; the grid takes the place of what --cv was given."""
    from icscm.studies.tuning import list_combinations

    grid: dict[str, tuple[Any, ...]] = {}
    for name, values in options["cv"]:
        grid[name] = tuple(dict.fromkeys((*grid.get(name, ()), *values)))
    options["cv"] = grid
    for name in ("cv_scorer", "cv_folds"):
        if not grid and is_given(ctx, name):
            raise IcscmError(Parameter(name), " is for --cv, which names what to choose")
    for name in grid:
        if name not in learner.get_params(deep=False):
            raise IcscmError(f"--cv {name}= is for --model icscm; the plain learner tests nothing")
        if is_given(ctx, name):
            option = name_option(Parameter(name))
            raise IcscmError(f"{option} sets {name} and --cv chooses it; give one of the two")
    for each in list_combinations(learner, grid) if grid else ():
        type(learner)(**{**learner.get_params(deep=False), **each}).prepare()


def choose_parameters(
    learner: Any, table: tuple[Any, Any, Any], options: dict[str, Any], progress: Progress
) -> GridSearch | None:
    """Set the learner's parameters to the best of --cv; None where nothing is to be chosen."""
    grid = options["cv"]
    if not grid:
        return None
    from icscm.studies.tuning import N_FOLDS, grid_search

    names = ", ".join(grid)
    with progress.stage(f"Cross-validating {names}", N_FOLDS) as advance:
        found = grid_search(
            learner,
            *table,
            grid,
            scorer=options["cv_scorer"],
            folds=options["cv_folds"],
            seed=options["random_state"],
            on_fold=advance,
        )
    learner.set_params(**found.best)
    return found


def print_choice(console: Console, found: GridSearch) -> None:
    """The score of each combination, the constant's as the last."""
    from icscm.report.terminal import make_heading, make_note, make_table
    from icscm.studies.scores import TITLES

    names = list(found.best)
    is_share = found.scorer.endswith("accuracy")
    rows = []
    for each, score in zip((*found.tried, None), (*found.scores, found.baseline), strict=True):
        cells = ["constant", *[""] * (len(names) - 1)]
        if each is not None:
            cells = [v if isinstance(v, str) else format_number(v) for v in each.values()]
        mark = "  <- chosen" if each == found.best else ""
        rows.append((*cells, f"{score:.2%}{mark}" if is_share else f"{score:.4f}{mark}"))
    title = TITLES.get(found.scorer, found.scorer).lower().replace("auc", "AUC")
    console.print(make_heading(f"{', '.join(names)} by cross-validation"))
    console.print(make_table((*names, f"{title} where held out"), rows))
    told = f"{found.n_folds} folds of {found.folds}, averaged."
    better = "smaller" if found.scorer == "log_loss" else "larger"
    told += f" {better.capitalize()} is better; constant: always the more frequent class."
    if not found.beats_baseline:
        told += " Nothing that was tried does better than the constant."
    console.print(make_note(f"\n{told}"))
