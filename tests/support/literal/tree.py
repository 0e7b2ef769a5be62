"""A tree of invariant effects, judged and grown row by row from the description of the search.

Rows are numbers in lists, rules are functions of a value, and every split is counted from the rows.
Nothing here is shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import math
from collections import Counter

from scipy.stats import chi2

from support.literal.learner import is_true, list_candidates
from support.literal.splits import measure_gain, measure_split

N_REJECTED_KEPT = 5
REASONS = ("unreplicated", "heterogeneous")


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
        self.order = {rule: number for number, rule in enumerate(self.candidates)}
        self.holds = {
            rule: [is_true(rule[1:], row[rule[0]]) for row in X] for rule in self.candidates
        }
        self.scans, self.judged = {}, {}
        self.banned, self.rejected = {}, []
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
        found, n_candidates = {}, 0
        if len(rows) >= 2 * self.n_least and len({self.y[i] for i in rows}) == 2:
            splits = {rule: self.divide(rule, rows) for rule in self.candidates}
            splits = {r: each for r, each in splits.items() if min(map(len, each)) >= self.n_least}
            n_candidates = len(splits)
            for rule, halves in splits.items():
                split = self.tabulate(halves)
                pooled = measure_gain([tuple(map(sum, zip(*split, strict=True)))])
                n_divided = sum(1 for a, b, c, d in split if a + b and c + d)
                level = 0.05 / n_candidates
                if not n_divided or pooled <= chi2.isf(level, 1):
                    continue
                if measure_gain(split) > chi2.isf(level, n_divided):
                    found[rule] = {
                        **measure_split(split, self.n_least),
                        "deviance_explained": pooled,
                    }
        self.scans[tuple(rows)] = found, n_candidates
        return found, n_candidates

    def find_first(self, found, features):
        """The rule of some features that explains most, the first of equals."""
        rules = [rule for rule in found if rule[0] in features]
        return min(rules, key=lambda rule: self.rank(found, rule), default=None)

    def rank(self, found, rule):
        return -round(found[rule]["deviance_explained"], 6), self.order[rule]

    def make(self, rows, path, banned, is_made=True):
        found, n_candidates = self.scan(rows) if is_made else ({}, 0)
        rejected = {rule: banned[rule[0]] for rule in found if rule[0] in banned}
        listed = [self.find_first(rejected and found, {j}) for j in {rule[0] for rule in rejected}]
        listed.sort(key=lambda rule: self.rank(found, rule))
        counts = {why: [*rejected.values()].count(why) for why in REASONS} if is_made else {}
        return {
            "rows": rows,
            "path": path,
            "is_made": is_made,
            "found": found,
            "n_candidates": n_candidates,
            "best": self.find_first(found, set(range(len(self.X[0]))) - set(banned)),
            "n_refused": counts,
            "refused": [(rule, rejected[rule]) for rule in listed[:N_REJECTED_KEPT]],
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
        for feature in sorted({rule[0] for rule in found}):
            replication = self.measure_replication(feature)
            if replication is not None and round(replication, 6) < min_replication:
                self.banned[feature] = "unreplicated"
        number = 1
        while bad := self.list_beyond(self.banned, tolerance):
            for each in bad:
                if number > 30 or each["share"] == bad[0]["share"]:
                    self.banned[each["rule"][0]] = "heterogeneous"
                    self.rejected.append({**each, "round": number})
            number += 1
        late = [j for j, why in self.banned.items() if why == "heterogeneous"]
        for feature in late[:-1] if number <= 30 else ():
            fewer = {j: why for j, why in self.banned.items() if j != feature}
            if not self.list_beyond(fewer, tolerance):
                self.banned = fewer
        self.rejected = [each for each in self.rejected if each["rule"][0] in self.banned]

    def list_beyond(self, banned, tolerance):
        found, n_judged = self.judge(banned)
        bad = [e for e in found if e["share"] > tolerance and e["p_value"] * n_judged < 0.05]
        return sorted(bad, key=lambda each: (-each["share"], self.order[each["rule"]]))

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
        leaves = list_nodes(self.grow(self.max_judge_leaves, dict(banned)))[1]
        if len(leaves) == 1:
            return [], 0
        p, explained = self.predict([leaf["rows"] for leaf in leaves])
        found, n_judged = [], 0
        for feature in range(len(self.X[0])):
            rules = [rule for rule in self.candidates if rule[0] == feature]
            if feature in banned or not rules:
                continue
            sums = self.add_up(feature, p)
            if len(sums) > 2:
                shape, levels = fit_shape(sums, self.places, 0.0)
                for key, cells in sums.items():
                    for e, cell in cells.items():
                        cell[0] -= cell[1] * (shape[key] + levels[e])
            judged = [judge_cut(sums, place, self.places) for place in range(len(rules))]
            n_judged += sum(each is not None for each in judged)
            known = [(-each[0], place) for place, each in enumerate(judged) if each and each[0] > 0]
            if known:
                deviance, p_value = judged[min(known)[1]]
                share = round(deviance / max(explained, 1e-12), 6)
                rule = rules[min(known)[1]]
                found.append({"rule": rule, "share": share, "p_value": p_value})
        return found, n_judged

    def predict(self, leaves):
        """Each row's chance, by its leaf and its environment's intercept; what that explains."""
        odds, p, explained = {}, [0.0] * len(self.y), 0.0
        for number, rows in enumerate(leaves):
            n_positive = sum(self.y[i] for i in rows)
            log_odds = math.log((n_positive + 0.5) / (len(rows) - n_positive + 0.5))
            odds |= dict.fromkeys(rows, (number, log_odds))
        for place in self.places:
            rows = [i for i, e in enumerate(self.environments) if e == place]
            n_positive = sum(self.y[i] for i in rows)
            by_odds = Counter(odds[i][1] for i in rows)
            low, high = -60.0, 60.0
            for _ in range(200):
                middle = (low + high) / 2
                chances = {each: 1 / (1 + math.exp(-each - middle)) for each in by_odds}
                expected = math.fsum(n * chances[each] for each, n in by_odds.items())
                low, high = (middle, high) if expected < n_positive else (low, middle)
            for i in rows:
                p[i] = 1 / (1 + math.exp(-odds[i][1] - low))
                if n_positive in (0, len(rows)):
                    p[i] = float(self.y[i])
                    continue
                rate = n_positive / len(rows)
                explained += 2 * math.log(p[i] / rate if self.y[i] else (1 - p[i]) / (1 - rate))
        return p, explained


def fit_shape(sums, places, prior):
    """Effects of bins and levels of environments, fitted to g / h in turn, at most 50 times."""
    shape, levels = dict.fromkeys(sums, 0.0), dict.fromkeys(places, 0.0)
    for _ in range(50):
        before = dict(shape)
        for key, cells in sums.items():
            off = math.fsum(g - h * levels[e] for e, (g, h) in cells.items())
            shape[key] = off / max(math.fsum(h for _, h in cells.values()) + prior, 1e-12)
        for e in places:
            off = math.fsum(cells[e][0] - cells[e][1] * shape[key] for key, cells in sums.items())
            levels[e] = off / max(math.fsum(cells[e][1] for cells in sums.values()), 1e-12)
        if max(abs(shape[key] - before[key]) for key in sums) < 1e-9:
            break
    return shape, levels


def judge_cut(sums, place, places):
    """Heterogeneity and p-value of the rule at a place of the bins' keys; None with no freedom."""
    weights, effects = [], []
    for e in places:
        (g0, h0), (g1, h1) = (
            [math.fsum(c[e][k] for key, c in sums.items() if key[place] == side) for k in (0, 1)]
            for side in (True, False)
        )
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
