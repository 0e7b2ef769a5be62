"""A saved model predicts what the estimator did, and a file that is no model is refused."""

import copy
import json
import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from icscm import ICSCMClassifier, SCMClassifier
from icscm.exceptions import IcscmError, UnseenMissingWarning
from icscm.formatting import format_json
from icscm.model.parsing import Feature, compute_fingerprint
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.saved import load, make_saved_model
from support.fitting import fit_all_columns
from support.hostile import HOSTILE_NAMES
from support.saved_models import make_grown_score, make_mixed_table, make_saved, make_saved_tree

AGE = ThresholdRule(0, "age", 63.5, above=True)
SMOKER = CategoryRule(1, "smoker", ("yes",), equal=True, missing=True)
SAVED = make_saved([AGE, SMOKER, MissingRule(1, "smoker", is_missing=False)])


def reload(saved, folder):
    path = folder / "model.json"
    saved.save(path, force=True)
    return load(path)


# --- what a model file holds ----------------------------------------------------------------------


def test_file_holds_the_model(tmp_path):
    found = reload(SAVED, tmp_path)
    assert found == SAVED
    assert str(found) == str(SAVED.model)
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["format"] == "icscm-model"
    assert document["schema"] == 5
    assert document == SAVED.to_dict()


@pytest.mark.parametrize("kind", ["conjunction", "disjunction"])
def test_empty_model(kind, tmp_path):
    saved = reload(make_saved(kind=kind), tmp_path)
    X = pd.DataFrame({"other": [1, 2, 3]})
    assert saved.predict(X).tolist() == ["no"] * 3
    mostly = reload(make_saved(kind=kind, leaves=(((3, 1), (4, 2)),)), tmp_path)
    assert mostly.predict(X).tolist() == ["yes"] * 3
    nothing = "no rule holds in every environment and does better than always negative"
    assert saved.explain(X).tolist() == [nothing] * 3
    assert saved.predict_proba(X).shape == (3, 2)


def test_explanations():
    X = pd.DataFrame({"age": [50, 70, 70], "smoker": ["yes", "no", "yes"]})
    assert SAVED.explain(X).tolist() == [
        "not met: age > 63.5",
        "not met: smoker == yes (missing: true)",
        "all rules met",
    ]
    either = make_saved([AGE, SMOKER], kind="disjunction")
    assert either.explain(X).tolist() == [
        "met: smoker == yes (missing: true)",
        "met: age > 63.5",
        "met: age > 63.5",
    ]
    assert either.model.leaf_texts[-1] == "no rule met"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_go_by_name(make):
    columns = {"extra": [1.0, 2.0], "smoker": ["yes", "no"], "age": [70, 70]}
    assert SAVED.predict(make(columns)).tolist() == ["yes", "no"]
    assert SAVED.predict_proba(make(columns)).sum(axis=1).tolist() == [1.0, 1.0]
    del columns["smoker"]
    with pytest.raises(IcscmError, match="X lacks column 'smoker', which the model uses"):
        SAVED.predict(make(columns))


def test_arrays_go_by_position():
    X = np.array([[70.0, "yes"], [70.0, "no"]], dtype=object)
    assert SAVED.predict(X).tolist() == SAVED.predict(X.tolist()).tolist() == ["yes", "no"]
    for wrong in (X[:, :1], X[0], np.array(3), [[1], [1, 2]]):
        with pytest.raises(IcscmError, match=r"columns|2D array"):
            SAVED.predict(wrong)


def test_columns_without_names_must_all_be_there():
    rule = ThresholdRule(1, None, 0, above=True)
    saved = make_saved([rule], [Feature(None, "number"), Feature(None, "number")])
    X = pd.DataFrame({"a": [1, 1], "b": [0, 1]})
    assert saved.predict(X).tolist() == saved.predict(X.to_numpy()).tolist() == ["no", "yes"]
    with pytest.raises(IcscmError, match="X has 1 columns but the model was fitted on 2"):
        saved.predict(X[["b"]])


def test_columns_of_a_frame_found_by_position_are_exact():
    """As one array they would share a type: 2**60 and its neighbour are the same float."""
    rule = ThresholdRule(1, None, 2**60, above=True)
    saved = make_saved([rule], [Feature(None, "number"), Feature(None, "number")])
    X = pd.DataFrame({"a": [0.5, 0.5], "b": [2**60, 2**60 + 1]})
    assert saved.predict(X).tolist() == ["no", "yes"]


def test_missing_where_none_was():
    X = pd.DataFrame({"age": [None, 70.0], "smoker": ["yes", "yes"]})
    with pytest.warns(UnseenMissingWarning):
        assert SAVED.predict(X).tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    "classes", [(0, 1), (False, True), (-1.5, 2.0), ("a", "a\0"), (-1, 2**64 - 1), ("no", "yes")]
)
def test_classes_keep_their_type(classes, tmp_path):
    saved = reload(make_saved([AGE], classes=classes), tmp_path)
    found = saved.predict(pd.DataFrame({"age": [10, 80]})).tolist()
    assert found == list(classes)
    assert list(map(type, found)) == list(map(type, classes))


names = st.one_of(st.sampled_from(HOSTILE_NAMES), st.text(), st.text("\ud800\0\x7f\x1b😀"))


@given(names)
def test_any_name_round_trips(tmp_path_factory, name):
    rule = CategoryRule(0, name, (name, name + "x"), equal=True, pooled=True)
    saved = make_saved([rule], [Feature(name, "category")], environments=(name, name + "y"))
    folder = tmp_path_factory.mktemp("names")
    assert reload(saved, folder) == saved
    text = (folder / "model.json").read_text(encoding="utf-8")
    assert all(each.isprintable() or each == "\n" for each in text)


def test_surrogates_in_pairs_are_refused_when_saving(tmp_path):
    name = "\ud83d" + "\ude00"  # two characters that JSON writes exactly as one other
    saved = make_saved(features=[Feature(name, "number")])
    with pytest.raises(IcscmError, match=r"cannot be saved: .*surrogates"):
        saved.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    saved = make_saved([ThresholdRule(0, "age", math.nan, above=True)])
    with pytest.raises(
        IcscmError, match=r"cannot be saved: model\.splits\[0\]\.rule\.threshold must be"
    ):
        saved.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_existing_files_are_kept(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("mine")
    with pytest.raises(IcscmError, match="exists"):
        SAVED.save(path)
    assert path.read_text() == "mine"
    SAVED.save(str(path), force=True)
    assert load(str(path)) == SAVED
    with pytest.raises(IcscmError, match="no folder"):
        SAVED.save(tmp_path / "nowhere" / "model.json")


# --- from fitted estimators -----------------------------------------------------------------------


def assert_same_predictions(learner, saved, X):
    assert saved.predict(X).tolist() == learner.predict(X).tolist()
    assert saved.predict(X).dtype == learner.predict(X).dtype
    assert np.array_equal(saved.predict_proba(X), learner.predict_proba(X))


@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
@pytest.mark.parametrize("Learner", [SCMClassifier, ICSCMClassifier])
@pytest.mark.filterwarnings("ignore::icscm.exceptions.NothingFoundWarning")
def test_fit_save_load_predict(Learner, model_type, data, frame, tmp_path):
    learner = Learner(model_type=model_type)
    learner.fit(frame, data.y, environments=data.environments)
    saved = reload(make_saved_model(learner), tmp_path)
    assert saved.model == learner.model_
    assert saved.environments == tuple(learner.trace_.environments)
    assert saved.settings["p"] == 1.0
    assert saved.alpha == (0.05 if Learner is ICSCMClassifier else None)
    assert_same_predictions(learner, saved, frame)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint64, bool])
def test_arrays_of_all_types(dtype, tmp_path):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(60, 3)) * 3, 0).astype(dtype)
    y = X[:, 1] > 0
    learner = SCMClassifier().fit(X, y)
    saved = reload(make_saved_model(learner), tmp_path)
    assert saved.environments is None
    assert saved.features == (Feature(None, "number"),) * 3
    assert saved.model == learner.model_
    assert_same_predictions(learner, saved, X)


@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
@pytest.mark.parametrize("make", [lambda X: X, pl.from_pandas, pa.Table.from_pandas])
def test_fit_save_load_predict_mixed(make, model_type, tmp_path):
    X, y, environments = make_mixed_table()
    X = make(X)
    learner = SCMClassifier(model_type=model_type, max_thresholds=3)
    learner.fit(X, y, environments=environments)
    saved = reload(make_saved_model(learner), tmp_path)
    kinds = [kind for _, kind in saved.features]
    assert kinds == ["number", "number", "category", "category", "category"]
    assert len(saved.model.rules) > 1
    assert saved.model == learner.model_
    assert_same_predictions(learner, saved, X)


@st.composite
def labelled_tables(draw):
    """Numbers and text with missing values, and two classes."""
    n_rows = draw(st.integers(8, 30))
    number = st.sampled_from([None, 0.1, 1 / 3, 2.5, -7.0, 1e300])
    text = st.sampled_from([None, "a", "it's", "two\nlines", "😀"])
    columns = {
        name: draw(st.lists(value, min_size=n_rows, max_size=n_rows))
        for name, value in [("n", number), ("'m\"", number), ("<t>", text)]
    }
    X = pd.DataFrame({"n": columns["n"], "'m\"": columns["'m\""]}, dtype=float)
    X["<t>"] = pd.Series(columns["<t>"], dtype="str")
    labels = draw(st.lists(st.booleans(), min_size=n_rows - 2, max_size=n_rows - 2))
    return X, [False, True, *labels]


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
@settings(max_examples=60, deadline=None)
@given(labelled_tables(), st.sampled_from(["conjunction", "disjunction"]))
def test_fit_save_load_predict_on_random_tables(tmp_path_factory, table, model_type):
    X, y = table
    assume(X.notna().any(axis=None))  # a table without any value is an error
    learner = fit_all_columns(SCMClassifier(model_type=model_type, n_jobs=1), X, y)
    saved = reload(make_saved_model(learner), tmp_path_factory.mktemp("random"))
    assert saved.model == learner.model_
    assert_same_predictions(learner, saved, X)
    assert_same_predictions(learner, saved, X[X.columns[::-1]])


class OwnTest:
    """Not JSON: the settings name its class."""

    def compute_p_values(self, tables):
        return np.ones(len(tables))


def test_settings_are_plain(data, tmp_path):
    learner = ICSCMClassifier(test=OwnTest(), p=np.float64(2))
    learner.fit(data.X, data.y, environments=data.environments)
    settings_ = reload(make_saved_model(learner), tmp_path).settings
    assert settings_["test"] == "OwnTest"
    assert settings_["p"] == 2.0
    # not where it was learned: the model is the same
    assert settings_.keys() == learner.get_params().keys() - {"device"}


def test_environments_become_plain(data, tmp_path):
    labels = np.empty(len(data.y), dtype=object)
    labels[:] = [("ward", int(each)) for each in data.environments]
    learner = ICSCMClassifier().fit(data.X, data.y, environments=labels.tolist())
    saved = reload(make_saved_model(learner), tmp_path)
    assert saved.environments == ("('ward', 0)", "('ward', 1)")


def test_only_fitted_learners_can_be_saved():
    from sklearn.exceptions import NotFittedError
    from sklearn.tree import DecisionTreeClassifier

    with pytest.raises(IcscmError, match="must be an ICSCMClassifier"):
        make_saved_model(DecisionTreeClassifier())
    with pytest.raises(NotFittedError):
        make_saved_model(SCMClassifier())


VALID = format_json(SAVED.to_dict())

# --- the loader under random files ----------------------------------------------------------------

JUNK = [None, True, -1, 0, 1, 2, 2**63, 2**64, 10**30, 0.5, -0.0, 1e308, math.nan, math.inf]
JUNK += ["", "x", "age", "number", "category", "threshold", "missing", "yes", "\ud800", "\0"]
JUNK += [[], {}, [[]], [0, 0], [[0, 0], [0, 0]], ["yes"], {"kind": "missing"}, [[[[[[1]]]]]]]


def list_paths(value, path=()):
    """Where every value inside a document is."""
    items = []
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, each in items:
        yield (*path, key)
        yield from list_paths(each, (*path, key))


@st.composite
def mutated_documents(draw):
    """A valid document with one to three of its values deleted, replaced, retyped or repeated."""
    document = copy.deepcopy(draw(st.sampled_from(FUZZED)).to_dict())
    for _ in range(draw(st.integers(1, 3))):
        paths = list(list_paths(document))
        *path, key = draw(st.sampled_from(paths))
        parent = document
        for each in path:
            parent = parent[each]
        action = draw(st.sampled_from(["delete", "replace", "repeat", "move", "wrap"]))
        if action == "delete":
            del parent[key]
        elif action == "replace":
            parent[key] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        elif action == "wrap":
            parent[key] = [parent[key]]
        else:
            other = copy.deepcopy(parent[key])
            if isinstance(parent, list):
                parent.append(other)
            else:
                parent[draw(st.sampled_from([*map(str, parent), "new"]))] = other
        if not document:
            break
    if draw(st.booleans()):  # else hardly any change to the features would be looked into
        with suppress(KeyError, TypeError):
            features = [Feature(each["name"], each["type"]) for each in document["features"]]
            document["fingerprint"] = compute_fingerprint(features)
    return document


FUZZED = [
    SAVED,
    make_saved(),
    make_saved(
        [
            CategoryRule(0, None, (1, 2.5), equal=False, pooled=True, missing=False),
            CategoryRule(1, None, (True,), equal=True),
            ThresholdRule(2, None, 2**60, above=False, missing=True),
        ],
        [Feature(None, "category"), Feature(None, "category"), Feature(None, "number")],
        kind="disjunction",
        environments=None,
        leaves=(((1,), (2,)),) * 4,
        classes=(0, 1),
        alpha=None,
    ),
    make_saved_tree(),
    make_saved_tree(2),
    make_grown_score(),
]


def make_rows(saved):
    """Rows that suit a model: each rule's own value, another of its kind, and a missing one."""
    X = np.full((3, len(saved.features)), 0.5, dtype=object)
    X[2] = None
    for rule in saved.model.rules:
        if isinstance(rule, ThresholdRule):
            X[0, rule.column] = float(rule.threshold)
        elif isinstance(rule, CategoryRule):
            X[:2, rule.column] = rule.levels[0]
    return X


def is_model(content, path):
    """Whether a file loads; then it predicts too."""
    path.write_bytes(content)
    try:
        saved = load(path)
    except IcscmError:
        return False
    X = make_rows(saved)
    assert set(saved.predict(X).tolist()) <= set(saved.classes)
    assert ((saved.predict_proba(X) > 0) & (saved.predict_proba(X) < 1)).all()
    assert len(saved.explain(X)) == len(X)
    return True


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "model.json"


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@pytest.mark.parametrize("saved", FUZZED)
def test_valid_documents_load(saved, scratch):
    assert is_model(format_json(saved.to_dict()).encode(), scratch)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated_documents())
def test_mutated_documents(scratch, document):
    is_model(json.dumps(document).encode(), scratch)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_random_bytes(scratch, content):
    assert not is_model(content, scratch)


def test_truncations(scratch):
    content = VALID.strip().encode()
    for n_bytes in range(len(content)):
        assert not is_model(content[:n_bytes], scratch)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(VALID) - 1), st.binary(max_size=3))
def test_overwritten_bytes(scratch, start, new):
    content = VALID.encode()
    is_model(content[:start] + new + content[start + len(new) :], scratch)


# --- missing values that are refused --------------------------------------------------------------


@pytest.mark.parametrize("as_array", [True, False])
def test_a_model_that_refuses_missing_values_still_does(tmp_path, as_array):
    """Fitted with missing="error" by version 0.3, a model predicted rows with missing values."""
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0] * 10, "b": range(40)})
    table = X.to_numpy() if as_array else X
    learner = SCMClassifier().fit(table, X["a"] > 1)
    path = tmp_path / "m.json"
    replace(make_saved_model(learner), settings={"missing": "error"}).save(path)
    saved = load(path)
    gap = X.copy()
    gap.loc[3, "a"] = np.nan
    gap = gap.to_numpy() if as_array else gap
    assert saved.predict(table).tolist() == (X["a"] > 1).tolist()
    with pytest.raises(IcscmError, match="missing 1 values in column"):
        saved.predict(gap)
    with pytest.raises(IcscmError, match="missing 1 values"):
        saved.predict_proba(gap)


# --- what reading the code found ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_sparse_matrices(kind):
    """A saved model said that a sparse matrix has 0 dimensions, where its estimator took it."""
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 2, (300, 4))
    y = dense[:, 1] & dense[:, 3]
    X = sparse.csr_array(dense).asformat(kind)
    learner = SCMClassifier().fit(sparse.csr_array(dense), y)
    saved = make_saved_model(learner)
    assert len(saved.model) == 2
    assert saved.predict(X).tolist() == learner.predict(X).tolist() == y.tolist()
    assert saved.explain(X).tolist() == saved.explain(dense).tolist()
    with pytest.raises(IcscmError, match="X has 3 columns but the model was fitted on 4"):
        saved.predict(sparse.csr_array(dense[:, :3]))


def test_an_environment_named_all(tmp_path):
    """An environment named "all" was saved as None, as if there had been no environments."""
    learner = SCMClassifier().fit([[0], [1]] * 9, [0, 1] * 9, environments=["all"] * 18)
    assert reload(make_saved_model(learner), tmp_path).environments == ("all",)
