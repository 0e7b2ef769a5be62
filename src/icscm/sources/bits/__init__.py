"""Genomes as packed bits: the store, how tables get into it, and the source that counts in it.

May import the same packages as `sources`, but no other source.
"""
