"""Sources with samples on a card, or on its NumPy substitute, and their checks."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

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
    """A table of zeros and ones with identical columns and columns that tie."""
    n_rows = int(rng.integers(4, 400)) if n_rows is None else n_rows
    n_features = int(rng.integers(1, 60))
    if n_environments is None:
        n_environments = int(rng.choice([1, 2, 3, 5, 40, 200]))
    labels = rng.integers(0, 2, n_rows)
    environments = rng.integers(0, n_environments, n_rows)
    X = (rng.random((n_rows, n_features)) < rng.choice([0.02, 0.3, 0.5, 0.9], n_features)) * 1.0
    follow = rng.random(n_features) < 0.5
    noise = rng.random((n_rows, n_features)) < rng.choice([0.0, 0.1, 0.3])
    X[:, follow] = np.where(noise, X, labels[:, np.newaxis])[:, follow]
    copied = rng.integers(0, n_features, n_features)
    X = np.where(rng.random(n_features) < 0.2, X[:, copied], X)
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
    found = np.concatenate([each.compute_evidence(root.counts) for each in blocks])
    if settings.min_utility is None or not found.any():
        return settings
    least = rng.choice(found[found > 0]) * (1 + rng.choice([0, 0, 1e-15, -1e-15, 1e-9, -1e-9]))
    return replace(settings, min_evidence=float(least))


def check_same_search(rng, card, **sizes):
    """Model and trace are those of the source in memory, whatever is asked for."""
    X, labels, environments, names = draw_bits(rng, **sizes)
    source, other = (
        make_memory_source(X, labels, environments, environment_labels=names) for _ in range(2)
    )
    moved, settings = move(other, card), draw_settings(rng)
    if rng.random() < 0.3:
        settings = draw_near_evidence(rng, source, settings)
    found, wanted = find_model(moved, settings), find_model(source, settings)
    assert found == wanted


def draw_values(rng):
    """A table of floats: ties, missing values, columns of few values, some of them rare."""
    n_rows, n_features = int(rng.integers(20, 400)), int(rng.integers(1, 12))
    X = rng.normal(size=(n_rows, n_features)).round(int(rng.integers(0, 4)))
    few = rng.random(n_features) < 0.3
    X[:, few] = (rng.random((n_rows, few.sum())) < rng.choice([0.0, 0.02, 0.5])) * 3.0
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
    names, max_thresholds = tuple(range(int(environments.max()) + 1)), int(rng.choice([1, 5, 50]))
    own = {"environment_labels": names, "max_thresholds": max_thresholds}
    source = make_memory_source(X, labels, environments, **own)
    given = card.xp.asfortranarray(card.send(X)) if rng.random() < 0.3 else X
    with told_where(card):
        values = put_values(given, "cuda", max_thresholds)
    if values is None:  # zeros and ones
        return
    position, rows = sort_rows(labels, environments, len(names))
    binning, stores = values.encode(position, rows, max_thresholds, 1)
    wanted = source.columns
    assert isinstance(wanted, Binning) == (binning is not None)
    if isinstance(wanted, Binning):
        for name in ("edges", "offsets", "has_missing", "sampled"):
            np.testing.assert_array_equal(getattr(binning, name), getattr(wanted, name), name)
    moved = StoredSource(source.info._replace(columns=binning), stores, rows, position)
    settings = draw_settings(rng)
    if rng.random() < 0.3:
        settings = draw_near_evidence(rng, source, settings)
    assert find_model(moved, settings) == find_model(source, settings)


def check_default_fit(rng, card):
    """A card judges by `min_utility="auto"` itself, and a default fit is that of the processor."""
    X, y, environments, _ = draw_bits(rng, 300, 4)
    asked, shortlist = [], CardShortlister.shortlist

    def spy(shortlister, query):
        asked.append(query.criteria.min_evidence)
        return shortlist(shortlister, query)

    with told_where(card), pytest.MonkeyPatch.context() as patch:
        patch.setattr(CardShortlister, "shortlist", spy)
        learners = [ICSCMClassifier(device=device) for device in ("cpu", "cuda")]
        found = [each.fit(X, y, environments=environments) for each in learners]
    assert found[0].trace_ == found[1].trace_
    assert found[0].model_ == found[1].model_
    assert asked
    assert min(asked) > 0


@contextmanager
def told_where(card):
    """What asks for a card is given this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards_module, "find_card", lambda: card)
        yield


def check_same_counts(rng, card):
    """Counts, nodes, patterns and coverage are those of the source in memory: codes and bits."""
    n_rows, n_environments = int(rng.integers(2, 40_000)), int(rng.choice([1, 3, 200]))
    widths = rng.choice([2, 5, 50, 400], 5)
    X = np.column_stack([rng.integers(0, width, n_rows) for width in widths]).astype(np.float64)
    X[rng.random(X.shape) < 0.05] = np.nan
    rows = rng.integers(0, 2, n_rows), rng.integers(0, n_environments, n_rows)
    source, other = (
        make_memory_source(X, *rows, environment_labels=range(n_environments)) for _ in range(2)
    )
    edges = source.columns
    cuts = [Cut(j, 0, bool(rng.integers(2))) for j in range(5) if len(edges.find_edges(j))]
    check_row_source(move(other, card), source, cuts)


def draw_store(rng, card):
    """Random columns on each card, and some of their rows."""
    n_rows, n_environments = int(rng.choice([1, 90, 128, 3000, 16_384, 40_000])), None
    n_environments = int(rng.choice([1, 2, 3, 7, 33, 100, 200]))
    sizes = rng.multinomial(n_rows, rng.dirichlet(np.ones(2 * n_environments)))
    rows = Rows(None, np.concatenate(([0], np.cumsum(sizes))))
    n_features = int(rng.integers(1, 300))
    bits = rng.random((n_features, -(-n_rows // 128) * 128)) < rng.random((n_features, 1))
    bits[:, n_rows:] = False
    words = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    n_copies = rng.integers(1, 4, n_features) if rng.random() < 0.5 else None
    own = np.arange(n_features), words, rows
    stores = [CardBits(each, own[0], each.send(own[1]), rows, n_copies=n_copies) for each in card]
    settled = rng.random(n_rows) < rng.choice([0.0, 0.4])
    stay, _ = rows.split(settled)
    return stores, stay


def check_kernels(rng, card):
    """Each kernel writes what its twin writes."""
    cards = card, make_stand_in()
    (fast, slow), rows = draw_store(rng, cards)
    in_play = rows.sizes.reshape(2, -1)
    settings = draw_settings(rng)
    utility = make_utility(settings.p, n_rows=int(in_play.sum()))
    inverted = bool(rng.integers(2))
    in_order = in_play[::-1] if inverted else in_play
    view = SimpleNamespace(settings=settings, is_inverted=inverted)
    uncovered = SimpleNamespace(counts=in_order, n_rows=int(in_order.sum()))
    question = make_criteria(view, utility=utility, uncovered=uncovered)
    found = []
    for own, store in zip(cards, (fast, slow), strict=True):
        xp, kernels = own.xp, own.kernels
        columns = CountedBits(store, rows)
        n, segments = len(columns), columns.segments
        query = CardShortlister(columns).send_criteria(question)
        totals, codes = xp.full((n, 2), -1, dtype=np.int32), xp.full(n, 255, dtype=np.uint8)
        statistics, dofs = xp.full((n, 2), -1.0), xp.full((n, 2), -1, dtype=np.int32)
        kernels.judge_bits(store.words, segments, query, totals, codes, statistics, dofs)
        again = xp.full(n, 255, dtype=np.uint8)
        kernels.judge_bits(store.words, segments, query, totals, again)
        judged = totals, codes, query
        keys = [kernels.find_next(*judged, REJECTED, FIRST)]
        while keys[-1] is not None and len(keys) < 4:
            keys.append(kernels.find_next(*judged, REJECTED, keys[-1]))
        best = kernels.find_next(*judged, (1,), FIRST)
        listed = [kernels.list_columns(*judged, (code,)) for code in range(len(CODES))]
        listed += [] if best is None else [kernels.list_columns(*judged, (1,), best)]
        source = np.arange(store.words.shape[1] * 32)[::-1].astype(np.uint32).copy()
        swapped = xp.empty_like(store.words)
        kernels.sort_bits(store.words, own.send(source), swapped)
        arrays = totals, codes, again, dofs, columns.count_ones(xp.arange(n)), swapped, *listed
        exact = [own.bring(each).tolist() for each in arrays]
        exact += [keys, best, kernels.tally_codes(codes, store.n_copies).tolist()]
        found.append((exact, own.bring(statistics)))
    for number, (one, other) in enumerate(zip(found[0][0], found[1][0], strict=True)):
        assert one == other, f"part {number} differs"
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10, atol=1e-9)
