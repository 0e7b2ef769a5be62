"""Options in a line or two each: what several commands declare alike."""

from __future__ import annotations

from typing import Any

import click

from icscm.cli.options import Decorator


def value(name: str, kind: Any, metavar: str, text: str, default: Any = None) -> Decorator:
    """An option that takes a value; without a default its help says what holds then."""
    is_shown = default is not None
    return click.option(
        name, type=kind, metavar=metavar, default=default, show_default=is_shown, help=text
    )


def number(name: str, default: int | None, text: str, least: int = 1) -> Decorator:
    """A whole number."""
    return value(name, click.IntRange(least), "NUMBER", text, default)


def choice(name: str, words: str, text: str, *names: str) -> Decorator:
    """One of a few words, the first by default."""
    choices = words.split()
    return click.option(
        name, *names, type=click.Choice(choices), default=choices[0], show_default=True, help=text
    )
