"""Dask collections: counted where their partitions lie, never repartitioned.

May import what `sources` may, and no other source.
"""
