"""p is chosen by cross-validation."""

import numpy as np
import pyarrow as pa
import pytest

from icscm import SCMClassifier
from icscm.exceptions import IcscmError
from icscm.studies.choice import _make_folds, choose_p


@pytest.mark.parametrize("seed", range(5))
def test_folds_share_out_every_cell(seed):
    rng = np.random.default_rng(seed)
    y, environments = rng.integers(0, 2, 203), rng.integers(0, 4, 203)
    folds = _make_folds(y, environments, 5, seed)
    for label in (0, 1):
        for environment in range(4):
            sizes = np.bincount(folds[(y == label) & (environments == environment)], minlength=5)
            assert sizes.max() - sizes.min() <= 1
    assert np.ptp(np.bincount(folds)) <= 1


def test_p_is_chosen_by_the_error():
    """A small p takes the rule that finds all negatives, at the price of most positives."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    greedy = (y == 1) & (rng.random(400) < 0.2)
    wary = (y == 1) | (rng.random(400) < 0.3)
    X = pa.table({"greedy": greedy.astype(int), "wary": wary.astype(int)})
    learner = SCMClassifier(max_rules=1)
    calls = []
    choice = choose_p(learner, X, y, y * 0, [0.01, 1.0, 5.0], on_fold=lambda: calls.append(1))
    assert (choice.p_values, len(calls)) == ((0.01, 1.0, 5.0), 5)
    assert choice.errors == ((y != greedy).mean(), (y != wary).mean(), (y != wary).mean())
    assert choice.best == 1.0
    assert not hasattr(learner, "model_")
    assert choice == choose_p(learner, X, y, y * 0, [0.01, 1.0, 5.0])


def test_of_equally_good_p_the_nearest_to_1_is_chosen():
    y = np.arange(100) % 2
    choice = choose_p(SCMClassifier(), np.column_stack((y, y)), y, None, [0.1, 3.0, 2.0, 9.0])
    assert choice.errors == (0.0, 0.0, 0.0, 0.0)
    assert choice.best == 2.0


def test_too_few_rows_for_folds():
    with pytest.raises(IcscmError, match="needs 5 rows of each class; one has 2"):
        choose_p(SCMClassifier(), np.zeros((9, 1)), np.array([1, 1] + [0] * 7), None, [1.0])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_any_kind_of_frame(kind):
    """Rows of a pandas frame were taken as columns: `choose_p` failed with a KeyError."""
    frames = pytest.importorskip(kind)
    y = np.arange(100) % 2
    columns = {"good": y, "bad": np.arange(100) % 3}
    choice = choose_p(SCMClassifier(), frames.DataFrame(columns), y, None, [0.5, 1.0])
    assert choice == choose_p(SCMClassifier(), pa.table(columns), y, None, [0.5, 1.0])
