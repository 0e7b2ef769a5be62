"""Models at other levels of alpha, or at other tolerances."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

from icscm.formatting import format_name
from icscm.report.content.errors import Errors, make_errors
from icscm.report.content.leaves import Leaf, make_leaves
from icscm.report.content.tree_nodes import Node, walk_nodes
from icscm.report.formatting import Names, count_conclusions

if TYPE_CHECKING:
    from icscm.report.path import Path, PathPoint


@dataclass(frozen=True, kw_only=True)
class TreeAtTolerance:
    """The tree grown at one tolerance, in numbers.

    Parameters
    ----------
    tolerance, name : float or None, str
        None and "plain" for a plain tree.
    is_own : bool
        Whether it is the tolerance of the learner itself.
    n_leaves, features : int, list of str
        Its size, and its columns, the one that explains most first.
    leave, enter : list of str
        Columns that are not in the tree but in that of the tolerance before, and the reverse.
    deviance_explained, heterogeneity, rate_heterogeneity : float
        As of `icscm.report.path.PathPoint`.
    varies : float
        The heterogeneity of effects or of rates, whichever must be homogeneous.
    mean_auc, worst_auc, aucs : float, float, list of float or None, each or None
        The AUC in environments left out; None where they were not left out.
    text : str
        The tree as it prints.
    """

    tolerance: float | None
    name: str
    is_own: bool
    n_leaves: int
    features: list[str]
    leave: list[str]
    enter: list[str]
    deviance_explained: float
    heterogeneity: float
    rate_heterogeneity: float
    varies: float
    mean_auc: float | None
    worst_auc: float | None
    aucs: list[float | None] | None
    text: str


@dataclass(frozen=True, kw_only=True)
class LevelContent:
    """One level of alpha: why the search stopped, and the number of leaves by conclusion."""

    alpha: float
    is_own: bool
    stop_reason: str | None
    conclusions: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class LevelModel:
    """A model, and the neighbouring levels of alpha that give it.

    `name` is a letter; `is_own` is whether it is the model of the report.
    """

    name: str
    alpha_from: float
    alpha_to: float
    is_own: bool
    text: str
    n_rules: int
    walk: list[Node]
    leaves: list[Leaf]
    errors: Errors
    levels: list[LevelContent]


@dataclass(frozen=True, kw_only=True)
class PathContent:
    """Models along alpha or along the tolerance.

    Parameters
    ----------
    parameter, own : {"alpha", "tolerance"}, float or None
        What varies, and the value of the learner itself.
    n_searches, n_models : int
        Values tried, and different models among the results.
    models, shared : list of LevelModel, list of str
        Along alpha: the models, and the columns in all that have rules.
    first, last : float or None
        The first and the last value.
    points, has_scores : list of TreeAtTolerance, bool
        Along the tolerance: the trees, and whether scores are known.
    """

    parameter: str
    own: float | None
    n_searches: int
    n_models: int
    first: float | None
    last: float | None
    models: list[LevelModel]
    shared: list[str]
    points: list[TreeAtTolerance]
    has_scores: bool


def make_path(path: "Path", names: Names) -> PathContent:
    """Return every value tried, with the models that they give."""
    is_alpha = path.parameter == "alpha"
    return PathContent(
        parameter=path.parameter,
        own=path.own,
        n_searches=len(path.points),
        n_models=len({str(point.model) for point in path.points}),  # a model may occur twice
        first=path.points[0].value,
        last=path.points[-1].value,
        models=make_level_models(path, names) if is_alpha else [],
        shared=find_shared_columns(path) if is_alpha else [],
        points=[] if is_alpha else path.list_levels(),
        has_scores=not is_alpha and path.points[0].aucs is not None,
    )


def find_shared_columns(path: "Path") -> list[str]:
    """Return the columns that are in all models with rules."""
    used = [{rule.feature for rule in group[0].model.rules} for group in path.groups]
    filled = [columns for columns in used if columns]
    return sorted(map(format_name, set.intersection(*filled))) if filled else []


def make_level_models(path: "Path", names: Names) -> list[LevelModel]:
    """Return the models along alpha, named by letters."""
    return [
        make_level_model(name_model(number), group, path, names)
        for number, group in enumerate(path.groups)
    ]


def name_model(number: int) -> str:
    """Return the letter of a model, with a number where the alphabet is used up.

    >>> [name_model(number) for number in (0, 25, 26, 52)]
    ['A', 'Z', 'A2', 'A3']
    """
    turn, letter = divmod(number, len(ascii_uppercase))
    suffix = str(turn + 1) if turn else ""
    return ascii_uppercase[letter] + suffix


def make_level_model(
    name: str, group: Sequence["PathPoint"], path: "Path", names: Names
) -> LevelModel:
    """Return one model, with the neighbouring levels that give it and the conclusions at each."""
    first, last = group[0], group[-1]
    assert first.value is not None
    assert last.value is not None
    return LevelModel(
        name=name,
        alpha_from=first.value,
        alpha_to=last.value,
        is_own=any(point.value == path.own for point in group),
        text=str(first.model),
        n_rules=len(first.model.rules),
        walk=[*walk_nodes(first.model, names)],
        leaves=make_leaves(first.model, names, first.trace.verdicts),
        errors=make_errors(first.model, names),
        levels=[
            LevelContent(
                alpha=point.value or 0.0,
                is_own=point.value == path.own,
                stop_reason=point.trace.stop_reason,
                conclusions=count_conclusions(
                    verdict.conclusion for verdict in point.trace.verdicts
                ),
            )
            for point in group
        ],
    )
