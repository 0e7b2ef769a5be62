"""Trees of invariant rates: the one found from counts is the one found row by row."""

import math
import warnings
from collections import Counter

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from icscm import InvariantForestClassifier, InvariantTreeClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmWarning, NothingFoundWarning, NotInvariantWarning
from icscm.search.rate_trees import N_TRIED_KEPT
from icscm.sources import open_bits
from icscm.sources.bits.packing import pack_matrix
from icscm.stats.splits import measure_effects
from support.fitting import as_tuple, assert_no_nan, fit_all_columns, fit_quietly
from support.literal.rate_tree import SlowRates, walk_splits

KINDS = ["parent"] * 4 + ["child"] * 2 + ["proxy"] * 3 + ["noise", "marker", "copy", "constant"]


def make_column(kind, rng, base, labels, place, columns):
    n = len(labels)
    if kind == "parent":
        form = rng.integers(4)
        if form == 0:
            return base.astype(float).tolist()
        if form == 1:
            return (base + rng.random(n).round(1)).tolist()
        if form == 2:
            return [("low", "high", "top")[k + int(k and rng.random() < 0.3)] for k in base]
        return [
            None if hole else float(k) for k, hole in zip(base, rng.random(n) < 0.2, strict=True)
        ]
    if kind == "child":  # agrees with the label as often as the environment has it
        agrees = rng.random(n) < np.linspace(0.98, 0.5, 6)[place]
        return np.where(agrees, labels, rng.integers(0, 3, n)).astype(float).tolist()
    if kind == "proxy":
        return np.where(rng.random(n) < 0.1, rng.integers(0, 2, n), base).astype(float).tolist()
    if kind == "marker":
        return (place + (rng.random(n) < 0.1)).astype(float).tolist()
    if kind == "copy":
        return list(columns[-1]) if columns else [1.0] * n
    return [2.0] * n if kind == "constant" else rng.integers(0, 4, n).astype(float).tolist()


def make_table(seed):
    """Columns, labels, places and weights; a seed only, so that an example is short to tell."""
    rng = np.random.default_rng(seed)
    n, n_places = int(rng.integers(20, 400)), int(rng.integers(2, 6))
    place = rng.choice(n_places, n, p=rng.dirichlet(np.full(n_places, 4.0)))
    place[:n_places] = range(n_places)
    first = (rng.random(n) < np.linspace(0.2, 0.7, n_places)[place]).astype(int)
    second = (rng.random(n) < np.linspace(0.6, 0.4, n_places)[place]).astype(int)
    labels = np.where(rng.random(n) < 0.05, rng.integers(0, 2, n), first & second)
    labels[:2] = 0, 1
    columns = []
    for kind in rng.choice(KINDS, rng.integers(2, 7)):
        base = first if rng.random() < 0.5 else second
        columns.append(make_column(kind, rng, base, labels, place, columns))
    weights = rng.integers(0, 3, n) if rng.random() < 0.3 else None
    if weights is not None:
        weights[: max(2, n_places)] = 1
    return columns, labels, place, weights


def draw_options(rng):
    return {
        "tolerance": float(rng.choice([0.005, 0.05, 1.0])),
        "max_leaves": int(rng.choice([1, 2, 8, 16])),
        "min_samples_leaf": float(rng.choice([0, 0.05])),
        "max_thresholds": int(rng.choice([2, 4])),
    }


# Options with which a tree of some splits must be found.
FOUND_WITH = [
    *("tolerance=0.005", "tolerance=0.05", "tolerance=1.0"),
    *("max_leaves=2", "max_leaves=8", "max_leaves=16"),
    *("min_samples_leaf=0.0", "min_samples_leaf=0.05"),
    *("max_thresholds=2", "max_thresholds=4"),
]


def find_both(columns, labels, place, weights, options):
    frame = pd.DataFrame({f"f{j}": pd.Series(values) for j, values in enumerate(columns)})
    learner = InvariantTreeClassifier(invariance="rate", **options, n_jobs=1)
    rows = np.repeat(np.arange(len(labels)), 1 if weights is None else weights)
    fitted = fit_all_columns(learner, frame.iloc[rows], labels[rows], place[rows])
    cells = [list(row) for row in zip(*columns, strict=True)]
    n_least = max(1, math.ceil(options["min_samples_leaf"] * len(rows)))
    slow = {**options, "n_least": n_least, "missing": "candidate"}
    del slow["min_samples_leaf"]
    taken = [cells[i] for i in rows], labels[rows].tolist(), place[rows].tolist()
    return fitted, SlowRates(*taken, **slow)


def assert_same_refusals(look, node, reasons, slow):
    """Of each banned feature its best split at the node, and how many it has."""
    wanted = dict.fromkeys(("banned", "idle"), 0)
    for rule in node["found"]:
        if rule[0] in reasons:
            wanted[reasons[rule[0]]] += 1
    assert look.n_rejected == (wanted if node["n_candidates"] else dict.fromkeys(wanted, 0))
    best = [slow.find_first(node["found"], {feature}) for feature in reasons]
    best = sorted(filter(None, best), key=lambda rule: (-round(node["found"][rule], 6), rule[0]))
    told = [(as_tuple(each.candidate.rule, False), each.reason) for each in look.best_rejected]
    assert told == [(rule, reasons[rule[0]]) for rule in best[:5]]


def assert_same_splits(trace, found, reasons, slow):
    for look, node in zip(trace.splits, walk_splits(found["top"]), strict=True):
        assert look.chosen.deviance_explained == pytest.approx(
            node["found"][node["best"]], abs=1e-6
        )
        assert look.n_candidates == node["n_candidates"]
        assert_same_refusals(look, node, reasons, slow)


def assert_same_trees(trace, slow):
    wanted = {
        (tuple(f"f{j}" for j in sorted(banned)), tuple(f"f{j}" for j in tree["used"])): tree
        for banned, tree in slow.trees.items()
    }
    tried = {(each.banned, each.used): each for each in trace.tried}
    assert len(tried) == len(trace.tried) == min(len(wanted), N_TRIED_KEPT)
    for key, each in tried.items():
        for name in ("deviance_explained", "rate_heterogeneity", "dof"):
            assert getattr(each, name) == pytest.approx(wanted[key][name], abs=1e-5)


@pytest.mark.parametrize(
    "seeds", [range(35), pytest.param(range(35, 160), marks=pytest.mark.thorough)], ids=str
)
def test_the_tree_is_the_one_found_row_by_row(seeds):
    reached = Counter()
    for seed in seeds:
        options = draw_options(np.random.default_rng((seed, 1)))
        columns, labels, place, weights = make_table(seed)
        fitted, slow = find_both(columns, labels, place, weights, options)
        banned, idle, found = slow.find()
        splits = walk_splits(found["top"])
        assert [as_tuple(rule, False) for rule in fitted.model_.rules] == [
            node["best"] for node in splits
        ]
        cells = [
            sorted(
                (label, place)
                for label, row in enumerate(leaf)
                for place, n in enumerate(row)
                for _ in range(n)
            )
            for leaf in fitted.model_.leaves
        ]
        assert cells == found["cells"]
        trace = fitted.trace_
        assert_no_nan(trace.to_dict())
        owed = found["heterogeneity"] / slow.balance / max(found["deviance_explained"], 1e-9)
        if splits:
            assert trace.heterogeneity_share == pytest.approx(owed, abs=1e-6)
            reached.update(f"{name}={value}" for name, value in options.items())
            reached["weights"] += weights is not None
        reached.update({"splits": bool(splits), "beyond": trace.describe_excess() is not None})
        if len(set(map(tuple, columns))) < len(columns):
            continue  # identical features may be stored once, and then are told of once
        reasons = dict.fromkeys(banned, "banned") | dict.fromkeys(idle, "idle")
        assert_same_splits(trace, found, reasons, slow)
        assert_same_trees(trace, slow)
        reached.update(reasons.values())
    wanted = "splits", "beyond", "banned", "idle", "weights", *FOUND_WITH
    assert min(reached[each] for each in wanted) >= 3, reached


@pytest.fixture(scope="module")
def paper():
    """The paper's data: two parents, a child, distractors."""
    return make_conjunction(1000, n_distractors=4, random_state=1)


def find_tree(data, X=None, **options):
    X = data.X if X is None else X
    return fit_quietly(
        InvariantTreeClassifier(invariance="rate", **options), X, data.y, data.environments
    )


def test_the_parents_are_used_and_the_child_is_banned(paper):
    """`invariance="rate"` used to be taken and ignored: the tree used the child."""
    tree = find_tree(paper)
    assert tree.features_used_ == ["A1", "A2"]
    *others, chosen = tree.trace_.tried
    assert (chosen.banned, chosen.used) == (("C1",), ("A1", "A2"))
    assert [each.score for each in others] == sorted(each.score for each in others)
    root = tree.trace_.splits[0]
    assert [(each.candidate.rule.feature, each.reason) for each in root.best_rejected] == [
        ("C1", "banned")
    ]
    assert root.n_rejected == {"banned": 1, "idle": 0}
    assert tree.trace_.heterogeneity_share <= 0.005
    assert tree.trace_.describe_excess() is None


def test_splits_are_told_in_the_same_columns(paper):
    """Information is that of all samples together; the effect is measured as for effects."""
    chosen = find_tree(paper).trace_.splits[0].chosen
    true, false = np.array(chosen.if_true), np.array(chosen.if_false)
    wanted = measure_effects(false[None], true + false, 1)
    for name in ("heterogeneity", "heterogeneity_share", "log_odds_ratio"):
        assert getattr(chosen, name) == pytest.approx(float(getattr(wanted, name)[0]))
    assert chosen.deviance_explained != pytest.approx(float(wanted.deviance_explained[0]))


def test_a_feature_that_brings_next_to_nothing_is_idle():
    """It tells more than chance, but less than a hundredth of what the tree tells."""
    rng = np.random.default_rng(3)
    place = np.repeat([0, 1], 10_000)
    first, second = rng.random((2, 20_000)) < np.array([[0.2, 0.6], [0.6, 0.3]])[:, place]
    little = rng.random(20_000) < 0.5
    label = np.where(first & second, 0.9 + 0.06 * little, 0.05) > rng.random(20_000)
    frame = pd.DataFrame({"A1": first, "A2": second, "little": little}).astype(float)
    tree = fit_quietly(InvariantTreeClassifier(invariance="rate"), frame, label, place)
    assert tree.features_used_ == ["A1", "A2"]
    looks = (*tree.trace_.splits, *tree.trace_.leaves)
    refused = {(e.candidate.rule.feature, e.reason) for look in looks for e in look.best_rejected}
    assert refused == {("little", "idle")}


def test_without_tolerance_or_environments_the_tree_is_plain(paper):
    for options, environments in (({"tolerance": None}, paper.environments), ({}, None)):
        trees = [
            fit_quietly(
                InvariantTreeClassifier(invariance=kind, **options), paper.X, paper.y, environments
            )
            for kind in ("rate", "effect")
        ]
        assert trees[0].model_ == trees[1].model_
        assert trees[0].trace_.splits == trees[1].trace_.splits


@pytest.mark.parametrize("dtype", [bool, float])
def test_identical_features_are_one(paper, dtype):
    """The copy of a feature stepped in for it: the parents' copies were used, or the child's."""
    X = paper.X.to_numpy().astype(float) + (dtype is float)
    X[:, 3] += 0 if dtype is bool else 0.5 * (np.arange(len(X)) % 2)  # else all are stored as bits
    tree = find_tree(paper, np.column_stack([X, X]).astype(dtype))
    assert sorted(tree.features_used_) == [0, 1]


def test_no_tree_of_invariant_rates_is_said_aloud():
    rng = np.random.default_rng(0)
    place = rng.integers(0, 3, 3000)
    x = rng.random(3000) < 0.2 + 0.3 * place
    y = rng.random(3000) < 0.1 + 0.5 * x + 0.1 * place
    learner = InvariantTreeClassifier(invariance="rate")
    with pytest.warns(NotInvariantWarning, match=r"amount to .*% of .*tolerance is 0.5%"):
        learner.fit(x.reshape(-1, 1), y, environments=place)
    assert learner.trace_.notes == (learner.trace_.describe_excess(),)
    with pytest.warns(IcscmWarning) as said:
        learner.fit(rng.integers(0, 2, (3000, 1)), y, environments=place)
    assert {each.category for each in said} == {NothingFoundWarning, NotInvariantWarning}


def test_order_of_rows_and_threads_do_not_matter(paper):
    order = np.random.default_rng(0).permutation(len(paper.y))
    trees = [find_tree(paper, n_jobs=n_jobs) for n_jobs in (1, 2)]
    shuffled = InvariantTreeClassifier(invariance="rate")
    fit_quietly(shuffled, paper.X.iloc[order], paper.y[order], paper.environments[order])
    assert trees[0].trace_ == trees[1].trace_ == shuffled.trace_


def test_a_forest_is_grown_without_the_banned_features(paper):
    forest = InvariantForestClassifier(n_estimators=8, invariance="rate", random_state=0)
    fit_quietly(forest, paper.X, paper.y, paper.environments)
    assert forest.trace_.tried[-1].banned == ("C1",)
    assert {"A1"} <= set(forest.features_used_) <= {*paper.X.columns} - {"C1"}


def test_files_dask_and_bits_give_the_same_tree(paper, tmp_path):
    """Identical features are stored once in some of them; the tree must not show it."""
    data = paper._replace(X=paper.X.assign(copy=paper.X["A1"], shadow=paper.X["C1"]).astype(float))
    wanted = find_tree(data)
    assert wanted.features_used_ == ["A1", "A2"]
    everything = data.X.assign(y=data.y, e=data.environments)
    everything.to_parquet(tmp_path / "table.parquet")
    from_file = InvariantTreeClassifier(invariance="rate")
    lazy = dd.from_pandas(everything, npartitions=3)
    with warnings.catch_warnings(), dask.config.set(scheduler="synchronous"):
        warnings.simplefilter("ignore")
        from_file.fit_dataset(tmp_path / "table.parquet", target="y", environments="e")
        from_dask = InvariantTreeClassifier(invariance="rate")
        from_dask.fit(lazy[[*data.X]], lazy["y"], environments=lazy["e"])
    assert from_file.model_ == from_dask.model_ == wanted.model_
    pack_matrix(data.X.to_numpy() > 0, tmp_path / "x.bits", names=[*data.X])
    labels = everything[["y", "e"]].assign(genome=np.arange(len(data.y)).astype(str))[
        ["genome", "y", "e"]
    ]
    bits = open_bits(tmp_path / "x.bits", labels, target="y", environments="e")
    with warnings.catch_warnings(), bits:
        warnings.simplefilter("ignore", IcscmWarning)
        from_bits = InvariantTreeClassifier(invariance="rate").fit_counts(bits)
    assert from_bits.features_used_ == wanted.features_used_
    assert from_bits.model_.leaves == wanted.model_.leaves
