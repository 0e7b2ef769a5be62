"""The study of prediction intervals: its scores, its meta-analysis, and its tables."""

import numpy as np
import pytest
from scipy import special, stats

from paper import intervals
from paper.base import Options
from paper.runner import run_plan


def test_a_rate_outside_costs_forty_times_its_distance():
    assert intervals._score(0.1, 0.3, 0.2) == pytest.approx((1.0, 20.0, 20.0))
    assert intervals._score(0.1, 0.3, 0.35) == pytest.approx((0.0, 220.0, 20.0))


def test_meta_analysis_of_known_rates_is_the_t_interval():
    """Without sampling error REML's tau is the standard deviation, and both errors are alike."""
    theta = np.array([-0.5, 0.1, 0.4, -0.1, 0.3])
    n = np.full((5, 1), 10**9)
    k = np.round(n * special.expit(theta)[:, np.newaxis])
    plain, adjusted = intervals.compute_meta(k, n)
    half = theta.std(ddof=1) * np.sqrt(1 + 1 / 5)
    for found, df in ((plain, 3), (adjusted, 4)):
        t = stats.t.ppf(0.975, df)
        wanted = theta.mean() - t * half, theta.mean() + t * half
        assert found[:, 0] == pytest.approx(wanted, abs=0.06)


def test_counts_are_held_against_the_widened_interval():
    """2 of 20 agree with an interval of 20 to 30 %, 200 of 2,000 do not."""
    ends = special.logit((0.2, 0.3))
    k, n = np.array([2, 200]), np.array([20, 2000])
    assert [intervals._compare_with_counts(k, n, leaf, *ends)[0] for leaf in (0, 1)] == [1.0, 0.0]


@pytest.mark.thorough
def test_the_study_has_both_tables(tmp_path):
    choose = {"size": ["30", "0"], "places": ["3", "0"]}
    options = Options(1, quick=True, data_home=tmp_path, max_rows=800, max_out=1, choose=choose)
    plan = intervals.make_plan(options)
    rows = run_plan(plan, tmp_path / "rows.csv", n_jobs=1)
    assert not any(row["error"] for row in rows)
    summary = intervals.summarise(rows)
    assert [table.name for table in summary.tables] == ["intervals-simulated", "intervals-shared"]
    assert len(summary.tables[0].rows) == 5
    assert "coverage" in summary.findings[0]
