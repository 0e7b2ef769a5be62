"""The source over a file counts as the one in memory does, however the file was filled."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm.engine import pieces
from icscm.engine.counts import MISSINGNESS, Cut, SourceInfo
from icscm.engine.stores import sort_rows
from icscm.sources.files.source import CodeFile, close_source, make_mapped_source
from icscm.sources.memory import make_memory_source
from icscm.tables.coded import CodedTable, LevelBins
from icscm.testing import check_row_source
from support.sources import check_any_nodes


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "ROW_CHUNK", 40)
        yield


@st.composite
def tables(draw):
    """Columns of 2, some and many values, categories, some with missing values."""
    n_rows, n_environments = draw(st.integers(2, 150)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    widths = draw(st.lists(st.sampled_from([1, 2, 5, 400]), min_size=1, max_size=6))
    X = np.column_stack([rng.integers(0, width, n_rows) for width in widths]).astype(float)
    levels = {}
    for j in range(len(widths)):
        if rng.random() < 0.3:
            _, X[:, j] = np.unique(X[:, j], return_inverse=True)
            levels[j] = LevelBins(tuple(f"v{k}" for k in range(int(X[:, j].max()) + 1)))
        X[rng.random(n_rows) < rng.choice([0, 0.3]), j] = np.nan
    table = CodedTable(X)
    table = type(table)(X, None, levels, table.has_missing)
    labels, environments = rng.integers(0, 2, n_rows), rng.integers(0, n_environments, n_rows)
    return table, labels, environments, tuple(range(n_environments)), rng


def fill(file, codes, segments, rng):
    """In batches of any sizes, empty ones included."""
    cuts = np.sort(rng.integers(0, len(segments) + 1, 3)).tolist()
    for a, b in zip([0, *cuts], [*cuts, len(segments)], strict=True):
        file.write(codes[:, a:b], segments[a:b])


@settings(max_examples=100, deadline=None)
@given(tables(), st.sampled_from([1, 300, 10**6]))
def test_counts_equal_those_in_memory(made, block_bytes):
    table, labels, environments, environment_labels, rng = made
    memory = make_memory_source(
        table, labels, environments, environment_labels=environment_labels, n_jobs=1
    )
    candidates = memory.columns
    binned = getattr(candidates, "single", candidates)  # identical columns are stored once
    numbers = np.arange(binned.n_features)
    stored = [j for j in numbers.tolist() if binned.count_bins(numbers)[j] > 1]
    stored.sort(key=lambda j: (binned.find_layout(j), j))
    first = [candidates.make_binned_rule(Cut(j, 0, False)).column for j in stored]
    stores = [memory.piece.find_store(j) for j in first]
    codes = np.array(
        [store.find_codes(j)[memory.position] for store, j in zip(stores, first, strict=True)],
        dtype=np.uint8,
    )
    codes = codes.reshape(len(stored), len(labels))
    position, rows = sort_rows(labels, environments, len(environment_labels))
    file = CodeFile(len(stored), rows)
    fill(file, codes, labels * len(environment_labels) + environments, rng)
    info = SourceInfo(binned, (0, 1), environment_labels)
    source = make_mapped_source(info, stored, file, position, block_bytes=block_bytes)
    check_any_nodes(source, memory, binned.n_features, rng)
    check_row_source(source, memory, draw_cuts(binned, rng))
    close_source(source, file)


def draw_cuts(binned, rng):
    cuts = [
        Cut(j, int(rng.integers(len(binned.find_edges(j)))), *rng.integers(2, size=2).astype(bool))
        for j in range(binned.n_features)
        if len(binned.find_edges(j))
    ]
    cuts += [Cut(j, MISSINGNESS, False, True) for j in np.flatnonzero(binned.has_missing)]
    return [cuts[i] for i in rng.permutation(len(cuts))[:4]]


def test_pages_are_let_go_and_the_file_has_no_name(tmp_path):
    n_rows = 2**24
    rows = sort_rows(np.zeros(4, int), np.zeros(4, int), 1)[1]
    rows = type(rows)(None, rows.bounds * (n_rows // 4))
    file = CodeFile(2, rows, tmp_path)
    assert os.listdir(tmp_path) == []
    codes = file.codes
    before = measure_resident()
    assert codes.sum() == 0
    assert measure_resident() > before + n_rows
    file.release()
    assert measure_resident() < before + n_rows / 2
    del codes
    file.close()


def measure_resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
