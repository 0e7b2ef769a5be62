"""Rates and other scores by environment, as the rows of a table with drawn cells.

A cell is the drawn part of a row of a table. What is listed is limited here, so that a page stays
small; the records and the JSON of a report hold everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from markupsafe import Markup

from icscm.drawing.axes import Axis, make_share_axis
from icscm.drawing.intervals import Background, IntervalRow, RowKind, draw_axis_cell, draw_cell
from icscm.formatting import natural_key
from icscm.report.content.errors import ErrorRate
from icscm.report.content.leaves import Leaf
from icscm.report.content.rates import EnvironmentRate, Rate
from icscm.report.formatting import format_share


class Limits(NamedTuple):
    """Limits of the layout; the records and the JSON of a report hold everything.

    `characters` is the longest name shown whole. The others count what is listed.
    """

    environments: int = 200
    leaves: int = 60
    equivalent: int = 12
    sets: int = 64
    characters: int = 160

    def halve(self) -> Limits:
        """Return half of each limit, but not less than what a page needs."""
        return Limits(*(max(limit // 2, least) for limit, least in zip(self, _LEAST, strict=True)))


_LEAST = Limits(environments=4, leaves=4, equivalent=2, sets=4, characters=40)


# --- rates and other scores by environment --------------------------------------------------------


@dataclass(frozen=True)
class DrawnRow:
    """A row of a table with its drawn cell; `text` and `range` are the share and its interval."""

    name: str
    n: int
    share: float | None
    interval: Sequence[float] | None
    text: str
    range: str
    cell: Markup

    @property
    def is_known(self) -> bool:
        """Whether there is a share."""
        return self.share is not None


@dataclass(frozen=True)
class DrawnPlot:
    """The rows of a table with drawn cells, the marks of their axis, and how many are shown."""

    rows: Sequence[DrawnRow]
    pooled: DrawnRow
    axis: Markup
    n_rows: int

    @property
    def is_compared(self) -> bool:
        """Whether there are several rows, so that each is shown beside all together."""
        return self.n_rows > 1

    @property
    def n_left_out(self) -> int:
        """Number of rows that are not shown."""
        return self.n_rows - len(self.rows)


@dataclass(frozen=True)
class PlotRow:
    """A share, or another score, of some rows of the table, and one to compare it with."""

    name: str
    n: int
    share: float | None
    interval: tuple[float, float] | None
    compared: float | None = None


def make_rate_row(name: str, rate: Rate | EnvironmentRate | Leaf) -> PlotRow:
    """Make the record of a rate: of an environment, a leaf, or all rows."""
    return PlotRow(name=name, n=rate.n, share=rate.rate, interval=make_pair(rate.rate_interval))


def make_error_row(name: str, errors: ErrorRate) -> PlotRow:
    """Make the record of the errors in an environment, or of all together."""
    return PlotRow(
        name=name, n=errors.n, share=errors.error, interval=make_pair(errors.error_interval)
    )


def make_pair(interval: Sequence[float] | None) -> tuple[float, float] | None:
    """Return an interval as a pair."""
    if interval is None:
        return None
    low, high = interval
    return low, high


def make_plot(
    rows: Sequence[PlotRow],
    pooled: PlotRow,
    limits: Limits,
    *,
    margin: float | None = None,
    by_name: bool = False,
    write: Callable[[float | None], str] = format_share,
    has_mean: bool = True,
) -> DrawnPlot:
    """Draw a share of each row with its interval, and above them that of all rows together.

    Of very many rows, those with the most samples are shown. Behind them are a line at the pooled
    share and, with a margin, a band of that width; `has_mean` is False where shares are meant to
    differ. `write` writes a share, by default in percent.
    """
    shown = [rows[number] for number in find_largest([row.n for row in rows], limits.environments)]
    if by_name:
        shown.sort(key=lambda row: natural_key(row.name))
    axis = make_axis([*shown, pooled], is_percent=write is format_share)
    background = make_background(pooled.share if has_mean else None, margin)
    groups = [make_interval_row(row, name=row.name, kind=RowKind.GROUP) for row in shown]
    all_together = make_interval_row(pooled, name="all together", kind=RowKind.POOLED)
    return DrawnPlot(
        rows=[
            draw_row(record, row.n, axis=axis, background=background, write=write)
            for record, row in zip(groups, shown, strict=True)
        ],
        pooled=draw_row(all_together, pooled.n, axis=axis, background=background, write=write),
        axis=draw_axis_cell(axis),
        n_rows=len(rows),
    )


def make_background(mean: float | None, margin: float | None) -> Background:
    """Make what lies behind all rows: a line at the mean, and a band as wide as the margin."""
    if mean is None or margin is None:
        return Background(mean=mean)
    return Background(mean=mean, band=(mean - margin / 2, mean + margin / 2))


def draw_row(
    record: IntervalRow,
    n_rows: int,
    *,
    axis: Axis,
    background: Background,
    write: Callable[[float | None], str],
) -> DrawnRow:
    """Draw a share with its interval, and write both."""
    return DrawnRow(
        name=record.name,
        n=n_rows,
        share=record.estimate,
        interval=record.interval,
        text=write(record.estimate),
        range=" to ".join(map(write, record.interval or ())),
        cell=draw_cell(record, axis, background),
    )


def make_interval_row(row: PlotRow, *, name: str, kind: RowKind) -> IntervalRow:
    """Make the record of a row as it is drawn."""
    return IntervalRow(
        name=name, estimate=row.share, interval=row.interval, kind=kind, compared=row.compared
    )


def make_axis(rows: Sequence[PlotRow], *, is_percent: bool) -> Axis:
    """Make an axis that holds the intervals of all rows, and what they are compared with."""
    ends = [end for row in rows for end in row.interval or ()]
    compared = [row.compared for row in rows if row.compared is not None]
    return make_share_axis(ends + compared, None if is_percent else "{:g}".format)


def find_largest(sizes: Sequence[int], limit: int) -> list[int]:
    """Return where the largest sizes are, in the given order."""
    ranks = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    return sorted(ranks[:limit])


class EnvironmentSize(Protocol):
    """The name of an environment and its number of rows."""

    @property
    def environment(self) -> str: ...
    @property
    def n(self) -> int: ...


Environment = TypeVar("Environment", bound=EnvironmentSize)


def choose_largest(environments: Sequence[Environment], limit: int) -> list[Environment]:
    """Choose the environments with the most rows, and sort them by name: r2 before r10."""
    sizes = [environment.n for environment in environments]
    largest = [environments[number] for number in find_largest(sizes, limit)]
    return sorted(largest, key=lambda environment: natural_key(environment.environment))
