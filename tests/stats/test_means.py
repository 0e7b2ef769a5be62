"""Tests of means by environment agree with SciPy, and with other formulas."""

import numpy as np
import pytest
from scipy import stats

from icscm.stats.independence import compute_pearson_p_value
from icscm.stats.means import compute_mean_interval, compute_welch_p_value
from icscm.stats.ranking import rank_with_ties
from icscm.stats.verdicts import compute_minimum_detectable_shift


def describe(samples):
    sizes = np.array([len(sample) for sample in samples], dtype=float)
    means = np.array([sample.mean() for sample in samples])
    variances = np.array([sample.var(ddof=1) if len(sample) > 1 else 0.0 for sample in samples])
    return sizes, means, variances


def test_two_environments_are_compared_as_by_welchs_t_test():
    rng = np.random.default_rng(0)
    samples = [rng.normal(0, 1, 30), rng.normal(0.5, 4, 80)]
    expected = stats.ttest_ind(*samples, equal_var=False).pvalue
    assert compute_welch_p_value(*describe(samples)) == pytest.approx(expected, rel=1e-9)


def test_welchs_test_has_its_level_where_variances_differ():
    rng = np.random.default_rng(1)
    p_values = np.array(
        [
            compute_welch_p_value(
                *describe([rng.normal(0, sd, n) for sd, n in ((1, 60), (5, 12), (2, 25))])
            )
            for _ in range(1_000)
        ]
    )
    assert 0.03 < (p_values < 0.05).mean() < 0.08


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([[1.0, 1.0], [1.0, 1.0, 1.0]], 1.0),
        ([[1.0, 1.0], [2.0, 2.0]], 0.0),
        ([[1.0], [2.0, 3.0]], 1.0),
    ],
    ids=["the same everywhere", "constant but different", "one row"],
)
def test_environments_without_variance(samples, expected):
    assert compute_welch_p_value(*describe([np.array(sample) for sample in samples])) == expected


def test_interval_of_a_mean():
    numbers = np.random.default_rng(0).normal(3, 2, 15)
    (size,), (mean,), (variance,) = describe([numbers])
    expected = stats.t.interval(0.95, 14, loc=mean, scale=stats.sem(numbers))
    assert compute_mean_interval(size, mean, variance, confidence=0.95) == pytest.approx(expected)
    assert compute_mean_interval(1, 3.0, 0.0, confidence=0.95) is None


def test_ranks_are_those_of_scipy():
    numbers = np.array([3.0, 1.0, 3.0, 2.0, 1.0, 3.0])
    assert (rank_with_ties(numbers) == stats.rankdata(numbers) - 1).all()


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (6, 3)])
def test_tables_of_any_size(shape):
    """The kernels of two classes were used for several, and found no difference where there was."""
    counts = np.random.default_rng(0).integers(1, 40, shape)
    expected = stats.chi2_contingency(counts, correction=False).pvalue
    assert compute_pearson_p_value(counts) == pytest.approx(expected)
    with_empty_class = np.vstack((counts, np.zeros(shape[1], dtype=int)))
    assert compute_pearson_p_value(with_empty_class) == pytest.approx(expected)
    assert compute_pearson_p_value(counts[:1]) == 1.0


def test_the_detectable_shift_is_detected_in_four_of_five_samples():
    rng = np.random.default_rng(0)
    sizes = np.array([60.0, 40.0, 20.0])
    shift = compute_minimum_detectable_shift(sizes, 0.05)
    n_found = 0
    # the third environment is at the mean of the two largest
    means = (shift, 0, shift / 2)
    for _ in range(600):
        samples = [rng.normal(mean, 1, int(n)) for mean, n in zip(means, sizes, strict=True)]
        n_found += compute_welch_p_value(*describe(samples)) < 0.05
    assert 0.72 < n_found / 600 < 0.86


def test_no_shift_is_detectable_in_one_environment():
    assert compute_minimum_detectable_shift(np.array([50.0, 0.0]), 0.05) == np.inf
