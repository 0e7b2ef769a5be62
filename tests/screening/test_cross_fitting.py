"""A model that has not seen the rows it is asked about."""

import numpy as np
import pytest

from icscm.screening.boosting import BinnedRows, boost
from icscm.screening.cross_fitting import cross_fit, run_in_threads
from icscm.screening.outcomes import compute_gradients, make_outcome
from icscm.screening.rounds import deal_rows
from support.screened import bin_evenly, make_screened_table

N = 900


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(0)
    environments = rng.integers(0, 3, N)
    columns = rng.normal(size=(3, N))
    score = columns[0] + np.where(columns[1] > 0, 1.0, 0.0) + environments
    y = (rng.random(N) < 1 / (1 + np.exp(-score))).astype(np.int64)
    table = make_screened_table([bin_evenly(column) for column in columns], environments)
    outcome = make_outcome(y, None, is_number=False)
    fold_numbers = deal_rows(table, classes=y, groups=None, n_folds=3, seed=0)
    fitted = cross_fit(outcome, table, np.array([0, 1]), fold_numbers, n_jobs=1)
    return outcome, table, fold_numbers, fitted


def test_rows_are_scored_by_a_model_that_did_not_see_them(setting):
    outcome, table, fold_numbers, fitted = setting
    assert sorted(np.concatenate([fold.rows for fold in fitted.folds])) == list(range(N))
    for number, fold in enumerate(fitted.folds):
        assert np.array_equal(fold.rows, np.flatnonzero(fold_numbers == number))
        others = np.flatnonzero(fold_numbers != number)
        training = BinnedRows(
            np.ascontiguousarray(table.columns.bins[:2, others]),
            table.columns.n_bins[:2],
            table.columns.is_nominal[:2],
        )
        model = boost(outcome.take(others), training, table.places.take(others))
        expected = model.score(model.arrange(table.columns.bins[:2, fold.rows]))
        np.testing.assert_array_equal(fold.scores, expected)


def test_levels_are_fitted_to_the_scores_of_all_rows(setting):
    outcome, table, _, fitted = setting
    residuals = compute_gradients(outcome, fitted.scores)
    np.testing.assert_allclose(table.places.add_up(residuals), 0.0, atol=1e-6)


def test_contributions_are_those_of_each_folds_model(setting):
    _, table, _, fitted = setting
    contributions = fitted.compute_contributions(table, n_jobs=1)
    assert len(contributions) == 2
    for column, contribution in enumerate(contributions):
        shares = table.compute_shares(column)
        for fold in fitted.folds:
            environments = table.places.numbers[fold.rows]
            expected = fold.model.compute_contributions(
                fold.arranged, environments, column=column, shares=shares
            )
            np.testing.assert_array_equal(contribution[fold.rows], expected)
    in_threads = fitted.compute_contributions(table, n_jobs=2)
    np.testing.assert_array_equal(contributions, in_threads)


def test_the_joint_contribution_of_one_column_is_near_its_own(setting):
    """By drawing rows instead of by all bins."""
    _, table, _, fitted = setting
    exact = fitted.compute_contributions(table, n_jobs=1)[0]
    drawn = fitted.compute_joint_contribution(table, [0], n_draws=20, seed=0)
    assert np.abs(drawn - exact).mean() < 0.25 * exact.std()
    again = fitted.compute_joint_contribution(table, [0], n_draws=20, seed=0)
    np.testing.assert_array_equal(drawn, again)


def test_columns_are_drawn_within_environments(setting):
    """A column that goes with the environment contributes no level of it."""
    outcome, table, fold_numbers, _ = setting
    marked = make_screened_table([table.places.numbers, *table.columns.bins], table.places.numbers)
    fitted = cross_fit(outcome, marked, np.array([0, 1, 2]), fold_numbers, n_jobs=1)
    assert np.abs(fitted.compute_contributions(marked, n_jobs=1)[0]).max() < 1e-12
    drawn = fitted.compute_joint_contribution(marked, [0], n_draws=2, seed=0)
    assert np.abs(drawn).max() < 1e-12


# --- folds ----------------------------------------------------------------------------------------


def test_folds_are_alike():
    rng = np.random.default_rng(0)
    environments = rng.integers(0, 3, 1000)
    classes = rng.integers(0, 2, 1000)
    table = make_screened_table([np.zeros(1000)], environments)
    folds = deal_rows(table, classes=classes, groups=None, n_folds=4, seed=1)
    for environment in range(3):
        for label in (0, 1):
            counts = np.bincount(folds[(environments == environment) & (classes == label)])
            assert np.ptp(counts) <= 1
    other = deal_rows(table, classes=classes, groups=None, n_folds=4, seed=2)
    assert (folds != other).mean() > 0.5


def test_a_group_is_in_one_fold():
    groups = np.random.default_rng(0).integers(0, 60, 500)
    table = make_screened_table([np.zeros(500)], np.zeros(500))
    folds = deal_rows(table, classes=None, groups=groups, n_folds=5, seed=0)
    assert all(len(np.unique(folds[groups == group])) == 1 for group in range(60))
    groups_by_fold = [len(np.unique(groups[folds == fold])) for fold in range(5)]
    assert groups_by_fold == [12] * 5


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1, 10**30])
def test_threads_keep_the_order(n_jobs):
    assert run_in_threads(lambda number: number**2, range(5), n_jobs) == [0, 1, 4, 9, 16]
    assert run_in_threads(abs, [], n_jobs) == []
