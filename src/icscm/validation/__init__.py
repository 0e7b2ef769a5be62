"""Studies of data and learners: check-up, grid search, comparison, leave-one-environment-out,
stability selection and evaluation on new rows. `folds` is their common core.

May import `estimators` and lower layers.
"""

from importlib import import_module
from typing import Any

# Loaded when first used, so that showing a model or `icscm --help` stays fast.
_HOMES = {
    "choose_threshold": "icscm.validation.tuning",
    "grid_search": "icscm.validation.tuning",
    "permutation_importance": "icscm.validation.importances",
    "alpha_path": "icscm.validation.path",
    "tolerance_path": "icscm.validation.path",
    "validate_screen": "icscm.validation.screening",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icscm.validation' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
