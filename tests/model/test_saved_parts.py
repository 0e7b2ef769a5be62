"""Parts of a saved model used by other packages, and models of packed stores."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from icscm._version import __version__
from icscm.exceptions import IcscmError
from icscm.model.parsing import Feature, compute_fingerprint
from icscm.model.rules import CategoryRule, PresenceRule, ThresholdRule
from icscm.model.saved import get_table_settings, list_missing_texts, list_used, make_saved_model
from icscm.model.tree import make_chain
from support.saved_models import make_saved

AGE = ThresholdRule(0, "age", 63.5, above=True)
SMOKER = CategoryRule(1, "smoker", ("yes",), equal=True, missing=True)
SAVED = make_saved([AGE, SMOKER, AGE.negate()])


@pytest.mark.parametrize(
    ("settings", "table", "texts"),
    [
        ({}, {}, []),
        ({"table": None}, {}, []),
        ({"table": ["na"]}, {}, []),
        ({"table": {"na": "x"}}, {"na": "x"}, []),
        ({"table": {"na": ["-9", 3, "?"]}}, {"na": ["-9", 3, "?"]}, ["-9", "?"]),
    ],
)
def test_what_was_told_of_the_table(settings, table, texts):
    told = get_table_settings(make_saved(settings=settings))
    assert told == table
    assert list_missing_texts(told) == texts


def test_columns_that_rules_ask_for():
    assert list_used(SAVED) == ["age", "smoker"]
    unnamed = make_saved([ThresholdRule(1, None, 0, above=True)], [Feature(None, "number")] * 2)
    assert list_used(unnamed) == ["1"]


def test_a_packed_store_keeps_only_the_columns_of_its_rules():
    """Of millions of columns a file names those that are used, in their order, numbered anew."""
    rules = [PresenceRule(7, "late", present=True), PresenceRule(2, "early", present=False)]
    rules.append(PresenceRule(7, "late", present=False))
    leaves = tuple(((4, 3), (2, i)) for i in range(4))

    class Packed(BaseEstimator):
        model_ = make_chain("disjunction", tuple(rules), leaves)
        classes_ = np.array([0, 1])
        environments_ = (np.int64(3), np.datetime64("2020-01-01"))
        _test_level = np.float32(0.25)

        def fit(self, X, y):
            """What scikit-learn asks of an estimator."""

        def fit_counts(self, countable):
            """What tells a learner."""

        def _list_features(self):
            return None

        def get_params(self, deep=True):
            return {"deep": deep}

    saved = make_saved_model(Packed())
    assert saved.features == (Feature("early", "number"), Feature("late", "number"))
    assert [(rule.column, rule.name) for rule in saved.model.rules] == [
        (1, "late"),
        (0, "early"),
        (1, "late"),
    ]
    assert [rule.present for rule in saved.model.rules] == [True, False, False]
    assert saved.model.leaves == leaves
    assert saved.model.kind == "disjunction"
    assert saved.environments == (3, "2020-01-01")
    assert (saved.alpha, type(saved.alpha)) == (0.25, float)
    assert saved.settings == {"deep": False}
    assert saved.version == __version__
    assert saved.fingerprint == compute_fingerprint(saved.features)
    assert saved.classes == (0, 1)


def test_sentences_of_a_model_that_cannot_be_used():
    for X, message in (
        ([[1], [1, 2]], "the rows of X differ in length; give each the same columns"),
        (
            np.zeros((2, 3)),
            "X has 3 columns but the model was fitted on 2; columns without names are found by "
            "position, so give all, in the same order",
        ),
    ):
        with pytest.raises(IcscmError) as caught:
            SAVED.predict(X)
        assert str(caught.value) == message
    with pytest.raises(IcscmError, match="Expected 2D array, got 1D array instead"):
        SAVED.predict([1.0])
