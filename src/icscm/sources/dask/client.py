"""Clusters: a client, the tasks that run on its workers, and what can go wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pkgutil import resolve_name
from typing import Any
from uuid import uuid4

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed

from icscm._version import __version__
from icscm.exceptions import IcscmError

Function = Callable[..., Any]

# Seconds to wait for a scheduler to answer.
PATIENCE = 10
# Results added up by one task: enough to keep the tree flat, few enough to hold at once.
FAN_IN = 8


class Tasks:
    """Makes the tasks of a fit; the dashboard groups them by their names."""

    def __init__(self) -> None:
        self._fit = uuid4().hex[:8]
        self._n_used = 0

    def map(self, what: str, function: Function, *columns: Sequence[Any]) -> list[Delayed]:
        """One task for each row of the columns, which calls `function` with its values.

        Common arguments are part of the function. As a task of their own they would attract all
        others, and their rows, to the worker that holds them.
        """
        self._n_used += 1
        name = f"icscm-{what}-{self._fit}{self._n_used:04x}"
        call = delayed(function, pure=False)
        rows = zip(*columns, strict=True)
        return [call(*row, dask_key_name=(name, i)) for i, row in enumerate(rows)]

    def merge(
        self, what: str, merge: Function, parts: list[Delayed], homes: list[str] | None = None
    ) -> Delayed:
        """Merge the results of many tasks into one, `FAN_IN` at a time, so that no task holds more.

        Neighbours with the same home (worker) are merged first, so that one result leaves a worker
        instead of many.
        """
        level = parts
        if homes is not None:
            pairs = groupby(zip(homes, parts, strict=True), key=itemgetter(0))
            level = [self.merge(what, merge, [part for _, part in pair]) for _, pair in pairs]
        while len(level) > 1:
            groups = [level[start : start + FAN_IN] for start in range(0, len(level), FAN_IN)]
            level = self.map(what, merge, groups)
        return level[0]


def persist(tasks: Sequence[Delayed]) -> list[Delayed]:
    """Start tasks whose results stay on the workers."""
    with explain_failures():
        return list(dask.persist(*tasks))


def compute(tasks: Sequence[Delayed]) -> list[Any]:
    """Run tasks and bring their results here."""
    with explain_failures():
        return list(dask.compute(*tasks))


NO_PACKAGE = (
    "the Dask scheduler or a worker cannot import icscm; install the same version on all of them"
)
# Messages for the errors of a cluster, by their names: they need no import then.
_CANCELLED = (
    "the Dask scheduler cancelled what was asked of it, or is gone; see whether it still runs, and "
    "fit again"
)
_FAILURES = {
    "KilledWorker": "workers died again and again over the same task, most likely for lack of "
    "memory; make the partitions smaller or give the workers more",
    "ClosedClientError": "the Dask client was closed in the middle of the work; see whether its "
    "scheduler still runs",
    "CommClosedError": "the connection to the Dask scheduler was lost; see whether it still runs",
    "FutureCancelledError": _CANCELLED,
    "CancelledError": _CANCELLED,
    "TimeoutError": "the Dask scheduler did not answer in time; see whether it still runs",
}


@contextmanager
def explain_failures() -> Iterator[None]:
    """Turn failures of the cluster, not of the data, into one clear error."""
    try:
        yield
    except IcscmError:
        raise
    except Exception as error:
        if isinstance(error, ImportError) and (error.name or "").split(".")[0] == "icscm":
            raise IcscmError(f"{NO_PACKAGE} ({error})") from error
        if type(error).__name__ not in _FAILURES:
            raise
        raise IcscmError(_FAILURES[type(error).__name__]) from error


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
        raise IcscmError(
            f"the Dask client is {client.status}; connect to a running scheduler, or close the "
            "client to use this machine alone"
        )
    # resolve_name is part of Python: it also runs where this package is not installed
    question = (resolve_name, "icscm:__version__")
    with explain_failures():
        found = {"scheduler": client.run_on_scheduler(*question)}
        found |= client.run(*question, on_error="return")
    for address, version in found.items():
        if isinstance(version, Exception):
            raise IcscmError(f"{NO_PACKAGE} ({address}: {version})") from version
        if version != __version__:
            raise IcscmError(
                f"icscm is {version} at the Dask {address}, and {__version__} here; install the "
                "same version everywhere"
            )


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
        raise IcscmError(
            "this needs dask.distributed; install it with: pip install 'icscm[dask]'"
        ) from None
    if address is None:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as local,
            Client(local) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise IcscmError(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler`, or check "
            f"the address ({error})"
        ) from error
    with client:
        yield client
