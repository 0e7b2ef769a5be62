"""Groups of columns whose own effects go together."""

import numpy as np

from icscm.screening.copies import centre, correlates, find_groups
from icscm.screening.outcomes import Environments

PLACES = Environments(np.repeat(np.arange(4), 250), 4)


def test_effects_are_centred_within_environments():
    effects = np.random.default_rng(0).normal(size=(1000, 2)) + PLACES.numbers[:, np.newaxis]
    centred = centre(effects, PLACES)
    np.testing.assert_allclose(PLACES.add_up(centred), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.ptp(effects - centred, axis=0) > 2.5, True)


def test_a_group_is_connected_directly_or_through_others():
    rng = np.random.default_rng(0)
    first, second, other = rng.normal(size=(3, 1000, 1))
    noise = iter(0.1 * rng.normal(size=(8, 1000, 1)))
    effects = {
        2: first + next(noise),
        3: -first + second + next(noise),  # the sign does not matter
        5: second + next(noise),  # it goes with 3 and not with 2
        7: other + next(noise),
        9: other + next(noise),  # two columns are no group
        11: rng.normal(size=(1000, 1)),
    }
    assert find_groups(effects, PLACES) == [[2, 3, 5]]
    assert find_groups({}, PLACES) == []


def test_going_with_the_environment_is_no_correlation():
    rng = np.random.default_rng(1)
    level = 5.0 * PLACES.numbers[:, np.newaxis]
    effects = {column: level + rng.normal(size=(1000, 1)) for column in range(4)}
    assert find_groups(effects, PLACES) == []


def test_effects_correlate_from_a_tenth_on():
    first = np.zeros((100, 1))
    first[0] = 1.0
    second = np.zeros((100, 1))
    second[1] = 1.0
    assert correlates(first, first)
    assert correlates(first, second - 0.2 * first)
    assert not correlates(first, second + 0.05 * first)
    assert not correlates(first, np.zeros((100, 1)))
