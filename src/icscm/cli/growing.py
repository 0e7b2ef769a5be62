"""The options of `icscm fit` for trees and forests."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from icscm.cli.scale import DASK
from icscm.cli.shorthand import Share, apply, choice, number, value
from icscm.cli.words import name_option
from icscm.exceptions import IcscmError, Parameter

if TYPE_CHECKING:
    from icscm.estimators.tree import GrownClassifier
    from icscm.search.trace import Trace

RULES, GROWN = ("icscm", "scm"), ("tree", "forest")
MODELS = (*RULES, *GROWN)

_SHARED = ("invariance", "tolerance", "probabilities", "max_thresholds", "missing")
# What trees and forests are for, by what must be the same in all environments.
_PURPOSES = {
    "effect": "predicting elsewhere: splits must have the same effect in all environments; a "
    "consequence of the label may pass (--invariance rate looks for parents)",
    "rate": "looking for parents: the label's rate in each leaf must be the same in all "
    "environments (--invariance effect predicts better elsewhere)",
}
_PLAIN = "comparison: a plain model, of which nothing was asked to be the same in environments"
# Options that not every model has: who has them.
_WHOSE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("p", "model_type", "max_rules", "cv", "cv_scorer", "cv_folds"), RULES),
    "stability": RULES,
    "no_alpha_path": (*RULES, "tree"),
    **dict.fromkeys(("alpha", "test", "stop", "pruning", "search", "min_replication"), ("icscm",)),
    **dict.fromkeys(("min_utility", "criterion", "margin", "margin_on"), ("icscm",)),
    **dict.fromkeys(("correction", "evidence"), ("icscm",)),
    "min_samples_leaf": ("icscm", *GROWN),
    **dict.fromkeys(("invariance", "tolerance", "max_leaves", "probabilities"), GROWN),
    **dict.fromkeys(("trees", "max_features", "resample"), ("forest",)),
}


def _read_tolerance(text: Any) -> float | str | None:
    """A share from 0 on; auto, or none for a plain tree."""
    if text in ("auto", "none"):
        return None if text == "none" else "auto"
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = -1.0
    if not tolerance >= 0 or not isfinite(tolerance):
        raise click.BadParameter(f"{text!r} is neither a number from 0 on, 'auto' nor 'none'")
    return tolerance


def _read_least(text: Any) -> float | int:
    """A whole number from 1, or a share below 1."""
    try:
        least = float(text)
    except ValueError:
        least = 0.0
    if not least > 0 or (least >= 1 and not least.is_integer()):
        raise click.BadParameter(f"{text!r} is neither a whole number from 1 nor a share below 1")
    return least if least < 1 else int(least)


growing_options = apply(
    choice(
        "--invariance effect rate",
        "Of a tree or forest, what must be the same in all environments. effect: what a split does "
        "to the odds, for predicting elsewhere. rate: the label's rate in each leaf, for parents.",
    ),
    value(
        "--tolerance NUMBER|auto|none",
        "Of a tree or forest: how far it may differ. auto: 0.03 for effects, 0.005 for rates. "
        "none: a plain tree.",
        _read_tolerance,
        "auto",
    ),
    number("--max-leaves", None, "Leaves of a tree.  [default: 16; in a forest 64]"),
    choice(
        "--probabilities pooled balanced",
        "Of a tree's leaf: the rate of its rows, or the mean of its environments' rates.",
    ),
    number("--trees", 100, "Of a forest."),
    value(
        "--max-features SHARE", "Of the columns, for each tree of a forest.", Share(), default=0.6
    ),
    choice(
        "--resample rows environments",
        "What each tree of a forest is grown on: some of the rows, or of the environments.",
    ),
)
least_option = value(
    "--min-samples-leaf NUMBER",
    "Fewest rows that a rule must settle, and leave; of a tree's leaf, a share of all if below 1.  "
    "[default: 1; of a tree 0.01, of a forest 0.005]",
    _read_least,
)


def check_model_options(ctx: click.Context, options: Mapping[str, Any]) -> None:
    """Raise for options that the chosen model does not have, and for missing environments."""
    model = options["model"]
    for name, whose in _WHOSE.items():
        if model in whose or ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        option = name_option(Parameter(name))
        others = " or ".join([*([", ".join(whose[:-1])] if len(whose) > 1 else []), whose[-1]])
        why = "; the plain learner tests nothing" if model == "scm" and "icscm" in whose else ""
        raise IcscmError(f"{option} is for --model {others}{why or f', not for {model}'}")
    least = options["min_samples_leaf"]
    if model not in GROWN and least is not None and least < 1:
        raise IcscmError("--min-samples-leaf below 1, a share, is for --model tree or forest")
    if options["environment"] is None and not _is_plain(options):
        other = "--tolerance none" if model in GROWN else "--model scm"
        raise IcscmError(
            "name the column of the environments with --environment, or learn without them "
            f"with {other}"
        )


def _is_plain(options: Mapping[str, Any]) -> bool:
    """Whether environments would play no part."""
    if options["model"] in GROWN:
        return options["tolerance"] is None
    return bool(options["model"] == "scm")


def check_route(route: str, options: Mapping[str, Any]) -> None:
    """Raise where rows cannot be drawn."""
    if options["model"] == "forest" and route == DASK:
        raise IcscmError(
            "--model forest draws rows, which cannot be done on Dask; grow one --model tree, or "
            "leave out --dask and --workers"
        )


def say_purpose(trace: Trace) -> str:
    """What a tree or forest is for."""
    return _PLAIN if trace.tolerance is None else _PURPOSES[trace.invariance or ""]


def make_grown(options: Mapping[str, Any], **more: Any) -> GrownClassifier:
    """The tree or forest that the options describe."""
    from icscm.estimators.forest import InvariantForestClassifier
    from icscm.estimators.tree import InvariantTreeClassifier

    settings = {name: options[name] for name in _SHARED} | more
    for name in ("max_leaves", "min_samples_leaf"):
        if options[name] is not None:
            settings[name] = options[name]
    if options["model"] == "tree":
        return InvariantTreeClassifier(**settings)
    return InvariantForestClassifier(
        **settings,
        n_estimators=options["trees"],
        max_features=options["max_features"],
        resample=options["resample"],
        random_state=options["seed"],
    )
