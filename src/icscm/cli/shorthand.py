"""Options in a line or two each, and kinds of values that click does not know."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf
from pathlib import Path
from typing import Any

import click

from icscm.writing import STDOUT

Decorator = Callable[[Any], Any]

# Existence is checked where the file is read: that error knows near names.
FILE = click.Path(path_type=Path)


class _Output(click.Path):
    """A file to write, or - for standard output."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return STDOUT if value == "-" else super().convert(value, param, ctx)


OUTPUT = _Output(path_type=Path)


class _WholeNumber(click.IntRange):
    """A range whose errors say what it holds."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number from {self.min}", param, ctx)


class Share(click.FloatRange):
    """A number between 0 and 1, which these are or are not."""

    def __init__(self, *, is_open: bool = False) -> None:
        super().__init__(0, 1, min_open=is_open, max_open=is_open)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = float("nan")
        if number != number:  # which is in no range, but click lets it through
            self.fail(f"{value!r} is not a number between 0 and 1", param, ctx)
        return number


def value(words: str, text: str, kind: Any = str, default: Any = None, **more: Any) -> Decorator:
    """An option's name and what it takes; without a default its help says what holds then."""
    name, metavar = words.split()
    if default is not None:
        more |= {"default": default, "show_default": True}
    return click.option(name, metavar=metavar, type=kind, help=text, **more)


def number(name: str, default: int | None, text: str, least: int = 1) -> Decorator:
    """A whole number."""
    return value(f"{name} NUMBER", text, _WholeNumber(least), default)


def choice(words: str, text: str, *names: str) -> Decorator:
    """One of a few words, which follow the option's name; the first is the default."""
    name, *choices = words.split()
    return click.option(
        name, *names, type=click.Choice(choices), default=choices[0], show_default=True, help=text
    )


def flag(words: str, text: str) -> Decorator:
    """What is asked for by its name alone, and further names of it."""
    return click.option(*words.split(), is_flag=True, help=text)


def apply(*options: Decorator) -> Decorator:
    """Several options as one decorator, shown in this order."""
    return lambda command: reduce(lambda done, option: option(done), reversed(options), command)


def number_or(
    word: str,
    meaning: Any,
    read: Callable[[str], Any],
    wanted: str,
    is_allowed: Callable[..., bool],
) -> Callable[[Any], Any]:
    """Reads a number, or one word that means something else."""

    def read_either(text: Any) -> Any:
        if str(text).lower() == word:
            return meaning
        try:
            number = read(text)
        except ValueError:
            raise click.BadParameter(f"{text!r} is neither a number nor {word!r}") from None
        if not is_allowed(number):
            raise click.BadParameter(f"{text} is not {wanted}, nor {word!r}")
        return number

    return read_either


def read_positive(text: str) -> float:
    """A number above 0, neither infinite nor NaN: click's own ranges let these through."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise click.BadParameter(f"{text} is not a number above 0")
    return number


LEVEL = number_or("auto", "auto", float, "a number between 0 and 1", lambda x: 0 < x < 1)
COST = number_or("balanced", "balanced", float, "a number above 0", lambda x: 0 < x < inf)
