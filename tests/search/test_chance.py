"""A rule must be better than the best of all candidates would be by chance."""

import numpy as np
import pytest
from scipy import stats

from icscm import ICSCMClassifier
from icscm.engine.leaf_tables import LeafTables
from support.fitting import PAPER, fit_quietly

# Probability that a binomial number of rejections at 5 % is larger than allowed in a test.
SURE = 1e-4
# Rows, columns, and the largest frequency of a feature.
GENOMES = (300, 200, 0.03)


def draw_noise(seed, n_rows, n_columns, share):
    """Rare features without effect; labels and features by environment."""
    rng = np.random.default_rng((seed, n_rows))
    site = rng.integers(0, 4, n_rows)
    frequency = rng.uniform(0.01, share, n_columns)
    y = rng.random(n_rows) < np.array([0.05, 0.1, 0.2, 0.3])[site]
    y[:2] = False, True
    return (rng.random((n_rows, n_columns)) < frequency).astype(int), y.astype(int), site


@pytest.mark.thorough
@pytest.mark.parametrize("model_type", ["conjunction", "disjunction"])
@pytest.mark.parametrize("design", [(60, 10, 0.5), (150, 60, 0.5), GENOMES])
def test_noise_gives_a_rule_in_five_percent(model_type, design):
    """Disjunctions of rules that cover 2 to 6 rows were reported, at a sensitivity of 7 %."""
    n_tables, n_found, n_before = 80, 0, 0
    for seed in range(n_tables):
        table = draw_noise(seed, *design)
        found = fit_quietly(ICSCMClassifier(model_type=model_type), *table)
        n_found += bool(found.trace_.steps)
        before = ICSCMClassifier(model_type=model_type, min_utility=0.0)
        n_before += bool(fit_quietly(before, *table).trace_.steps)
    assert n_found <= stats.binom.isf(SURE, n_tables, 0.05)
    assert n_before >= (0.5 * n_tables if design == GENOMES else n_found)


def test_rare_causes_are_found_without_junk():
    """Six rare mutations among 1,000 columns, each a cause: all are found, and nothing else."""
    n_true = n_false = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        site = rng.integers(0, 4, 1_000)
        X = (rng.random((1_000, 1_000)) < rng.uniform(0.002, 0.02, 1_000)).astype(int)
        X[:, :6] = rng.random((1_000, 6)) < 0.03
        y = X[:, :6].any(axis=1) ^ (rng.random(1_000) < 0.02)
        learner = ICSCMClassifier(model_type="disjunction", stop="coverage")
        used = {int(each) for each in fit_quietly(learner, X, y, site).features_used_}
        n_true += len(used & set(range(6)))
        n_false += len(used - set(range(6)))
    assert n_true >= 35
    assert n_false <= 1


def test_evidence_is_no_more_than_the_exact_probability_gives():
    """Of permuted labels, as the sum of a hypergeometric number for each environment.

    Where rates differ between environments the sum varies less than the deviance assumes, and the
    evidence is less than it could be.
    """
    rng = np.random.default_rng(0)
    for _ in range(60):
        sizes = rng.integers(5, 60, 3)
        positives = rng.binomial(sizes, rng.uniform(0.1, 0.9, 3))
        covered = rng.binomial(sizes, rng.uniform(0.1, 0.9))
        drawn = rng.hypergeometric(positives, sizes - positives, covered)
        exact = np.ones(1)
        for n, k, c in zip(sizes, positives, covered, strict=True):
            exact = np.convolve(exact, stats.hypergeom.pmf(np.arange(c + 1), n, k, c))
        leaf = np.stack((covered - drawn, drawn))[np.newaxis]
        tables = LeafTables(columns=np.arange(1), layout=None, tables=leaf)
        evidence = tables.compute_evidence(np.stack((sizes - positives, positives)))[0]
        chance = exact[: drawn.sum() + 1].sum() - exact[drawn.sum()] / 2
        if evidence > 0:
            assert stats.norm.sf(np.sqrt(2 * evidence)) > 0.8 * chance - 0.01


def test_a_marker_of_an_environment_is_not_evidence():
    """Its samples have another rate, and so has every sample there: nothing beyond chance."""
    rng = np.random.default_rng(0)
    site = rng.integers(0, 3, 3_000)
    y = (rng.random(3_000) < np.array([0.02, 0.1, 0.4])[site]).astype(int)
    marker = (rng.random(3_000) < np.array([0.9, 0.5, 0.1])[site]).astype(int)
    learner = ICSCMClassifier(alpha=1e-300, min_replication=0)
    found = fit_quietly(learner, marker[:, np.newaxis], y, site)
    assert found.trace_.steps == ()
    assert found.trace_.last_scan.n_rejected["unhelpful"] == 2


def test_the_papers_settings_keep_every_rule():
    X, y, site = draw_noise(0, 300, 50, 0.1)
    assert fit_quietly(ICSCMClassifier(**PAPER), X, y, site).rules_
    assert not fit_quietly(ICSCMClassifier(), X, y, site).rules_
