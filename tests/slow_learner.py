"""Algorithms 1 and 2 and the pruning of Proposition 3.2, straight from the paper's text.

Rows are numbers in sets, rules are functions of a row, and everything is recomputed from the
rows each time. Nothing here is shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import stats


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


def compute_p_value(pairs, test):
    """p-value of the test of label against environment for (label, environment) pairs."""
    labels = sorted({label for label, _ in pairs})
    places = sorted({place for _, place in pairs})
    if len(labels) < 2 or len(places) < 2:
        return 1.0
    table = [
        [sum(pair == (label, place) for pair in pairs) for place in places] for label in labels
    ]
    if test == "chi2":
        return stats.chi2_contingency(table, correction=True).pvalue
    if test == "g":
        return stats.chi2_contingency(table, correction=False, lambda_="log-likelihood").pvalue
    return compute_fisher(table)


def compute_fisher(table):
    """Fisher's exact test by listing every table of the same margins, in whole numbers."""
    sizes = [sum(column) for column in zip(*table, strict=True)]
    total = sum(table[0])
    chances = {
        top: math.prod(math.comb(n, k) for n, k in zip(sizes, top, strict=True))
        for top in itertools.product(*(range(n + 1) for n in sizes))
        if sum(top) == total
    }
    observed = chances[tuple(table[0])]
    return sum(c for c in chances.values() if c <= observed) / math.comb(sum(sizes), total)


def learn_slowly(
    X,
    y,
    environments,
    *,
    test=None,
    alpha=0.05,
    p=1.0,
    model_type="conjunction",
    max_rules=10,
    max_thresholds=50,
    stop="independence",
    pruning=True,
    min_samples_leaf=1,
    feature_weights=None,
):
    """Everything worth comparing about the search, in plain values. `y` is 0 or 1."""
    if model_type == "disjunction":
        y = [1 - label for label in y]
    n_features = len(X[0])
    weights = feature_weights if feature_weights is not None else [1.0] * n_features
    candidates = [
        (feature, threshold, above)
        for feature in range(n_features)
        for threshold in find_thresholds([row[feature] for row in X], max_thresholds)
        for above in (True, False)
    ]

    def holds(rule, i):
        feature, threshold, above = rule
        return (X[i][feature] > threshold) == above

    def pairs_of(rows):
        return [(y[i], environments[i]) for i in rows]

    positives = {i for i in range(len(X)) if y[i] == 1}
    negatives = {i for i in range(len(X)) if y[i] == 0}
    chosen, steps = [], []
    while True:
        if not negatives:
            reason = "covered"
            break
        if steps and test and stop == "independence" and steps[-1]["p_value_remaining"] > alpha:
            reason = "independence"
            break
        if len(chosen) == max_rules:
            reason = "max_rules"
            break
        best, best_key, n_candidates, n_refused = None, None, 0, {"dependent": 0, "small": 0}
        equal = []
        for rule in candidates:
            covered = {i for i in negatives if not holds(rule, i)}
            lost = {i for i in positives if not holds(rule, i)}
            leaf = covered | lost
            stays = (positives | negatives) - leaf
            if not covered or not stays or weights[rule[0]] == 0:
                continue
            n_candidates += 1
            if min(len(leaf), len(stays)) < min_samples_leaf:
                n_refused["small"] += 1
                continue
            p_value = compute_p_value(pairs_of(leaf), test) if test else None
            if test and not p_value > alpha:
                n_refused["dependent"] += 1
                continue
            utility = len(covered) - p * len(lost)
            weight = weights[rule[0]]
            utility = utility * weight if utility >= 0 else utility / weight
            key = (utility, len(covered) - len(lost))
            if best is None or key > best_key:
                best, best_key, best_leaf, best_p = rule, key, leaf, p_value
                equal = []
            elif key == best_key and leaf == best_leaf:
                equal.append(rule)
        if best is None:
            reason = "no_candidate"
            break
        chosen.append(best)
        negatives -= best_leaf
        positives -= best_leaf
        steps.append(
            {
                "rule": best,
                "utility": best_key[0],
                "p_value": best_p,
                "leaf": sorted(pairs_of(best_leaf)),
                "remaining": sorted(pairs_of(positives | negatives)),
                "p_value_remaining": (
                    compute_p_value(pairs_of(positives | negatives), test) if test else None
                ),
                "n_candidates": n_candidates,
                "n_refused": n_refused,
                "equivalent": equal,
            }
        )
    kept = list(chosen)
    removed = []
    while test and pruning and len({rule[0] for rule in kept}) > 1:
        verdicts = []
        for feature in dict.fromkeys(rule[0] for rule in kept):
            others = [rule for rule in kept if rule[0] != feature]
            verdicts.append((compute_conditional_p(others, holds, y, environments), feature))
        highest = max(round(p_value, 12) for p_value, _ in verdicts)
        p_value, feature = [v for v in verdicts if round(v[0], 12) == highest][-1]
        if not p_value > alpha:
            break
        removed.append((feature, p_value))
        kept = [rule for rule in kept if rule[0] != feature]
    return {"kept": kept, "steps": steps, "reason": reason, "removed": removed}


def compute_conditional_p(rules, holds, y, environments):
    """G-test of label against environment within each combination of the rules' values."""
    strata = {}
    for i in range(len(y)):
        strata.setdefault(tuple(holds(rule, i) for rule in rules), []).append(i)
    statistic, dof = 0.0, 0
    for rows in strata.values():
        labels = sorted({y[i] for i in rows})
        places = sorted({environments[i] for i in rows})
        if len(labels) < 2 or len(places) < 2:
            continue
        table = np.array(
            [
                [sum(y[i] == a and environments[i] == e for i in rows) for e in places]
                for a in labels
            ]
        )
        result = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
        statistic, dof = statistic + result.statistic, dof + result.dof
    return float(stats.chi2.sf(statistic, dof)) if dof else 1.0
