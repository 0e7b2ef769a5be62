"""Invariant Causal Set Covering Machines: short rules that hold in every environment."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from icscm._changes import REMOVED_NAMES
from icscm._version import __version__ as __version__

# The module of each public name, as the stub lists them for type checkers and editors. Modules are
# loaded on first use, so that `import icscm` and `icscm --help` are fast.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_IMPORTS = re.findall(r"^from (\S+) import \w+ as ([a-zA-Z]\w+)$", _STUB, re.MULTILINE)
_MODULES = {name: module for module, name in _IMPORTS}

__all__ = [*sorted(_MODULES), "__version__"]


def __getattr__(name: str) -> Any:
    if name in REMOVED_NAMES:
        # An ImportError would show in `from icscm import name`, too, but hasattr would raise it.
        raise AttributeError(f"icscm has no {name} any more: {REMOVED_NAMES[name]}")
    if name not in _MODULES:
        raise AttributeError(f"module 'icscm' has no attribute {name!r}")
    module = _MODULES[name]
    if module == "icscm":  # the name is that of a subpackage
        return import_module(f"icscm.{name}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return __all__
