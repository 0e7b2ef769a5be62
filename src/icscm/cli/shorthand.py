"""Options in a line or two each: what several commands declare alike."""

from __future__ import annotations

from typing import Any

import click

from icscm.cli.options import Decorator


def value(words: str, kind: Any, text: str, default: Any = None) -> Decorator:
    """An option's name and what it takes; without a default its help says what holds then."""
    name, metavar = words.split()
    is_shown = default is not None
    return click.option(
        name, type=kind, metavar=metavar, default=default, show_default=is_shown, help=text
    )


def number(name: str, default: int | None, text: str, least: int = 1) -> Decorator:
    """A whole number."""
    return value(f"{name} NUMBER", click.IntRange(least), text, default)


def choice(words: str, text: str, *names: str) -> Decorator:
    """One of a few words, which follow the option's name; the first is the default."""
    name, *choices = words.split()
    return click.option(
        name, *names, type=click.Choice(choices), default=choices[0], show_default=True, help=text
    )
