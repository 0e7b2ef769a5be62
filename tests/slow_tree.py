"""A tree of invariant effects, grown row by row from the description of the search.

Rows are numbers in lists, rules are functions of a value, and every split is counted from the rows.
Nothing here is shared with the package: it is what the package is held to.
"""

from __future__ import annotations

import math

from scipy.stats import chi2

from slow_learner import is_true, list_candidates
from slow_splits import measure_gain, measure_split, weigh

N_REJECTED_KEPT = 5
REASONS = ("unreplicated", "heterogeneous", "remembered")


def list_splits(values, max_thresholds, missing):
    """Rules that split differently: no negations, and of two levels only the second.

    Unless missing values may not go either way: then the levels differ in whom they join.
    """
    rules = [rule for rule in list_candidates(values, max_thresholds, missing, None) if rule[2]]
    groups = list(dict.fromkeys(rule[1] for rule in rules if rule[0] == "level"))
    is_either = missing != "separate" or None not in values
    first = groups[0] if len(groups) == 2 and is_either else None
    return [rule for rule in rules if rule[0] != "level" or rule[1] != first]


def grow_slowly(
    X, y, environments, *, tolerance=0.03, max_leaves=16, n_least=1, max_thresholds=50, missing
):
    """Splits and leaves in the order of a walk that goes where rules hold first, as dicts.

    Values of X are numbers, text, or None where one is missing; `y` is 0 or 1.
    """
    if tolerance is None:
        environments, tolerance = [0] * len(y), math.inf
    places = sorted(set(environments))
    # a rule and its negation split alike: only `x > t`, `x == v` and `x is missing`
    candidates = [
        (feature, *rule)
        for feature in range(len(X[0]))
        for rule in list_splits([row[feature] for row in X], max_thresholds, missing)
    ]

    def divide(rule, rows):
        holds = [is_true(rule[1:], X[i][rule[0]]) for i in rows]
        return tuple(
            [i for i, so in zip(rows, holds, strict=True) if so == side] for side in (True, False)
        )

    def tabulate(rule, rows):
        """The 2 x 2 table of each environment; the half for which the rule is false first."""
        true, false = divide(rule, rows)
        tables = {place: [0, 0, 0, 0] for place in places}
        for first, half in ((0, false), (2, true)):
            for i in half:
                tables[environments[i]][first + 1 - y[i]] += 1
        return [tuple(tables[place]) for place in places], min(len(true), len(false))

    def find_scale(found):
        """Twice the information of the first split, at most a sixth of all there is to tell."""
        allowed = [
            each["deviance_explained"]
            for each in found.values()
            if each["is_replicated"] and each["heterogeneity_share"] <= tolerance
        ]
        left = 0.0
        for place in places:
            labels = [y[i] for i in range(len(y)) if environments[i] == place]
            left -= 2 * weigh(labels.count(0), labels.count(1))
        return min(2 * max(allowed, default=0.0), left / 6)

    def look(rows, known, scale):
        if len(rows) < 2 * n_least or len({y[i] for i in rows}) < 2:
            return make_look(known, scale)
        splits = {}
        for rule in candidates:
            split, size = tabulate(rule, rows)
            if size >= n_least:
                splits[rule] = split
        if not splits:
            return make_look(known, scale)
        cutoff = chi2.isf(0.05 / len(splits), 1)
        found = {}
        for rule, split in splits.items():
            if measure_gain(split) > cutoff:  # information is no more than the gain
                measured = measure_split(split, n_least)
                if measured["deviance_explained"] > cutoff:
                    found[rule] = measured
        if scale is None:
            scale = find_scale(found)
        negligible = tolerance * scale * len(rows) / len(y) if scale else 0.0
        for each in found.values():
            is_small = each["heterogeneity"] <= negligible
            each["judged"] = (
                min(each["heterogeneity_share"], tolerance)
                if is_small
                else each["heterogeneity_share"]
            )
        known = dict(known)
        for feature in {rule[0] for rule in found}:
            shown = found[find_first(found, feature)]["judged"]
            known[feature] = max(known.get(feature, 0.0), shown)
        reasons = {rule: find_reason(each, known.get(rule[0], 0.0)) for rule, each in found.items()}
        allowed = {rule: found[rule] for rule in found if reasons[rule] is None}
        refused = {rule: found[rule] for rule in found if reasons[rule] is not None}
        told = [find_first(refused, feature) for feature in {rule[0] for rule in refused}]
        told.sort(key=lambda rule: (-round(found[rule]["deviance_explained"], 6), order[rule]))
        return {
            "best": find_first(allowed) if allowed else None,
            "n_candidates": len(splits),
            "n_refused": {why: [*reasons.values()].count(why) for why in REASONS},
            "refused": [(rule, reasons[rule]) for rule in told[:N_REJECTED_KEPT]],
            "found": found,
            "known": known,
            "scale": scale,
        }

    def find_reason(measured, known):
        if not measured["is_replicated"]:
            return "unreplicated"
        if measured["judged"] > tolerance:
            return "heterogeneous"
        return "remembered" if known > tolerance else None

    order = {rule: number for number, rule in enumerate(candidates)}

    def find_first(found, feature=None):
        """The most informative of some rules, the first of equals."""
        rules = [rule for rule in found if feature in (None, rule[0])]
        return min(
            rules, key=lambda rule: (-round(found[rule]["deviance_explained"], 6), order[rule])
        )

    top = {"rows": list(range(len(y))), "path": (), **look(list(range(len(y))), {}, None)}
    leaves = [top]
    while len(leaves) < max_leaves:
        # most informative first; of equals the one that came first
        waiting = [leaf for leaf in leaves if leaf["best"]]
        if not waiting:
            break
        node = min(
            waiting, key=lambda leaf: -round(leaf["found"][leaf["best"]]["deviance_explained"], 6)
        )
        leaves.remove(node)
        is_last = len(leaves) + 2 == max_leaves
        node["children"] = []
        for rows, side in zip(divide(node["best"], node["rows"]), (True, False), strict=True):
            seen = None if is_last else look(rows, node["known"], node["scale"])
            seen = seen or make_look(node["known"], node["scale"], is_made=False)
            node["children"].append(
                {"rows": rows, "path": (*node["path"], (node["best"], side)), **seen}
            )
        leaves += node["children"]
    return list_nodes(top)


def make_look(known, scale, *, is_made=True):
    """A look that found no candidate, or that was not made."""
    return {
        "best": None,
        "n_candidates": 0,
        "n_refused": {},
        "refused": [],
        "found": {},
        "known": known,
        "scale": scale,
        "is_made": is_made,
    }


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
    if leaf["best"] or not leaf.get("is_made", True):
        return "max_leaves"
    if not leaf["n_candidates"]:
        return "small"
    return "rejected" if any(leaf["n_refused"].values()) else "uninformative"
