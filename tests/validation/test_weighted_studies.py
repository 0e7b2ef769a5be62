"""Weights in studies: a row of weight 3 counts as three rows, and intervals know that it is one."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from icscm import (
    ICSCMClassifier,
    check_environments,
    evaluate,
    leave_one_environment_out,
)
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError
from icscm.stats.design_effects import SampledRows, compute_effective_sizes
from icscm.validation.tuning import choose_threshold, grid_search


@pytest.fixture(scope="module")
def table():
    data = make_conjunction(150, n_environments=3, random_state=1)
    weights = np.random.default_rng(0).integers(1, 4, len(data.y))
    return data, weights


def repeat(data, weights):
    """The table with each row as often as its weight says, and the number of the row as a group."""
    rows = np.repeat(np.arange(len(weights)), weights)
    return (
        data.X.iloc[rows].reset_index(drop=True),
        np.asarray(data.y)[rows],
        np.asarray(data.environments)[rows],
        rows,
    )


def test_left_out_scores_are_those_of_repeated_rows(table):
    """`leave_one_environment_out` took no weights."""
    data, weights = table
    learner = LogisticRegression(C=np.inf)  # a penalty would depend on the number of rows
    scorers = ["auc", "brier", "error", "skill"]
    weighted = leave_one_environment_out(
        learner,
        data.X,
        data.y,
        environments=data.environments,
        sample_weight=weights,
        scorers=scorers,
    )
    X, y, environments, rows = repeat(data, weights)
    repeated = leave_one_environment_out(
        learner, X, y, environments=environments, groups=rows, scorers=scorers
    )
    for own, other in zip(weighted.held_out, repeated.held_out, strict=True):
        for name in scorers:
            assert own.scores[name].value == pytest.approx(other.scores[name].value, abs=1e-6)
            assert own.scores[name].low == pytest.approx(other.scores[name].low, abs=1e-5)
    unweighted = leave_one_environment_out(
        learner, data.X, data.y, environments=data.environments, scorers=scorers
    )
    assert weighted.mean_scores["brier"] != unweighted.mean_scores["brier"]


def test_only_ratios_of_weights_matter(table):
    data, weights = table
    arguments = {"environments": data.environments, "scorers": ["auc", "brier"]}
    learner = ICSCMClassifier()
    first = leave_one_environment_out(learner, data.X, data.y, sample_weight=weights, **arguments)
    second = leave_one_environment_out(
        learner, data.X, data.y, sample_weight=7 * weights, **arguments
    )
    assert first.to_dict() == second.to_dict()


def test_numbers_and_functions_are_weighted_too(table):
    data, weights = table
    arguments = {"environments": data.environments, "sample_weight": weights}
    numbers = data.X["A1"] + 0.5 * np.asarray(data.y)
    weighted = leave_one_environment_out(Ridge(), data.X[["A2", "C1"]], numbers, **arguments)
    assert {"r2", "rmse"} == set(weighted.mean_scores)

    def measure_rate(estimator, X, y):
        del estimator, X
        return float(np.mean(y == 1))

    rates = leave_one_environment_out(
        LogisticRegression(), data.X, data.y, scorers={"rate": measure_rate}, **arguments
    )
    for place in rates.held_out:
        rows = np.asarray(data.environments) == place.environment
        expected = np.average(np.asarray(data.y)[rows] == 1, weights=weights[rows])
        assert place.scores["rate"].value == pytest.approx(expected)


def test_learners_without_weights_say_so(table):
    data, weights = table
    with pytest.raises(IcscmError, match="KNeighborsClassifier takes no sample_weight; omit"):
        leave_one_environment_out(
            KNeighborsClassifier(),
            data.X,
            data.y,
            environments=data.environments,
            sample_weight=weights,
        )


@pytest.mark.parametrize("model", ["ours", "another"])
def test_an_evaluation_is_that_of_repeated_rows(table, model):
    data, weights = table
    learner = ICSCMClassifier() if model == "ours" else LogisticRegression()
    options = {"environments": data.environments} if model == "ours" else {}
    learner.fit(data.X, data.y, **options)
    weighted = evaluate(
        learner, data.X, data.y, environments=data.environments, sample_weight=5.0 * weights
    )
    X, y, environments, rows = repeat(data, weights)
    repeated = evaluate(learner, X, y, environments=environments, groups=rows)
    assert weighted.overall == repeated.overall
    assert weighted.environments == repeated.environments
    assert weighted.leaves == repeated.leaves
    n_counted = weights.sum()
    assert any(f"450 rows as {n_counted:,}." in note for note in weighted.notes)


def test_parameters_and_thresholds_are_chosen_by_weighted_rows(table):
    data, weights = table
    rows = {"X": data.X, "y": data.y, "environments": data.environments}
    heavy = np.where(np.asarray(data.y) == 1, 20.0, 1.0)
    plain = choose_threshold(LogisticRegression(), **rows, threshold="youden")
    weighted = choose_threshold(
        LogisticRegression(), **rows, threshold="youden", sample_weight=heavy
    )
    assert weighted > plain
    searched = grid_search(ICSCMClassifier(), **rows, grid={"p": [1, 2]}, sample_weight=weights)
    unweighted = grid_search(ICSCMClassifier(), **rows, grid={"p": [1, 2]})
    assert searched.scores != unweighted.scores


# --- the check-up ---------------------------------------------------------------------------------


def make_sample(n_clusters, cluster_size, likeness, seed):
    """Clusters of rows whose outcomes are alike, in one environment."""
    rng = np.random.default_rng(seed)
    shared = np.repeat(rng.normal(size=n_clusters), cluster_size)
    values = np.sqrt(likeness) * shared + np.sqrt(1 - likeness) * rng.normal(size=len(shared))
    clusters = np.repeat(np.arange(n_clusters), cluster_size)
    return values, clusters


@pytest.mark.parametrize("likeness", [0.0, 0.3, 1.0])
def test_the_effective_size_is_that_of_kishs_formula(likeness):
    values, clusters = make_sample(2_000, 5, likeness, seed=0)
    rows = SampledRows(np.zeros(10_000, dtype=int), 1, np.ones(10_000), clusters)
    (size,) = compute_effective_sizes(values[:, np.newaxis], rows)
    assert size == pytest.approx(10_000 / (1 + 4 * likeness), rel=0.08)


def test_weights_that_differ_tell_less():
    rng = np.random.default_rng(0)
    weights = rng.gamma(1, size=20_000)
    values = rng.normal(size=(20_000, 1))
    rows = SampledRows(np.zeros(20_000, dtype=int), 1, weights, np.arange(20_000))
    (size,) = compute_effective_sizes(values, rows)
    assert size == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=0.05)


def make_clustered(kind, seed=0, n_clusters=60):
    rng = np.random.default_rng(seed)
    values, clusters = make_sample(3 * n_clusters, 5, 0.8, seed)
    environments = clusters % 3
    X = pd.DataFrame({"noise": rng.normal(size=len(values))})
    if kind == "number":
        return X, values, environments, clusters
    return X, np.digitize(values, [0.0] if kind == "two" else [-0.7, 0.7]), environments, clusters


@pytest.mark.parametrize("kind", ["two", "several", "number"])
def test_groups_keep_the_level_of_the_test_of_the_outcome(kind):
    """Five visits of a patient were five patients to `check_environments`."""
    found = {"grouped": 0, "alone": 0}
    for seed in range(100):
        X, y, environments, clusters = make_clustered(kind, seed)
        grouped = check_environments(X, y, environments=environments, groups=clusters)
        alone = check_environments(X, y, environments=environments)
        found["grouped"] += grouped.p_value < 0.05
        found["alone"] += alone.p_value < 0.05
    assert found["grouped"] <= 12
    assert found["alone"] >= 25


@pytest.mark.parametrize("kind", ["two", "several", "number"])
def test_groups_and_weights_in_a_check_up(kind):
    X, y, environments, clusters = make_clustered(kind)
    X["patient"] = clusters
    weights = np.random.default_rng(0).gamma(1, size=len(y))
    plain = check_environments(X[["noise"]], y, environments=environments)
    grouped = check_environments(X, y, environments=environments, groups="patient")
    weighted = check_environments(X[["noise"]], y, environments=environments, sample_weight=weights)
    for other in (grouped, weighted):
        assert other.n_rows == plain.n_rows
        assert other.power[0].n_rows == pytest.approx(plain.power[0].n_rows, abs=3)
        assert other.power[0].difference > plain.power[0].difference
        assert "rows tell as much about the outcome as" in other.advice[0]
    rows = environments == 0
    place = weighted.environments[0]
    if kind == "number":
        assert place.mean == pytest.approx(np.average(y[rows], weights=weights[rows]))
    elif kind == "two":
        assert place.rate == pytest.approx(np.average(y[rows] == 1, weights=weights[rows]))
        assert place.n_positive == (y[rows] == 1).sum()
    else:
        expected = [np.average(y[rows] == k, weights=weights[rows]) for k in range(3)]
        assert place.shares == pytest.approx(expected)
    scaled = check_environments(
        X[["noise"]], y, environments=environments, sample_weight=1e9 * weights
    )
    assert scaled.p_value == pytest.approx(weighted.p_value)
    same = check_environments(
        X[["noise"]], y, environments=environments, sample_weight=np.ones(len(y))
    )
    assert same.p_value == pytest.approx(plain.p_value, rel=0.1)


def test_weights_of_an_absent_environment_are_an_error():
    X, y, environments, _ = make_clustered("two")
    with pytest.raises(IcscmError, match="sample_weight is 0 in every row of environment 1"):
        check_environments(X, y, environments=environments, sample_weight=environments != 1)


def test_means_of_groups_have_the_interval_of_their_means():
    X, y, environments, clusters = make_clustered("number")
    found = check_environments(X, y, environments=environments, groups=clusters)
    rows = environments == 2
    means = pd.Series(y[rows]).groupby(clusters[rows]).mean()
    low, high = stats.t.interval(0.95, len(means) - 1, loc=means.mean(), scale=stats.sem(means))
    assert found.environments[2].mean_interval == pytest.approx((low, high), abs=0.03)
