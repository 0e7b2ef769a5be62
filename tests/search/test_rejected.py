"""A scan records the same rejected candidates as a plain listing."""

import numpy as np
import pytest

from icscm import ICSCMClassifier, SCMClassifier
from icscm.engine.reasons import REASONS
from icscm.model.rules import ThresholdRule
from icscm.search.trace import Scan
from icscm.stats.independence import make_test
from support.fitting import fit_quietly

N_KEPT = 5


# Candidates are rejected for no other reason than dependence.
LENIENT = {"min_replication": 0.0, "min_utility": None}


def make_data(seed):
    """Seven features of three values each; some follow the environment, some the label."""
    rng = np.random.default_rng(seed)
    environments = rng.integers(0, 3, 240)
    y = rng.random(240) < 0.35 + 0.2 * (environments > 0)
    noise = rng.random((4, 240)) > 0.5
    shift = np.column_stack((y, environments, y & (environments > 1), *noise))
    X = (rng.random((240, 7)) < 0.1).astype(int) + (rng.random((240, 7)) < 0.3 + 0.5 * (shift > 0))
    return X.astype(float), y.astype(int), environments


def list_candidates(X, y, environments, in_play, options):
    """(utility, margin, order, rule, leaf, p-value, reason) of each; a conjunction's."""
    test = make_test(options["test"])
    for j in range(X.shape[1]):
        for place, threshold in enumerate(np.unique(X[:, j])[:-1]):
            for above in (True, False):
                settled = in_play & ((X[:, j] > threshold) != above)
                leaf = np.zeros((2, 3), dtype=int)
                np.add.at(leaf, (y[settled], environments[settled]), 1)
                negatives, positives = leaf.sum(axis=1).tolist()
                n_rest = in_play.sum() - settled.sum()
                if negatives == 0 or n_rest == 0:
                    continue
                p_value = test.compute_p_values(leaf[None])[0]
                reason = "dependent" if p_value <= options["alpha"] else None
                utility = negatives - options["p"] * positives
                rule = ThresholdRule(j, None, threshold, above)
                order = (j, place, not above)
                yield utility, negatives - positives, order, rule, leaf, p_value, reason


def as_rows(refusals):
    return [
        (str(each.candidate.rule), each.reason, each.candidate.utility, each.candidate.covered)
        for each in refusals
    ]


def rank(candidates, by, inverted):
    """The first of those refused, as the trace tells them."""
    found = sorted(candidates, key=lambda each: (-each[by], -each[1], each[2]))[:N_KEPT]
    rows = []
    for utility, _, _, rule, leaf, _, reason in found:
        given = leaf[::-1] if inverted else leaf
        rule = rule.negate() if inverted else rule
        rows.append((str(rule), reason, utility, tuple(map(tuple, given.tolist()))))
    return rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
@pytest.mark.parametrize("p", [0.5, 2.0])
def test_refused_candidates(seed, model_type, p):
    X, y, environments = make_data(seed)
    inverted = model_type == "disjunction"
    labels = 1 - y if inverted else y
    options = {"p": p, "alpha": 0.2, "test": "g"} | LENIENT
    learner = ICSCMClassifier(model_type=model_type, stop="coverage", max_rules=3, **options)
    trace = fit_quietly(learner, X, y, environments).trace_
    looks = list(trace.steps) + ([trace.last_scan] if trace.last_scan else [])
    in_play = np.ones(len(y), dtype=bool)
    for number, look in enumerate(looks):
        candidates = list(list_candidates(X, labels, environments, in_play, options))
        refused = [each for each in candidates if each[-1]]
        assert look.n_candidates == len(candidates)
        for reason in ("dependent",):
            assert look.n_rejected[reason] == sum(each[-1] == reason for each in refused)
        assert as_rows(look.best_rejected) == rank(refused, 0, inverted)
        if number < len(trace.steps):
            rule = trace.steps[number].chosen.rule
            in_play &= rule.mask(X) != inverted
    if trace.last_scan is not None:
        dependent = [each for each in refused if each[-1] == "dependent"]
        assert as_rows(trace.nearest) == rank(dependent, 5, inverted)
    for refusal in (*look.best_rejected, *trace.nearest):
        told, leaf = refusal.candidate, np.array([refusal.candidate.covered])
        wanted = make_test("g").compute_p_values(leaf)[0]
        assert told.p_value == told.verdict.p_value == pytest.approx(wanted, rel=1e-9)
        assert told.verdict.alpha == options["alpha"]


def test_all_of_it_is_reached():
    """The data above lead to rejections, and to searches that end for want of a candidate."""
    ends, reasons = set(), set()
    for seed in range(4):
        X, y, environments = make_data(seed)
        learner = ICSCMClassifier(alpha=0.2, test="g", stop="coverage", p=0.5, **LENIENT)
        trace = fit_quietly(learner, X, y, environments).trace_
        ends.add(trace.stop_reason)
        reasons |= {each.reason for step in trace.steps for each in step.best_rejected}
        if trace.last_scan is not None:
            reasons |= {each.reason for each in trace.last_scan.best_rejected}
    assert "no_candidate" in ends
    assert reasons == {"dependent"}


def test_nothing_tested_nothing_near():
    X, y, environments = make_data(0)
    trace = fit_quietly(SCMClassifier(), X[:, :1] > 0, y, environments).trace_
    assert trace.stop_reason == "no_candidate"
    assert (trace.nearest, trace.alpha) == ((), None)
    assert trace.last_scan == Scan(
        n_candidates=0, n_rejected=dict.fromkeys(REASONS, 0), end="no_candidate"
    )
