"""Invariant Causal Set Covering Machines: short rules that hold in every environment."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from icscm._version import __version__

# Where each public name lives. They are loaded when first used, so that `import icscm`
# takes no time and `icscm --help` answers at once.
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
    "evaluate": "icscm.studies.evaluation",
    "permutation_importance": "icscm.report.importances",
    "stability_selection": "icscm.studies.stability",
    "leave_one_environment_out": "icscm.studies.transfer",
    "tolerance_path": "icscm.studies.transfer",
    "choose_threshold": "icscm.studies.thresholds",
    "compare": "icscm.studies.comparison",
    "datasets": "icscm.datasets",
}

__all__ = [
    "Conjunction",
    "Disjunction",
    "Forest",
    "ICSCMClassifier",
    "InvariantCausalPrediction",
    "InvariantFeatureSelector",
    "InvariantForestClassifier",
    "InvariantScoreClassifier",
    "InvariantTreeClassifier",
    "SCMClassifier",
    "SavedModel",
    "Score",
    "Tree",
    "TreeCausalPrediction",
    "__version__",
    "choose_threshold",
    "compare",
    "datasets",
    "evaluate",
    "leave_one_environment_out",
    "load",
    "permutation_importance",
    "stability_selection",
    "tolerance_path",
]

if TYPE_CHECKING:
    from icscm import datasets
    from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
    from icscm.estimators.forest import InvariantForestClassifier
    from icscm.estimators.icp import InvariantCausalPrediction, TreeCausalPrediction
    from icscm.estimators.score import InvariantScoreClassifier
    from icscm.estimators.selector import InvariantFeatureSelector
    from icscm.estimators.tree import InvariantTreeClassifier
    from icscm.model.forest import Conjunction, Disjunction, Forest
    from icscm.model.saved import SavedModel, load
    from icscm.model.score import Score
    from icscm.model.tree import Tree
    from icscm.report.importances import permutation_importance
    from icscm.studies.comparison import compare
    from icscm.studies.evaluation import evaluate
    from icscm.studies.stability import stability_selection
    from icscm.studies.thresholds import choose_threshold
    from icscm.studies.transfer import leave_one_environment_out, tolerance_path


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icscm' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if _HOMES[name] == f"icscm.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return __all__
