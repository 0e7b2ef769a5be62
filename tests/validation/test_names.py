"""Names of environments and groups are labels only: results do not depend on them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from icscm import (
    InvariantCausalPrediction,
    InvariantFeatureSelector,
    InvariantForestClassifier,
    InvariantScoreClassifier,
    InvariantTreeClassifier,
    stability_selection,
)
from icscm.search import shape
from icscm.search.tree_sets import draw_half
from icscm.sources.memory import open_memory
from icscm.tables.environments import shuffle_within
from icscm.validation.cohort import make_cohort
from icscm.validation.comparison import deal_environments
from icscm.validation.folds import deal_rows, leave_out_many_environments
from icscm.validation.importances import permutation_importance

N = 200
_RNG = np.random.default_rng(1)
ENVIRONMENT, GROUP = _RNG.integers(0, 6, N), _RNG.integers(0, 40, N)
A, B, C = _RNG.normal(size=(3, N)).round(1)
Y = (_RNG.random(N) < 1 / (1 + np.exp(1 - 2 * (A > 0) - (B > 0.3)))).astype(int)
X = pd.DataFrame({"a": A, "b": B, "c": C})


def draw(environments, groups):
    """Every kind of draw, for the rows as the table has them."""
    both = make_cohort(X, Y, environments=environments, groups=groups)
    ungrouped = make_cohort(X, Y, environments=environments)
    yield from (deal_rows(both, 3, 0), deal_rows(ungrouped, 3, 0))
    codes = both.environment_codes
    for fold in leave_out_many_environments(both, 3):
        yield from (fold.train_rows, fold.test_rows)
    yield [np.isin(codes, part) for part in deal_environments(codes)]
    yield shuffle_within(codes, np.random.default_rng(0))
    pair = np.where(codes == codes[0], environments[0], "z")
    for places, own in ((environments, groups), (pair, groups), (pair, None)):
        source = open_memory(X, Y, environments=places, groups=own).source
        cells, at = source.rows.list_cells(), source.rows.list_in_table_order()
        for codes in (None, cells.environments, source.rows.list_groups()):
            yield source.rows.number_units(codes)[at]
        folds = shape.assign_folds(source.rows, cells, n_environments=len(source.environments))
        yield folds.numbers[at]
        yield draw_half(cells.environments, source.rows.number_units(), seed=0)[at]


@settings(max_examples=4)
@given(st.permutations("abcdef"), st.permutations(range(40)))
def test_draws_do_not_depend_on_names(places, groups):
    """Rows were drawn in the order of the environments' names: by forests, folds of groups,
    shapes, the halves of invariant causal prediction by trees, and values by the screen."""
    named = [(list("abcdef"), range(40)), (places, groups)]
    pairs = [draw(np.array(e)[ENVIRONMENT], np.array(g)[GROUP]) for e, g in named]
    assert all(np.array_equal(*each) for each in zip(*pairs, strict=True))


def fit_forest(environments, **parameters):
    forest = InvariantForestClassifier(n_estimators=2, random_state=0, **parameters)
    forest.fit(X, Y, environments=environments)
    importance = permutation_importance(forest, X, Y, environments=environments, n_repeats=1)
    return [*forest.predict_proba(X)[:, 1], *importance.pooled.ravel()]


LEARNERS = {
    "forest": fit_forest,
    "halves": lambda e: (
        InvariantCausalPrediction(model="tree", random_state=0).fit(X, Y, environments=e).p_values_
    ),
    "subsamples": lambda e: [
        hash(each.features)
        for each in stability_selection(
            InvariantTreeClassifier(), X, Y, environments=e, n_resamples=4, random_state=0
        ).models
    ],
}


@pytest.mark.parametrize("name", LEARNERS)
def test_renamed_environments_give_the_same_result(name):
    """A forest with a fixed seed was another where environments had other names."""
    with warnings.catch_warnings(action="ignore"):
        results = [LEARNERS[name](np.array([*e])[ENVIRONMENT]) for e in ("abcdef", "cfbaed")]
    assert len(results[0])
    assert list(results[0]) == pytest.approx(list(results[1]), rel=1e-9)


@pytest.mark.thorough
def test_a_screen_does_not_depend_on_names(monkeypatch):
    """The screen of a score saw rows by environment, and drew values in the order of names."""
    rng = np.random.default_rng(0)
    environment, y = rng.integers(0, 4, 400), rng.integers(0, 2, 400)
    agrees = rng.random(400) < np.array([0.9, 0.6, 0.5, 0.4])[environment]
    a, b = np.where(agrees, y, 1 - y), (y + rng.integers(0, 3, 400)) / 1.0
    frame = pd.DataFrame({"a": a, "b": b})
    quick = lambda *_: LogisticRegression()  # noqa: E731
    monkeypatch.setattr(InvariantFeatureSelector, "make_learner", quick)
    with warnings.catch_warnings(action="ignore"):
        one, other = (
            InvariantScoreClassifier(random_state=0).fit(
                frame, y, environments=np.array([*e])[environment]
            )
            for e in ("abcd", "dbac")
        )
    assert (one.screen_["verdict"] == "rejected").any()
    assert one.screen_["share"].tolist() == pytest.approx(other.screen_["share"].tolist())
