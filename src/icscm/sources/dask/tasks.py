"""What workers do with one partition, and how their answers are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from icscm._types import Array, IntArray
from icscm.engine.binning import Binning, plan_from_survey
from icscm.engine.coding import PieceCoder
from icscm.engine.counts import SourceInfo
from icscm.engine.pieces import Block, Piece, make_piece
from icscm.engine.sampling import Sample, SampledRows, hash_piece, take_rows
from icscm.engine.survey import Groups, Survey, merge_surveys, survey_piece
from icscm.exceptions import IcscmError
from icscm.formatting import shorten_list
from icscm.sources.dask.picking import HashCounts, choose_rows, merge_hash_counts, tally_hashes
from icscm.tables.coded import CodedTable
from icscm.tables.columns import Column, open_frame, read_array, read_series
from icscm.tables.errors import make_unhashable_error

# Different labels, or environments, that one partition may hold: far more than can be compared.
MAX_GROUPS = 2**12


@dataclass(frozen=True)
class Look:
    """What pass one finds in some partitions; the survey is None where labels are missing.

    In the end which rows are the sample takes the place of all hashes.
    """

    survey: Survey | None
    n_missing: tuple[int, int]
    hashes: HashCounts | Sample


@dataclass(frozen=True)
class Reader:
    """Reads partitions. `columns` are those of a frame, `names` what they are called in rules."""

    columns: tuple[Any, ...] | None
    names: tuple[str, ...] | None
    max_thresholds: int | None

    def look(self, X: Any, y: Any, environments: Any, number: int) -> Look:
        """Pass one over one partition."""
        columns, n_rows = self.read(X, number)
        labels, n_no_label = read_groups(y, n_rows, "y", number)
        places, n_no_place = None, 0
        if environments is not None:
            places, n_no_place = read_groups(environments, n_rows, "environments", number)
        hashes = tally_hashes(hash_piece(columns, n_rows))
        if n_no_label or n_no_place:
            return Look(None, (n_no_label, n_no_place), hashes)
        survey = survey_piece(
            columns, n_rows, labels, places, max_thresholds=self.max_thresholds, names=self.names
        )
        return Look(survey, (0, 0), hashes)

    def read(self, X: Any, number: int) -> tuple[list[Column], int]:
        """The columns of one partition."""
        if self.columns is None:
            array = np.asfortranarray(X)
            return [read_array(array[:, j], f"column {j}") for j in range(X.shape[1])], len(X)
        if tuple(X.columns) != self.columns:
            found, wanted = [repr(name) for name in X.columns], [repr(n) for n in self.columns]
            raise IcscmError(
                f"partition {number} of X has the columns {shorten_list(found)}, where "
                f"{shorten_list(wanted)} were expected; all partitions must have the same"
            )
        frame = open_frame(X)
        return [read_series(frame[:, j]) for j in range(len(self.columns))], len(X)

    def take(self, sample: Sample, wanted: Sequence[int], X: Any, number: int) -> SampledRows:
        """Pass two over one partition: the sampled rows' values of some columns."""
        columns, n_rows = self.read(X, number)
        hashes = hash_piece(columns, n_rows)
        return take_rows(columns, wanted, hashes, sample.find_rows(hashes))

    def code(
        self,
        blocks: Sequence[Block],
        info: SourceInfo,
        X: Any,
        y: Any,
        environments: Any,
        number: int,
    ) -> Piece:
        """Pass three over one partition."""
        columns, n_rows = self.read(X, number)
        labels = _number(read_groups(y, n_rows, "y", number)[0], info.classes)
        places = np.zeros(n_rows, dtype=np.int64)
        if environments is not None:
            groups, _ = read_groups(environments, n_rows, "environments", number)
            places = _number(groups, info.environments)
        features = sorted(int(j) for block in blocks for j in block.features)
        codes: dict[int, Array] = dict.fromkeys(features, np.empty(0, dtype=np.uint8))
        if n_rows:  # of a partition without rows the kinds of columns are unknown
            assert isinstance(info.candidates, Binning)
            found = PieceCoder(info.candidates, features).code(columns)
            codes = dict(zip(features, found, strict=True))
        return make_piece(codes, labels, places, len(info.environments), blocks)


def read_groups(values: Any, n_rows: int, what: str, number: int) -> tuple[Groups, int]:
    """The labels of one partition's rows, and in how many rows they are missing."""
    import pandas

    is_extension = isinstance(getattr(values, "dtype", None), pandas.api.extensions.ExtensionDtype)
    # else missing values would turn whole numbers into others
    array = np.asarray(values, dtype=object) if is_extension else np.asarray(values)
    if len(array) != n_rows:
        raise IcscmError(
            f"{what} has {len(array):,} rows in partition {number}, where X has {n_rows:,}; they "
            "must be cut at the same rows"
        )
    try:
        codes, found = pandas.factorize(array)
    except TypeError:
        raise make_unhashable_error(what) from None
    if len(found) > MAX_GROUPS:
        raise IcscmError(
            f"{what} holds {len(found):,} different labels in partition {number}; "
            f"{MAX_GROUPS:,} are the most that can be told apart"
        )
    return Groups(codes, pandas.Index(found).tolist()), int((codes < 0).sum())


def merge_looks(looks: Sequence[Look], names: Sequence[str] | None) -> Look:
    """Pass one over several partitions."""
    surveys = [look.survey for look in looks if look.survey is not None]
    is_whole = len(surveys) == len(looks)
    return Look(
        reduce(partial(merge_surveys, names=names), surveys) if is_whole else None,
        (sum(look.n_missing[0] for look in looks), sum(look.n_missing[1] for look in looks)),
        merge_hash_counts([look.hashes for look in looks if isinstance(look.hashes, HashCounts)]),
    )


def keep_sampled(look: Look) -> Look:
    """What the client needs to know: of all the hashes only those of the sample."""
    assert isinstance(look.hashes, HashCounts)
    return replace(look, hashes=choose_rows(look.hashes))


def choose_thresholds(
    survey: Survey, table: CodedTable, sample: Sample, rows: SampledRows
) -> Binning:
    """The thresholds, so that the sampled rows need not leave the cluster."""
    return plan_from_survey(survey, table, sample.repeat(rows))


def _number(groups: Groups, labels: Sequence[Any]) -> IntArray:
    """The place of each row's label among all labels."""
    place = {label: i for i, label in enumerate(labels)}
    numbers = np.array([place[value] for value in groups.values], dtype=np.int64)
    found: IntArray = numbers[groups.codes]
    return found
