"""Reports and a browser for the tests of reports."""

import os
import shutil

import numpy as np
import pytest
from report_samples import HOSTILE, find_path, fit

from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
from icscm.report.render import make_report
from literal import PAPER


@pytest.fixture(scope="session")
def simulation():
    return make_conjunction(2_000, 4, n_parents=3, n_environments=5, random_state=3)


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
        left_out={"<script>alert(5)</script>": "an <i>identifier</i>"},
        alpha_path=find_path(learner, *hostile),
    )


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium; ICSCM_NEED_BROWSER makes its absence an error, as CI wants."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        _give_up("playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except Error as error:
            _give_up(f"no Chromium can be started: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


def _give_up(reason):
    if os.environ.get("ICSCM_NEED_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)
