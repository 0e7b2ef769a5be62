"""The environments between which a rate or an odds ratio differs most, and those that stand out."""

from collections.abc import Sequence

from icscm.report.content.candidates import RatioExtreme
from icscm.report.content.rates import RateExtreme
from icscm.report.formatting import Names, format_ratio, format_share, format_variation, join_words

Extreme = RateExtreme | RatioExtreme


def describe_range(lowest: Extreme | None, highest: Extreme | None, names: Names) -> str:
    """Return the lowest and the highest rate or odds ratio, with their environments."""
    assert lowest is not None
    assert highest is not None
    return f"{describe_extreme(lowest, names)} to {describe_extreme(highest, names)}"


def describe_extreme(extreme: Extreme, names: Names) -> str:
    """Return `12.3% (hospital 3)`."""
    place = names.describe_place(extreme.environment)
    if isinstance(extreme, RateExtreme):
        return f"{format_share(extreme.rate)} ({place})"
    return f"{format_ratio(extreme.odds_ratio)} ({place})"


def describe_outliers(outliers: Sequence[str] | None, n_seen: int) -> str:
    """Return where a leaf holds and where it does not; empty if no few environments stand out.

    >>> describe_outliers(["north", "south"], n_seen=9)
    'holds in 7 of 9 environments; not in north and south'
    """
    if not outliers:
        return ""
    n_holds = n_seen - len(outliers)
    return f"holds in {n_holds:,} of {n_seen:,} environments; not in {join_words(outliers)}"


def describe_variation(heterogeneity_share: float, *, has_environments: bool) -> str:
    """Return by how much an effect varies over environments; empty where there is only one."""
    return format_variation(heterogeneity_share) if has_environments else ""


def reverses(lowest: RatioExtreme | None, highest: RatioExtreme | None, n_seen: int) -> bool:
    """Return whether an effect has another direction in some environments."""
    if lowest is None or highest is None or n_seen < 2:
        return False
    return lowest.odds_ratio < 1 < highest.odds_ratio
