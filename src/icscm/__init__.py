"""Invariant Causal Set Covering Machines: short rules that hold in every environment."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. They are loaded when first used, so that `import icscm`
# takes no time and `icscm --help` answers at once.
_HOMES = {
    "SCMClassifier": "icscm.estimators",
    "ICSCMClassifier": "icscm.estimators",
    "InvariantCausalPrediction": "icscm.icp",
    "Conjunction": "icscm.models",
    "Disjunction": "icscm.models",
    "load": "icscm.saved",
    "SavedModel": "icscm.saved",
    "stability_selection": "icscm.stability",
    "leave_one_environment_out": "icscm.transfer",
    "datasets": "icscm.datasets",
}

__all__ = [
    "Conjunction",
    "Disjunction",
    "ICSCMClassifier",
    "InvariantCausalPrediction",
    "SCMClassifier",
    "SavedModel",
    "datasets",
    "leave_one_environment_out",
    "load",
    "stability_selection",
]

if TYPE_CHECKING:
    from icscm import datasets
    from icscm.estimators import ICSCMClassifier, SCMClassifier
    from icscm.icp import InvariantCausalPrediction
    from icscm.models import Conjunction, Disjunction
    from icscm.saved import SavedModel, load
    from icscm.stability import stability_selection
    from icscm.transfer import leave_one_environment_out


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icscm' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if _HOMES[name] == f"icscm.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
