"""Tests of columns where rows belong together."""

import numpy as np
import pytest

from icscm.screening.binned_table import BinnedTable
from icscm.screening.column_tests import run_column_tests
from icscm.screening.contributions import LearnerContributions
from icscm.sources.memory import open_memory
from support.visits import N_NOISE, make_visits


@pytest.mark.parametrize("n_visits", [5, pytest.param(10, marks=pytest.mark.thorough)])
def test_noise_of_patients_is_no_heterogeneity_of_the_screen(n_visits):
    """The tests, given the scores of a model of the causes and the shortcut."""
    n_wrong, n_found = np.zeros(2), np.zeros(2)
    for seed in range(40):
        X, y, places, patients = make_visits(seed, n_visits, has_shortcut=True)
        scores = (1.2 * X[:, 0] + 0.8 * X[:, 1] + 2 * X[:, -1])[:, np.newaxis]
        shuffled_scores = np.broadcast_to(X[:, :1, np.newaxis], (3, len(y), 1, 1)).copy()
        for number, groups in enumerate((patients, None)):
            source = open_memory(X, y, environments=places, groups=groups).source
            contributions = LearnerContributions(np.arange(len(y)), np.array([0]), shuffled_scores)
            tests = run_column_tests(
                BinnedTable(source), np.arange(X.shape[1]), scores, contributions
            )
            found = tests.columns
            wrong = [found[j].p_value < 0.05 for j in range(2 + N_NOISE)]
            n_wrong[number] += any(wrong)
            n_found[number] += found[2 + N_NOISE].p_value < 0.05 and found[2 + N_NOISE].share > 0.01
    assert n_wrong[0] <= 40 * 0.05 + 4 * np.sqrt(40 * 0.05 * 0.95)
    assert n_wrong[1] >= 15
    assert n_found.tolist() == [40, 40]
