"""The largest difference among very many environments is that of all pairs, found without them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import _constants
from icscm._constants import MAX_PAIRED
from icscm.stats import pairs
from icscm.stats.pairs import bound_pairs, compare_all, find_extreme
from icscm.stats.verdicts import compute_differences, compute_wilson, find_shown

SHAPES = ["small", "large", "same size", "same rate", "one apart", "pure", "few kinds", "even"]


def make_counts(shape, n_environments, seed):
    """Counts by label and environment, (2, K), of a kind that could mislead a search for ends."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, n_environments)
    if shape in ("large", "even"):
        sizes = rng.integers(10**4, 10**6, n_environments)
    elif shape in ("same size", "few kinds"):
        sizes[:] = 30 if shape == "same size" else 4
    rates = np.full(n_environments, rng.uniform(0.02, 0.98))
    if shape in ("small", "large"):
        rates = rng.beta(2, 3, n_environments)
    positives = rng.binomial(sizes, rates)
    if shape in ("same rate", "even"):
        positives = np.round(sizes * rates).astype(int)
    elif shape == "pure":
        positives[:] = 0
    elif shape == "one apart":
        positives[rng.integers(n_environments)] = 0
    return np.stack((sizes - positives, positives))


def make_points(counts, z):
    sizes = counts.sum(axis=0)
    low, high = compute_wilson(counts[1], sizes, z)
    rates = counts[1] / np.maximum(sizes, 1)
    return np.stack((rates, rates - low, high - rates))


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40, deadline=None)
@given(
    n_environments=st.integers(1, 400),
    seed=st.integers(0, 2**32),
    z=st.sampled_from([0.0, 0.5, 1.6, 5.0]),
)
def test_the_extreme_ones_have_the_bounds_of_all_pairs(shape, n_environments, seed, z):
    points = make_points(make_counts(shape, n_environments, seed), z)
    wanted = compare_all(*points[:, np.newaxis])
    found = compare_all(*points[:, find_extreme(points)][:, np.newaxis])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("n_decimals", [1, 2, 4])
@settings(max_examples=60, deadline=None)
@given(n_points=st.integers(0, 12), seed=st.integers(0, 2**32))
def test_any_points_whatever(n_decimals, n_points, seed):
    """Not only rates, and with many ties."""
    rng = np.random.default_rng(seed)
    points = rng.uniform([[-3], [0], [0]], [[3], [2], [2]], (3, n_points)).round(n_decimals)
    points[1:, rng.random(n_points) < 0.3] = 0
    wanted = compare_all(*points[:, np.newaxis])
    found = compare_all(*points[:, find_extreme(points)][:, np.newaxis])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_environments", [MAX_PAIRED, MAX_PAIRED + 1])
def test_verdicts_on_both_sides_of_the_limit(shape, n_environments, monkeypatch):
    """Environments without samples count as before, too: any difference is possible there."""
    tables = np.stack([make_counts(shape, n_environments, seed) for seed in range(6)])
    tables[3:, :, ::7] = 0
    tables[5] = 0
    wanted = [compute_differences(tables, alpha) for alpha in (0.05, 0.5)]
    shown = [find_shown(tables, 0.05, 0.1 + i / 10) for i in range(4)]
    monkeypatch.setattr(_constants, "MAX_PAIRED", 5000 if n_environments > MAX_PAIRED else 2)
    np.testing.assert_array_equal(
        [compute_differences(tables, alpha) for alpha in (0.05, 0.5)], wanted
    )
    np.testing.assert_array_equal([find_shown(tables, 0.05, 0.1 + i / 10) for i in range(4)], shown)


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_do_not_grow_with_the_square(shape, monkeypatch):
    """Ten thousand environments had no verdict after two minutes: all their pairs were compared.

    Counted in environments that are compared with each other, not in seconds.
    """
    n_compared = []

    def count_compared(values, *others):
        n_compared.append(values.shape[1])
        return compare_all(values, *others)

    monkeypatch.setattr(pairs, "compare_all", count_compared)
    points = make_points(make_counts(shape, 20_000, 0), 1.6)[:, np.newaxis]
    bound_pairs(*points, np.ones(points.shape[1:], dtype=bool))
    assert 0 < len(n_compared) <= 2
    assert max(n_compared) <= MAX_PAIRED
