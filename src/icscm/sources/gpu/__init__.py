"""Samples on a graphics card, counted and judged there: one more way to hold what a source holds.

Sources that keep samples use it for `device="cuda"`; it imports none of them.
"""
