"""Invariant causal prediction straight from its definition.

Every set is tested by itself from the rows, one stratum after the other. Nothing here
is shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import itertools
import math

from scipy import special

from support.literal.learner import compute_statistic, find_thresholds, tabulate


def find_levels(X, max_levels):
    """Each row's level of each feature: how many thresholds lie below its value."""
    columns = []
    for values in zip(*X, strict=True):
        thresholds = find_thresholds(values, max_levels - 1)
        columns.append([sum(value > t for t in thresholds) for value in values])
    return list(zip(*columns, strict=True))


def compute_set_p_value(levels, y, environments, features, *, test, dof):
    """p-value of label against environment within each combination of the features' levels."""
    strata = {}
    for row, label, place in zip(levels, y, environments, strict=True):
        pairs = strata.setdefault(tuple(row[j] for j in features), [])
        pairs.append((label, place))
    statistic, n_free = 0.0, 0
    for pairs in strata.values():
        table = tabulate(pairs)
        if len(table) < 2 or len(table[0]) < 2:
            continue
        stratum_statistic, stratum_dof = compute_statistic(table, "g" if test == "g" else "pearson")
        statistic += stratum_statistic
        n_free += stratum_dof
    if dof == "nominal":
        n_levels = [len({row[j] for row in levels}) for j in features]
        n_free = (len(set(environments)) - 1) * math.prod(n_levels)
    return float(special.chdtrc(n_free, statistic)) if n_free else 1.0


def compute_set_bic(levels, y, features):
    """Deviance of the label within each combination of levels, and log n for each of them."""
    strata = {}
    for row, label in zip(levels, y, strict=True):
        strata.setdefault(tuple(row[j] for j in features), []).append(label)
    deviance = 0.0
    for labels in strata.values():
        for n in (labels.count(0), labels.count(1)):
            deviance -= 2 * n * math.log(n / len(labels)) if n else 0.0
    return deviance + len(strata) * math.log(len(y))


def predict_slowly(
    X,
    y,
    environments,
    *,
    alpha=0.05,
    test="g",
    max_set_size=None,
    dof="adjusted",
    max_levels=4,
    conclusion="intersection",
):
    """Everything worth comparing, in plain values."""
    levels = find_levels(X, max_levels)
    n_features = len(X[0])
    size = n_features if max_set_size is None else min(max_set_size, n_features)
    p_values, accepted, common = {}, {}, None
    for k in range(size + 1):
        for features in itertools.combinations(range(n_features), k):
            p_value = compute_set_p_value(levels, y, environments, features, test=test, dof=dof)
            p_values[features] = p_value
            if p_value > alpha:
                accepted[features] = p_value
                common = set(features) if common is None else common & set(features)
    bics = {}
    if conclusion == "best":
        bics = {features: compute_set_bic(levels, y, features) for features in accepted}
        common = min(
            bics,
            key=lambda features: (round(bics[features], 6), len(features), features),
            default=None,
        )
    return {
        "bics": bics,
        "parents": None if common is None else tuple(sorted(common)),
        "accepted": accepted,
        "n_tested": len(p_values),
        "p_values": [
            max(p for features, p in p_values.items() if j not in features)
            for j in range(n_features)
        ],
    }
