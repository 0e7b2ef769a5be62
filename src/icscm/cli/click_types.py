"""Kinds of option values that click does not know, and options in a line or two each."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from icscm.exceptions import IcscmError
from icscm.parameters import Allowed, allow, get_spec
from icscm.writing import STDOUT

Decorator = Callable[[Any], Any]

# Existence is checked where the file is read: that error suggests similar names.
FILE = click.Path(path_type=Path)


class _Output(click.Path):
    """A file to write, or - for standard output."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return STDOUT if value == "-" else super().convert(value, param, ctx)


OUTPUT = _Output(path_type=Path)


class AllowedValue(click.ParamType):  # type: ignore[type-arg]
    """A value that a parameter may have."""

    name = "value"

    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.allowed.parse(value)
        except IcscmError as error:
            self.fail(str(error), param, ctx)

    def get_metavar(self, param: Any, ctx: Any = None) -> str:  # noqa: ARG002
        choices = [str(each).lower() for each in self.allowed.choices]
        kinds = ["NUMBER"] if self.allowed.ranges else []
        text = "|".join([*kinds, *choices])
        return text if self.allowed.ranges else f"[{text}]"


def parameter(name: str, *, text: str = "", owner: Any = None) -> Decorator:
    """The option of a learner's parameter, with its name, values and help; None if not given."""
    spec = get_spec(name, owner)
    assert spec.allowed is not None
    shown = f"{text or spec.help}  [default: {spec.default}]"
    return click.option(
        f"--{name.replace('_', '-')}", name, type=AllowedValue(spec.allowed), help=shown
    )


def value(words: str, text: str, kind: Any = str, default: Any = None, **more: Any) -> Decorator:
    """An option's name and what it takes; without a default its help says what holds then."""
    name, metavar = words.split()
    if default is not None:
        more |= {"default": default, "show_default": True}
    return click.option(name, metavar=metavar, type=kind, help=text, **more)


def number(
    words: str, default: float | None, text: str, allowed: str = "int [1, inf)"
) -> Decorator:
    """A number in a range."""
    name, metavar = [*words.split(), "NUMBER"][:2]
    return value(f"{name} {metavar}", text, AllowedValue(allow(allowed)), default)


def choice(words: str, text: str) -> Decorator:
    """One of a few words, which follow the option's name; the first is the default."""
    name, *choices = words.split()
    kind = click.Choice(choices)
    return click.option(name, type=kind, default=choices[0], show_default=True, help=text)


def flag(words: str, text: str) -> Decorator:
    """An option without a value, and further names of it."""
    return click.option(*words.split(), is_flag=True, help=text)


def apply(*options: Decorator) -> Decorator:
    """Several options as one decorator, shown in this order."""
    return lambda command: reduce(lambda done, option: option(done), reversed(options), command)


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the user set an option."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
