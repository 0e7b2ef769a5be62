"""Shares of positive rows with their intervals, overall and by environment."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icscm._constants import SPARSE_ENVIRONMENT, VERDICT_CONFIDENCE
from icscm._lazy import special
from icscm.model.splits import LeafCounts
from icscm.report.formatting import Names
from icscm.stats.splits import find_extreme_environments
from icscm.stats.verdicts import compute_wilson


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The share of positive rows among some rows, with Wilson's interval; None without rows."""

    n: int
    n_positive: int
    rate: float | None
    rate_interval: list[float] | None


@dataclass(frozen=True, kw_only=True)
class EnvironmentRate:
    """The rate in one environment; see `Rate`."""

    environment: str
    n: int
    n_positive: int
    rate: float | None
    rate_interval: list[float] | None


@dataclass(frozen=True, kw_only=True)
class RateExtreme:
    """The environment of the lowest or the highest rate."""

    environment: str
    n: int
    rate: float


@dataclass(frozen=True, kw_only=True)
class RateRange:
    """The environments between which a rate differs most, and how many have rows."""

    n_seen: int
    lowest: RateExtreme | None
    highest: RateExtreme | None


def compute_intervals(positives: Sequence[int], sizes: Sequence[int]) -> list[list[float] | None]:
    """Return Wilson's interval of each rate, as in the verdicts; None without rows."""
    z = float(special.ndtri((1 + VERDICT_CONFIDENCE) / 2))
    lows, highs = compute_wilson(np.asarray(positives), np.asarray(sizes), z)
    return [
        [low, high] if n_rows else None
        for n_rows, low, high in zip(sizes, lows.tolist(), highs.tolist(), strict=True)
    ]


def make_rates(positives: Sequence[int], sizes: Sequence[int]) -> list[Rate]:
    """Return the rate of each group of rows."""
    intervals = compute_intervals(positives, sizes)
    return [
        Rate(
            n=n_rows,
            n_positive=n_positive,
            rate=n_positive / n_rows if n_rows else None,
            rate_interval=interval,
        )
        for n_positive, n_rows, interval in zip(positives, sizes, intervals, strict=True)
    ]


def make_overall_rate(counts: LeafCounts) -> Rate:
    """Return the rate over all environments, from counts by (label, environment)."""
    (overall,) = make_rates([sum(counts[1])], [count_rows(counts)])
    return overall


def make_environment_rates(counts: LeafCounts, names: Names) -> list[EnvironmentRate]:
    """Return the rate in each environment, from counts by (label, environment)."""
    sizes = [negative + positive for negative, positive in zip(*counts, strict=True)]
    rates = make_rates(counts[1], sizes)
    return [
        EnvironmentRate(environment=name, **vars(rate))
        for name, rate in zip(names.environments, rates, strict=True)
    ]


def make_rate_range(rates: Sequence[EnvironmentRate]) -> RateRange:
    """Return the environments of the lowest and the highest rate, passing over sparse ones.

    A rate of a few rows is extreme by chance; such an environment is named only where fewer than
    two others have rows.
    """
    n_seen = sum(rate.rate is not None for rate in rates)
    ends = find_extreme_rows([rate.rate for rate in rates], [rate.n for rate in rates])
    if ends is None:
        return RateRange(n_seen=n_seen, lowest=None, highest=None)
    lowest, highest = (make_rate_extreme(rates[number]) for number in ends)
    return RateRange(n_seen=n_seen, lowest=lowest, highest=highest)


def make_rate_extreme(rate: EnvironmentRate) -> RateExtreme:
    """Return an environment with its known rate."""
    assert rate.rate is not None
    return RateExtreme(environment=rate.environment, n=rate.n, rate=rate.rate)


def find_extreme_rows(
    values: Sequence[float | None], sizes: Sequence[int]
) -> tuple[int, int] | None:
    """Return where the lowest and the highest value are; None if no value is known.

    Sparse environments are passed over where two or more others are known.
    """
    known = [number for number, value in enumerate(values) if value is not None]
    clear = [number for number in known if sizes[number] >= SPARSE_ENVIRONMENT]
    named = clear if len(clear) > 1 else known
    ends = find_extreme_environments([values[number] for number in named])
    if ends is None:
        return None
    lowest, highest = ends
    return named[lowest], named[highest]


def count_rows(counts: LeafCounts) -> int:
    """Return the number of rows in counts by (label, environment)."""
    return sum(map(sum, counts))
