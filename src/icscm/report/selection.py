"""What of a summary is shown: the leaves, scans and intervals that a page or document lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from icscm.report.content.rates import find_extreme_rows
from icscm.report.drawing import Limits
from icscm.report.formatting import Plain, format_conclusions, format_share, format_span


def choose_leaves(leaves: Sequence[Plain], limits: Limits) -> list[Plain]:
    """Return the first leaves, and the last."""
    return [*leaves[: limits.leaves - 1], *leaves[limits.leaves - 1 :][-1:]]


def list_rejecting(nodes: Plain) -> list[Plain]:
    """Return the scans that list rejected candidates, not leaves that ended for other reasons."""
    scans = nodes["scans"]
    if nodes["invariance"] is not None and len(scans) > 1:
        scans = [each for each in scans if each["end"] in (None, "rejected")]
    return [each for each in scans if each["rejected"]]


@dataclass(frozen=True)
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


def list_new_intervals(summary: Plain, limits: Limits) -> list[NewInterval]:
    """Return the interval of all rows, and of each leaf that has one; nothing without any."""
    task = summary["task"]
    overall = {**task["overall"], **summary["new_environments"]["overall"]}
    shown = choose_leaves(summary["leaves"], limits)
    known = [leaf for leaf in shown if leaf["new_interval"] is not None]
    if overall["new_interval"] is None or (shown and not known):
        return []
    rows = [("all samples", {**overall, "environments": task["environments"]})]
    rows += [(f"{leaf['number']}: {leaf['condition']}", leaf) for leaf in known]
    return [
        NewInterval(
            name=name,
            n=row["n"],
            rate=row["rate"],
            seen=format_range(row["environments"]),
            new_interval=row["new_interval"],
            known_interval=row["known_interval"],
            tau=row["tau"],
        )
        for name, row in rows
    ]


def format_range(environments: Sequence[Plain]) -> str:
    """Return the rates in the training environments, from the lowest to the highest."""
    rates = [each["rate"] for each in environments]
    ends = find_extreme_rows(rates, [each["n"] for each in environments])
    return "no sample" if ends is None else " to ".join(format_share(rates[i]) for i in ends)


@dataclass(frozen=True)
class Span:
    """Neighbouring levels of alpha with the same conclusions."""

    is_own: bool
    conclusions: str
    text: str


def list_spans(levels: Sequence[Plain]) -> list[Span]:
    """Return the levels of a model; neighbours with the same conclusions are one span."""
    each_level = [
        Span(level["is_own"], format_conclusions(level["conclusions"]), f"{level['alpha']:g}")
        for level in levels
    ]
    return [
        Span(is_own, conclusions, format_span([span.text for span in spans]))
        for (is_own, conclusions), spans in groupby(
            each_level, key=attrgetter("is_own", "conclusions")
        )
    ]
