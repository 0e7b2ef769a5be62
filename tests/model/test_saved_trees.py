"""Trees and forests in files: what comes back, what is refused, and what it costs."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from icscm.exceptions import IcscmError
from icscm.model import parsing
from icscm.model.forest import Forest
from icscm.model.parsing import Feature
from icscm.model.rules import CategoryRule, MissingRule, PresenceRule, ThresholdRule
from icscm.model.saved import list_used, load, make_saved_model
from icscm.model.splits import Split
from icscm.model.tree import Tree
from support.random_models import KINDS, calibrated, forests, make_chain, make_each_kind, trees
from support.saved_models import make_saved, make_saved_tree

TREE, FOREST = make_saved_tree(), make_saved_tree(3)
REMEDY = "use a file as save() wrote it, or fit and save again"


def write(path, document):
    path.write_text(json.dumps(document))
    return path


def assert_refused(path, message):
    with pytest.raises(IcscmError) as caught:
        load(path)
    assert str(caught.value) == f"{path} is not an icscm model: {message}; {REMEDY}"


# --- what comes back ------------------------------------------------------------------------------

RULES = st.builds(
    ThresholdRule, st.just(0), st.just("age"), st.floats(-9, 9), st.booleans()
) | st.builds(
    CategoryRule, st.just(1), st.just("smoker"), st.sampled_from([("a",), ("é",)]), st.booleans()
)


@settings(max_examples=60, deadline=None)
@given(calibrated(trees(RULES) | forests(RULES)))
def test_files_give_the_model_back(tmp_path_factory, model):
    check_round_trip(tmp_path_factory.mktemp("saved"), model)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.UnseenMissingWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_files_give_each_kind_back(tmp_path, kind):
    """With rules of each kind, about missing values, too."""
    rules = [
        ThresholdRule(0, "age", 0.1, above=True),
        CategoryRule(1, "smoker", ("é", "a"), equal=False, pooled=True, missing=True),
        ThresholdRule(0, "age", -3, above=False, missing=False),
        MissingRule(1, "smoker", is_missing=True),
        CategoryRule(1, "smoker", ("b",), equal=True),
    ]
    check_round_trip(tmp_path, make_each_kind(rules)[kind])


def check_round_trip(folder, model):
    """A model from a file is equal, and predicts the same to the last bit."""
    saved = make_saved(model=model)
    path = folder / "m.json"
    saved.save(path)
    found = load(path)
    assert found == saved
    X = pd.DataFrame({"smoker": ["a", "é", "b"], "age": [1.5, -3.0, 7.0]})
    for one, other in zip(found.decide(X), saved.decide(X), strict=True):
        assert one.tolist() == other.tolist()
    assert found.predict(X).tolist() == [saved.classes[int(each)] for each in model.predict(X)]
    assert found.predict_proba(X)[:, 1].tolist() == model.predict_proba(X).tolist()


def test_older_versions_are_told_to_be_upgraded():
    """They do not know a calibration, and all files have the newest schema."""
    assert {each.to_dict()["schema"] for each in (TREE, FOREST, make_saved())} == {5}


@pytest.mark.parametrize("kind", ["conjunction", "disjunction"])
def test_files_of_older_schemas_are_read(kind, tmp_path):
    """Up to schema 2 a conjunction or disjunction was a list of rules, trees were as they are."""
    rules = [ThresholdRule(0, "age", 63.5, above=True), CategoryRule(1, "smoker", ("a",), True)]
    chain = make_saved(rules, kind=kind)
    leaves = [[list(row) for row in leaf] for leaf in chain.model.leaves]
    old = {"kind": kind, "rules": [rule.to_dict() for rule in rules], "leaves": leaves}
    path = write(tmp_path / "chain.json", chain.to_dict() | {"schema": 1, "model": old})
    assert load(path) == chain
    for saved in (TREE, FOREST):
        assert load(write(tmp_path / "tree.json", saved.to_dict() | {"schema": 2})) == saved
    old["rules"][1]["levels"] = []
    path = write(tmp_path / "bad.json", chain.to_dict() | {"schema": 1, "model": old})
    assert_refused(path, "model.rules[1].levels is empty")


def test_a_chain_is_a_chain(tmp_path):
    document = make_saved([ThresholdRule(0, "age", 63.5, above=True)]).to_dict()
    document["model"]["splits"][0] |= {"if_true": -1, "if_false": -2}
    message = "model is not a valid conjunction: the splits of a conjunction must form a chain"
    assert_refused(write(tmp_path / "m.json", document), message)


def test_explanations():
    X = pd.DataFrame({"age": [70.0, 20.0], "smoker": ["yes", "no"]})
    assert set(TREE.explain(X)) <= set(TREE.model.leaf_texts)
    assert TREE.find_leaves(X).tolist() == TREE.model.find_leaves(X).tolist()
    votes = np.sum([tree.predict(X) for tree in FOREST.model.trees], axis=0)
    assert FOREST.explain(X).tolist() == [f"{n} of 3 trees above 0.5" for n in votes]
    assert list_used(FOREST) == ["age", "smoker"]
    message = "a forest has no single set of leaves; use one of its trees"
    with pytest.raises(IcscmError, match=message):
        FOREST.find_leaves(X)


@pytest.mark.parametrize("saved", [TREE, FOREST])
def test_missing_values_that_are_refused(saved):
    strict = make_saved(model=saved.model, settings={"missing": "error"})
    X = pd.DataFrame({"age": [70.0, None], "smoker": ["yes", "no"]})
    with pytest.raises(IcscmError, match="missing 1 values in column 'age'"):
        strict.predict(X)


@pytest.mark.parametrize("n_trees", [None, 2])
def test_a_packed_store_keeps_only_the_columns_of_its_rules(n_trees):
    late, early = PresenceRule(7, "late", present=True), PresenceRule(2, "early", present=False)
    tree = make_chain([late, early])

    class Packed(BaseEstimator):
        model_ = tree if n_trees is None else Forest((tree,) * n_trees)
        classes_ = np.array([0, 1])
        environments_ = ("a", "b")
        _test_level = None

        def fit(self, X, y):
            """What scikit-learn asks of an estimator."""

        def fit_counts(self, countable):
            """What tells a learner."""

        def _list_features(self):
            return None

        def get_params(self, deep=True):
            return {}

    saved = make_saved_model(Packed())
    assert saved.features == (Feature("early", "number"), Feature("late", "number"))
    assert [(rule.column, rule.name) for rule in saved.model.rules] == [(1, "late"), (0, "early")]
    assert saved.predict([[1, 0], [0, 0]]).shape == (2,)


# --- what is refused ------------------------------------------------------------------------------


def change(*path, to):
    def edit(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = to

    return edit


ONCE = "every split but the first, and every leaf, must be reached once"
SPLIT = ("model", "splits", 0)
BAD_TREES = {
    "whole": (change("model", to=3), "model must be an object, got 3"),
    "no_kind": (change("model", to={}), "model lacks the key 'kind'"),
    "rules": (
        change("model", "rules", to=[]),
        'model has a key that this version does not know, "rules"',
    ),
    "splits": (change("model", "splits", to={}), "model.splits must be a list, got an object of 0"),
    "split": (change(*SPLIT, to=[]), "model.splits[0] must be an object, got a list of 0"),
    "fewer": (change("model", "splits", to=[]), "model.leaves has 4 entries instead of 1"),
    "rule": (change(*SPLIT, "rule", to=1), "model.splits[0].rule must be an object, got 1"),
    "rule_kind": (
        change(*SPLIT, "rule", "kind", to="eval"),
        "model.splits[0].rule.kind must be one of 'threshold', 'presence', 'category', 'missing', "
        'got "eval"',
    ),
    "beyond": (
        change(*SPLIT, "if_true", to=3),
        "model.splits[0].if_true must be a whole number from -4 to 2, got 3",
    ),
    "below": (
        change(*SPLIT, "if_false", to=-5),
        "model.splits[0].if_false must be a whole number from -4 to 2, got -5",
    ),
    "boolean": (
        change(*SPLIT, "if_true", to=True),
        "model.splits[0].if_true must be a whole number from -4 to 2, got true",
    ),
    "fraction": (
        change(*SPLIT, "if_true", to=1.0),
        "model.splits[0].if_true must be a whole number from -4 to 2, got 1.0",
    ),
    "cycle": (change("model", "splits", 2, "if_true", to=0), f"model is not a valid tree: {ONCE}"),
    "balanced": (change("model", "balanced", to=1), "model.balanced must be true or false, got 1"),
    "counts": (
        change("model", "leaves", 1, 0, to=[1]),
        "model.leaves[1][0] has 1 entries instead of 2",
    ),
    "negative": (
        change("model", "leaves", 1, 0, 0, to=-1),
        "model.leaves[1][0][0] must be a whole number from 0 to 9223372036854775807, got -1",
    ),
    "calibration": (
        change("model", "calibration", to=[0.0]),
        "model.calibration has 1 entries instead of 2",
    ),
    "infinite": (
        change("model", "calibration", to=[float("inf"), 1.0]),
        "model.calibration[0] must be a finite number, got a number that is not finite",
    ),
    "slope": (
        change("model", "calibration", to=[0, 0]),
        "model is not a valid tree: calibration is an intercept within 100 of 0 and a slope above "
        "0, at most 10; got (0.0, 0.0)",
    ),
    "threshold": (
        change("model", "threshold", to=1.0),
        "model.threshold must be a number between 0 and 1, got 1.0",
    ),
    "too_many": (change("model", "leaves", 1, 0, to=[2**63 - 1, 2**63 - 1]), None),
}
BAD_FORESTS = {
    "trees": (change("model", "trees", to=1), "model.trees must be a list, got 1"),
    "none": (
        change("model", "trees", to=[]),
        "model is not a valid forest: a forest has at least one tree",
    ),
    "tree": (change("model", "trees", 1, to=None), "model.trees[1] must be an object, got null"),
    "nested": (
        change("model", "trees", 1, "kind", to="forest"),
        "model.trees[1].kind must be one of 'tree', got \"forest\"",
    ),
    "cycle": (
        change("model", "trees", 2, "splits", 2, "if_true", to=0),
        f"model.trees[2] is not a valid tree: {ONCE}",
    ),
    "calibration": (
        change("model", "calibration", to=[101, 1]),
        "model is not a valid forest: calibration is an intercept within 100 of 0 and a slope "
        "above 0, at most 10; got (101.0, 1.0)",
    ),
    "counts": (
        change("model", "trees", 1, "leaves", 0, to=[[1, 2]]),
        "model.trees[1].leaves[0] has 1 entries instead of 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TREES)
def test_bad_trees(case, tmp_path):
    edit, message = BAD_TREES[case]
    document = copy.deepcopy(TREE.to_dict())
    edit(document)
    path = write(tmp_path / "m.json", document)
    if message is None:
        with pytest.raises(IcscmError, match=r"model.leaves count .* more than 64 bits hold"):
            load(path)
    else:
        assert_refused(path, message)


@pytest.mark.parametrize("case", BAD_FORESTS)
def test_bad_forests(case, tmp_path):
    edit, message = BAD_FORESTS[case]
    document = copy.deepcopy(FOREST.to_dict())
    edit(document)
    assert_refused(write(tmp_path / "m.json", document), message)


def test_columns_that_no_table_could_have(tmp_path):
    """One tree asks for text, another for numbers in the same column."""
    one, other = (make_chain([CategoryRule(1, "smoker", (v,), equal=True)]) for v in ("a", 1))
    path = write(tmp_path / "m.json", make_saved(model=Forest((one, other))).to_dict())
    assert_refused(
        path, "model.trees[1].splits[0].rule.levels are of another kind than an earlier rule's"
    )


@pytest.mark.parametrize(("limit", "saved"), [("MAX_RULES", TREE), ("MAX_TREES", FOREST)])
def test_absurd_sizes(limit, saved, tmp_path, monkeypatch):
    path = write(tmp_path / "m.json", saved.to_dict())
    monkeypatch.setattr(parsing, limit, 2)
    what = "splits" if limit == "MAX_RULES" else "trees"
    assert_refused(path, f"model.{what} has 3 entries, more than the 2 allowed")


# --- what it costs --------------------------------------------------------------------------------


def test_a_hostile_tree_costs_no_more_than_its_size(tmp_path):
    """Splits below each other, each reached twice, or about one very long level."""
    long = CategoryRule(1, "smoker", ("x" * 100_000,), equal=False)
    rules = [long, *(ThresholdRule(0, "age", float(i), above=True) for i in range(2_000))]
    document = make_saved(model=make_chain(rules)).to_dict()
    path = write(tmp_path / "m.json", document)
    saved = load(path)
    assert sum(map(len, saved.model.leaf_texts)) < 10**6
    assert len(str(saved)) < 10**6
    for i, split in enumerate(document["model"]["splits"][:-1]):  # 2 ** 2,000 ways
        split["if_true"] = split["if_false"] = i + 1
    with pytest.raises(IcscmError, match="must be reached once"):
        load(write(tmp_path / "m.json", document))


def test_what_a_tree_refuses_a_file_does_too():
    """Saving looks whether it would read back."""
    odd = Tree(
        (Split(ThresholdRule(0, "age", float("inf"), above=True), -1, -2),), (((1, 1),) * 2,) * 2
    )
    with pytest.raises(IcscmError, match=r"this model cannot be saved: model\.splits"):
        make_saved(model=odd).to_json()
