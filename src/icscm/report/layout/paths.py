"""The section on other levels of alpha, or on other tolerances."""

from collections.abc import Sequence
from dataclasses import dataclass

from icscm.formatting import clip
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf
from icscm.report.content.paths import LevelModel, PathContent, TreeAtTolerance
from icscm.report.drawing import Limits
from icscm.report.drawn_curves import DrawnCurves, draw_tolerance_path
from icscm.report.drawn_tree import DrawnTree, draw_nodes
from icscm.report.formatting import format_points
from icscm.report.selection import Span, list_spans
from icscm.report.wording.model import describe_worst
from icscm.report.wording.paths import CAUTION, describe_path, explain_alpha

# Characters of a sentence that holds names, relative to those of a name.
SENTENCE = 8


@dataclass(frozen=True, kw_only=True)
class LevelLeaf:
    """A leaf of a model at another level, with its largest difference as text."""

    leaf: Leaf
    difference_text: str


@dataclass(frozen=True, kw_only=True)
class ShownLevelModel:
    """A model along alpha.

    `spans` are its levels, those with the same conclusions as one; `worst_text` is empty where
    there are no environments to compare.
    """

    model: LevelModel
    levels_text: str
    worst_text: str
    tree: DrawnTree
    leaves: list[LevelLeaf]
    spans: list[Span]


@dataclass(frozen=True, kw_only=True)
class AlphaSection:
    """Models at other levels of alpha, and what a larger alpha does."""

    meaning: str
    n_searches: int
    models: list[ShownLevelModel]


@dataclass(frozen=True, kw_only=True)
class ShownTolerance:
    """A tree along the tolerance, and the columns that leave and enter in words."""

    tree: TreeAtTolerance
    changes: str


@dataclass(frozen=True, kw_only=True)
class ToleranceSection:
    """Trees at other tolerances."""

    text: str
    caution: str
    has_scores: bool
    columns: list[str]
    rows: list[ShownTolerance]
    drawing: DrawnCurves


@dataclass(frozen=True, kw_only=True)
class PathSection:
    """Either the models along alpha or the trees along the tolerance; neither if not computed."""

    alpha: AlphaSection | None = None
    tolerance: ToleranceSection | None = None


def lay_out_path(content: LearnerContent, limits: Limits) -> PathSection:
    """Return the models at other levels, or the trees at other tolerances."""
    path = content.path
    if path is None:
        return PathSection()
    if path.parameter == "alpha":
        return PathSection(alpha=lay_out_levels(path, content, limits))
    return PathSection(tolerance=lay_out_tolerances(path, limits))


def lay_out_levels(path: PathContent, content: LearnerContent, limits: Limits) -> AlphaSection:
    """Return the models at other levels of alpha."""
    return AlphaSection(
        meaning=explain_alpha(content.nodes.criterion),
        n_searches=path.n_searches,
        models=[lay_out_level_model(model, content, limits) for model in path.models],
    )


def lay_out_level_model(
    model: LevelModel, content: LearnerContent, limits: Limits
) -> ShownLevelModel:
    """Return a model along alpha with its levels, its tree and its leaves."""
    levels = f"{model.alpha_from:g}"
    if model.alpha_from != model.alpha_to:
        levels = f"from {model.alpha_from:g} to {model.alpha_to:g}"
    return ShownLevelModel(
        model=model,
        levels_text=levels,
        worst_text=describe_worst(model.errors, content.names) or "",
        tree=draw_nodes(model.walk, limits),
        leaves=[lay_out_level_leaf(leaf) for leaf in model.leaves[: limits.leaves]],
        spans=list_spans(model.levels),
    )


def lay_out_level_leaf(leaf: Leaf) -> LevelLeaf:
    """Return a leaf with its largest difference in words."""
    difference = leaf.difference
    text = "none" if difference is None else format_points(difference)
    return LevelLeaf(leaf=leaf, difference_text=text)


def lay_out_tolerances(path: PathContent, limits: Limits) -> ToleranceSection:
    """Return the trees at other tolerances."""
    scores = [">AUC, mean", ">worst"] if path.has_scores else []
    columns = ["tolerance", ">leaves", ">deviance", ">varies", *scores]
    return ToleranceSection(
        text=describe_path(path),
        caution=CAUTION,
        has_scores=path.has_scores,
        columns=[*columns, "columns that leave and enter"],
        rows=[
            ShownTolerance(tree=tree, changes=describe_changes(tree, limits))
            for tree in path.points
        ],
        drawing=draw_tolerance_path(path.points),
    )


def describe_changes(tree: TreeAtTolerance, limits: Limits) -> str:
    """Return the columns that leave the tree at a tolerance, and those that enter."""
    parts = []
    if tree.leave:
        parts.append(f"without {join_columns(tree.leave, limits)}")
    if tree.enter:
        parts.append(f"with {join_columns(tree.enter, limits)}")
    return "; ".join(parts)


def join_columns(columns: Sequence[str], limits: Limits) -> str:
    """Return the names of columns, cut if they are very long."""
    return clip(", ".join(columns), SENTENCE * limits.characters)
