"""Presence and absence: booleans, sparse matrices and packed stores, from rules to predictions."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from icscm import ICSCMClassifier, SCMClassifier, leave_one_environment_out, stability_selection
from icscm.exceptions import IcscmError, NoEnvironmentsWarning, UnseenMissingWarning
from icscm.model.rules import PresenceRule, make_rule
from icscm.sources import open_bits
from icscm.sources.bits.packing import pack_matrix

N, M = 600, 40


@pytest.fixture(scope="module")
def genomes():
    """Genes 0 and 1 cause resistance. 7 is a copy of 0; 5 is everywhere, 6 nowhere."""
    rng = np.random.default_rng(0)
    X = rng.random((N, M)) < 0.5
    X[:, 7], X[:, 5], X[:, 6] = X[:, 0], True, False
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(N) < 0.05)
    return X, np.where(y, "resistant", "sensitive"), np.array(["fr", "uk"])[rng.integers(0, 2, N)]


@pytest.fixture(scope="module")
def names():
    return [f"gene{j}" for j in range(M)]


@pytest.fixture(scope="module")
def samples():
    return [f"g{i}" for i in range(N)]


@pytest.fixture(scope="module")
def store(genomes, names, samples, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "genes.bits"
    pack_matrix(genomes[0], path, names=names, samples=samples)
    return path


@pytest.fixture(scope="module")
def labels(genomes, samples):
    frame = pd.DataFrame({"genome": samples, "label": genomes[1], "country": genomes[2]})
    return frame.sample(frac=1, random_state=0)  # its order does not matter


def fit_labelled(store, labels, learner=None, **options):
    options = {"target": "label", "environments": "country"} | options
    return (learner or ICSCMClassifier()).fit_counts(open_bits(store, labels, **options))


FORMS = [
    sp.csr_array,
    sp.csc_array,
    sp.coo_matrix,
    sp.lil_matrix,
    np.asfortranarray,
    lambda X: sp.csr_array(X.astype(float)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
def test_every_form_gives_the_same_model_and_trace(genomes, form, model_type):
    X, y, e = genomes
    learner = ICSCMClassifier(model_type=model_type, stop="coverage", alpha=0.3)
    wanted = learner.fit(X, y, environments=e)
    fitted = ICSCMClassifier(**learner.get_params()).fit(form(X), y, environments=e)
    assert (fitted.model_, fitted.trace_) == (wanted.model_, wanted.trace_)
    for rows in (form(X), X, X.astype(float)):
        np.testing.assert_array_equal(fitted.predict(rows), wanted.predict(X))
        np.testing.assert_array_equal(fitted.predict_proba(rows), wanted.predict_proba(X))


def test_rules_tell_of_presence_and_copies_are_equivalent(genomes):
    X, y, _ = genomes
    fitted = SCMClassifier(model_type="disjunction", max_rules=2).fit(X, y)
    assert {str(rule) for rule in fitted.rules_} == {"x0 absent", "x1 absent"}
    step = next(s for s in fitted.trace_.steps if s.chosen.rule.column == 0)
    assert [rule.column for rule in step.equivalent] == [7]
    assert step.n_tied == 2
    assert fitted.trace_.steps[0].n_candidates == 2 * (M - 2)


def test_a_packed_store_gives_the_same_model_and_trace(genomes, store, labels, names):
    X, y, e = genomes
    wanted = ICSCMClassifier().fit(X, y, environments=e)
    fitted = fit_labelled(store, labels)
    assert [rule.name for rule in fitted.rules_] == [names[rule.column] for rule in wanted.rules_]
    assert [rule.column for rule in fitted.rules_] == [rule.column for rule in wanted.rules_]
    assert fitted.model_.leaves == wanted.model_.leaves
    for one, other in zip(fitted.trace_.steps, wanted.trace_.steps, strict=True):
        assert one.n_candidates == other.n_candidates
        assert one.n_rejected == other.n_rejected
        assert one.chosen.p_value == other.chosen.p_value
        assert one.n_tied == other.n_tied
        assert [r.column for r in one.equivalent] == [r.column for r in other.equivalent]
    assert fitted.n_features_in_ == M
    assert fitted.classes_.tolist() == ["resistant", "sensitive"]
    for kind in (pd.DataFrame, pl.DataFrame, pa.table):
        for dtype in (bool, int, float):
            frame = kind({name: X[:, j].astype(dtype) for j, name in enumerate(names)})
            np.testing.assert_array_equal(fitted.predict(frame), wanted.predict(X))
    used = pd.DataFrame({name: X[:, names.index(name)] for name in fitted.features_used_})
    np.testing.assert_array_equal(fitted.predict(used), wanted.predict(X))
    np.testing.assert_array_equal(fitted.predict(X), wanted.predict(X))


@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
def test_genomes_without_labels_do_not_count(genomes, store, labels):
    X, y, e = genomes
    some = np.arange(N) % 3 > 0
    wanted = ICSCMClassifier().fit(X[some], y[some], environments=e[some])
    named = set(np.flatnonzero(some))
    part = labels[[int(name[1:]) in named for name in labels["genome"]]]
    for kind in (lambda frame: frame, pl.from_pandas, pa.Table.from_pandas):
        fitted = fit_labelled(store, kind(part), sample_column="genome")
        assert fitted.model_.leaves == wanted.model_.leaves
        assert fitted.trace_.notes == ("200 genomes of the store have no label and are not used.",)


def test_a_fit_that_fails_leaves_the_learner_as_it_was(store, labels):
    learner = fit_labelled(store, labels)
    before = dict(vars(learner))
    twice = pd.concat([labels, labels[:1]])
    unknown = labels.assign(genome=["?", *labels["genome"][1:]])
    for table, options, message in [
        (labels, {"target": "none"}, "no column 'none'"),
        (labels, {"environments": "none"}, "no column 'none'"),
        (labels, {"sample_column": "none"}, "no column 'none'"),
        (unknown, {}, r"not those of the labels: '\?'"),
        (twice, {}, "2 times"),
        (labels.assign(label=None), {}, "missing"),
        (labels.assign(country="fr"), {}, "single environment"),
    ]:
        with pytest.raises(IcscmError, match=message):
            fit_labelled(store, table, learner, **options)
        assert vars(learner) == before


def test_without_environments_it_is_the_plain_learner(genomes, store, labels):
    wanted = SCMClassifier().fit(genomes[0], genomes[1])
    fitted = fit_labelled(store, labels, SCMClassifier(), environments=None)
    assert fitted.model_.leaves == wanted.model_.leaves
    with pytest.warns(NoEnvironmentsWarning):
        fit_labelled(store, labels, environments=None)


def test_resamples_and_transfer_take_sparse_matrices(genomes):
    X, y, e = genomes
    found = [
        stability_selection(
            ICSCMClassifier(), form, y, environments=e, n_resamples=5, random_state=0
        )
        for form in (X, sp.csr_array(X))
    ]
    assert found[0] == found[1]
    reports = [
        leave_one_environment_out(SCMClassifier(), form, y, environments=e)
        for form in (X, sp.csc_array(X))
    ]
    pd.testing.assert_frame_equal(reports[0].to_frame(), reports[1].to_frame())


@pytest.mark.filterwarnings("ignore::icscm.exceptions.TooLittleDataWarning")
@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("value", [2, -1, 0.5, np.nan])
def test_sparse_matrices_of_other_numbers_are_ordinary_tables(genomes, form, value):
    """They were refused, with weights or without: only zeros and ones were learned from."""
    X, y, e = genomes
    dense = X.astype(float)
    dense[np.flatnonzero(X[:, 0])[:40], 0] = value
    weight = np.arange(N) % 3
    for own in (None, weight):
        sparse = ICSCMClassifier().fit(
            sp.csr_array(dense).asformat(form), y, environments=e, sample_weight=own
        )
        expected = ICSCMClassifier().fit(dense, y, environments=e, sample_weight=own)
        assert sparse.trace_ == expected.trace_
        np.testing.assert_array_equal(sparse.predict(sp.csr_array(dense)), expected.predict(dense))


def test_entries_that_add_up_are_other_numbers(genomes):
    X, y, _ = genomes
    rows, columns = np.nonzero(np.hstack((X, X[:, :1])))
    twice = sp.coo_array((np.ones(len(rows)), (rows, columns % M)), shape=X.shape)
    assert twice.toarray().max() == 2
    assert SCMClassifier().fit(twice, y).trace_ == SCMClassifier().fit(twice.toarray(), y).trace_


def test_infinite_sparse_values_are_refused(genomes):
    X, y, _ = genomes
    wrong = sp.csr_array(X.astype(float))
    wrong.data[3] = np.inf
    with pytest.raises(IcscmError, match="infinity in column"):
        SCMClassifier().fit(wrong, y)


def test_a_sparse_matrix_too_large_to_be_dense_is_one_clear_error(genomes, monkeypatch):
    X, y, _ = genomes
    monkeypatch.setattr("icscm.tables.parsing._count_free_bytes", lambda: 1000.0)
    SCMClassifier().fit(sp.csr_array(X), y)
    with pytest.raises(IcscmError, match=r"sparse and holds values other .* 0\.0 GB .* free"):
        SCMClassifier().fit(2.0 * sp.csr_array(X), y)


class TestPresenceRule:
    """The rule by itself."""

    rule = PresenceRule(column=1, name="mecA", present=True)

    def test_it_survives_a_round_trip(self):
        assert make_rule(self.rule.to_dict()) == self.rule
        assert self.rule.negate().negate() == self.rule
        assert self.rule.feature == "mecA"

    def test_counts_of_copies_are_presence(self):
        X = np.array([[0, 0], [0, 3], [0, 1]])
        assert self.rule.mask(X).tolist() == [False, True, True]
        assert self.rule.negate().mask(sp.csr_array(X)).tolist() == [True, False, False]

    def test_a_missing_value_is_neither(self):
        """The warning wrote names in small letters, and "1 rows"."""
        frame = pd.DataFrame({"mecA": pd.array([True, None, False], dtype="boolean")})
        for rule in (self.rule, self.rule.negate()):
            with pytest.warns(UnseenMissingWarning, match="Column 'mecA' is missing in 1 row but"):
                truth = rule.mask(frame)
            assert truth.tolist() == [rule.present, False, not rule.present]

    def test_text_is_refused(self):
        with pytest.raises(IcscmError, match="give numbers"):
            self.rule.mask(pd.DataFrame({"mecA": ["yes", "no"]}))
