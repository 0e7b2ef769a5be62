"""The data of the paper's study on real data, prepared as the paper prepares them.

Six tasks of the TableShift benchmark, and two small data sets. Raw files lie in a folder that the
caller names; see `sources.toml` here and in `icscm.datasets`.
"""

from paper.data.loaders import LOADERS, SOURCES, TABLES, fetch, find_present

__all__ = ["LOADERS", "SOURCES", "TABLES", "fetch", "find_present"]
