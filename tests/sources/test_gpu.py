"""Stores on a card, with the kernels' twins in its place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.engine import sampling
from icscm.search import recording, shortlist, summary
from icscm.sources.gpu import sending, shortlisting, values
from icscm.sources.memory import make_memory_source
from icscm.testing import check_row_source
from support.gpu_sources import (
    check_default_fit,
    check_kernels,
    check_same_counts,
    check_same_search,
    check_same_values,
    move,
)
from support.literal.gpu_kernels import make_stand_in
from support.sources import countable, draw_cuts

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
    check_row_source(moved, source, draw_cuts(source, rng))


@settings(max_examples=150, deadline=None)
@given(seeds)
def test_same_model_and_trace(seed):
    check_same_search(np.random.default_rng(seed), CARD)


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from([1e-9, 1e-3, 0.3]), st.integers(0, 3))
def test_same_model_and_trace_in_small_parts(seed, slack, most):
    """Many open questions, many blocks, and more ties than are listed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortlist, "RELATIVE_ROUNDING", slack)
        patch.setattr(shortlisting, "COMPARED_COLUMNS", 3)
        patch.setattr(shortlisting, "TESTED_COLUMNS", 5)
        for module in (recording, shortlist, summary):
            patch.setattr(module, "MAX_EQUIVALENT_RULES", most)
        check_same_search(np.random.default_rng(seed), CARD)


@settings(max_examples=150, deadline=None)
@given(seeds, st.sampled_from([2**14, 64, 16]))
def test_binned_as_in_memory(seed, size):
    """Whether all rows are looked at or a sample of them."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (sampling, values):
            patch.setattr(module, "QUANTILE_SAMPLE", size)
        patch.setattr(sending, "BUFFER_BYTES", 4000)
        check_same_values(np.random.default_rng(seed), CARD)


@pytest.mark.filterwarnings("ignore::icscm.exceptions.IcscmWarning")
def test_what_runs_on_a_card_runs_here():
    """The checks of `tests/gpu` hold for the twins themselves."""
    for seed in range(3):
        check_default_fit(np.random.default_rng(seed), CARD)
        check_kernels(np.random.default_rng(seed), CARD)
        check_same_counts(np.random.default_rng(seed), CARD)
