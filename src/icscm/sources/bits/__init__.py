"""Genomes as packed bits: the store, how tables get into it, and the source that counts in it.

May import what `sources` may, and no other source.
"""
