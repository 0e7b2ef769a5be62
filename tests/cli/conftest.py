"""Commands that are quick to test."""

from dataclasses import replace

import pytest

from icscm.cli.learners import MODELS

# Rounds of boosting, instead of 80 or 100: the tables have few columns.
N_ROUNDS = 10


@pytest.fixture(scope="module", autouse=True)
def few_fits(request):
    """`icscm fit` validates on request only, and learns from 2 subsamples instead of 20.

    A module that tests these says WITH_ALL_FITS = True.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.module, "WITH_ALL_FITS", False):
            never = {name: replace(each, max_validation_steps=0) for name, each in MODELS.items()}
            patch.setattr("icscm.cli.learning.MODELS", never)
            patch.setattr("icscm.validation.stability.N_BRIEF", 2)
        yield


@pytest.fixture(scope="module")
def few_rounds():
    """Gradient boosting of few rounds: a screen of a small table spends its time there."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    def make_boosting(**settings):
        return HistGradientBoostingClassifier(**(settings | {"max_iter": N_ROUNDS}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn.ensemble.HistGradientBoostingClassifier", make_boosting)
        yield
