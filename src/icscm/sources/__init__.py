"""Sources of counts by where samples are stored: memory, files, Dask, bits, sites.

Each is opened by one function that returns a `Countable`; estimators alone turn that into fitted
state. May import `stats`, `io`, `engine`, `model`, `tables` and the base modules. No source
imports another; shared code is in `countable`.
"""

from importlib import import_module
from typing import Any

# Loaded when first used: files need pyarrow, Dask is an extra.
_HOMES = {
    "Countable": "icscm.sources.countable",
    "BinningConfig": "icscm.sources.countable",
    "open_memory": "icscm.sources.memory",
    "open_files": "icscm.sources.files.opening",
    "open_dask": "icscm.sources.dask.opening",
    "open_bits": "icscm.sources.bits.opening",
    "open_genomes": "icscm.sources.bits.genomes",
    "open_sites": "icscm.sources.sites",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icscm.sources' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
