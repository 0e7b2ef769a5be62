"""Scores with their intervals, as words."""

from math import isfinite

from icscm.report.content.validation import PooledScore, Score


def has_interval(score: Score) -> bool:
    """Return whether the ends of the 95% interval are known."""
    return isfinite(score.low) and isfinite(score.high)


def has_prediction_interval(score: PooledScore) -> bool:
    """Return whether the prediction interval is known: it takes three environments."""
    return isfinite(score.new_low)


def describe_estimate(score: Score | None) -> str:
    """Return `0.81 (0.70 to 0.90)`, the value alone without an interval, or `-` without a value."""
    if score is None:
        return "-"
    if not has_interval(score):
        return f"{score.value:z.2f}"
    return f"{score.value:z.2f} ({score.low:z.2f} to {score.high:z.2f})"
