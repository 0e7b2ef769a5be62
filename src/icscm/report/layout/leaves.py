"""The sections on the leaves, and on their prediction intervals for a new environment."""

from dataclasses import dataclass

from markupsafe import Markup

from icscm._constants import VERDICT_CONFIDENCE, VERDICT_POWER
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf
from icscm.report.drawing import DrawnPlot, Limits, PlotRow, make_plot, make_rate_row
from icscm.report.formatting import format_points
from icscm.report.selection import NewInterval, choose_leaves, list_new_intervals
from icscm.report.wording.intervals import describe_new_environments, describe_unknown_intervals
from icscm.report.wording.invariance import CONCLUSIONS
from icscm.report.wording.leaves import explain_leaf
from icscm.report.wording.requirement import describe_margin, describe_null_hypothesis
from icscm.search.records import STOP_REASONS


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The largest difference between two rates, and the ends of its interval; both as text."""

    text: str
    ends: str


@dataclass(frozen=True, kw_only=True)
class ShownLeaf:
    """A leaf with its plot, and with what is said of it.

    `place` says of a rule set's leaf which rows it is of, and `end_text` why a tree did not split
    the leaf; both are empty where there is nothing to say.
    """

    leaf: Leaf
    place: str
    explanation: str
    difference: Difference
    end_text: str
    plot: DrawnPlot


@dataclass(frozen=True, kw_only=True)
class LeavesSection:
    """The leaves, and what their verdicts require and mean.

    Parameters
    ----------
    rows, n_more : list of ShownLeaf, int
        The leaves that are shown, and how many are not.
    requires_effects : bool
        Whether effects had to be homogeneous, and not rates.
    margin, null_hypothesis : str
        What the verdicts require, in words.
    confidence, difference_confidence, power : float, float or None, float
        The levels of the intervals of rates and of differences, and the probability with which the
        minimum detectable difference is detected.
    conclusions : dict
        The meaning of each verdict.
    """

    rows: list[ShownLeaf]
    n_more: int
    requires_effects: bool
    margin: str
    null_hypothesis: str
    confidence: float
    difference_confidence: float | None
    power: float
    conclusions: dict[str, str]


def lay_out_leaves(content: LearnerContent, limits: Limits) -> LeavesSection:
    """Return the leaves, and what their verdicts require and mean."""
    requirement = content.task.requirement
    return LeavesSection(
        rows=[
            lay_out_leaf(leaf, content, limits) for leaf in choose_leaves(content.leaves, limits)
        ],
        n_more=max(len(content.leaves) - limits.leaves, 0),
        requires_effects=content.nodes.invariance == "effect",
        margin=describe_margin(requirement),
        null_hypothesis=describe_null_hypothesis(content.names),
        confidence=VERDICT_CONFIDENCE,
        difference_confidence=requirement.difference_confidence,
        power=VERDICT_POWER,
        conclusions=CONCLUSIONS,
    )


def lay_out_leaf(leaf: Leaf, content: LearnerContent, limits: Limits) -> ShownLeaf:
    """Return a leaf with its plot, and with what is said of it."""
    requirement = content.task.requirement
    end_text = ""
    if leaf.end is not None and content.model.n_rules:
        end_text = STOP_REASONS[leaf.end]
    return ShownLeaf(
        leaf=leaf,
        place=describe_place(leaf, content),
        explanation=explain_leaf(leaf, content.names, requirement),
        difference=write_difference(leaf),
        end_text=end_text,
        plot=make_plot(
            [make_rate_row(rate.environment, rate) for rate in leaf.environments],
            make_rate_row("all", leaf),
            limits,
            margin=requirement.margin,
            by_name=True,
        ),
    )


def describe_place(leaf: Leaf, content: LearnerContent) -> str:
    """Return of which rows the leaf of a rule set is; empty for the first, and for other models."""
    if not content.model.is_rule_set or not content.model.n_rules:
        return ""
    if leaf.is_rest:
        return ", uncovered samples"
    return ", of the samples that reach it" if leaf.number > 1 else ""


def write_difference(leaf: Leaf) -> Difference:
    """Return the largest difference between two rates with its interval.

    The lower end is without the unit, as in `(2 to 9 points)`.
    """
    if leaf.difference is None or leaf.difference_interval is None:
        return Difference(text="undefined", ends="")
    low, high = map(format_points, leaf.difference_interval)
    low_number = low.removesuffix("s").removesuffix(" point")
    return Difference(text=format_points(leaf.difference), ends=f"({low_number} to {high})")


# --- a new environment ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ShownInterval:
    """The prediction interval of a leaf, or of all rows, with its drawing."""

    interval: NewInterval
    cell: Markup


@dataclass(frozen=True, kw_only=True)
class NewEnvironmentSection:
    """Prediction intervals of rates in a new environment.

    `axis` has the marks of the axis that all rows share; `unknown_text` says how many leaves have
    no interval.
    """

    text: str
    unknown_text: str
    confidence: float
    rows: list[ShownInterval]
    axis: Markup


def lay_out_new_environments(content: LearnerContent, limits: Limits) -> NewEnvironmentSection:
    """Return a row for each leaf with a prediction interval, and one for all rows."""
    intervals = list_new_intervals(content, limits)
    rows: list[ShownInterval] = []
    axis = Markup()
    if intervals:
        plot = draw_new_intervals(intervals, limits)
        axis = plot.axis
        rows = [
            ShownInterval(interval=interval, cell=row.cell)
            for interval, row in zip(intervals, plot.rows, strict=True)
        ]
    new_environments = content.new_environments
    return NewEnvironmentSection(
        text=describe_new_environments(new_environments, content.names),
        unknown_text=describe_unknown_intervals(new_environments),
        confidence=new_environments.confidence,
        rows=rows,
        axis=axis,
    )


def draw_new_intervals(intervals: list[NewInterval], limits: Limits) -> DrawnPlot:
    """Draw the intervals of all rows and of each leaf, without a mean: leaves differ in rate."""
    rows = []
    for interval in intervals:
        low, high = interval.new_interval
        rows.append(PlotRow(interval.name, n=interval.n, share=interval.rate, interval=(low, high)))
    limits_for_all = limits._replace(environments=len(rows))
    return make_plot(rows, rows[0], limits_for_all, has_mean=False)
