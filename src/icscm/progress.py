"""Progress of long loops, shown by the command line and by `show_progress`.

A loop that may take long is written `for item in track(items, n_items)`. It does not know whether
anybody looks: where a bar is shown (rich draws it), the outermost tracked loop moves it.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from icscm.formatting import escape_controls

Item = TypeVar("Item")
# A bar, as a loop sees it: called when the loop begins, with its number of items; it returns a
# function that the loop calls after each item.
_Listener = Callable[[int | None], Callable[[], None]]

# Prints a line above the bar that is shown; empty where none is.
_printers: list[Callable[[str], None]] = []
# The bar that the next loop reports to, if any; none while a loop does, or where nothing is shown.
_listeners: list[_Listener] = []


def track(items: Iterable[Item], n_items: int | None) -> Iterator[Item]:
    """Yield the items of a long loop, and report each that is done if a bar is shown.

    Only the outermost loop of several items reports: while it runs, those inside it find no bar.
    """
    if not _listeners or n_items == 1:
        yield from items
        return

    listener = _listeners.pop()  # so that loops inside this one do not report
    advance = listener(n_items)
    try:
        for item in items:
            yield item
            advance()
    finally:
        _listeners.append(listener)


def announce(text: str) -> None:
    """Print what a long computation has found so far above the bar, if one is shown.

    Inside a tracked loop, such as the folds of a validation, nothing is printed.
    """
    if _listeners:
        for print_line in _printers:
            print_line(text)


@contextmanager
def show_progress(text: str = "", total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show the progress of the fits, studies and reports inside the block.

    A line with the share that is done and the time left, on a terminal or in a notebook; elsewhere
    nothing is shown. A computation of several rounds, such as a screen, starts again in each round,
    and prints above the line what it has rejected.

    Parameters
    ----------
    text : str, optional
        The title of the line.
    total : int, optional
        The number of parts, if the block itself reports them: by calling the value of the context
        manager after each part, or with the number of parts that are done.

    Yields
    ------
    callable
        To be called after each of the `total` parts.

    Examples
    --------
    >>> from icscm import InvariantForestClassifier, show_progress
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(n_environments=3, random_state=1)
    >>> forest = InvariantForestClassifier(n_estimators=20, random_state=0)
    >>> with show_progress("Growing 20 trees"):
    ...     forest = forest.fit(data.X, data.y, environments=data.environments)
    """
    from rich.console import Console

    console = Console(stderr=True)
    has_viewer = sys.stderr.isatty() or console.is_jupyter
    if not has_viewer:
        yield _report_nothing
        return

    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(escape(escape_controls(text)), total=total)

        def listen(n_items: int | None) -> Callable[[], None]:
            bar.reset(task, total=n_items)
            return lambda: bar.advance(task)

        def report(n_done: int | None = None) -> None:
            if n_done is None:
                bar.update(task, advance=1)
            else:
                bar.update(task, completed=n_done)

        # Without a total, the next long loop reports; with one, the block does so itself.
        _listeners.clear()
        if total is None:
            _listeners.append(listen)
        _printers[:] = [
            lambda line: bar.console.print(escape_controls(line), markup=False, highlight=False)
        ]
        try:
            yield report
        finally:
            _listeners.clear()
            _printers.clear()


def _report_nothing(n_done: int | None = None) -> None:
    """Ignore a report, where no bar is shown."""
