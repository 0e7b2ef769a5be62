"""The inner loops, compiled, by subject. Each has a twin in plain NumPy in `_reference.py`.

All of them release the GIL and write only to what the caller hands them, so that threads
work side by side on different features, or on different rows, without locks.
"""

from typing import Any

from icscm.late import find_late


def __getattr__(name: str) -> Any:
    return find_late(__name__, ("coding", "counting", "grouping", "hashing", "packing"), name)
