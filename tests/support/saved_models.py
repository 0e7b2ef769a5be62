"""Saved models and tables that several tests use."""

from random import Random

import numpy as np
import pandas as pd

from icscm.model.forest import Forest
from icscm.model.parsing import Feature, compute_fingerprint
from icscm.model.rules import CategoryRule, MissingRule, ThresholdRule
from icscm.model.saved import SavedModel
from icscm.model.score import Score, Term, find_max_total
from icscm.model.tree import make_chain
from support.random_models import make_tree


def make_saved(rules=(), features=None, *, kind="conjunction", leaves=None, **changes):
    """A model of these rules, with something plausible for all that is not said."""
    features = features or (Feature("age", "number"), Feature("smoker", "category"))
    leaves = leaves or tuple(((3 + i, 1), (i, 2)) for i in range(len(rules) + 1))
    fields = {
        "model": make_chain(kind, tuple(rules), leaves),
        "classes": ("no", "yes"),
        "features": tuple(features),
        "environments": ("north", "south"),
        "settings": {"p": 1.0, "feature_weights": {"age": 2.0}, "test": "chi2"},
        "version": "0.1.0",
        "fingerprint": compute_fingerprint(features),
        "alpha": 0.05,
    }
    return SavedModel(**{**fields, **changes})


def make_saved_tree(n_trees=None):
    """A tree of age and smoker, or a forest of several."""
    rules = [
        ThresholdRule(0, "age", 63.5, above=True),
        CategoryRule(1, "smoker", ("yes",), equal=True, missing=True),
        MissingRule(1, "smoker", is_missing=False),
    ]
    return make_saved(model=_make_tree_or_forest(rules, n_trees), alpha=None)


def _make_tree_or_forest(rules, n_trees):
    """A tree, or a forest of so many, every second of them balanced."""
    if n_trees is None:
        return make_tree(rules, Random(0), balanced=False)
    trees = [make_tree(rules, Random(seed), balanced=seed % 2 == 1) for seed in range(n_trees)]
    return Forest(tuple(trees))


def make_grown(n_trees=None):
    """A tree, or a forest, about the columns of `make_mixed_table`."""
    rules = [
        ThresholdRule(0, "age", 58.5, above=True, missing=False),
        ThresholdRule(1, "visits", 2, above=False, missing=True),
        CategoryRule(2, "city", ("O'Brien",), equal=True, missing=False),
        CategoryRule(2, "city", ("rare 1", "rare 2"), equal=True, pooled=True, missing=False),
        CategoryRule(3, "smoker", (True,), equal=True, missing=False),
        MissingRule(4, "grade", is_missing=True),
    ]
    kinds = {"age": "number", "visits": "number"}
    features = [
        Feature(name, kinds.get(name, "category"))
        for name in ("age", "visits", "city", "smoker", "grade")
    ]
    return make_saved(features=features, model=_make_tree_or_forest(rules, n_trees))


def make_grown_score():
    """A score about some of these columns."""
    features = (
        Feature("age", "number"),
        Feature("city", "category"),
        Feature("smoker", "category"),
    )
    terms = (
        Term(ThresholdRule(0, "age", 58.5, above=True), 3),
        Term(ThresholdRule(0, "age", 50, above=True), 1),
        Term(MissingRule(0, "age", is_missing=True), 2),
        Term(CategoryRule(1, "city", ("O'Brien",), equal=True, missing=False), 2),
        Term(CategoryRule(2, "smoker", (True,), equal=True, missing=True), 4),
    )
    log_odds = tuple(0.4 * total - 2 for total in range(find_max_total(terms) + 1))
    leaves = tuple(((3 + i, 1), (i, 2)) for i in range(3))
    return make_saved(features=features, model=Score(terms, log_odds, (2, 5), leaves), alpha=None)


def make_mixed_table(n=400):
    """Numbers, text, booleans and categories, all with missing values."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n).round(1),
            "visits": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "city": rng.choice(["Łódź", "O'Brien", 'the "hub"', "rare 1", "rare 2"], n),
            "smoker": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "grade": pd.Categorical(rng.choice(list("abc"), n)),
        }
    )
    y = np.where((X["age"] > 55) & (X["city"] != "O'Brien") & X["smoker"], "ill", "healthy")
    for column in X:
        X.loc[rng.random(n) < 0.1, column] = None
    return X, y, np.arange(n) % 3
