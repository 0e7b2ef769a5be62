"""Whether leaves in a new environment are where training let expect them."""

import numpy as np
import pytest
from scipy import special

from icscm import SCMClassifier, evaluate
from icscm.validation.scores import ALPHA


def make_table(labels, tau=0.5, shift=0.0, n=500, seed=0):
    """Environments whose rates differ as the model says; `shift` moves all log odds."""
    rng = np.random.default_rng(seed)
    e = np.repeat(labels, n)
    x = rng.integers(0, 2, len(e))
    own = np.repeat(rng.normal(0, tau, len(labels)), n)
    y = rng.random(len(e)) < special.expit(np.where(x, 1.5, -2.0) + own + shift)
    return x[:, np.newaxis], y, e


def evaluate_drawn(learner, labels, **options):
    X, y, e = make_table(labels, **options)
    return evaluate(learner, X, y, environments=e)


@pytest.fixture(scope="module")
def learner():
    X, y, e = make_table(list("abcdefgh"))
    return SCMClassifier(max_rules=1).fit(X, y, environments=e)


def test_only_new_environments_are_held_against_the_interval(learner):
    X, y, e = make_table(["a", "new", "other"], seed=1)
    found = evaluate(learner, X, y, environments=e)
    for leaf, row in zip(found.leaves, learner.describe_leaves().itertuples(), strict=True):
        assert leaf.new_interval == (row.new_low, row.new_high)
        assert [each.environment for each in leaf.interval_checks] == ["new", "other"]
        assert all(each.is_inside == (each.p_value > ALPHA) for each in leaf.interval_checks)
        rows = (learner.model_.find_leaves(X) == leaf.leaf - 1) & (e == "new")
        assert leaf.interval_checks[0].n_samples == rows.sum()
        assert leaf.interval_checks[0].n_positive == y[rows].sum()


def test_rates_drawn_alike_are_inside_and_others_are_not(learner):
    alike = evaluate_drawn(learner, ["p", "q", "r"], seed=2)
    assert all(each.is_inside for leaf in alike.leaves for each in leaf.interval_checks)
    far = evaluate_drawn(learner, ["p", "q", "r"], tau=0.0, shift=3.0, seed=2)
    assert not any(each.is_inside for leaf in far.leaves for each in leaf.interval_checks)
    assert "Of 6 rates of leaves in 3 environments not seen in training 0 are within" in " ".join(
        repr(far).split()
    )


def test_rows_without_environments_are_one_new_environment(learner):
    X, y, _ = make_table(["new"], seed=3)
    found = evaluate(learner, X, y)
    assert [len(leaf.interval_checks) for leaf in found.leaves] == [1, 1]
    assert found.leaves[0].interval_checks[0].environment is None
    assert "taken as a new environment" in " ".join(repr(found).split())


def test_few_new_rows_refute_nothing(learner):
    """A rate of 0 in three rows is far outside of the interval, and no surprise."""
    leaf = int(np.argmin(learner.describe_leaves()["rate"]))
    found = evaluate(learner, np.full((3, 1), leaf), [False] * 3, environments=["new"] * 3)
    told = [each for each in found.leaves if each.n_samples]
    assert told[0].interval_checks[0].is_inside


def test_nothing_is_promised_from_two_environments():
    X, y, e = make_table(["a", "b"])
    found = evaluate_drawn(SCMClassifier(max_rules=1).fit(X, y, environments=e), ["new"])
    assert [(leaf.new_interval, leaf.interval_checks) for leaf in found.leaves] == [(None, ())] * 2
    assert "prediction interval" not in repr(found)


def test_json_and_page_have_it(learner):
    found = evaluate_drawn(learner, ["new"], shift=3.0, seed=4)
    plain = found.to_dict()["leaves"][0]
    assert plain["interval_checks"][0]["environment"] == "new"
    assert plain["new_interval"] == list(found.leaves[0].new_interval)
    assert "within the 95% prediction interval" in found.to_html()
