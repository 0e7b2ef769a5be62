"""A tree of invariant effects, judged and grown row by row from the description of the search.

Rows are numbers in lists, rules are functions of a value, and every split is counted from the rows.
Nothing here is shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import math
from collections import Counter

from scipy.stats import chi2

from support.literal.giveaways import find_determining
from support.literal.learner import is_true, list_candidates
from support.literal.splits import measure_gain, measure_split
from support.literal.worth import MAX_BINS, measure_own_worth

N_REJECTED_KEPT = 5
REASONS = ("unreplicated", "heterogeneous", "reversed")
# Rounds of a screen in which only the worst columns are rejected.
MAX_ROUNDS = 30


def list_splits(values, max_thresholds, missing):
    """Rules that split differently: no negations, and of two levels only the second.

    Unless missing values may not go either way: then the levels differ in whom they join.
    """
    rules = [rule for rule in list_candidates(values, max_thresholds, missing, None) if rule[2]]
    groups = list(dict.fromkeys(rule[1] for rule in rules if rule[0] == "level"))
    is_either = missing != "separate" or None not in values
    first = groups[0] if len(groups) == 2 and is_either else None
    return [rule for rule in rules if rule[0] != "level" or rule[1] != first]


class SlowTree:
    """Values of X are numbers, text, or None where one is missing; `y` is 0 or 1."""

    def __init__(
        self, X, y, environments, *, tolerance, max_leaves, n_least, max_thresholds, missing,
        min_replication=0.15,
    ):  # fmt: skip
        self.X, self.y, self.n_least = X, y, n_least
        self.environments = [0] * len(y) if tolerance is None else environments
        self.places = sorted(set(self.environments))
        # a rule and its negation split alike: only `x > t`, `x == v` and `x is missing`
        self.candidates = [
            (feature, *rule)
            for feature in range(len(X[0]))
            for rule in list_splits([row[feature] for row in X], max_thresholds, missing)
        ]
        self.banned, self.rejected = {}, []
        if tolerance is not None and min_replication > 0:
            determining = find_determining(X, environments, max_thresholds)
            self.banned = dict.fromkeys(determining, "determines the environment")
            self.candidates = [rule for rule in self.candidates if rule[0] not in determining]
        self.order = {rule: number for number, rule in enumerate(self.candidates)}
        self.holds = {
            rule: [is_true(rule[1:], row[rule[0]]) for row in X] for rule in self.candidates
        }
        self.scans, self.judged, self.own_worth, self.missing = {}, {}, {}, missing
        if tolerance is not None:
            self.max_judge_leaves = max(64, 2 * max_leaves)
            self.screen(tolerance, min_replication)
        self.top = self.grow(max_leaves, self.banned)

    # --- growing ----------------------------------------------------------------------------------

    def divide(self, rule, rows):
        """The rows for which a rule is true, and false."""
        return tuple([i for i in rows if self.holds[rule][i] == side] for side in (True, False))

    def tabulate(self, halves):
        """The 2 x 2 table of each environment; the half for which the rule is false first."""
        tables = {place: [0, 0, 0, 0] for place in self.places}
        for first, half in ((2, halves[0]), (0, halves[1])):
            for i in half:
                tables[self.environments[i]][first + 1 - self.y[i]] += 1
        return [tuple(tables[place]) for place in self.places]

    def scan(self, rows):
        """Numbers of each split that explains more than chance; None where none is possible."""
        if tuple(rows) in self.scans:
            return self.scans[tuple(rows)]
        self.scans[tuple(rows)] = self.scan_afresh(rows)
        return self.scans[tuple(rows)]

    def scan_afresh(self, rows):
        if len(rows) < 2 * self.n_least or len({self.y[i] for i in rows}) < 2:
            return {}, 0
        splits = {}
        for rule in self.candidates:
            halves = self.divide(rule, rows)
            if min(map(len, halves)) >= self.n_least:
                splits[rule] = self.tabulate(halves)

        explaining = {}
        for rule, split in splits.items():
            pooled = measure_gain([tuple(map(sum, zip(*split, strict=True)))])
            n_divided = sum(1 for a, b, c, d in split if a + b and c + d)
            level = 0.05 / len(splits)  # Bonferroni
            if not n_divided or pooled <= chi2.isf(level, 1):
                continue
            if measure_gain(split) > chi2.isf(level, n_divided):
                numbers = measure_split(split, self.n_least)
                explaining[rule] = {**numbers, "deviance_explained": pooled}
        return explaining, len(splits)

    def find_first(self, found, features):
        """The rule of some features that explains most, the first of equals."""
        rules = [rule for rule in found if rule[0] in features]
        return min(rules, key=lambda rule: self.rank(found, rule), default=None)

    def rank(self, found, rule):
        return -round(found[rule]["deviance_explained"], 6), self.order[rule]

    def make(self, rows, path, banned, is_made=True):
        """A node: its best rule, and those of banned columns with the reasons.

        A node that is not made is a leaf whatever it could be split by.
        """
        found, n_candidates = self.scan(rows) if is_made else ({}, 0)
        reason_of = {rule: banned[rule[0]] for rule in found if rule[0] in banned}
        reasons = list(reason_of.values())
        best_of_banned = [
            self.find_first(found, {column}) for column in {rule[0] for rule in reason_of}
        ]
        best_of_banned.sort(key=lambda rule: self.rank(found, rule))
        allowed = set(range(len(self.X[0]))) - set(banned)
        return {
            "rows": rows,
            "path": path,
            "is_made": is_made,
            "found": found,
            "n_candidates": n_candidates,
            "best": self.find_first(found, allowed),
            "n_refused": {reason: reasons.count(reason) for reason in REASONS} if is_made else {},
            "refused": [(rule, reason_of[rule]) for rule in best_of_banned[:N_REJECTED_KEPT]],
        }

    def grow(self, max_leaves, banned):
        top = self.make(list(range(len(self.y))), (), banned)
        leaves = [top]
        while len(leaves) < max_leaves:
            # most informative first; of equals the one that came first
            waiting = [leaf for leaf in leaves if leaf["best"]]
            if not waiting:
                break
            node = min(waiting, key=lambda leaf: self.rank(leaf["found"], leaf["best"])[0])
            leaves.remove(node)
            rule, is_last = node["best"], len(leaves) + 2 == max_leaves
            node["children"] = [
                self.make(rows, (*node["path"], (rule, side)), banned, not is_last)
                for rows, side in zip(self.divide(rule, node["rows"]), (True, False), strict=True)
            ]
            leaves += node["children"]
        return top

    # --- judging ----------------------------------------------------------------------------------

    def screen(self, tolerance, min_replication):
        """Reject what is not replicated, then the worst column again and again."""
        found, _ = self.scan(range(len(self.y)))
        for column in sorted({rule[0] for rule in found}):
            replication = self.measure_replication(column)
            if replication is not None and round(replication, 6) < min_replication:
                self.banned[column] = "unreplicated"

        # of a round the worst ones; after thirty rounds all that are too heterogeneous
        round_number = 1
        while cuts := self.list_heterogeneous(self.banned, tolerance):
            for cut in cuts:
                if round_number > MAX_ROUNDS or cut["share"] == cuts[0]["share"]:
                    self.banned[cut["rule"][0]] = cut["reason"]
                    self.rejected.append({**cut, "round": round_number})
            round_number += 1

        # an early one may have been rejected for what a later one did
        shortcuts = ("heterogeneous", "reversed")
        heterogeneous = [j for j, reason in self.banned.items() if reason in shortcuts]
        for column in heterogeneous[:-1] if round_number <= MAX_ROUNDS else ():
            fewer = {j: reason for j, reason in self.banned.items() if j != column}
            if not self.list_heterogeneous(fewer, tolerance):
                self.banned = fewer
        self.rejected = [cut for cut in self.rejected if cut["rule"][0] in self.banned]

    def list_heterogeneous(self, banned, tolerance):
        """The worst cut of each column that is too heterogeneous, and significantly so."""
        cuts, n_judged = self.judge(banned)
        reasons = [self.find_reason(cut, n_judged, tolerance) for cut in cuts]
        heterogeneous = [
            {**cut, "reason": reason}
            for cut, reason in zip(cuts, reasons, strict=True)
            if reason is not None
        ]
        return sorted(heterogeneous, key=lambda cut: (-cut["share"], self.order[cut["rule"]]))

    def find_reason(self, cut, n_judged, tolerance):
        """Whether the effect differs and may be lost, or what the column says may be reversed."""
        own = self.measure_own_worth(cut["rule"][0])
        low_share = -math.inf if own is None else own["low_share"]
        if cut["share"] > tolerance and cut["p_value"] * n_judged < 0.05 and low_share < 0.5:
            return "heterogeneous"
        if own is None or cut["share"] <= tolerance / 2:
            return None
        n_columns = len({rule[0] for rule in self.candidates})
        is_reversed = own["p_value"] * n_columns < 0.05 and low_share < 0 and own["part"] > 0.01
        return "reversed" if is_reversed else None

    def measure_own_worth(self, column):
        """What a column says by itself, each column once."""
        if column not in self.own_worth:
            bins = self.number_bins(column)
            self.own_worth[column] = measure_own_worth(bins, self.y, self.environments)
        return self.own_worth[column]

    def number_bins(self, column):
        """The bin of each row: those of numbers are merged to twelve, missing values apart."""
        rules = [rule for rule in self.candidates if rule[0] == column]
        keys = [tuple(self.holds[rule][i] for rule in rules) for i in range(len(self.y))]
        values = [row[column] for row in self.X]
        numbers = [value for value in values if value is not None]
        is_number = all(not isinstance(value, str) for value in numbers)
        is_missing_apart = self.missing == "separate"
        key_of_value = {}
        for key, value in zip(keys, values, strict=True):
            if value is not None or not is_missing_apart:
                key_of_value.setdefault(key, value)
        if not is_number or len(key_of_value) <= MAX_BINS:
            return keys

        ordered = sorted(key_of_value, key=lambda key: key_of_value[key])
        n_rows = [keys.count(key) for key in ordered]
        merged, before = {}, 0
        for key, n in zip(ordered, n_rows, strict=True):
            merged[key] = min(int((before + n / 2) / sum(n_rows) * MAX_BINS), MAX_BINS - 1)
            before += n
        return [merged.get(key, key) for key in keys]

    def measure_replication(self, feature):
        """Environments where the common effects inform, of those where they could."""
        rates = {}
        for place in self.places:
            labels = [y for y, e in zip(self.y, self.environments, strict=True) if e == place]
            rates[place] = sum(labels) / len(labels)
        p = [rates[e] for e in self.environments]
        sums = self.add_up(feature, p)
        shape, _ = fit_shape(sums, self.places, 1.0)
        h = {e: {b: sums[b][e][1] for b in sums} for e in self.places}
        total = {e: math.fsum(h[e].values()) for e in self.places}
        first = {e: math.fsum(h[e][b] * shape[b] for b in sums) for e in self.places}
        second = {e: math.fsum(h[e][b] * shape[b] ** 2 for b in sums) for e in self.places}
        informs = [second[e] - first[e] ** 2 / total[e] if total[e] else 0.0 for e in self.places]
        everything = math.fsum(total.values())
        mean = math.fsum(first.values()) / everything
        variance = math.fsum(second.values()) / everything - mean**2
        could = count_effective([total[e] * variance for e in self.places]) - 1
        return None if could < 0.1 else (count_effective(informs) - 1) / could

    def add_up(self, feature, p):
        """Sums of g and h by bin and environment; rows of a bin satisfy the same rules."""
        rules = [rule for rule in self.candidates if rule[0] == feature]
        sums = {}
        for i, (y, e) in enumerate(zip(self.y, self.environments, strict=True)):
            key = tuple(self.holds[rule][i] for rule in rules)
            cell = sums.setdefault(key, {place: [0.0, 0.0] for place in self.places})[e]
            cell[0] += y - p[i]
            cell[1] += p[i] * (1 - p[i])
        return sums

    def judge(self, banned):
        """The worst cut of each column given the tree without some; the number of cuts judged."""
        if frozenset(banned) not in self.judged:
            self.judged[frozenset(banned)] = self.judge_afresh(banned)
        return self.judged[frozenset(banned)]

    def judge_afresh(self, banned):
        _, leaves = list_nodes(self.grow(self.max_judge_leaves, dict(banned)))
        if len(leaves) == 1:
            return [], 0
        p, explained = self.predict([leaf["rows"] for leaf in leaves])
        worst_cuts, n_judged = [], 0
        for column in range(len(self.X[0])):
            rules = [rule for rule in self.candidates if rule[0] == column]
            if column in banned or not rules:
                continue
            sums = self.add_up(column, p)
            if len(sums) > 2:  # of two bins the only cut is the common effect
                take_out_shape(sums, self.places)
            judged = [judge_cut(sums, number, self.places) for number in range(len(rules))]
            n_judged += sum(verdict is not None for verdict in judged)
            ranks = [
                (-verdict[0], number)
                for number, verdict in enumerate(judged)
                if verdict is not None and verdict[0] > 0
            ]
            if ranks:
                _, worst = min(ranks)  # the first of equals
                deviance, p_value = judged[worst]
                share = round(deviance / max(explained, 1e-12), 6)
                worst_cuts.append({"rule": rules[worst], "share": share, "p_value": p_value})
        return worst_cuts, n_judged

    def predict(self, leaves):
        """Each row's chance, by its leaf and its environment's intercept; what that explains."""
        log_odds = {}  # of each row's leaf
        for rows in leaves:
            n_positive = sum(self.y[i] for i in rows)
            of_leaf = math.log((n_positive + 0.5) / (len(rows) - n_positive + 0.5))
            log_odds |= dict.fromkeys(rows, of_leaf)

        p = [0.0] * len(self.y)
        explained = 0.0
        for place in self.places:
            rows = [i for i, e in enumerate(self.environments) if e == place]
            n_positive = sum(self.y[i] for i in rows)
            intercept = find_intercept(Counter(log_odds[i] for i in rows), n_positive)
            for i in rows:
                p[i] = 1 / (1 + math.exp(-log_odds[i] - intercept))
                if n_positive in (0, len(rows)):
                    p[i] = float(self.y[i])
                    continue
                rate = n_positive / len(rows)
                explained += 2 * math.log(p[i] / rate if self.y[i] else (1 - p[i]) / (1 - rate))
        return p, explained


def find_intercept(n_by_log_odds, n_positive):
    """What to add to log odds so that as many positives are expected as there are: by halving."""
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        expected = math.fsum(
            n * (1 / (1 + math.exp(-log_odds - middle))) for log_odds, n in n_by_log_odds.items()
        )
        if expected < n_positive:
            low = middle
        else:
            high = middle
    return low


def take_out_shape(sums, places):
    """Subtract from the gradients what the common effects of the bins and levels explain."""
    shape, levels = fit_shape(sums, places, 0.0)
    for key, cells in sums.items():
        for place, cell in cells.items():
            cell[0] -= cell[1] * (shape[key] + levels[place])


def fit_shape(sums, places, prior):
    """Effects of bins and levels of environments, fitted to g / h in turn, at most 50 times."""
    shape = dict.fromkeys(sums, 0.0)
    levels = dict.fromkeys(places, 0.0)
    for _ in range(50):
        before = dict(shape)
        for key, cells in sums.items():
            residual = math.fsum(g - h * levels[e] for e, (g, h) in cells.items())
            shape[key] = residual / max(math.fsum(h for _, h in cells.values()) + prior, 1e-12)
        for e in places:
            cells_of_e = {key: cells[e] for key, cells in sums.items()}
            residual = math.fsum(g - h * shape[key] for key, (g, h) in cells_of_e.items())
            levels[e] = residual / max(math.fsum(h for _, h in cells_of_e.values()), 1e-12)
        if max(abs(shape[key] - before[key]) for key in sums) < 1e-9:
            break
    return shape, levels


def judge_cut(sums, number, places):
    """Heterogeneity and p-value of a rule, by its number in the bins' keys; None with no freedom.

    Cochran's Q of the effects d = g1 / h1 - g0 / h0, with weights w = h1 h0 / (h1 + h0).
    """

    def add_side(e, side):
        cells = [cells[e] for key, cells in sums.items() if key[number] == side]
        return math.fsum(g for g, _ in cells), math.fsum(h for _, h in cells)

    weights, effects = [], []
    for e in places:
        g0, h0 = add_side(e, True)
        g1, h1 = add_side(e, False)
        if min(h0, h1) > 0 and h1 * h0 / (h1 + h0) >= 1:
            weights.append(h1 * h0 / (h1 + h0))
            effects.append(g1 / h1 - g0 / h0)
    dof = len(weights) - 1
    if dof < 1:
        return None
    total = math.fsum(weights)
    mean = math.fsum(w * d for w, d in zip(weights, effects, strict=True)) / total
    q = math.fsum(w * (d - mean) ** 2 for w, d in zip(weights, effects, strict=True))
    excess = max(q - dof - 3 * math.sqrt(2 * dof), 0.0)
    deviance = excess / (total - math.fsum(w * w for w in weights) / total) * total
    return round(deviance, 6), chi2.sf(q, dof)


def count_effective(weights):
    squares = math.fsum(w * w for w in weights)
    return max(math.fsum(weights) ** 2 / squares, 1.0) if squares else 1.0


def list_nodes(top):
    """All nodes, where rules hold first; leaves with the reason why they were not split."""
    splits, leaves = [], []

    def walk(node):
        if "children" in node:
            splits.append(node)
            for child in node["children"]:
                walk(child)
        else:
            leaves.append({**node, "end": find_end(node)})

    walk(top)
    return splits, leaves


def find_end(leaf):
    if leaf["best"] or not leaf["is_made"]:
        return "max_leaves"
    if not leaf["n_candidates"]:
        return "small"
    return "rejected" if any(leaf["n_refused"].values()) else "uninformative"
