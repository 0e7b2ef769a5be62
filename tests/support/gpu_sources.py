"""Sources with samples on a card, or on its NumPy substitute, and their checks."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from icscm import ICSCMClassifier
from icscm.engine.binning import Binning
from icscm.engine.counts import Cut
from icscm.engine.stores import Rows, sort_rows
from icscm.search.rules import find_model
from icscm.search.settings import Settings
from icscm.search.shortlist import make_criteria
from icscm.search.utility import make_utility
from icscm.search.view import ConjunctionView
from icscm.sources.gpu import card as cards_module
from icscm.sources.gpu.launching import CODES, FIRST, REJECTED
from icscm.sources.gpu.shortlisting import CardShortlister
from icscm.sources.gpu.stores import CardBits, CountedBits, put_on_card
from icscm.sources.gpu.values import put_values
from icscm.sources.memory import make_memory_source
from icscm.sources.stored import StoredSource
from icscm.stats.independence import ChiSquaredTest, GTest
from icscm.testing import check_row_source
from support.literal.gpu_kernels import make_stand_in


def move(source, card):
    """The same samples on the card."""
    rows = source.piece.rows
    stores = [put_on_card(card, store, rows, source.columns) for store in source.piece.stores]
    return StoredSource(source.info, stores, rows, source.position)


def draw_bits(rng, n_rows=None, n_environments=None):
    """A table of zeros and ones with identical columns and columns that tie.

    Half of the columns are the label with some noise, and some are copies of others.
    """
    n_rows = int(rng.integers(4, 400)) if n_rows is None else n_rows
    n_features = int(rng.integers(1, 60))
    if n_environments is None:
        n_environments = int(rng.choice([1, 2, 3, 5, 40, 200]))
    labels = rng.integers(0, 2, n_rows)
    environments = rng.integers(0, n_environments, n_rows)

    levels = rng.random((n_rows, n_features))
    densities = rng.choice([0.02, 0.3, 0.5, 0.9], n_features)
    X = (levels < densities) * 1.0
    follows_label = rng.random(n_features) < 0.5
    is_noise = rng.random((n_rows, n_features)) < rng.choice([0.0, 0.1, 0.3])
    X[:, follows_label] = np.where(is_noise, X, labels[:, np.newaxis])[:, follows_label]
    originals = rng.integers(0, n_features, n_features)
    is_copy = rng.random(n_features) < 0.2
    X = np.where(is_copy, X[:, originals], X)
    return X, labels, environments, tuple(range(n_environments))


def draw_settings(rng):
    """Settings of all kinds, those included that a card does not judge by."""
    tests = [None, ChiSquaredTest(), ChiSquaredTest(yates=False), GTest()]
    test = tests[rng.integers(len(tests))]
    return Settings(
        p=float(rng.choice([0.1, 0.5, 1.0, 1.7, 1e9])),
        model_type=str(rng.choice(["conjunction", "disjunction"])),
        max_rules=int(rng.integers(1, 6)),
        alpha=float(rng.choice([0.01, 0.05, 0.5, 0.99])),
        test=test,
        stop=str(rng.choice(["coverage", "independence"])),
        pruning=bool(rng.integers(2)),
        min_replication=float(rng.choice([0.0, 0.25, 0.9])),
        min_utility=rng.choice([None, 0.0, 1.0, 2.5]),
        min_evidence=float(rng.choice([0.0, 1e-12, 0.5, 2.0, 6.0])),
    )


def draw_near_evidence(rng, source, settings):
    """Settings by which the evidence of some candidate is the least one, or next to it."""
    view = ConjunctionView(source, settings)
    root = view.make_root()
    blocks = view.iterate_leaf_tables(root.count_cubes(), root)
    evidence = np.concatenate([block.compute_evidence(root.counts) for block in blocks])
    if settings.min_utility is None or not evidence.any():
        return settings
    evidence_of_one = rng.choice(evidence[evidence > 0])
    shift = rng.choice([0, 0, 1e-15, -1e-15, 1e-9, -1e-9])
    return replace(settings, min_evidence=float(evidence_of_one * (1 + shift)))


def check_same_search(rng, card, **sizes):
    """Model and trace are those of the source in memory, whatever is asked for."""
    X, labels, environments, names = draw_bits(rng, **sizes)
    source = make_memory_source(X, labels, environments, environment_labels=names)
    source_to_move = make_memory_source(X, labels, environments, environment_labels=names)
    source_on_card = move(source_to_move, card)
    settings = draw_settings(rng)
    if rng.random() < 0.3:
        settings = draw_near_evidence(rng, source, settings)
    assert find_model(source_on_card, settings) == find_model(source, settings)


def draw_values(rng):
    """A table of floats: ties, missing values, columns of few values, some of them rare."""
    n_rows = int(rng.integers(20, 400))
    n_features = int(rng.integers(1, 12))
    X = rng.normal(size=(n_rows, n_features)).round(int(rng.integers(0, 4)))
    has_two_values = rng.random(n_features) < 0.3
    is_rare = rng.random((n_rows, has_two_values.sum())) < rng.choice([0.0, 0.02, 0.5])
    X[:, has_two_values] = is_rare * 3.0
    X[:, rng.random(n_features) < 0.3] *= -0.0 if rng.random() < 0.2 else 1.0
    if rng.random() < 0.5:
        X[rng.random(X.shape) < rng.choice([0.02, 0.9])] = np.nan
    if rng.random() < 0.3:
        X = X[rng.integers(0, n_rows, n_rows)]  # rows with copies
    n_environments = int(rng.choice([1, 2, 5, 40]))
    environments = rng.integers(0, n_environments, n_rows)
    labels = (np.nan_to_num(X[:, 0]) > rng.choice([0.0, 1.0])) ^ (rng.random(n_rows) < 0.2)
    X = X.astype(rng.choice([np.float32, np.float64]))
    return np.asarray(X, order=str(rng.choice(["C", "F"]))), labels * 1, environments


def check_same_values(rng, card):
    """A table binned on the card has the thresholds, the model and the trace of one binned here."""
    X, labels, environments = draw_values(rng)
    names = tuple(range(int(environments.max()) + 1))
    max_thresholds = int(rng.choice([1, 5, 50]))
    source = make_memory_source(
        X, labels, environments, environment_labels=names, max_thresholds=max_thresholds
    )
    is_sent_before = rng.random() < 0.3
    table = card.xp.asfortranarray(card.send(X)) if is_sent_before else X
    with told_where(card):
        values = put_values(table, "cuda", max_thresholds)
    if values is None:  # zeros and ones
        return

    position, rows = sort_rows(labels, environments, len(names))
    binning, stores = values.encode(position, rows, max_thresholds, 1)
    expected_binning = source.columns
    assert isinstance(expected_binning, Binning) == (binning is not None)
    if isinstance(expected_binning, Binning):
        for name in ("edges", "offsets", "has_missing", "sampled"):
            expected = getattr(expected_binning, name)
            np.testing.assert_array_equal(getattr(binning, name), expected, name)
        for column in range(X.shape[1]):
            assert binning.find_range(column) == expected_binning.find_range(column)

    source_on_card = StoredSource(source.info._replace(columns=binning), stores, rows, position)
    settings = draw_settings(rng)
    if rng.random() < 0.3:
        settings = draw_near_evidence(rng, source, settings)
    assert find_model(source_on_card, settings) == find_model(source, settings)


def check_default_fit(rng, card):
    """A card judges by `min_utility="auto"` itself, and a default fit is that of the processor.

    By default all counts come from the card once, to find columns that determine the environment;
    where nothing has to be replicated the card examines all candidates.
    """
    X, y, environments, _ = draw_bits(rng, 300, 4)
    limits = []
    shortlist = CardShortlister.shortlist

    def note_limit(shortlister, query):
        limits.append(query.criteria.min_evidence)
        return shortlist(shortlister, query)

    with told_where(card), pytest.MonkeyPatch.context() as patch:
        patch.setattr(CardShortlister, "shortlist", note_limit)
        for settings in ({}, {"min_replication": 0.0}):
            on_cpu = ICSCMClassifier(device="cpu", **settings)
            on_card = ICSCMClassifier(device="cuda", **settings)
            on_cpu.fit(X, y, environments=environments)
            on_card.fit(X, y, environments=environments)
            assert on_cpu.trace_ == on_card.trace_
            assert on_cpu.model_ == on_card.model_
    assert limits
    assert min(limits) > 0


@contextmanager
def told_where(card):
    """What asks for a card is given this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards_module, "find_card", lambda: card)
        yield


def check_same_counts(rng, card):
    """Counts, nodes, patterns and coverage are those of the source in memory: codes and bits."""
    n_rows = int(rng.integers(2, 40_000))
    n_environments = int(rng.choice([1, 3, 200]))
    widths = rng.choice([2, 5, 50, 400], 5)
    X = np.column_stack([rng.integers(0, width, n_rows) for width in widths]).astype(np.float64)
    X[rng.random(X.shape) < 0.05] = np.nan
    labels = rng.integers(0, 2, n_rows)
    environments = rng.integers(0, n_environments, n_rows)
    names = range(n_environments)
    source = make_memory_source(X, labels, environments, environment_labels=names)
    source_to_move = make_memory_source(X, labels, environments, environment_labels=names)
    cuts = [
        Cut(column, 0, bool(rng.integers(2)))
        for column in range(5)
        if len(source.columns.find_edges(column))
    ]
    check_row_source(move(source_to_move, card), source, cuts)


def draw_stores(rng, cards):
    """Random columns on each of the cards, and some of their rows."""
    n_rows = int(rng.choice([1, 90, 128, 3000, 16_384, 40_000]))
    n_environments = int(rng.choice([1, 2, 3, 7, 33, 100, 200]))
    sizes = rng.multinomial(n_rows, rng.dirichlet(np.ones(2 * n_environments)))
    rows = Rows(None, np.concatenate(([0], np.cumsum(sizes))))
    n_features = int(rng.integers(1, 300))
    bits = rng.random((n_features, -(-n_rows // 128) * 128)) < rng.random((n_features, 1))
    bits[:, n_rows:] = False
    words = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    n_copies = rng.integers(1, 4, n_features) if rng.random() < 0.5 else None
    columns = np.arange(n_features)
    stores = [CardBits(card, columns, card.send(words), rows, n_copies=n_copies) for card in cards]
    is_covered = rng.random(n_rows) < rng.choice([0.0, 0.4])
    uncovered, _ = rows.split(is_covered)
    return stores, uncovered


def check_kernels(rng, card):
    """Each kernel writes what its twin writes."""
    cards = card, make_stand_in()
    (store, twin_store), rows = draw_stores(rng, cards)
    in_play = rows.sizes.reshape(2, -1)
    settings = draw_settings(rng)
    utility = make_utility(settings.p, n_rows=int(in_play.sum()))
    is_inverted = bool(rng.integers(2))
    counts = in_play[::-1] if is_inverted else in_play
    view = SimpleNamespace(settings=settings, is_inverted=is_inverted)
    uncovered = SimpleNamespace(counts=counts, n_rows=int(counts.sum()))
    criteria = make_criteria(view, utility=utility, uncovered=uncovered)

    results = run_kernels(store, rows, criteria)
    expected = run_kernels(twin_store, rows, criteria)
    assert results.exact.keys() == expected.exact.keys()
    for name, value in results.exact.items():
        assert value == expected.exact[name], f"the kernels differ in: {name}"
    np.testing.assert_allclose(results.statistics, expected.statistics, rtol=1e-10, atol=1e-9)


class KernelResults(NamedTuple):
    """What the kernels of a card write: whole numbers by name, and statistics."""

    exact: dict
    statistics: np.ndarray


def run_kernels(store, rows, criteria):
    """Run each kernel on the bits of a store."""
    card = store.card
    xp = card.xp
    kernels = card.kernels
    columns = CountedBits(store, rows)
    n = len(columns)
    segments = columns.segments
    query = CardShortlister(columns).send_criteria(criteria)

    # filled with what no kernel writes
    totals = xp.full((n, 2), -1, dtype=np.int32)
    codes = xp.full(n, 255, dtype=np.uint8)
    codes_again = xp.full(n, 255, dtype=np.uint8)
    statistics = xp.full((n, 2), -1.0)
    dofs = xp.full((n, 2), -1, dtype=np.int32)
    kernels.judge_bits(store.words, segments, query, totals, codes, statistics, dofs)
    kernels.judge_bits(store.words, segments, query, totals, codes_again)

    rejected_keys = [kernels.find_next(totals, codes, query, REJECTED, FIRST)]
    while rejected_keys[-1] is not None and len(rejected_keys) < 4:
        key = kernels.find_next(totals, codes, query, REJECTED, rejected_keys[-1])
        rejected_keys.append(key)
    best = kernels.find_next(totals, codes, query, (1,), FIRST)
    lists = [kernels.list_columns(totals, codes, query, (code,)) for code in range(len(CODES))]
    if best is not None:
        lists.append(kernels.list_columns(totals, codes, query, (1,), best))

    backwards = np.arange(store.words.shape[1] * 32)[::-1].astype(np.uint32).copy()
    sorted_words = xp.empty_like(store.words)
    kernels.sort_bits(store.words, card.send(backwards), sorted_words)
    arrays = {
        "totals": totals,
        "codes": codes,
        "codes without statistics": codes_again,
        "degrees of freedom": dofs,
        "ones": columns.count_ones(xp.arange(n)),
        "sorted words": sorted_words,
        **{f"list {number}": columns_of_code for number, columns_of_code in enumerate(lists)},
    }
    exact = {name: card.bring(array).tolist() for name, array in arrays.items()}
    exact["rejected keys"] = rejected_keys
    exact["best key"] = best
    exact["tally"] = kernels.tally_codes(codes, store.n_copies).tolist()
    return KernelResults(exact, card.bring(statistics))
