"""Engines that run exported SQL."""

import sqlite3
from contextlib import closing

import duckdb
import pytest


@pytest.fixture(scope="session")
def default_engines():
    """SQLite and DuckDB as users have them."""
    with closing(sqlite3.connect(":memory:")) as sqlite, closing(duckdb.connect()) as duck:
        yield {"sqlite": sqlite, "duckdb": duck}


@pytest.fixture(scope="session")
def engines(request, default_engines):
    """The same for many models.

    DuckDB's optimizer takes up to seconds for the nested conditions of one model. In `make test` it
    is off here; the tests that take `default_engines` run a model of each kind with it.
    """
    if request.config.getoption("--thorough"):
        yield default_engines
        return
    with closing(duckdb.connect()) as plain:
        plain.execute("PRAGMA disable_optimizer")
        yield {**default_engines, "duckdb": plain}
