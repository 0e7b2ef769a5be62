"""What columns say by themselves, from counts, and what a tree rejects for it."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from icscm import InvariantTreeClassifier
from icscm.engine.counts import CountCube, Cut, Layout
from icscm.screening.outcomes import make_outcome
from icscm.screening.own_effects import fit_null_model, measure_own_effect
from icscm.search import columns
from icscm.search.worth import MAX_BINS, OwnWorth, OwnWorthMeter, merge_bins
from icscm.stats.worth import PooledWorth
from support.fitting import fit_quietly
from support.literal.worth import measure_own_worth
from support.screened import make_screened_table


def count(bins, y, environments):
    """Count the rows of one column by (column, bin, outcome, environment)."""
    counts = np.zeros((1, max(bins) + 1, 2, max(environments) + 1), dtype=np.int64)
    np.add.at(counts[0], (bins, y, environments), 1)
    return counts


def measure(counts, layout=None, design_effects=None):
    cube = CountCube(np.arange(len(counts)), counts, layout or Layout(nominal=True))
    own_worths = OwnWorthMeter(SimpleNamespace(count_cubes=lambda: [cube]), design_effects)
    own_worths.measure(range(len(counts)))
    assert own_worths.n_columns == len(counts)
    return own_worths


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(2, 6))
def test_the_worth_is_the_one_measured_row_by_row(seed, n_bins, n_environments):
    rng = np.random.default_rng(seed)
    n_rows = 150
    bins = rng.integers(0, n_bins, n_rows)
    environments = rng.integers(0, n_environments, n_rows)
    effects = rng.normal(size=(n_bins, n_environments)) * rng.integers(0, 2)
    y = (rng.random(n_rows) < expit(effects[bins, environments] - 1)).astype(int)
    expected = measure_own_worth(bins.tolist(), y.tolist(), environments.tolist())

    own = measure(count(bins.tolist(), y.tolist(), environments.tolist())).pool(0)
    if expected is None:
        assert own.heterogeneity_part == 0
        assert own.pooled.p_value == 1
        return
    assert own.heterogeneity_part == pytest.approx(expected["part"], abs=1e-9)
    assert own.pooled.p_value == pytest.approx(expected["p_value"], abs=1e-9)
    assert own.pooled.low_share == pytest.approx(expected["low_share"], rel=1e-6, abs=1e-8)


def test_bins_of_numbers_are_merged_and_missing_values_stay_apart():
    counts = np.ones((2, 31, 2, 3))
    merged = merge_bins(counts, Layout(has_missing=True))
    assert merged.shape == (2, MAX_BINS + 1, 2, 3)
    assert (merged[:, 0] == 1).all()
    assert merged.sum() == counts.sum()
    assert merged[:, 1:].max() == 3
    assert merge_bins(counts, Layout(nominal=True)) is counts


def test_rows_that_count_for_fewer_say_less_exactly():
    counts = np.array([[[[70, 70, 70], [30, 30, 30]], [[30, 30, 30], [70, 70, 70]]]])
    alone = measure(counts).pool(0).pooled
    grouped = measure(counts, design_effects=np.full(3, 4.0)).pool(0).pooled
    assert grouped.error == pytest.approx(2 * alone.error, rel=0.05)


# --- what a tree rejects --------------------------------------------------------------------------


def simulate(odds_ratios, *, n_rows=1500, share=0.15, base=-2.0, seed=0):
    """A marker whose odds ratio is given by environment, and a cause that is alike everywhere."""
    rng = np.random.default_rng(seed)
    environments = np.repeat(np.arange(len(odds_ratios)), n_rows)
    marker = (rng.random(len(environments)) < share).astype(int)
    cause = rng.normal(size=len(environments))
    log_odds = base + np.log(odds_ratios)[environments] * marker + cause
    y = (rng.random(len(environments)) < expit(log_odds)).astype(int)
    X = pd.DataFrame({"marker": marker, "cause": cause, "noise": rng.normal(size=len(y))})
    return X, y, environments


def list_rejected(X, y, environments):
    tree = fit_quietly(InvariantTreeClassifier(), X, y, environments)
    return {column.rule.feature for column in tree.trace_.rejected_columns}


@pytest.mark.parametrize("seed", range(3))
def test_a_strong_mechanism_is_no_shortcut(seed, monkeypatch):
    """The mutation 23S C2611T was rejected: odds ratio 260 in America, above 1,000 in Europe.

    Its share is beyond the tolerance, and without it in the tree the effect of the cause differs,
    so that both were rejected. But by itself it is strong and points the same way everywhere.
    """
    X, y, environments = simulate(
        (260, 2000, 260, 2000, 260, 2000), n_rows=4000, share=0.5, base=-3.0, seed=seed
    )
    assert list_rejected(X, y, environments) == set()
    monkeypatch.setattr(columns, "NEEDED", np.inf)  # whatever is left of its worth
    assert list_rejected(X, y, environments) == {"marker", "cause"}


@pytest.mark.parametrize("odds_ratios", [(260, 400, 1000, 2000), (260, 1000, 1000, 260, 400)])
def test_odds_ratios_in_the_hundreds_are_kept(odds_ratios):
    X, y, environments = simulate(odds_ratios)
    assert list_rejected(X, y, environments) == set()


LOST = PooledWorth(p_value=1e-4, low=0.4, mean=1.0)
KEPT = PooledWorth(p_value=1e-4, low=0.6, mean=1.0)
REVERSED = PooledWorth(p_value=1e-4, low=-0.1, mean=1.0)
REVERSED_BY_CHANCE = PooledWorth(p_value=0.01, low=-0.1, mean=1.0)


@pytest.mark.parametrize(
    ("share", "p_value", "worth", "part", "reason"),
    [
        (0.02, 0.01, LOST, 0.0, "heterogeneous"),
        (0.02, 0.01, KEPT, 0.0, None),  # strong everywhere
        (0.02, 0.20, LOST, 0.0, None),  # its differences may be chance
        (0.009, 0.01, LOST, 0.0, None),  # within the tolerance
        (0.009, 0.01, REVERSED, 0.02, "reversed"),
        (0.009, 0.90, REVERSED, 0.02, "reversed"),
        (0.004, 0.01, REVERSED, 0.02, None),  # less than half of the tolerance
        (0.009, 0.01, REVERSED, 0.005, None),  # it says hardly anything
        (0.009, 0.01, REVERSED_BY_CHANCE, 0.02, None),  # one of ten columns
        (0.009, 0.01, LOST, 0.02, None),
    ],
)
def test_a_column_is_rejected_for_one_of_two_reasons(share, p_value, worth, part, reason):
    tested = columns.DifferingColumn(
        cut=Cut(0, 0, negated=False), share=share, p_value=p_value, effects=np.zeros(3)
    )
    own = OwnWorth(pooled=worth, heterogeneity_part=part)
    assert tested.find_reason(own, tolerance=0.01, n_columns=10) == reason


@pytest.mark.parametrize("seed", range(3))
def test_a_weak_marker_that_is_reversed_somewhere_is_a_shortcut(seed):
    """A marker with odds ratios from .29 to 12."""
    odds_ratios = (12, 0.29, 3, 0.4, 5)
    X, y, environments = simulate(odds_ratios, share=0.08, base=-1.0, seed=seed)
    assert list_rejected(X, y, environments) == {"marker"}


def test_columns_that_are_asked_for_later_are_measured_like_all():
    rng = np.random.default_rng(1)
    environments, y = rng.integers(0, 4, 500), rng.integers(0, 2, 500)
    counts = np.concatenate([count(rng.integers(0, 3, 500), y, environments) for _ in range(5)])
    together = measure(counts)
    cube = CountCube(np.arange(5), counts, Layout(nominal=True))
    one_by_one = OwnWorthMeter(SimpleNamespace(count_cubes=lambda: [cube]), None)
    for column in (3, 0, 4):
        one_by_one.measure([column, 3])
        assert one_by_one.pool(column).pooled == together.pool(column).pooled
        assert one_by_one.n_columns == 5


@pytest.mark.parametrize("seed", range(3))
def test_counts_say_what_the_screen_finds_in_rows(seed):
    """The screen measures the same statistic from rows, for outcomes of any kind."""
    rng = np.random.default_rng(seed)
    environments, bins = rng.integers(0, 5, 900), rng.integers(0, 4, 900)
    effects = rng.normal(size=(4, 5))
    y = (rng.random(900) < expit(effects[bins, environments])).astype(int)
    table = make_screened_table([bins], environments, is_nominal=[True])
    outcome = make_outcome(y, None, is_number=False)
    of_rows = measure_own_effect(outcome, table, 0, fit_null_model(outcome, table))
    of_counts = measure(count(bins, y, environments)).pool(0)
    assert of_counts.pooled.low_share == pytest.approx(of_rows.worth.low_share, rel=1e-6)
    assert of_counts.pooled.p_value == pytest.approx(of_rows.worth.p_value, rel=1e-6)
    assert of_counts.heterogeneity_part == pytest.approx(of_rows.part, rel=1e-6)
