"""An experiment: a plan of tasks, and the summary of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icscm.exceptions import IcscmError
from paper.runner import Plan, Rows, RunTask, Task, make_seed, run_or_record

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


@dataclass(frozen=True)
class Options:
    """How much to run. `runs` None means the experiment's own number.

    `tables` is a folder of prepared tables (`paper.screen_tables`), of which at most `max_rows`
    rows are used and `max_out` environments left out; `choose` has the values of a task's keys to
    which a study is restricted.
    """

    runs: int | None = None
    seed: int = 0
    quick: bool = False
    data_home: Path | None = None
    tables: Path | None = None
    max_rows: int = 12_000
    max_out: int | None = None
    choose: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def n_samples(self) -> int:
        """Samples in each environment: the paper's, unless it has to be quick."""
        return 1_000 if self.quick else 10_000

    def choose_runs(self, full: int) -> int:
        """Repetitions of each cell: those asked for, or the study's own number."""
        if self.runs is not None:
            return self.runs
        return 2 if self.quick else full

    def repeat(self, cells: Iterable[Task], full: int = 100, what: str = "run") -> list[Task]:
        """A task for each cell and repetition; `what` a repetition is called in the rows."""
        n_runs = self.choose_runs(full)
        return [
            {"seed": self.seed, **cell, what: number} for cell in cells for number in range(n_runs)
        ]

    def filter(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks with the values that were chosen."""

        def is_chosen(task: Task) -> bool:
            return all(str(task[key]) in values for key, values in self.choose.items())

        return [task for task in tasks if is_chosen(task)]

    def vary_distractors(self, sizes: Iterable[int], full: int = 100) -> list[Task]:
        """Tasks on the paper's number of samples, with each of these numbers of distractors."""
        return self.repeat(cross(n_samples=[self.n_samples], n_distractors=sizes), full)


def make_long_plan(
    options: Options, tasks: Iterable[Task], run: RunTask, columns: Sequence[str]
) -> Plan:
    """The plan of a study of hours: the tasks chosen, in random order; errors are recorded.

    A run that is stopped by its time limit then has some of everything.
    """
    chosen = options.filter(tasks)
    if not chosen:
        raise IcscmError("no task has the values given with --choose")
    chosen.sort(key=lambda task: make_seed(0, *task.values()))
    run = partial(run_or_record, run=run, columns=columns)
    return Plan(chosen, run, (*columns, "error"))


def cross(**values: Iterable[Any]) -> list[Task]:
    """Cells for all combinations of the values.

    >>> cross(n_samples=[300], alpha=[0.01, 0.05])
    [{'n_samples': 300, 'alpha': 0.01}, {'n_samples': 300, 'alpha': 0.05}]
    """
    combinations = product(*values.values())
    return [dict(zip(values, combination, strict=True)) for combination in combinations]


@dataclass(frozen=True)
class Table:
    """Cells as text, ready for Markdown, LaTeX and HTML."""

    name: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A figure and how to draw it."""

    name: str
    caption: str
    draw: Callable[[], MatplotlibFigure]


@dataclass(frozen=True)
class Summary:
    """Tables, figures, and sentences on agreement with the paper."""

    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    findings: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """One name for `python -m paper`.

    `is_serial` experiments measure time and must have the machine to themselves.
    """

    name: str
    title: str
    description: str
    make_plan: Callable[[Options], Plan]
    summarise: Callable[[Rows], Summary]
    is_serial: bool = False
