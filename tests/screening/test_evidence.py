"""The rule of the screen: each reason to reject, by numbers, and each way not to."""

from dataclasses import replace

import numpy as np
import pytest

from icscm.screening.evidence import Evidence, Reason, Standard, find_reason, is_undecided
from icscm.screening.own_effects import OwnEffect
from icscm.stats.worth import PooledWorth

STANDARD = Standard(tolerance=0.5, n_columns=10, n_environments=6)

STABLE = PooledWorth(mean=1.0, error=0.05, low=0.9, p_value=0.6, dof=5, ratio=20.0)
DIFFERING = PooledWorth(
    mean=0.6, error=0.1, tau=0.4, low=-0.2, excess=40.0, p_value=1e-9, dof=5, ratio=12.0
)
SAYS_NOTHING = OwnEffect()
WEAK_ALONE = OwnEffect(worth=replace(DIFFERING, low=0.3), part=0.05)
REVERSED_ALONE = OwnEffect(worth=replace(DIFFERING, low=-0.5), part=0.05)


def make_evidence(separate=STABLE, joint=None, own=SAYS_NOTHING, share=0.0, stake=0.5):
    return Evidence(separate=separate, joint=joint, own=own, share=share, stake=stake)


def test_levels_are_corrected_for_columns_and_both_tests():
    assert STANDARD.needed == 0.5
    assert STANDARD.test_level == pytest.approx(0.05 / 20)
    assert replace(STANDARD, n_columns=0).test_level == pytest.approx(0.025)
    assert STANDARD.differs(replace(STABLE, p_value=0.0024))
    assert not STANDARD.differs(replace(STABLE, p_value=0.0026))


def test_a_stable_column_is_kept():
    assert find_reason(make_evidence(joint=STABLE), STANDARD) is None
    assert not is_undecided(make_evidence(joint=STABLE), STANDARD)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"share": 0.02}, Reason.SEPARATELY),
        ({"share": 0.009}, None),
        ({"share": 0.02, "separate": replace(DIFFERING, p_value=0.003)}, None),
        ({"share": 0.02, "separate": replace(DIFFERING, low=0.51)}, None),
        ({"share": 0.02, "separate": replace(DIFFERING, mean=2.0, low=0.8)}, Reason.SEPARATELY),
        ({"share": 0.02, "separate": replace(DIFFERING, ratio=1.9)}, None),
        (
            {"share": 0.02, "separate": replace(DIFFERING, ratio=1.9), "own": WEAK_ALONE},
            Reason.SEPARATELY,
        ),
        (
            {
                "share": 0.02,
                "separate": replace(DIFFERING, ratio=1.9),
                "own": replace(WEAK_ALONE, part=0.009),
            },
            None,
        ),
        # two hospitals agree and the third contradicts them: such a shortcut was kept
        (
            {
                "share": 0.4,
                "separate": replace(DIFFERING, ratio=0.4),
                "own": OwnEffect(worth=replace(STABLE, mean=-3.0, low=-3.7, ratio=-15.0)),
            },
            Reason.SEPARATELY,
        ),
    ],
)
def test_rejected_separately(changes, expected):
    evidence = make_evidence(**{"separate": DIFFERING} | changes)
    assert find_reason(evidence, STANDARD) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Reason.JOINTLY),
        ({"p_value": 0.003}, None),
        ({"low": 0.51}, None),
        ({"excess": 2.9}, None),
    ],
)
def test_rejected_jointly(changes, expected):
    evidence = make_evidence(joint=replace(DIFFERING, **changes))
    assert find_reason(evidence, STANDARD) == expected
    learned_by_chance = replace(evidence, separate=replace(STABLE, ratio=1.9))
    assert find_reason(learned_by_chance, STANDARD) is None


DOUBTFUL = replace(STABLE, low=0.4, p_value=0.04)


@pytest.mark.parametrize(
    ("separate", "own", "expected"),
    [
        (DOUBTFUL, REVERSED_ALONE, Reason.SUPPORTED),
        (replace(DOUBTFUL, p_value=0.06), REVERSED_ALONE, None),
        (replace(DOUBTFUL, low=0.6), REVERSED_ALONE, None),
        (DOUBTFUL, WEAK_ALONE, None),
        (DOUBTFUL, replace(REVERSED_ALONE, part=0.009), None),
        (DOUBTFUL, replace(REVERSED_ALONE, worth=replace(DIFFERING, p_value=0.006)), None),
        (STABLE, REVERSED_ALONE, None),
    ],
)
def test_rejected_with_the_support_of_what_it_says_by_itself(separate, own, expected):
    evidence = make_evidence(separate=separate, own=own)
    assert find_reason(evidence, STANDARD) == expected


def test_the_tolerance_moves_the_worth_that_is_needed():
    evidence = make_evidence(separate=replace(DIFFERING, low=0.3), share=0.02)
    assert find_reason(evidence, STANDARD) == Reason.SEPARATELY
    assert find_reason(evidence, replace(STANDARD, tolerance=0.8)) is None


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (make_evidence(DOUBTFUL), True),
        (make_evidence(STABLE, joint=replace(STABLE, low=0.1)), True),
        (make_evidence(DOUBTFUL, stake=0.01), False),
        (make_evidence(replace(DOUBTFUL, error=0.6)), False),
        (make_evidence(replace(DOUBTFUL, low=0.6)), False),
        (make_evidence(replace(DOUBTFUL, mean=np.nan)), True),
    ],
)
def test_a_column_that_matters_and_may_fail_is_undecided(evidence, expected):
    assert is_undecided(evidence, STANDARD) is expected


def test_two_environments_reject_nothing():
    evidence = make_evidence(DIFFERING, joint=DIFFERING, own=REVERSED_ALONE, share=0.5)
    assert find_reason(evidence, replace(STANDARD, n_environments=2)) is None
    assert find_reason(evidence, replace(STANDARD, n_environments=3)) is Reason.SEPARATELY


def test_several_classes_need_half_of_the_worth():
    """One worth for all classes is coarse: true causes of three classes were rejected."""
    standard = replace(STANDARD, has_several_classes=True)
    assert standard.needed == 0.25
    evidence = make_evidence(separate=replace(DIFFERING, low=0.3), share=0.02)
    assert find_reason(evidence, standard) is None


def test_columns_are_rejected_in_the_order_of_what_differs_most():
    assert make_evidence(DIFFERING).excess == 40
    assert make_evidence(DIFFERING, joint=replace(DIFFERING, excess=50.0)).excess == 50
    assert make_evidence(STABLE, joint=DIFFERING).worst_low == -0.2
