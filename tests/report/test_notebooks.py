"""Displays in a notebook, tested in a real kernel."""

import json

import nbclient
import nbformat
import pytest

SETUP = """
from icscm import ICSCMClassifier
from icscm.datasets import make_conjunction
data = make_conjunction(500, 2, random_state=1)
learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
"""


@pytest.fixture(scope="module")
def run_cells():
    """Runs cells in one kernel, and gives the outputs of each."""

    def run(*cells):
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute()
        return [cell.outputs for cell in book.cells]

    return run


def count_images(outputs):
    return sum("image/png" in each.get("data", {}) for each in outputs)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of the kernel's machinery
def test_a_notebook_shows_everything_once(run_cells):
    """`plot()` showed nothing: pyplot did not know its figure. `model_` was a page of tuples."""
    cells = {
        "last": "learner.plot()",
        "in the middle": "figure = learner.plot()\nNone",
        "again": "figure",
        "model": "learner.model_",
        "trace": "learner.trace_",
        "verdicts": "learner.verdicts_",
        "report": "learner.report()",
    }
    _, *outputs = run_cells(SETUP, *cells.values())
    shown = dict(zip(cells, outputs, strict=True))
    for name in ("last", "in the middle", "again"):
        assert count_images(shown[name]) == 1, json.dumps(shown[name])[:500]
    for name in ("model", "trace", "verdicts", "report"):
        (output,) = shown[name]
        assert "text/html" in output["data"]
        assert len(output["data"]["text/plain"].splitlines()) < 12
    assert "Conjunction: C1" in shown["model"][0]["data"]["text/html"]
