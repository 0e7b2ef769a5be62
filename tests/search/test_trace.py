"""The trace as tables and plain values."""

import json
import pickle
import re
from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.search.records import STOP_REASONS
from icscm.stats.independence import make_test
from support.fitting import PAPER, fit_quietly


def fit(learner):
    data = make_conjunction(1_000, 5, random_state=3)
    return fit_quietly(learner, data.X, data.y, data.environments).trace_


def test_frames_of_the_greedy_search():
    trace = fit(ICSCMClassifier(alpha=0.3, stop="coverage", **PAPER))
    steps, refused = trace.to_frame(), trace.to_frame("rejected")
    assert steps["rule"].tolist() == [str(step.chosen.rule) for step in trace.steps]
    assert steps["verdict"].tolist() == [step.chosen.verdict.conclusion for step in trace.steps]
    assert trace.nodes == (*trace.steps, *filter(None, [trace.last_scan]))
    assert len(refused) == sum(len(node.best_rejected) for node in trace.nodes) > 0
    assert refused["step"].is_monotonic_increasing
    assert len(trace.to_frame("pruning")) == len(trace.pruning) > 0
    assert len(trace.to_frame("sets")) == 0
    json.dumps(trace.to_dict(), allow_nan=False)


def test_a_row_of_steps_and_of_refusals():
    """Every column of the tables, with what the trace holds in it."""
    trace = fit(ICSCMClassifier(alpha=0.3, stop="coverage"))
    step = trace.steps[0]
    leaf, remaining = (
        {
            f"{name} {label} in {environment}": counts[i][j]
            for i, label in enumerate(trace.classes)
            for j, environment in enumerate(trace.environments)
        }
        for name, counts in (("covered", step.chosen.covered), ("uncovered", step.uncovered))
    )
    assert trace.to_frame().iloc[0].to_dict() == {
        "step": 1,
        "rule": str(step.chosen.rule),
        "feature": step.chosen.rule.feature,
        "utility": step.chosen.utility,
        "replication": step.chosen.replication,
        "p_value": step.chosen.p_value,
        "p_value_uncovered": step.p_value_uncovered,
        "verdict": step.chosen.verdict.conclusion,
        "verdict_uncovered": step.verdict_uncovered.conclusion,
        "n_candidates": step.n_candidates,
        "n_rejected": sum(step.n_rejected.values()),
        "n_tied": step.n_tied,
        "n_equivalent": len(step.equivalent),
        **leaf,
        **remaining,
    }
    refusal = step.best_rejected[0]
    row = trace.to_frame("rejected").iloc[0].to_dict()
    counts = [row.pop(name) for name in leaf]
    assert counts == [n for each in refusal.candidate.covered for n in each]
    assert row == {
        "step": 1,
        "rule": str(refusal.candidate.rule),
        "feature": refusal.candidate.rule.feature,
        "reason": refusal.reason,
        "utility": refusal.candidate.utility,
        "replication": refusal.candidate.replication,
        "p_value": refusal.candidate.p_value,
        "verdict": refusal.candidate.verdict.conclusion,
        "outlier_environments": None,
    }


def test_plain_values():
    trace = fit(ICSCMClassifier(alpha=0.3, stop="coverage"))
    plain = trace.to_dict()
    assert set(plain) == {each.name for each in fields(trace)} - {"criterion"}
    assert plain["nodes"][0]["chosen"]["rule"] == str(trace.steps[0].chosen.rule)
    assert plain["nodes"][0]["chosen"]["covered"] == [
        list(n) for n in trace.steps[0].chosen.covered
    ]
    assert plain["classes"] == list(trace.classes)


@pytest.mark.parametrize("reason", STOP_REASONS)
def test_why_the_search_stopped(reason):
    text = replace(fit(SCMClassifier()), stop_reason=reason).stop_text
    assert text == f"The search stopped because {STOP_REASONS[reason]}."


def test_what_was_not_tested_has_no_column():
    trace = fit(SCMClassifier())
    assert {"rule", "utility", "n_tied"} <= set(trace.to_frame())
    assert not {"p_value", "verdict", "p_value_uncovered"} & set(trace.to_frame())


def test_sets_of_the_exhaustive_search():
    trace = fit(ICSCMClassifier(search="exhaustive"))
    assert trace.to_frame("sets")["p_value"].tolist() == [each.p_value for each in trace.sets]
    wanted = (
        "^to_frame gives 'steps', 'splits', 'rejected', 'columns', 'pruning', 'sets', 'tried', "
        "not 'rules'$"
    )
    with pytest.raises(ValueError, match=wanted):
        trace.to_frame("rules")


class Own:
    """A test of the user's own that returns what it is told to."""

    def __init__(self, p_values):
        self.p_values = p_values

    def compute_p_values(self, tables):
        is_list = np.ndim(self.p_values) == 1
        return np.resize(self.p_values, len(tables)) if is_list else self.p_values


ONE_EACH = "must return one p-value for each of 3 tables, got an array of shape {}"
OUTSIDE = "returned a p-value that is NaN or outside [0, 1]"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (0.5, ONE_EACH.format("()")),
        (np.ones(6).reshape(3, 2), ONE_EACH.format("(3, 2)")),
        ([np.nan], OUTSIDE),
        ([1.5], OUTSIDE),
        ([-1e-9], OUTSIDE),
    ],
)
def test_answers_of_own_tests_are_checked(answer, message):
    tables = np.ones((3, 2, 2), dtype=np.int64)
    for fine in (0.0, 0.5, 1.0):
        assert make_test(Own([fine])).compute_p_values(tables).tolist() == [fine] * 3
    own = Own(answer)
    with pytest.raises(ValueError, match=re.escape(f"{own!r}.compute_p_values {message}") + "$"):
        make_test(own).compute_p_values(tables)


def test_verdicts_of_steps_are_made_when_asked_for():
    """Describing every rejected candidate took a third of a small fit, and is rarely needed."""
    asked, copied, pickled = (fit(ICSCMClassifier(alpha=0.3, stop="coverage")) for _ in range(3))
    assert asked.stop_text
    assert not {"nodes", "verdicts"} & {*vars(asked)}
    assert all(step.chosen.verdict.p_value == step.chosen.p_value for step in asked.steps)
    assert asked.nodes == (*asked.steps, asked.last_scan)
    restored = pickle.loads(pickle.dumps(pickled))
    assert restored == asked == deepcopy(copied)
    assert list(vars(restored)) == [each.name for each in fields(asked)]
    with pytest.raises(AttributeError, match="no attribute 'step'"):
        asked.step  # noqa: B018


def test_a_trace_not_asked_keeps_no_samples():
    trace = fit(ICSCMClassifier())
    assert len(pickle.dumps(vars(trace)["_make_nodes"])) < 20_000
