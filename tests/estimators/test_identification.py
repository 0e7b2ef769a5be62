"""The paper's claim, as a statistic: ICSCM finds exactly the parents, SCM never does."""

import warnings

import numpy as np
import pytest
from scipy import stats

from icscm import ICSCMClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from icscm.exceptions import IcscmWarning

N_RUNS = 50


def find_features(learner, data, seed):
    """The features of a model trained on 80 % of the samples."""
    rows = np.random.default_rng(seed).permutation(len(data.y))[: len(data.y) * 8 // 10]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IcscmWarning)
        learner.fit(data.X.iloc[rows], data.y[rows], environments=data.environments[rows])
    return set(learner.features_used_)


@pytest.mark.thorough
@pytest.mark.parametrize("n_distractors", [1, 3, 7, 20])
def test_identification(n_distractors):
    n_found, n_found_by_scm = 0, 0
    for seed in range(N_RUNS):
        data = make_conjunction(10_000, n_distractors, random_state=(n_distractors, seed))
        n_found += find_features(ICSCMClassifier(), data, seed) == set(data.parents)
        n_found_by_scm += find_features(SCMClassifier(), data, seed) == set(data.parents)
    assert stats.binomtest(n_found, N_RUNS, 0.95, alternative="less").pvalue > 1e-3
    assert n_found_by_scm == 0


@pytest.mark.thorough
def test_more_samples_find_the_parents_more_often():
    shares = []
    for n_samples in (500, 2_000, 10_000):
        found = [
            find_features(
                ICSCMClassifier(), data := make_conjunction(n_samples, 5, random_state=seed), seed
            )
            == set(data.parents)
            for seed in range(N_RUNS)
        ]
        shares.append(np.mean(found))
    assert shares[0] < shares[1] < shares[2]


@pytest.mark.thorough
def test_the_first_rule_is_refused_at_the_level_of_the_test():
    """A true parent's first leaf is invariant, so its rule is refused in alpha of the runs."""
    n_refused, n_runs, alpha = 0, 200, 0.05
    for seed in range(n_runs):
        data = make_conjunction(2_000, 0, n_children=0, n_parents=1, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IcscmWarning)
            learner = ICSCMClassifier(alpha=alpha, test="g").fit(
                data.X, data.y, environments=data.environments
            )
        wrong = [str(rule) for rule in learner.rules_] != ["A1 > 0"]
        n_refused += wrong
    # 4 standard errors above the level
    assert n_refused / n_runs <= alpha + 4 * np.sqrt(alpha * (1 - alpha) / n_runs)
    assert n_refused > 0
