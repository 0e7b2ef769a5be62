"""Resampling without binning again counts what learning from those rows would count."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from icscm import (
    ICSCMClassifier,
    InvariantForestClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    stability_selection,
)
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError, UnstableModelWarning
from icscm.report.page import make_report
from icscm.sources.memory import make_memory_source
from icscm.sources.stored import StoredRows
from icscm.testing import check_row_source
from icscm.validation.stability import Units, draw_subsample
from support.sources import countable, draw_cuts, make_literal


@settings(max_examples=150, deadline=None)
@given(countable(), st.sampled_from([1, 3, None]), st.booleans())
def test_some_rows_are_counted_as_if_there_were_no_others(table, max_thresholds, used):
    """Also when the source they come from, or another of its parts, has been used up."""
    coded, labels, environments, environment_labels, rng = table
    X = coded.values
    source = make_memory_source(
        coded,
        labels,
        environments,
        environment_labels=environment_labels,
        max_thresholds=max_thresholds,
        n_jobs=1,
    )
    cuts = draw_cuts(source, rng)
    rows = np.flatnonzero(rng.random(len(X)) < rng.random())
    if len(rows) == 0:
        rows = np.array([0])
    if used:
        for each in (source, source.rows.take(rng.permutation(len(X))[: len(X) // 2 + 1])):
            path = tuple(source.columns.make_binned_rule(cut) for cut in cuts[:1])
            list(each.count_cubes(path))
    some = source.rows.take(rng.permutation(rows))
    literal = make_literal(source, X[rows], labels[rows], environments[rows])
    check_row_source(some, literal, cuts)
    if not used:  # and the source does not know of it
        check_row_source(source, make_literal(source, X, labels, environments), cuts)


def test_a_part_of_a_part():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(0, 2, (90, 2)), rng.integers(0, 9, (90, 2))))
    labels, environments = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    source = make_memory_source(X, labels, environments, environment_labels=(0, 1))
    part = source.rows.take(np.arange(60)).rows.take(np.arange(30, 90))  # those in both
    rows = np.arange(30, 60)
    literal = make_literal(source, X[rows], labels[rows], environments[rows])
    check_row_source(part, literal, draw_cuts(source, rng))


def make_table(rng, n_rows=400):
    """Few values, so that every subsample holds them all and thresholds coincide."""
    X = pd.DataFrame(
        np.column_stack((rng.integers(0, 2, (n_rows, 3)), rng.integers(0, 4, (n_rows, 3)))),
        columns=list("abcdef"),
    )
    y = ((X["a"] > 0) & (X["d"] > 1)).to_numpy() ^ (rng.random(n_rows) < 0.2)
    return X, np.where(y, "yes", "no"), rng.integers(0, 3, n_rows)


@pytest.mark.parametrize(
    "learner",
    [
        SCMClassifier(max_rules=3),
        SCMClassifier(model_type="disjunction", p=0.5, max_rules=3),
        ICSCMClassifier(),
        ICSCMClassifier(stop="coverage", test="g", max_rules=4),
        ICSCMClassifier(search="exhaustive", alpha="auto"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_frequencies_are_those_of_fitting_each_subsample(learner):
    X, y, environments = make_table(np.random.default_rng(3))
    found = stability_selection(
        learner, X, y, environments=environments, n_resamples=12, random_state=7
    )
    members = [np.flatnonzero(environments == k) for k in pd.unique(environments)]
    rng = np.random.default_rng(7)
    features, rules = dict.fromkeys(X.columns, 0), {}
    for _ in range(12):
        rows = draw_subsample(Units(np.arange(len(y)), members), rng)
        fitted = learner.fit(X.iloc[rows], y[rows], environments=environments[rows])
        for feature in fitted.features_used_:
            features[feature] += 1
        for rule in map(str, fitted.rules_):
            rules[rule] = rules.get(rule, 0) + 1
    assert rules
    assert found.feature_frequencies == {name: n / 12 for name, n in features.items()}
    assert found.rule_frequencies == {rule: n / 12 for rule, n in rules.items()}
    assert found.mean_features == pytest.approx(sum(features.values()) / 12)
    assert found.error_bound == pytest.approx(found.mean_features**2 / (0.2 * 6))


def test_the_parents_are_stable():
    data = make_conjunction(4000, 5, random_state=0)
    learner = ICSCMClassifier(search="exhaustive")
    found = stability_selection(
        learner, data.X, data.y, environments=data.environments, n_resamples=20, random_state=0
    )
    assert set(found.stable_features) == {"A1", "A2"}
    frame = found.to_frame()
    assert frame["feature"].tolist()[:2] == found.stable_features
    assert frame["stable"].sum() == 2
    assert frame["frequency"].is_monotonic_decreasing
    assert len(frame) == data.X.shape[1]
    assert not hasattr(learner, "model_")  # the caller's own is not fitted
    again = stability_selection(
        learner, data.X, data.y, environments=data.environments, n_resamples=20, random_state=0
    )
    assert again == found


def test_subsamples_hold_half_of_each_environment():
    members = [np.array([3]), np.array([0, 1, 2, 4, 5]), np.arange(6, 16)]
    drawn = draw_subsample(Units(np.arange(16), members), np.random.default_rng(0))
    assert len(np.unique(drawn)) == len(drawn)
    assert [np.isin(rows, drawn).sum() for rows in members] == [1, 2, 5]


def test_a_subsample_without_a_class_chooses_nothing():
    """One positive sample of 40 is in about half of the subsamples."""
    X = np.repeat([[0], [1]], [39, 1], axis=0)
    found = stability_selection(
        SCMClassifier(), X, X[:, 0], environments=None, n_resamples=100, random_state=0
    )
    assert 0.3 < found.feature_frequencies[0] < 0.7
    assert found.rule_frequencies == {"x0 > 0": found.feature_frequencies[0]}


def test_memory_does_not_grow_with_the_resamples():
    X, y, environments = make_table(np.random.default_rng(0), 2000)
    peaks = []
    for n_resamples in (2, 20):
        tracemalloc.start()
        stability_selection(
            SCMClassifier(n_jobs=1),
            X,
            y,
            environments=environments,
            n_resamples=n_resamples,
            threshold=0.6,
            random_state=0,
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 0.5}, "threshold must be a number above 0.5"),
        ({"threshold": 1.1}, "threshold must be"),
        ({"threshold": "high"}, "threshold must be"),
        ({"n_resamples": 0}, "n_resamples must be a whole number"),
        ({"estimator": LogisticRegression()}, "LogisticRegression"),
        ({"estimator": SCMClassifier(p=-1)}, "p must be"),
        ({"environments": None}, "environments is None"),
        ({"environments": np.zeros(400)}, "single environment"),
        ({"environments": np.zeros(3)}, "3 entries but X has 400 rows"),
    ],
)
def test_errors(arguments, message):
    X, y, environments = make_table(np.random.default_rng(0))
    usual = {"estimator": ICSCMClassifier(), "X": X, "y": y, "environments": environments}
    with pytest.raises(IcscmError, match=message):
        stability_selection(**(usual | arguments))


@pytest.mark.filterwarnings("ignore:Dropped:icscm.exceptions.LeftOutWarning")
def test_only_usable_features_count_for_the_error_bound():
    """The bound counted all columns: 30 constant ones took it from 2.41 to 0.40."""
    data = make_conjunction(500, 2, random_state=1)
    padded = data.X.assign(**{f"constant{k}": 0 for k in range(30)})
    found = [
        stability_selection(
            learner, X, data.y, environments=None, n_resamples=10, random_state=0
        ).error_bound
        for learner, X in (
            (SCMClassifier(), data.X),
            (SCMClassifier(), padded.to_numpy()),
            (SCMClassifier(), padded),
        )
    ]
    assert found == [found[0]] * 3
    assert found[0] > 0


def test_the_models_of_the_subsamples_are_counted():
    """How often features came back was told, but not which models came instead."""
    data = make_conjunction(4000, 5, random_state=0)
    samples = data.X, data.y, data.environments
    learner = ICSCMClassifier(search="exhaustive")
    found = stability_selection(
        learner, *samples[:2], environments=samples[2], n_resamples=20, random_state=0
    )
    assert sum(each.frequency for each in found.models) == pytest.approx(1.0)
    assert len({each.text for each in found.models}) == len(found.models)
    assert found.model == learner.fit(*samples[:2], environments=samples[2]).model_
    (own,) = [each for each in found.models if each.is_own]
    assert (own.features, own.frequency) == ({"A1", "A2"}, found.model_frequency)
    assert found.model_frequency >= 0.5
    assert found.columns_frequency >= found.model_frequency
    described = found.describe()
    assert described["models"][0] == {"text": str(found.model), "frequency": own.frequency,
                                      "is_own": True}  # fmt: skip
    assert [each["is_own"] for each in described["rules"][:2]] == [True, True]


def test_the_order_of_rules_makes_no_other_model():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 2))
    y = X.all(axis=1).astype(int)
    found = stability_selection(
        SCMClassifier(), X, y, environments=None, n_resamples=20, random_state=0
    )
    assert [(each.frequency, each.is_own) for each in found.models] == [(1.0, True)]


def test_an_unstable_model_is_warned_of():
    X, y, environments = make_table(np.random.default_rng(0))
    with pytest.warns(UnstableModelWarning, match=r"was found in \d+ of 10 random subsamples"):
        found = stability_selection(
            SCMClassifier(), X, y, environments=environments, n_resamples=10, random_state=0
        )
    assert found.model_frequency < 0.5


@pytest.mark.parametrize(
    "learner",
    [InvariantTreeClassifier(), InvariantForestClassifier(n_estimators=5, random_state=0)],
    ids=["tree", "forest"],
)
@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_trees_and_forests_are_grown_on_each_subsample(learner):
    """Only rules were taken; a tree once failed with an AttributeError."""
    X, y, environments = make_table(np.random.default_rng(3), 1200)
    found = stability_selection(
        learner, X, y, environments=environments, n_resamples=4, random_state=5
    )
    members = [np.flatnonzero(environments == k) for k in pd.unique(environments)]
    rng, counts = np.random.default_rng(5), dict.fromkeys(X.columns, 0)
    for _ in range(4):
        rows = draw_subsample(Units(np.arange(len(y)), members), rng)
        learner.fit(X.iloc[rows], y[rows], environments=environments[rows])
        for name in learner.features_used_:
            counts[name] += 1
    assert found.feature_frequencies == {name: n / 4 for name, n in counts.items()}
    learner.fit(X, y, environments=environments)
    assert found.model == learner.model_
    assert found.columns_frequency > 0
    own = [each for each in found.models if each.is_own]
    assert sum(each.frequency for each in found.models) == pytest.approx(1)
    assert all(each.text.startswith(found.model.kind) for each in own)
    if found.model.kind == "forest":
        assert found.rule_frequencies == {}
    text = make_report(learner, stability=found).to_dict()["stability"]["text"]
    assert text.startswith("Of 4 random subsamples with half of the samples, ")


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_halves_are_halves_of_groups(monkeypatch):
    """All visits of a patient are in a subsample or out of it; half of the patients of a site."""
    rng = np.random.default_rng(0)
    groups, seen = np.repeat(np.arange(40), 10), []

    def take(self, table_rows, n_threads=None):
        seen.append(table_rows)
        return original(self, table_rows, n_threads)

    original = StoredRows.take
    monkeypatch.setattr(StoredRows, "take", take)
    X, y = rng.integers(0, 2, (400, 3)), rng.integers(0, 2, 400)
    environments = (groups >= 10).astype(int)
    more = {"n_resamples": 7, "random_state": 0, "groups": groups}
    stability_selection(SCMClassifier(n_jobs=1), X, y, environments=environments, **more)
    halves = [rows for rows in seen if len(rows) < 400]
    assert len(halves) == 7
    for rows in halves:
        drawn, n_rows = np.unique(groups[rows], return_counts=True)
        assert (n_rows == 10).all()
        assert ((drawn < 10).sum(), (drawn >= 10).sum()) == (5, 15)
