"""Arithmetic on many small tables, compiled; its twin in plain NumPy is `_reference.py`."""

from icscm.late import load_late

__getattr__, __dir__ = load_late(globals(), "leaves", "fisher")
