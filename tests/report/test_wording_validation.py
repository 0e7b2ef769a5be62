"""Sentences on environments left out claim what their intervals show, and no more."""

from dataclasses import dataclass
from math import inf, nan

import pytest

from icscm.report.wording.estimates import describe_estimate
from icscm.report.wording.validation import (
    describe_brier_score,
    describe_calibration,
    describe_discrimination,
    describe_few_environments,
    describe_validation,
)


@dataclass(frozen=True)
class Score:
    """A pooled score; by default without a prediction interval, and from all environments."""

    value: float
    low: float
    high: float
    new_low: float = nan
    new_high: float = nan
    n_environments: int = 4


def test_an_estimate_has_its_interval_where_it_is_known():
    assert describe_estimate(Score(0.8123, 0.7, 0.9)) == "0.81 (0.70 to 0.90)"
    assert describe_estimate(Score(0.8123, nan, nan)) == "0.81"
    assert describe_estimate(Score(0.8123, -inf, 0.9)) == "0.81"
    assert describe_estimate(Score(-0.001, -0.004, 0.01)) == "0.00 (0.00 to 0.01)"
    assert describe_estimate(None) == "-"


@pytest.mark.parametrize(
    ("low", "high", "judgement"),
    [
        (0.51, 0.9, "better than chance"),
        (0.1, 0.49, "worse than chance"),
        (0.5, 0.9, "not shown to be better than chance"),
        (0.4, 0.6, "not shown to be better than chance"),
    ],
)
def test_discrimination_is_judged_by_the_interval(low, high, judgement):
    line = describe_discrimination(Score(0.6, low, high), 4)
    ends = f"{low:.2f} to {high:.2f}"
    assert line == f"Discrimination: AUC 0.60 ({ends}) in 4 environments left out: {judgement}"


def test_discrimination_without_an_interval_is_not_judged():
    line = describe_discrimination(Score(0.6, nan, nan, n_environments=1), 2)
    assert line == "Discrimination: AUC 0.60 in 2 environments left out (1 with both classes)"


def test_discrimination_in_a_new_environment_is_predicted():
    line = describe_discrimination(Score(0.7, 0.6, 0.8, new_low=0.45, new_high=0.93), 4)
    assert line.endswith(
        ": better than chance; 95% prediction interval for a new environment 0.45 to 0.93"
    )


@pytest.mark.parametrize(
    ("slope", "intercept", "judgement"),
    [
        (Score(1.4, 1.1, 1.7), Score(0.5, 0.3, 0.7), "predicted risks are too moderate"),
        (Score(0.6, 0.4, 0.9), Score(0.5, 0.3, 0.7), "predicted risks are too extreme"),
        (Score(1.0, 0.8, 1.2), Score(0.5, 0.3, 0.7), "predicted risks are too low"),
        (Score(1.0, 0.8, 1.2), Score(-0.5, -0.7, -0.3), "predicted risks are too high"),
        (Score(1.0, 0.8, 1.2), Score(0.1, -0.1, 0.3), "no common miscalibration is detected"),
        (Score(1.4, nan, nan), Score(0.5, nan, nan), "no common miscalibration is detected"),
    ],
)
def test_calibration_is_judged_by_the_slope_before_the_intercept(slope, intercept, judgement):
    line = describe_calibration(slope, intercept, 3)
    assert line == (
        f"Calibration: slope {describe_estimate(slope)}, intercept "
        f"{describe_estimate(intercept)} in 3 environments left out: {judgement}"
    )


def test_calibration_without_a_slope_is_that_of_the_intercept():
    line = describe_calibration(None, Score(0.5, 0.3, 0.7), 3)
    assert line == (
        "Calibration: intercept 0.50 (0.30 to 0.70) in 3 environments left out: predicted risks "
        "are too low"
    )


@pytest.mark.parametrize(
    ("low", "high", "odds", "is_recalibrated"),
    [
        (-0.5, 0.6, "0.61 to 1.8", False),
        (-0.71, 0.6, "0.49 to 1.8", True),
        (-0.5, 0.71, "0.61 to 2", True),
        (-4.7, 4.7, "0.01 or less to 100 or more", True),
    ],
)
def test_a_shift_of_the_odds_by_a_factor_of_two_calls_for_recalibration(
    low, high, odds, is_recalibrated
):
    intercept = Score(0.0, -0.2, 0.2, new_low=low, new_high=high)
    line = describe_calibration(None, intercept, 4)
    end = ": recalibrate the model there before using its risks" if is_recalibrated else ""
    assert line.endswith(
        f"; in a new environment the odds may be {odds} times those predicted{end}"
    )


@pytest.mark.parametrize(
    ("low", "high", "end"),
    [
        (0.01, 0.2, ": better"),
        (-0.2, -0.01, ": worse"),
        (-0.1, 0.2, ": not shown to be better"),
        (nan, nan, ""),
    ],
)
def test_the_brier_score_is_judged_by_its_skill(low, high, end):
    skill = Score(0.05, low, high)
    line = describe_brier_score(Score(0.2, 0.1, 0.3), skill, 3)
    assert line == (
        "Brier score: 0.20 (0.10 to 0.30) in 3 environments left out, skill "
        f"{describe_estimate(skill)} against the majority-class baseline (the rate in training)"
        f"{end}"
    )


def test_few_environments_call_for_caution():
    assert "cannot be estimated" in describe_few_environments(2)
    assert describe_few_environments(3).startswith("Caution: 3 environments are too few")
    assert "too few" in describe_few_environments(4)
    assert describe_few_environments(5) is None


def test_lines_come_in_a_fixed_order_and_undefined_scores_have_none():
    pooled = {
        "accuracy": Score(0.7, 0.6, 0.8),
        "own": None,
        "auc": Score(0.7, 0.6, 0.8),
        "slope": None,
        "intercept": None,
        "brier": Score(0.2, 0.1, 0.3),
        "skill": None,
    }
    titles = {name: name.capitalize() for name in pooled}
    assert describe_validation(pooled, titles, n_environments=6) == [
        "Discrimination: AUC 0.70 (0.60 to 0.80) in 6 environments left out (4 with both classes)"
        ": better than chance",
        "Accuracy: 0.70 (0.60 to 0.80) in 6 environments left out",
        "Own: by environment in 6 environments left out",
    ]
