"""What commands print: results on standard output, messages on standard error."""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from icscm.exceptions import (
    ContraryLeafWarning,
    FewEnvironmentsWarning,
    LeftOutWarning,
    NoEnvironmentsWarning,
    NothingFoundWarning,
    TooLittleDataWarning,
    UnstableModelWarning,
)
from icscm.formatting import as_text, clip, clip_message, count, escape_controls, shorten_list
from icscm.io.formats import MISSING_TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType

    from icscm.io.roles import Labelling


def spare_unprintable() -> None:
    """Let a console that cannot show a character show its code: no result is lost for a name."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_line(text: str) -> None:
    """One message on standard error: a single line, folded at words on a terminal only."""
    import click

    line = clip_message(escape_controls(" ".join(text.split())))
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, subsequent_indent="  ", break_on_hyphens=False)
    click.echo(line, err=True)


def make_console(*, stderr: bool = False) -> Console:
    """Standard output, unless told. Text is never read as markup unless it is ours."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, stderr=stderr)


def print_written(console: Console, path: Path, more: str = "") -> None:
    """Which file was written; its name stays on one line, to be copied.

    Of /dev/stdout and the like nothing is said: it would be part of what was written.
    """
    from icscm.writing import is_stream

    if is_stream(path):
        return
    console.print(f"Written: {escape_controls(str(path))}{more}", soft_wrap=True)


def print_all(console: Console, parts: Iterable[RenderableType]) -> None:
    """Several things, one below the other."""
    from icscm.report.terminal import MAX_TEXT

    for part in parts:
        console.print(clip(part, MAX_TEXT) if isinstance(part, str) else part)


class _Terminal(io.TextIOBase):
    """Standard output where a person reads it: data that could steer a terminal are escaped."""

    def write(self, text: str) -> int:
        return sys.stdout.write(escape_controls(text, keep="\n\t"))


def open_output() -> IO[str]:
    """Standard output for data: to a file or another program as they are, to a terminal escaped."""
    return cast("IO[str]", _Terminal()) if sys.stdout.isatty() else sys.stdout


def list_data_facts(
    name: str,
    samples: Labelling,
    *,
    n_rows: int,
    n_positive: int,
    n_columns: int,
    n_environments: int,
) -> list[tuple[str, str]]:
    """What a command was given: the lines that come first."""
    size = f"{count(n_rows, 'row')}, {count(n_columns, 'column')} to learn from"
    facts = [
        ("Data", f"{name}: {size}"),
        ("Positive", f"{samples.positive_text}, in {n_positive / n_rows:.1%} of the rows"),
    ]
    if samples.environment is not None:
        facts.append(("Environments", f"{n_environments:,}, by {samples.environment}"))
    if samples.n_dropped:
        dropped = count(samples.n_dropped, "row")
        facts.append(("Dropped", f"{dropped} without target or environment"))
    facts += _list_renamed(samples)
    if samples.misread:
        facts.append(("Missing", f"{_tell_misread(samples.misread)}"))
    return [(word, as_text(text)) for word, text in facts]


def _list_renamed(samples: Labelling) -> list[tuple[str, str]]:
    """Environments that were left out or merged."""
    by_name: dict[str | None, list[str]] = {}
    for old, new in samples.renamed.items():
        if old != new:
            by_name.setdefault(new, []).append(str(old))
    facts = []
    if None in by_name:
        rows = count(samples.n_excluded, "row")
        facts.append(("Excluded", f"{rows} of {shorten_list(by_name.pop(None))}"))
    merged = [f"{shorten_list(sorted(each))} as {name}" for name, each in by_name.items()]
    return [*facts, *([("Merged", "; ".join(merged))] if merged else [])]


def _tell_misread(misread: Mapping[tuple[str, str], int]) -> str:
    """Which texts were read as missing, and where."""
    by_text: dict[str, dict[str, int]] = {}
    for (column, text), n in misread.items():
        by_text.setdefault(text, {})[column] = n
    parts = []
    for text, cells in sorted(by_text.items(), key=lambda each: -sum(each[1].values())):
        where = next(iter(cells)) if len(cells) == 1 else f"{len(cells):,} columns"
        parts.append(f"{text!r} in {where} ({count(sum(cells.values()), 'cell')})")
    is_default = any(text in by_text for text in MISSING_TEXTS)
    how = "; --no-default-na keeps such texts" if is_default else ""
    return f"read as such: {shorten_list(parts)}{how}"


_SAID_BELOW = (
    ContraryLeafWarning,
    FewEnvironmentsWarning,
    LeftOutWarning,
    NoEnvironmentsWarning,
    NothingFoundWarning,
    TooLittleDataWarning,
    UnstableModelWarning,
)


@contextmanager
def said_below() -> Iterator[None]:
    """Without the warnings that are said in other words when the rule is printed."""
    with warnings.catch_warnings():
        for category in _SAID_BELOW:
            warnings.simplefilter("ignore", category)
        yield


class Progress:
    """Tells on standard error what is being done.

    On a terminal a line that moves while it lasts; otherwise one plain line each, or nothing
    when told to be quiet.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    @contextmanager
    def stage(self, text: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """While something is done; what it gives is to be called after each of `total` parts."""
        if self.quiet or not sys.stderr.isatty():
            if not self.quiet:
                print_line(f"{text} ...")
            yield lambda: None
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress as Bar
        from rich.text import Text

        console, line = Console(stderr=True), escape_controls(text)
        if total is None:
            with console.status(Text(f"{line} ...")):
                yield lambda: None
            return
        with Bar(console=console, transient=True) as bar:
            task = bar.add_task(escape(line), total=total)
            yield lambda: bar.advance(task)
