"""A tree of invariant rates, found row by row from the description of the search.

Rows are numbers in lists, rules are functions of a value, every split of every tree is counted from
the rows. Nothing here is shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import math

from scipy.stats import chi2

from support.literal.giveaways import find_determining
from support.literal.learner import is_true
from support.literal.tree import list_splits


def weigh(labels):
    """Log-likelihood of labels at their own rate."""
    counts = [labels.count(0), labels.count(1)]
    return math.fsum(n * math.log(n / len(labels)) for n in counts if n)


class SlowRates:
    """All trees of one table, by the set of banned features."""

    def __init__(
        self, X, y, environments, *, tolerance, max_leaves, n_least, max_thresholds, missing
    ):
        self.X, self.y, self.environments = X, y, environments
        determining = find_determining(X, environments, max_thresholds)
        self.max_leaves, self.n_least = max_leaves, n_least
        # a rule and its negation split alike: only `x > t`, `x == v` and `x is missing`
        self.candidates = [
            (feature, *rule)
            for feature in range(len(X[0]))
            if feature not in determining
            for rule in list_splits([row[feature] for row in X], max_thresholds, missing)
        ]
        self.trees, self.looks = {}, {}
        sizes = [environments.count(place) for place in set(environments)]
        self.balance = 1.0
        if len(sizes) > 1:
            pairs = 1 - sum((size / len(y)) ** 2 for size in sizes)
            self.balance = pairs / (1 - 1 / len(sizes))
        self.tolerance = tolerance * self.balance

    def divide(self, rule, rows):
        holds = [is_true(rule[1:], self.X[i][rule[0]]) for i in rows]
        return [
            [i for i, so in zip(rows, holds, strict=True) if so == side] for side in (True, False)
        ]

    def by_place(self, rows):
        """Labels of the rows of each environment that has any."""
        labels = {}
        for i in rows:
            labels.setdefault(self.environments[i], []).append(self.y[i])
        return labels

    def look(self, rows):
        """Information of each split that tells more than chance; and the number of splits."""
        if tuple(rows) not in self.looks:
            self.looks[tuple(rows)] = self.look_afresh(rows)
        return self.looks[tuple(rows)]

    def look_afresh(self, rows):
        labels = [self.y[i] for i in rows]
        if len(rows) < 2 * self.n_least or len(set(labels)) < 2:
            return {}, 0
        splits = {}
        for rule in self.candidates:
            halves = self.divide(rule, rows)
            if min(map(len, halves)) >= self.n_least:
                splits[rule] = halves

        labels_by_place = self.by_place(rows)
        explaining = {}
        for rule, halves in splits.items():
            level = 0.05 / (len(splits) * self.max_leaves)  # Bonferroni
            of_halves = sum(weigh([self.y[i] for i in half]) for half in halves)
            pooled = 2 * (of_halves - weigh(labels))

            halves_by_place = [self.by_place(half) for half in halves]
            of_halves = sum(weigh(part) for half in halves_by_place for part in half.values())
            within = 2 * (of_halves - sum(map(weigh, labels_by_place.values())))
            n_divided = len(halves_by_place[0].keys() & halves_by_place[1].keys())
            if n_divided and pooled > chi2.isf(level, 1) and within > chi2.isf(level, n_divided):
                explaining[rule] = pooled
        return explaining, len(splits)

    def find_first(self, found, features):
        """The most informative of some features' rules, the first of equals."""
        rules = [rule for rule in self.candidates if rule in found and rule[0] in features]
        return min(rules, key=lambda rule: -round(found[rule], 6), default=None)

    def grow(self, banned):
        """The plain tree without some features, as a dict of dicts."""
        allowed = set(range(len(self.X[0]))) - banned

        def make(rows):
            found, n_candidates = self.look(rows)
            best = self.find_first(found, allowed)
            return {"rows": rows, "found": found, "n_candidates": n_candidates, "best": best}

        top = make(list(range(len(self.y))))
        leaves, splits = [top], []
        while len(leaves) < self.max_leaves:
            waiting = [leaf for leaf in leaves if leaf["best"]]
            if not waiting:
                break
            node = min(waiting, key=lambda leaf: -round(leaf["found"][leaf["best"]], 6))
            leaves.remove(node)
            splits.append(node)
            node["children"] = [make(half) for half in self.divide(node["best"], node["rows"])]
            leaves += node["children"]
        return top, splits, leaves

    def tree(self, banned):
        """What the tree without some features is worth; each tree is grown once."""
        if banned not in self.trees:
            top, splits, leaves = self.grow(banned)
            dependence, dof = 0.0, 0
            for leaf in leaves:
                labels = self.by_place(leaf["rows"])
                pooled = [self.y[i] for i in leaf["rows"]]
                dependence += 2 * (sum(map(weigh, labels.values())) - weigh(pooled))
                dof += len(labels) - 1 if len(set(pooled)) == 2 else 0
            information = round(sum(node["found"][node["best"]] for node in splits), 6)
            chance = chi2.isf(0.2, dof) if dof else 0.0
            excess = round(max(0.0, dependence - chance), 6)
            cells = [
                sorted((self.y[i], self.environments[i]) for i in rows) for rows in walk_leaves(top)
            ]
            self.trees[banned] = {
                "top": top,
                "used": sorted({node["best"][0] for node in splits}),
                "cells": cells,
                "deviance_explained": information,
                "rate_heterogeneity": dependence,
                "dof": dof,
                "heterogeneity": excess,
                "score": information - excess / self.tolerance,
            }
        return self.trees[banned]

    def score(self, banned):
        return self.tree(banned)["score"]

    def ban_each(self, banned):
        """Each used feature banned besides, with those that step in and change no leaf."""
        before = self.tree(banned)
        wider = []
        for feature in before["used"]:
            more = banned | {feature}
            while self.tree(more)["cells"] == before["cells"]:
                copies = set(self.tree(more)["used"]) - set(before["used"])
                if not copies:
                    break
                more |= copies
            wider.append(more)
        return wider

    def find(self):
        """The banned features, those that are idle, and the tree without them."""
        banned = self.allow_again(self.search_banned())
        n_candidates = max(1, self.tree(banned)["top"]["n_candidates"])
        noise = chi2.isf(0.05 / (n_candidates * self.max_leaves), 1)
        without_idle = banned
        while True:
            idle = [
                wider
                for wider in self.ban_each(without_idle)
                if self.is_nearly_as_good(wider, without_idle, noise)
            ]
            if not idle:
                return banned, without_idle - banned, self.tree(without_idle)
            without_idle = max(idle, key=self.score)

    def search_banned(self):
        """The set of banned features with the best score: a beam search, three sets wide."""
        best = frozenset()
        beam = [frozenset()]
        while beam and len(self.trees) < 300:
            wider = {
                more
                for banned in beam
                if self.tree(banned)["heterogeneity"] > 0
                for more in self.ban_each(banned)
            }
            beam = sorted(wider, key=lambda banned: (-self.score(banned), sorted(banned)))[:3]
            best = max([best, *beam], key=self.score)
            # without any heterogeneity, a score would be what the tree explains
            beam = [b for b in beam if self.tree(b)["deviance_explained"] > self.score(best)]
        return best

    def allow_again(self, banned):
        """The set without the features whose ban has become useless, one at a time."""
        while banned:
            fewer = max((banned - {feature} for feature in sorted(banned)), key=self.score)
            if self.score(fewer) <= self.score(banned):
                break
            banned = fewer
        return banned

    def is_nearly_as_good(self, wider, banned, noise):
        """Whether a tree without more features explains as much, but for noise, as invariantly."""
        tree = self.tree(wider)
        before = self.tree(banned)
        slack = max(noise, 0.01 * before["deviance_explained"])
        if tree["deviance_explained"] < before["deviance_explained"] - slack:
            return False
        tolerated = self.tolerance * tree["deviance_explained"] / 2
        return tree["heterogeneity"] <= max(before["heterogeneity"], tolerated)


def walk_leaves(node):
    """The rows of each leaf, where rules hold first."""
    if "children" not in node:
        return [node["rows"]]
    return [rows for child in node["children"] for rows in walk_leaves(child)]


def walk_splits(node):
    """The nodes that were split, where rules hold first."""
    if "children" not in node:
        return []
    return [node, *(each for child in node["children"] for each in walk_splits(child))]
