"""From columns to counts: surveys, plans, codes, bins, bits, stores, threads.

`counts.py` is the protocol that all sources fulfil. May import `model`, `tables` and the ground.
"""
