"""Shared by the summaries: rows by cell, means with errors, tables and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.base import Figure, Summary, Table
from paper.runner import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

# Repetitions behind every share in the paper.
N_PUBLISHED_RUNS = 100

# Rows by the value of a column, or by the values of several.
Cells = dict[Any, list[Row]]


def group_rows(rows: Rows, *columns: str) -> Cells:
    """Rows by the values of the columns, in the order in which they first occur."""
    cells: Cells = {}
    find_key = itemgetter(*columns)
    for row in rows:
        cells.setdefault(find_key(row), []).append(row)
    return cells


def read_numbers(rows: Rows, column: str) -> NDArray[np.float64]:
    """The numbers in a column, without empty cells."""
    return np.array([float(row[column]) for row in rows if row[column] != ""])


def find_mean(rows: Rows, column: str) -> float:
    """The mean of a column; of zeros and ones, the share of ones."""
    return float(read_numbers(rows, column).mean())


def format_mean(values: NDArray[np.float64]) -> str:
    """`0.96 ± 0.02`: the mean and its standard error, which for shares is the binomial one."""
    return f"{values.mean():.2f} ± {_find_error(values):.2f}"


def format_means(cells: Cells, column: str) -> list[str]:
    """The mean of the column in each cell."""
    return [format_mean(read_numbers(rows, column)) for rows in cells.values()]


def show_shares(
    cells: Cells, name: str, caption: str, columns: Sequence[str], findings: Sequence[str]
) -> Summary:
    """A line for each column of shares, over the cells: as a table, and on a logarithmic axis."""
    lines = [[column, *format_means(cells, column)] for column in columns]

    def draw() -> MatplotlibFigure:
        panel = {"share of runs with exactly the parents": dict(zip(columns, columns, strict=True))}
        figure = draw_curves(cells, name, panel, (5.5, 3.4))
        figure.axes[0].set(xscale="log")
        figure.axes[0].grid(alpha=0.3)
        return figure

    table = Table(name, caption, [name, *cells], lines)
    return Summary([table], [Figure(name, caption, draw)], findings)


def draw_curves(
    cells: Cells, across: str, panels: Mapping[str, Mapping[str, str]], size: tuple[float, float]
) -> MatplotlibFigure:
    """Draw means with error bars over the cells.

    There is a panel for each measure, and in it a line for each label: that of a column.
    """
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=size, layout="constrained")
    positions = [float(key) for key in cells]
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (measure, columns) in zip(all_axes, panels.items(), strict=True):
        for label, column in columns.items():
            values_by_cell = [read_numbers(rows, column) for rows in cells.values()]
            means = [values.mean() for values in values_by_cell]
            errors = [_find_error(values) for values in values_by_cell]
            axes.errorbar(positions, means, errors, marker="o", capsize=2, label=label)
        axes.set(xlabel=across, ylabel=measure, ylim=(-0.03, 1.05))
    figure.axes[0].legend()
    return figure


def compare_with_published(
    label: str, found: Mapping[str, float], published: Sequence[float], n_runs: int
) -> str:
    """One sentence: where our shares agree with the paper's within their errors.

    They agree when the difference is at most twice its standard error, with errors that
    never vanish (a share of 0 or 1 in n runs is uncertain by about 1 / n).
    """
    differing = []
    for (name, share), paper in zip(found.items(), published, strict=True):
        variance = _find_variance(share, n_runs) + _find_variance(paper, N_PUBLISHED_RUNS)
        if abs(share - paper) > 2.0 * np.sqrt(variance):
            differing.append(f"{name} (here {share:.2f}, paper {paper:.2f})")
    if not differing:
        return f"{label}: agrees with the paper everywhere, within two standard errors."
    elsewhere = "; agrees elsewhere" if len(differing) < len(found) else ""
    return f"{label}: differs from the paper at {', '.join(differing)}{elsewhere}."


def _find_variance(share: float, n: int) -> float:
    """Of a share in n runs, with one run added on either side so that it never vanishes."""
    smoothed = (share * n + 1.0) / (n + 2.0)
    return smoothed * (1.0 - smoothed) / n


def _find_error(values: NDArray[np.float64]) -> float:
    return float(values.std() / np.sqrt(len(values)))
