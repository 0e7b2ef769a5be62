"""From columns to counts: surveys, plans, codes, bins, bits, stores, threads.

`counts.py` is the protocol of all sources. May import `model`, `tables` and the base modules.
"""
