"""Immutable models: rules, trees (a rule set is a chain), forests, scores; model files.

Predicting needs no engine. May import `tables` and lower layers.
"""

from importlib import import_module
from typing import Any

# Loaded when first used, so that showing a model or `icscm --help` stays fast.
_HOMES = {
    "Forest": "icscm.model.forest",
    "SavedModel": "icscm.model.saved",
    "Score": "icscm.model.score",
    "Tree": "icscm.model.tree",
    "load": "icscm.model.saved",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'icscm.model' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
