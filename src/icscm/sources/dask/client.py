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
from dataclasses import dataclass
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
from icscm._types import BoolArray, CountArray, FloatArray, IntArray
from icscm._version import __version__
from icscm.engine.counts import (
    BinnedRule,
    BinnedSplit,
    ClusterPatterns,
    CountCube,
    PatternTable,
    RulePath,
    SourceInfo,
)
from icscm.engine.patterns import add_patterns
from icscm.engine.pieces import Block, Piece, RowsOfPaths, make_cubes
from icscm.engine.stores import Rows
from icscm.exceptions import IcscmError
from icscm.sources.dask.clustering import (
    ClusterCounts,
    add_cluster_counts,
    count_covered_clusters,
    count_leaf_clusters,
    count_pattern_clusters,
    make_cluster_patterns,
    square_leaf_residuals,
)
from icscm.stats.design_effects import ClusterMoments, ClusterSums

# What a task calls, with whatever arguments it has.
Function = Callable[..., Any]

# Adds up a list of counts.
ADD_COUNTS = partial(reduce, np.add)
# Seconds to wait for a scheduler to answer.
PATIENCE = 10
# Results added up by one task: enough to keep the tree flat, few enough to hold at once.
FAN_IN = 8


def map_tasks(name: str, function: Function, *columns: Sequence[Any]) -> list[Delayed]:
    """Make tasks that call `function`, as `map` would: task i with item i of each of the columns.

    The dashboard groups tasks by their name. Arguments that all tasks share must be part of the
    function: as a task of their own they would attract all others, and their rows, to the worker
    that holds them.
    """
    group = f"icscm-{name}-{uuid4().hex}"
    call = delayed(function, pure=False)
    arguments_of_tasks = zip(*columns, strict=True)
    return [
        call(*arguments, dask_key_name=(group, number))
        for number, arguments in enumerate(arguments_of_tasks)
    ]


def merge_tasks(
    name: str, merge: Function, parts: list[Delayed], workers: list[str] | None = None
) -> Delayed:
    """Merge the results of many tasks into one, in a tree of tasks.

    Each merges `FAN_IN` results, so that none holds more at once. `workers` are those that hold the
    parts: neighbours on the same one are merged first, so that one result leaves it, not many.
    """
    results = parts
    if workers is not None:
        results = [merge_tasks(name, merge, local) for local in group_by_worker(parts, workers)]
    while len(results) > 1:
        batches = [results[start : start + FAN_IN] for start in range(0, len(results), FAN_IN)]
        results = map_tasks(name, merge, batches)
    return results[0]


def group_by_worker(parts: list[Delayed], workers: list[str]) -> list[list[Delayed]]:
    """Group neighbouring parts that are on the same worker."""
    runs = groupby(zip(workers, parts, strict=True), key=itemgetter(0))
    return [[part for _, part in run] for _, run in runs]


NO_PACKAGE = "the Dask scheduler or a worker cannot import icscm; install the same version on all"
_CANCELLED = "the Dask scheduler cancelled the work or stopped; check that it is running"
# What to say of an error of the cluster, by the error's name: its class may not be installed.
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
        if isinstance(error, ImportError) and is_part_of_icscm(error.name):
            raise IcscmError(f"{NO_PACKAGE} ({error})") from error
        name = type(error).__name__
        if name not in _FAILURES:
            raise
        raise IcscmError(_FAILURES[name]) from error


def is_part_of_icscm(module: str | None) -> bool:
    """Return whether a module, as an error names it, belongs to this package."""
    return (module or "").split(".")[0] == "icscm"


@explain_failures()
def persist(tasks: Sequence[Delayed]) -> list[Delayed]:
    """Start tasks whose results stay on the workers."""
    return list(dask.persist(*tasks))


@explain_failures()
def compute(tasks: Sequence[Delayed]) -> list[Any]:
    """Run tasks and bring their results here."""
    return list(dask.compute(*tasks))


def find_client() -> Any:
    """Find the client that tasks would run on; None where Dask's local scheduler runs them.

    Dask's schedulers are functions, and that of a cluster is a method of its client.
    """
    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "who_has") else None


def check_cluster() -> None:
    """Raise if there is a client and its scheduler is gone, or workers lack this package."""
    client = find_client()
    if client is None:
        return
    if client.status != "running":
        raise IcscmError(f"the Dask client is {client.status}; connect to a running scheduler")

    # Ask all for their version. resolve_name is part of Python, so it runs without this package.
    name_of_version = "icscm:__version__"
    with explain_failures():
        versions = {"scheduler": client.run_on_scheduler(resolve_name, name_of_version)}
        versions |= client.run(resolve_name, name_of_version, on_error="return")

    for address, version in versions.items():
        if isinstance(version, Exception):
            raise IcscmError(f"{NO_PACKAGE} ({address}: {version})") from version
        if version != __version__:
            raise IcscmError(
                f"icscm is {version} at the Dask {address}, and {__version__} here; "
                "install the same version everywhere"
            )


@contextmanager
def open_client(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Open a client of the scheduler at an address, or of some workers on this machine.

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

    if address is None:
        started = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
    else:
        started = nullcontext(address)
    with started as cluster:
        try:
            client = Client(cluster, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            message = f"no Dask scheduler answers at {address}; check the address ({error})"
            raise IcscmError(message) from error
        with client:
            yield client


@dataclass(frozen=True)
class PartitionedClusters:
    """The clusters of the rows of each piece, which stay on the workers, and their numbers.

    `codes` has for each piece a task that yields the cluster of each of its sorted rows. Those of
    environment e are numbered from `starts[e]` on.
    """

    codes: Sequence[Delayed]
    starts: IntArray


class DaskSource:
    """Counts rows in pieces that live on workers.

    Every question is a function of a piece, which runs where the piece is, and a way to merge the
    answers of all pieces; see `_merge_answers`. Counts are added up, for example.

    Parameters
    ----------
    pieces : list of Delayed
        Pieces made by `make_piece` with these `blocks`. They stay on the workers as long as this
        source lives.
    blocks : sequence of Block
        The columns in the order, and in the blocks, in which they are counted.
    info : SourceInfo
        What the counts are counts of.
    clusters : PartitionedClusters or None
        Rows that belong together; None if each row stands for itself.
    """

    rows = None
    shortlister = None

    def __init__(
        self,
        pieces: list[Delayed],
        blocks: Sequence[Block],
        info: SourceInfo,
        clusters: PartitionedClusters | None = None,
    ) -> None:
        self.columns = info.columns
        self.classes = info.classes
        self.environments = info.environments
        self.notes = info.notes
        self._blocks = blocks

        # Pieces on the same worker should be neighbours. Where they are is known only once they are
        # computed, which counting their rows waits for; until then, no worker has a name.
        self._pieces = persist(pieces)
        self._workers = [""] * len(pieces)
        self._totals: CountArray = self._add_answers(count_all_rows)
        located = sort_by_worker(self._pieces)
        self._pieces = located.pieces
        self._workers = located.workers
        self.clusters: DaskClusters | None = None
        if clusters is not None:
            codes = persist([clusters.codes[number] for number in located.order])
            self.clusters = DaskClusters(self, codes, clusters.starts)

        all_rows = persist(map_tasks("rows", get_rows, self._pieces))
        self._rows_of_paths = RowsOfPaths(all_rows, self._split)

    def count_rows(self, path: RulePath = ()) -> CountArray:
        """Count the rows of a path by (outcome, environment)."""
        if not path:
            return self._totals.copy()
        return self._add_answers(Piece.count_rows, self._rows_of_paths.find(path))

    def count_cubes(self, path: RulePath = ()) -> Iterator[CountCube]:
        """Count the rows of a path by (column, bin, outcome, environment)."""
        rows = self._rows_of_paths.find(path)
        return make_cubes(self._blocks, self._count_blocks(rows))

    def count_patterns(self, rules: Sequence[BinnedRule]) -> PatternTable:
        """Count all rows by the truth of each rule."""
        merged = self._merge_answers(
            "pattern",
            partial(Piece.count_patterns, rules=list(rules)),
            merge=add_patterns,
            merge_name="sum",
        )
        table: PatternTable = compute([merged])[0]
        return table

    def find_same_coverage(
        self, path: RulePath, rule: BinnedRule, others: Sequence[BinnedRule]
    ) -> BoolArray:
        """Find which of the other rules cover exactly the rows of a path that `rule` covers."""
        merged = self._merge_answers(
            "compare",
            partial(Piece.find_same_coverage, rule=rule, others=list(others)),
            self._rows_of_paths.find(path),
            merge=np.logical_and.reduce,
            merge_name="all",
        )
        return np.asarray(compute([merged])[0])

    def count_clusters(
        self, name: str, count: Function, codes: list[Delayed], path: RulePath | None = None
    ) -> ClusterCounts:
        """Let a function count the clusters of every piece, of a path's rows if one is given.

        `codes` are the clusters of each piece's rows.
        """
        rows = [] if path is None else [self._rows_of_paths.find(path)]
        merged = self._merge_answers(
            name, count, codes, *rows, merge=add_cluster_counts, merge_name="sum"
        )
        counted: ClusterCounts = compute([merged])[0]
        return counted

    def _split(self, rows: list[Delayed], rule: BinnedRule) -> tuple[list[Delayed], list[Delayed]]:
        """Split the rows of each piece: those of which a rule is true, and the others.

        Dask keeps the graph of how rows came about for as long as it may need it.
        """
        splits = map_tasks("split", partial(Piece.split, rule=rule), self._pieces, rows)
        true_rows = map_tasks("true", itemgetter(0), splits)
        false_rows = map_tasks("false", itemgetter(1), splits)

        persisted = persist([*true_rows, *false_rows])  # in one go, or pieces would be split twice
        n_pieces = len(rows)
        return persisted[:n_pieces], persisted[n_pieces:]

    def _count_blocks(self, rows: list[Delayed]) -> Iterator[CountArray]:
        """Count the cube of each block over all pieces: all blocks at once if they are small."""
        blocks = range(len(self._blocks))
        if self._is_cube_small():
            yield from compute([self._make_cube_task(block, rows) for block in blocks])
            return
        for block in blocks:
            yield from compute([self._make_cube_task(block, rows)])

    def _make_cube_task(self, block: int, rows: list[Delayed]) -> Delayed:
        """Make a task that counts the cube of a block over all pieces."""
        return self._merge_answers(
            "count",
            partial(Piece.count_block, block=block),
            rows,
            merge=ADD_COUNTS,
            merge_name="sum",
        )

    def _is_cube_small(self) -> bool:
        """Return whether the counts of all blocks together may be held at once."""
        n_cells = sum(block.count_cells(len(self.environments)) for block in self._blocks)
        return n_cells * np.dtype(COUNT_DTYPE).itemsize <= MAX_KEPT_CUBE_BYTES

    def _add_answers(self, count: Function, *arguments: list[Delayed]) -> CountArray:
        """Let a function count every piece, and add up the counts by (outcome, environment)."""
        total = self._merge_answers("total", count, *arguments, merge=ADD_COUNTS, merge_name="sum")
        counts: CountArray = compute([total])[0]
        return counts

    def _merge_answers(
        self,
        name: str,
        ask: Function,
        *arguments: list[Delayed],
        merge: Function,
        merge_name: str,
    ) -> Delayed:
        """Make a task that asks every piece, and merges the answers.

        `arguments` hold a value for each piece, with which `ask` is called besides the piece.
        """
        answers = map_tasks(name, ask, self._pieces, *arguments)
        return merge_tasks(merge_name, merge, answers, self._workers)


class DaskClusters:
    """Counts rows that belong together; see `icscm.engine.counts.ClusterCounter`.

    A cluster may have rows in several pieces: pieces count, and what follows from the sums of their
    counts is computed here (`icscm.sources.dask.clustering`).
    """

    unit = 1.0

    def __init__(self, source: DaskSource, codes: list[Delayed], starts: IntArray) -> None:
        self._source = source
        self._codes = codes
        self._starts = starts
        self._n_clusters = int(starts[-1])

    def count_moments(self, path: RulePath, rules: Sequence[BinnedRule]) -> ClusterMoments:
        """Count the moments (rule, environment) of what each rule covers of a path's rows."""
        count = partial(count_covered_clusters, rules=list(rules), n_clusters=self._n_clusters)
        counted = self._source.count_clusters("cover", count, self._codes, path)
        covered = make_cluster_patterns(counted, self._starts)
        return covered.count_moments(np.arange(len(rules)), len(rules))

    def count_patterns(self, rules: Sequence[BinnedRule]) -> ClusterPatterns:
        """Count all rows by cluster and the truth of each rule."""
        count = partial(
            count_pattern_clusters,
            rules=list(rules),
            patterns=self._source.count_patterns(rules).patterns,
            n_clusters=self._n_clusters,
        )
        counted = self._source.count_clusters("pattern", count, self._codes)
        return make_cluster_patterns(counted, self._starts)

    def count_leaf_moments(self, splits: Sequence[BinnedSplit]) -> ClusterMoments:
        """Count the moments (leaf, environment) of all rows in the leaves of a tree."""
        n_leaves = len(splits) + 1
        return self._count_leaves(splits).count_moments(np.arange(n_leaves), n_leaves)

    def square_residuals(self, splits: Sequence[BinnedSplit], p: FloatArray) -> ClusterSums:
        """Square the clusters' sums of outcome - p, with p (leaf, environment), and count them."""
        return square_leaf_residuals(self._count_leaves(splits), p)

    def _count_leaves(self, splits: Sequence[BinnedSplit]) -> ClusterPatterns:
        """Count all rows by leaf and cluster."""
        count = partial(count_leaf_clusters, splits=list(splits), n_clusters=self._n_clusters)
        counted = self._source.count_clusters("leaf", count, self._codes)
        return make_cluster_patterns(counted, self._starts)


def get_rows(piece: Piece) -> Rows:
    """Return all rows of a piece."""
    return piece.rows


def count_all_rows(piece: Piece) -> CountArray:
    """Count all rows of a piece by (outcome, environment)."""
    return piece.count_rows(piece.rows)


@dataclass(frozen=True)
class LocatedPieces:
    """Pieces, and the address of the worker that holds each of them, "" without a cluster.

    `order` has the number that each piece had before they were sorted.
    """

    pieces: list[Delayed]
    workers: list[str]
    order: Sequence[int]


def sort_by_worker(pieces: list[Delayed]) -> LocatedPieces:
    """Sort pieces by the worker that holds them, so that those of a worker are neighbours.

    Then `merge_tasks` moves one cube per worker, not per piece. The order of the pieces does not
    affect results.
    """
    client = find_client()
    if client is None:
        return LocatedPieces(pieces, workers=[""] * len(pieces), order=range(len(pieces)))

    futures = [future for piece in pieces for future in client.futures_of(piece)]
    holders = client.who_has(futures)
    # a piece may be on several workers, of which any will do, or on none any more
    worker_of_piece = [min(holders.get(piece.key, ()), default="") for piece in pieces]
    order = sorted(range(len(pieces)), key=lambda number: worker_of_piece[number])
    return LocatedPieces(
        pieces=[pieces[number] for number in order],
        workers=[worker_of_piece[number] for number in order],
        order=order,
    )
