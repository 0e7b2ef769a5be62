"""Samples on a graphics card, counted and judged there: one more way to hold what a source holds.

Sources that keep samples use it where a user asks for a card; it knows of none of them.
"""
