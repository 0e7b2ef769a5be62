"""Clusters: a client, and whether its workers can do the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any

from icscm._version import __version__
from icscm.exceptions import IcscmError
from icscm.sources.dask.source import NO_PACKAGE, explain_failures, find_client

# Seconds to wait for a scheduler to answer.
PATIENCE = 10


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
    # resolve_name is Python's own: who lacks this package can still be asked
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
