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


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of the kernel's machinery
def test_a_notebook_shows_everything_once(run_cells):
    """`model_` was a page of tuples, and `plot()` showed nothing or the figure twice."""
    cells = {
        "last": "learner.plot()",
        "again": "figure = learner.plot()\nfigure",
        "model": "learner.model_",
        "trace": "learner.trace_",
        "verdicts": "learner.verdicts_",
        "report": "learner.report()",
    }
    _, *outputs = run_cells(SETUP, *cells.values())
    shown = dict(zip(cells, outputs, strict=True))
    for name in ("last", "again"):
        (output,) = shown[name]
        assert output["data"]["text/html"].startswith("<img alt="), json.dumps(output)[:500]
    for name in ("model", "trace", "verdicts", "report"):
        (output,) = shown[name]
        assert "text/html" in output["data"]
        assert len(output["data"]["text/plain"].splitlines()) < 12
    assert "Conjunction: C1" in shown["model"][0]["data"]["text/html"]
