"""From columns to counts: surveys, plans, codes, bins, bits, stores, threads.

`counts.py` is the protocol of all sources, `leaf_tables.py` makes the leaves of all candidates from
counts. May import `model`, `tables`, `stats` and the base modules.
"""
