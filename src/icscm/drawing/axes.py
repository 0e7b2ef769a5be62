"""Axes: the values at their ends, their marks, and the position of a value.

Marks are multiples of a step. Since steps such as 0.05 are not exact, numbers of steps are rounded
before they are rounded up or down: 0.15 / 0.05 is 2.9999999999999996, and means 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10
from typing import Final

# Widths between the marks of an axis of shares; it has three to six marks.
_SHARE_STEPS: Final = (0.02, 0.05, 0.1, 0.25)
_MAX_SHARE_STEPS: Final = 5
# On a narrower axis of shares trivial differences would look large.
_MIN_SHARE_WIDTH: Final = 0.1
# Marks of an axis of odds ratios, and about how many of them are shown.
_RATIOS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_N_RATIO_MARKS: Final = 6
# Steps between the marks of other axes, in powers of ten. An axis is at most that many steps long;
# with a little more than 5, most axes need not take the next longer step.
_STEPS: Final = (0.2, 0.5, 1.0, 2.0)
_MAX_STEPS: Final = 5.6


@dataclass(frozen=True)
class Tick:
    """A mark of an axis, and its text."""

    value: float
    text: str


@dataclass(frozen=True)
class Axis:
    """The values between which an axis extends, and its marks."""

    low: float
    high: float
    ticks: Sequence[Tick]
    is_logarithmic: bool = False

    def compute_fraction(self, value: float) -> float:
        """Return how far along the axis a value is, from 0 to 1; beyond an end it is at the end."""
        if self.is_logarithmic:
            fraction = (log(value) - log(self.low)) / (log(self.high) - log(self.low))
        else:
            fraction = (value - self.low) / (self.high - self.low)
        return min(max(fraction, 0.0), 1.0)


@dataclass(frozen=True)
class Scale:
    """An axis between two positions of a panel; for an upright axis, `start` is the lower end."""

    axis: Axis
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the position of a value."""
        return self.start + (self.end - self.start) * self.axis.compute_fraction(value)


def make_share_axis(values: Iterable[float], write: Callable[[float], str] | None = None) -> Axis:
    """Return an axis of rates that holds all values, from mark to mark."""
    marks = choose_share_marks(values)
    write_mark = write or format_percent
    ticks = [Tick(mark, write_mark(mark)) for mark in marks]
    return Axis(marks[0], marks[-1], ticks)


def make_ratio_axis(ratios: Iterable[float]) -> Axis:
    """Return a logarithmic axis of odds ratios, from mark to mark."""
    known = list(ratios)
    marks = choose_ratio_marks(min(known, default=0.5), max(known, default=2.0))
    ticks = [Tick(mark, f"{mark:g}") for mark in marks]
    return Axis(marks[0], marks[-1], ticks, is_logarithmic=True)


def make_number_axis(
    low: float, high: float, write: Callable[[float], str] = "{:,g}".format
) -> Axis:
    """Return an axis between two numbers, with round marks."""
    ticks = [Tick(mark, write(mark)) for mark in choose_marks(low, high)]
    return Axis(low, high, ticks)


def make_name_axis(names: Sequence[str]) -> Axis:
    """Return an axis on which names stand at 0, 1, 2 and so on."""
    ticks = [Tick(float(number), name) for number, name in enumerate(names)]
    return Axis(-0.5, len(names) - 0.5, ticks)


def choose_share_marks(values: Iterable[float]) -> list[float]:
    """Choose marks of an axis of shares, from end to end.

    >>> choose_share_marks([0.12, 0.34]), choose_share_marks([0.31, 0.32])[-1]
    ([0.1, 0.15, 0.2, 0.25, 0.3, 0.35], 0.4)
    """
    known = list(values)
    low = min(known, default=0.0)
    high = max(known, default=1.0)
    step = _choose_share_step(max(high - low, _MIN_SHARE_WIDTH))

    # the numbers of the first and the last mark, in steps from 0; rounded first, since 0.3 / 0.1 is
    # a little less than 3
    min_steps = ceil(_MIN_SHARE_WIDTH / step)
    first = floor(round(low / step, 6))
    last = max(ceil(round(high / step, 6)), first + min_steps)

    # an axis that would extend above 1 extends downwards instead
    n_steps_to_one = round(1 / step)
    if last > n_steps_to_one:
        last = n_steps_to_one
        first = min(first, last - min_steps)
    return [round(number * step, 6) for number in range(first, last + 1)]


def _choose_share_step(width: float) -> float:
    """Choose the shortest step of which few enough cover a width."""
    for step in _SHARE_STEPS:
        if width <= _MAX_SHARE_STEPS * step:
            return step
    return _SHARE_STEPS[-1]


def choose_ratio_marks(low: float, high: float) -> list[float]:
    """Choose at most eight marks of an axis of odds ratios that holds both, 1 among them.

    >>> choose_ratio_marks(0.4, 7)
    [0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    """
    first_mark = max([ratio for ratio in _RATIOS if ratio <= low and ratio < 1], default=_RATIOS[0])
    last_mark = min(
        [ratio for ratio in _RATIOS if ratio >= high and ratio > 1], default=_RATIOS[-1]
    )
    first = _RATIOS.index(first_mark)
    last = _RATIOS.index(last_mark)
    one = _RATIOS.index(1.0)

    # both ends, and from 1 to them every mark, or every second or third one
    step = ceil((last - first + 1) / _N_RATIO_MARKS)
    below_one = range(one, first, -step)
    above_one = range(one, last, step)
    shown = {first, *below_one, *above_one, last}
    return [_RATIOS[number] for number in sorted(shown)]


def choose_marks(low: float, high: float) -> list[float]:
    """Choose round marks of an axis, at most six of them.

    >>> choose_marks(-0.02, 0.09), choose_marks(0, 1)
    ([-0.02, 0.0, 0.02, 0.04, 0.06, 0.08], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    width = high - low
    power = 10.0 ** floor(log10(width))
    step = next(step * power for step in _STEPS if width <= _MAX_STEPS * step * power)

    # the numbers of the first and the last mark, in steps from 0
    first = ceil(round(low / step, 6))
    last = floor(round(high / step, 6))
    return [round(number * step, 12) for number in range(first, last + 1)]


def format_percent(share: float) -> str:
    """Write a share as a mark of an axis.

    >>> format_percent(0.25), format_percent(0.0), format_percent(0.015)
    ('25%', '0%', '1.5%')
    """
    return f"{100 * share:.4f}".rstrip("0").rstrip(".") + "%"
