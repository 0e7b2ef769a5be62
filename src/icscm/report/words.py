"""Names, counts and rates as the report says them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from icscm._constants import VERDICT_CONFIDENCE
from icscm.formatting import as_text
from icscm.model.leaves import LeafCounts
from icscm.model.tree import Tree
from icscm.stats.verdicts import compute_wilson

Plain = dict[str, Any]

MISSING = (
    '"missing: true" means that a missing value counts as fulfilling the rule, '
    '"missing: false" that it does not.'
)


@dataclass(frozen=True)
class Names:
    """What the report calls things: text that came from users, made harmless for a line.

    `settled` is the label, 0 or 1, that a rule gives the samples it settles. `place_column` is what
    the column of environments is called, if it has a name.
    """

    target: str
    place_column: str | None
    classes: tuple[str, str]
    environments: tuple[str, ...]
    settled: int

    def predict(self, is_positive: bool) -> str:
        return f"{self.target} = {self.classes[is_positive]}"

    @property
    def positive(self) -> str:
        return self.predict(True)

    @property
    def environment(self) -> str:
        """One of them in a sentence, whatever the column is called: `environment (name)`."""
        named = self.place_column not in (None, "environment")
        return f"environment ({self.place_column})" if named else "environment"

    def place(self, environment: Plain) -> str:
        """An environment in a sentence: `hospital 3`, but not `hospital Hospital 3`."""
        label: str = environment["environment"]
        column = self.place_column or "environment"
        return label if label.lower().startswith(column.lower()) else f"{column} {label}"

    def say_breaking(self, places: Sequence[str] | None, n_seen: int) -> str:
        """Where a leaf holds and where it does not; empty where that is not known."""
        if not places:
            return ""
        return (
            f"holds in {n_seen - len(places):,} of {n_seen:,} environments; "
            f"not in {join_words(places)}"
        )


def join_words(words: Sequence[str]) -> str:
    """A list as it is read out.

    >>> join_words(["b"]), join_words(["b", "f"]), join_words(["b", "f", "k"])
    ('b', 'b and f', 'b, f and k')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


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

    >>> [format_points(each) for each in (0.0512, 0.0004, 0.01, -0.0, None)]
    ['5.1 points', '0.04 points', '1 point', '0 points', 'any number of points']
    """
    if difference is None:
        return "any number of points"
    points = 100 * difference + 0.0  # no -0
    text = f"{points:.2g}" if points < 1 else f"{points:.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def format_utility(utility: float) -> str:
    """A utility: whole numbers as such, others as precisely as anyone would compare them.

    >>> format_utility(6449), format_utility(37.347740667976424), format_utility(-0.5)
    ('6,449', '37.35', '-0.5')
    """
    text = f"{utility:,.2f}" if abs(utility) >= 0.01 else f"{utility:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def format_p(p_value: float | None) -> str:
    """A p-value in as many digits as a reader can use.

    >>> format_p(0.20427), format_p(0.04), format_p(3.1e-12), format_p(0.0), format_p(None)
    ('0.20', '0.040', '3e-12', '<1e-300', '-')
    """
    if p_value is None:
        return "-"
    if p_value < 1e-300:
        return "<1e-300"
    if p_value < 0.001:
        return f"{p_value:.0e}"
    return f"{p_value:.2f}" if p_value >= 0.1 else f"{p_value:.3f}"


def make_names(
    model: Tree,
    environments: Sequence[Any],
    classes: Sequence[Any],
    target: str | None = None,
    environment: str | None = None,
) -> Names:
    """What to call the label, its classes and the environments."""
    texts = tuple(as_text(each) for each in environments)
    if len(set(texts)) < len(texts):  # 1 and "1" are two environments
        texts = tuple(as_text(repr(each)) for each in environments)
    negative, positive = map(as_text, classes)
    label, place = as_text(target or "label"), None if not environment else as_text(environment)
    return Names(
        label, place, (negative, positive), texts, int(not model.is_chain or model.covers_when)
    )


def compute_intervals(positives: Sequence[int], sizes: Sequence[int]) -> list[list[float] | None]:
    """Wilson's interval of each rate, the one that verdicts use; None without samples."""
    z = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2))
    low, high = compute_wilson(np.asarray(positives), np.asarray(sizes), z)
    ends = zip(sizes, low.tolist(), high.tolist(), strict=True)
    return [[start, end] if n else None for n, start, end in ends]


def describe_rates(positives: Sequence[int], sizes: Sequence[int]) -> list[Plain]:
    """Rates with their intervals."""
    intervals = compute_intervals(positives, sizes)
    return [
        {"n": n, "n_positive": k, "rate": k / n if n else None, "rate_interval": interval}
        for k, n, interval in zip(positives, sizes, intervals, strict=True)
    ]


def describe_counts(counts: LeafCounts, names: Names) -> tuple[Plain, list[Plain]]:
    """Rate and interval of all together, and in each environment."""
    sizes = [negative + positive for negative, positive in zip(*counts, strict=True)]
    (overall,) = describe_rates([sum(counts[1])], [sum(sizes)])
    rates = describe_rates(counts[1], sizes)
    pairs = zip(names.environments, rates, strict=True)
    return overall, [{"environment": name, **rate} for name, rate in pairs]


def count_samples(counts: LeafCounts) -> int:
    """All samples of a leaf."""
    return sum(map(sum, counts))
