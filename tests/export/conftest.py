"""Engines that run exported SQL."""

import sqlite3

import duckdb
import pytest


@pytest.fixture(scope="module")
def engines():
    both = {"sqlite": sqlite3.connect(":memory:"), "duckdb": duckdb.connect(":memory:")}
    yield both
    for connection in both.values():
        connection.close()
