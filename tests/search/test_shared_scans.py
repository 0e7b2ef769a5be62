"""Searches at several levels share their scans, and find what each finds by itself."""

from dataclasses import replace

import numpy as np
import pytest

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.report.path import compute_alpha_path
from icscm.search.rules import find_model
from icscm.sources.memory import MemorySource, open_memory

ALPHAS = [1e-6, 0.001, 0.01, 0.05, 0.2, 0.5, 0.9]
OPTIONS = [
    {},
    {"test": "g", "model_type": "disjunction", "stop": "coverage"},
    {"test": "fisher", "max_rules": 2},
    {"criterion": "equivalence", "margin": 0.3},
    {"correction": "holm"},
    {"evidence": "cumulative"},
    {"search": "exhaustive"},
]


def open_samples(options, n=300):
    data = make_conjunction(n, random_state=2)
    noise = np.random.default_rng(0).normal(size=(len(data.y), 5))
    X = np.hstack((np.asarray(data.X), noise))
    learner = ICSCMClassifier(**options)
    samples = open_memory(X, data.y, data.environments, preparation=learner.prepare())
    return samples.source, learner.make_settings(samples)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_models_and_traces_are_those_of_each_level_alone(options):
    source, settings = open_samples(options)
    path = compute_alpha_path(source, settings, ALPHAS)
    found = {each.value: (each.model, each.trace) for each in path.points}
    for alpha in ALPHAS:
        alone = find_model(source.start_again(), replace(settings, alpha=alpha))
        assert found[alpha] == alone
    assert len({trace.verdicts for _, trace in found.values()}) > 1


def test_candidates_are_counted_once_for_all_levels(monkeypatch):
    """With 200,000 columns the report took 72 seconds: a first scan for each of 18 levels."""
    source, settings = open_samples({})
    n_counted = []
    count = MemorySource.counts
    monkeypatch.setattr(MemorySource, "counts", lambda self: n_counted.append(1) or count(self))
    settings = replace(settings, max_rules=1)
    compute_alpha_path(source, settings, np.linspace(1e-9, 1e-8, 30).tolist())
    assert len(n_counted) == 1
