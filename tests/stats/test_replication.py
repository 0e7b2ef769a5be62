"""In how many environments a leaf lies."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.stats.criteria import count_effective, find_replicated


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8))
def test_effective_number_equals_the_fraction(n):
    scale = max(sum(n) // 2**32 + 1, 1)
    n = [each // scale for each in n]
    wanted = Fraction(sum(n) ** 2, max(sum(each**2 for each in n), 1))
    found = count_effective(np.array([[n, [0] * len(n)]]))[0]
    assert found == pytest.approx(max(float(wanted), 1.0), rel=1e-12)


def test_a_remnant_of_one_centre_is_not_replicated_and_a_cause_is():
    """A leaf of 116 genomes of one continent and 6 of the other came first on a real table: it
    passed every test, because there was nothing to compare."""
    in_play = np.array([[400, 300], [350, 280]])
    remnant, cause = [[50, 2], [66, 4]], [[80, 50], [20, 12]]
    assert find_replicated(np.array([remnant, cause]), in_play, 0.25).tolist() == [False, True]
    assert find_replicated(np.array([remnant, cause]), in_play, 0.0).all()


def test_all_samples_are_as_replicated_as_they_are():
    rng = np.random.default_rng(0)
    tables = rng.integers(0, 9, (50, 2, 5))
    for table in tables:
        assert find_replicated(table[np.newaxis], table, 1.0).all()
