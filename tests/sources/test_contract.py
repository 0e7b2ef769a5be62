"""The contract of count sources: behind each of them one small table, counted row by row.

Other modules of this folder hold what is particular to a source, and random tables.
"""

from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from icscm import _constants
from icscm.engine import pieces
from icscm.engine.bits import CollapsedMap, PresenceMap
from icscm.engine.counts import MISSINGNESS, Cut, SourceInfo
from icscm.engine.stores import sort_rows
from icscm.search.grow import TreeSettings
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.trees import find_tree
from icscm.sources.bits import opening, packing, store
from icscm.sources.bits.opening import StoreRows, make_packed_source
from icscm.sources.bits.packing import pack_matrix
from icscm.sources.bits.store import open_store
from icscm.sources.countable import BinningConfig
from icscm.sources.dask import client as dask_client
from icscm.sources.files.source import CodeFile, close_source, make_mapped_source
from icscm.sources.memory import make_memory_source
from icscm.sources.sites import LocalSite, SitesSource, make_agreement
from icscm.stats.independence import ChiSquaredTest
from icscm.tables.coded import CodedTable, LevelBins
from icscm.testing import check_row_source
from support.gpu_sources import move
from support.literal.gpu_kernels import make_stand_in
from support.sources import (
    LiteralSource,
    check_any_nodes,
    code_literally,
    make_dask_source,
    make_literal,
)

# the kernels' twins in place of a card
CARD = make_stand_in()
PLACES = ("north", "south", "west")
LEVELS = ("ex", "no", "yes")
NAMES = ("few", "many", "again", "flag", "smoker")
N_ROWS = 180


def draw_numbers():
    """Numbers, a copy, a category and a flag; two columns have missing values.

    The flag depends on the environment. The last environment has few rows, which come first, and
    no row of positive label.
    """
    rng = np.random.default_rng(5)
    environments = np.repeat([2, 1, 0], [8, 80, N_ROWS - 88])
    few, smoker = rng.integers(0, 3, N_ROWS), rng.integers(0, 3, N_ROWS)
    few[:8] = 0
    labels = ((few > 0) & (smoker > 0)) ^ (rng.random(N_ROWS) < np.where(few > 0, 0.05, 0))
    flag = labels ^ (rng.random(N_ROWS) < np.array([0.1, 0.4, 0.5])[environments])
    many = rng.normal(labels + environments, 1).round(1)
    many[rng.random(N_ROWS) < 0.1] = np.nan
    smoker = np.where(rng.random(N_ROWS) < 0.1, np.nan, smoker)
    values = np.column_stack((few, many, few, flag, smoker)).astype(np.float64)
    return values, labels.astype(np.int64), environments


X, LABELS, ENVIRONMENTS = draw_numbers()
# made of the numbers, with a copy, an inverted copy and a column of zeros
BITS = (X[:, 0] > 0, X[:, 1] > 1, X[:, 4] > 0, X[:, 3], X[:, 0] > 0, X[:, 4] < 0, X[:, 0] <= 0)
BITS = np.column_stack(BITS).astype(np.bool_)

SEARCHES = {
    "conjunction": (find_model, Settings(test=ChiSquaredTest(), pruning=True)),
    "disjunction": (find_model, Settings(test=ChiSquaredTest(), model_type="disjunction", p=0.5)),
    "exhaustive": (find_model, Settings(test=ChiSquaredTest(), search="exhaustive")),
    "tree": (find_tree, TreeSettings(min_leaf_rows=5)),
}


def make_in_memory(**options):
    table = CodedTable(X, NAMES, {4: LevelBins(LEVELS)})
    return make_memory_source(
        table, LABELS, ENVIRONMENTS, environment_labels=PLACES, max_thresholds=8, **options
    )


@cache
def code_table():
    """The bins of the columns, and the bin of each value."""
    binning = make_in_memory().columns
    return binning, code_literally(X, binning)


@contextmanager
def open_threads():
    """Threads that share the columns of a table, however small it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_constants, "MIN_THREADED_CELLS", 0)
        yield make_in_memory(n_jobs=8)


@contextmanager
def open_small_blocks():
    """A cube that is counted anew in each step, a few features at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_constants, "MAX_KEPT_CUBE_BYTES", 0)
        patch.setattr(_constants, "BLOCK_CELLS", 50)
        patch.setattr(_constants, "PACKED_BLOCK_CELLS", 50)
        yield make_in_memory()


@contextmanager
def open_again():
    """A source that is taken from one which has counted other rows before."""
    source = make_in_memory()
    list(source.count_cubes((source.columns.make_binned_rule(Cut(0, 0, negated=False)),)))
    yield source.rows.take(np.arange(N_ROWS))


@contextmanager
def open_file():
    """A byte for each cell in a file, filled in three batches."""
    binning, codes = code_table()
    stored = sorted(range(len(NAMES)), key=lambda j: (binning.find_layout(j), j))
    position, rows = sort_rows(LABELS, ENVIRONMENTS, len(PLACES))
    file = CodeFile(len(stored), rows)
    segments = LABELS * len(PLACES) + ENVIRONMENTS
    for start, stop in pairwise((0, 70, 70, N_ROWS)):
        file.write(codes[start:stop, stored].T.astype(np.uint8), segments[start:stop])
    info = SourceInfo(binning, (0, 1), PLACES)
    source = make_mapped_source(info, stored, file, position, block_bytes=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "ROW_CHUNK", 40)
        yield source
    close_source(source, file)


@contextmanager
def open_pieces(most_bytes):
    """Tasks over uneven pieces, one of them empty; the cube is kept here if it is small."""
    with dask.config.set(scheduler="synchronous"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_client, "MAX_KEPT_CUBE_BYTES", most_bytes)
        binning, codes = code_table()
        yield make_dask_source(
            binning, codes, LABELS, ENVIRONMENTS, environment_labels=PLACES, cuts=(1, 1, 90)
        )


@contextmanager
def open_sites():
    """Sites that share counts only: one of a single row, one without any."""
    binning, _ = code_table()
    frame = pd.DataFrame(X, columns=NAMES)
    frame["smoker"] = frame["smoker"].map(dict(enumerate(LEVELS)))
    thresholds = {name: binning.find_edges(j) for j, name in enumerate(NAMES)}
    agreement = make_agreement(
        thresholds | {"smoker": LEVELS},
        classes=(0, 1),
        environments=PLACES,
        missing=["many", "smoker"],
    )
    places = np.array(PLACES)[ENVIRONMENTS]
    sites = [
        LocalSite(frame[part], LABELS[part], environments=places[part], agreement=agreement)
        for part in (slice(0, 1), slice(1, 1), slice(1, N_ROWS))
    ]
    yield SitesSource(sites, agreement)


def make_of_bits(table):
    table = CodedTable(table, is_presence=True)
    return make_memory_source(table, LABELS, ENVIRONMENTS, environment_labels=PLACES)


@contextmanager
def open_packed():
    """A packed store, sorted again in each step, two patterns at a time."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "MAX_MAPPED_BYTES", 0)
        for module in (opening, packing, store):
            patch.setattr(module, "BLOCK_PATTERNS", 2)
        path = Path(folder, "table.bits")
        pack_matrix(BITS, path)
        bits = open_store(path)
        info = SourceInfo(CollapsedMap(PresenceMap(), bits.copies), (0, 1), PLACES)
        rows = StoreRows(np.arange(N_ROWS), LABELS, ENVIRONMENTS)
        yield make_packed_source(bits, info, rows, BinningConfig(n_jobs=2))


SOURCES = {
    "memory": lambda: nullcontext(make_in_memory()),
    "threads": open_threads,
    "small blocks": open_small_blocks,
    "all rows again": open_again,
    "file": open_file,
    "pieces, cube kept": lambda: open_pieces(2**28),
    "pieces, counted anew": lambda: open_pieces(0),
    "sites": open_sites,
    "card": lambda: nullcontext(move(make_in_memory(), CARD)),
}
BIT_SOURCES = {
    "bits": lambda: nullcontext(make_of_bits(BITS.view(np.uint8))),
    "sparse bits": lambda: nullcontext(make_of_bits(sp.csr_array(BITS))),
    "packed store": open_packed,
    "bits on a card": lambda: nullcontext(move(make_of_bits(BITS.view(np.uint8)), CARD)),
}
RULES = [
    Cut(0, 0, negated=False),
    Cut(1, 3, negated=True, missing=True),
    Cut(4, 2, negated=True),
    Cut(1, MISSINGNESS, negated=False, missing=True),
]
BIT_RULES = [Cut(0, 0, negated=True), Cut(2, 0, negated=False), Cut(3, 0, negated=False)]


@pytest.fixture(params=[*SOURCES, *BIT_SOURCES])
def sources(request):
    """A source, its literal twin, and rules about them."""
    if request.param in BIT_SOURCES:
        names = {"classes": (0, 1), "environment_labels": PLACES}
        literal = LiteralSource(BITS.astype(int), LABELS, ENVIRONMENTS, PresenceMap(), **names)
        with BIT_SOURCES[request.param]() as source:
            yield source, literal, BIT_RULES
    else:
        with SOURCES[request.param]() as source:
            yield source, make_literal(source, X, LABELS, ENVIRONMENTS), RULES


def test_contract(sources):
    check_row_source(*sources)


def test_attributes_that_may_be_none(sources):
    """A source has all of them, and what it has is whole."""
    source, literal, _ = sources
    n_rows = int(literal.count_rows().sum())
    assert source.clusters is None
    assert source.shortlister is None or source.rows is not None
    if source.rows is not None:
        cells = source.rows.list_cells()
        sizes = np.zeros((2, len(source.environments)), dtype=int)
        np.add.at(sizes, (cells.outcomes, cells.environments), 1)
        np.testing.assert_array_equal(sizes, literal.count_rows())
        part = source.rows.select(np.arange(n_rows) % 2 == 0)
        assert part.count_rows().sum() == -(-n_rows // 2)


def test_nodes_in_any_order(sources):
    source, literal, _ = sources
    check_any_nodes(source, literal, X.shape[1], np.random.default_rng(0))


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_model_and_trace_are_learned(sources, name):
    source, literal, _ = sources
    search, settings = SEARCHES[name]
    learned = search(source, settings)
    assert learned[0].rules
    assert learned == search(literal, settings)
