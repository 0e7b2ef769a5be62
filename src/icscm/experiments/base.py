"""What an experiment is: a plan of tasks, and what its rows show beside the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm.experiments.runner import Plan, Row

# Repetitions behind every share in the paper.
N_PUBLISHED_RUNS = 100

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


@dataclass(frozen=True)
class Options:
    """How much to run. `runs` None means the experiment's own number."""

    runs: int | None = None
    seed: int = 0
    quick: bool = False
    data_home: Path | None = None

    def choose_runs(self, full: int, quick: int = 2) -> int:
        """Repetitions of each cell."""
        if self.runs is not None:
            return self.runs
        return quick if self.quick else full


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
    """What the rows show: tables, figures, and sentences on where we agree with the paper."""

    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    findings: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """One name for `icscm reproduce`.

    `is_serial` experiments measure time and must have the machine to themselves.
    """

    name: str
    title: str
    description: str
    make_plan: Callable[[Options], Plan]
    summarise: Callable[[Sequence[Row]], Summary]
    is_serial: bool = False


@dataclass
class Cells:
    """Rows grouped by the values of some columns, in the order in which they first occur."""

    groups: dict[tuple[str, ...], list[Row]] = field(default_factory=dict)

    def __getitem__(self, key: tuple[Any, ...]) -> list[Row]:
        return self.groups[tuple(map(str, key))]


def group_rows(rows: Sequence[Row], *columns: str) -> Cells:
    """Rows by the values of the columns."""
    cells = Cells()
    for row in rows:
        cells.groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return cells


def list_values(rows: Sequence[Row], column: str) -> list[str]:
    """The distinct values of a column in the order in which they occur."""
    return list(dict.fromkeys(row[column] for row in rows))


def compute_share(rows: Sequence[Row], column: str) -> tuple[float, float]:
    """Share of rows whose column is 1, and its binomial standard error."""
    values = np.array([float(row[column]) for row in rows])
    share = float(values.mean())
    return share, float(np.sqrt(share * (1.0 - share) / len(values)))


def format_share(share: float, error: float) -> str:
    """`0.96 ± 0.02`."""
    return f"{share:.2f} ± {error:.2f}"


def compare_with_published(
    label: str,
    columns: Sequence[str],
    found: Sequence[tuple[float, float]],
    published: Sequence[float],
    n_runs: int,
) -> str:
    """One sentence: where our shares agree with the paper's within their errors.

    They agree when the difference is at most twice its standard error, with errors that
    never vanish (a share of 0 or 1 in n runs is uncertain by about 1 / n).
    """
    differing = []
    for column, (share, _), paper in zip(columns, found, published, strict=True):
        error = np.sqrt(_variance(share, n_runs) + _variance(paper, N_PUBLISHED_RUNS))
        if abs(share - paper) > 2.0 * error:
            differing.append(f"{column} (here {share:.2f}, paper {paper:.2f})")
    if not differing:
        return f"{label}: agrees with the paper everywhere, within two standard errors."
    elsewhere = "; agrees elsewhere" if len(differing) < len(columns) else ""
    return f"{label}: differs from the paper at {', '.join(differing)}{elsewhere}."


def _variance(share: float, n: int) -> float:
    """Of a share in n runs, with one run added on either side so that it never vanishes."""
    smoothed = (share * n + 1.0) / (n + 2.0)
    return smoothed * (1.0 - smoothed) / n
