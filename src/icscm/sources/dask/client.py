"""Clusters: a client, the tasks that run on its workers, and the source of rows over them.

    client                    workers
    rule            ------>   every piece: of which rows it is true          icscm-split
                              every piece: count them                        icscm-count
    one cube        <------   sum, eight at a time, those of a worker first  icscm-sum

Rules are sent out and counts come back; rows stay where they are. The rows of a path are derived
from a piece and the rules, each rule a task of its own, so that Dask can recompute what a lost
worker held. Without a client the same tasks run on Dask's local scheduler.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from pkgutil import resolve_name
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed

from icscm._constants import COUNT_DTYPE, MAX_KEPT_CUBE_BYTES
from icscm._types import BoolArray, CountArray
from icscm._version import __version__
from icscm.engine.counts import (
    BinnedRule,
    CountCube,
    PatternTable,
    RulePath,
    SourceInfo,
)
from icscm.engine.patterns import add_patterns
from icscm.engine.pieces import Block, Piece, RowsOfPaths, make_cubes
from icscm.engine.stores import Rows
from icscm.exceptions import IcscmError

Function = Callable[..., Any]

# The sum of a list of counts.
ADD_COUNTS = partial(reduce, np.add)
# Seconds to wait for a scheduler to answer.
PATIENCE = 10
# Results added up by one task: enough to keep the tree flat, few enough to hold at once.
FAN_IN = 8


def map_tasks(what: str, function: Function, *columns: Sequence[Any]) -> list[Delayed]:
    """One task for each row of the columns, which calls `function` with its values.

    The dashboard groups tasks by name. Common arguments are part of the function: as a separate
    task they would attract all others, and their rows, to the worker that holds them.
    """
    name, call = f"icscm-{what}-{uuid4().hex}", delayed(function, pure=False)
    rows = zip(*columns, strict=True)
    return [call(*row, dask_key_name=(name, i)) for i, row in enumerate(rows)]


def merge_tasks(
    what: str, merge: Function, parts: list[Delayed], homes: list[str] | None = None
) -> Delayed:
    """Merge the results of many tasks into one, `FAN_IN` at a time, so that no task holds more.

    Neighbours with the same home (worker) are merged first, so that one result leaves a worker
    instead of many.
    """
    level = parts
    if homes is not None:
        pairs = groupby(zip(homes, parts, strict=True), key=itemgetter(0))
        level = [merge_tasks(what, merge, [part for _, part in pair]) for _, pair in pairs]
    while len(level) > 1:
        groups = [level[start : start + FAN_IN] for start in range(0, len(level), FAN_IN)]
        level = map_tasks(what, merge, groups)
    return level[0]


NO_PACKAGE = "the Dask scheduler or a worker cannot import icscm; install the same version on all"
# Messages for cluster errors by name of the error, which avoids importing it.
_CANCELLED = "the Dask scheduler cancelled the work or stopped; check that it is running"
_FAILURES = {
    "KilledWorker": "workers failed repeatedly on the same task; make the partitions smaller",
    "ClosedClientError": "the Dask client was closed; check that its scheduler is running",
    "CommClosedError": "the connection to the Dask scheduler was lost; check that it is running",
    "FutureCancelledError": _CANCELLED,
    "CancelledError": _CANCELLED,
    "TimeoutError": "the Dask scheduler did not answer in time; check that it is running",
}


@contextmanager
def explain_failures() -> Iterator[None]:
    """Turn failures of the cluster, but not of the data, into one clear error."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ImportError) and (error.name or "").split(".")[0] == "icscm":
            raise IcscmError(f"{NO_PACKAGE} ({error})") from error
        if type(error).__name__ not in _FAILURES:
            raise
        raise IcscmError(_FAILURES[type(error).__name__]) from error


@explain_failures()
def persist(tasks: Sequence[Delayed]) -> list[Delayed]:
    """Start tasks whose results stay on the workers."""
    return list(dask.persist(*tasks))


@explain_failures()
def compute(tasks: Sequence[Delayed]) -> list[Any]:
    """Run tasks and bring their results here."""
    return list(dask.compute(*tasks))


def find_client() -> Any:
    """The client that tasks would run on; None where Dask's local scheduler would run them."""
    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "who_has") else None


def check_cluster() -> None:
    """Raise if there is a client and its scheduler is gone, or workers lack this package."""
    client = find_client()
    if client is None:
        return
    if client.status != "running":
        raise IcscmError(f"the Dask client is {client.status}; connect to a running scheduler")
    # resolve_name is part of Python: it also runs where this package is not installed
    question = (resolve_name, "icscm:__version__")
    with explain_failures():
        found = {"scheduler": client.run_on_scheduler(*question)}
        found |= client.run(*question, on_error="return")
    for address, version in found.items():
        if isinstance(version, Exception):
            raise IcscmError(f"{NO_PACKAGE} ({address}: {version})") from version
        if version != __version__:
            where = f"{version} at the Dask {address}, and {__version__} here"
            raise IcscmError(f"icscm is {where}; install the same version everywhere")


@contextmanager
def open_client(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of some workers on this machine.

    It is the current client until the end of the `with` block.

    Parameters
    ----------
    address : str, optional
        The scheduler's address.
    workers : int, optional
        The number of workers on this machine, where no address is given.

    Yields
    ------
    distributed.Client
        The client.

    Raises
    ------
    IcscmError
        If dask.distributed is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise IcscmError("this needs dask.distributed: pip install 'icscm[dask]'") from None
    local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**local) if address is None else nullcontext(address) as cluster:
        try:
            client = Client(cluster, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            what = f"no Dask scheduler answers at {address}; check the address ({error})"
            raise IcscmError(what) from error
        with client:
            yield client


class DaskSource:
    """Counts rows in pieces that live on workers.

    Parameters
    ----------
    pieces : list of Delayed
        Pieces made by `make_piece` with these `blocks`. They stay on the workers as long as this
        source lives.
    blocks : sequence of Block
        The columns in the order, and in the blocks, in which they are counted.
    info : SourceInfo
        What the counts are counts of.
    """

    clusters = None
    rows = None
    shortlister = None

    def __init__(self, pieces: list[Delayed], blocks: Sequence[Block], info: SourceInfo) -> None:
        self.columns = info.columns
        self.classes = info.classes
        self.environments = info.environments
        self.notes = info.notes
        self._blocks = blocks
        self._pieces, self._homes = persist(pieces), [""] * len(pieces)
        self._totals: CountArray = self._ask("sum", ADD_COUNTS, "total", count_all_rows)
        self._pieces, self._homes = order_by_worker(self._pieces)
        all_rows = persist(map_tasks("rows", get_rows, self._pieces))
        self._rows_of_paths = RowsOfPaths(all_rows, self._split)

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment)."""
        if not path:
            return self._totals.copy()
        counts: CountArray = self._ask(
            "sum", ADD_COUNTS, "total", Piece.count_rows, self._rows_of_paths.find(path)
        )
        return counts

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment)."""
        return make_cubes(
            self._blocks, self._count(Piece.count_block, self._rows_of_paths.find(path))
        )

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """Count all rows by the truth of each rule."""
        count = partial(Piece.count_patterns, rules=list(rules))
        table: PatternTable = self._ask("sum", add_patterns, "pattern", count)
        return table

    def find_same_coverage(
        self, path: RulePath, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Find which of the other rules cover exactly the rows of a path that `rule` covers."""
        compare = partial(Piece.find_same_coverage, rule=rule, others=list(others))
        rows = self._rows_of_paths.find(path)
        return np.asarray(self._ask("all", np.logical_and.reduce, "compare", compare, rows))

    def _split(self, rows: list[Delayed], rule: BinnedRule) -> tuple[list[Delayed], list[Delayed]]:
        """Split rows on the workers: those of which a rule is true, and the others.

        Dask keeps the graph of how rows came about for as long as it may need it.
        """
        halves = map_tasks("split", partial(Piece.split, rule=rule), self._pieces, rows)
        true_rows = map_tasks("true", itemgetter(0), halves)
        false_rows = map_tasks("false", itemgetter(1), halves)
        persisted = persist([*true_rows, *false_rows])
        return persisted[: len(rows)], persisted[len(rows) :]

    def _is_cube_small(self) -> bool:
        n_cells = sum(block.count_cells(len(self.environments)) for block in self._blocks)
        return n_cells * np.dtype(COUNT_DTYPE).itemsize <= MAX_KEPT_CUBE_BYTES

    def _count(self, function: Function, *columns: list[Delayed]) -> Iterator[CountArray]:
        """The cube of each block, over all pieces; all at once if they are small."""
        numbers, count = range(len(self._blocks)), partial(self._merge, "sum", ADD_COUNTS, "count")
        for some in [numbers] if self._is_cube_small() else [[number] for number in numbers]:
            yield from compute([count(partial(function, block=n), *columns) for n in some])

    def _ask(self, *query: Any) -> Any:
        """The result of `_merge`."""
        return compute([self._merge(*query)])[0]

    def _merge(
        self, how: str, merge: Function, what: str, function: Function, *columns: list[Delayed]
    ) -> Delayed:
        """A task that calls a function on every piece, and merges the results."""
        answers = map_tasks(what, function, self._pieces, *columns)
        return merge_tasks(how, merge, answers, self._homes)


def get_rows(piece: Piece) -> Rows:
    """All rows of a piece."""
    return piece.rows


def count_all_rows(piece: Piece) -> CountArray:
    """Count all rows of a piece by (outcome, environment)."""
    return piece.count_rows(piece.rows)


def order_by_worker(pieces: list[Delayed]) -> tuple[list[Delayed], list[str]]:
    """The pieces sorted by worker, and the worker of each, or "" without a cluster.

    Each step then moves one cube per worker, not per piece. The order of the pieces does not affect
    results.
    """
    client = find_client()
    if client is None:
        return pieces, [""] * len(pieces)
    holders = client.who_has([future for piece in pieces for future in client.futures_of(piece)])
    homes = [min(holders.get(piece.key, ()), default="") for piece in pieces]
    order = sorted(range(len(pieces)), key=homes.__getitem__)
    return [pieces[i] for i in order], [homes[i] for i in order]
