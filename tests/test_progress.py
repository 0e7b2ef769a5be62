"""Progress of long loops."""

import io
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from icscm import (
    ICSCMClassifier,
    InvariantFeatureSelector,
    InvariantForestClassifier,
    InvariantTreeClassifier,
    SCMClassifier,
    compare,
    evaluate,
    leave_one_environment_out,
    progress,
    show_progress,
    stability_selection,
)
from icscm.datasets import make_conjunction
from icscm.io.streams import read_file
from icscm.progress import track
from icscm.validation.importances import permutation_importance
from icscm.validation.tuning import grid_search
from support.processes import wait_until

DATA = make_conjunction(300, n_environments=4, random_state=1)
TABLE = {"X": DATA.X, "y": DATA.y, "environments": DATA.environments}
FOREST = InvariantForestClassifier(n_estimators=6, n_jobs=1, random_state=0)
TREE = InvariantTreeClassifier(max_leaves=3)


@pytest.fixture
def seen(monkeypatch):
    """The loops that reported, as [number of items, number done]."""
    found = []

    def listen(n_items):
        found.append([n_items, 0])
        return lambda: found[-1].__setitem__(1, found[-1][1] + 1)

    monkeypatch.setattr(progress, "_listeners", [listen])
    return found


def test_only_the_outermost_loop_of_several_items_reports(seen):
    for _ in track([1], 1):
        for _ in track("ab", 2):
            list(track(range(5), 5))
    assert seen == [[2, 2]]
    with pytest.raises(ZeroDivisionError):
        [1 / each for each in track([1, 0], 2)]
    assert list(track("abc", 3)) == ["a", "b", "c"]
    assert seen == [[2, 2], [2, 1], [3, 3]]


@pytest.mark.parametrize(
    ("run", "loops"),
    [
        pytest.param(lambda: FOREST.fit(**TABLE), [[6, 6]], id="forest"),
        pytest.param(lambda: leave_one_environment_out(FOREST, **TABLE), [[4, 4]], id="held out"),
        pytest.param(
            lambda: stability_selection(SCMClassifier(n_jobs=1), **TABLE, n_resamples=7),
            [[7, 7]],
            id="subsamples",
        ),
        pytest.param(
            lambda: grid_search(SCMClassifier(), **TABLE, grid={"p": [1, 2]}), [[5, 5]], id="folds"
        ),
        pytest.param(
            lambda: permutation_importance(TREE.fit(**TABLE), **TABLE, n_repeats=1),
            [[2, 2]],
            id="permuted columns",
        ),
        pytest.param(
            lambda: evaluate(ICSCMClassifier().fit(**TABLE), **TABLE), [[4, 4]], id="evaluation"
        ),
        pytest.param(
            lambda: compare(
                *DATA[:2], environments=DATA[2], candidates=["scm"], n_folds=2, min_rows=2
            ),
            [[6, 6]],
            id="comparison",
        ),
        pytest.param(
            lambda: InvariantFeatureSelector(
                SCMClassifier(), cv=2, random_state=0, tolerance=99
            ).fit(**TABLE),
            [[6, 6], [2, 2], [6, 6], [5, 5]],
            id="own effects, folds, contributions and worths of a round",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_long_computations_report_their_parts(seen, run, loops):
    """A screen, a forest, an evaluation and a path along alpha showed no time left."""
    run()
    assert seen == loops


def test_reading_reports_blocks_of_a_file_or_files_of_a_folder(tmp_path, seen):
    """`icscm fit FOLDER` showed that it ran, and not how far it was."""
    frame = pd.DataFrame({"a": np.arange(200_000), "b": "some text that takes room"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    read_file(tmp_path / "t.csv")
    assert seen[0][0] > 1
    assert 0 < seen[0][1] <= seen[0][0]
    seen.clear()
    for folder in ("parquet", "text"):
        (tmp_path / folder).mkdir()
        for name in "xyz":
            if folder == "text":
                frame[:9].to_csv(tmp_path / folder / f"{name}.csv", index=False)
            else:
                pa.parquet.write_table(
                    pa.Table.from_pandas(frame[:9]), tmp_path / folder / f"{name}.parquet"
                )
        read_file(tmp_path / folder)
    assert seen == [[3, 3], [3, 3]]


def test_nothing_is_shown_without_a_terminal(capfd):
    with show_progress("Growing") as advance:
        FOREST.fit(**TABLE)
        advance()
    assert capfd.readouterr() == ("", "")
    assert progress._listeners == []


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and keeps what it gets."""

    def isatty(self):
        return True


def test_a_terminal_shows_the_share_and_the_time_left(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with show_progress("Growing [trees]"):
        for n_done in track(range(4), 4):
            share = f"{25 * n_done}%"  # drawn by a thread, ten times a second
            wait_until(lambda share=share: share in terminal.getvalue(), f"{share} is not shown")
    shown = terminal.getvalue()
    assert "Growing [trees]" in shown
    assert re.search(r"\d:\d\d:\d\d", shown)
