"""Dask collections: counted where their partitions lie, never repartitioned.

May import the same packages as `sources`, but no other source.
"""
