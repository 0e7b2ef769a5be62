"""Names, counts and rates as the report says them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from icscm._constants import VERDICT_CONFIDENCE
from icscm.model.rule_sets import LeafCounts, RuleSet
from icscm.search.trace import Trace
from icscm.stats.verdicts import compute_wilson
from icscm.text import escape_controls

Plain = dict[str, Any]


@dataclass(frozen=True)
class Names:
    """What the report calls things: text that came from users, made harmless for a line.

    `settled` is the label, 0 or 1, that a rule gives the samples it settles.
    """

    target: str
    environment: str
    classes: tuple[str, str]
    environments: tuple[str, ...]
    settled: int

    @property
    def negative(self) -> str:
        return f"{self.target} = {self.classes[0]}"

    @property
    def positive(self) -> str:
        return f"{self.target} = {self.classes[1]}"

    def predict(self, is_positive: bool) -> str:
        return self.positive if is_positive else self.negative

    def place(self, environment: Plain) -> str:
        """An environment in a sentence: `hospital 3`, but not `hospital Hospital 3`."""
        label: str = environment["environment"]
        if label.lower().startswith(self.environment.lower()):
            return label
        return f"{self.environment} {label}"


def as_text(name: Any) -> str:
    """A user's name on one line; nothing in it acts on what shows it."""
    return escape_controls(str(name))


def format_share(share: float | None) -> str:
    """A rate as a percentage; never rounded to 0 % or 100 % when it is not.

    >>> [format_share(each) for each in (0.1234, 0.0, 1.0, 0.00042, 0.99996, None)]
    ['12.3%', '0%', '100%', '0.042%', '99.996%', 'none']
    """
    if share is None:
        return "none"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    edge = min(share, 1.0 - share)
    if edge >= 0.001:
        return f"{share:.1%}"
    percent = float(f"{100 * edge:.2g}")
    return f"{percent:.10g}%" if share < 0.5 else f"{100 - percent:.10g}%"


def format_points(difference: float | None) -> str:
    """A difference of two rates in percentage points.

    >>> format_points(0.0512), format_points(0.0004), format_points(0.01), format_points(None)
    ('5.1 points', '0.04 points', '1 point', 'any number of points')
    """
    if difference is None:
        return "any number of points"
    points = 100 * difference
    text = f"{points:.2g}" if points < 1 else f"{points:.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def make_names(
    model: RuleSet,
    trace: Trace,
    target: str | None,
    environment: str | None,
    class_names: tuple[str, str] | None = None,
) -> Names:
    """What to call the label, its classes and the environments."""
    texts = tuple(as_text(each) for each in trace.environments)
    if len(set(texts)) < len(texts):  # 1 and "1" are two environments
        texts = tuple(as_text(repr(each)) for each in trace.environments)
    negative, positive = map(as_text, class_names or trace.classes)
    return Names(
        target=as_text(target or "label"),
        environment=as_text(environment or "environment"),
        classes=(negative, positive),
        environments=texts,
        settled=int(model.settles_when),
    )


def count(n: int, noun: str) -> str:
    """A number and its noun.

    >>> count(1, "rule"), count(1200, "leaf"), count(3, "leaf")
    ('1 rule', '1,200 leaves', '3 leaves')
    """
    plural = "leaves" if noun == "leaf" else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def compute_intervals(positives: Sequence[int], sizes: Sequence[int]) -> list[list[float] | None]:
    """Wilson's interval of each rate, the one that verdicts use; None without samples."""
    z = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2))
    low, high = compute_wilson(np.asarray(positives), np.asarray(sizes), z)
    ends = zip(sizes, low.tolist(), high.tolist(), strict=True)
    return [[start, end] if n else None for n, start, end in ends]


def _describe_rates(positives: Sequence[int], sizes: Sequence[int]) -> list[Plain]:
    intervals = compute_intervals(positives, sizes)
    return [
        {
            "n": n,
            "n_positive": positive,
            "rate": positive / n if n else None,
            "rate_interval": interval,
        }
        for positive, n, interval in zip(positives, sizes, intervals, strict=True)
    ]


def describe_rate(positives: int, n: int) -> Plain:
    """One rate with its interval."""
    return _describe_rates([positives], [n])[0]


def describe_counts(counts: LeafCounts, names: Names) -> list[Plain]:
    """Rate and interval in each environment."""
    rates = _describe_rates(counts[1], sum_labels(counts))
    return [
        {"environment": name, **rate} for name, rate in zip(names.environments, rates, strict=True)
    ]


def sum_labels(counts: LeafCounts) -> list[int]:
    """Samples of each environment, whatever their label."""
    return [negative + positive for negative, positive in zip(*counts, strict=True)]


def can_compare(trace: Trace) -> bool:
    """Whether there are environments to compare."""
    return len(trace.environments) > 1
