"""Simulated hospitals: what is said of them, tested as statistics, and the lesson they teach."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from icscm import ICSCMClassifier, InvariantTreeClassifier, SCMClassifier
from icscm.datasets import make_hospitals
from icscm.exceptions import IcscmError
from support.fitting import fit_quietly

N = 200_000
NAMES = ["Ash", "Birch", "Cedar", "Elm", "Fir"]


@pytest.fixture(scope="module")
def data():
    return make_hospitals(N, n_new_rows=50_000, random_state=0)


def assert_rate(found, wanted, n, errors=5):
    assert n > 100
    assert abs(found - wanted) <= errors * np.sqrt(wanted * (1 - wanted) / n) + 1e-12


def by_hospital(data):
    for name in np.unique(data.environments):
        rows = data.environments == name
        yield data.X[rows], data.y[rows]


def find_rule(X):
    """Whether the rule on the causes holds; what is missing was normal."""
    return (X["age"] > 65) & (X["lactate"] > 2)


def test_names_shapes_and_kinds_of_columns(data):
    assert len(data.X) == len(data.y) == len(data.environments) == N
    assert len(data.X_new) == len(data.y_new) == 50_000
    assert list(data.X_new.columns) == list(data.X.columns)
    assert set(data.parents + data.shortcuts) <= set(data.X.columns)
    assert (data.parents, data.rule) == (["age", "lactate"], "age > 65 and lactate > 2")
    assert set(data.y) == set(data.y_new) == {0, 1}
    assert data.X["diabetes"].dtype == bool
    assert pd.api.types.is_integer_dtype(data.X["ward"])


def test_hospitals_are_of_unequal_size_and_in_random_order(data):
    names, counts = np.unique(data.environments, return_counts=True)
    assert names.tolist() == NAMES
    assert counts.tolist() == sorted(counts, reverse=True)
    assert counts[0] / counts[-1] == pytest.approx(3, rel=0.01)
    assert set(data.environments[:200]) == set(NAMES)


def test_the_rate_given_the_causes_is_the_same_everywhere(data):
    """Prevalence differs by case mix only."""
    rates = []
    for X, y in [*by_hospital(data), (data.X_new, data.y_new)]:
        holds = find_rule(X)
        assert_rate(y[holds].mean(), 0.85, holds.sum())
        assert_rate(y[~holds].mean(), 0.05, (~holds).sum())
        rates.append(y.mean())
    assert max(rates) - min(rates) > 0.1


def test_laboratory_values_are_missing_by_hospital(data):
    shares = [(X[["sodium", "creatinine"]].isna()).to_numpy().mean() for X, _ in by_hospital(data)]
    np.testing.assert_allclose(sorted(shares), np.linspace(0.1, 0.5, 5), atol=0.01)
    assert (data.X["lactate"].isna()).mean() == pytest.approx(0.15, abs=0.03)
    for X, y in by_hospital(data):
        is_missing = X["lactate"].isna() & (X["age"] > 65)
        assert_rate(y[is_missing].mean(), 0.05, is_missing.sum())


def test_lactate_missing_at_random_hides_a_cause():
    data = make_hospitals(N, missing_when="random", random_state=0)
    rates = [y[X["lactate"].isna() & (X["age"] > 65)].mean() for X, y in by_hospital(data)]
    assert min(rates) > 0.3
    assert max(rates) - min(rates) > 0.1


def test_shortcuts_follow_the_outcome_here_more_than_there(data):
    coding, ordering = [], []
    for X, y in by_hospital(data):
        code, tested = (X["billing_code"] == "R57").to_numpy(), X["troponin"].notna().to_numpy()
        coding.append(code[y == 1].mean() - code[y == 0].mean())
        ordering.append(tested[y == 1].mean() - tested[y == 0].mean())
    np.testing.assert_allclose(coding, 0.95 * np.linspace(1, 0.5, 5), atol=0.02)
    np.testing.assert_allclose(ordering, [0.95, 0, 0.95, 0, 0.95], atol=0.02)


def test_at_the_new_hospital_shortcuts_are_reversed(data):
    ill = data.y_new == 1
    code = (data.X_new["billing_code"] == "R57").to_numpy()
    tested = data.X_new["troponin"].notna().to_numpy()
    assert code[ill].mean() - code[~ill].mean() == pytest.approx(-0.95 * 0.75, abs=0.02)
    assert tested[ill].mean() - tested[~ill].mean() == pytest.approx(-0.95 * 0.6, abs=0.02)


def test_without_shortcuts_and_causes_nothing_tells_the_outcome():
    data = make_hospitals(50_000, shortcut_strength=0, random_state=1)
    others = pd.get_dummies(data.X.drop(columns=data.parents), dtype=float)
    others = others.assign(tested=others.pop("troponin").notna().astype(float))
    holds = find_rule(data.X)
    for name in others:
        for rows in (holds, ~holds):
            values, y = others[name][rows], pd.Series(data.y)[rows]
            assert abs(values.corr(y)) * np.sqrt(rows.sum()) < 5, name


def test_the_hospitals_may_act_on_the_outcome():
    data = make_hospitals(N, label_shift=1.0, random_state=0)
    outside = [y[~find_rule(X)].mean() for X, y in by_hospital(data)]
    logits = np.sort(np.log(np.array(outside) / (1 - np.array(outside))))
    np.testing.assert_allclose(logits - np.log(0.05 / 0.95), np.linspace(-1, 1, 5), atol=0.1)


@pytest.mark.parametrize(("n_causes", "rule"), [
    (1, "age > 65"),
    (3, "age > 65 or lactate > 2 or admission == emergency"),
])  # fmt: skip
def test_other_rules(n_causes, rule):
    data = make_hospitals(2_000, n_causes=n_causes, model_type="disjunction", random_state=0)
    assert (data.rule, len(data.parents)) == (rule, n_causes)


def test_the_same_seed_gives_the_same_admissions():
    one, two, other = (make_hospitals(300, random_state=seed) for seed in (7, 7, 8))
    pd.testing.assert_frame_equal(one.X, two.X)
    pd.testing.assert_frame_equal(one.X_new, two.X_new)
    assert not one.X.equals(other.X)


def test_many_hospitals_have_names_of_their_own():
    data = make_hospitals(1_000, n_hospitals=30, random_state=0)
    assert len(np.unique(data.environments)) == 30


@pytest.mark.parametrize(("wrong", "message"), [
    ({"n_rows": 3}, "n_rows must be a whole number from 15"),
    ({"n_hospitals": 1}, "n_hospitals must be a whole number from 2"),
    ({"n_causes": 4}, "n_causes must be a whole number from 1 to 3"),
    ({"model_type": "tree"}, "model_type must be one of"),
    ({"risk": 0.5}, "risk must be two numbers"),
    ({"risk": (0, 0.5)}, "risk must be two numbers"),
    ({"shortcut_strength": 2}, "shortcut_strength must be a number from 0 to 1"),
    ({"missing": -1}, "missing must be a number from 0 to 1"),
    ({"missing_when": "never"}, "missing_when must be one of"),
    ({"label_shift": np.nan}, "label_shift must be a number from 0 to 10"),
    ({"n_new_rows": 0}, "n_new_rows must be a whole number from 1"),
])  # fmt: skip
def test_what_is_not_allowed(wrong, message):
    with pytest.raises(IcscmError, match=message):
        make_hospitals(**wrong)


@pytest.mark.parametrize("n_draws", [1, pytest.param(5, marks=pytest.mark.thorough)])
def test_the_lesson(n_draws):
    """Learners without invariance rely on shortcuts and fail at the new hospital; the others find
    the causes and hold there. In most draws: the tests themselves err now and then."""
    learners = {
        "scm": SCMClassifier(),
        "icscm": ICSCMClassifier(),
        "plain": InvariantTreeClassifier(tolerance=None),
        "tree": InvariantTreeClassifier(),
    }
    exact, shortcut, errors = Counter(), Counter(), Counter()
    for seed in range(n_draws):
        data = make_hospitals(random_state=seed)
        for name, learner in learners.items():
            fit_quietly(learner, data.X, data.y, data.environments)
            used = set(learner.features_used_)
            exact[name] += used == set(data.parents)
            shortcut[name] += bool(used & set(data.shortcuts))
            errors[name] += (1 - learner.score(data.X_new, data.y_new)) / n_draws
    assert shortcut == {"scm": n_draws, "icscm": 0, "plain": n_draws, "tree": 0}
    assert exact["icscm"] >= 0.8 * n_draws
    assert min(errors["scm"], errors["plain"]) > 0.4
    assert errors["icscm"] < 0.11
    assert errors["tree"] < 0.09
