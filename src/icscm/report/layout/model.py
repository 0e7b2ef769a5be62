"""The section on the model: its rules, its tree, its points, or the columns of its trees."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from icscm.formatting import clip, count
from icscm.report.content.candidates import RatioExtreme
from icscm.report.content.learner import LearnerContent
from icscm.report.content.model import ModelContent, RuleContent, ScoreContent, ScorePoints
from icscm.report.content.nodes import ChosenSplit
from icscm.report.drawing import Limits
from icscm.report.drawn_curves import DrawnCurves, draw_points_bar, draw_risks
from icscm.report.drawn_tree import DrawnTree, draw_nodes, draw_splits
from icscm.report.formatting import format_ratio
from icscm.report.wording.importances import describe_importances
from icscm.report.wording.model import MISSING
from icscm.report.wording.ranges import describe_variation, reverses

# Nodes of a tree from which on it scrolls within the page.
N_TALL = 31
# Characters of a model from which on its rules are set smaller, and from which on they are folded.
LONG_RULE, LONG_RULES = 90, 400
# Rules that are never folded, and those that are shown above the folded ones.
N_WHOLE, N_FIRST = 4, 2


@dataclass(frozen=True, kw_only=True)
class RuleList:
    """Rules in a sentence, joined by a word: the first, the folded ones, and how many more."""

    word: str
    first: Sequence[str]
    folded: Sequence[str] = ()
    n_folded: int = 0
    n_more: int = 0


@dataclass(frozen=True, kw_only=True)
class ShownRule:
    """A rule, and the rules that cover the same rows, of which `n_more` are not shown."""

    rule: RuleContent
    equivalent_count: str
    equivalent: list[str]
    n_more: int


@dataclass(frozen=True, kw_only=True)
class ShownSplit:
    """A split with its drawn effects; `differs` is how these vary over environments, in words."""

    split: ChosenSplit
    differs: str
    cell: Markup


@dataclass(frozen=True, kw_only=True)
class ShownEffects:
    """The effects of splits on one axis, and how many splits are not shown."""

    rows: list[ShownSplit]
    axis: Markup
    n_left_out: int


@dataclass(frozen=True, kw_only=True)
class ShownPoints:
    """The points of one value of a column, drawn as a bar."""

    row: ScorePoints
    cell: Markup


@dataclass(frozen=True, kw_only=True)
class ShownScore:
    """The points of each value, the risk of each total, and both drawn."""

    points: list[ShownPoints]
    risks: list[float]
    drawing: DrawnCurves


@dataclass(frozen=True, kw_only=True)
class ModelSection:
    """How a model is shown.

    Parameters
    ----------
    is_rule, is_tree : bool
        Whether it is a rule set, or a tree with a split.
    is_rule_shown : bool
        Whether the rules themselves predict, so that they are the headline.
    is_long, is_tall : bool
        Whether rules are set smaller, and whether a tree scrolls.
    has_section : bool
        Whether there is a section on the model; a tree is drawn at the top of the page, and its
        section has the importances of its columns.
    has_columns : bool
        Whether these importances are shown.
    missing : str
        What "missing: true" in a rule means; empty where no rule has it.
    tree, effects : DrawnTree, ShownEffects or None
        The nodes, and the effects of a tree's splits.
    rule_list, rules, covers_where : RuleList, list of ShownRule, str
        Of a rule set: its sentence, its rules, and the truth of a rule where it covers a row.
    score : ShownScore or None
        Of a score with points.
    trees_text, uses_columns : str, list of str
        Of a forest: what importances mean, and the titles of the table of columns.
    """

    is_rule: bool
    is_tree: bool
    is_rule_shown: bool
    is_long: bool
    is_tall: bool
    has_section: bool
    has_columns: bool
    missing: str
    tree: DrawnTree
    effects: ShownEffects | None
    rule_list: RuleList
    rules: list[ShownRule]
    covers_where: str
    score: ShownScore | None
    trees_text: str
    uses_columns: list[str]


def lay_out_model(content: LearnerContent, limits: Limits) -> ModelSection:
    """Return how the model is shown, whatever its kind."""
    model, nodes = content.model, content.nodes
    has_rules = bool(model.n_rules)
    is_forest = model.forest is not None
    is_tree = has_rules and model.noun == "tree"
    tree = draw_nodes(nodes.walk, limits)
    return ModelSection(
        is_rule=model.is_rule_set,
        is_tree=is_tree,
        is_rule_shown=model.is_rule_set and has_rules and not model.threshold,
        is_long=len(model.text) > LONG_RULE,
        is_tall=is_tree and len(tree.rows) > N_TALL,
        has_section=not is_tree or bool(nodes.importances),
        has_columns=bool(nodes.importances) and not is_forest,
        missing=MISSING if model.has_missing else "",
        tree=tree,
        effects=lay_out_effects(content, limits),
        rule_list=make_rule_list(model, limits),
        rules=[lay_out_rule(rule, limits) for rule in model.rules[: limits.leaves]],
        covers_where="false" if model.kind == "conjunction" else "true",
        score=lay_out_score(model.score, content, limits),
        trees_text=describe_importances(model.forest.n_permuted) if model.forest else "",
        uses_columns=list_uses_columns(model),
    )


def make_rule_list(model: ModelContent, limits: Limits) -> RuleList:
    """Return the rules of a rule set; few and short ones are shown whole."""
    rules = model.simple_rules
    word = "or" if model.kind == "disjunction" else "and"
    if len(rules) <= N_WHOLE and len(model.text) <= LONG_RULES:
        return RuleList(word=word, first=rules)
    return RuleList(
        word=word,
        first=rules[:N_FIRST],
        folded=rules[N_FIRST : limits.leaves],
        n_folded=len(rules) - N_FIRST,
        n_more=max(len(rules) - limits.leaves, 0),
    )


def lay_out_rule(rule: RuleContent, limits: Limits) -> ShownRule:
    """Return a rule with its equivalent rules, the first of many."""
    return ShownRule(
        rule=rule,
        equivalent_count=count(len(rule.equivalent), "other rule"),
        equivalent=rule.equivalent[: limits.equivalent],
        n_more=max(len(rule.equivalent) - limits.equivalent, 0),
    )


def lay_out_score(
    score: ScoreContent | None, content: LearnerContent, limits: Limits
) -> ShownScore | None:
    """Return the points and risks of a score; None of other models, and of one without points."""
    if score is None or not content.model.n_rules:
        return None
    most_points = max(row.points for row in score.points)
    return ShownScore(
        points=[
            ShownPoints(row=row, cell=draw_points_bar(row.points, most_points))
            for row in score.points[: limits.environments]
        ],
        risks=score.risks[: limits.environments],
        drawing=draw_risks(score, content.leaves),
    )


def list_uses_columns(model: ModelContent) -> list[str]:
    """Return the titles of the table of a forest's columns."""
    is_permuted = model.forest is not None and bool(model.forest.n_permuted)
    losses = [">loss of AUC", ">lowest to highest", ">loss of log loss"] if is_permuted else []
    return ["column", ">importance", *losses, ">trees"]


# --- effects of splits ----------------------------------------------------------------------------


def lay_out_effects(content: LearnerContent, limits: Limits) -> ShownEffects | None:
    """Return the effects of the splits of a tree; None without a split."""
    splits = content.nodes.tree_splits
    if content.model.kind != "tree" or not splits:
        return None
    drawn = draw_splits(splits, limits)
    has_environments = content.task.has_environments
    return ShownEffects(
        rows=[
            ShownSplit(
                split=row.split,
                differs=describe_effect(row.split, limits, has_environments=has_environments),
                cell=row.cell,
            )
            for row in drawn.rows
        ],
        axis=drawn.axis,
        n_left_out=drawn.n_left_out,
    )


def describe_effect(split: ChosenSplit, limits: Limits, *, has_environments: bool) -> str:
    """Return how the effect of a split varies over environments, and its extremes."""
    effect = split.candidate
    variation = describe_variation(effect.heterogeneity_share, has_environments=has_environments)
    if not variation:
        return ""
    lowest, highest = effect.lowest, effect.highest
    is_reversed = bool(effect.variation) and reverses(lowest, highest, effect.n_seen)
    text = f"{'reverses, and differs' if is_reversed else 'differs'} {variation}"
    if lowest is None or highest is None or effect.n_seen < 2:
        return text
    return f"{text}; {format_extreme(lowest, limits)} to {format_extreme(highest, limits)}"


def format_extreme(extreme: RatioExtreme, limits: Limits) -> str:
    """Return the odds ratio in an environment."""
    environment = clip(extreme.environment, limits.characters)
    return f"{format_ratio(extreme.odds_ratio)} ({environment})"
