"""What the simulated sweeps share: a table and a curve of identification shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icscm.experiments.base import (
    Figure,
    Table,
    compute_share,
    format_share,
    group_rows,
    list_values,
)
from icscm.experiments.runner import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


def make_share_table(
    rows: Sequence[Row], name: str, caption: str, across: str, lines: Sequence[str]
) -> Table:
    """One line for each method column, one column for each value of `across`."""
    values = list_values(rows, across)
    cells = group_rows(rows, across)
    return Table(
        name,
        caption,
        [across.removeprefix("n_"), *values],
        [
            [line, *(format_share(*compute_share(cells[(value,)], line)) for value in values)]
            for line in lines
        ],
    )


def make_share_figure(
    rows: Sequence[Row], name: str, caption: str, across: str, lines: Sequence[str]
) -> Figure:
    """The same as curves with error bars, on a logarithmic axis."""
    values = list_values(rows, across)
    cells = group_rows(rows, across)

    def draw() -> MatplotlibFigure:
        from matplotlib.figure import Figure as NewFigure

        figure = NewFigure(figsize=(5.5, 3.4), layout="constrained")
        axes = figure.subplots()
        for line in lines:
            points = [compute_share(cells[(value,)], line) for value in values]
            axes.errorbar(
                [float(value) for value in values],
                [share for share, _ in points],
                [error for _, error in points],
                marker="o",
                capsize=2,
                label=line,
            )
        axes.set(
            xscale="log",
            xlabel=across.removeprefix("n_"),
            ylabel="share of runs with exactly the parents",
            ylim=(-0.03, 1.05),
        )
        axes.grid(alpha=0.3)
        axes.legend()
        return figure

    return Figure(name, caption, draw)
