"""Arithmetic on many small tables, compiled; its twin in plain NumPy is `_reference.py`."""

from typing import Any

from icscm.late import find_late


def __getattr__(name: str) -> Any:
    return find_late(__name__, ("leaves", "fisher"), name)
