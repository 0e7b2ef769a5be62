"""What commands print: results on standard output, messages on standard error."""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import click

from icscm.exceptions import ShownWarning
from icscm.formatting import clip_message, escape_controls
from icscm.io.formats import MISSING_TEXTS, NONE
from icscm.io.locating import name_data
from icscm.io.roles import Roles
from icscm.progress import show_progress
from icscm.report.wording.facts import Fact
from icscm.writing import is_stream

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from icscm.report.blocks import Document


def print_line(text: str) -> None:
    """One message on standard error: a single line, folded at words on a terminal only."""
    unbroken = " ".join(text.split())
    line = clip_message(escape_controls(unbroken))
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    click.echo(line, err=True)


def is_json() -> bool:
    """Whether --json is given: only the value returned by the command is printed."""
    return bool(click.get_current_context().meta.get("json"))


def make_console(*, stderr: bool = False) -> Console:
    """A console for standard output or standard error, which never reads text as markup."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, stderr=stderr, quiet=is_json())


def print_written(*paths: Path | None, more: str = "") -> None:
    """Print which files were written, unless quiet, each name unbroken so that it can be copied."""
    context = click.get_current_context()
    for path in paths:
        if path is None or is_stream(path):
            continue
        context.meta.setdefault("written", []).append(str(path))
        if not context.params.get("quiet"):
            click.echo(f"Written: {escape_controls(str(path))}{more}", err=True)


def print_document(console: Console, document: Document) -> None:
    """Print a document of the reports."""
    from icscm.report.terminal import render_blocks

    print_all(console, render_blocks(document))


def print_all(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print the parts one below the other."""
    from icscm.report.terminal import print_parts

    print_parts(console, parts)


class _Terminal(io.TextIOBase):
    """Standard output on a terminal: control characters in data are escaped."""

    def write(self, text: str) -> int:
        return sys.stdout.write(escape_controls(text, keep="\n\t"))


def open_output() -> IO[str]:
    """Standard output for data: unchanged to a file or pipe, escaped to a terminal."""
    return cast("IO[str]", _Terminal()) if sys.stdout.isatty() else sys.stdout


def list_data_facts(
    data: Path,
    labels: Roles,
    *,
    n_rows: int,
    n_columns: int,
    n_environments: int,
    n_positive: int | None = None,
    outcome: Sequence[Fact] = (),
) -> list[Fact]:
    """The first lines that a command prints: its data, as terms and texts.

    `n_rows` are those that are used: rows of excluded environments are counted by `labels`. An
    outcome of two classes is described by its positive rows, another one by facts of its own.
    """
    from icscm.report.wording import data as wording

    # The old names of environments by the new one, where it is another; None means excluded.
    old_names_by_new: dict[str | None, list[str]] = {}
    for old_name, new_name in labels.renamed.items():
        if old_name != new_name:
            old_names_by_new.setdefault(new_name, []).append(str(old_name))
    excluded = old_names_by_new.pop(None, [])
    merged = old_names_by_new
    if n_positive is not None:
        positive = labels.positive_text
        outcome = wording.describe_positive(positive, n_positive=n_positive, n_rows=n_rows)

    return [
        *wording.describe_table(name_data(data), n_rows=n_rows, n_columns=n_columns),
        *outcome,
        *wording.describe_environments(labels.environment, n_environments),
        *wording.describe_groups(labels.group),
        *wording.describe_weights(labels.weight),
        *wording.describe_dropped_rows(labels.n_dropped),
        *wording.describe_excluded_environments(labels.n_excluded, excluded),
        *wording.describe_merged_environments(merged),
        *_list_missing_texts(labels),
    ]


def _list_missing_texts(labels: Roles) -> list[Fact]:
    """A line on texts that were read as missing, the most frequent first, if there are any."""
    from icscm.report.wording import data as wording

    cells_by_column: dict[str, dict[str, int]] = {}
    for (column, text), n_cells in labels.misread.items():
        cells_by_column.setdefault(text, {})[column] = n_cells
    columns_with_empty_cells = cells_by_column.pop("", {})
    columns_with_none = cells_by_column.get(NONE, {})

    def count_cells(text: str) -> int:
        return sum(cells_by_column[text].values())

    texts = sorted(cells_by_column, key=count_cells, reverse=True)
    return wording.describe_missing_texts(
        [(text, cells_by_column[text]) for text in texts],
        has_defaults=any(text in cells_by_column for text in MISSING_TEXTS),
        doubtful=[column for column in columns_with_none if column in columns_with_empty_cells],
    )


@contextmanager
def hide_repeated_warnings() -> Iterator[None]:
    """Hide warnings whose content is printed with the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShownWarning)
        yield


class Progress:
    """Shows a progress bar on standard error, on a terminal only."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    @contextmanager
    def stage(self, text: str, total: int | None = None) -> Iterator[Callable[..., None]]:
        """Show the progress of the block; its value may be called after each of `total` parts.

        It may be passed how much is done, as of bytes. Loops that are tracked report by themselves.
        """
        if self.quiet or not sys.stderr.isatty():
            yield lambda _=None: None
            return
        with show_progress(text, total) as advance:
            yield advance
