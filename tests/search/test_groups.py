"""Rows that belong together: what trees and forests make of them.

Noise that is constant within a patient differs between environments by the patients that these
happen to have: with many visits of each, rows taken for independent ones show that as a difference
of effects.
"""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import InvariantForestClassifier, InvariantTreeClassifier
from icscm.engine.counts import Cut
from icscm.engine.pieces import BinnedSplit
from icscm.search.design_effects import measure_chance_effect
from icscm.search.forest import draw_rows
from icscm.sources.memory import open_memory
from icscm.stats.design_effects import ClusterSums, compute_design_effects
from icscm.stats.leaf_rates import predict_leaves
from support.visits import N_NOISE, make_visits

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")


def test_squares_and_design_effects_are_those_of_a_loop_over_groups():
    """A group with rows in two environments is a group in each."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = rng.integers(0, 3, (60, 2)), rng.integers(0, 2, 60)
        places, groups = rng.integers(0, 3, 60), rng.integers(0, 15, 60)
        source = open_memory(X, y, environments=places, groups=groups).source
        make = source.columns.make_binned_rule
        splits = [
            BinnedSplit(make(Cut(0, 0, negated=False)), 1, ~2),
            BinnedSplit(make(Cut(1, 1, negated=False)), ~0, ~1),
        ]
        leaf = np.where(X[:, 0] > 0, np.where(X[:, 1] > 1, 0, 1), 2)
        counts = np.zeros((3, 2, 3), dtype=int)
        np.add.at(counts, (leaf, y, places), 1)
        p = predict_leaves(counts)
        cluster_sums = source.clusters.square_residuals(splits, p)
        hessians, literal = [], []
        for e in range(3):
            own = {g: 0.0 for g, place in zip(groups, places, strict=True) if place == e}
            total = 0.0
            for i in np.flatnonzero(places == e):
                chance = p[leaf[i], e]
                own[groups[i]] += y[i] - chance
                total += chance * (1 - chance)
            assert cluster_sums.squares[e] == pytest.approx(sum(s**2 for s in own.values()))
            assert cluster_sums.n_groups[e] == len(own)
            hessians.append(total)
            effect = len(own) / (len(own) - 1) * sum(s**2 for s in own.values()) / total
            literal.append(max(effect, 1.0))
        found = compute_design_effects(cluster_sums, np.array(hessians), np.bincount(places))
        np.testing.assert_allclose(found, literal)
        moments = source.clusters.count_leaf_moments(splits)
        for part, e in np.ndindex(3, 3):
            own = (leaf == part) & (places == e)
            sums = [(len(y[own & (groups == g)]), y[own & (groups == g)].sum()) for g in range(15)]
            wanted = [[n > 0, n * n, n * positive, positive**2] for n, positive in sums]
            sums_of_leaf = [
                moments.n_clusters[part, e],
                moments.sum_nn[part, e],
                moments.sum_np[part, e],
                moments.sum_pp[part, e],
            ]
            assert sums_of_leaf == np.sum(wanted, axis=0, dtype=int).tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_the_effect_of_chance_is_that_of_a_loop_over_groups(seed, n_environments, lie_within):
    """The effect of chance has the squares of whole groups; the literal one adds them up by name.

    Where groups lie within environments it is the mean effect of these, weighted by hessians.
    """
    rng = np.random.default_rng(seed)
    y, groups = rng.integers(0, 2, 60), rng.integers(0, 12, 60)
    places = groups % n_environments if lie_within else rng.integers(0, n_environments, 60)
    y[:2] = 0, 1
    source = open_memory(rng.random((60, 1)), y, environments=places, groups=groups).source

    numerator = total_hessian = shared = 0.0
    sums_of_groups = {group: [] for group in groups.tolist()}
    for place in np.unique(places).tolist():
        is_here = places == place
        rate = y[is_here].mean()
        groups_here = np.unique(groups[is_here]).tolist()
        sums = [(y - rate)[is_here & (groups == group)].sum() for group in groups_here]
        for group, group_sum in zip(groups_here, sums, strict=True):
            sums_of_groups[group].append(group_sum)
        hessian = max(is_here.sum() * rate * (1 - rate), 1e-9)
        G = len(sums)
        if G > 1 and hessian > 1e-9:
            effect = max(G / (G - 1) * np.square(sums).sum() / hessian, 1.0)
        else:
            effect = is_here.sum() / G
        numerator += hessian * effect
        total_hessian += hessian
    for sums in sums_of_groups.values():
        shared += sum(s * t for s, t in permutations(sums, 2))

    expected = (numerator + max(shared, 0.0)) / total_hessian
    assert measure_chance_effect(source) == pytest.approx(expected)
    if lie_within:
        assert shared == 0.0


def test_a_group_in_several_environments_counts_as_one_for_chance():
    """Copies of a row in four environments are one observation; they were four."""
    rng = np.random.default_rng(0)
    y, groups = np.repeat(rng.integers(0, 2, 200), 4), np.repeat(np.arange(200), 4)
    places = np.tile(np.arange(4), 200)
    source = open_memory(rng.random((800, 1)), y, environments=places, groups=groups).source
    assert measure_chance_effect(source) == pytest.approx(4.0, rel=0.02)


def test_what_cannot_be_told_counts_a_group_as_one_row():
    """A single group, and an environment without cases, where no residual is left."""
    sums = ClusterSums(squares=np.array([0.0, 0.0, 9.0]), n_groups=np.array([1.0, 4.0, 3.0]))
    found = compute_design_effects(sums, np.array([2.0, 0.0, 4.5]), np.array([9, 20, 30]))
    assert found.tolist() == [9.0, 5.0, 3.0]


@pytest.mark.parametrize("n_visits", [5, pytest.param(10, marks=pytest.mark.thorough)])
def test_noise_of_patients_is_no_heterogeneity_of_a_tree(n_visits):
    """At most 5 % of the tables with any column of noise rejected, or used; without groups most.

    25 tables: four standard errors of 5 % are four tables. The shortcut is always rejected.
    """
    n_wrong, n_used, n_found = np.zeros(2), np.zeros(2), 0
    for seed in range(25):
        X, y, places, patients = make_visits(seed, n_visits)
        for way, groups in enumerate((patients, None)):
            tree = InvariantTreeClassifier(n_jobs=1).fit(X, y, environments=places, groups=groups)
            n_wrong[way] += bool(tree.trace_.rejected_columns)
            n_used[way] += not {*tree.features_used_} <= {0, 1}
            assert 0 in tree.features_used_ or groups is None
        if seed < 5:
            X, y, places, patients = make_visits(seed, n_visits, has_shortcut=True)
            tree = InvariantTreeClassifier(n_jobs=1).fit(X, y, environments=places, groups=patients)
            rejected = {each.rule.feature for each in tree.trace_.rejected_columns}
            n_found += 2 + N_NOISE in rejected
    assert n_wrong[0] <= 5
    assert n_wrong[1] >= 12
    assert n_used[0] <= 5
    assert n_used[1] >= 10
    assert n_found == 5


@pytest.mark.parametrize("invariance", ["effect", "rate"])
def test_leaves_of_a_tree_are_tested_by_groups(invariance):
    """Rates are equal; without the correction a quarter of the leaves were *not invariant*.

    Trees of equal rates also took chance for heterogeneity, and often found nothing.
    """
    n_rejected = n_leaves = n_used = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, (400, 3))
        patients = np.repeat(np.arange(400), 5)
        risk = 2 * X[:, 0] + 1.5 * (X[:, 0] & X[:, 1]) + rng.normal(-1.5, 1.2, 400)
        y = (rng.random(2000) < 1 / (1 + np.exp(-risk[patients]))).astype(int)
        tree = InvariantTreeClassifier(invariance=invariance, n_jobs=1)
        tree.fit(X[patients], y, environments=patients % 4, groups=patients)
        verdicts = tree.trace_.verdicts
        n_rejected += sum(each.conclusion == "not invariant" for each in verdicts)
        n_leaves += len(verdicts)
        n_used += 0 in tree.features_used_
        assert all(each.design_effect >= 1 for each in verdicts)
    assert n_leaves >= 50
    assert n_rejected <= 0.05 * n_leaves + 4 * np.sqrt(n_leaves * 0.05 * 0.95)
    assert n_used >= 21


def test_groups_of_single_rows_change_no_verdict():
    """Their design effect is 1, but for chance and for what the model has misfitted."""
    X, y, places, _ = make_visits(0, 1, 2000, has_shortcut=True)
    plain, grouped = (
        InvariantTreeClassifier(n_jobs=1).fit(X, y, environments=places, groups=groups)
        for groups in (None, np.arange(len(y)))
    )
    assert str(plain.model_) == str(grouped.model_)
    pairs = zip(plain.trace_.rejected_columns, grouped.trace_.rejected_columns, strict=True)
    for one, other in pairs:
        assert one.rule == other.rule
        assert other.heterogeneity_share == pytest.approx(one.heterogeneity_share, rel=0.3)


def test_a_group_is_drawn_whole():
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(50), 6))
    rng = np.random.default_rng(1)
    drawn = draw_rows(groups, rng)
    assert {*np.unique(groups[drawn], return_counts=True)[1]} == {6}
    assert drawn.sum() == 6 * round(0.632 * 50)


def test_a_forest_does_not_predict_a_patient_from_his_other_visits():
    """Out of bag: an age that identifies the patient is no information with groups."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(200), 8)
    y, places = rng.integers(0, 2, 200)[patients], rng.integers(0, 3, 200)[patients]
    X = rng.permutation(200)[patients, np.newaxis].astype(float)
    settings = {"n_estimators": 20, "tolerance": None, "max_leaves": 100, "max_thresholds": None}
    aucs = []
    for groups in (None, patients):
        forest = InvariantForestClassifier(**settings, random_state=0, n_jobs=1)
        forest.fit(X, y, environments=places, groups=groups)
        aucs.append(forest.out_of_bag_["auc"].iloc[0])
    assert aucs[0] > 0.75
    assert aucs[1] < 0.6
