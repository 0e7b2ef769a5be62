"""The trace as tables and plain values."""

import json

import numpy as np
import pytest

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.stats.independence import make_test
from literal import fit_quietly


def fit(learner):
    data = make_conjunction(1_000, 5, random_state=3)
    return fit_quietly(learner, data.X, data.y, data.environments).trace_


def test_frames_of_the_greedy_search():
    trace = fit(ICSCMClassifier(alpha=0.3, stop="coverage"))
    steps, refused = trace.to_frame(), trace.to_frame("refused")
    assert steps["rule"].tolist() == [str(step.chosen.rule) for step in trace.steps]
    assert steps["verdict"].tolist() == [step.chosen.verdict.conclusion for step in trace.steps]
    looks = [*(step.look for step in trace.steps), *filter(None, [trace.last_look])]
    assert len(refused) == sum(len(look.best_refused) for look in looks) > 0
    assert refused["step"].is_monotonic_increasing
    assert len(trace.to_frame("pruning")) == len(trace.pruning) > 0
    assert len(trace.to_frame("sets")) == 0
    json.dumps(trace.to_dict(), allow_nan=False)


def test_what_was_not_tested_has_no_column():
    trace = fit(SCMClassifier())
    assert {"rule", "utility", "n_tied"} <= set(trace.to_frame())
    assert not {"p_value", "verdict", "p_value_remaining"} & set(trace.to_frame())


def test_sets_of_the_exhaustive_search():
    trace = fit(ICSCMClassifier(search="exhaustive"))
    assert trace.to_frame("sets")["p_value"].tolist() == [each.p_value for each in trace.sets]
    with pytest.raises(ValueError, match="to_frame gives 'sets', 'steps', 'refused', 'pruning'"):
        trace.to_frame("rules")


class Own:
    """A test of the user's own that returns what it is told to."""

    def __init__(self, p_values):
        self.p_values = p_values

    def compute_p_values(self, tables):
        return np.resize(self.p_values, len(tables)) if np.ndim(self.p_values) else self.p_values


@pytest.mark.parametrize(
    ("answer", "message"),
    [(0.5, "one p-value for each of 3 tables"), ([np.nan], "NaN or outside"), ([1.5], "outside")],
)
def test_answers_of_own_tests_are_checked(answer, message):
    tables = np.ones((3, 2, 2), dtype=np.int64)
    assert make_test(Own([0.5])).compute_p_values(tables).tolist() == [0.5] * 3
    with pytest.raises(ValueError, match=message):
        make_test(Own(answer)).compute_p_values(tables)
