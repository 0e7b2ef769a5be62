"""The simulation has the rates that the paper states."""

import numpy as np
import pytest

from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmError


def assert_rate(found, wanted, n, errors=5):
    assert abs(found - wanted) <= errors * np.sqrt(wanted * (1 - wanted) / n) + 1e-12


def test_names_and_shapes():
    data = make_conjunction(100, 4, n_parents=3, n_children=2, n_environments=5, random_state=0)
    assert list(data.X.columns) == ["A1", "A2", "A3", "B1", "B2", "B3", "B4", "C1", "C2"]
    assert data.parents == ["A1", "A2", "A3"]
    assert data.X.shape == (500, 9)
    assert np.bincount(data.environments).tolist() == [100] * 5
    assert set(np.unique(data.X)) == {0, 1}


def test_the_papers_rates():
    n = 200_000
    data = make_conjunction(n, 2, random_state=0)
    for environment, rates in enumerate([(0.1, 0.5, 0.5, 0.5), (0.5, 0.3, 0.5, 0.5)]):
        rows = data.environments == environment
        for name, rate in zip(["A1", "A2", "B1", "B2"], rates, strict=True):
            assert_rate(data.X[name][rows].mean(), rate, n)


@pytest.mark.parametrize(("noise", "wrong"), [("coin", 0.025), ("flip", 0.05)])
def test_label_noise_is_the_same_in_every_environment(noise, wrong):
    n = 100_000
    data = make_conjunction(n, 0, noise=noise, random_state=1)
    clean = (data.X["A1"] & data.X["A2"]).to_numpy()
    for environment in (0, 1):
        rows = data.environments == environment
        assert_rate((clean != data.y)[rows].mean(), wrong, n)


@pytest.mark.parametrize("child", ["text", "code"])
def test_the_child_shows_the_environment_now_and_then(child):
    n = 100_000
    data = make_conjunction(n, 0, child=child, random_state=2)
    c = data.X["C1"].to_numpy()
    for environment in (0, 1):
        rows = data.environments == environment
        mark = environment if child == "text" else 1 - environment
        for label in (0, 1):
            chosen = rows & (data.y == label)
            wanted = 0.05 if mark != label else 0.0
            assert_rate((c != data.y)[chosen].mean(), wanted, chosen.sum())


def test_more_parents_keep_the_label_as_frequent():
    two = make_conjunction(50_000, 0, random_state=3).y.mean()
    four = make_conjunction(50_000, 0, n_parents=4, random_state=4).y.mean()
    assert abs(two - four) < 0.05
    assert make_conjunction(50_000, 0, n_parents=1, random_state=5).y.mean() > 0.2


def test_a_disjunction_inverts_parents_and_label():
    data = make_conjunction(50_000, 0, model_type="disjunction", label_noise=0, random_state=6)
    np.testing.assert_array_equal(data.y, data.X["A1"] | data.X["A2"])
    assert_rate(data.X["A1"][data.environments == 0].mean(), 0.9, 50_000)


def test_continuous_features_hide_the_same_bits():
    data = make_conjunction(20_000, 1, continuous=True, label_noise=0, random_state=7)
    assert data.X.min().min() >= 0
    assert data.X.max().max() <= 1
    assert data.X["B1"].nunique() == 40_000
    np.testing.assert_array_equal(data.y, (data.X["A1"] > 0.5) & (data.X["A2"] > 0.5))


def test_seeds():
    first, again, other = (make_conjunction(50, 1, random_state=seed) for seed in (1, 1, 2))
    assert first.X.equals(again.X)
    assert not first.X.equals(other.X)
    generator = np.random.default_rng(1)
    assert make_conjunction(50, 1, random_state=generator).X.equals(first.X)
    assert not make_conjunction(50, 1, random_state=generator).X.equals(first.X)


def test_a_tree_asks_its_parents_in_turn():
    data = make_conjunction(5_000, 0, n_parents=3, model_type="tree", label_noise=0, random_state=8)
    a1, a2, a3 = (data.X[name].to_numpy() for name in data.parents)
    np.testing.assert_array_equal(data.y, np.where(a1 == 1, a3, a2))
    with pytest.raises(
        ValueError, match=r"a tree takes 1, 3, 7, 15, \.\. parents; got n_parents=4"
    ):
        make_conjunction(10, n_parents=4, model_type="tree")


@pytest.mark.parametrize("name", ["n_samples", "n_distractors", "n_parents", "n_environments"])
def test_sizes_beyond_any_machine(name):
    """`icscm simulate --n-samples 9223372036854775808` ended with "something unforeseen"."""
    with pytest.raises(IcscmError, match=f"{name} must be a whole number"):
        make_conjunction(**{name: 2**63})
