"""`icscm fit --cv`: the values of parameters that cross-validation chooses from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        name, values = read_values(text)
        grid[name] = list(dict.fromkeys([*grid.get(name, []), *values]))
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


def read_values(text: str) -> tuple[str, list[Any]]:
    """A parameter and the values to try, as in p=0.1,1,balanced; without a name, values of p.

    >>> read_values("model_type=conjunction,disjunction"), read_values("0.5,1")
    (('model_type', ['conjunction', 'disjunction']), ('p', [0.5, 1.0]))
    """
    before, _, listed = text.rpartition("=")
    name = before.strip() or "p"
    known = list_learner_options()
    if name not in known:
        hint = suggest(name, known)
        raise IcscmError(f"--cv cannot choose {name!r}{hint}; write it as in p=0.1,1,balanced")
    allowed = get_spec(name).allowed
    assert allowed is not None
    try:
        return name, [allowed.parse(value.strip()) for value in listed.split(",")]
    except IcscmError as error:
        raise IcscmError(f"--cv {name}=: {error}") from None


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
