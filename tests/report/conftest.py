"""Reports for the tests of reports."""

import numpy as np
import pytest

from icscm import ICSCMClassifier
from icscm.report.page import make_report
from support.fitting import PAPER
from support.reports import HOSTILE, find_path, fit, make_noise, make_simulation


@pytest.fixture(scope="session")
def simulation():
    return make_simulation()


@pytest.fixture(scope="session")
def hostile(simulation):
    """The data under hostile names, as (X, y, environments)."""
    X = simulation.X.set_axis(HOSTILE, axis="columns")
    y = np.array(["<i>no</i>", "yes & <script>alert(4)</script>"])[simulation.y]
    return X, y, np.array(HOSTILE[:5])[simulation.environments]


@pytest.fixture(scope="session")
def hostile_report(hostile):
    learner = fit(ICSCMClassifier(stop="coverage", **PAPER), *hostile)
    return make_report(
        learner,
        data_name="<script>alert('data')</script>.csv",
        target="<b>target",
        environment="<u>site",
        dropped={"<script>alert(5)</script>": "an <i>identifier</i>"},
        path=find_path(learner, *hostile),
    )


@pytest.fixture(scope="session")
def long_report():
    """Ten rules, at three levels."""
    samples = make_noise(4_000, 4)
    learner = fit(ICSCMClassifier(stop="coverage", max_thresholds=10, pruning=False), *samples)
    return make_report(learner, path=find_path(learner, *samples, alphas=[1e-6, 0.2, 0.5]))
