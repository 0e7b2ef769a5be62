"""Outcomes on one scale: gradients and hessians, levels, weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.screening.outcomes import (
    Environments,
    compute_deviance,
    compute_gradients,
    compute_hessians,
    compute_null_scores,
    fit_levels,
    make_outcome,
)
from icscm.tables.weights import make_relative

KINDS = ("two", "three", "number")
bounded = settings(max_examples=60, deadline=None)


def draw_outcome(kind, *, n_rows=60, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    n_classes = {"two": 2, "three": 3}.get(kind)
    values = rng.normal(size=n_rows)
    if n_classes is not None:
        values = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes))
    weights = make_relative(rng.uniform(0.2, 3.0, n_rows)) if weighted else None
    return make_outcome(values, weights, is_number=n_classes is None)


def draw_scores(outcome, seed=0):
    shape = len(outcome.weights), outcome.n_outputs
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("kind", KINDS)
@bounded
@given(seed=st.integers(0, 2**32), weighted=st.booleans())
def test_gradients_and_hessians_are_derivatives_of_the_losses(kind, seed, weighted):
    outcome = draw_outcome(kind, seed=seed, weighted=weighted)
    scores = draw_scores(outcome, seed)
    gradients = compute_gradients(outcome, scores)
    hessians = compute_hessians(outcome, scores)
    step = 1e-4
    for output in range(outcome.n_outputs):
        shift = np.zeros(outcome.n_outputs)
        shift[output] = step
        up, middle, down = (
            outcome.weights * outcome.compute_losses(scores + direction * shift)
            for direction in (1, 0, -1)
        )
        np.testing.assert_allclose(gradients[:, output], (down - up) / (2 * step), atol=1e-6)
        curvature = (up - 2 * middle + down) / step**2
        np.testing.assert_allclose(hessians[:, output], curvature, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_information_of_a_slope_is_the_curvature_along_it(kind):
    """For several classes it is less than the sum over classes: scores have no common level."""
    outcome = draw_outcome(kind)
    scores, directions = draw_scores(outcome), draw_scores(outcome, seed=1)
    step = 1e-4
    up, middle, down = (
        outcome.compute_losses(scores + slope * directions) for slope in (step, 0, -step)
    )
    information = outcome.compute_information(outcome.compute_means(scores), directions)
    np.testing.assert_allclose(information, (up - 2 * middle + down) / step**2, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_make_the_mean_residual_of_each_environment_zero(kind, weighted):
    outcome = draw_outcome(kind, n_rows=300, weighted=weighted)
    places = Environments(np.random.default_rng(2).integers(0, 3, 300), 4)  # the last is empty
    scores = draw_scores(outcome)
    levels = fit_levels(outcome, scores, places)
    residuals = compute_gradients(outcome, scores + levels[places.numbers])
    # of several classes the steps ignore that they go together, and converge more slowly
    tolerance = 0.005 if kind == "three" else 1e-7
    np.testing.assert_allclose(places.add_up(residuals) / 100, 0.0, atol=tolerance)
    assert not levels[3].any()
    means = outcome.compute_means(compute_null_scores(outcome, places))
    for place in range(3):
        rows = places.numbers == place
        mean = np.average(outcome.targets[rows], axis=0, weights=outcome.weights[rows])
        np.testing.assert_allclose(means[rows][0], mean, atol=tolerance)


@pytest.mark.parametrize("factor", [1e-310, 1e-300, 1.0, 1e200, 1e307])
def test_numbers_are_standardised_whatever_their_unit(factor):
    """The square of a large number overflowed, and that of a small one was 0: division by zero."""
    numbers = np.random.default_rng(0).normal(size=500) - 1.5
    targets = make_outcome(numbers * factor, None, is_number=True).targets[:, 0]
    assert targets.mean() == pytest.approx(0.0, abs=1e-12)
    assert targets.std() == pytest.approx(1.0)
    np.testing.assert_allclose(targets, (numbers - numbers.mean()) / numbers.std(), rtol=1e-6)


def test_constant_numbers_are_zeros():
    assert not make_outcome(np.full(9, 3.0), None, is_number=True).targets.any()


def test_variances_of_numbers_are_those_of_the_environments():
    rng = np.random.default_rng(0)
    places = Environments(np.repeat([0, 1], 5_000), 2)
    numbers = np.repeat([1.0, 3.0], 5_000) * rng.normal(size=10_000)
    outcome = make_outcome(numbers, None, is_number=True)
    scores = compute_null_scores(outcome, places)
    variances = outcome.measure_variances(scores, places)
    assert variances * numbers.var() == pytest.approx([1.0, 9.0], rel=0.05)
    # the null deviance is then the number of rows
    deviance = compute_deviance(outcome, scores, variances=variances, places=places)
    assert deviance == pytest.approx(10_000)
    assert draw_outcome("two").measure_variances(scores, places).tolist() == [1, 1]


def test_bins_are_compared_by_log_odds_ratios_and_mean_differences():
    n = np.array([[[1e6]]])
    two = draw_outcome("two")
    effect = two.compare_bins(0.8 * n, 0.5 * n, n)
    assert effect.item() == pytest.approx(np.log(4), abs=1e-4)
    three = draw_outcome("three")
    observed = np.array([[[0.2, 0.3, 0.5]]]) * n
    expected = np.array([[[0.4, 0.3, 0.3]]]) * n
    effects = three.compare_bins(observed, expected, n)
    assert effects.ravel() == pytest.approx(np.log([0.5, 1.0, 5 / 3]), abs=1e-4)
    number = draw_outcome("number")
    assert number.compare_bins(0.8 * n, 0.5 * n, n).item() == pytest.approx(0.3, abs=1e-4)
    for outcome in (two, three, number):  # an empty bin says nothing
        empty = np.zeros((1, 1, outcome.n_outputs))
        assert not outcome.compare_bins(empty, empty, np.zeros((1, 1, 1))).any()


@pytest.mark.parametrize("kind", KINDS)
def test_some_rows_of_an_outcome(kind):
    outcome = draw_outcome(kind, weighted=True)
    rows = np.array([5, 3, 3, 59])
    part = outcome.take(rows)
    assert np.array_equal(part.targets, outcome.targets[rows])
    assert np.array_equal(part.weights, outcome.weights[rows])
    assert part.n_outputs == outcome.n_outputs
    assert type(part) is type(outcome)
