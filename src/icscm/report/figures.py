"""A fitted learner as a figure: its tree with the rates of each leaf, or its points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icscm.drawing import Figure
from icscm.drawing.curves import draw_curves
from icscm.drawing.score_card import PointsRow, draw_points, plot_risks
from icscm.drawing.shapes import Panel, place_beside
from icscm.drawing.tree import EnvironmentRate as DrawnRate
from icscm.drawing.tree import LeafRates, TreeDrawing, TreeNode, draw_tree
from icscm.exceptions import IcscmError
from icscm.formatting import clip, natural_key
from icscm.model.saved import Learner
from icscm.parameters import allow, check_value
from icscm.report.content.learner import LearnerContent, make_learner_content
from icscm.report.content.leaves import Leaf
from icscm.report.content.model import ScoreContent
from icscm.report.content.rates import EnvironmentRate
from icscm.report.content.tree_nodes import Node
from icscm.report.drawing import find_largest, make_pair
from icscm.report.drawn_curves import make_totals_classes
from icscm.report.formatting import format_p, format_share
from icscm.report.wording.headline import answer_model
from icscm.report.wording.leaves import describe_figure
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Environments that are drawn; of more, the largest.
MAX_ENVIRONMENTS: Final = 60
# Characters of the positive class in the title of the axis.
MAX_POSITIVE: Final = 30
SYMBOLS: Final = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}
MINUS: Final = "\N{MINUS SIGN}"


def draw_model(
    learner: Learner,
    order: str = "name",
    *,
    target: str | None = None,
    environment: str | None = None,
) -> Figure:
    """Draw the tree of a fitted learner, and beside each leaf the rate in every environment.

    Dots are rates, lines their 95 % intervals, the upright line is the rate over all environments.
    Of very many dots only the lowest and the highest of a leaf are named, without intervals.
    `order` is that of the environments. Of a score, its points and risks are drawn.
    """
    check_value("order", order, allow("name", "size", "rate"))
    content = make_learner_content(learner, target=target, environment=environment)
    if content.model.score is not None:
        panel = draw_score(content.model.score, content.leaves)
    elif content.leaves:
        panel = draw_tree(describe_tree(content, order))
    else:
        raise IcscmError("a forest has no single tree to draw; its report describes it")
    sentence = answer_model(content).answer
    return Figure(panel, describe_figure(sentence, content.leaves))


def describe_tree(content: LearnerContent, order: str) -> TreeDrawing:
    """Describe the tree of a learner, with its largest environments."""
    task = content.task
    largest = choose_environments(task.environments, order)
    note = ""
    if len(largest) < task.n_environments:
        note = f"the {len(largest)} largest of {task.n_environments:,} environments"
    return TreeDrawing(
        nodes=[describe_node(node) for node in content.nodes.walk],
        leaves=[describe_leaf(leaf, largest) for leaf in content.leaves],
        axis_title=f"rate of {clip(content.names.positive, MAX_POSITIVE)}, with 95% intervals",
        note=note,
    )


def choose_environments(rates: Sequence[EnvironmentRate], order: str) -> list[str]:
    """Choose the environments of most rows: by name, from the largest, or from the lowest rate."""
    sizes = [rate.n for rate in rates]
    largest = [rates[number] for number in find_largest(sizes, MAX_ENVIRONMENTS)]
    if order == "size":
        largest.sort(key=lambda rate: -rate.n)
    else:
        largest.sort(key=lambda rate: natural_key(rate.environment))
    if order == "rate":  # those of equal rates stay in the order of their names
        largest.sort(key=lambda rate: rate.rate or 0.0)
    return [rate.environment for rate in largest]


def describe_node(node: Node) -> TreeNode:
    """Describe a node of the tree, and the prediction if it is a leaf."""
    prediction = ""
    if node.predicts is not None:
        prediction = write_prediction(node.predicts, is_positive=bool(node.is_positive))
    return TreeNode(
        depth=node.depth,
        answer=node.answer or "",
        size=f"{format_share(node.rate)} of {node.n:,}",
        question=node.question or "",
        leaf=node.leaf,
        prediction=prediction,
        is_positive=bool(node.is_positive),
    )


def describe_leaf(leaf: Leaf, environments: Sequence[str]) -> LeafRates:
    """Describe a leaf with its verdict and the rates in these environments."""
    title = f"leaf {leaf.number}"
    if leaf.conclusion is not None:
        title += f": {SYMBOLS[leaf.conclusion]} {leaf.conclusion}, p {format_p(leaf.p_value)}"
    prediction = write_prediction(leaf.predicts, is_positive=leaf.is_positive)
    rates = {rate.environment: rate for rate in leaf.environments}
    return LeafRates(
        title=title,
        prediction=f"{leaf.number}: {prediction}, n = {leaf.n:,}",
        condition=leaf.condition,
        rate=leaf.rate,
        environments=[describe_rate(rates[environment]) for environment in environments],
    )


def describe_rate(rate: EnvironmentRate) -> DrawnRate:
    """Describe the rate of a leaf in one environment."""
    return DrawnRate(
        environment=rate.environment,
        n_rows=rate.n,
        rate=rate.rate,
        interval=make_pair(rate.rate_interval),
    )


def write_prediction(predicts: str, *, is_positive: bool) -> str:
    """Write the prediction of a leaf, after a sign."""
    return f"{'+' if is_positive else MINUS} {predicts}"


def draw_score(score: ScoreContent, leaves: Sequence[Leaf]) -> Panel:
    """Draw the points of each value, and beside them the risk of each total."""
    points = draw_points([PointsRow(row.column, row.value, row.points) for row in score.points])
    risks = draw_curves(plot_risks(score.risks, make_totals_classes(score, leaves)))
    return place_beside([points, risks], gap=32.0)
