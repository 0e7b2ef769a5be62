"""Where `icscm fit` learns: in memory, in passes over files, on Dask, or from bits.

Not every option goes with every route. One that does not is an error that says what to use instead.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from icscm.cli.files import check_labels, is_genomes
from icscm.cli.options import Options
from icscm.exceptions import IcscmError, Parameter
from icscm.io.locating import PACKED_ENDINGS


class Route(StrEnum):
    """Where the rows are while a model is learned."""

    MEMORY = "memory"
    PASSES = "passes"
    DASK = "dask"
    PACKED = "packed"


_SMALLER_TABLE = "prepare the files, or raise --max-memory"
_ALL_GENES = "a store is used with all its genes; take genes out of the table before it is packed"
_NO_CATEGORIES = "a gene is present or absent"
_IN_ONE_PROCESS = "a store of bits is small and is read in this process; omit --dask and --workers"

_NO_WEIGHTS = "weights are for tables in memory; omit it, or repeat rows in the files"

# What to do instead of the options that do not go with a route.
_INSTEAD = {
    Route.MEMORY: {},
    Route.PASSES: {"cv": _SMALLER_TABLE, "stability": _SMALLER_TABLE, "weight": _SMALLER_TABLE},
    Route.DASK: {
        "cv": _SMALLER_TABLE,
        "stability": _SMALLER_TABLE,
        "member": _SMALLER_TABLE,
        "weight": _NO_WEIGHTS,
    },
    Route.PACKED: {
        "weight": _NO_WEIGHTS,
        "only": _ALL_GENES,
        "drop": _ALL_GENES,
        "categories": _NO_CATEGORIES,
        "member": "name a .bits or .Rtab file",
        "dask": _IN_ONE_PROCESS,
        "workers": _IN_ONE_PROCESS,
    },
}
_MANNERS = {Route.PASSES: "in passes", Route.DASK: "on Dask", Route.PACKED: "as bits"}

# While it is read and binned, a table takes several times the size of its file, compressed or not.
_ROOM = 4
_PACKED_ROOM = 12
# Bytes that the libraries take, and that any table may take besides.
_LIBRARY_BYTES = 400 * 10**6
_SMALL_TABLE_BYTES = 2**25


def choose_route(data: Path, options: Options) -> Route:
    """Choose where to learn, by the data and the options; raise for options that conflict."""
    route = _find_route(data, options)
    check_labels(data, options["labels"])
    for name, advice in _INSTEAD[route].items():
        if options.get(name):
            why = f" does not go with {data}, which is learned from {_MANNERS[route]}: {advice}"
            raise IcscmError(Parameter(name), why)
    if options.get("weight") is not None and options["stability"]:
        raise IcscmError(
            "--stability does not go with --weight, since a subsample counts each row once; omit "
            "one of them"
        )
    if route == Route.DASK and options["model"] == "forest":
        why = "--model forest draws rows, which is not possible on Dask"
        raise IcscmError(f"{why}; use --model tree, or omit --dask and --workers")
    return route


def _find_route(data: Path, options: Options) -> Route:
    """The route, by the kind and the size of the data."""
    from icscm.sources.files.source import parse_size

    if is_genomes(data):
        return Route.PACKED
    if options["dask"] is not None or options["workers"] is not None:
        return Route.DASK
    if data.is_dir():
        return Route.PASSES
    if not data.is_file() or data.suffix.lower() == ".zip":
        return Route.MEMORY
    is_compressed = data.suffix.lower() in PACKED_ENDINGS
    table_bytes = data.stat().st_size * (_PACKED_ROOM if is_compressed else _ROOM)
    limit = parse_size(options["max_memory"])
    free_bytes = max(limit - _LIBRARY_BYTES, min(limit, _SMALL_TABLE_BYTES))
    return Route.PASSES if table_bytes > free_bytes else Route.MEMORY
