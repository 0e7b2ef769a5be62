"""Samples on a graphics card, counted and judged there: one more way to hold what a source holds.

May import what all sources share, and no other source.
"""
