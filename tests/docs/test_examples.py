"""The gallery: every example draws and says what it explains; two are run as notebooks."""

import runpy
import shutil
import sys
import warnings
from pathlib import Path

import nbclient
import nbformat
import pytest
from matplotlib import pyplot
from sphinx_gallery.notebook import python_to_jupyter_cli

ROOT = Path(__file__).parents[2]
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
# The warnings that an example shows, since its text speaks of them.
EXPLAINED = {"stability": ["UnstableModelWarning"]}


@pytest.fixture
def run_example(monkeypatch):
    """Runs an example as the site does, and gives what it warned of."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # put back afterwards
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.close("all")

    def run(path):
        with warnings.catch_warnings(record=True) as caught, pyplot.rc_context():
            import example_style

            warnings.simplefilter("always")
            example_style.apply({}, "")
            runpy.run_path(str(path))
            for number in pyplot.get_fignums():  # whoever draws may warn, too
                pyplot.figure(number).canvas.draw()
        return [each.category.__name__ for each in caught]

    yield run
    pyplot.close("all")
    sys.modules.pop("example_style", None)


def test_there_are_enough_of_them():
    assert len(EXAMPLES) >= 12
    assert set(EXPLAINED) <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_draws_and_warns_of_nothing_that_it_does_not_explain(name, run_example, capsys):
    assert run_example(EXAMPLES[name]) == EXPLAINED.get(name, [])
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    for figure in figures:
        assert figure.axes
        assert all(axes.has_data() for axes in figure.axes)
    printed, complained = capsys.readouterr()
    assert complained == ""
    assert max(map(len, printed.splitlines()), default=0) <= 86  # more scrolls sideways


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_says_that_data_are_simulated(name):
    text = EXAMPLES[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert "imulat" in text


@pytest.fixture
def run_notebook(tmp_path, monkeypatch):
    """Makes a notebook of an example, as the site offers it, and runs it in a real kernel."""

    def run(name):
        script = Path(shutil.copy(EXAMPLES[name], tmp_path))
        python_to_jupyter_cli([str(script)])
        book = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
        nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute(cwd=tmp_path)
        cells = [cell for cell in book.cells if cell.cell_type == "code"]
        return [[dict(each.get("data", each)) for each in cell.outputs] for cell in cells]

    return run


def count_kind(outputs, kind):
    return sum(kind in each for each in outputs)


@pytest.mark.filterwarnings("ignore")  # of the kernel's machinery
def test_the_report_is_shown_in_a_notebook(run_notebook):
    *_, drawn, (report,) = run_notebook("shortcut")
    assert count_kind(drawn, "image/png") == 1
    assert "<iframe" in report["text/html"]
    for word in ("billing_code", "deteriorated", "hospital"):
        assert word in report["text/html"]
    assert len(report["text/plain"].splitlines()) < 12


@pytest.mark.filterwarnings("ignore")  # of the kernel's machinery
def test_the_path_and_its_figures_are_shown_in_a_notebook(run_notebook):
    """`path.plot()` above another line showed nothing: pyplot did not know its figure."""
    _, grown, drawn = run_notebook("tolerance_path")
    assert count_kind(grown, "image/png") == 1
    assert count_kind(grown, "text/html") == 1
    assert count_kind(drawn, "image/png") == 1
