"""Invariant Causal Set Covering Machines: short rules that hold in every environment."""

from importlib import import_module
from typing import Any

from icscm._version import __version__ as __version__

# The module of each public name. Modules are loaded on first use, so that `import icscm` and
# `icscm --help` are fast. Type checkers and editors read `__init__.pyi`.
_HOMES = {
    "SCMClassifier": "icscm.estimators",
    "ICSCMClassifier": "icscm.estimators",
    "InvariantCausalPrediction": "icscm.estimators.icp",
    "TreeCausalPrediction": "icscm.estimators.icp",
    "InvariantForestClassifier": "icscm.estimators.forest",
    "InvariantTreeClassifier": "icscm.estimators.tree",
    "InvariantScoreClassifier": "icscm.estimators.score",
    "InvariantFeatureSelector": "icscm.estimators.selector",
    "Conjunction": "icscm.model.forest",
    "Disjunction": "icscm.model.forest",
    "Tree": "icscm.model.tree",
    "Forest": "icscm.model.forest",
    "Score": "icscm.model.score",
    "load": "icscm.model.saved",
    "SavedModel": "icscm.model.saved",
    "check_environments": "icscm.studies.checkup",
    "evaluate": "icscm.studies.evaluation",
    "permutation_importance": "icscm.report.importances",
    "stability_selection": "icscm.studies.stability",
    "leave_one_environment_out": "icscm.studies.transfer",
    "tolerance_path": "icscm.studies.transfer",
    "choose_threshold": "icscm.studies.tuning",
    "compare": "icscm.studies.comparison",
    "show_progress": "icscm.progress",
    "datasets": "icscm.datasets",
}

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icscm' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if _HOMES[name] == f"icscm.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return __all__
