"""Data to learn from: simulated with known parents, and real from their publishers' files.

May import only the ground: parameters, writing, text, exceptions, constants.
"""

from icscm.datasets.catalogue import DatasetInfo, fetch, list_datasets
from icscm.datasets.hospitals import Hospitals, make_hospitals
from icscm.datasets.loaders import (
    RealData,
    load_acs_foodstamps,
    load_acs_income,
    load_assistments,
    load_college_scorecard,
    load_diabetes_readmission,
    load_heart_disease,
    load_meps,
    load_sachs,
)
from icscm.datasets.several import (
    load_diabetes_by_source,
    load_heart_by_hospital,
    load_income_by_state,
)
from icscm.datasets.simulated import Simulation, make_conjunction

__all__ = [
    "DatasetInfo",
    "Hospitals",
    "RealData",
    "Simulation",
    "fetch",
    "list_datasets",
    "load_acs_foodstamps",
    "load_acs_income",
    "load_assistments",
    "load_college_scorecard",
    "load_diabetes_by_source",
    "load_diabetes_readmission",
    "load_heart_by_hospital",
    "load_heart_disease",
    "load_income_by_state",
    "load_meps",
    "load_sachs",
    "make_conjunction",
    "make_hospitals",
]
