"""Modules that are imported when something of them is first used."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any


def find_late(package: str, modules: Iterable[str], name: str) -> Any:
    """What one of a package's modules calls so; for the `__getattr__` of the package.

    Kernels need numba, which takes as long to import as all the rest; who only shows a model or
    predicts never calls one.
    """
    if not name.startswith("__"):
        for module in modules:
            found = import_module(f"{package}.{module}")
            if hasattr(found, name):
                setattr(sys.modules[package], name, getattr(found, name))
                return getattr(found, name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
