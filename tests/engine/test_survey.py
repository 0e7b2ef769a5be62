"""A table surveyed in pieces is planned and coded as the whole one in memory is."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icscm import _constants
from icscm._constants import IDENTIFIER_ROWS
from icscm.engine import sampling, survey_binning
from icscm.engine import survey as survey_module
from icscm.engine.coding import PieceCoder
from icscm.engine.sampling import choose_sample, hash_piece, hash_rows
from icscm.engine.survey import Groups, merge_surveys, survey_piece
from icscm.engine.survey_binning import (
    describe_survey,
    find_sampled,
    find_suspicious_surveyed,
    plan_from_survey,
)
from icscm.exceptions import IcscmError
from icscm.sources.memory import make_memory_source
from icscm.tables.coded import CodedTable
from icscm.tables.columns import Dates, Levels, Numbers, read_arrow, read_numbers
from icscm.tables.parsing import ParsedTable
from icscm.tables.suspicion import find_suspicious

SAMPLE = 60


@pytest.fixture(autouse=True, scope="module")
def small_sample():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "QUANTILE_SAMPLE", SAMPLE)
        patch.setattr(_constants, "FIRST_LOOK_ROWS", 8)
        yield


KINDS = ["few", "many", "heavy", "whole", "id", "text", "name", "bool", "empty", "label", "date"]


def make_column(kind, n_rows, labels, rng):
    """An Arrow array of one kind, some of its values missing."""
    text = np.array([f"v{k}" for k in range(200)])
    made = {
        "few": lambda: pa.array(rng.integers(0, 4, n_rows) / 2),
        "many": lambda: pa.array(rng.normal(size=n_rows)),
        "heavy": lambda: pa.array(np.where(rng.random(n_rows) < 0.9, 0.0, rng.random(n_rows))),
        "whole": lambda: pa.array(rng.integers(-50, 50, n_rows)),
        "id": lambda: pa.array(2**60 + rng.permutation(n_rows)),
        "text": lambda: pa.array(text[rng.integers(0, 3, n_rows) ** 3]),
        "name": lambda: pa.array([f"n{k}" for k in rng.permutation(n_rows)]),
        "bool": lambda: pa.array(rng.random(n_rows) < 0.3),
        "empty": lambda: pa.array([None] * n_rows, pa.string()),
        "label": lambda: pa.array(text[labels]),
        "date": lambda: pa.array(rng.integers(0, 9, n_rows), pa.int32()).cast(pa.date32()),
    }
    array = made[kind]()
    if kind in ("id", "label", "date") or rng.random() < 0.5:
        return array
    mask = rng.random(n_rows) < 0.2
    return pa.array(array.to_pylist(), array.type, mask=mask)


@st.composite
def tables(draw):
    n_rows = draw(st.integers(1, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    labels, environments = rng.integers(0, 2, n_rows), rng.integers(0, 3, n_rows)
    arrays = [make_column(kind, n_rows, labels, rng) for kind in kinds]
    arrays.append(pa.array(environments))
    cuts = np.sort(rng.integers(0, n_rows + 1, draw(st.integers(0, 4)))).tolist()
    pieces = list(zip([0, *cuts], [*cuts, n_rows], strict=True))
    return arrays, labels, environments, pieces, kinds, rng


def read(arrays):
    return [read_arrow(each, f"column {j}") for j, each in enumerate(arrays)]


def survey_in_pieces(arrays, labels, environments, pieces, max_thresholds):
    return [
        survey_piece(
            read([each.slice(a, b - a) for each in arrays]),
            b - a,
            Groups(labels[a:b], ("no", "yes")),
            Groups(environments[a:b], (0, 1, 2)),
            max_thresholds=max_thresholds,
        )
        for a, b in pieces
    ]


def as_plain(survey):
    """The survey with lists for arrays, which can be compared."""
    plain = []
    for column in survey.columns:
        samples = column.samples
        parts = () if samples is None else (samples.hashes, samples.n_rows)
        plain.append(replace(column, samples=[part.tolist() for part in parts]))
    return replace(survey, columns=plain)


@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from([1, 3, 50, 255]))
def test_pieces_give_the_thresholds_and_codes_of_the_whole(table, max_thresholds):
    arrays, labels, environments, pieces, kinds, rng = table
    n_rows, columns = len(labels), read(arrays)
    found = survey_in_pieces(arrays, labels, environments, pieces, max_thresholds)
    survey = reduce(merge_surveys, [found[i] for i in rng.permutation(len(found))])
    whole_survey = survey_in_pieces(*table[:3], [(0, n_rows)], max_thresholds)[0]
    assert as_plain(survey) == as_plain(whole_survey)

    if survey.is_exact:
        in_memory = CodedTable(np.column_stack([each.values for each in columns]))
    else:
        in_memory = ParsedTable(None, columns, n_rows).code(max_thresholds, None)
    whole = np.array([pa.types.is_integer(each.type) for each in arrays])
    if n_rows < IDENTIFIER_ROWS and not survey.is_exact and "id" in kinds:
        with pytest.raises(IcscmError, match=r"2\*\*53"):  # in small tables nothing is left out
            describe_survey(survey)
        return
    described = describe_survey(survey)
    large = {j: why for j, why in described.dropped.items() if isinstance(columns[j], Numbers)}
    in_memory = replace(in_memory, dropped={**in_memory.dropped, **large})
    left_out = find_suspicious_surveyed(survey, described)
    declared = ParsedTable(None, columns, n_rows).declared
    assert left_out == find_suspicious(
        in_memory, labels, environments, whole=whole, declared=declared
    )
    described, in_memory = (
        replace(described, dropped=left_out),
        replace(in_memory, dropped=left_out),
    )
    assert described.levels == in_memory.levels
    assert described.list_types() == in_memory.list_types()

    hashes = np.concatenate(
        [hash_piece(read([each.slice(a, b - a) for each in arrays]), b - a, 2) for a, b in pieces]
    )
    if "id" in kinds and len({each.is_exact for each in found if each.n_rows}) > 1:
        return  # large whole numbers, exact in some pieces only: the sample is another one
    in_one_go = hash_rows(in_memory.values, in_memory.find_numbers(), 1)
    np.testing.assert_array_equal(hashes, in_one_go)
    rows = choose_sample(hashes)
    sample = {
        j: read_numbers(columns[j], survey.is_exact)[rows] for j in find_sampled(survey, described)
    }
    binned = plan_from_survey(survey, described, sample)
    source = make_memory_source(
        in_memory, labels, environments, environment_labels=(0, 1, 2), max_thresholds=max_thresholds
    )
    expected = source.columns
    np.testing.assert_array_equal(binned.offsets, expected.offsets)
    np.testing.assert_array_equal(binned.edges, expected.edges)
    np.testing.assert_array_equal(binned.has_missing, expected.has_missing)
    assert binned.sampled == expected.sampled
    assert binned.levels == expected.levels
    for column in range(binned.n_features):
        if len(binned.find_edges(column)):  # a constant makes no rule
            assert binned.find_range(column) == expected.find_range(column)

    features = [j for j in range(len(arrays)) if j not in left_out]
    coder = PieceCoder(binned, features)
    codes = [coder.code(read([each.slice(a, b - a) for each in arrays])) for a, b in pieces]
    np.testing.assert_array_equal(np.hstack(codes), PieceCoder(binned, features).code(columns))
    for k, j in enumerate(features):
        in_order = np.empty(n_rows, dtype=np.int64)
        store = source.piece.find_store(j)
        in_order[:] = 0 if store is None else store.find_codes(j)[source.position]
        np.testing.assert_array_equal(np.hstack(codes)[k], in_order)


def survey_one(column, n_rows, max_thresholds=50):
    groups = Groups(np.zeros(n_rows, dtype=np.int64), ("no",))
    return survey_piece([column], n_rows, groups, None, max_thresholds=max_thresholds)


def test_a_column_must_be_of_one_kind_in_all_pieces():
    text = survey_one(Levels(np.zeros(2, np.int32), ("a",)), 2)
    truth = survey_one(Levels(np.zeros(2, np.int32), (True,)), 2)
    whole = survey_one(Numbers(np.arange(2)), 2)
    number = survey_one(Numbers(np.arange(2.0)), 2)
    date = survey_one(Dates(), 2)
    kinds = [text, truth, whole, number, date]
    for a in kinds:
        for b in kinds:
            if a is not b:
                with pytest.raises(IcscmError, match=r"column 'age' holds .* in one piece"):
                    merge_surveys(a, b, ["age"])


def test_a_piece_without_rows_has_no_say():
    nothing = survey_one(Levels(np.zeros(0, np.int32), ()), 0)
    number = survey_one(Numbers(np.arange(2.0)), 2)
    assert merge_surveys(nothing, number) == number == merge_surveys(number, nothing)


def test_infinity_is_named():
    with pytest.raises(IcscmError, match="infinity in column 0"):
        survey_one(Numbers(np.array([1.0, -np.inf])), 2)


def test_identifiers_are_told_from_some_values():
    """Numbers that repeat twenty times are no identifier, though a sample of rows says so."""
    n_rows = 200_000
    once, often = np.arange(n_rows) * 3, np.arange(n_rows) % 10_000
    for values, expected in ((once, {0: "identifier"}), (often, {})):
        pieces = [survey_one(Numbers(part), len(part)) for part in np.split(values, 5)]
        survey = reduce(merge_surveys, pieces)
        assert as_plain(survey) == as_plain(reduce(merge_surveys, pieces[::-1]))
        found = find_suspicious_surveyed(survey, describe_survey(survey))
        assert found.keys() == expected.keys()


def test_levels_too_many_to_keep(monkeypatch):
    for module in (survey_module, survey_binning):
        monkeypatch.setattr(module, "MAX_SURVEYED_LEVELS", 100)
    codes = np.arange(1000, dtype=np.int32)
    for n_levels in (1000, 500):
        pieces = []
        for part in np.split(codes % n_levels, 4):
            present, own = np.unique(part, return_inverse=True)
            levels = tuple(f"{k:04}" for k in present)
            pieces.append(survey_one(Levels(own.astype(np.int32), levels), len(part)))
        survey = reduce(merge_surveys, pieces)
        assert as_plain(survey) == as_plain(reduce(merge_surveys, pieces[::-1]))
        table = describe_survey(survey)
        found = find_suspicious_surveyed(survey, table)
        assert len(found) == (n_levels == 1000)
        if not found:
            with pytest.raises(IcscmError, match="more than 100 levels"):
                plan_from_survey(survey, table, {})
