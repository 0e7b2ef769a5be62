"""`--model`: the learners of `icscm fit`, made from the options that the user gave.

Which model has which parameter is in `parameters.toml`. An option that the chosen model does not
have is an error that names the models that do, instead of being ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from icscm._lazy import postpone_imports
from icscm.cli.options import Options, is_given, list_learner_options
from icscm.exceptions import IcscmError, Parameter
from icscm.parameters import get_spec

if TYPE_CHECKING:
    from icscm.estimators.base import BaseRuleClassifier


@dataclass(frozen=True)
class Model:
    """What the command line knows of a value of --model."""

    #: the public name of the learner
    class_name: str
    #: the parameter whose other values the report shows; None: there are none to show
    path: str | None = None
    #: whether the learner draws random numbers
    is_random: bool = False
    #: Steps of a scan (see `count_steps`) times environments up to which leave-one-environment-out
    #: runs by default: a minute or two on two cores. A size, not a time: results are reproducible.
    max_validation_steps: int = 20 * 10**6

    @property
    def is_rule(self) -> bool:
        """Whether it is one rule, a conjunction or a disjunction."""
        return self.class_name in ("ICSCMClassifier", "SCMClassifier")


MODELS: Final = {
    "rule": Model("ICSCMClassifier", path="alpha"),
    "scm": Model("SCMClassifier"),
    "tree": Model("InvariantTreeClassifier", path="tolerance"),
    "forest": Model(
        "InvariantForestClassifier",
        path="tolerance",
        is_random=True,
        max_validation_steps=5 * 10**6,
    ),
    "score": Model("InvariantScoreClassifier", is_random=True, max_validation_steps=5 * 10**6),
}
# The models whose report has a path; the others accept no --no-path.
PATH_MODELS: Final = ("rule", "scm", "tree")


def check_device(options: Options) -> None:
    """Raise for `--device cuda` without a card, before learners and readers are imported."""
    if options["device"] == "cuda":
        from icscm.sources.gpu.card import find_card

        find_card()


def make_learner(ctx: click.Context, options: Options, *, is_on_dask: bool) -> BaseRuleClassifier:
    """Make the learner that the options describe, with its parameters checked.

    Raises for options that its model does not have, and where environments are needed but missing.
    """
    import icscm

    postpone_imports()
    model = MODELS[options["model"]]
    if is_given(ctx, "no_path"):
        _check_model(options, Parameter("no_path"), PATH_MODELS)
    settings = _collect_settings(ctx, options)
    _check_environment(options, settings)

    # defaults that are not those of Python
    settings.setdefault("n_jobs", -1)
    if model.is_random:
        settings["random_state"] = options["random_state"]
    if model.is_rule and not is_on_dask:  # auto needs rows in memory, to leave some out
        is_chosen_by_cv = any("model_type=" in text for text in options["cv"])
        settings.setdefault("model_type", "conjunction" if is_chosen_by_cv else "auto")

    learner: BaseRuleClassifier = getattr(icscm, model.class_name)(**settings)
    learner.prepare()
    return learner


def _collect_settings(ctx: click.Context, options: Options) -> dict[str, Any]:
    """The parameters that the user gave, and those with another default than in Python."""
    settings = {}
    for name in list_learner_options():
        models_with_option = get_spec(name).models
        value = options[name]
        if is_given(ctx, name):
            _check_model(options, Parameter(name), models_with_option)
        elif value is None:  # the default is that of Python
            continue
        if options["model"] in models_with_option:
            settings[name] = value
    return settings


def _check_model(options: Options, parameter: Parameter, models: tuple[str, ...]) -> None:
    """Raise unless the chosen model is one of those that have the option."""
    chosen = options["model"]
    if chosen not in models:
        *others, last = models
        listed = f"{', '.join(others)} or {last}" if others else last
        raise IcscmError(parameter, f" is for --model {listed}, not for {chosen}")


def _check_environment(options: Options, settings: dict[str, Any]) -> None:
    """Raise if no environment is named although the learner tests invariance."""
    if options["environment"] is not None:
        return
    has_tolerance = options["model"] in get_spec("tolerance").models
    if has_tolerance:
        is_plain = "tolerance" in settings and settings["tolerance"] is None
        plain = "--tolerance none"
    else:
        is_plain = options["model"] == "scm"
        plain = "--model scm"
    if not is_plain:
        advice = "name the column of environments with --environment"
        raise IcscmError(f"{advice}, or learn without them with {plain}")
