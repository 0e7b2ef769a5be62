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

from support.literal.giveaways import find_determining
from support.literal.values import find_levels, find_thresholds


def as_fraction(number):
    """What a user meant: 0.1 is a tenth, and 0.3333333333333333 a third."""
    return Fraction(str(number)).limit_denominator(10**9)


def list_candidates(values, max_thresholds, missing, model_type):
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
        groups = find_levels(present, max_thresholds)
        signs = [True, False]
        if len(groups) == 2:  # the negation of one is the other
            signs = [model_type != "disjunction"]
        rules = [("level", group, sign) for group in groups for sign in signs]
    else:
        thresholds = find_thresholds(present, max_thresholds) if present else []
        rules = [("above", threshold, sign) for threshold in thresholds for sign in (True, False)]
    for rule in rules:
        for side in sides:
            yield *rule, side


def is_true(rule, value):
    """Whether a rule holds for a value."""
    kind, threshold_or_levels, sign, truth_for_missing = rule
    if kind == "missing":
        return (value is None) == sign
    if value is None:
        return truth_for_missing
    if kind == "level":
        return (value in threshold_or_levels) == sign
    return (value > threshold_or_levels) == sign


def compute_design_effect(rows, y, environments, groups):
    """How much larger the variance of rates is than that of independent rows, at least 1."""
    clustered = independent = 0.0  # sums of variances over the environments
    for place in {environments[i] for i in rows}:
        in_place = [i for i in rows if environments[i] == place]
        n = len(in_place)
        rate = sum(y[i] for i in in_place) / n
        clusters = {groups[i] for i in in_place}
        n_clusters = len(clusters)
        if n_clusters < 2:
            continue
        residuals = [
            sum(y[i] - rate for i in in_place if groups[i] == cluster) for cluster in clusters
        ]
        variance = sum(r**2 for r in residuals) * n_clusters / (n_clusters - 1) / n
        weight = 1 - n / len(rows)
        clustered += weight * variance
        independent += weight * rate * (1 - rate)
    return max(clustered / independent, 1.0) if independent > 0 else 1.0


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
        squares = sum(weight**2 for weight in weights)
        return sum(weights) ** 2 / squares if squares else Fraction(1)

    pi = Fraction(len(leaf), max(len(in_play), 1))
    weights, possible_weights = [], []
    for place in set(environments):
        in_place = [i for i in in_play if environments[i] == place]
        rate = Fraction(sum(int(y[i]) for i in in_place), max(len(in_place), 1))
        h1 = sum(i in leaf for i in in_place) * rate * (1 - rate)
        h0 = len(in_place) * rate * (1 - rate) - h1
        weights.append(h1 * h0 / (h1 + h0) if h1 + h0 else Fraction(0))
        possible_weights.append((h1 + h0) * pi * (1 - pi))
    n_possible = round(float(count_effective(possible_weights) - 1), 6)
    if n_possible < 0.1:
        return True
    return round(float(count_effective(weights) - 1) / n_possible, 6) >= least


def learn_slowly(X, y, environments, **options):
    """Everything worth comparing about the search, in plain values. `y` is 0 or 1.

    Values of X are numbers, text, or None where one is missing. Rows of a group are alike. The
    options are those of `SlowSearch`.
    """
    search = SlowSearch(X, y, environments, **options)
    search.add_rules()
    search.remove_columns()
    return search.describe()


class SlowSearch:
    """A search for a conjunction. Its rows are numbers in sets, those not covered by label.

    The leaf of a rule are the uncovered rows for which it is false: there the conjunction is false.
    A disjunction is the conjunction of the negated rules for the inverted label.
    """

    def __init__(
        self,
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
        self.X = X
        self.y = [1 - label for label in y] if model_type == "disjunction" else y
        self.environments = environments
        self.groups = groups
        self.test = test
        self.alpha = alpha
        self.p = p
        self.max_rules = max_rules
        self.stop = stop
        self.pruning = pruning
        self.min_replication = min_replication
        self.margin = margin
        self.correction = correction

        n_features = len(X[0])
        self.weights = feature_weights if feature_weights is not None else [1.0] * n_features
        self.candidates = [
            (feature, *candidate)
            for feature in range(n_features)
            for candidate in list_candidates(
                [row[feature] for row in X], max_thresholds, missing, model_type
            )
        ]
        n_candidates = len(self.candidates)
        if test and min_replication > 0:
            determining = find_determining(X, environments, max_thresholds)
            self.candidates = [rule for rule in self.candidates if rule[0] not in determining]
        self.false_rows = {
            rule: {i for i in range(len(X)) if not self.holds(rule, i)} for rule in self.candidates
        }
        self.p_values = {}  # of sets of rows, once computed

        # "auto" asks for evidence that chance gives to 5 % of searches at most (Bonferroni)
        self.needs_evidence = test and min_utility == "auto"
        self.min_utility = 0.0 if min_utility == "auto" else min_utility
        self.least_evidence = stats.norm.isf(0.05 / max(n_candidates, 1)) ** 2 / 2

        self.positives = {i for i in range(len(X)) if self.y[i] == 1}
        self.negatives = {i for i in range(len(X)) if self.y[i] == 0}
        self.chosen, self.cutoffs, self.steps = [], [], []
        self.reason = None
        self.kept, self.removed, self.n_undone = [], [], 0

    # --- rows and leaves --------------------------------------------------------------------------

    def holds(self, rule, i):
        """Whether a rule is true for a row."""
        return is_true(rule[1:], self.X[i][rule[0]])

    @property
    def uncovered(self):
        """The rows that no rule has covered yet."""
        return self.positives | self.negatives

    def make_leaf(self, rule):
        """The rows that a rule would cover."""
        return self.false_rows[rule] & self.uncovered

    def make_leaves(self, rules):
        """The rows that each rule covers, one after the other, and those that are left."""
        leaves = []
        left = set(range(len(self.X)))
        for rule in rules:
            leaf = {i for i in left if not self.holds(rule, i)}
            leaves.append(leaf)
            left -= leaf
        return [*leaves, left]

    def list_pairs(self, rows):
        """Label and environment of some rows."""
        return [(self.y[i], self.environments[i]) for i in rows]

    # --- what a leaf is worth ---------------------------------------------------------------------

    def may_be_added(self, rule):
        """Whether a rule covers a negative, but not all rows; a weight of 0 rules a column out."""
        leaf = self.make_leaf(rule)
        return leaf & self.negatives and leaf != self.uncovered and self.weights[rule[0]] != 0

    def compute_utility(self, rule):
        """Negatives covered, less p for each positive; exactly, so that equal ones are equal."""
        leaf = self.make_leaf(rule)
        n_negative = len(leaf & self.negatives)
        n_positive = len(leaf & self.positives)
        utility = n_negative - as_fraction(self.p) * n_positive
        weight = Fraction(str(self.weights[rule[0]]))
        return utility * weight if utility >= 0 else utility / weight

    def measure_evidence(self, leaf):
        """Half the deviance of the labels inside and outside, from those expected by chance.

        By chance a leaf has each environment's rate of the label; there is no evidence unless it
        has fewer positives than that.
        """
        expected = 0.0
        for place in sorted({self.environments[i] for i in leaf}):
            in_place = [i for i in self.uncovered if self.environments[i] == place]
            rate = sum(self.y[i] for i in in_place) / len(in_place)
            expected += rate * sum(self.environments[i] == place for i in leaf)
        if len(leaf & self.positives) >= expected:
            return 0.0

        evidence = 0.0
        expected_outside = len(self.positives) - expected
        for rows, expected_here in (
            (leaf, expected),
            (self.uncovered - leaf, expected_outside),
        ):
            n_positive = len(rows & self.positives)
            n_negative = len(rows) - n_positive
            for n, by_chance in (
                (n_positive, expected_here),
                (n_negative, len(rows) - expected_here),
            ):
                evidence += n * math.log(n / by_chance) if n else 0.0
        return evidence

    def compute_p(self, rows):
        """p-value of the test of label against environment."""
        key = frozenset(rows)
        if key not in self.p_values:
            effect = 1.0
            if self.groups is not None:
                effect = compute_design_effect(rows, self.y, self.environments, self.groups)
            self.p_values[key] = compute_p_value(self.list_pairs(rows), self.test, effect)
        return self.p_values[key]

    def is_invariant(self, rows, level=None):
        """Whether rows pass: by the p-value or, with a margin, by intervals within it."""
        if self.margin is not None:
            shown = is_shown if self.margin < 1 else is_shown_by_odds
            places = set(self.environments)
            return shown(self.list_pairs(rows), places, self.alpha, self.margin)
        return self.compute_p(rows) > (self.alpha if level is None else level)

    def find_dependent(self):
        """The candidates whose leaves depend on the environment, and the level of the tests."""
        tested = [rule for rule in self.candidates if self.may_be_added(rule)]
        if self.margin is not None or self.correction is None:
            dependent = {
                rule for rule in tested if self.test and not self.is_invariant(self.make_leaf(rule))
            }
            return dependent, self.alpha
        p_values = [self.compute_p(self.make_leaf(rule)) for rule in tested]
        adjusted = adjust(p_values, self.correction)
        dependent = {
            rule for rule, p in zip(tested, adjusted, strict=True) if round(p, 12) <= self.alpha
        }
        level = find_level(len(tested), len(dependent), self.alpha, self.correction)
        return dependent, level

    def find_objection(self, rule, dependent):
        """Why a candidate is not allowed; None if it is."""
        if rule in dependent:
            return "dependent"
        if not self.test:
            return None
        leaf = self.make_leaf(rule)
        if not is_replicated(leaf, self.uncovered, self.y, self.environments, self.min_replication):
            return "unreplicated"
        if self.min_utility is None:
            return None
        if self.compute_utility(rule) < as_fraction(self.min_utility):
            return "unhelpful"
        if self.needs_evidence and self.measure_evidence(leaf) < self.least_evidence:
            return "unhelpful"
        return None

    # --- Algorithm 2 ------------------------------------------------------------------------------

    def add_rules(self):
        """Add the allowed candidate of largest utility until there is a reason to stop."""
        while True:
            self.reason = self.find_reason_to_stop()
            if self.reason is not None:
                break
            dependent, level = self.find_dependent()
            step = self.choose_rule(dependent)
            if step is None:
                self.reason = "no_candidate"
                break
            leaf = step.pop("rows")
            self.chosen.append(step["rule"])
            self.cutoffs.append(level)
            self.negatives -= leaf
            self.positives -= leaf
            step["remaining"] = sorted(self.list_pairs(self.uncovered))
            step["p_value_uncovered"] = self.compute_p(self.uncovered) if self.test else None
            self.steps.append(step)
        self.kept = list(self.chosen)

    def find_reason_to_stop(self):
        """Why the search ends before another rule; None if it goes on."""
        if not self.negatives:
            return "covered"
        tests_rest = self.steps and self.test and self.stop == "independence"
        if tests_rest and self.is_invariant(self.uncovered):
            return "independence"
        if len(self.chosen) == self.max_rules:
            return "max_rules"
        return None

    def choose_rule(self, dependent):
        """The best of the allowed candidates, the first of equals; None if none is allowed."""
        n_candidates = 0
        n_refused = {"dependent": 0, "unreplicated": 0, "unhelpful": 0}
        best, best_key, best_leaf = None, None, None
        for rule in self.candidates:
            if not self.may_be_added(rule):
                continue
            n_candidates += 1
            objection = self.find_objection(rule, dependent)
            if objection is not None:
                n_refused[objection] += 1
                continue
            leaf = self.make_leaf(rule)
            difference = len(leaf & self.negatives) - len(leaf & self.positives)
            key = self.compute_utility(rule), difference
            if best is None or key > best_key:
                best, best_key, best_leaf = rule, key, leaf
                equivalent, n_tied = [], 1
            elif key == best_key:
                n_tied += 1
                if leaf == best_leaf:
                    equivalent.append(rule)
        if best is None:
            return None
        return {
            "rule": best,
            "rows": best_leaf,
            "utility": float(best_key[0]),
            "p_value": self.compute_p(best_leaf) if self.test else None,
            "leaf": sorted(self.list_pairs(best_leaf)),
            "n_candidates": n_candidates,
            "n_refused": n_refused,
            "equivalent": equivalent,
            "n_tied": n_tied,
        }

    # --- pruning ----------------------------------------------------------------------------------

    def remove_columns(self):
        """Remove columns without which label and environment are still independent, given the rest.

        As the paper's code does, always; as Proposition 3.2 has it, only if the search ended for
        independence and all leaves pass, before and after. A removal after which one does not is
        undone.
        """
        if not self.test or not self.pruning:
            return
        if self.pruning != "always":
            may_start = self.reason == "independence" and self.all_pass(self.chosen)
            if not may_start:
                return
        while len({rule[0] for rule in self.kept}) > 1 and self.remove_column():
            pass

    def remove_column(self):
        """Remove the column with the largest p-value that may go; tell whether there was one."""
        removals = []
        for feature in dict.fromkeys(rule[0] for rule in self.kept):
            others = [rule for rule in self.kept if rule[0] != feature]
            p_value = compute_conditional_p(
                others, self.holds, self.y, self.environments, self.groups
            )
            removals.append((round(p_value, 12), len(removals), p_value, feature, others))
        for *_, p_value, feature, others in sorted(removals, reverse=True):
            if not p_value > self.alpha:
                return False
            if self.pruning == "always" or self.all_pass(others):
                self.removed.append((feature, p_value))
                self.kept = others
                return True
            self.n_undone += 1
        return False

    def all_pass(self, rules):
        """Whether each leaf passes at the level at which its rule was tested, and the rest."""
        levels = [*(self.cutoffs[self.chosen.index(rule)] for rule in rules), self.alpha]
        leaves = self.make_leaves(rules)
        return all(
            self.is_invariant(leaf, level) for leaf, level in zip(leaves, levels, strict=True)
        )

    # --- what comes out ---------------------------------------------------------------------------

    def costs_more(self, rules):
        """Whether always saying one of the two would have been cheaper, by min_utility: both by
        the costs that p sets and by the number of errors."""
        *covered, uncovered = self.make_leaves(rules)
        n_positive = sum(self.y)
        n_negative = len(self.y) - n_positive
        n_false_negative = sum(self.y[i] for leaf in covered for i in leaf)
        n_false_positive = sum(1 - self.y[i] for i in uncovered)
        gains = []
        for price in (as_fraction(self.p), Fraction(1)):
            cost = price * n_false_negative + n_false_positive
            cost_of_constant = min(price * n_positive, n_negative)
            gains.append(cost_of_constant - cost)
        return max(gains) < as_fraction(self.min_utility)

    def describe(self):
        """What `assert_same` compares."""
        may_be_set_aside = bool(self.test and self.kept and self.min_utility is not None)
        return {
            "kept": self.kept,
            "steps": self.steps,
            "reason": self.reason,
            "removed": self.removed,
            "undone": self.n_undone,
            "set_aside": may_be_set_aside and self.costs_more(self.kept),
        }


def compute_conditional_p(rules, holds, y, environments, groups=None):
    """G-test of label against environment within each combination of the rules' values.

    With groups, the statistic is divided by the strata's mean design effect.
    """
    strata = {}
    for i in range(len(y)):
        strata.setdefault(tuple(holds(rule, i) for rule in rules), []).append(i)
    statistic, dof, sum_of_effects = 0.0, 0, 0.0
    for rows in strata.values():
        table = tabulate((y[i], environments[i]) for i in rows)
        if len(table) < 2 or len(table[0]) < 2:
            continue
        g, stratum_dof = compute_statistic(table, "g")
        statistic += g
        dof += stratum_dof
        if groups is not None:
            sum_of_effects += stratum_dof * compute_design_effect(rows, y, environments, groups)
    mean_effect = 1.0 if groups is None else sum_of_effects / max(dof, 1)
    return float(special.chdtrc(dof, statistic / mean_effect)) if dof else 1.0


def find_beside(values, threshold):
    """Whether each sample lies in a bin of several values beside the threshold."""
    distinct = np.unique(values)
    if len(distinct) <= 16:
        return np.zeros(len(values), dtype=bool)
    around = [threshold, distinct[distinct > threshold][0]]
    rare = [value for value in around if 16 * (values == value).sum() <= len(values)]
    return np.isin(values, rare)
