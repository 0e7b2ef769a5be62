"""What of a report is shown: the leaves, scans and intervals that a page or document lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf, NewEnvironment
from icscm.report.content.nodes import Nodes, ScanContent
from icscm.report.content.paths import LevelContent
from icscm.report.content.rates import EnvironmentRate, Rate, find_extreme_rows
from icscm.report.drawing import Limits
from icscm.report.formatting import format_conclusions, format_share, format_span


def choose_leaves(leaves: Sequence[Leaf], limits: Limits) -> list[Leaf]:
    """Return the first leaves, and the last, which in a rule set has the uncovered rows."""
    n_first = limits.leaves - 1
    first = leaves[:n_first]
    others = leaves[n_first:]
    return [*first, *others[-1:]]


def list_rejecting(nodes: Nodes) -> list[ScanContent]:
    """Return the scans that list rejected candidates, not leaves that ended for other reasons.

    A scan of a tree that made a split has no end.
    """
    scans = nodes.scans
    is_tree = nodes.invariance is not None
    if is_tree and len(scans) > 1:
        scans = [scan for scan in scans if scan.end in (None, "rejected")]
    return [scan for scan in scans if scan.rejected]


# --- prediction intervals -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NewInterval:
    """The prediction interval of a leaf, beside its rates in training.

    `seen` is the range of the rates over environments, `known_interval` the interval where the rate
    of the new environment as a whole is known.
    """

    name: str
    n: int
    rate: float | None
    seen: str
    new_interval: list[float]
    known_interval: list[float] | None
    tau: float


def list_new_intervals(content: LearnerContent, limits: Limits) -> list[NewInterval]:
    """Return the interval of all rows, and of each leaf that has one; nothing without any."""
    task = content.task
    overall = content.new_environments.overall
    shown_leaves = choose_leaves(content.leaves, limits)
    leaves_with_interval = [leaf for leaf in shown_leaves if leaf.new_interval is not None]
    no_leaf_has_one = bool(shown_leaves) and not leaves_with_interval
    if overall.new_interval is None or no_leaf_has_one:
        return []

    intervals = [make_new_interval("all samples", task.overall, task.environments, overall)]
    for leaf in leaves_with_interval:
        name = f"{leaf.number}: {leaf.condition}"
        # a leaf has its rates, and what is expected of it
        intervals.append(make_new_interval(name, leaf, leaf.environments, leaf))
    return intervals


def make_new_interval(
    name: str,
    rate: Rate | Leaf,
    environments: Sequence[EnvironmentRate],
    expected: NewEnvironment,
) -> NewInterval:
    """Return a known interval, beside the rates in training."""
    assert expected.new_interval is not None
    assert expected.tau is not None
    return NewInterval(
        name=name,
        n=rate.n,
        rate=rate.rate,
        seen=format_range(environments),
        new_interval=expected.new_interval,
        known_interval=expected.known_interval,
        tau=expected.tau,
    )


def format_range(environments: Sequence[EnvironmentRate]) -> str:
    """Return the rates in the training environments, from the lowest to the highest."""
    rates = [environment.rate for environment in environments]
    ends = find_extreme_rows(rates, [environment.n for environment in environments])
    return "no sample" if ends is None else " to ".join(format_share(rates[i]) for i in ends)


# --- levels of alpha ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """Neighbouring levels of alpha with the same conclusions."""

    is_own: bool
    conclusions: str
    text: str


def list_spans(levels: Sequence[LevelContent]) -> list[Span]:
    """Return the levels of a model; neighbours with the same conclusions are one span."""
    spans_of_levels = [
        Span(
            is_own=level.is_own,
            conclusions=format_conclusions(level.conclusions),
            text=f"{level.alpha:g}",
        )
        for level in levels
    ]
    return [
        Span(is_own, conclusions, text=format_span([span.text for span in spans]))
        for (is_own, conclusions), spans in groupby(
            spans_of_levels, key=attrgetter("is_own", "conclusions")
        )
    ]
