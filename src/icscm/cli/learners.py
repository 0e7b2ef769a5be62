"""The learner of `icscm fit`: its parameters as options, and their choice by cross-validation."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from icscm.cli.group import name_option
from icscm.cli.options import is_given
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import format_number
from icscm.parameters import get_spec

if TYPE_CHECKING:
    from rich.console import RenderableType

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
# Parameters that --cv can choose.
_CHOSEN = ("p", "model_type", "alpha", "margin")


def make_learner(ctx: click.Context, options: dict[str, Any]) -> Any:
    """The learner that the options describe.

    Raises for options that its model does not have, and for missing environments.
    """
    import icscm

    model = options["model"]
    classes = {name: getattr(icscm, each) for name, each in MODELS.items()}
    signatures = {name: inspect.signature(each).parameters for name, each in classes.items()}
    settings = {}
    for name in (*PARAMETERS, *_ONLY_FOR):
        if not is_given(ctx, name):
            continue
        owners = _ONLY_FOR.get(name) or [key for key, own in signatures.items() if name in own]
        if model not in owners:
            others = f"{', '.join(owners[:-1])} or {owners[-1]}".removeprefix(" or ")
            raise IcscmError(Parameter(name), f" is for --model {others}, not for {model}")
        if name in PARAMETERS:
            settings[name] = options[name]
    is_grown = "tolerance" in signatures[model]
    is_plain = settings.get("tolerance", "") is None if is_grown else model == "scm"
    if options["environment"] is None and not is_plain:
        other = "--tolerance none" if is_grown else "--model scm"
        raise IcscmError(
            "name the column of the environments with --environment, or learn without them "
            f"with {other}"
        )
    if settings.get("margin_on") == "odds_ratio":
        settings.setdefault("margin", 1.5)
    if model == "forest":
        settings["random_state"] = options["random_state"]
    learner = classes[model](**settings)
    learner.prepare()
    return learner


def make_grid(ctx: click.Context, learner: Any, options: dict[str, Any]) -> dict[str, list[Any]]:
    """The values that --cv tries of each parameter; raise for what it cannot choose."""
    from icscm.studies.tuning import list_combinations

    grid: dict[str, list[Any]] = {}
    for text in options["cv"]:
        name, values = _read_values(text)
        grid[name] = list(dict.fromkeys((*grid.get(name, ()), *values)))
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
    return grid


def _read_values(text: str) -> tuple[str, list[Any]]:
    """A parameter and the values to try of it, as in p=0.1,1,balanced; without a name they are p's.

    >>> _read_values("model_type=conjunction,disjunction"), _read_values("0.5,1")
    (('model_type', ['conjunction', 'disjunction']), ('p', [0.5, 1.0]))
    """
    name, _, values = text.rpartition("=")
    name = {"": "p", "type": "model_type"}.get(name.strip(), name.strip())  # as in version 0.2
    if name not in _CHOSEN:
        known = ", ".join(_CHOSEN)
        raise IcscmError(f"--cv: {name!r} cannot be chosen; {known} can, as in p=0.1,1,balanced")
    allowed = get_spec(name).allowed
    assert allowed is not None
    try:
        return name, [allowed.parse(each.strip()) for each in values.split(",")]
    except IcscmError as error:
        raise IcscmError(f"--cv {name}=: {error}") from None


def render_choice(found: GridSearch) -> Iterator[RenderableType]:
    """The score of each combination that --cv tried, the majority-class baseline's last."""
    from icscm.report.terminal import make_heading, make_note, make_table
    from icscm.studies.scores import TITLES

    names, rows = list(found.best), []
    score_format = ".2%" if found.scorer.endswith("accuracy") else ".4f"
    for each, score in zip((*found.tried, {}), (*found.scores, found.baseline), strict=True):
        cells = [v if isinstance(v, str) else format_number(v) for v in each.values()]
        mark = "  <- chosen" if each == found.best else ""
        cells = cells or ["baseline", *[""] * (len(names) - 1)]
        rows.append((*cells, f"{score:{score_format}}{mark}"))
    title = TITLES.get(found.scorer, found.scorer).lower().replace("auc", "AUC")
    yield make_heading(f"{', '.join(names)} by cross-validation")
    yield make_table((*names, f"{title} where held out"), rows)
    better = "Smaller" if found.scorer == "log_loss" else "Larger"
    note = f"Mean over {found.n_folds} folds of {found.folds}. {better} is better. baseline: the "
    note += "majority class."
    if not found.beats_baseline:
        note += " No combination is better than the baseline."
    yield make_note(f"\n{note}")
