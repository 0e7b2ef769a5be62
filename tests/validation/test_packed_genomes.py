"""Genomes of a packed store are validated as the same table in memory is, bit for bit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    check_environments,
    leave_one_environment_out,
    stability_selection,
)
from icscm.exceptions import IcscmError
from icscm.sources import open_genomes
from icscm.sources.bits.packing import pack_matrix
from icscm.validation.importances import permutation_importance
from icscm.validation.tuning import choose_threshold, grid_search

pytestmark = pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")

N_ROWS = 240
N_COLUMNS = 30
SAMPLES = [f"g{row}" for row in range(N_ROWS)]
NAMES = [f"gene{column}" for column in range(N_COLUMNS)]

LEARNERS = {
    "rule": ICSCMClassifier(),
    "auto": ICSCMClassifier(model_type="auto", alpha="auto"),
    "scm": SCMClassifier(),
    "tree": InvariantTreeClassifier(),
    "forest": InvariantForestClassifier(n_estimators=5, random_state=0),
}


@pytest.fixture(scope="module")
def table():
    """Genes 0 and 1 cause resistance, 2 is a shortcut, 7 a copy of 0, 5 everywhere, 6 nowhere."""
    rng = np.random.default_rng(3)
    X = rng.random((N_ROWS, N_COLUMNS)) < 0.5
    environments = rng.integers(0, 3, N_ROWS)
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(N_ROWS) < 0.05)
    X[:, 2] = y ^ (rng.random(N_ROWS) < np.array([0.1, 0.4, 0.8])[environments])
    X[:, 7], X[:, 5], X[:, 6] = X[:, 0], True, False
    lineages = 20 * environments + rng.integers(0, 20, N_ROWS)
    lineages[:6] = 0  # some genomes of this lineage are in other environments
    labels = {
        "y": np.where(y, "resistant", "sensitive"),
        "environments": np.array(["fr", "it", "uk"])[environments],
    }
    return X, labels, lineages


@pytest.fixture(scope="module")
def store(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "genes.bits"
    pack_matrix(table[0], path, names=NAMES, samples=SAMPLES)
    return path


def list_scores(validation):
    """The scores by environment, without the models, which name columns in a store only."""
    return validation.to_frame().drop(columns="model")


@pytest.mark.parametrize("has_groups", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize("name", LEARNERS)
def test_scores_in_environments_left_out_are_those_of_a_table(table, store, name, has_groups):
    """No row of a store could be left out: `icscm fit genes.bits` ended with an AUC of training."""
    X, labels, lineages = table
    groups = lineages if has_groups else None
    learner = LEARNERS[name]
    expected = leave_one_environment_out(learner, X, **labels, groups=groups)
    validation = leave_one_environment_out(learner, open_genomes(store), **labels, groups=groups)
    pd.testing.assert_frame_equal(list_scores(validation), list_scores(expected), check_exact=True)
    assert validation.pooled == expected.pooled
    assert validation.overall == expected.overall


@pytest.mark.thorough
def test_so_are_those_of_a_score(table, store):
    X, labels, _ = table
    learner = InvariantScoreClassifier(max_terms=2, random_state=0)
    expected = leave_one_environment_out(learner, X, **labels)
    validation = leave_one_environment_out(learner, open_genomes(store), **labels)
    pd.testing.assert_frame_equal(list_scores(validation), list_scores(expected), check_exact=True)


@pytest.mark.parametrize("name", LEARNERS)
def test_fit_and_predict_take_genomes_in_any_order(table, store, name):
    """The rows of the table are those that were asked for, whatever their order in the store."""
    X, labels, lineages = table
    rows = np.random.default_rng(0).permutation(N_ROWS)[:200]
    some_labels = {what: values[rows] for what, values in labels.items()}
    learner = LEARNERS[name]
    genomes = open_genomes(store, [SAMPLES[row] for row in rows])

    expected = learner.fit(X[rows], **some_labels, groups=lineages[rows])
    predicted = expected.predict_proba(X), expected.predict(X)
    leaves = expected.class_counts_
    fitted = learner.fit(genomes, **some_labels, groups=lineages[rows])
    assert fitted.class_counts_ == leaves
    everything = open_genomes(store)
    for from_store, from_table in zip(
        (fitted.predict_proba(everything), fitted.predict(everything)), predicted, strict=True
    ):
        np.testing.assert_array_equal(from_store, from_table)


def test_folds_read_few_columns(table, store, monkeypatch):
    """Predicting reads the columns of the model's rules and no others."""
    _, labels, _ = table
    genomes = open_genomes(store)
    read = set()
    read_feature = genomes.store.read_feature
    monkeypatch.setattr(
        genomes.store, "read_feature", lambda column: read.add(column) or read_feature(column)
    )
    leave_one_environment_out(ICSCMClassifier(), genomes, **labels)
    assert 0 < len(read) < 8


def test_parameters_and_thresholds_are_chosen_in_folds(table, store):
    X, labels, lineages = table
    genomes = open_genomes(store)
    learner = InvariantTreeClassifier()
    labels = labels | {"groups": lineages}
    grid = {"max_leaves": [2, 4]}
    choice = grid_search(learner, genomes, **labels, grid=grid)
    assert choice.scores == grid_search(learner, X, **labels, grid=grid).scores
    threshold = choose_threshold(learner, genomes, **labels, threshold="youden")
    assert threshold == choose_threshold(learner, X, **labels, threshold="youden")


def test_subsamples_are_those_of_a_table(table, store):
    X, labels, lineages = table
    rows = np.random.default_rng(1).permutation(N_ROWS)
    shuffled = {what: values[rows] for what, values in labels.items()}
    shuffled["groups"] = lineages[rows]
    genomes = open_genomes(store, [SAMPLES[row] for row in rows])
    expected, selection = (
        stability_selection(ICSCMClassifier(), table_of_rows, **shuffled, n_resamples=3)
        for table_of_rows in (X[rows], genomes)
    )
    assert selection.columns_frequency == expected.columns_frequency
    assert {NAMES[column] for column in expected.stable_features} == {*selection.stable_features}


def test_what_needs_a_table_in_memory_says_so(table, store):
    """Importances were 0 for every column, and other estimators got an array of no dimension."""
    _, labels, _ = table
    genomes = open_genomes(store)
    tree = InvariantTreeClassifier().fit(genomes, **labels)
    calls = [
        lambda: leave_one_environment_out(LogisticRegression(), genomes, **labels),
        lambda: InvariantFeatureSelector().fit(genomes, **labels),
        lambda: check_environments(genomes, **labels),
        lambda: permutation_importance(tree, genomes, **labels),
    ]
    for call in calls:
        with pytest.raises(IcscmError, match=r"packed store, .*genes\.bits, .* table in memory"):
            call()
    with pytest.raises(IcscmError, match="have no weights; omit sample_weight"):
        ICSCMClassifier().fit(genomes, **labels, sample_weight=np.ones(N_ROWS))
    twice = genomes.take_rows(np.zeros(N_ROWS, dtype=np.int64))
    with pytest.raises(IcscmError, match="more than once"):
        ICSCMClassifier().fit(twice, **labels)


def test_models_of_other_tables_name_what_lacks(table, store, tmp_path):
    X, labels, _ = table
    genomes = open_genomes(store)
    fitted = InvariantTreeClassifier().fit(genomes, **labels)
    other = tmp_path / "other.bits"
    pack_matrix(X[:, 2:], other, names=NAMES[2:], samples=SAMPLES)
    with pytest.raises(IcscmError, match=r"has no column 'gene[01]', which the model needs"):
        fitted.predict(open_genomes(other))
    nameless = tmp_path / "nameless.bits"
    pack_matrix(X[:, 2:], nameless, samples=SAMPLES)
    with pytest.raises(ValueError, match="28 features"):
        fitted.predict(open_genomes(nameless))
    # a column at another place is found by its name
    moved = tmp_path / "moved.bits"
    pack_matrix(X[:, ::-1], moved, names=NAMES[::-1], samples=SAMPLES)
    np.testing.assert_array_equal(
        fitted.predict_proba(open_genomes(moved)), fitted.predict_proba(genomes)
    )
