"""The options --cv of `icscm fit`: parameters chosen by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from icscm.cli.click_types import apply, choice, is_given, value
from icscm.cli.console import Progress
from icscm.cli.option_names import name_option
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import format_number
from icscm.parameters import get_spec

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.estimators.cover import SCMClassifier
    from icscm.studies.tuning import GridSearch


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
    learner: SCMClassifier, table: tuple[Any, Any, Any], options: dict[str, Any], progress: Progress
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
