"""Sentences on a screen of columns, with numbers."""

import pytest

from icscm.report.content.screen import EnvironmentEffect, ScreenedColumn, ScreenTask
from icscm.report.wording.screening import (
    TWO_ENVIRONMENTS,
    count_new_environments,
    describe_effect,
    describe_interruption,
    describe_round,
    describe_tolerance,
    describe_worth,
    explain_verdict,
    format_effect,
    format_worth_in_new,
    judge_costs,
    list_limits,
)
from icscm.screening import reasons
from icscm.tables.outcomes import OutcomeKind


def make_task(tolerance=0.5, n_environments=12, outcome=OutcomeKind.TWO_CLASSES, **more):
    facts = {"data": None, "target": None, "environment": None, "estimator": "trees"}
    facts |= {"n_rounds": 2, "is_complete": True} | more
    environments = [f"E{number}" for number in range(n_environments)]
    return ScreenTask(tolerance=tolerance, environments=environments, outcome=outcome, **facts)


def make_effect(environment, worth):
    return EnvironmentEffect(
        environment=environment,
        worth=worth,
        worth_interval=[worth - 0.1, worth + 0.1],
        effect=2 * worth,
        effect_interval=[worth, 3 * worth],
    )


def make_column(**more):
    facts = {"column": "code", "verdict": "kept", "reason": "", "round": 1, "worth": 0.96}
    facts |= {"worth_low": 0.89, "tau": 0.0, "p_value": 0.3, "joint_low": None, "own_low": 0.5}
    facts |= {"share": 0.0, "stake": 0.4, "detectable": 0.1, "n_known": 12, "rule": "code == 1"}
    effects = [make_effect("Ash", 1.2), make_effect("Elm", -0.1)]
    facts |= {"worth_error": 0.03, "says_nothing": False}
    facts |= {"output": None, "environments": effects, "lowest": effects[1], "highest": effects[0]}
    return ScreenedColumn(**facts | more)


@pytest.mark.parametrize(
    ("n_environments", "below"), [(2, 7), (3, 11), (4, 14), (5, 17), (8, 20), (50, 20)]
)
def test_few_environments_allow_weaker_claims_on_new_ones(n_environments, below):
    """The quantile of Student's t is capped at 2, so that fewer new environments are above it."""
    assert count_new_environments(n_environments).n_all == below


def test_the_worth_is_told_on_average_and_in_new_environments():
    assert describe_worth(make_column()) == (
        "worth 0.96 on average, above 0.89 in 19 of 20 new environments"
    )
    assert "in 13 of 14 new" in describe_worth(make_column(n_known=4))
    assert describe_worth(make_column(worth=None)) == "not used by the model"


def test_a_worth_of_chance_is_told_in_words():
    """Noise was kept with a worth of -2.35 in a new environment, without a word on that."""
    noise = make_column(worth=-0.03, worth_error=0.5, worth_low=-2.35, says_nothing=True)
    assert format_worth_in_new(noise) == "says nothing"
    assert format_worth_in_new(make_column()) == "0.89"
    text = explain_verdict(noise, make_task())
    assert text == (
        "Worth -0.03 on average, no more than chance: it says nothing beside the others."
    )
    assert "-2.35" not in text


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (make_task(), "may be less than 0.5 of what it is here in 1 of 20 new environments."),
        (make_task(n_environments=3), "0.5 of what it is here in 1 of 11 new environments."),
        (make_task(tolerance=1.0), "may be lost or reversed in 1 of 20 new environments."),
        (make_task(tolerance=1.5), "may be reversed, below -0.5, in 1 of 20 new environments."),
        (make_task(outcome=OutcomeKind.SEVERAL_CLASSES), "less than 0.25 of what it is here"),
    ],
)
def test_a_tolerance_is_told_as_what_a_column_may_lose(task, text):
    assert text in describe_tolerance(task)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "Worth 0.96 on average, above 0.89 in 19 of 20 new environments."),
        ({"worth": None}, "The model does not use it."),
        ({"stake": 0.001}, "Hardly anything depends on it"),
        ({"worth_low": 0.2}, "The differences between environments are small or may be chance."),
        (
            {"verdict": "rejected", "reason": reasons.DIFFERS, "p_value": 1e-9, "worth_low": -0.3},
            "Its worth is -0.10 in Elm and 1.20 in Ash (p = 1e-09), and may be below -0.30 in 1 of "
            "20 new environments; 0.50 is needed.",
        ),
        (
            {"verdict": "rejected", "reason": reasons.DIFFERS_JOINTLY, "joint_low": 0.1},
            "may be below 0.10 in 1 of 20 new environments; 0.50 is needed.",
        ),
        (
            {"verdict": "rejected", "reason": reasons.MAY_BE_REVERSED, "own_low": -0.6},
            "By itself it may be worth less than -0.60",
        ),
        (
            {"verdict": "rejected", "reason": "its effect differs, together with a, b"},
            "Its effect differs, together with a, b: each carries a part of the shortcut.",
        ),
        ({"verdict": "rejected", "reason": reasons.DETERMINES}, "tells the environments apart"),
        (
            {"verdict": "cannot tell", "reason": reasons.TOO_LITTLE_DATA, "worth_low": 0.3},
            "worth less than 0.30 in 1 of 20 new environments, where 0.50 is needed, but its "
            "differences may be chance. With these rows, the worth must have a standard deviation "
            "between environments of 0.10 to show.",
        ),
        (
            {"verdict": "cannot tell", "reason": reasons.ONE_DIFFERENCE},
            "It is -0.10 in Elm and 1.20 in Ash: two environments show one difference.",
        ),
        ({"verdict": "cannot tell", "reason": reasons.INTERRUPTED}, "interrupted before"),
        ({"verdict": "cannot tell", "reason": reasons.NO_ENVIRONMENTS}, "nothing to compare"),
        (
            {"verdict": "rejected", "reason": reasons.TOO_LITTLE_DATA},
            "What cannot be told was to be rejected.",
        ),
    ],
)
def test_each_verdict_is_explained_by_the_numbers_that_decided(more, text):
    assert text in explain_verdict(make_column(**more), make_task())


def test_a_column_of_more_than_its_worth_needs_more():
    column = make_column(verdict="rejected", reason=reasons.DIFFERS, worth=2.0, worth_low=0.7)
    assert "1.00 is needed" in explain_verdict(column, make_task())


def test_effects_are_odds_ratios_of_classes_and_differences_of_numbers():
    assert format_effect(0.0321, OutcomeKind.SEVERAL_CLASSES) == "0.032"
    assert format_effect(0.0321, OutcomeKind.NUMBER) == "0.03"
    assert describe_effect(make_column(), OutcomeKind.TWO_CLASSES) == (
        "if code == 1, other columns held fixed"
    )
    of_high = describe_effect(make_column(output="high"), OutcomeKind.SEVERAL_CLASSES)
    assert of_high.startswith("of high if code == 1")
    assert "standard deviations" in describe_effect(make_column(), OutcomeKind.NUMBER)


def test_two_environments_and_interruptions_are_told():
    assert list_limits(2)[0] == TWO_ENVIRONMENTS
    assert TWO_ENVIRONMENTS not in list_limits(3)
    assert describe_interruption(make_task()) == ""
    assert "after 2 rounds" in describe_interruption(make_task(is_complete=False))
    assert describe_round([], n_rejected=1, number=2).endswith("the screen is done")


def test_costs_without_a_round_are_unknown():
    assert judge_costs([], OutcomeKind.NUMBER).answer == "Unknown"
