"""A run that was stopped goes on, and ends in the same file as one that was not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from icscm.exceptions import IcscmError
from paper.__main__ import main
from paper.runner import Plan, make_seed, read_rows, run_plan
from support.processes import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]


def run_little(task, seed):
    return {"value": seed % 1000, "text": f'{task["kind"]}, "{task["run"]}"'}


def make_little_plan(runs=6, seed=0):
    tasks = [{"seed": seed, "kind": kind, "run": run} for kind in ("a", "b") for run in range(runs)]
    return Plan(tasks, run_little, ("value", "text"))


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.csv"
    run_plan(make_little_plan(), path, n_jobs=1)
    return path.read_bytes()


def test_rows_are_those_of_the_tasks_in_order(tmp_path):
    rows = run_plan(make_little_plan(), tmp_path / "out.csv", n_jobs=1)
    assert [(row["kind"], row["run"]) for row in rows] == [
        (kind, str(run)) for kind in "ab" for run in range(6)
    ]
    assert rows[0]["text"] == 'a, "0"'
    assert len({row["value"] for row in rows}) > 6


def test_processes_make_no_difference(tmp_path, whole):
    run_plan(make_little_plan(), tmp_path / "out.csv", n_jobs=2)
    assert (tmp_path / "out.csv").read_bytes() == whole


def test_a_run_cut_off_anywhere_goes_on(tmp_path, whole):
    """Every byte at which a kill may have stopped the writing, half rows included."""
    path = tmp_path / "out.csv"
    n_lines = whole.count(b"\n")
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        n_left = []
        run_plan(make_little_plan(), path, n_jobs=1, on_done=lambda left=n_left: left.append(1))
        assert path.read_bytes() == whole
        assert len(n_left) == n_lines - 1


def test_half_a_row_is_never_read(tmp_path, whole):
    path = tmp_path / "out.csv"
    path.write_bytes(whole[:-3])
    assert len(read_rows(path)) == 11
    assert read_rows(path)[-1]["text"] == 'b, "4"'


def test_half_a_letter_is_never_read(tmp_path):
    """A kill in the middle of a letter of two bytes left a file that could not be read again."""
    path = tmp_path / "out.csv"
    path.write_bytes("run,name\n0,a\n1,é".encode()[:-1])
    assert read_rows(path) == [{"run": "0", "name": "a"}]


def test_done_rows_are_not_run_again(tmp_path, whole):
    path = tmp_path / "out.csv"
    path.write_bytes(whole)

    def must_not_run(task, seed):
        raise AssertionError("ran again")

    plan = make_little_plan()
    assert len(run_plan(Plan(plan.tasks, must_not_run, plan.columns), path, n_jobs=1)) == 12


def test_more_runs_of_the_last_cell_can_be_added(tmp_path):
    path = tmp_path / "out.csv"
    plan = make_little_plan()
    run_plan(Plan(plan.tasks[:8], run_little, plan.columns), path, n_jobs=1)
    assert len(run_plan(plan, path, n_jobs=1)) == 12


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (make_little_plan(seed=1), "was made with other settings"),
        (make_little_plan(runs=2), "was made with other settings"),
        (
            Plan([{"seed": 0}], run_little, ("value",)),
            "holds the results of another experiment or version",
        ),
    ],
)
def test_files_of_other_runs_are_left_alone(tmp_path, whole, plan, message):
    path = tmp_path / "out.csv"
    path.write_bytes(whole)
    with pytest.raises(IcscmError, match=message):
        run_plan(plan, path, n_jobs=1)
    assert path.read_bytes() == whole


def test_seeds_depend_on_the_task_alone():
    assert make_seed(0, "a", 1) == make_seed(0, "a", 1)
    assert len({make_seed(0, "a", 1), make_seed(1, "a", 1), make_seed(0, "a", 2)}) == 3


@pytest.mark.thorough
def test_a_killed_process_leaves_rows_that_count(tmp_path, monkeypatch):
    """The command itself, killed in the middle, then run again."""
    words = ["samples", "--quick", "--runs", "3", "--jobs", "1", "--out"]
    path = tmp_path / "killed" / "samples.csv"
    command = [sys.executable, "-m", "paper", *words, str(path.parent)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    wait_until(lambda: path.exists() and len(read_rows(path)) >= 2, "two rows were not written")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    killed = path.read_bytes()
    monkeypatch.chdir(ROOT)
    assert main([*words, str(path.parent)]) == 0
    assert path.read_bytes().startswith(killed[: killed.rindex(b"\n")])
    assert len(read_rows(path)) == 6
    assert main([*words, str(tmp_path / "whole")]) == 0
    assert path.read_bytes() == (tmp_path / "whole" / "samples.csv").read_bytes()


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="SIGKILL")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    """Killed by SIGKILL, or stopped while tasks ran, `python -m paper` left its workers behind."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from paper.runner import Plan, run_plan\n"
        "def run(task, seed):\n"
        "    print('working', flush=True)\n"
        "    time.sleep(3600)\n"
        "if __name__ == '__main__':\n"
        "    plan = Plan([{'n': i} for i in range(4)], run, ['x'])\n"
        "    run_plan(plan, Path(sys.argv[1]), n_jobs=2)\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "rows.csv")]
    own = {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **own
    ) as process:
        assert process.stdout.readline() == b"working\n"
        process.kill()
        process.communicate(timeout=PATIENCE)  # which ends when nobody is left who could write
