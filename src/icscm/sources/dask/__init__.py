"""Dask collections: counted where their partitions lie, never repartitioned."""
