"""What determines the environment, bin by bin, as the definition has it."""

from collections import Counter
from math import prod

import numpy as np

from support.literal.values import find_levels, find_thresholds


def determines_environment(counts):
    """Whether a column determines the environment, from counts by (bin, environment)."""
    by_environment = [list(rows) for rows in zip(*counts.tolist(), strict=True)]
    by_environment = [rows for rows in by_environment if sum(rows)]
    if len(by_environment) < 2:
        return False
    totals = [sum(rows) for rows in zip(*by_environment, strict=True)]
    bins = [number for number, total in enumerate(totals) if total]
    if len(bins) < 2:
        return False

    constant = [rows for rows in by_environment if sum(n > 0 for n in rows) == 1]
    n_varying = len(by_environment) - len(constant)
    if n_varying == 0 or (n_varying == 1 and len(by_environment) > 2):
        chance = prod(
            sum((total / sum(totals)) ** sum(rows) for total in totals) for rows in constant
        )
        if chance < 0.001:
            return True

    large = [number for number in bins if totals[number] >= 5]
    homes = set()
    for number in large:
        of_bin = [rows[number] for rows in by_environment]
        if max(of_bin) < 0.99 * totals[number]:
            return False
        homes.add(of_bin.index(max(of_bin)))
    n_rows_of_large = sum(totals[number] for number in large)
    return len(homes) > 1 and n_rows_of_large >= 0.5 * sum(totals)


def find_determining(X, environments, max_thresholds):
    """The columns of a table of rows that determine the environment."""
    return [
        column
        for column in range(len(X[0]))
        if determines_environment(
            count_bins([row[column] for row in X], environments, max_thresholds)
        )
    ]


def count_bins(values, environments, max_thresholds):
    """Count the rows of each bin of a column by environment: values between thresholds, or levels.

    Missing values, None, are a bin of their own.
    """
    present = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in present):
        groups = find_levels(present, max_thresholds)
        bins = [
            -1 if value is None else next(n for n, group in enumerate(groups) if value in group)
            for value in values
        ]
    else:
        thresholds = find_thresholds(present, max_thresholds) if present else []
        bins = [
            -1 if value is None else sum(value > threshold for threshold in thresholds)
            for value in values
        ]
    names = sorted(set(environments))
    counts = Counter(zip(bins, environments, strict=True))
    return np.array([[counts[number, name] for name in names] for number in sorted(set(bins))])
