"""Values that rules may cut a column at, and levels that they may ask for, from the rows."""

import math


def find_thresholds(values, max_thresholds):
    """Observed values that a rule may cut at."""
    ordered = sorted(values)
    distinct = sorted(set(values))
    if max_thresholds is None or len(distinct) <= max_thresholds + 1:
        return distinct[:-1]
    quantiles = set()
    for i in range(1, max_thresholds + 1):
        # the smallest value that at least i / (max_thresholds + 1) of the rows do not exceed
        needed = math.ceil(i * len(ordered) / (max_thresholds + 1))
        quantiles.add(min(ordered[needed - 1], distinct[-2]))
    return sorted(quantiles)


def find_levels(values, max_levels):
    """Groups of levels: frequent ones alone, the others, if several, together."""
    levels = sorted(set(values), key=lambda level: (-values.count(level), level))
    if max_levels is None or len(levels) <= max_levels + 1:
        return [(level,) for level in sorted(levels)]
    frequent, rare = sorted(levels[:max_levels]), sorted(levels[max_levels:])
    return [(level,) for level in frequent] + [tuple(rare)]
