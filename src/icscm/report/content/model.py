"""The model: its size, columns and rules, the trees of a forest, the points of a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icscm.formatting import format_name
from icscm.model.forest import Forest, Model
from icscm.model.rules import CategoryRule, Rule, ThresholdRule
from icscm.model.saved import Learner
from icscm.model.score import Score
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree
from icscm.report.content.errors import Errors, make_errors
from icscm.report.content.rates import count_rows
from icscm.report.formatting import Names

if TYPE_CHECKING:
    from icscm.report.content.nodes import Nodes
    from icscm.report.importances import ColumnLosses, PermutationImportance


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """What a few lines on a model need.

    Parameters
    ----------
    noun : {"rule", "tree", "forest", "score"}
        "rule" for a conjunction or a disjunction.
    text : str
        The model as it prints.
    n_rules : int
        Rules, or splits, or columns with points.
    threshold : float or None
        The probability from which on rows are predicted positive; None for the model's own.
    discarded : Discarded or None
        Rules that were found and discarded.
    """

    noun: str
    text: str
    n_rules: int
    threshold: float | None
    discarded: Discarded | None = None

    @property
    def is_rule_set(self) -> bool:
        """Whether the model is a conjunction or a disjunction."""
        return self.noun == "rule"


@dataclass(frozen=True, kw_only=True)
class Discarded:
    """Rules that were found and are no better, or not enough better, than the baseline."""

    text: str
    errors: Errors
    is_worse: bool


@dataclass(frozen=True, kw_only=True)
class RuleContent:
    """A rule of a rule set.

    `importance` is its share of the rows that all rules cover correctly; the `equivalent` rules
    would cover the same rows.
    """

    number: int
    text: str
    feature: str
    importance: float
    n_covered: int
    equivalent: list[str]


@dataclass(frozen=True, kw_only=True)
class ColumnUse:
    """A column of a forest: the trees that use it, its importance, and losses if it is permuted."""

    feature: str
    n_trees: int
    share: float
    importance: float
    losses: ColumnLosses | None = None


@dataclass(frozen=True, kw_only=True)
class ForestContent:
    """The trees of a forest: how many, the smallest and the largest number of leaves, columns."""

    n_trees: int
    n_leaves: list[int]
    uses: list[ColumnUse]
    n_permuted: int | None


@dataclass(frozen=True, kw_only=True)
class ScorePoints:
    """The points of one value of a column."""

    column: str
    value: str
    points: int


@dataclass(frozen=True, kw_only=True)
class ScoreContent:
    """Points, the risk of each total, and the totals at which classes of leaves begin."""

    points: list[ScorePoints]
    risks: list[float]
    bounds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The AUC of each shape where rows were left out; see `icscm.search.shape.ShapeChoice`."""

    chosen: str
    prefers_tree: bool
    scores: dict[str, float]
    held_out: str


@dataclass(frozen=True, kw_only=True)
class ModelContent(ModelSize):
    """The model in numbers and names."""

    kind: str
    at_threshold: str
    has_missing: bool
    balanced: bool
    n_leaves: int
    depth: int
    features: list[str]
    simple_rules: list[str]
    rules: list[RuleContent]
    forest: ForestContent | None
    score: ScoreContent | None
    shape: Shape | None


def make_model(
    learner: Learner, names: Names, nodes: Nodes, permuted: PermutationImportance | None
) -> ModelContent:
    """Return the model of a fitted learner."""
    model: Model = learner.model_
    noun = find_noun(model)
    features = [format_name(column) for column in learner.features_used_]
    if noun == "tree":  # the column that explains most comes first
        features = [importance.feature for importance in nodes.importances]
    return ModelContent(
        kind=model.kind,
        noun=noun,
        text=str(model),
        n_rules=len(model.rules),
        threshold=model.threshold,
        discarded=make_discarded(learner, names),
        at_threshold=model.at_threshold,
        has_missing=any(decides_on_missing(rule) for rule in model.rules),
        balanced=isinstance(model, Tree) and model.balanced,
        n_leaves=0 if isinstance(model, Forest) else len(model.leaves),
        depth=max((node.depth for node in nodes.walk), default=0),
        features=features,
        simple_rules=list_simple_rules(model),
        rules=make_rules(learner) if noun == "rule" else [],
        forest=make_forest(learner, permuted) if isinstance(model, Forest) else None,
        score=make_score(model) if isinstance(model, Score) else None,
        shape=make_shape(learner),
    )


def list_simple_rules(model: Model) -> list[str]:
    """Return the rules of a rule set in the fewest words; nothing of other models."""
    if not isinstance(model, Tree) or not model.is_chain:
        return []
    return [str(rule) for rule in model.simple_rules]


def find_noun(model: Model) -> str:
    """Return the word for a model: "rule" for all rule sets, else its kind."""
    return "rule" if model.kind in CHAINS else str(model.kind)


def decides_on_missing(rule: Rule) -> bool:
    """Return whether a rule on values is true or false for a missing one, as was learned."""
    return isinstance(rule, ThresholdRule | CategoryRule) and rule.missing is not None


def make_rules(learner: Learner) -> list[RuleContent]:
    """Return the rules of a rule set: rows covered, importance, and equivalent rules."""
    model = learner.model_
    leaves_of_rules = model.leaves[: len(model.rules)]  # the last leaf has the uncovered rows
    rules = zip(
        model.rules,
        leaves_of_rules,
        learner.rule_importances_.tolist(),
        learner.equivalent_rules_,
        strict=True,
    )
    return [
        RuleContent(
            number=number,
            text=str(rule),
            feature=format_name(rule.feature),
            importance=importance,
            n_covered=count_rows(leaf),
            equivalent=[*map(str, equivalent)],
        )
        for number, (rule, leaf, importance, equivalent) in enumerate(rules, start=1)
    ]


def make_forest(learner: Learner, permuted: PermutationImportance | None) -> ForestContent:
    """Return the sizes of the trees, and how many use each column, the most important first."""
    model = learner.model_
    n_leaves = [len(tree.leaves) for tree in model.trees]
    n_trees = len(model.trees)
    importances = learner.feature_importances_  # by position of the column
    positions = {rule.feature: rule.column for rule in model.rules}
    uses = [
        ColumnUse(
            feature=format_name(column),
            n_trees=n_using_trees,
            share=n_using_trees / n_trees,
            importance=float(importances[positions[column]]),
            losses=None if permuted is None else permuted.measure_losses(column),
        )
        for column, n_using_trees in model.count_uses().items()
    ]
    return ForestContent(
        n_trees=n_trees,
        n_leaves=[min(n_leaves), max(n_leaves)],
        uses=sorted(uses, key=lambda use: -use.importance),
        n_permuted=None if permuted is None else permuted.n_rows,
    )


def make_score(model: Score) -> ScoreContent:
    """Return the points of each value, and the risk of each total."""
    return ScoreContent(
        points=[
            ScorePoints(column=row.column, value=row.value, points=row.points)
            for row in model.list_rows()
        ],
        risks=model.compute_risks().tolist(),
        bounds=model.bounds,
    )


def make_discarded(learner: Learner, names: Names) -> Discarded | None:
    """Return rules that were found and are no better than the baseline, which the model is."""
    discarded = learner.trace_.discarded
    if discarded is None:
        return None
    errors = make_errors(discarded, names)
    baseline = make_errors(learner.model_, names)
    return Discarded(
        text=str(discarded), errors=errors, is_worse=errors.n_errors >= baseline.n_errors
    )


def make_shape(learner: Learner) -> Shape | None:
    """Return how the shape of a rule set was chosen, where it was."""
    shape = learner._shape_choice
    if shape is None:
        return None
    return Shape(
        chosen=shape.chosen,
        prefers_tree=shape.prefers_tree,
        scores=shape.scores,
        held_out=shape.held_out,
    )
