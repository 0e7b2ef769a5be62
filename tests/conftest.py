"""What several test files share."""

import json
import os
import shutil
from pathlib import Path

# set before scipy is imported: scikit-learn's check of array API input runs only with it
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import Phase, settings

from icscm.datasets import make_conjunction

# Of each property; ICSCM_ALL_EXAMPLES=1 tries as many as the property itself says.
MAX_EXAMPLES = 60

# No test depends on the clock: a loaded machine is no fault of the code.
settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")

# Modules of one name, which the search for doctests would import one for another.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]


@pytest.fixture(scope="module")
def data():
    """The paper's simulation, a seed with which ICSCM and ICP find the parents."""
    return make_conjunction(10_000, 3, random_state=1)


@pytest.fixture(params=["pandas", "polars", "arrow"])
def frame(request, data):
    """Its features as each kind of table."""
    if request.param == "polars":
        make = pytest.importorskip("polars").DataFrame
    else:
        make = pd.DataFrame if request.param == "pandas" else pa.table
    return make({name: data.X[name].to_numpy() for name in data.X.columns})


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


def pytest_collection_modifyitems(items):
    """Cap the examples of properties.

    Under mutation (`make mutants`) each test runs hundreds of times: none is shrunk either, as it
    is enough that one fails, and the quickest tests come first.
    """
    is_mutant = "MUTANT_UNDER_TEST" in os.environ
    if is_mutant:
        known = Path("mutmut-stats.json")
        durations = json.loads(known.read_text())["duration_by_test"] if known.exists() else {}
        items.sort(key=lambda item: durations.get(item.nodeid, 0.0))
    quick = {"phases": (Phase.explicit, Phase.generate), "database": None, "derandomize": True}
    for item in items:
        if is_mutant:
            item._nodeid = item.nodeid  # mutmut reads it by a name that newer pytest does not have
        own = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
        if own is not None and (is_mutant or "ICSCM_ALL_EXAMPLES" not in os.environ):
            few = {"max_examples": min(own.max_examples, MAX_EXAMPLES)}
            own = settings(own, **few, **(quick if is_mutant else {}))
            item.obj._hypothesis_internal_use_settings = own
