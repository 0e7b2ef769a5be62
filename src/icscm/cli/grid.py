"""`icscm fit --cv`: the values of parameters that cross-validation chooses from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from icscm.cli.options import Options, is_given, list_learner_options
from icscm.exceptions import IcscmError, Parameter
from icscm.io.naming import suggest
from icscm.parameters import get_spec

if TYPE_CHECKING:
    from icscm.estimators.base import BaseRuleClassifier

# The values of each parameter to try.
Grid = dict[str, list[Any]]


def make_grid(ctx: click.Context, learner: BaseRuleClassifier, options: Options) -> Grid:
    """The values of each parameter that --cv tries; raise if it cannot choose a parameter."""
    grid: Grid = {}
    for text in options["cv"]:
        choice = read_choice(text)
        values = grid.get(choice.parameter, []) + choice.values
        grid[choice.parameter] = list(dict.fromkeys(values))  # each once
    if not grid:
        _check_unused(ctx)
        return {}

    for name in grid:
        if options["model"] not in get_spec(name).models:
            raise IcscmError(f"--cv {name}= is not for --model {options['model']}")
        if is_given(ctx, name):
            raise IcscmError(Parameter(name), f" sets {name} and --cv chooses it; give only one")
    _check_combinations(learner, grid)
    return grid


class Choice(NamedTuple):
    """A parameter that cross-validation chooses, and the values to try."""

    parameter: str
    values: list[Any]


def read_choice(text: str) -> Choice:
    """Read a choice such as p=0.1,1,balanced; without a name, the values are those of p.

    >>> read_choice("model_type=conjunction,disjunction")
    Choice(parameter='model_type', values=['conjunction', 'disjunction'])
    >>> read_choice("0.5,1")
    Choice(parameter='p', values=[0.5, 1.0])
    """
    text_of_name, _, text_of_values = text.rpartition("=")
    name = text_of_name.strip() or "p"
    known = list_learner_options()
    if name not in known:
        hint = suggest(name, known)
        raise IcscmError(f"--cv cannot choose {name!r}{hint}; write it as in p=0.1,1,balanced")
    allowed = get_spec(name).allowed
    assert allowed is not None
    try:
        values = [allowed.parse(value.strip()) for value in text_of_values.split(",")]
    except IcscmError as error:
        raise IcscmError(f"--cv {name}=: {error}") from None
    return Choice(parameter=name, values=values)


def _check_unused(ctx: click.Context) -> None:
    """Raise for options of --cv without --cv."""
    for name in ("cv_scorer", "cv_folds"):
        if is_given(ctx, name):
            raise IcscmError(Parameter(name), " is only used with --cv; name the parameters to try")


def _check_combinations(learner: BaseRuleClassifier, grid: Grid) -> None:
    """Raise for the first combination that contradicts itself or another option."""
    from icscm.validation.tuning import list_combinations

    settings = learner.get_params(deep=False)
    for combination in list_combinations(learner, grid):
        type(learner)(**(settings | combination)).prepare()
