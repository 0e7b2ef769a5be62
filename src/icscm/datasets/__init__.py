"""Data sets: simulated with known parents, and real from their publishers' files.

May import only the lowest layers: parameters, writing, formatting, exceptions, constants.
"""

from typing import Any

from icscm.datasets.real import (
    DatasetInfo,
    RealData,
    fetch,
    list_datasets,
    load_diabetes_by_source,
    load_heart_by_hospital,
    load_income_by_state,
    load_sachs,
)
from icscm.datasets.simulated import Hospitals, Simulation, make_conjunction, make_hospitals

__all__ = [
    "DatasetInfo",
    "Hospitals",
    "RealData",
    "Simulation",
    "fetch",
    "list_datasets",
    "load_diabetes_by_source",
    "load_heart_by_hospital",
    "load_income_by_state",
    "load_sachs",
    "make_conjunction",
    "make_hospitals",
]


def __getattr__(name: str) -> Any:
    if name.startswith("load_"):
        raise ImportError(
            f"icscm.datasets has no {name}; the loaders of the paper's study are in the folder "
            "paper/ of the source repository"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
