"""Sources whose samples lie on a card, or on what stands in for one; and what both must do alike."""

import numpy as np

from icscm.search.finding import find_model
from icscm.search.settings import Settings
from icscm.sources.gpu.opening import put_on_card
from icscm.sources.memory import MemorySource, make_memory_source
from icscm.stats.independence import ChiSquaredTest, GTest


def move(source, card):
    """The same samples on the card."""
    rows = source.piece.rows
    stores = [put_on_card(card, store, rows) for store in source.piece.stores]
    return MemorySource(source.terms, stores, rows, source.position)


def draw_bits(rng, n_rows=None, n_environments=None):
    """A table of zeros and ones with identical columns and columns that tie."""
    n_rows = int(rng.integers(4, 400)) if n_rows is None else n_rows
    n_features = int(rng.integers(1, 60))
    if n_environments is None:
        n_environments = int(rng.choice([1, 2, 3, 5, 40, 200]))
    labels = rng.integers(0, 2, n_rows)
    environments = rng.integers(0, n_environments, n_rows)
    X = (rng.random((n_rows, n_features)) < rng.choice([0.02, 0.3, 0.5, 0.9], n_features)) * 1.0
    follow = rng.random(n_features) < 0.5
    noise = rng.random((n_rows, n_features)) < rng.choice([0.0, 0.1, 0.3])
    X[:, follow] = np.where(noise, X, labels[:, np.newaxis])[:, follow]
    copied = rng.integers(0, n_features, n_features)
    X = np.where(rng.random(n_features) < 0.2, X[:, copied], X)
    return X, labels, environments, tuple(range(n_environments))


def draw_settings(rng):
    """Settings of all kinds, those included that a card does not judge by."""
    tests = [None, ChiSquaredTest(), ChiSquaredTest(yates=False), GTest()]
    test = tests[rng.integers(len(tests))]
    return Settings(
        p=float(rng.choice([0.1, 0.5, 1.0, 1.7, 1e9])),
        model_type=str(rng.choice(["conjunction", "disjunction"])),
        max_rules=int(rng.integers(1, 6)),
        alpha=float(rng.choice([0.01, 0.05, 0.5, 0.99])),
        test=test,
        stop=str(rng.choice(["coverage", "independence"])),
        pruning=bool(rng.integers(2)),
        min_samples_leaf=int(rng.choice([1, 1, 3])),
        min_replication=float(rng.choice([0.0, 0.25, 0.9])),
        min_utility=rng.choice([None, 0.0, 1.0, 2.5]),
        correction=None if test is None else rng.choice([None, None, "holm"]),
        evidence=str(rng.choice(["step", "step", "cumulative"])),
    )


def check_same_search(rng, card, **sizes):
    """Model and trace are those of the source in memory, whatever is asked for."""
    X, labels, environments, names = draw_bits(rng, **sizes)
    source, other = (
        make_memory_source(X, labels, environments, environment_labels=names) for _ in range(2)
    )
    moved, settings = move(other, card), draw_settings(rng)
    found, wanted = find_model(moved, settings), find_model(source, settings)
    assert found == wanted
