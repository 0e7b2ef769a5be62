"""The model: its size, columns and rules, the trees of a forest, the points of a score."""

from dataclasses import dataclass

from icscm.formatting import format_name
from icscm.model.forest import Forest, Model
from icscm.model.rules import CategoryRule, Rule, ThresholdRule
from icscm.model.saved import Learner
from icscm.model.score import Score
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree
from icscm.report.content.errors import Errors, make_errors
from icscm.report.content.nodes import Nodes
from icscm.report.content.rates import count_rows
from icscm.report.formatting import Names
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
    discarded: "Discarded | None" = None

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
    features = [format_name(feature) for feature in learner.features_used_]
    if noun == "tree":
        features = [each.feature for each in nodes.importances]
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
        simple_rules=[*map(str, model.simple_rules)]
        if isinstance(model, Tree) and model.is_chain
        else [],
        rules=make_rules(learner) if noun == "rule" else [],
        forest=make_forest(learner, permuted) if isinstance(model, Forest) else None,
        score=make_score(model) if isinstance(model, Score) else None,
        shape=make_shape(learner),
    )


def find_noun(model: Model) -> str:
    """Return the word for a model: "rule" for all rule sets, else its kind."""
    return "rule" if model.kind in CHAINS else str(model.kind)


def decides_on_missing(rule: Rule) -> bool:
    """Return whether a rule on values is true or false for a missing one, as was learned."""
    return isinstance(rule, ThresholdRule | CategoryRule) and rule.missing is not None


def make_rules(learner: Learner) -> list[RuleContent]:
    """Return the rules of a rule set: rows covered, importance, and equivalent rules."""
    model = learner.model_
    importances = learner.rule_importances_.tolist()
    return [
        RuleContent(
            number=i + 1,
            text=str(rule),
            feature=format_name(rule.feature),
            importance=importances[i],
            n_covered=count_rows(model.leaves[i]),
            equivalent=[*map(str, equivalent)],
        )
        for i, (rule, equivalent) in enumerate(
            zip(model.rules, learner.equivalent_rules_, strict=True)
        )
    ]


def make_forest(learner: Learner, permuted: PermutationImportance | None) -> ForestContent:
    """Return the sizes of the trees, and how many use each column, the most important first."""
    model = learner.model_
    sizes = [len(tree.leaves) for tree in model.trees]
    column_of = {rule.feature: rule.column for rule in model.rules}
    importance = {
        feature: float(learner.feature_importances_[column])
        for feature, column in column_of.items()
    }
    uses = sorted(model.count_uses().items(), key=lambda use: -importance[use[0]])
    return ForestContent(
        n_trees=len(sizes),
        n_leaves=[min(sizes), max(sizes)],
        uses=[
            ColumnUse(
                feature=format_name(feature),
                n_trees=n_trees,
                share=n_trees / len(sizes),
                importance=importance[feature],
                losses=None if permuted is None else permuted.measure_losses(feature),
            )
            for feature, n_trees in uses
        ],
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
