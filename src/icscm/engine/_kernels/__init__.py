"""The inner loops, compiled, by subject; `tests/engine_reference.py` has a NumPy twin of each.

All of them release the GIL and write only to what the caller hands them, so that threads
work side by side on different features, or on different rows, without locks.
"""

from icscm._lazy import load_lazily

__getattr__, __dir__ = load_lazily(globals(), "coding", "counting", "hashing")
