"""The paper's tables and figures, one module each; `icscm reproduce` runs them."""

from __future__ import annotations

from importlib import import_module

from icscm.experiments.base import Experiment

# In the order in which they are shown.
NAMES = (
    "identification",
    "dimensions",
    "runtime",
    "precision-recall",
    "alpha",
    "structures",
    "samples",
    "sharper",
    "real",
)


def find_experiment(name: str) -> Experiment:
    """The experiment of that name."""
    module = import_module(f"icscm.experiments.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment
