"""The trace of the exhaustive search equals results recomputed from the rows."""

import numpy as np
import pytest
from scipy import stats

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.search.exhaustive import choose_alpha
from support.fitting import fit_quietly


def count_by(rows, y, environments, order):
    table = np.zeros((2, len(order)), dtype=int)
    np.add.at(table, (y[rows], np.searchsorted(order, environments[rows])), 1)
    return tuple(map(tuple, table.tolist()))


def compute_g(table):
    table = np.array(table)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    return stats.chi2_contingency(table, correction=False, lambda_="log-likelihood").pvalue


@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
@pytest.mark.parametrize("n_children", [1, 3])
def test_trace(model_type, n_children):
    data = make_conjunction(1_500, 4, n_children=n_children, model_type=model_type, random_state=3)
    learner = ICSCMClassifier(search="exhaustive", model_type=model_type, p=0.7, alpha=0.1)
    X = data.X.assign(twin=data.X["A1"])
    trace = fit_quietly(learner, X, data.y, data.environments).trace_
    y, environments = np.asarray(data.y), np.asarray(data.environments)
    inverted = model_type == "disjunction"
    assert trace.environments == tuple(np.unique(environments).tolist())
    assert trace.classes == (0, 1)
    assert (trace.alpha, trace.last_scan, trace.nearest, trace.pruning) == (0.1, None, (), ())
    assert learner.model_.kind == model_type
    assert len(trace.verdicts) == len(learner.rules_) + 1
    assert len(trace.steps) == len(learner.rules_) == 2
    in_play = np.ones(len(y), dtype=bool)
    for number, step in enumerate(trace.steps):
        rule = learner.rules_[number]
        settled = in_play & (rule.mask(X) == inverted)
        in_play &= ~settled
        chosen = step.chosen
        assert chosen.rule == rule
        assert chosen.covered == count_by(settled, y, environments, trace.environments)
        assert chosen.verdict == trace.verdicts[number]
        assert chosen.p_value == chosen.verdict.p_value == pytest.approx(compute_g(chosen.covered))
        assert chosen.verdict.alpha == 0.1
        assert step.uncovered == count_by(in_play, y, environments, trace.environments)
        assert step.p_value_uncovered == pytest.approx(compute_g(step.uncovered))
        assert step.n_tied == 1 + len(step.equivalent)
        assert (step.n_rejected, step.best_rejected) == ({}, ())
    assert trace.verdicts[-1].p_value == pytest.approx(compute_g(trace.steps[-1].uncovered))
    twins = {step.chosen.rule.feature: step.equivalent for step in trace.steps}
    assert [rule.feature for rule in twins["A1"]] == ["twin"]
    n_tried = {step.n_candidates for step in trace.steps}.pop()
    for each in trace.screening:
        table = count_by(np.ones(len(y), bool), y, each.rule.mask(X).astype(int), [0, 1])
        statistic, p_value, *_ = stats.chi2_contingency(table, correction=False)
        assert each.statistic == pytest.approx(statistic)
        assert each.p_value == pytest.approx(min(n_tried * p_value, 1.0))
        assert each.p_value <= 0.05
    for each in trace.sets:
        assert each.accepted == (each.p_value > 0.1)
        assert set(each.features) <= {each.rule.feature for each in trace.screening}
    sizes = [len(each.features) for each in trace.sets]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("p", [0.5, 2.0])
def test_utility_of_the_rules(p):
    """Negatives less p times positives of all that the rule alone settles."""
    data = make_conjunction(1_500, 4, random_state=3)
    learner = ICSCMClassifier(search="exhaustive", p=p)
    trace = fit_quietly(learner, data.X, data.y, data.environments).trace_
    assert len(trace.steps) == 2
    for step in trace.steps:
        settled = ~step.chosen.rule.mask(data.X)
        negatives, positives = np.bincount(np.asarray(data.y)[settled], minlength=2)
        assert step.chosen.utility == pytest.approx(negatives - p * positives)


def test_what_was_left_out_is_noted():
    data = make_conjunction(1_500, 4, random_state=3)
    learner = ICSCMClassifier(search="exhaustive", max_rules=1)
    trace = fit_quietly(learner, data.X, data.y, data.environments).trace_
    n = len(trace.screening)
    wanted = f"Sets of more than 1 of the {n} screened rules were not tested."
    assert trace.notes[-1] == wanted
    for max_rules, has_note in ((n - 1, True), (n, False)):
        learner.set_params(max_rules=max_rules)
        notes = fit_quietly(learner, data.X, data.y, data.environments).trace_.notes
        assert any("were not tested" in note for note in notes) == has_note


@pytest.mark.parametrize(
    ("n_samples", "alpha"), [(1, 0.05), (4_000, 0.05), (4_001, 200 / 4_001), (10**6, 2e-4)]
)
def test_automatic_level(n_samples, alpha):
    assert choose_alpha(n_samples) == alpha
