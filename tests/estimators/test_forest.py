"""The forest: features judged once, rows drawn without replacement, scores on rows left out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from icscm import InvariantForestClassifier, InvariantTreeClassifier, load
from icscm.exceptions import IcscmError, NoEnvironmentsWarning, NothingFoundWarning
from icscm.search.forest import DRAWN_SHARE
from icscm.sources.bits.opening import open_bits
from icscm.sources.bits.packing import pack_matrix
from icscm.validation.importances import permutation_importance
from icscm.validation.scores import score_calibration


def make_table(n=4000, n_environments=5, seed=0):
    """Two causes, whose effects are the same everywhere, and a habit that is not."""
    rng = np.random.default_rng(seed)
    environment = rng.integers(0, n_environments, n)
    age, dose, noise = rng.normal(size=(3, n))
    chance = 1 / (1 + np.exp(-(1.5 * (age > 0) + 1.2 * (dose > 0.3) - 1.4 + 0.3 * environment)))
    y = (rng.random(n) < chance).astype(int)
    agrees = rng.random(n) < np.linspace(0.95, 0.4, n_environments)[environment]
    habit = np.where(agrees, y, rng.integers(0, 2, n))
    X = pd.DataFrame({"age": age, "dose": dose, "noise": noise, "habit": habit})
    return X, y, environment


def make_forest(**parameters):
    return InvariantForestClassifier(**{"n_estimators": 12, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def fitted():
    """A forest that must not be changed, with its data."""
    X, y, environment = make_table(1000)
    return make_forest().fit(X, y, environments=environment), X, y, environment


def test_no_tree_uses_a_habit_that_a_plain_forest_uses():
    X, y, environment = make_table()
    forest = make_forest().fit(X, y, environments=environment)
    plain = make_forest(tolerance=None).fit(X, y, environments=environment)
    assert set(forest.features_used_) == {"age", "dose"}
    assert min(forest.model_.count_uses().values()) > 0.3 * len(forest.model_.trees)
    assert "habit" in plain.features_used_
    assert [look.candidate.rule.feature for look in forest.trace_.leaves[0].best_rejected] == [
        "habit"
    ]


def test_threads_make_no_difference_and_seeds_do():
    X, y, environment = make_table(1000)
    alone, threaded = (
        make_forest(n_estimators=6, n_jobs=n_jobs).fit(X, y, environments=environment)
        for n_jobs in (1, 3)
    )
    assert threaded.model_ == alone.model_
    pd.testing.assert_frame_equal(threaded.out_of_bag_, alone.out_of_bag_)
    other = make_forest(n_estimators=6, random_state=1).fit(X, y, environments=environment)
    assert other.model_ != alone.model_


def test_the_probability_is_the_calibrated_mean_of_the_trees(fitted):
    forest, X, _, _ = fitted
    means = np.mean([tree.predict_proba(X) for tree in forest.model_.trees], axis=0)
    intercept, slope = forest.calibration_.calibration
    assert (intercept, slope) == forest.model_.calibration != (0.0, 1.0)
    chances = 1 / (1 + np.exp(-intercept) * (1 / means - 1) ** slope)
    np.testing.assert_allclose(forest.predict_proba(X)[:, 1], chances, rtol=1e-12)
    np.testing.assert_array_equal(forest.predict(X), (chances > 0.5).astype(int))


def make_rare(n, seed):
    """A label of 11 %, common where two columns are large; intercepts differ by environment."""
    rng = np.random.default_rng(seed)
    environment, X = rng.integers(0, 6, n), rng.normal(size=(n, 6)).round(2)
    odds = np.where((X[:, 0] > 0.8) & (X[:, 1] > 0.3), 9.0, 0.012)
    odds = odds * np.exp(rng.normal(0, 0.3, 6))[environment]
    return X, (rng.random(n) < odds / (1 + odds)).astype(int), environment


def test_forests_are_as_sure_as_they_may_be():
    """Means over trees were nearer to 1/2 than rates: slopes in new environments of 1.3 to 2.3.

    Of a rare label no row was predicted positive (balanced accuracy 0.5, of a tree 0.93), and the
    tenth of the rows with the highest probabilities had more positives than predicted.
    """
    (X, y, e), (new, truth, _) = make_rare(4000, 1), make_rare(4000, 2)
    forest = InvariantForestClassifier(n_estimators=50, random_state=0).fit(X, y, environments=e)
    tree = InvariantTreeClassifier().fit(X, y, environments=e)
    raw = replace(forest.model_, calibration=(0.0, 1.0))
    scores = [balanced_accuracy_score(truth, each.predict(new)) for each in (forest, tree, raw)]
    assert scores[2] < 0.75 < 0.9 < min(scores[:2])
    chance = forest.predict_proba(new)[:, 1]
    slope = score_calibration(truth, chance).slope
    before = score_calibration(truth, raw.predict_proba(new)).slope
    assert 0.8 < slope.value < 1.25 < 2 < before.value
    top = np.argsort(chance)[-400:]
    assert truth[top].mean() == pytest.approx(chance[top].mean(), abs=0.1)
    assert truth[top].mean() > raw.predict_proba(new)[top].mean() + 0.2


def test_predictions_that_do_not_rank_are_not_calibrated():
    """Out of bag, the mean of noise is lower for positives: its slope would be negative."""
    rng = np.random.default_rng(0)
    X, y, e = rng.normal(size=(300, 2)), rng.integers(0, 2, 300), rng.integers(0, 3, 300)
    with pytest.warns(NothingFoundWarning):
        forest = make_forest().fit(X, y, environments=e)
    assert forest.calibration_ is None
    assert not forest.model_.is_calibrated


def test_rows_are_drawn_without_replacement(fitted):
    forest = fitted[0]
    sizes = {sum(np.sum(leaf) for leaf in tree.leaves) for tree in forest.model_.trees}
    assert sizes == {round(DRAWN_SHARE * 1000)}


def find_out_of_bag(X, y, environment):
    """The slow, literal version: draw as the forest draws, predict rows, average."""
    forest = make_forest(min_samples_leaf=0.02)
    forest.fit(X, y, environments=environment)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    votes, n_votes = np.zeros((2, len(y)))
    for rng, tree in zip(np.random.default_rng(seed).spawn(12), forest.model_.trees, strict=True):
        n = round(DRAWN_SHARE * len(y))
        seen = rng.choice(len(y), n, replace=False, shuffle=False)
        left_out = np.setdiff1d(np.arange(len(y)), seen)
        votes[left_out] += tree.predict_proba(X)[left_out]
        n_votes[left_out] += 1
    return forest, votes, n_votes


def test_scores_out_of_bag_are_those_of_trees_that_did_not_see_the_row():
    X, y, environment = make_table(800)
    forest, votes, n_votes = find_out_of_bag(X, y, environment)
    known = n_votes > 0
    found = forest.out_of_bag_
    assert list(found.index) == ["all", 0, 1, 2, 3, 4]
    assert found.loc["all", "n"] == known.sum()
    wanted = roc_auc_score(y[known], (votes / np.maximum(n_votes, 1))[known])
    assert found.loc["all", "auc"] == pytest.approx(wanted, abs=1e-12)
    own = known & (environment == 3)
    right = forest.model_.is_positive(forest.model_.calibrate(votes[own] / n_votes[own])) == y[own]
    assert found.loc[3, "accuracy"] == pytest.approx(right.mean())


def test_a_file_gives_the_same_forest(tmp_path):
    X, y, environment = make_table(1200)
    forest = make_forest().fit(X, y, environments=environment)
    X.assign(ill=y, clinic=environment).to_parquet(tmp_path / "t.parquet")
    read = make_forest().fit_dataset(tmp_path / "t.parquet", "ill", environments="clinic")
    assert read.model_ == forest.model_
    forest.save(tmp_path / "forest.json")
    np.testing.assert_array_equal(
        load(tmp_path / "forest.json").predict_proba(X), forest.predict_proba(X)
    )


def test_packed_bits_give_the_same_forest(tmp_path):
    rng = np.random.default_rng(0)
    X, environment = rng.integers(0, 2, (600, 8)), rng.integers(0, 3, 600)
    y = (rng.random(600) < np.where(X[:, 0] & X[:, 3], 0.8, 0.2)).astype(int)
    samples = [f"s{i}" for i in range(600)]
    pack_matrix(X, tmp_path / "t.bits", samples=samples)
    labels = pd.DataFrame({"sample": samples, "ill": y, "clinic": environment})
    opened = open_bits(
        tmp_path / "t.bits", labels, "ill", environments="clinic", sample_column="sample"
    )
    packed = make_forest().fit_counts(opened)
    table = make_forest().fit(X, y, environments=environment)
    pairs = zip(packed.model_.trees, table.model_.trees, strict=True)
    assert all(one.leaves == other.leaves for one, other in pairs)
    assert any(tree.splits for tree in packed.model_.trees)
    pd.testing.assert_frame_equal(packed.out_of_bag_, table.out_of_bag_)


def test_without_environments_it_is_a_plain_forest_and_says_so():
    X, y, environment = make_table(800)
    with pytest.warns(NoEnvironmentsWarning, match="plain"):
        forest = make_forest(n_estimators=3).fit(X, y)
    assert "habit" in forest.features_used_
    assert forest.tolerance_ is None
    assert forest.environments_ is None
    del environment


def test_a_forest_without_a_split_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    with pytest.warns(NothingFoundWarning, match="No tree"):
        make_forest(n_estimators=3).fit(X, y, environments=np.arange(300) % 3)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"n_estimators": 0}, "n_estimators must be a whole number from 1 to 100000"),
        ({"max_features": 0}, "max_features must be a number above 0 and at most 1"),
        ({"tolerance": -1}, "tolerance must be 'auto', None or a finite number"),
        ({"min_samples_leaf": 1.5}, "min_samples_leaf must be a share from 0 to 1"),
    ],
)
def test_parameters_that_cannot_be_used(parameters, told):
    X, y, environment = make_table(200)
    with pytest.raises(IcscmError, match=told):
        make_forest(**parameters).fit(X, y, environments=environment)


@pytest.mark.thorough
def test_a_feature_refused_on_all_rows_is_refused_by_every_tree():
    """A tree on fewer rows might let a habit in; judged once on all rows, none does."""
    X, y, environment = make_table(2000, seed=3)
    tree = InvariantTreeClassifier().fit(X, y, environments=environment)
    forest = make_forest(n_estimators=60, max_features=1.0).fit(X, y, environments=environment)
    assert "habit" not in tree.features_used_
    assert "habit" not in forest.features_used_


@pytest.mark.parametrize(
    ("n_seeds", "least"), [(2, 3), pytest.param(4, 6, marks=pytest.mark.thorough)]
)
def test_no_tree_uses_a_column_that_the_screen_rejects(n_seeds, least):
    """A forest on genomes listed an artefact of sequencing as rejected, and 1 of its 100 trees used
    it: trees judged the columns again, on their own rows. Columns are judged once."""
    n_rejected = 0
    for seed in range(n_seeds):
        X, y, environment = make_table(1_500, seed=seed)
        X["artefact"] = np.where(environment == 0, y, 0)  # nearly in one environment only
        X.loc[np.flatnonzero(environment == 1)[:3], "artefact"] = 1
        forest = make_forest(n_estimators=40).fit(X, y, environments=environment)
        rejected = {column.rule.feature for column in forest.trace_.rejected_columns}
        n_rejected += len(rejected)
        assert "artefact" in rejected
        assert not rejected & set(forest.model_.count_uses())
    assert n_rejected >= least


def test_an_environment_called_all():
    """Its scores stood in the row of all samples, and the report showed one environment less."""
    X, y, place = make_table(1000)
    forests = []
    for last in ("also", "all"):  # the same order
        names = np.array(["aa", "ab", "ac", "ad", last])
        forests.append(make_forest(n_estimators=4).fit(X, y, environments=names[place]))
    scores = [forest.out_of_bag_ for forest in forests]
    assert scores[1].index.tolist() == ["all", "aa", "ab", "ac", "ad", "all"]
    np.testing.assert_array_equal(*scores)
    errors = [forest.report().to_dict()["errors"] for forest in forests]
    assert errors[0]["error"] == errors[1]["error"]
    assert [row["environment"] for row in errors[1]["environments"]] == names.tolist()


def test_the_report_has_importances(fitted):
    forest, X, y, place = fitted
    uses = forest.report().to_dict()["model"]["trees"]["uses"]
    shares = dict(zip(X.columns, forest.feature_importances_, strict=True))
    assert {use["feature"]: use["importance"] for use in uses} == {
        name: share for name, share in shares.items() if share
    }
    assert "auc" not in uses[0]
    found = permutation_importance(forest, X, y, environments=place, n_repeats=3, max_rows=3_000)
    report = forest.report(importances=found)
    trees = report.to_dict()["model"]["trees"]
    frame = found.to_frame().set_index("feature")
    assert trees["n_permuted"] == 1000
    for use in trees["uses"]:
        assert use["auc"] == pytest.approx(frame.loc[use["feature"], "auc"])
        assert use["lowest"][0] <= use["auc"] + 0.1
        assert use["lowest"][0] <= use["highest"][0]
    for text in ("loss of AUC", "1,000 training rows"):
        assert text in report.to_html()
        assert text in report.to_markdown()
