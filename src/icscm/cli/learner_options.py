"""The options of `icscm fit` that are parameters of the learners, and the learner they make."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import click

from icscm.cli.click_types import apply, choice, flag, is_given, number, parameter, value
from icscm.cli.routes import DASK
from icscm.exceptions import IcscmError, Parameter

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
