"""A learner at environments left out, and on other rows than it was learned from.

`cohort`, `folds` and `fitting` are the core: rows, which of them to learn from, and fitting and
scoring. `scores`, `curves` and `pooling` measure: metrics, curves of probabilities, and means over
environments. Each study is a module: evaluation, leave-one-environment-out, comparison, paths,
tuning, stability, importances, validation of a screen, and a check-up before anything is learned.
Nothing here searches or draws: learners do the one, and reports show the records that studies
return.
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
