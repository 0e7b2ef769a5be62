"""Bits, in memory and in files, count and learn as plain tables do."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import _constants
from icscm.engine import bits as copies
from icscm.engine import coding, stores
from icscm.engine.bits import CollapsedMap, PresenceMap
from icscm.engine.counts import Cut, SourceInfo
from icscm.search.exhaustive import learn_exhaustively
from icscm.search.grow import TreeSettings
from icscm.search.rules import learn
from icscm.search.settings import Settings
from icscm.search.trees import find_tree
from icscm.sources.bits import opening as packed
from icscm.sources.bits import packing
from icscm.sources.bits import store as bitfile
from icscm.sources.bits.opening import StoreRows, make_packed_source
from icscm.sources.bits.packing import pack_matrix
from icscm.sources.bits.store import open_store
from icscm.sources.countable import BinningConfig
from icscm.sources.memory import make_memory_source
from icscm.sources.stored import StoredSource
from icscm.stats.independence import ChiSquaredTest, GTest
from icscm.tables.coded import CodedTable
from icscm.testing import check_row_source
from support.sources import LiteralSource, check_any_nodes


@st.composite
def binary_tables(draw):
    """Zeros and ones with copies, complements and constant columns; groups may be empty."""
    n_rows, n_columns = draw(st.integers(1, 150)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.random((n_rows, n_columns)) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    for j in range(n_columns):
        source, change = rng.integers(n_columns), rng.choice(["copy", "invert", "none", "none"])
        if change != "none":
            X[:, j] = X[:, source] ^ (change == "invert")
    n_environments = draw(st.integers(1, 4))
    labels = rng.integers(0, 2, n_rows) if draw(st.booleans()) else np.zeros(n_rows, np.int64)
    environments = rng.integers(0, draw(st.integers(1, n_environments)), n_rows)
    cuts = [Cut(int(rng.integers(n_columns)), 0, bool(rng.integers(2))) for _ in range(3)]
    return X, labels, environments, tuple(range(n_environments)), cuts


FORMS = {
    "bool": lambda X: X.view(np.uint8),
    "fortran": lambda X: np.asfortranarray(X.view(np.uint8)),
    "strided": lambda X: np.repeat(X.view(np.uint8), 2, axis=1)[:, ::2],
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csc of int64": lambda X: sp.csc_array(X.astype(np.int64)),
}


def make_source(form, table, folder):
    """Each way to count a table of zeros and ones."""
    X, labels, environments, environment_labels, _ = table
    if form == "file":
        path = folder / "table.bits"
        pack_matrix(X, path, force=True)
        bits = open_store(path)
        candidates = CollapsedMap(PresenceMap(), bits.copies)
        info = SourceInfo(candidates, (0, 1), environment_labels)
        counted = np.flatnonzero(labels >= 0)
        rows = StoreRows(counted, labels[counted], environments[counted])
        return make_packed_source(bits, info, rows, BinningConfig(n_jobs=2))
    coded = CodedTable(FORMS[form](X), is_presence=True)
    return make_memory_source(coded, labels, environments, environment_labels=environment_labels)


def make_plain(table):
    """The source as it is without collapsing, by the ways of any other table."""
    X, labels, environments, environment_labels, _ = table
    position, sorted_rows = stores.sort_rows(labels, environments, len(environment_labels))
    _, made = coding.encode(
        CodedTable(X.view(np.uint8)), position, sorted_rows, max_thresholds=50, n_threads=1
    )
    info = SourceInfo(PresenceMap(), (0, 1), environment_labels)
    return StoredSource(info, made, sorted_rows, position)


@pytest.fixture(scope="module", params=[1, 2**20], ids=["small blocks", "large blocks"])
def block_cells(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "PACKED_BLOCK_CELLS", request.param * 16)
        patch.setattr(_constants, "PACKED_BLOCK_CELLS", request.param * 16)
        for module in (bitfile, packed, packing):
            patch.setattr(module, "BLOCK_PATTERNS", 2)
        patch.setattr(packed, "MAX_MAPPED_BYTES", request.param - 1)  # sorted at each look, or kept
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packed")


def check_counts(form, table, folder):
    """Counts, nodes and patterns are those of a loop over the rows."""
    X, labels, environments, environment_labels, cuts = table
    literal = LiteralSource(
        X.astype(np.int64),
        labels,
        environments,
        PresenceMap(),
        classes=(0, 1),
        environment_labels=environment_labels,
    )
    source = make_source(form, table, folder)
    check_any_nodes(source, literal, X.shape[1], np.random.default_rng(len(X)))
    check_row_source(source, literal, cuts)


@pytest.mark.parametrize("form", ["bool", "csr", "file"])
@settings(max_examples=40, deadline=None)
@given(table=binary_tables())
def test_counts_equal_literal_counts(form, block_cells, folder, table):
    check_counts(form, table, folder)


@pytest.mark.parametrize("form", ["fortran", "strided", "csc", "csc of int64"])
@settings(max_examples=40, deadline=None)
@given(table=binary_tables())
def test_other_layouts_are_packed_alike(form, folder, table):
    check_counts(form, table, folder)


SETTINGS = [
    Settings(),
    Settings(test=ChiSquaredTest(), stop="coverage", pruning=True),
    Settings(test=GTest(), model_type="disjunction"),
    Settings(test=ChiSquaredTest(), alpha=0.5),
]


@pytest.mark.parametrize("form", ["bool", "csr", "file"])
@settings(max_examples=40, deadline=None)
@given(table=binary_tables(), number=st.integers(0, len(SETTINGS)))
def test_model_and_trace_are_those_without_collapsing(form, block_cells, folder, table, number):
    """Bit for bit: copies are counted, refused, tied and listed as if each were stored."""
    search = learn if number < len(SETTINGS) else learn_exhaustively
    chosen = SETTINGS[number] if number < len(SETTINGS) else SETTINGS[1]
    wanted = search(make_plain(table), chosen)
    assert search(make_source(form, table, folder), chosen) == wanted


@pytest.mark.parametrize("form", ["bool", "csr", "file"])
@settings(max_examples=25, deadline=None)
@given(table=binary_tables(), tolerance=st.sampled_from([1e-4, 0.03, None]))
def test_so_are_trees(form, block_cells, folder, table, tolerance):
    chosen = TreeSettings(tolerance=tolerance, min_leaf_rows=2)
    wanted = find_tree(make_plain(table), chosen)
    assert find_tree(make_source(form, table, folder), chosen) == wanted


def test_numbers_keep_their_thresholds():
    """Zeros and ones may be anything: only booleans and sparse matrices tell of presence."""
    X, labels = np.array([[0, 1], [1, 1], [0, 0]]), np.array([0, 1, 0])
    for dtype in (np.int64, np.uint8, np.float32):
        source = make_memory_source(X.astype(dtype), labels, 0 * labels, environment_labels=("a",))
        assert str(source.columns.make_rule(Cut(0, 0, False))) == "x0 > 0"


@pytest.mark.parametrize("value", [2, -1, 0.5, np.nan])
def test_anything_else_is_binned(value):
    X = np.zeros((300, 3))
    X[::2] = 1
    X[200, 1] = value
    labels = np.arange(300) % 2
    source = make_memory_source(X, labels, 0 * labels, environment_labels=("a",))
    assert len(source.columns.find_edges(1)) == (2 if value == value else 1)
    as_columns = make_memory_source(
        np.asfortranarray(X), labels, 0 * labels, environment_labels=("a",)
    )
    np.testing.assert_array_equal(source.columns.edges, as_columns.columns.edges)


def test_copies_are_grouped_exactly_even_if_all_hashes_are_equal(monkeypatch):
    monkeypatch.setattr(
        copies, "hash_patterns", lambda words, n_threads: np.zeros(len(words), np.uint64)
    )
    rng = np.random.default_rng(0)
    words = rng.integers(4, size=(50, 2)).astype(np.uint64)
    found = copies.find_copies(words, 1)
    for feature in range(50):
        alike = np.flatnonzero((words == words[feature]).all(axis=1))
        assert found.find_first(feature) == alike[0]
        np.testing.assert_array_equal(found.list_members(alike[:1]), alike)


def test_a_resample_of_bits_shares_them(folder):
    rng = np.random.default_rng(1)
    X, labels = rng.random((200, 20)) < 0.5, rng.integers(0, 2, 200)
    table = X, labels, rng.integers(0, 2, 200), (0, 1), []
    some = np.sort(rng.permutation(200)[:80])
    taken = make_source("csr", table, folder).rows.take(some)
    part = X[some], labels[some], table[2][some], (0, 1), []
    assert learn(taken, SETTINGS[1]) == learn(make_plain(part), SETTINGS[1])


@pytest.mark.parametrize("n_environments", [2, 9, 40])
@pytest.mark.parametrize("n_kept", [0, 2**20])
def test_many_patterns_in_blocks_of_tiles(n_environments, n_kept, folder, monkeypatch):
    """Blocks of the file end within tiles, and samples drawn use what was sorted for all."""
    monkeypatch.setattr(packed, "MAX_MAPPED_BYTES", n_kept)
    monkeypatch.setattr(packed, "PACKED_BLOCK_CELLS", 64 * 8 * n_environments)
    rng = np.random.default_rng(n_environments)
    X, labels = rng.random((700, 400)) < 0.3, rng.integers(0, 2, 700)
    labels[rng.random(700) < 0.1] = -1  # do not count
    environments = rng.integers(0, n_environments, 700)
    table = X, labels, environments, tuple(range(n_environments)), []
    source = make_source("file", table, folder)
    drawn = rng.random(np.count_nonzero(labels >= 0)) < 0.5
    order = source.piece.stores[0].order
    for some, of_some in ((order, source), (order[drawn], source.rows.select(drawn))):
        part = X[some], labels[some], environments[some], table[3], []
        assert learn(of_some, SETTINGS[1]) == learn(make_plain(part), SETTINGS[1])
