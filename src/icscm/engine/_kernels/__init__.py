"""The inner loops, compiled, by subject; `tests/support/literal/kernels.py` has their NumPy twins.

All of them release the GIL and write only to what the caller hands them, so that threads
work side by side on different columns, or on different rows, without locks.
"""

from icscm._lazy import load_lazily

__getattr__, __dir__ = load_lazily(globals(), "coding", "counting", "hashing")
