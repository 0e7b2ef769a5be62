"""Arithmetic on many small tables, compiled; its twin in plain NumPy is `_reference.py`."""

from icscm._lazy import load_lazily

__getattr__, __dir__ = load_lazily(globals(), "leaves", "fisher")
