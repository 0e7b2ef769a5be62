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

IS_MUTATION_RUN = "MUTANT_UNDER_TEST" in os.environ

# The most examples that are tried of a property. `make test` tries the same few in each run;
# `make test-all` tries others in each run, and stores those that failed.
QUICK_EXAMPLES = 12
THOROUGH_EXAMPLES = 60

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


def pytest_addoption(parser):
    """Add `--thorough`, which `make test-all` sets."""
    parser.addoption(
        "--thorough",
        action="store_true",
        help="run the tests marked thorough, too, and try many examples of each property",
    )


def pytest_collection_modifyitems(config, items):
    """Choose the tests and the number of examples of this run."""
    is_thorough = config.getoption("--thorough")
    if not is_thorough:
        deselect_thorough(config, items)
    if IS_MUTATION_RUN:
        sort_by_duration(items)
    for item in items:
        if (stated := get_stated_settings(item)) is not None:
            item.obj._hypothesis_internal_use_settings = limit_examples(stated, is_thorough)


def deselect_thorough(config, items):
    """Take out the tests that only `make test-all` runs."""
    thorough = [item for item in items if item.get_closest_marker("thorough") is not None]
    config.hook.pytest_deselected(items=thorough)
    items[:] = [item for item in items if item.get_closest_marker("thorough") is None]


def get_stated_settings(item):
    """Return the Hypothesis settings of a property, None for any other test."""
    return getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)


def limit_examples(stated, is_thorough):
    """Return a property's settings with the examples of this run."""
    if is_thorough:
        return settings(stated, max_examples=min(stated.max_examples, THOROUGH_EXAMPLES))
    limited = settings(
        stated,
        max_examples=min(stated.max_examples, QUICK_EXAMPLES),
        derandomize=True,
        database=None,
    )
    if IS_MUTATION_RUN:  # that one example fails is enough: it is not made smaller
        return settings(limited, phases=(Phase.explicit, Phase.generate))
    return limited


def sort_by_duration(items):
    """Run the quickest tests first: `make mutants` runs them once for each planted bug."""
    stored = Path("mutmut-stats.json")
    durations = json.loads(stored.read_text())["duration_by_test"] if stored.exists() else {}
    items.sort(key=lambda item: durations.get(item.nodeid, 0.0))
    for item in items:
        item._nodeid = item.nodeid  # mutmut reads it by a name that newer pytest does not have
