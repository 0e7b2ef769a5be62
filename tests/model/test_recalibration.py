"""Models moved to a site: the shift, its interval, and what is rejected."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from icscm import InvariantForestClassifier, load
from icscm.exceptions import IcscmError
from icscm.model.recalibration import SITE_SPREAD, find_shift, fit_shift
from support.saved_models import make_saved_tree

X = pd.DataFrame({"age": [70.0, 20.0] * 30, "smoker": ["yes", "no", "no"] * 20})
Y = np.array(["yes", "no", "no", "no"] * 15)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 60))
def test_the_shift_is_that_of_the_penalized_likelihood(seed, n):
    """Jeffreys' prior is the square root of the information; minimized without derivatives."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(-1, 1, n), rng.integers(0, 2, n)

    def measure(shift):
        p = expit(shift + x)
        return -(np.log(np.where(y, p, 1 - p)).sum() + np.log((p * (1 - p)).sum()) / 2)

    found = fit_shift(x, y)
    twin = minimize(lambda a: measure(a[0]), [0.0], method="Nelder-Mead", options={"xatol": 1e-7})
    assert found.estimate == pytest.approx(twin.x[0], abs=1e-3)
    assert found.low < found.estimate < found.high
    share = SITE_SPREAD**2 / (SITE_SPREAD**2 + found.standard_error**2)
    assert found.intercept == pytest.approx(share * found.estimate)
    assert found.slope == 1


@pytest.mark.parametrize(("n", "rate"), [(30, -1.0), (100, -2.5), (500, -2.0)])
def test_intervals_cover(n, rate):
    """Of 600 sites the true shift is in the 95% interval of 93 to 97.5 %."""
    rng, covered, size = np.random.default_rng(n), 0, 600
    for _ in range(size):
        shift, x = rng.normal(0, 0.6), rng.normal(rate, 1.2, n)
        found = fit_shift(x, rng.random(n) < expit(shift + x))
        covered += found.low <= shift <= found.high
    assert 0.93 <= covered / size <= 0.975


def test_few_rows_are_better_than_none_and_many_give_the_slope():
    """Drawn towards 0, 20 rows do no harm where sites differ little, and help where they do."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(300):
        shift, x = rng.normal(0, 0.7), rng.normal(-1, 1.2, 20)
        found = fit_shift(x, rng.random(20) < expit(shift + x))
        errors.append([shift, found.estimate - shift, found.intercept - shift])
    nothing, estimate, applied = np.sqrt(np.mean(np.square(errors), axis=0))
    assert applied < 0.95 * min(nothing, estimate)
    x = rng.normal(-1, 1.2, 1000)
    y = (rng.random(1000) < expit(0.5 + 0.6 * x)).astype(int)
    twin = LogisticRegression(C=np.inf, tol=1e-10).fit(x[:, None], y)
    found = fit_shift(x, y)
    assert (found.intercept, found.slope) == pytest.approx(
        (twin.intercept_[0], twin.coef_[0, 0]), abs=1e-4
    )


@pytest.mark.parametrize("n_trees", [None, 3])
def test_a_model_is_moved_to_a_site(n_trees, tmp_path):
    saved = make_saved_tree(n_trees)
    moved = saved.recalibrate(X, Y)
    record = moved.settings["recalibration"]
    before, after = (logit(each.predict_proba(X)[:, 1]) for each in (saved, moved))
    assert after - before == pytest.approx(np.full(60, record["intercept"]))
    assert record["low"] < record["estimate"] < record["high"]
    assert (record["n"], record["rate"]) == (60, 0.25)
    moved.save(tmp_path / "m.json")
    assert load(tmp_path / "m.json") == moved
    shown = saved.recalibrate(X, prevalence=0.1)
    assert shown.predict_proba(X)[:, 1].mean() == pytest.approx(0.1)
    assert shown.settings["recalibration"]["standard_error"] > 0


def test_a_base_rate_alone_and_again():
    """The second one starts at the first, not at the rate of training."""
    saved = make_saved_tree()
    rate = saved.model.make_baseline().leaf_probabilities()[0]
    moved = saved.recalibrate(prevalence=0.12)
    assert moved.model.calibration == pytest.approx((logit(0.12) - logit(rate), 1.0))
    assert moved.settings["recalibration"]["standard_error"] is None
    again = moved.recalibrate(prevalence=rate)
    assert again.model.calibration == pytest.approx((0.0, 1.0), abs=1e-12)


def test_a_learner_is_moved():
    rng = np.random.default_rng(0)
    table, e = rng.normal(size=(600, 2)), rng.integers(0, 3, 600)
    y = rng.random(600) < np.where(table[:, 0] > 0, 0.7, 0.3)
    forest = InvariantForestClassifier(n_estimators=5, random_state=0).fit(table, y, environments=e)
    moved = forest.recalibrate(table, rng.random(600) < np.where(table[:, 0] > 0, 0.4, 0.1))
    assert moved.predict_proba(table)[:, 1].mean() == pytest.approx(0.25, abs=0.05)
    assert moved.settings["recalibration"]["slope"] != 1  # 100 rows of each class are there


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"takes labelled rows of the site, recalibrate\(X, y\), or its base rate"),
        ({"X": X}, "takes labelled rows"),
        ({"y": Y}, "takes labelled rows"),
        ({"X": X, "y": Y, "prevalence": 0.1}, "takes labelled rows"),
        ({"X": X, "y": Y[:3]}, "X has 60 rows with 3 labels"),
        ({"X": X[:0], "prevalence": 0.1}, "X has 0 rows with 0 labels; give a label for each row"),
        ({"X": X, "y": [7] * 60}, "y holds 7, not among the classes"),
        ({"prevalence": 1.0}, "prevalence is between 0 and 1, both excluded; got 1.0"),
    ],
)
def test_what_is_rejected(given, message):
    with pytest.raises(IcscmError, match=message):
        make_saved_tree().recalibrate(**given)


def test_shifts_in_words():
    assert str(find_shift(0.2, 0.5, np.zeros(4))) == (
        "The log odds are shifted by -1.39 from 4 rows (estimate -1.39, 95% interval -1.39 to "
        "-1.39); the slope is kept."
    )
