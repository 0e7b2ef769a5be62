"""What a column says by itself, estimated in the other environments."""

import numpy as np
import pytest
from scipy.special import expit

from icscm.screening.outcomes import make_outcome
from icscm.screening.own_effects import (
    MAX_OWN_BINS,
    compute_own_effects,
    find_strongest,
    fit_null_model,
    measure_own_effect,
    sum_in_others,
)
from icscm.screening.screened_table import merge_bins
from support.screened import bin_evenly, make_screened_table


def make_classes(strengths, *, n_rows=400, seed=0, level=0.5):
    """A column whose log odds ratio is another in each environment, and one of noise."""
    rng = np.random.default_rng(seed)
    environments = np.repeat(np.arange(len(strengths)), n_rows)
    column = rng.integers(0, 2, len(environments))
    noise = rng.normal(size=len(environments))
    log_odds = np.array(strengths)[environments] * (column - 0.5) + level * environments
    y = (rng.random(len(environments)) < expit(log_odds)).astype(np.int64)
    table = make_screened_table([column, bin_evenly(noise)], environments)
    return make_outcome(y, None, is_number=False), table


def test_sums_of_the_other_environments():
    table = make_screened_table([[0, 1, 1, 0, 2]], [0, 0, 1, 1, 1])
    values = np.arange(1.0, 6.0)[:, np.newaxis]
    sums = sum_in_others(values, table.columns.bins[0], table=table, weights=np.full(5, 2.0))
    assert sums[:, :, 0].tolist() == [[8, 6, 10], [2, 4, 0]]


def test_an_own_effect_is_that_of_the_other_environments():
    """An effect in one environment alone is not seen there, and so has no worth there."""
    outcome, table = make_classes([0.0, 0.0, 3.0], n_rows=3000, level=0.0)
    effects = compute_own_effects(outcome, table, 0, fit_null_model(outcome, table))[:, 0]
    is_high = table.columns.bins[0] == 1
    contrast = [
        effects[is_high & (table.places.numbers == place)][0]
        - effects[~is_high & (table.places.numbers == place)][0]
        for place in range(3)
    ]
    assert contrast[2] == pytest.approx(0.0, abs=0.2)
    assert contrast[0] == pytest.approx(1.3, abs=0.3)  # half of the log odds ratio, and less


def test_a_stable_effect_has_the_worth_one_and_a_reversed_one_may_be_negative():
    outcome, table = make_classes([1.5] * 6)
    null = fit_null_model(outcome, table)
    stable = measure_own_effect(outcome, table, 0, null)
    assert stable.worth.mean == pytest.approx(1.0, abs=0.25)
    assert stable.worth.low > 0.7
    assert stable.part == 0
    assert stable.strength > 100
    assert abs(measure_own_effect(outcome, table, 1, null).strength) < 20

    reversing, reversing_table = make_classes([2, 2, 2, -1, 2, -1])
    null = fit_null_model(reversing, reversing_table)
    reversed_effect = measure_own_effect(reversing, reversing_table, 0, null)
    assert reversed_effect.worth.low < 0
    assert reversed_effect.worth.p_value < 1e-6
    assert reversed_effect.part > 0.01


def test_a_constant_column_says_nothing():
    outcome, table = make_classes([1, 1, 1])
    constant = make_screened_table([np.zeros(1200)], table.places.numbers)
    effect = measure_own_effect(outcome, constant, 0, fit_null_model(outcome, constant))
    assert np.isnan(effect.worth.mean)
    assert effect.strength == 0


def test_the_level_of_an_environment_is_no_effect():
    """A column that goes with the environment says nothing of an outcome that does, too."""
    rng = np.random.default_rng(0)
    environments = np.repeat(np.arange(5), 600)
    column = (rng.random(3000) < 0.1 + 0.2 * environments).astype(int)
    y = (rng.random(3000) < 0.1 + 0.2 * environments).astype(int)
    table = make_screened_table([column], environments)
    outcome = make_outcome(y, None, is_number=False)
    effects = compute_own_effects(outcome, table, 0, fit_null_model(outcome, table))
    assert np.abs(effects).max() < 0.3
    assert np.corrcoef(column, y)[0, 1] > 0.3


def test_the_null_model_is_the_rate_of_each_environment():
    outcome, table = make_classes([1, 0, 2])
    null = fit_null_model(outcome, table)
    rates = [outcome.targets[table.places.numbers == place].mean() for place in range(3)]
    assert expit(null.scores[::400, 0]) == pytest.approx(rates)
    p = np.repeat(rates, 400)
    y = outcome.targets[:, 0]
    deviance = -2 * (y * np.log(p) + (1 - y) * np.log(1 - p)).sum()
    assert null.deviance == pytest.approx(deviance)


def test_the_strongest_columns_are_found_whether_stable_or_reversed():
    rng = np.random.default_rng(0)
    environments = np.repeat([0, 1], 800)
    y = rng.integers(0, 2, 1600)
    stable = np.where(rng.random(1600) < 0.3, 1 - y, y)
    reversed_column = np.where((rng.random(1600) < 0.3) ^ (environments == 1), 1 - y, y)
    columns = [rng.integers(0, 8, 1600) for _ in range(10)]
    columns[3], columns[7] = stable, reversed_column
    table = make_screened_table(columns, environments)
    outcome = make_outcome(y, None, is_number=False)
    null = fit_null_model(outcome, table)
    assert find_strongest(outcome, table, null, n_columns=2) == [3, 7]


def test_bins_of_numbers_are_merged_to_few_of_about_as_many_rows():
    rng = np.random.default_rng(0)
    values = bin_evenly(rng.normal(size=3000), 50) + 1
    with_missing = np.where(rng.random(3000) < 0.2, 0, values)
    levels = rng.integers(0, 50, 3000)
    table = make_screened_table(
        [values - 1, with_missing, levels],
        rng.integers(0, 3, 3000),
        is_nominal=[False, False, True],
        has_missing=[False, True, False],
    )
    merged = merge_bins(table, 0, max_bins=MAX_OWN_BINS)
    counts = np.bincount(merged)
    assert len(counts) == MAX_OWN_BINS
    assert counts.max() < 1.5 * counts.min()
    assert (np.diff(merged[np.argsort(values, kind="stable")].astype(int)) >= 0).all()

    merged = merge_bins(table, 1, max_bins=MAX_OWN_BINS)
    assert np.array_equal(merged == 0, with_missing == 0)
    assert merged.max() == MAX_OWN_BINS
    assert np.array_equal(merge_bins(table, 2, max_bins=MAX_OWN_BINS), levels)
