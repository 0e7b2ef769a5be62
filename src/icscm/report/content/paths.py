"""Models at other levels of alpha, or at other tolerances."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icscm.formatting import format_name
from icscm.report.content.errors import Errors, make_errors
from icscm.report.content.leaves import Leaf, make_leaves
from icscm.report.content.nodes import Node, walk_nodes
from icscm.report.formatting import Names, Plain, count_conclusions

if TYPE_CHECKING:
    from icscm.report.path import Path, PathPoint


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
    points, has_scores : list of dict, bool
        Along the tolerance: `Path.describe_points`, and whether scores are known.
    """

    parameter: str
    own: float | None
    n_searches: int
    n_models: int
    first: float | None
    last: float | None
    models: list[LevelModel]
    shared: list[str]
    points: list[Plain]
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
        models=[make_level_model(group, path, names, i) for i, group in enumerate(path.groups)]
        if is_alpha
        else [],
        shared=find_shared_columns(path) if is_alpha else [],
        points=[] if is_alpha else path.describe_points(),
        has_scores=not is_alpha and path.points[0].aucs is not None,
    )


def find_shared_columns(path: "Path") -> list[str]:
    """Return the columns that are in all models with rules."""
    used = [{rule.feature for rule in group[0].model.rules} for group in path.groups]
    filled = [columns for columns in used if columns]
    return sorted(map(format_name, set.intersection(*filled))) if filled else []


def make_level_model(
    group: Sequence["PathPoint"], path: "Path", names: Names, number: int
) -> LevelModel:
    """Return one model, with the levels that give it and the conclusions at each."""
    first = group[0]
    turn, letter = divmod(number, 26)  # A, B, .., Z, A2, B2, ..
    assert first.value is not None
    assert group[-1].value is not None
    return LevelModel(
        name=chr(ord("A") + letter) + (str(turn + 1) if turn else ""),
        alpha_from=first.value,
        alpha_to=group[-1].value,
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
                conclusions=count_conclusions(each.conclusion for each in point.trace.verdicts),
            )
            for point in group
        ],
    )
