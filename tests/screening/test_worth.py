"""What a column is worth in each environment: slopes of its contribution, and their errors."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from icscm.screening.outcomes import fit_levels, make_outcome
from icscm.screening.worth import (
    MAX_JOINT_COLUMNS,
    find_largest,
    fit_joint_worth,
    fit_worth,
)
from icscm.stats.worth import pool_worth
from support.screened import make_screened_table


class Setting:
    """Contributions of two columns, and an outcome in which they have a worth by environment."""

    def __init__(self, kind, worth, *, n_rows=3000, seed=0, groups=None, weights=None):
        rng = np.random.default_rng(seed)
        n_environments = len(worth)
        self.environments = np.repeat(np.arange(n_environments), n_rows)
        n = len(self.environments)
        self.contributions = [rng.normal(size=(n, 1)), rng.normal(size=(n, 1))]
        level = np.linspace(-1, 1, n_environments)[self.environments]
        true_scores = level + self.contributions[0][:, 0]
        true_scores += np.array(worth)[self.environments] * self.contributions[1][:, 0]
        if kind == "two":
            y = (rng.random(n) < expit(true_scores)).astype(np.int64)
        else:
            y = true_scores + rng.normal(size=n)
        self.y = y
        self.outcome = make_outcome(y, weights, is_number=kind == "number")
        if kind == "number":  # contributions have the unit of the outcome
            self.contributions = [part / y.std() for part in self.contributions]
        self.table = make_screened_table(
            [np.zeros(n)], self.environments, groups=groups, is_weighted=weights is not None
        )
        learned = sum(self.contributions)
        levels = fit_levels(self.outcome, learned, self.table.places)
        self.scores = learned + levels[self.environments]
        self.variances = self.outcome.measure_variances(self.scores, self.table.places)

    def fit(self, column=1):
        return fit_worth(
            self.outcome,
            self.table,
            self.scores,
            self.contributions[column],
            variances=self.variances,
        )

    def fit_jointly(self):
        return fit_joint_worth(
            self.outcome, self.table, self.scores, self.contributions, variances=self.variances
        )


WORTH = [1.2, 0.6, 0.9, 0.3]


@pytest.mark.parametrize("kind", ["two", "number"])
def test_known_slopes_are_recovered(kind):
    setting = Setting(kind, WORTH)
    worth = setting.fit()
    assert worth.is_known.all()
    assert np.abs((worth.values - WORTH) / worth.errors).max() < 3.5
    assert worth.errors.max() < 0.1
    # and they are those of a regression in each environment with the others as an offset
    assert setting.fit(column=0).values == pytest.approx([1, 1, 1, 1], abs=0.2)


def test_slopes_of_numbers_are_those_of_least_squares():
    setting = Setting("number", WORTH, n_rows=400)
    worth = setting.fit()
    for environment in range(4):
        rows = setting.environments == environment
        remaining = (setting.outcome.targets - setting.contributions[0])[rows]
        regression = LinearRegression().fit(setting.contributions[1][rows], remaining)
        assert worth.values[environment] == pytest.approx(regression.coef_.item(), abs=1e-6)


def test_slopes_of_classes_are_near_those_of_a_logistic_regression():
    setting = Setting("two", [1.0, 1.0, 1.0], n_rows=4000)
    worth = setting.fit()
    for environment in range(3):
        rows = setting.environments == environment
        columns = np.hstack(setting.contributions)[rows]
        regression = LogisticRegression(C=1e9).fit(columns, setting.y[rows])
        gap = worth.values[environment] - regression.coef_[0, 1]
        assert abs(gap) < 0.5 * worth.errors[environment]


@pytest.mark.parametrize("kind", ["two", "number"])
def test_joint_worth_is_the_separate_one_where_contributions_are_orthogonal(kind):
    setting = Setting(kind, [1.1, 0.9, 1.0, 0.95], n_rows=8_000)
    jointly = setting.fit_jointly()
    for column in (0, 1):
        separately = setting.fit(column)
        assert jointly[column].values == pytest.approx(separately.values, abs=0.03)
        assert jointly[column].errors == pytest.approx(separately.errors, rel=0.05)


def test_joint_worth_of_numbers_is_that_of_a_regression_on_all_contributions():
    setting = Setting("number", WORTH, n_rows=500)
    first, second = setting.contributions
    setting.contributions = [first, second + 2 * first]  # which overlap
    jointly = setting.fit_jointly()
    columns = np.hstack(setting.contributions)
    residuals = (setting.outcome.targets - setting.scores)[:, 0]
    for environment in range(4):
        rows = setting.environments == environment
        slopes = LinearRegression().fit(columns[rows], residuals[rows]).coef_
        found = [worth.values[environment] for worth in jointly]
        assert found == pytest.approx(1 + slopes, abs=1e-2)


def test_only_the_columns_that_contribute_most_are_fitted_jointly():
    rng = np.random.default_rng(0)
    contributions = [scale * rng.normal(size=(50, 1)) for scale in range(1, MAX_JOINT_COLUMNS + 6)]
    assert find_largest(contributions).tolist() == list(range(5, MAX_JOINT_COLUMNS + 5))
    setting = Setting("two", [1, 1], n_rows=25)
    setting.contributions = contributions
    fitted = setting.fit_jointly()
    assert [worth is None for worth in fitted] == [True] * 5 + [False] * MAX_JOINT_COLUMNS


def test_an_environment_without_rows_is_not_known():
    setting = Setting("two", [1, 1, 1], n_rows=300)
    setting.table = make_screened_table([np.zeros(900)], setting.environments, count=4)
    setting.variances = np.ones(4)
    worth = setting.fit()
    assert worth.is_known.tolist() == [True, True, True, False]
    assert pool_worth(worth).dof == 2


# --- rows that are alike --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["two", "number"])
def test_copies_of_rows_in_one_cluster_do_not_shrink_errors(kind):
    """As single rows, the same patients twice would halve the variance."""
    setting = Setting(kind, WORTH, n_rows=400)
    plain, plain_jointly = setting.fit(), setting.fit_jointly()
    twice = np.repeat(np.arange(1600), 2)
    setting.outcome = setting.outcome.take(twice)
    setting.scores = setting.scores[twice]
    setting.contributions = [part[twice] for part in setting.contributions]
    environments = setting.environments[twice]

    setting.table = make_screened_table([np.zeros(3200)], environments, groups=twice)
    clustered, clustered_jointly = setting.fit(), setting.fit_jointly()
    assert clustered.values == pytest.approx(plain.values, abs=1e-6)
    assert (clustered.errors > 0.9 * plain.errors).all()
    assert (clustered_jointly[1].errors > 0.9 * plain_jointly[1].errors).all()

    setting.table = make_screened_table([np.zeros(3200)], environments)
    apart = setting.fit()
    assert apart.errors == pytest.approx(plain.errors / np.sqrt(2), rel=0.1)


def test_errors_of_numbers_allow_for_a_variance_that_differs_between_rows():
    """White's errors, against those of many simulated outcomes."""
    slopes, errors = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        setting = Setting("number", [1.0, 1.0], n_rows=200, seed=seed)
        noise = rng.normal(size=400) * np.abs(setting.contributions[1][:, 0]) * 2
        setting.outcome = make_outcome(setting.scores[:, 0] + noise, None, is_number=True)
        setting.variances = setting.outcome.measure_variances(setting.scores, setting.table.places)
        worth = setting.fit()
        slopes.append(worth.values[0])
        errors.append(worth.errors[0])
    assert np.mean(errors) == pytest.approx(np.std(slopes), rel=0.3)
