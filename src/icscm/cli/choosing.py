"""The options --cv of `icscm fit`: parameters chosen by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from icscm.cli.console import Progress
from icscm.cli.shorthand import COST, LEVEL, apply, choice, read_positive, value
from icscm.exceptions import IcscmError
from icscm.formatting import format_number

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.estimators.base import CoverClassifier
    from icscm.studies.tuning import GridSearch


def _read_type(text: str) -> str:
    if text not in ("conjunction", "disjunction"):
        raise click.BadParameter(f"{text!r} is neither 'conjunction' nor 'disjunction'")
    return text


# What can be chosen: the parameter, and how its values are read.
_CHOSEN = {
    "p": ("p", COST),
    "type": ("model_type", _read_type),
    "alpha": ("alpha", LEVEL),
    "margin": ("margin", read_positive),
}
_TITLES = {parameter: name for name, (parameter, _) in _CHOSEN.items()}


def _read_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """A parameter and the values to try of it, as in p=0.1,1,balanced; without a name they are p's.

    >>> _read_values("type=conjunction,disjunction"), _read_values("0.5,1")
    (('model_type', ('conjunction', 'disjunction')), ('p', (0.5, 1.0)))
    """
    name, has_name, values = text.rpartition("=")
    name = name.strip() if has_name else "p"
    if name not in _CHOSEN:
        raise click.BadParameter(
            f"{name!r} cannot be chosen; p, type, alpha and margin can, as in p=0.1,1,balanced"
        )
    parameter, read = _CHOSEN[name]
    return parameter, tuple(dict.fromkeys(read(each.strip()) for each in values.split(",")))


choosing_options = apply(
    value(
        "--cv NAME=V1,V2,..",
        "Choose by 5-fold cross-validation: p=0.1,1,balanced, type=conjunction,disjunction, alpha= "
        "or margin=; numbers alone are p. Repeatable: every combination is tried.",
        _read_values,
        multiple=True,
    ),
    choice("--cv-scorer balanced_accuracy auc log_loss accuracy", "What --cv chooses by."),
    choice(
        "--cv-folds rows environments",
        "What --cv holds out: rows of every environment, or whole environments.",
    ),
)


def check_choice(ctx: click.Context, learner: CoverClassifier, options: dict[str, Any]) -> None:
    """Raise for what cannot be chosen; the grid takes the place of what --cv was given."""
    from icscm.studies.tuning import list_combinations

    grid: dict[str, tuple[Any, ...]] = {}
    for parameter, values in options["cv"]:
        grid[parameter] = tuple(dict.fromkeys((*grid.get(parameter, ()), *values)))
    options["cv"] = grid
    for name, given in (("--cv-scorer", "cv_scorer"), ("--cv-folds", "cv_folds")):
        if not grid and _is_given(ctx, given):
            raise IcscmError(f"{name} is for --cv, which names what to choose")
    for parameter in grid:
        title = _TITLES[parameter]
        if parameter not in learner.get_params(deep=False):
            raise IcscmError(f"--cv {title}= is for --model icscm; the plain learner tests nothing")
        if _is_given(ctx, parameter):
            raise IcscmError(f"--{title} sets {title} and --cv chooses it; give one of the two")
    for each in list_combinations(learner, grid) if grid else ():
        type(learner)(**{**learner.get_params(deep=False), **each}).prepare()


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def choose_parameters(
    learner: CoverClassifier,
    table: tuple[Any, Any, Any],
    options: dict[str, Any],
    progress: Progress,
) -> GridSearch | None:
    """Set the learner's parameters to the best of --cv; None where nothing is to be chosen."""
    grid = options["cv"]
    if not grid:
        return None
    from icscm.studies.tuning import N_FOLDS, grid_search

    names = ", ".join(_TITLES[parameter] for parameter in grid)
    with progress.stage(f"Cross-validating {names}", N_FOLDS) as advance:
        found = grid_search(
            learner,
            *table,
            grid,
            scorer=options["cv_scorer"],
            folds=options["cv_folds"],
            seed=options["seed"],
            on_fold=advance,
        )
    learner.set_params(**found.best)
    return found


def print_choice(console: Console, found: GridSearch) -> None:
    """The score of each combination, the constant's as the last."""
    from icscm.report.terminal import make_heading, make_note, make_table
    from icscm.studies.scores import TITLES

    names = [_TITLES[parameter] for parameter in found.best]
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
