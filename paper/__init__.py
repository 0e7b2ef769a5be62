"""The paper's tables and figures, one module each; `python -m paper all` reproduces them.

Not part of the package `icscm`: nothing there imports this.
"""

from __future__ import annotations

from importlib import import_module

from paper.base import Experiment

# In the order in which they are shown.
NAMES = (
    *("identification", "dimensions", "runtime", "precision-recall", "alpha", "structures"),
    *("samples", "sharper", "parents", "guarantee", "real", "transfer"),
)
# Studies of single questions take long: `all` does not run them.
SCREENS = (
    *("screen", "screen-outcomes", "screen-levels", "screen-shifts"),
    *("screen-ablation", "screen-keep", "screen-times"),
    *("clones", "mechanisms", "more-parents", "intervals", "levels", "group-levels"),
)


def find_experiment(name: str) -> Experiment:
    """The experiment of that name, from its module's own description, plan and summary."""
    module = import_module(f"paper.{name.replace('-', '_')}")
    return Experiment(
        name=name,
        title=module.TITLE,
        description=module.DESCRIPTION,
        make_plan=module.make_plan,
        summarise=module.summarise,
        is_serial=getattr(module, "IS_SERIAL", False),
    )
