"""Stores on a card, with the kernels' twins in its place."""

import numpy as np
from cards import check_same_search, move
from countables import countable, draw_cuts
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.sources.gpu.card import make_stand_in
from icscm.sources.memory import make_memory_source
from icscm.testing import check_count_source

CARD = make_stand_in()
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(countable())
def test_counts_as_in_memory(drawn):
    table, labels, environments, names, rng = drawn
    source, other = (
        make_memory_source(table, labels, environments, environment_labels=names) for _ in range(2)
    )
    moved = move(other, CARD)
    check_count_source(moved, source, draw_cuts(source, rng))


@settings(max_examples=150, deadline=None)
@given(seeds)
def test_same_model_and_trace(seed):
    check_same_search(np.random.default_rng(seed), CARD)
