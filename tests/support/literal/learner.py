"""Algorithms 1 and 2 and the pruning of Proposition 3.2, straight from the paper's text.

Rows are numbers in sets, rules are functions of a row, and everything is computed from the rows;
only the p-value of a set of rows is remembered. Nothing here is shared with the package: it is what
the package is held to.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
from scipy import special, stats


def as_fraction(number):
    """What a user meant: 0.1 is a tenth, and 0.3333333333333333 a third."""
    return Fraction(str(number)).limit_denominator(10**9)


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


def list_candidates(values, most, missing, model_type):
    """Rules on one feature as (kind, value, sign, truth for missing), in the order of ties."""
    present = [value for value in values if value is not None]
    has_missing = len(present) < len(values)
    sides = [None]
    if has_missing:
        yield "missing", None, True, True
        yield "missing", None, False, False
        # the rules that a disjunction prints are the negations of these
        sides = [model_type == "disjunction"] if missing == "separate" else [False, True]
    if any(isinstance(value, str) for value in present):
        groups = find_levels(present, most)
        signs = [True, False]
        if len(groups) == 2:
            signs = [model_type != "disjunction"]
        found = [("level", group, sign) for group in groups for sign in signs]
    else:
        thresholds = find_thresholds(present, most) if present else []
        found = [("above", threshold, sign) for threshold in thresholds for sign in (True, False)]
    for rule in found:
        for side in sides:
            yield *rule, side


def is_true(rule, value):
    """Whether a rule holds for a value."""
    kind, what, sign, side = rule
    if kind == "missing":
        return (value is None) == sign
    if value is None:
        return side
    return (value in what if kind == "level" else value > what) == sign


def compute_design_effect(rows, y, environments, groups):
    """How much larger the variance of rates is than that of independent rows, at least 1."""
    found = expected = 0.0
    for place in {environments[i] for i in rows}:
        own = [i for i in rows if environments[i] == place]
        rate, clusters = sum(y[i] for i in own) / len(own), {groups[i] for i in own}
        if len(clusters) < 2:
            continue
        errors = [sum(y[i] - rate for i in own if groups[i] == each) for each in clusters]
        variance = sum(e**2 for e in errors) * len(clusters) / (len(clusters) - 1) / len(own)
        found += (1 - len(own) / len(rows)) * variance
        expected += (1 - len(own) / len(rows)) * rate * (1 - rate)
    return max(found / expected, 1.0) if expected > 0 else 1.0


def compute_p_value(pairs, test, effect=1.0):
    """p-value of the test of label against environment for (label, environment) pairs."""
    table = tabulate(pairs)
    if len(table) < 2 or len(table[0]) < 2:
        return 1.0
    if test == "fisher":
        return compute_fisher(table)
    statistic, dof = compute_statistic(table, test)
    return float(special.chdtrc(dof, statistic / effect))


def tabulate(pairs):
    """Counts by label and environment, of the labels and environments that occur."""
    cells = Counter(pairs)
    labels = sorted({label for label, _ in cells})
    environments = sorted({environment for _, environment in cells})
    return [[cells[label, environment] for environment in environments] for label in labels]


def compute_statistic(table, test):
    """Statistic and degrees of freedom of "chi2" (with Yates' correction), "pearson" or "g"."""
    row_sums = [sum(row) for row in table]
    column_sums = [sum(column) for column in zip(*table, strict=True)]
    dof = (len(row_sums) - 1) * (len(column_sums) - 1)
    statistic = 0.0
    for row, row_sum in zip(table, row_sums, strict=True):
        for observed, column_sum in zip(row, column_sums, strict=True):
            expected = row_sum * column_sum / sum(row_sums)
            distance = abs(observed - expected)
            if test == "chi2" and dof == 1:
                distance = max(distance - 0.5, 0.0)
            if test != "g":
                statistic += distance**2 / expected
            elif observed:
                statistic += 2 * observed * math.log(observed / expected)
    return max(statistic, 0.0), dof


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


def adjust(p_values, method):
    """Adjusted p-values from the definitions: for each, what to multiply the others by."""
    n = len(p_values)
    ordered = sorted(p_values)
    if method is None:
        return list(p_values)
    if method == "bonferroni":
        return [min(1.0, n * p) for p in p_values]
    if method == "holm":
        stepped = [max((n - j) * ordered[j] for j in range(i + 1)) for i in range(n)]
    else:
        stepped = [min(n / (j + 1) * ordered[j] for j in range(i, n)) for i in range(n)]
    return [min(1.0, stepped[ordered.index(p)]) for p in p_values]


def find_level(n, n_rejected, alpha, method):
    """The p-value up to which a correction rejects, given how many it did."""
    if method == "holm":
        return alpha / max(n - n_rejected, 1)
    return alpha / n * (max(n_rejected, 1) if method == "bh" else 1) if n else alpha


def is_shown(pairs, places, alpha, margin):
    """Whether Newcombe's 1 - 2 alpha interval of every difference of rates is inside +-margin."""
    z = stats.norm.isf(alpha)
    intervals = []
    for place in places:
        labels = [label for label, where in pairs if where == place]
        if not labels:
            return False
        n, rate = len(labels), sum(labels) / len(labels)
        # Wilson's bounds solve (rate - r)^2 = z^2 r (1 - r) / n for r
        a, b, c = 1 + z**2 / n, -(2 * rate + z**2 / n), rate**2
        root = math.sqrt(max(b**2 - 4 * a * c, 0.0))
        intervals.append((rate, (-b - root) / (2 * a), (-b + root) / (2 * a)))
    for (rate, low, high), (rate_2, low_2, high_2) in itertools.combinations(intervals, 2):
        upper = rate - rate_2 + math.hypot(high - rate, rate_2 - low_2)
        lower = rate - rate_2 - math.hypot(rate - low, high_2 - rate_2)
        if round(upper, 12) > margin or round(-lower, 12) > margin:
            return False
    return True


def is_shown_by_odds(pairs, places, alpha, margin):
    """The same for the odds ratio: half a sample added to each cell, a normal interval."""
    cells = [
        [sum(pair == (label, place) for pair in pairs) for label in (0, 1)] for place in places
    ]
    if any(sum(cell) == 0 for cell in cells):
        return False
    for (a, b), (c, d) in itertools.combinations(cells, 2):
        ratio = math.log((b + 0.5) * (c + 0.5) / ((a + 0.5) * (d + 0.5)))
        error = math.sqrt(sum(1 / (n + 0.5) for n in (a, b, c, d)))
        if round(abs(ratio) + stats.norm.isf(alpha) * error, 12) > math.log(margin):
            return False
    return True


def is_replicated(leaf, in_play, y, environments, least):
    """Informs the cut in enough of the environments that could have shown an effect?

    w = h1 h0 / (h1 + h0) in each, with h = p (1 - p) of a row, against h pi (1 - pi).
    """

    def count_effective(weights):
        squares = sum(each**2 for each in weights)
        return sum(weights) ** 2 / squares if squares else Fraction(1)

    pi = Fraction(len(leaf), max(len(in_play), 1))
    informs, expected = [], []
    for place in set(environments):
        own = [i for i in in_play if environments[i] == place]
        n, rate = len(own), Fraction(sum(int(y[i]) for i in own), max(len(own), 1))
        h1 = sum(i in leaf for i in own) * rate * (1 - rate)
        h0 = n * rate * (1 - rate) - h1
        informs.append(h1 * h0 / (h1 + h0) if h1 + h0 else Fraction(0))
        expected.append((h1 + h0) * pi * (1 - pi))
    could = round(float(count_effective(expected) - 1), 6)
    if could < 0.1:
        return True
    return round(float(count_effective(informs) - 1) / could, 6) >= least


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
    min_replication=0.15,
    min_utility="auto",
    feature_weights=None,
    margin=None,
    correction=None,
    missing="candidate",
    groups=None,
):
    """Everything worth comparing about the search, in plain values. `y` is 0 or 1.

    Values of X are numbers, text, or None where one is missing. Rows of a group are alike.
    """
    if model_type == "disjunction":
        y = [1 - label for label in y]
    n_features = len(X[0])
    weights = feature_weights if feature_weights is not None else [1.0] * n_features
    candidates = [
        (feature, *candidate)
        for feature in range(n_features)
        for candidate in list_candidates(
            [row[feature] for row in X], max_thresholds, missing, model_type
        )
    ]

    def holds(rule, i):
        return is_true(rule[1:], X[i][rule[0]])

    def pairs_of(rows):
        return [(y[i], environments[i]) for i in rows]

    known_p_values = {}

    def compute_p(rows):
        key = frozenset(rows)
        if key not in known_p_values:
            effect = 1.0 if groups is None else compute_design_effect(rows, y, environments, groups)
            known_p_values[key] = compute_p_value(pairs_of(rows), test, effect)
        return known_p_values[key]

    false_rows = {rule: {i for i in range(len(X)) if not holds(rule, i)} for rule in candidates}

    def make_leaf(rule):
        return false_rows[rule] & (positives | negatives)

    def may_be_added(rule):
        leaf = make_leaf(rule)
        return leaf & negatives and leaf != positives | negatives and weights[rule[0]] != 0

    def compute_utility(rule):
        leaf = make_leaf(rule)
        # equal utilities are equal: no rounding
        utility = len(leaf & negatives) - as_fraction(p) * len(leaf & positives)
        weight = Fraction(str(weights[rule[0]]))
        return utility * weight if utility >= 0 else utility / weight

    is_chance = test and min_utility == "auto"
    least_evidence = stats.norm.isf(0.05 / max(len(candidates), 1)) ** 2 / 2
    min_utility = 0.0 if min_utility == "auto" else min_utility

    def measure_evidence(leaf):
        """Half the deviance of the labels inside and outside, from those expected by chance."""
        in_play = positives | negatives
        expected = 0.0
        for e in sorted({environments[i] for i in leaf}):
            there = [i for i in in_play if environments[i] == e]
            rate = sum(y[i] for i in there) / len(there)
            expected += rate * sum(environments[i] == e for i in leaf)
        if len(leaf & positives) >= expected:
            return 0.0
        evidence = 0.0
        for rows, gives in ((leaf, expected), (in_play - leaf, len(positives) - expected)):
            n = len(rows & positives)
            for found, by_chance in ((n, gives), (len(rows) - n, len(rows) - gives)):
                evidence += found * math.log(found / by_chance) if found else 0.0
        return evidence

    def is_invariant(rows, level=alpha):
        if margin is not None:
            shown = is_shown if margin < 1 else is_shown_by_odds
            return shown(pairs_of(rows), set(environments), alpha, margin)
        return compute_p(rows) > level

    def find_refused():
        """The candidates that are not allowed for depending on the environment, and the level."""
        tested = [rule for rule in candidates if may_be_added(rule)]
        if margin is not None or correction is None:
            refused = {rule for rule in tested if test and not is_invariant(make_leaf(rule))}
            return refused, alpha
        p_values = [compute_p(make_leaf(rule)) for rule in tested]
        adjusted = adjust(p_values, correction)
        refused = {rule for rule, p in zip(tested, adjusted, strict=True) if round(p, 12) <= alpha}
        return refused, find_level(len(tested), len(refused), alpha, correction)

    def costs_more(rules):
        """Whether always saying one of the two would have been cheaper, by min_utility: both by
        the costs that p sets and by the number of errors."""
        *settled, left = make_leaves(rules)
        wrong = sum(y[i] for leaf in settled for i in leaf)
        gains = []
        for price in (as_fraction(p), Fraction(1)):
            cost = price * wrong + sum(1 - y[i] for i in left)
            gains.append(min(price * sum(y), len(y) - sum(y)) - cost)
        return max(gains) < as_fraction(min_utility)

    positives = {i for i in range(len(X)) if y[i] == 1}
    negatives = {i for i in range(len(X)) if y[i] == 0}
    chosen, steps, cutoffs = [], [], []
    while True:
        if not negatives:
            reason = "covered"
            break
        if steps and test and stop == "independence" and is_invariant(positives | negatives):
            reason = "independence"
            break
        if len(chosen) == max_rules:
            reason = "max_rules"
            break
        best, best_key, n_candidates = None, None, 0
        n_refused = {"dependent": 0, "unreplicated": 0, "unhelpful": 0}
        equal = []
        refused, cutoff = find_refused()
        for rule in candidates:
            if not may_be_added(rule):
                continue
            n_candidates += 1
            if rule in refused:
                n_refused["dependent"] += 1
                continue
            leaf, utility = make_leaf(rule), compute_utility(rule)
            in_play = positives | negatives
            if test and not is_replicated(leaf, in_play, y, environments, min_replication):
                n_refused["unreplicated"] += 1
                continue
            is_by_chance = is_chance and measure_evidence(leaf) < least_evidence
            if (
                test
                and min_utility is not None
                and (utility < as_fraction(min_utility) or is_by_chance)
            ):
                n_refused["unhelpful"] += 1
                continue
            p_value = compute_p(leaf) if test else None
            key = (utility, len(leaf & negatives) - len(leaf & positives))
            if best is None or key > best_key:
                best, best_key, best_leaf, best_p = rule, key, leaf, p_value
                equal, n_tied = [], 1
            elif key == best_key:
                n_tied += 1
                if leaf == best_leaf:
                    equal.append(rule)
        if best is None:
            reason = "no_candidate"
            break
        chosen.append(best)
        cutoffs.append(cutoff)
        negatives -= best_leaf
        positives -= best_leaf
        steps.append(
            {
                "rule": best,
                "utility": float(best_key[0]),
                "p_value": best_p,
                "leaf": sorted(pairs_of(best_leaf)),
                "remaining": sorted(pairs_of(positives | negatives)),
                "p_value_uncovered": (compute_p(positives | negatives) if test else None),
                "n_candidates": n_candidates,
                "n_refused": n_refused,
                "equivalent": equal,
                "n_tied": n_tied,
            }
        )

    def make_leaves(rules):
        leaves, left = [], set(range(len(X)))
        for rule in rules:
            leaves.append({i for i in left if not holds(rule, i)})
            left -= leaves[-1]
        return [*leaves, left]

    def all_pass(rules):
        """What the search takes for invariant, leaf by leaf."""
        levels = [*(cutoffs[chosen.index(rule)] for rule in rules), alpha]
        leaves = make_leaves(rules)
        return all(is_invariant(leaf, level) for leaf, level in zip(leaves, levels, strict=True))

    def passes_at_first():
        nonlocal pruning
        asked, pruning = pruning, True
        passed = all_pass(chosen)
        pruning = asked
        return passed

    kept, removed, undone = list(chosen), [], 0
    may_prune = test and pruning
    if may_prune and pruning != "always":
        may_prune = reason == "independence" and passes_at_first()
    while may_prune and len({rule[0] for rule in kept}) > 1:
        verdicts = []
        for feature in dict.fromkeys(rule[0] for rule in kept):
            others = [rule for rule in kept if rule[0] != feature]
            p_value = compute_conditional_p(others, holds, y, environments, groups)
            verdicts.append((round(p_value, 12), len(verdicts), p_value, feature, others))
        for *_, p_value, feature, others in sorted(verdicts, reverse=True):
            if not p_value > alpha:
                may_prune = False
                break
            if pruning == "always" or all_pass(others):
                removed.append((feature, p_value))
                kept = others
                break
            undone += 1
        else:
            may_prune = False
    return {
        "kept": kept,
        "steps": steps,
        "reason": reason,
        "removed": removed,
        "undone": undone,
        "set_aside": bool(test and kept and min_utility is not None and costs_more(kept)),
    }


def compute_conditional_p(rules, holds, y, environments, groups=None):
    """G-test of label against environment within each combination of the rules' values."""
    strata = {}
    for i in range(len(y)):
        strata.setdefault(tuple(holds(rule, i) for rule in rules), []).append(i)
    statistic, dof, inflated = 0.0, 0, 0.0
    for rows in strata.values():
        table = tabulate((y[i], environments[i]) for i in rows)
        if len(table) < 2 or len(table[0]) < 2:
            continue
        g, stratum_dof = compute_statistic(table, "g")
        statistic, dof = statistic + g, dof + stratum_dof
        if groups is not None:
            inflated += stratum_dof * compute_design_effect(rows, y, environments, groups)
    effect = 1.0 if groups is None else inflated / max(dof, 1)
    return float(special.chdtrc(dof, statistic / effect)) if dof else 1.0


def find_beside(values, threshold):
    """Whether each sample lies in a bin of several values beside the threshold."""
    distinct = np.unique(values)
    if len(distinct) <= 16:
        return np.zeros(len(values), dtype=bool)
    around = [threshold, distinct[distinct > threshold][0]]
    rare = [value for value in around if 16 * (values == value).sum() <= len(values)]
    return np.isin(values, rare)
