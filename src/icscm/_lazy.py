"""Modules that are imported when something of them is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def load_lazily(home: dict[str, Any], *modules: str) -> tuple[Callable[..., Any], ...]:
    """The `__getattr__` and `__dir__` of a package that has all that its modules have.

    Kernels need numba, which takes as long to import as all the rest; who only shows a model or
    predicts never calls one. `home` are the package's globals.
    """

    def load() -> list[str]:
        for module in modules:
            found = vars(import_module(f"{home['__name__']}.{module}"))
            home.update({name: found[name] for name in found if not name.startswith("_")})
        return list(home)

    def find(name: str) -> Any:
        if name.startswith("__") or name not in load():
            raise AttributeError(f"module {home['__name__']!r} has no attribute {name!r}")
        return home[name]

    return find, load
