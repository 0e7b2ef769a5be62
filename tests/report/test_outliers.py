"""Which environments break a rule, and the words around environments."""

import numpy as np
import pandas as pd
import pytest

from icscm import ICSCMClassifier, SCMClassifier
from icscm.report.page import make_report
from icscm.report.summary import make_summary
from support.reports import fit, print_report


@pytest.fixture(scope="module")
def studies():
    """`cause` acts alike in all but three of fifteen studies, `weak` in all."""
    rng = np.random.default_rng(0)
    n = 6_000
    X = pd.DataFrame({"cause": rng.integers(0, 2, n), "weak": rng.integers(0, 2, n)})
    e = np.array(list("abcdefghijklmno"))[rng.integers(0, 15, n)]
    holds = X["cause"].to_numpy() == 1
    rate = np.where(holds, np.where(X["weak"] == 1, 0.9, 0.55), 0.1)
    rate = np.where(np.isin(e, ["b", "f", "k"]) & ~holds, 0.5, rate)
    return X, (rng.random(n) < rate).astype(int), e


SENTENCE = "holds in 12 of 15 environments; not in b, f and k"


def test_a_refused_rule_tells_where_it_breaks(studies):
    """A useful rule was refused as "label shifts between environments", in which was not said."""
    learner = fit(ICSCMClassifier(), *studies)
    report = make_report(learner, environment="study")
    summary = report.to_dict()
    refused = summary["nodes"]["scans"][0]["rejected"][0]
    assert refused["outliers"] == ["b", "f", "k"]
    assert refused["why"].endswith(SENTENCE)
    assert f"cause > 0 {SENTENCE}" in " ".join(print_report(report).split())
    assert SENTENCE in report.to_html()
    assert SENTENCE in report.to_markdown()


@pytest.mark.parametrize("learner", [SCMClassifier(max_rules=1), ICSCMClassifier()])
def test_a_leaf_that_is_not_invariant_tells_where_it_breaks(learner, studies):
    """The page said "not invariant" and left the reader to find the environments among fifteen."""
    report = make_report(fit(learner, *studies))
    summary = report.to_dict()
    first = summary["leaves"][0]
    assert first["conclusion"] == "not invariant"
    assert first["outliers"] == ["b", "f", "k"]
    assert f"It {SENTENCE}." in first["explanation"]
    if first["condition"] == "cause <= 0":
        printed = " ".join(print_report(report).split())
        assert f"Leaf 1 is not invariant: it {SENTENCE}." in printed


def test_a_column_of_any_name_makes_a_sentence(studies):
    """A column of environments called `name` made "holds in every name"."""
    summary = make_summary(fit(ICSCMClassifier(), *studies), environment="name")
    text = make_report(fit(ICSCMClassifier(), *studies), environment="name").to_html()
    assert "every name" not in text
    assert "in every environment (name)" in text
    assert summary["task"]["environment"] == "name"
    assert summary["headline"]["invariance"]["topic"].endswith("every environment (name)")
