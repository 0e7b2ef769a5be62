"""Calibration curves and decision curves, against literal twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from icscm.validation.curves import (
    choose_thresholds,
    compute_calibration_curve,
    compute_net_benefit,
)

# Few distinct values: ties are what rules make.
PROBABILITIES = st.sampled_from([0.01, 0.1, 0.25, 0.3, 0.5, 0.55, 0.7, 0.95])
ROWS = st.lists(st.tuples(st.booleans(), PROBABILITIES), min_size=1, max_size=60)


def unzip(rows):
    y, p = map(np.array, zip(*rows, strict=True))
    return y, p


@given(ROWS)
@settings(max_examples=100, deadline=None)
def test_net_benefit_is_that_of_its_definition(rows):
    y, p = unzip(rows)
    thresholds = [0.01, 0.2, 0.25, 0.5, 0.9]
    for t, found in zip(thresholds, compute_net_benefit(y, p, thresholds), strict=True):
        n_true = sum(truth and chance >= t for truth, chance in rows)
        n_false = sum(not truth and chance >= t for truth, chance in rows)
        n = len(rows)
        assert found == pytest.approx(n_true / n - n_false / n * t / (1 - t), abs=1e-12)


def smooth_literally(y, p, at):
    """A weighted straight line through the nearest three quarters of the rows."""
    distance = np.abs(p - at)
    reach = max(1.001 * np.sort(distance)[int(np.ceil(0.75 * len(p))) - 1], 1e-9)
    weight = np.maximum(1 - (distance / reach) ** 3, 0) ** 3
    if len(set(p[weight > 0])) == 1:
        return y[weight > 0].mean()
    _slope, level = np.polyfit(p - at, y.astype(float), 1, w=np.sqrt(weight))
    return np.clip(level, 0, 1)


@given(ROWS)
@settings(max_examples=100, deadline=None)
def test_the_calibration_curve_is_that_of_its_definition(rows):
    y, p = unzip(rows)
    y, p = np.append(y, [True, False] * 10), np.append(p, [0.3, 0.6] * 10)
    curve = compute_calibration_curve(y, p)
    assert {x for x, _ in curve} <= {*p.tolist()}
    for x, rate in curve:
        assert rate == pytest.approx(smooth_literally(y, p, x), abs=1e-6)


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0])
def test_the_curve_is_near_the_truth(slope):
    """20,000 rows, more than groups that the curve is computed from."""
    rng = np.random.default_rng(0)
    x = rng.normal(-1, 1.2, 20_000)
    y = rng.random(20_000) < expit(slope * x)
    p, rate = map(np.array, zip(*compute_calibration_curve(y, expit(x)), strict=True))
    assert len(p) == 50
    assert np.abs(rate - expit(slope * np.log(p / (1 - p)))).max() < 0.03


def test_few_rows_of_a_class_have_no_curve():
    assert compute_calibration_curve(np.arange(100) < 9, np.linspace(0.1, 0.9, 100)) == ()


def test_thresholds_end_where_few_probabilities_are_higher():
    p = np.linspace(0.0, 0.2, 1001)
    found = choose_thresholds(p)
    assert (found[0], found[-1]) == (0.01, pytest.approx(0.198))
    assert choose_thresholds(p * 5)[-1] == 0.5
    assert choose_thresholds(p / 100)[[0, -1]] == pytest.approx([0.000198, 0.00198])


def test_treating_all_and_a_perfect_model_are_the_bounds():
    y = np.arange(10) < 3
    thresholds = np.array([0.1, 0.3, 0.5])
    of_all = compute_net_benefit(y, np.ones(10), thresholds)
    assert of_all == pytest.approx(0.3 - 0.7 * thresholds / (1 - thresholds))
    assert compute_net_benefit(y, y.astype(float), thresholds) == pytest.approx(0.3)
