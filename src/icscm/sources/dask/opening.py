"""Dask collections made countable, one partition at a time.

    pass one     every partition: survey of its columns, hash of each row    icscm-survey
                 merged in a tree: kinds, levels, few values, the sample     icscm-merge
    pass two     values of the sampled rows, where a column needs them       icscm-sample
    pass three   every partition becomes a coded piece                       icscm-bin
    each step    rules out, counts back                             icscm-keep, -count, -sum

The collections are never repartitioned. The client receives a survey, thresholds and cubes. A
collection that is not persisted is read again in each pass.

Thresholds of columns with many values are quantiles of a sample of rows: those of lowest hash, as
`sampling.choose_sample` takes them. To choose it one must know how many rows have each hash, which
workers count and merge:

    hashes of partitions    3 5 5 8 | 5 9          3 and 5 are hashes of some rows' content
    merged                  3 5 8 9
    rows of each            1 3 1 1

Of more than `MAX_HASHES` different hashes, those are left out that begin with a one, then those
that begin with 01, and so on: adaptive sampling (Wegman; Flajolet, 1990). So the sample does not
depend on how rows are cut into partitions, and up to `MAX_HASHES` it is that of a table in memory.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from icscm._changes import data_by_name
from icscm._types import Array, Hashes, IntArray
from icscm.engine import sampling
from icscm.engine.binning import Binning
from icscm.engine.clusters import find_pairs
from icscm.engine.coding import PieceCoder
from icscm.engine.counts import SourceInfo
from icscm.engine.pieces import Block, Piece, make_piece, plan_blocks
from icscm.engine.sampling import Sample, SampledRows, hash_piece
from icscm.engine.stores import sort_rows
from icscm.engine.survey import Groups, Survey, merge_surveys, survey_piece
from icscm.engine.survey_binning import find_sampled, plan_from_survey
from icscm.exceptions import IcscmError, Parameter
from icscm.formatting import shorten_list
from icscm.sources.countable import SAMPLED, BinningConfig, Countable, describe_columns
from icscm.sources.dask.client import (
    DaskSource,
    PartitionedClusters,
    check_cluster,
    compute,
    map_tasks,
    merge_tasks,
)
from icscm.sources.dask.clustering import (
    ClusterLabel,
    ClusterNumbers,
    number_cluster_labels,
)
from icscm.sources.dask.frames import Partitions, align_partitions
from icscm.tables.coded import CodedTable
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
    """Check Dask collections and make their rows countable where they lie.

    Parameters
    ----------
    X : Dask DataFrame or array of shape (n_samples, n_features)
        The columns.
    y : Dask series or array
        Outcomes of two classes, partitioned at the same rows as X.
    environments : Dask series or array, optional
        The environment of each row, partitioned in the same way.
    groups : Dask series or array, optional
        Rows that belong together, such as the visits of a patient, partitioned in the same way.
        The label of each group is known here and to every worker.
    sample_weight : None
        Not supported: learn from a table in memory, or repeat rows.
    preparation : BinningConfig, optional
        How the table is read and binned; a learner's `prepare()`.

    Returns
    -------
    Countable
        The rows, for `fit_counts` of a learner.

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
    config = preparation or BinningConfig()
    reject_unsupported(sample_weight, config=config)
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    partitions = align_partitions(X, y, environments, groups)
    check_cluster()

    is_frame = not hasattr(X, "chunks")
    reader = make_reader(X, config, is_frame=is_frame)

    # Pass one: what the columns hold, and which outcomes and environments there are.
    surveyed = survey_partitions(reader, partitions)
    classes = find_classes(surveyed.survey, y)
    # The columns of an array have no types of their own.
    table = describe_columns(surveyed.survey, reader.names, config, has_types=is_frame)

    # Pass two, if some thresholds are quantiles of the sampled rows.
    binning = choose_binning(surveyed, table, reader=reader, partitions=partitions)

    # Pass three: every value becomes the number of its bin.
    info = SourceInfo(
        columns=binning,
        classes=classes.tolist(),
        environments=list_environments(surveyed.survey),
        notes=list_notes(binning, surveyed.sample),
    )
    clusters = None if groups is None else number_clusters(reader, partitions, info)
    source = code_partitions(reader, partitions, info, dropped=table.dropped, clusters=clusters)
    return Countable(
        source,
        table=table,
        names=reader.names,
        classes=classes,
        n_features=table.n_columns,
        has_environments=environments is not None,
        config=config,
    )


def reject_unsupported(sample_weight: Any, *, config: BinningConfig) -> None:
    """Raise if anything is asked for that Dask collections cannot give.

    How often a row is repeated for its weight depends on the weights of all partitions.
    """
    if sample_weight is not None:
        raise IcscmError("weights cannot be used with Dask collections; learn in memory instead")
    if config.device == "cuda":
        reason = " is for data on this machine, and Dask collections are counted where they are"
        raise IcscmError(
            Parameter("device", "cuda"), reason, "; leave ", Parameter("device", "cpu")
        )


def make_reader(X: Any, config: BinningConfig, *, is_frame: bool) -> "PartitionReader":
    """Make what reads the partitions of X; the columns of an array have no names."""
    return PartitionReader(
        columns=tuple(X.columns) if is_frame else None,
        names=find_names(X._meta) if is_frame else None,
        max_thresholds=config.max_thresholds,
    )


def list_environments(survey: Survey) -> tuple[Any, ...]:
    """List the environments of all partitions, in the order that every source gives them."""
    found = [*survey.environments]
    _, names = encode_environments(found, len(found))
    return names


def find_classes(survey: Survey, y: Any) -> Array:
    """Find the two classes among the outcomes of all partitions, in the type that y has.

    The survey holds them as objects of Python, which have lost a type such as int8.
    """
    import pandas

    distinct_outcomes = np.asarray(pandas.Index([*survey.labels], tupleize_cols=False))
    dtype = find_plain_dtype(y)
    if dtype is not None and dtype.kind in "biuf":
        distinct_outcomes = distinct_outcomes.astype(dtype)
    _, classes = check_labels(distinct_outcomes, len(distinct_outcomes))
    return classes


@dataclass(frozen=True)
class SurveyedPartitions:
    """All partitions after pass one: their survey, and the rows that place the quantiles."""

    survey: Survey
    sample: Sample


def survey_partitions(reader: "PartitionReader", partitions: Partitions) -> SurveyedPartitions:
    """Survey all partitions, and choose the sample: pass one. Raise if anything is missing.

        survey    each partition: what its columns hold, and the hashes of its rows
        merge     all of these, in a tree of tasks
        choose    the sample, from the hashes of all rows

    All three run on the cluster, so that only the survey and the sample are sent here.
    """
    scans = map_tasks(
        "survey",
        reader.scan,
        partitions.X,
        partitions.y,
        partitions.environments,
        partitions.numbers,
    )
    merged = merge_tasks("merge", partial(merge_scans, names=reader.names), scans)
    scan: SampledScan = compute(map_tasks("choose", keep_sampled, [merged]))[0]

    if scan.n_without_outcome:
        raise make_missing_error("y", f"{scan.n_without_outcome:,} rows", is_label=True)
    if scan.n_without_environment:
        n_rows = f"{scan.n_without_environment:,} rows"
        raise make_missing_error("environments", n_rows, is_label=False)
    assert scan.survey is not None, "nothing is missing"
    if scan.survey.n_rows == 0:
        raise IcscmError("Found array with 0 sample(s): X needs at least 1 sample")
    if not scan.survey.columns:
        raise IcscmError("Found array with 0 feature(s): X needs at least 1 feature")
    return SurveyedPartitions(scan.survey, scan.sample)


def choose_binning(
    surveyed: SurveyedPartitions,
    table: CodedTable,
    *,
    reader: "PartitionReader",
    partitions: Partitions,
) -> Binning:
    """Choose the thresholds; pass two reads the sampled rows' values where a column needs them.

    They are chosen on a worker, so that the sampled rows stay on the cluster.
    """
    survey = surveyed.survey
    sample = surveyed.sample
    sampled_columns = tuple(find_sampled(survey, table))
    if not sampled_columns:
        return plan_from_survey(survey, table, {})

    take = partial(reader.take, sample, sampled_columns)
    rows = map_tasks("sample", take, partitions.X, partitions.numbers)
    merged = merge_tasks("merge", sampling.merge_sampled, rows)
    values = map_tasks("choose", sample.repeat, [merged])
    plans = map_tasks("choose", partial(plan_from_survey, survey, table), values)
    binning: Binning = compute(plans)[0]
    return binning


def code_partitions(
    reader: "PartitionReader",
    partitions: Partitions,
    info: SourceInfo,
    *,
    dropped: Collection[int],
    clusters: PartitionedClusters | None,
) -> DaskSource:
    """Code all partitions on the cluster, without the columns to drop: pass three.

    A block holds columns that are counted together.
    """
    assert isinstance(info.columns, Binning)
    n_columns = info.columns.n_features
    is_kept = [column not in dropped for column in range(n_columns)]
    kept_columns = np.flatnonzero(is_kept).astype(np.int64)
    blocks = plan_blocks(info.columns, kept_columns, len(info.environments))
    pieces = map_tasks(
        "bin",
        partial(reader.code, blocks, info),
        partitions.X,
        partitions.y,
        partitions.environments,
        partitions.numbers,
    )
    return DaskSource(pieces, blocks, info, clusters)


def number_clusters(
    reader: "PartitionReader", partitions: Partitions, info: SourceInfo
) -> PartitionedClusters:
    """Number the clusters of all partitions: first their labels come here, then numbers go out."""
    labels_of_pieces = map_tasks(
        "clusters",
        reader.list_clusters,
        partitions.X,
        partitions.environments,
        partitions.groups,
        partitions.numbers,
    )
    merged = merge_tasks("merge", merge_cluster_labels, labels_of_pieces)
    found: FoundClusters = compute([merged])[0]
    if found.n_without_group:
        n_rows = f"{found.n_without_group:,} rows"
        raise make_missing_error("groups", n_rows, is_label=False)
    numbers = number_cluster_labels(set(found.labels), info.environments)
    codes = map_tasks(
        "cluster",
        partial(reader.code_clusters, info, numbers),
        partitions.X,
        partitions.y,
        partitions.environments,
        partitions.groups,
        partitions.numbers,
    )
    return PartitionedClusters(codes=codes, starts=numbers.starts)


class FoundClusters(NamedTuple):
    """The clusters that have rows in some partitions, and how many rows have no group."""

    labels: frozenset[ClusterLabel]
    n_without_group: int


def merge_cluster_labels(parts: Sequence[FoundClusters]) -> FoundClusters:
    """Merge the clusters of several partitions."""
    return FoundClusters(
        labels=frozenset().union(*(part.labels for part in parts)),
        n_without_group=sum(part.n_without_group for part in parts),
    )


def list_notes(binning: Binning, sample: Sample) -> list[str]:
    """List the remarks on the sample of rows that place the quantiles, if any do."""
    if not binning.sampled:
        return []
    if not sample.n_zero_bits:
        return [SAMPLED]
    return [SAMPLED, THINNED.format(sample.n_zero_bits)]


class HashCounts(NamedTuple):
    """How many rows have each hash, in ascending order of hashes.

    Only hashes that begin with at least `n_zero_bits` zero bits are in it: all, if that is 0. Like
    everything that workers send, it is a tuple, whose bytes Dask weighs before moving it.
    """

    hashes: Hashes
    n_rows: IntArray
    n_zero_bits: int = 0

    def thin(self, n_zero_bits: int) -> "HashCounts":
        """Keep the hashes that begin with at least so many zero bits."""
        largest_hash = np.uint64(2 ** (64 - n_zero_bits) - 1)
        n_kept = np.searchsorted(self.hashes, largest_hash, side="right")
        return HashCounts(self.hashes[:n_kept], self.n_rows[:n_kept], n_zero_bits)


def tally_hashes(hashes: Hashes, max_hashes: int = MAX_HASHES) -> HashCounts:
    """Count how often each hash occurs in a partition."""
    distinct_hashes, n_rows = np.unique(hashes, return_counts=True)
    counts = HashCounts(distinct_hashes, n_rows.astype(np.int64))
    return merge_hash_counts([counts], max_hashes)


def merge_hash_counts(parts: Sequence[HashCounts], max_hashes: int = MAX_HASHES) -> HashCounts:
    """Count how often each hash occurs in several partitions, for at most `max_hashes` hashes.

    As long as there are more, those that begin with the fewest zero bits are left out: about half.
    How many bits that takes depends on the different hashes of the whole only, not on how the rows
    are cut. Partitions are added one at a time, so that few hashes are sorted at once.
    """
    merged = HashCounts(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
    for part in parts:
        n_zero_bits = max(merged.n_zero_bits, part.n_zero_bits)
        merged = add_hash_counts(merged.thin(n_zero_bits), part.thin(n_zero_bits))
        while len(merged.hashes) > max_hashes:
            merged = merged.thin(merged.n_zero_bits + 1)
    return merged


def add_hash_counts(a: HashCounts, b: HashCounts) -> HashCounts:
    """Add up the rows of each hash; both have the same number of zero bits.

    Equal hashes are neighbours once all are sorted, and their rows are added up from the first on:

        sorted hashes of both    3 5 5 8
        rows of each             1 2 1 1
        first of equal ones      ^ ^   ^        so 5 has 3 rows
    """
    hashes = np.concatenate((a.hashes, b.hashes))
    n_rows = np.concatenate((a.n_rows, b.n_rows))
    order = np.argsort(hashes, kind="stable")  # quick with runs that are sorted already
    sorted_hashes = hashes[order]

    is_first = np.ones(len(sorted_hashes), dtype=np.bool_)
    is_first[1:] = sorted_hashes[1:] != sorted_hashes[:-1]
    firsts = np.flatnonzero(is_first)
    return HashCounts(
        hashes=sorted_hashes[firsts],
        n_rows=np.add.reduceat(n_rows[order], firsts),
        n_zero_bits=a.n_zero_bits,
    )


def choose_rows(counts: HashCounts) -> Sample:
    """Choose the rows of the sample, by how many rows have each hash."""
    hash_of_row = np.repeat(counts.hashes, counts.n_rows)
    sampled_rows = sampling.choose_sample(hash_of_row)
    return Sample.make(hash_of_row[sampled_rows], counts.n_zero_bits)


# Different outcomes, or environments, that one partition may hold: far more than can be compared.
MAX_GROUPS = 2**12


class Scan(NamedTuple):
    """What pass one finds in some partitions; no survey if rows lack outcome or environment."""

    survey: Survey | None
    n_without_outcome: int
    n_without_environment: int
    hashes: HashCounts


class SampledScan(NamedTuple):
    """What pass one finds in all partitions, with the sample instead of the hashes of all rows."""

    survey: Survey | None
    n_without_outcome: int
    n_without_environment: int
    sample: Sample


class ReadRows(NamedTuple):
    """The columns of one partition."""

    columns: list[Column]
    n_rows: int


class ReadGroups(NamedTuple):
    """The outcome, or the environment, of each row of one partition."""

    groups: Groups
    n_missing: int


@dataclass(frozen=True)
class PartitionReader:
    """Reads a partition in each of the three passes; it is sent to the workers as their function.

    `columns` are those of a frame, `names` their names in rules; both are None for an array. The
    arguments of its methods are one partition of each collection, and its number for messages.
    """

    columns: tuple[Any, ...] | None
    names: tuple[str, ...] | None
    max_thresholds: int | None

    def scan(self, X: Any, y: Any, environments: Any, number: int) -> Scan:
        """Survey one partition, and hash its rows: pass one."""
        rows = self.read(X, number)
        outcomes = read_groups(y, rows.n_rows, what="y", number=number)
        environment_of_row = read_groups(
            environments, rows.n_rows, what="environments", number=number
        )

        # Where something is missing, `survey_partitions` raises once all partitions are scanned.
        survey = None
        if outcomes.n_missing == 0 and environment_of_row.n_missing == 0:
            survey = survey_piece(
                rows.columns,
                rows.n_rows,
                outcomes.groups,
                environment_of_row.groups,
                max_thresholds=self.max_thresholds,
                names=self.names,
            )
        return Scan(
            survey=survey,
            n_without_outcome=outcomes.n_missing,
            n_without_environment=environment_of_row.n_missing,
            hashes=tally_hashes(hash_piece(rows.columns, rows.n_rows)),
        )

    def read(self, X: Any, number: int) -> ReadRows:
        """Read the columns of one partition; raise if a frame has others than expected."""
        if self.columns is None:
            array = np.asfortranarray(X)
            columns = [read_array(array[:, j], f"column {j}") for j in range(X.shape[1])]
            return ReadRows(columns, len(X))

        if tuple(X.columns) != self.columns:
            names = shorten_list([repr(name) for name in X.columns])
            expected = shorten_list([repr(name) for name in self.columns])
            raise IcscmError(
                f"partition {number} of X has the columns {names}, but {expected} were expected; "
                "all partitions must have the same"
            )
        frame = open_frame(X)
        columns = [read_series(frame[:, j]) for j in range(len(self.columns))]
        return ReadRows(columns, len(X))

    def take(
        self, sample: Sample, sampled_columns: Sequence[int], X: Any, number: int
    ) -> SampledRows:
        """Take the sampled rows' values of some columns from one partition: pass two.

        A row is in the sample if its hash is; so rows are hashed once more.
        """
        rows = self.read(X, number)
        hashes = hash_piece(rows.columns, rows.n_rows)
        sampled_rows = sample.find_rows(hashes)
        return sampling.take_rows(rows.columns, sampled_columns, hashes, sampled_rows)

    def code(
        self,
        blocks: Sequence[Block],
        info: SourceInfo,
        X: Any,
        y: Any,
        environments: Any,
        number: int,
    ) -> Piece:
        """Code one partition, and sort its rows by outcome and environment: pass three."""
        rows = self.read(X, number)
        outcomes = read_groups(y, rows.n_rows, what="y", number=number)
        environment_of_row = read_groups(
            environments, rows.n_rows, what="environments", number=number
        )
        return make_piece(
            code_columns(rows, blocks, info),
            _number_rows(outcomes.groups, info.classes),
            _number_rows(environment_of_row.groups, info.environments),
            len(info.environments),
            blocks,
        )

    def list_clusters(self, X: Any, environments: Any, groups: Any, number: int) -> FoundClusters:
        """List the clusters that have rows in one partition, by the labels of both."""
        pairs = self._read_pairs(X, environments, groups, number)
        if pairs.n_missing:
            return FoundClusters(frozenset(), pairs.n_missing)
        return FoundClusters(frozenset(pairs.labels), n_without_group=0)

    def code_clusters(
        self,
        info: SourceInfo,
        numbers: ClusterNumbers,
        X: Any,
        y: Any,
        environments: Any,
        groups: Any,
        number: int,
    ) -> IntArray:
        """Return the cluster of each row of one partition, in the order of its piece.

        A *cluster* is an environment and a group: rows that are not independent. Its number is the
        same in all partitions (`numbers`). The *piece* of a partition, which `code` makes, has the
        rows sorted by outcome and environment; the clusters must be in that order too, as they are
        counted beside it. With clusters 7 (site a, patient 1) and 8 (site a, patient 2):

            row of the partition      0  1  2
            patient                   1  2  1
            cluster_of_row            7  8  7
            outcome                   1  0  0
            position in the piece     2  0  1
            returned                  8  7  7
        """
        pairs = self._read_pairs(X, environments, groups, number)
        cluster_of_pair = [numbers.number_of_label[label] for label in pairs.labels]
        cluster_of_row = np.array(cluster_of_pair, dtype=np.int64).take(pairs.pair_of_row)

        # The same order as that of the piece: `code` sorts by these numbers, too.
        n_rows = len(cluster_of_row)
        outcomes = read_groups(y, n_rows, what="y", number=number)
        environment_of_row = read_groups(environments, n_rows, what="environments", number=number)
        position_in_piece, _ = sort_rows(
            outcomes=_number_rows(outcomes.groups, info.classes),
            environments=_number_rows(environment_of_row.groups, info.environments),
            n_environments=len(info.environments),
        )

        cluster_in_piece = np.empty(n_rows, dtype=np.int64)
        cluster_in_piece[position_in_piece] = cluster_of_row
        return cluster_in_piece

    def _read_pairs(self, X: Any, environments: Any, groups: Any, number: int) -> "ReadPairs":
        """Read the environment and the group of each row of one partition, as a pair.

        Pairs are numbered within the partition; their labels are the same in all partitions.
        """
        n_rows = len(X)
        environment_of_row = read_groups(environments, n_rows, what="environments", number=number)
        group_of_row = read_groups(groups, n_rows, what="groups", number=number, max_distinct=None)
        if group_of_row.n_missing:
            no_pair = np.empty(0, dtype=np.int64)
            return ReadPairs(no_pair, labels=[], n_missing=group_of_row.n_missing)
        pairs = find_pairs(
            environment_of_row.groups.codes,
            group_of_row.groups.codes,
            n_seconds=max(len(group_of_row.groups.values), 1),
        )
        labels = [
            (environment_of_row.groups.values[first], group_of_row.groups.values[second])
            for first, second in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        ]
        return ReadPairs(pairs.number_of_row, labels=labels, n_missing=0)


class ReadPairs(NamedTuple):
    """The pair of environment and group of each row of one partition.

    `pair_of_row[i]` is a position in `labels`, which has the labels of each pair that occurs; rows
    are in the order of the partition. Where `n_missing` rows have no group, there are no pairs.
    """

    pair_of_row: IntArray
    labels: list[ClusterLabel]
    n_missing: int


def code_columns(rows: ReadRows, blocks: Sequence[Block], info: SourceInfo) -> dict[int, Array]:
    """Code the columns of some blocks: the bin of each row, by column."""
    columns = sorted(int(column) for block in blocks for column in block.columns)
    if rows.n_rows == 0:  # the kinds of columns are unknown
        return dict.fromkeys(columns, np.empty(0, dtype=np.uint8))
    assert isinstance(info.columns, Binning)
    codes = PieceCoder(info.columns, columns).code(rows.columns)
    return dict(zip(columns, codes, strict=True))


def read_groups(
    values: Any, n_rows: int, *, what: str, number: int, max_distinct: int | None = MAX_GROUPS
) -> ReadGroups:
    """Number the outcomes, the environments, or the groups, of one partition's rows.

    Missing ones get the number -1, and are counted. Without environments (None) all rows are in the
    same one. `what` and `number`, that of the partition, are for errors.
    """
    import pandas

    if values is None:
        codes_of_rows = np.zeros(n_rows, dtype=np.int64)
        return ReadGroups(Groups(codes_of_rows, [ALL_SAMPLES]), n_missing=0)

    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        # as floats, which hold missing values, large whole numbers would become others
        array = np.asarray(values, dtype=object)
    else:
        array = np.asarray(values)

    if len(array) != n_rows:
        raise IcscmError(
            f"{what} has {len(array):,} rows in partition {number}, but X has {n_rows:,}; "
            "they must be partitioned at the same rows"
        )
    codes, distinct_values = factorize(array, what)
    if max_distinct is not None and len(distinct_values) > max_distinct:
        raise IcscmError(
            f"{what} holds {len(distinct_values):,} different labels in partition {number}; "
            f"at most {max_distinct:,} are supported"
        )
    groups = Groups(codes, pandas.Index(distinct_values).tolist())
    return ReadGroups(groups, n_missing=int((codes < 0).sum()))


def merge_scans(scans: Sequence[Scan], names: Sequence[str] | None) -> Scan:
    """Merge the scans of several partitions; there is no survey if one of them has none."""
    surveys = [scan.survey for scan in scans if scan.survey is not None]
    survey = None
    if len(surveys) == len(scans):
        survey = reduce(partial(merge_surveys, names=names), surveys)
    return Scan(
        survey=survey,
        n_without_outcome=sum(scan.n_without_outcome for scan in scans),
        n_without_environment=sum(scan.n_without_environment for scan in scans),
        hashes=merge_hash_counts([scan.hashes for scan in scans]),
    )


def keep_sampled(scan: Scan) -> SampledScan:
    """Replace the hashes of all rows by the sample, which is all that the client needs."""
    return SampledScan(
        survey=scan.survey,
        n_without_outcome=scan.n_without_outcome,
        n_without_environment=scan.n_without_environment,
        sample=choose_rows(scan.hashes),
    )


def _number_rows(groups: Groups, values: Sequence[Any]) -> IntArray:
    """Number each row's group by its position among the groups of all partitions.

    The partition numbers those that it has itself: its group 0 may be group 3 of all.
    """
    position_of_value = {value: position for position, value in enumerate(values)}
    position_of_group = [position_of_value[value] for value in groups.values]
    return np.array(position_of_group, dtype=np.int64).take(groups.codes)
