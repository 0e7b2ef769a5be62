"""Marks of axes, and positions on them."""

import pytest

from icscm.drawing.axes import (
    Scale,
    choose_ratio_marks,
    choose_share_marks,
    make_name_axis,
    make_number_axis,
    make_ratio_axis,
    make_share_axis,
)


@pytest.mark.parametrize(
    ("low", "high", "first", "last", "n"),
    [
        (0.31, 0.32, 0.3, 0.4, 6),
        (0.5, 0.6, 0.5, 0.6, 6),
        (0.1, 0.35, 0.1, 0.35, 6),
        (0.1, 0.36, 0.1, 0.4, 4),
        (0.12, 0.62, 0.1, 0.7, 7),
        (0.12, 0.63, 0.0, 0.75, 4),
        (0.0, 1.0, 0.0, 1.0, 5),
        (0.97, 1.0, 0.9, 1.0, 6),
        (0.0, 0.0, 0.0, 0.1, 6),
    ],
)
def test_marks_of_an_axis_of_rates(low, high, first, last, n):
    marks = choose_share_marks([low, high])
    assert (marks[0], marks[-1], len(marks)) == (first, last, n)


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0.9, 1.1, [0.5, 1.0, 2.0]),
        (0.5, 2.0, [0.5, 1.0, 2.0]),
        (0.03, 30, [0.02, 0.05, 0.2, 1.0, 5.0, 20.0, 50.0]),
        (0.001, 1_000, [0.01, 0.1, 1.0, 10.0, 100.0]),
        (1.5, 8, [0.5, 1.0, 2.0, 5.0, 10.0]),
        (0.015, 0.015, [0.01, 0.05, 0.2, 1.0, 2.0]),
    ],
)
def test_marks_of_an_axis_of_odds_ratios(low, high, marks):
    assert choose_ratio_marks(low, high) == marks


@pytest.mark.parametrize(("low", "high"), [(0.4, 7.0), (1.2, 1.3), (0.001, 1e6), (0.2, 0.3)])
def test_the_axis_of_odds_ratios_holds_one(low, high):
    marks = choose_ratio_marks(low, high)
    assert 1.0 in marks
    assert len(marks) <= 8
    assert marks[0] <= max(low, 0.01)
    assert marks[-1] >= min(high, 100)


def test_axes_without_values():
    assert [tick.text for tick in make_share_axis([]).ticks] == ["0%", "25%", "50%", "75%", "100%"]
    assert [tick.text for tick in make_ratio_axis([]).ticks] == ["0.5", "1", "2"]


def test_values_are_placed_between_the_ends():
    scale = Scale(make_number_axis(0.0, 10.0), start=100.0, end=200.0)
    assert [scale.place(value) for value in (-5.0, 0.0, 2.5, 10.0, 99.0)] == [
        100.0,
        100.0,
        125.0,
        200.0,
        200.0,
    ]


def test_odds_ratios_are_placed_by_their_logarithm():
    scale = Scale(make_ratio_axis([0.5, 2.0]), start=0.0, end=100.0)
    assert scale.place(1.0) == pytest.approx(50.0)
    assert scale.place(0.5) == 0.0


def test_names_stand_at_whole_numbers():
    axis = make_name_axis(["plain", "0.1"])
    assert [(tick.value, tick.text) for tick in axis.ticks] == [(0.0, "plain"), (1.0, "0.1")]
    assert Scale(axis, start=0.0, end=100.0).place(0.5) == 50.0
