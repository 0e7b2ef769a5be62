"""The tree found from counts is the one grown row by row, for the same reasons."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from icscm import InvariantTreeClassifier
from icscm.search.trace import Step
from support.fitting import as_tuple, assert_no_nan, fit_all_columns
from support.literal.tree import REASONS, SlowTree, list_nodes

KINDS = ["habit", "cause", "binary", "word", "holes", "habit", "local", "noise", "constant", "copy"]


def make_column(kind, rng, base, labels, place, columns):
    """Values of one kind, made from what the label depends on, or from the label itself."""
    n = len(labels)
    if kind == "cause":
        return np.round(base + rng.normal(0, 0.3, n), 1).tolist()
    if kind == "binary":
        return (base > 0).astype(float).tolist()
    if kind == "word":
        return [("low", "mid", "high", "top")[k] for k in np.digitize(base, [-0.5, 0.3, 1.0])]
    if kind == "holes":  # missing more often where the label is positive
        is_missing = rng.random(n) < 0.1 + 0.5 * labels
        return [None if hole else float(v > 0) for v, hole in zip(base, is_missing, strict=True)]
    if kind == "habit":  # agrees with the label as often as the environment has it
        agrees = rng.random(n) < np.array([0.98, 0.1, 0.9, 0.0, 0.5])[place]
        said = np.where(agrees, labels, rng.integers(0, 2, n))
        return np.round(2 * said + rng.normal(0, 0.8, n)).tolist()
    if kind == "local":  # tells something in one environment, and is constant elsewhere
        return np.where(place == 0, labels ^ (rng.random(n) < 0.05), 0).astype(float).tolist()
    if kind == "copy":
        return list(columns[-1]) if columns else [1.0] * n
    return [2.0] * n if kind == "constant" else rng.integers(0, 9, n).astype(float).tolist()


def make_table(seed):
    """Columns, labels, places and weights; a seed only, so that an example is short to tell."""
    rng = np.random.default_rng(seed)
    n, n_places = int(rng.integers(8, 500)), int(rng.integers(1, 6))
    place = rng.choice(n_places, n, p=rng.dirichlet(np.full(n_places, 4.0)))
    place[:n_places] = range(n_places)
    base, other = rng.normal(size=(2, n))
    log_odds = rng.choice([0, 2, 6]) * base + other + rng.normal(size=n_places)[place]
    labels = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    labels[:2] = 0, 1
    columns = []
    for kind in rng.choice(KINDS, rng.integers(1, 7)):
        source = base if rng.random() < 0.7 else other
        columns.append(make_column(kind, rng, source, labels, place, columns))
    weights = rng.integers(0, 3, n) if rng.random() < 0.3 else None
    if weights is not None:
        weights[: max(2, n_places)] = 1
    return columns, labels, place, weights


ENDS = "max_leaves", "small", "uninformative", "rejected"
NAMES = "deviance_explained", "heterogeneity", "heterogeneity_share", "log_odds_ratio"

# Options with which a tree of some splits must be learned.
LEARNED_WITH = {
    *("tolerance=0.01", "tolerance=0.1", "tolerance=None"),
    *("max_leaves=2", "max_leaves=3", "max_leaves=6", "max_leaves=16"),
    *("min_samples_leaf=0.0", "min_samples_leaf=0.05", "min_samples_leaf=0.2"),
    *("max_thresholds=2", "max_thresholds=4"),
}


def draw_options(rng):
    return {
        "tolerance": [0.01, 0.01, 0.1, None][rng.integers(4)],
        "max_leaves": int(rng.choice([1, 2, 3, 6, 16])),
        "min_samples_leaf": float(rng.choice([0, 0.05, 0.2])),
        "max_thresholds": int(rng.choice([2, 4])),
    }


def grow_both(columns, labels, place, weights, options):
    frame = pd.DataFrame({f"f{j}": pd.Series(values) for j, values in enumerate(columns)})
    environments = place if place.max() else None
    learner = InvariantTreeClassifier(**options, n_jobs=1)
    rows = np.repeat(np.arange(len(labels)), 1 if weights is None else weights)
    fitted = fit_all_columns(
        learner,
        frame.iloc[rows],
        labels[rows],
        None if environments is None else environments[rows],
    )
    cells = [list(row) for row in zip(*columns, strict=True)]
    n_least = max(1, math.ceil(options["min_samples_leaf"] * len(rows)))
    slow = {**options, "n_least": n_least, "missing": "candidate"}
    del slow["min_samples_leaf"]
    slow["tolerance"] = None if environments is None else options["tolerance"]
    taken = [cells[i] for i in rows], labels[rows].tolist(), place[rows].tolist()
    return fitted, taken[1:], SlowTree(*taken, **slow)


def assert_same_look(look, node):
    assert [as_tuple(rule, False) for rule in look.path] == [
        as_negated(rule, side) for rule, side in node["path"]
    ]
    assert look.n_candidates == node["n_candidates"]
    assert look.n_rejected == node["n_refused"]
    told = [(as_tuple(each.candidate.rule, False), each.reason) for each in look.best_rejected]
    assert told == node["refused"]
    measured = [each.candidate for each in look.best_rejected]
    measured += [look.chosen] if isinstance(look, Step) else []
    for each in measured:
        wanted = node["found"][as_tuple(each.rule, False)]
        for name in NAMES:
            assert getattr(each, name) == pytest.approx(wanted[name], rel=1e-6, abs=1e-6)


def assert_same_columns(found, slow):
    assert {each.rule.column: each.reason for each in found} == slow.banned
    found = [each for each in found if each.reason in ("heterogeneous", "reversed")]
    for each, wanted in zip(found, slow.rejected, strict=True):
        assert (as_tuple(each.rule, False), each.round) == (wanted["rule"], wanted["round"])
        assert each.heterogeneity_share == pytest.approx(wanted["share"], rel=1e-6, abs=2e-6)


def as_negated(rule, side):
    """The rule that is true of the samples on one side."""
    feature, kind, what, sign, missing = rule
    return (
        rule if side else (feature, kind, what, not sign, None if missing is None else not missing)
    )


def count_rows(node, labels, place):
    places = sorted(set(place))
    cells = Counter((labels[i], place[i]) for i in node["rows"])
    return tuple(tuple(cells[label, each] for each in places) for label in (0, 1))


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 180), marks=pytest.mark.thorough)], ids=str
)
def test_the_tree_is_the_one_grown_row_by_row(seeds):
    reached, learned_with = Counter(), set()
    for seed in seeds:
        options = draw_options(np.random.default_rng((seed, 1)))
        fitted, (labels, place), slow = grow_both(*make_table(seed), options)
        trace, model = fitted.trace_, fitted.model_
        splits, leaves = list_nodes(slow.top)
        assert_same_columns(trace.rejected_columns, slow)
        assert [as_tuple(rule, False) for rule in model.rules] == [each["best"] for each in splits]
        assert model.leaves == tuple(count_rows(leaf, labels, place) for leaf in leaves)
        for look, node in zip(trace.splits, splits, strict=True):
            assert as_tuple(look.chosen.rule, False) == node["best"]
            assert_same_look(look, node)
        for look, node in zip(trace.leaves, leaves, strict=True):
            assert look.end == node["end"]
            assert_same_look(look, node)
        assert_no_nan(trace.to_dict())
        reached.update(look.end for look in trace.leaves)
        for look in (*trace.splits, *trace.leaves):
            reached.update(why for why, n in look.n_rejected.items() if n)
            reached.update(f"told {each.reason}" for each in look.best_rejected)
        learned_with.update(f"{name}={value}" for name, value in options.items() if trace.splits)
    wanted = {*ENDS, *REASONS, *(f"told {why}" for why in REASONS)}
    assert wanted == set(reached), reached
    assert learned_with >= LEARNED_WITH
