"""Dask collections made countable, one partition at a time.

    pass one     every partition: survey of its columns, hash of each row    icscm-survey
                 merged in a tree: kinds, levels, few values, the sample     icscm-merge
    pass two     values of the sampled rows, where a column needs them       icscm-sample
    pass three   every partition becomes a coded piece                       icscm-bin
    each step    rules out, counts back                             icscm-keep, -count, -sum

The collections are never repartitioned. The client receives a survey, thresholds and cubes. A
collection that is not persisted is read again in each pass.

The sample places the quantiles. Rows of equal content are told apart by their number, as
`sampling.choose_sample` does, so only the number of rows of each content must be known. Up to
`MAX_HASHES` different contents the sample is that of a table in memory; of more, only those count
whose hash begins with enough zero bits, however the rows are cut into partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from icscm._changes import data_by_name
from icscm._types import Hashes, IntArray
from icscm.engine import sampling
from icscm.engine.binning import Binning, find_sampled, plan_from_survey
from icscm.engine.coding import PieceCoder
from icscm.engine.counts import SourceInfo
from icscm.engine.pieces import Block, Piece, make_piece, plan_blocks
from icscm.engine.sampling import Sample, SampledRows, hash_piece
from icscm.engine.survey import Groups, Survey, merge_surveys, survey_piece
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import shorten_list
from icscm.sources.countable import SAMPLED, BinningConfig, Countable, describe_columns
from icscm.sources.dask.client import DaskSource, check_cluster, compute, map_tasks, merge_tasks
from icscm.sources.dask.frames import align_partitions
from icscm.tables.columns import Column, find_names, open_frame, read_array, read_series
from icscm.tables.environments import ALL_SAMPLES, encode_environments, take_environments
from icscm.tables.errors import make_missing_error
from icscm.tables.labels import check_labels, factorize, find_plain_dtype

# Contents that are merged: 256 MB, most of what one task should hold.
MAX_HASHES = 2**24
THINNED = (
    f"The sample is drawn from rows whose hash begins with {{}} zero bits, since more than "
    f"{MAX_HASHES:,} rows differ. In memory it would be drawn from all rows."
)


@data_by_name
def open_dask(
    X: Any,
    y: Any,
    *,
    environments: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    preparation: BinningConfig | None = None,
) -> Countable[DaskSource]:
    """Check Dask collections and make them countable where they lie.

    Parameters
    ----------
    X : Dask DataFrame or array of shape (n_samples, n_features)
        The features.
    y : Dask series or array
        Labels of two classes, partitioned at the same rows as X.
    environments : Dask series or array, optional
        The environment of each row, partitioned in the same way.
    sample_weight : None
        Not supported: learn from a table in memory, or repeat rows.
    groups : None
        Not supported: learn from files (`fit_dataset`, `icscm fit`) instead.
    preparation : BinningConfig, optional
        How the table is read and binned; a learner's `prepare()`.

    Returns
    -------
    Countable
        The samples, for `fit_counts` of a learner.

    Raises
    ------
    IcscmError
        If the partitions of the collections differ, or the cluster fails.

    Examples
    --------
    >>> from dask.dataframe import from_pandas
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.sources import open_dask
    >>> data = make_conjunction(random_state=1)
    >>> table = from_pandas(data.X.assign(y=data.y, site=data.environments), npartitions=2)
    >>> countable = open_dask(table[["A1", "A2", "C1"]], table["y"], environments=table["site"])
    >>> print(ICSCMClassifier().fit_counts(countable).model_)
    A1 > 0 and A2 > 0
    """
    import pandas

    config = preparation or BinningConfig()
    if sample_weight is not None:
        raise IcscmError("weights cannot be used with Dask collections; learn in memory instead")
    if groups is not None:
        raise IcscmError("groups cannot be used with Dask collections; use files and fit_dataset")
    if config.device == "cuda":
        here, there = (Parameter("device", each) for each in ("cpu", "cuda"))
        reason = " is for data on this machine, and Dask collections are counted where they are"
        raise IcscmError(there, reason, "; leave ", here)
    X, environments = take_environments(X, environments)
    parts = align_partitions(X, y, environments)
    check_cluster()
    has_types = not hasattr(X, "chunks")
    columns, names = (tuple(X.columns), find_names(X._meta)) if has_types else (None, None)
    reader = Reader(columns, names, config.max_thresholds)
    survey, sample = survey_partitions(reader, parts)
    labels = np.asarray(pandas.Index([*survey.labels], tupleize_cols=False))
    dtype = find_plain_dtype(y)
    labels = labels.astype(dtype) if dtype is not None and dtype.kind in "biuf" else labels
    classes = check_labels(labels, len(labels))[1]
    places = encode_environments([*survey.environments], len(survey.environments))[1]
    table = describe_columns(survey, names, config, has_types=has_types)
    sampled = tuple(find_sampled(survey, table))
    if sampled:
        rows = map_tasks("sample", partial(reader.take, sample, sampled), parts[0], parts[3])
        merged = merge_tasks("merge", sampling.merge_sampled, rows)
        # on a worker, so that the sampled rows stay on the cluster
        values = map_tasks("choose", sample.repeat, [merged])
        (binning,) = compute(map_tasks("choose", partial(plan_from_survey, survey, table), values))
    else:
        binning = plan_from_survey(survey, table, {})
    features = np.array([j for j in range(table.n_columns) if j not in table.dropped])
    blocks = plan_blocks(binning, features.astype(np.int64), len(places))
    notes = [SAMPLED] * binning.sampled
    if binning.sampled and sample.n_zero_bits:
        notes.append(THINNED.format(sample.n_zero_bits))
    info = SourceInfo(binning, classes.tolist(), places, notes)
    pieces = map_tasks("bin", partial(reader.code, blocks, info), *parts)
    source, size = DaskSource(pieces, blocks, info), (table.n_columns, environments is not None)
    return Countable(source, table, names, classes, *size, config=config)


def survey_partitions(reader: "Reader", parts: Any) -> tuple[Survey, Sample]:
    """Pass one."""
    scans = map_tasks("survey", reader.scan, *parts)
    merged = merge_tasks("merge", partial(merge_scans, names=reader.names), scans)
    survey, n_missing, sample = compute(map_tasks("choose", keep_sampled, [merged]))[0]
    for what, n_rows in zip(("y", "environments"), n_missing.tolist(), strict=True):
        if n_rows:
            raise make_missing_error(what, f"{n_rows:,} rows", is_label=what == "y")
    if survey.n_rows == 0 or not survey.columns:
        what = "feature" if survey.n_rows else "sample"
        raise IcscmError(f"Found array with 0 {what}(s): X needs at least 1 {what}")
    return survey, sample


class HashCounts(NamedTuple):
    """How many rows have each hash, ascending; only hashes that begin with so many zero bits."""

    hashes: Hashes
    n_rows: IntArray
    n_zero_bits: int = 0

    def thin(self, n_zero_bits: int) -> "HashCounts":
        """Those that begin with at least so many zero bits."""
        last = np.searchsorted(self.hashes, np.uint64(2 ** (64 - n_zero_bits) - 1), side="right")
        return HashCounts(self.hashes[:last], self.n_rows[:last], n_zero_bits)


def tally_hashes(hashes: Hashes, most: int = MAX_HASHES) -> "HashCounts":
    """How often each hash occurs in a piece."""
    found, n_rows = np.unique(hashes, return_counts=True)
    return merge_hash_counts([HashCounts(found, n_rows.astype(np.int64))], most)


def merge_hash_counts(parts: "Sequence[HashCounts]", most: int = MAX_HASHES) -> "HashCounts":
    """How often each hash occurs in several pieces: at most so many, with the fewest zero bits.

    That number of bits is the same however the rows are cut: it depends on the different hashes
    of the whole. Pieces are added one at a time, so that few hashes are sorted.
    """
    merged = HashCounts(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
    for part in parts:
        n_zero_bits = max(merged.n_zero_bits, part.n_zero_bits)
        both = merged.thin(n_zero_bits), part.thin(n_zero_bits)
        hashes, n_rows = (np.concatenate([each[k] for each in both]) for k in (0, 1))
        order = np.argsort(hashes, kind="stable")  # quick with runs that are sorted already
        starts = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
        n_rows = np.add.reduceat(n_rows[order], starts)
        merged = HashCounts(hashes[order[starts]], n_rows, n_zero_bits)
        while len(merged.hashes) > most:
            merged = merged.thin(merged.n_zero_bits + 1)
    return merged


def choose_rows(counts: "HashCounts") -> Sample:
    """The rows of the sample."""
    rows = np.repeat(counts.hashes, counts.n_rows)
    return Sample.make(rows[sampling.choose_sample(rows)], counts.n_zero_bits)


# Different labels, or environments, that one partition may hold: far more than can be compared.
MAX_GROUPS = 2**12


# Pass one over some partitions: the survey (None where labels are missing), the numbers of rows in
# which labels and environments are missing, and the hashes.
Scan = tuple[Survey | None, IntArray, HashCounts]


@dataclass(frozen=True)
class Reader:
    """Reads partitions: `columns` are those of a frame, `names` their names in rules."""

    columns: tuple[Any, ...] | None
    names: tuple[str, ...] | None
    max_thresholds: int | None

    def scan(self, X: Any, y: Any, environments: Any, number: int) -> Scan:
        """Pass one over one partition."""
        columns, n_rows = self.read(X, number)
        labels, n_no_label = read_groups(y, n_rows, "y", number)
        places, n_no_place = read_groups(environments, n_rows, "environments", number)
        survey, most = None, self.max_thresholds
        if n_no_label == n_no_place == 0:
            own = columns, n_rows, labels, places
            survey = survey_piece(*own, max_thresholds=most, names=self.names)
        hashes = tally_hashes(hash_piece(columns, n_rows))
        return survey, np.array([n_no_label, n_no_place]), hashes

    def read(self, X: Any, number: int) -> tuple[list[Column], int]:
        """The columns of one partition."""
        if self.columns is None:
            array = np.asfortranarray(X)
            return [read_array(array[:, j], f"column {j}") for j in range(X.shape[1])], len(X)
        if tuple(X.columns) != self.columns:
            found, wanted = [repr(name) for name in X.columns], [repr(n) for n in self.columns]
            why = f"partition {number} of X has the columns {shorten_list(found)}"
            expected = f"{shorten_list(wanted)} were expected; all partitions must have the same"
            raise IcscmError(f"{why}, but {expected}")
        frame = open_frame(X)
        return [read_series(frame[:, j]) for j in range(len(self.columns))], len(X)

    def take(self, sample: Sample, wanted: Sequence[int], X: Any, number: int) -> SampledRows:
        """Pass two over one partition: the sampled rows' values of some columns."""
        columns, n_rows = self.read(X, number)
        hashes = hash_piece(columns, n_rows)
        return sampling.take_rows(columns, wanted, hashes, sample.find_rows(hashes))

    def code(self, blocks: Sequence[Block], info: SourceInfo, *part: Any) -> Piece:
        """Pass three over one partition: X, y, environments and number."""
        X, y, environments, number = part
        columns, n_rows = self.read(X, number)
        labels = _number(read_groups(y, n_rows, "y", number)[0], info.classes)
        groups, _ = read_groups(environments, n_rows, "environments", number)
        places = _number(groups, info.environments)
        features = sorted(int(j) for block in blocks for j in block.features)
        found: Any = [np.empty(0, dtype=np.uint8)] * len(features)
        if n_rows:  # of a partition without rows the kinds of columns are unknown
            assert isinstance(info.columns, Binning)
            found = PieceCoder(info.columns, features).code(columns)
        codes = dict(zip(features, found, strict=True))
        return make_piece(codes, labels, places, len(info.environments), blocks)


def read_groups(values: Any, n_rows: int, what: str, number: int) -> tuple[Groups, int]:
    """The labels of one partition's rows, and in how many rows they are missing."""
    import pandas

    if values is None:
        return Groups(np.zeros(n_rows, dtype=np.int64), [ALL_SAMPLES]), 0
    is_extension = isinstance(getattr(values, "dtype", None), pandas.api.extensions.ExtensionDtype)
    # else missing values would turn whole numbers into others
    array = np.asarray(values, dtype=object) if is_extension else np.asarray(values)
    if len(array) != n_rows:
        why = f"{what} has {len(array):,} rows in partition {number}, but X has {n_rows:,}"
        raise IcscmError(f"{why}; they must be partitioned at the same rows")
    codes, found = factorize(array, what)
    if len(found) > MAX_GROUPS:
        why = f"{what} holds {len(found):,} different labels in partition {number}"
        raise IcscmError(f"{why}; at most {MAX_GROUPS:,} are supported")
    return Groups(codes, pandas.Index(found).tolist()), int((codes < 0).sum())


def merge_scans(scans: Sequence[Scan], names: Sequence[str] | None) -> Scan:
    """Pass one over several partitions."""
    found, n_missing, hashes = zip(*scans, strict=True)
    survey = None if None in found else reduce(partial(merge_surveys, names=names), found)
    return survey, np.sum(n_missing, axis=0), merge_hash_counts(hashes)


def keep_sampled(scan: Scan) -> tuple[Survey | None, IntArray, Sample]:
    """The scan with the hashes of the sample only, which are all that the client needs."""
    return *scan[:2], choose_rows(scan[2])


def _number(groups: Groups, labels: Sequence[Any]) -> IntArray:
    """The place of each row's label among all labels."""
    place = {label: i for i, label in enumerate(labels)}
    return np.array([place[value] for value in groups.values], dtype=np.int64).take(groups.codes)
