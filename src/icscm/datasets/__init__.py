"""Data sets: simulated with known causes, and real ones from their publishers' files.

`network` simulates the paper's Bayesian network and `hospitals` admissions at hospitals; `real`
loads tables with several environments each. Loaders that only the paper's study needs are not here.
"""

from typing import Any

from icscm.datasets.hospitals import Hospitals, make_hospitals
from icscm.datasets.network import Simulation, make_conjunction
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
