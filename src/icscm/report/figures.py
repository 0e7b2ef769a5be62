"""A fitted learner as a figure: its tree with the rates of each leaf, or its points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icscm.drawing import Figure
from icscm.drawing.curves import draw_curves
from icscm.drawing.score_card import PointsRow, draw_points, plot_risks
from icscm.drawing.shapes import Panel, place_beside
from icscm.drawing.tree import EnvironmentRate, LeafRates, TreeDrawing, TreeNode, draw_tree
from icscm.exceptions import IcscmError
from icscm.formatting import clip
from icscm.model.saved import Learner
from icscm.parameters import allow, check_value
from icscm.report.drawing import choose_largest, make_totals_classes
from icscm.report.formatting import Plain, format_p, format_share
from icscm.report.summary import make_summary
from icscm.report.wording.leaves import describe_figure
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Environments that are drawn; of more, the largest.
_MAX_ENVIRONMENTS: Final = 60
_MAX_POSITIVE: Final = 30
_SYMBOLS: Final = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}
_MINUS: Final = "\N{MINUS SIGN}"


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
    summary = make_summary(learner, target=target, environment=environment)
    if "risks" in summary["model"]:
        panel = _draw_score(summary)
    elif summary["leaves"]:
        panel = draw_tree(_describe_tree(summary, order))
    else:
        raise IcscmError("a forest has no single tree to draw; its report describes it")
    return Figure(panel, describe_figure(summary["model"]["sentence"], summary["leaves"]))


def _describe_tree(summary: Plain, order: str) -> TreeDrawing:
    """Describe the tree of a summary, with its largest environments."""
    task, leaves = summary["task"], summary["leaves"]
    largest = choose_largest(task["environments"], _MAX_ENVIRONMENTS, order)
    environments = [row["environment"] for row in largest]
    note = ""
    if len(environments) < task["n_environments"]:
        note = f"the {len(environments)} largest of {task['n_environments']:,} environments"
    return TreeDrawing(
        nodes=[_describe_node(node) for node in summary["nodes"]["walk"]],
        leaves=[_describe_leaf(leaf, environments) for leaf in leaves],
        axis_title=f"rate of {clip(task['positive'], _MAX_POSITIVE)}, with 95% intervals",
        note=note,
    )


def _describe_node(node: Plain) -> TreeNode:
    is_leaf = node["leaf"] is not None
    return TreeNode(
        depth=node["depth"],
        answer=node["answer"] or "",
        size=f"{format_share(node['rate'])} of {node['n']:,}",
        question=node["question"] or "",
        leaf=node["leaf"],
        prediction=format_prediction(node) if is_leaf else "",
        is_positive=bool(node["is_positive"]),
    )


def _describe_leaf(leaf: Plain, environments: Sequence[str]) -> LeafRates:
    """Describe a leaf with its verdict and the rates in these environments."""
    title = f"leaf {leaf['number']}"
    conclusion = leaf["conclusion"]
    if conclusion is not None:
        title += f": {_SYMBOLS[conclusion]} {conclusion}, p {format_p(leaf['p_value'])}"
    rates = {row["environment"]: row for row in leaf["environments"]}
    return LeafRates(
        title=title,
        prediction=f"{leaf['number']}: {format_prediction(leaf)}, n = {leaf['n']:,}",
        condition=leaf["condition"],
        rate=leaf["rate"],
        environments=[_describe_rate(rates[environment]) for environment in environments],
    )


def _describe_rate(row: Plain) -> EnvironmentRate:
    interval = row["rate_interval"]
    return EnvironmentRate(
        environment=row["environment"],
        n_rows=row["n"],
        rate=row["rate"],
        interval=None if interval is None else (interval[0], interval[1]),
    )


def format_prediction(leaf: Plain) -> str:
    """Write the prediction of a leaf, after a sign."""
    sign = "+" if leaf["is_positive"] else _MINUS
    return f"{sign} {leaf['predicts']}"


def _draw_score(summary: Plain) -> Panel:
    """Draw the points of each value, and beside them the risk of each total."""
    model = summary["model"]
    points = draw_points(
        [PointsRow(row["column"], row["value"], row["points"]) for row in model["points"]]
    )
    classes = make_totals_classes(model, summary["leaves"])
    risks = draw_curves(plot_risks(model["risks"], classes))
    return place_beside([points, risks], gap=32.0)
