"""Dask collections in, counts out: what `fit` does where the table is cut into partitions.

    pass one     every partition: survey of its columns, hash of each row    icscm-survey
                 merged in a tree: kinds, levels, few values, the sample     icscm-merge
    pass two     values of the sampled rows, where a column needs them       icscm-sample
    pass three   every partition becomes a coded piece                       icscm-bin
    each step    rules out, counts back                             icscm-keep, -count, -sum

The collections are never repartitioned. What comes to the client is a survey, thresholds and
cubes. A collection that is not persisted is read again in each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from icscm import __version__
from icscm.columns import CodedTable
from icscm.engine.binning import Binning
from icscm.engine.cluster import (
    NO_PACKAGE,
    DaskSource,
    TaskNames,
    compute,
    explain_failures,
    find_client,
    map_tasks,
    merge_tasks,
)
from icscm.engine.memory import SAMPLED
from icscm.engine.picking import (
    MAX_HASHES,
    HashCounts,
    Sample,
    SampledRows,
    choose_rows,
    find_rows,
    merge_hash_counts,
    merge_sampled,
    repeat_copies,
    tally_hashes,
)
from icscm.engine.pieces import Block, Piece, make_piece, plan_blocks
from icscm.engine.survey import (
    Groups,
    PieceCoder,
    Survey,
    describe_survey,
    find_sampled,
    find_suspicious,
    hash_piece,
    merge_surveys,
    plan_from_survey,
    read_numbers,
    survey_piece,
)
from icscm.environments import encode_environments
from icscm.exceptions import IcscmError
from icscm.intake import leave_out, refuse_missing
from icscm.table import Column, Numbers, is_dask, open_frame, read_array, read_series
from icscm.text import shorten_list
from icscm.validation import check_labels

Array = NDArray[Any]

# Stands for "everything" where no environments were given.
ALL_SAMPLES = "all"
# Different labels, or environments, that one partition may hold: far more than can be compared.
MAX_GROUPS = 2**12
# Seconds to wait for a scheduler to answer.
PATIENCE = 10

THINNED = (
    f"The sample comes from rows whose hash begins with {{}} zero bits: more than {MAX_HASHES:,} "
    "different rows are too many to pick from. In memory it would come from all."
)


# --- what was given ----------------------------------------------------------


@dataclass(frozen=True)
class Partitions:
    """Aligned partitions, each a delayed task, and an empty table of X's kind.

    `columns` are the names of a frame's columns; None for an array.
    """

    meta: Any
    columns: tuple[Any, ...] | None
    X: list[Delayed]
    y: list[Delayed]
    environments: list[Any]


def align_partitions(X: Any, y: Any, environments: Any, sample_weight: Any) -> Partitions:
    """Check that the collections are cut at the same rows, as far as that can be told unread."""
    if sample_weight is not None:
        raise IcscmError("sample_weight cannot be used with Dask collections; repeat rows instead")
    if X.ndim != 2:
        raise IcscmError(f"X must be a table, got a Dask collection of {X.ndim} dimension(s)")
    is_array = hasattr(X, "chunks")
    if is_array and X.numblocks[1] > 1:
        raise IcscmError(
            f"the columns of X are cut into {X.numblocks[1]} chunks, and rows must be whole; call "
            "X = X.rechunk({1: -1}) first"
        )
    if is_array and X.dtype.kind not in "biuf":
        raise IcscmError(f"X is a Dask array of type {X.dtype}; give numbers, or a Dask DataFrame")
    pieces = _list_pieces(X)
    others = {"y": y, "environments": environments}
    for what, values in others.items():
        if values is not None or what == "y":
            _check_aligned(what, values, X, len(pieces))
    return Partitions(
        np.empty((0, X.shape[1]), X.dtype) if is_array else X._meta,
        None if is_array else tuple(X.columns),
        pieces,
        _list_pieces(y),
        [None] * len(pieces) if environments is None else _list_pieces(environments),
    )


def _list_pieces(collection: Any) -> list[Delayed]:
    if hasattr(collection, "chunks"):
        return list(np.ravel(collection.to_delayed()))
    # reads only the columns that are used, and stops there: Dask would also join small files, as
    # many as the columns allow, and so cut y at other rows than X
    pieces: list[Delayed] = collection.simplify().to_delayed(optimize_graph=False)
    return pieces


def _check_aligned(what: str, values: Any, X: Any, n_pieces: int) -> None:
    """Raise unless there is a partition for each of X's, and they may be cut at the same rows."""
    if not is_dask(values):
        raise IcscmError(
            f"X is a Dask collection and {what} is not; give {what} as a Dask series or array with "
            "the same partitions, such as a column of the same Dask DataFrame"
        )
    if values.ndim != 1:
        raise IcscmError(f"{what} must be one column of labels, not a table")
    n_values = values.numblocks[0] if hasattr(values, "chunks") else values.npartitions
    if n_values != n_pieces:
        raise IcscmError(
            f"{what} has {n_values} partitions and X has {n_pieces}; they must be cut at the same "
            f"rows: {_advise(what, X)}"
        )
    cuts, wanted = _find_cuts(values), _find_cuts(X)
    if type(cuts) is type(wanted) and cuts != wanted:
        raise IcscmError(f"{what} and X are not cut at the same rows: {_advise(what, X)}")


def _find_cuts(collection: Any) -> Any:
    """Where it is cut: sizes of an array's chunks, divisions of a frame; None if unknown."""
    if hasattr(collection, "chunks"):
        sizes = collection.chunks[0]
        return None if np.isnan(sizes).any() else [int(size) for size in sizes]
    return collection.divisions if collection.known_divisions else None


def _advise(what: str, X: Any) -> str:
    if hasattr(X, "chunks"):
        return f"call {what} = {what}.rechunk((X.chunks[0],))"
    return f"take {what} from the same Dask DataFrame, or repartition it as X is"


# --- tasks -------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """What pass one finds in some partitions; the survey is None where labels are missing."""

    survey: Survey | None
    hashes: HashCounts
    n_missing: tuple[int, int]


@dataclass(frozen=True)
class Summary:
    """Pass one at its end: the survey of the whole table, and which rows are the sample."""

    survey: Survey | None
    sample: Sample
    n_missing: tuple[int, int]


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
            return Look(None, hashes, (n_no_label, n_no_place))
        survey = survey_piece(
            columns,
            n_rows,
            labels,
            places,
            max_thresholds=self.max_thresholds,
            names=self.names,
        )
        return Look(survey, hashes, (0, 0))

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
        raise IcscmError(
            f"{what} holds labels that are not hashable, such as lists; use strings or numbers"
        ) from None
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
        merge_hash_counts([look.hashes for look in looks]),
        (sum(look.n_missing[0] for look in looks), sum(look.n_missing[1] for look in looks)),
    )


def summarize(look: Look) -> Summary:
    """What the client needs to know: of all the hashes only those of the sample."""
    return Summary(look.survey, choose_rows(look.hashes), look.n_missing)


@dataclass(frozen=True)
class SampleTask:
    """What pass two looks for: these rows' values of these columns."""

    reader: Reader
    sample: Sample
    columns: tuple[int, ...]
    dtype: np.dtype[Any]


def take_sample(task: SampleTask, X: Any, number: int) -> SampledRows:
    """Pass two over one partition."""
    columns, n_rows = task.reader.read(X, number)
    hashes = hash_piece(columns, n_rows)
    rows = find_rows(hashes, task.sample)
    values = np.empty((len(rows), len(task.columns)), dtype=task.dtype)
    for k, j in enumerate(task.columns):
        column = columns[j]
        if isinstance(column, Numbers):  # of a partition without rows the kind is unknown
            missing = None if column.missing is None else column.missing[rows]
            some = Numbers(column.values[rows], missing)
            values[:, k] = read_numbers(some, is_exact=task.dtype.kind in "iu")
    return SampledRows(hashes[rows], values)


def choose_thresholds(
    task: SampleTask, survey: Survey, table: CodedTable, rows: SampledRows
) -> Binning:
    """The thresholds, so that the sampled rows need not leave the cluster."""
    values = repeat_copies(rows, task.sample)
    return plan_from_survey(survey, table, {j: values[:, k] for k, j in enumerate(task.columns)})


@dataclass(frozen=True)
class Plan:
    """What pass three needs to know."""

    reader: Reader
    binning: Binning
    blocks: tuple[Block, ...]
    classes: tuple[Any, ...]
    environments: tuple[Any, ...]


def code_partition(plan: Plan, X: Any, y: Any, environments: Any, number: int) -> Piece:
    """Pass three over one partition."""
    columns, n_rows = plan.reader.read(X, number)
    labels = _number(read_groups(y, n_rows, "y", number)[0], plan.classes)
    places = np.zeros(n_rows, dtype=np.int64)
    if environments is not None:
        groups, _ = read_groups(environments, n_rows, "environments", number)
        places = _number(groups, plan.environments)
    features = sorted(int(j) for block in plan.blocks for j in block.features)
    codes: dict[int, Array] = dict.fromkeys(features, np.empty(0, dtype=np.uint8))
    if n_rows:  # of a partition without rows the kinds of columns are unknown
        codes = dict(zip(features, PieceCoder(plan.binning, features).code(columns), strict=True))
    return make_piece(codes, labels, places, len(plan.environments), plan.blocks)


def _number(groups: Groups, labels: Sequence[Any]) -> NDArray[np.int64]:
    """The place of each row's label among all labels."""
    place = {label: i for i, label in enumerate(labels)}
    numbers = np.array([place[value] for value in groups.values], dtype=np.int64)
    found: NDArray[np.int64] = numbers[groups.codes]
    return found


# --- fit ---------------------------------------------------------------------


def make_dask_source(
    learner: Any, X: Any, y: Any, environments: Any, sample_weight: Any
) -> DaskSource:
    """Check Dask collections, let the learner know their columns, and make them countable."""
    parts = align_partitions(X, y, environments, sample_weight)
    check_cluster()
    validate_data(learner, parts.meta, reset=True, skip_check_array=True)
    tasks = TaskNames()
    reader = Reader(parts.columns, learner._get_names(), learner.max_thresholds)
    summary = survey_partitions(tasks, reader, parts)
    survey = _check_survey(summary)
    learner.classes_ = _find_classes(survey)
    places = _find_environments(survey) if environments is not None else (ALL_SAMPLES,)
    table = describe_survey(survey, reader.names)
    if learner.missing == "error":
        refuse_missing(table)
    if parts.columns is not None:  # arrays come from users who prepared them
        found = find_suspicious(survey, table)
        table = leave_out(table, found, learner.keep_columns, stacklevel=6)
    learner._keep_table(table)
    binning = plan_thresholds(tasks, reader, parts, summary, table)
    features = np.array([j for j in range(table.n_columns) if j not in table.left_out])
    blocks = plan_blocks(binning, features.astype(np.int64), len(places))
    plan = Plan(reader, binning, tuple(blocks), tuple(learner.classes_.tolist()), places)
    return DaskSource(
        _map_partitions(tasks, "bin", partial(code_partition, plan), parts),
        blocks,
        binning,
        classes=learner.classes_.tolist(),
        environments=places,
        notes=_list_notes(binning, summary),
        names=tasks,
    )


def survey_partitions(tasks: TaskNames, reader: Reader, parts: Partitions) -> Summary:
    """Pass one."""
    looks = _map_partitions(tasks, "survey", reader.look, parts)
    merged = merge_tasks(tasks, "merge", partial(merge_looks, names=reader.names), looks)
    summary: Summary = compute(map_tasks(tasks, "choose", summarize, [merged]))[0]
    return summary


def plan_thresholds(
    tasks: TaskNames, reader: Reader, parts: Partitions, summary: Summary, table: CodedTable
) -> Binning:
    """The thresholds of all columns; pass two if some have many values."""
    assert summary.survey is not None
    columns = tuple(find_sampled(summary.survey, table))
    if not columns:
        return plan_from_survey(summary.survey, table, {})
    task = SampleTask(reader, summary.sample, columns, summary.survey.dtype)
    n = len(parts.X)
    rows = map_tasks(tasks, "sample", partial(take_sample, task), parts.X, range(n))
    merged = merge_tasks(tasks, "merge", merge_sampled, rows)
    choose = partial(choose_thresholds, task, summary.survey, table)
    binning: Binning = compute(map_tasks(tasks, "choose", choose, [merged]))[0]
    return binning


def _map_partitions(
    tasks: TaskNames, what: str, function: Callable[..., Any], parts: Partitions
) -> list[Delayed]:
    """`function` of each partition's X, y, environments and number.

    What all partitions need goes with the function. As a task of its own it would draw the others
    to the worker that has it, and their rows with them.
    """
    numbers = range(len(parts.X))
    return map_tasks(tasks, what, function, parts.X, parts.y, parts.environments, numbers)


def _check_survey(summary: Summary) -> Survey:
    for what, n_missing in zip(("y", "environments"), summary.n_missing, strict=True):
        if n_missing:
            advice = "" if what == "y" else " or give them a label of their own"
            raise IcscmError(
                f"{what} is missing (None or NaN) in {n_missing:,} rows; drop these rows{advice}"
            )
    survey = summary.survey
    assert survey is not None
    if survey.n_rows == 0 or not survey.columns:
        what = "feature" if survey.n_rows else "sample"
        raise IcscmError(f"Found array with 0 {what}(s): X needs at least 1 {what}")
    return survey


def _find_classes(survey: Survey) -> Array:
    import pandas

    found = np.asarray(pandas.Index([*survey.labels], tupleize_cols=False))
    return check_labels(found, len(found))[1]


def _find_environments(survey: Survey) -> tuple[Any, ...]:
    return encode_environments([*survey.environments], len(survey.environments))[1]


def _list_notes(binning: Binning, summary: Summary) -> list[str]:
    if not binning.sampled:
        return []
    n_bits = summary.sample.n_zero_bits
    return [SAMPLED] if n_bits == 0 else [SAMPLED, THINNED.format(n_bits)]


# --- predict -----------------------------------------------------------------


def predict_lazily(method: Callable[[Any], Array], X: Any, like: Array) -> Any:
    """A Dask array of what a learner's `method` says of each partition of X.

    `like` is what it would say of no rows.
    """
    import dask.array

    if hasattr(X, "chunks") and X.numblocks[1] > 1:
        raise IcscmError(
            f"the columns of X are cut into {X.numblocks[1]} chunks, and rows must be whole; call "
            "X = X.rechunk({1: -1}) first"
        )
    pieces = _list_pieces(X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(pieces)
    parts = map_tasks(TaskNames(), "predict", partial(predict_partition, method, like), pieces)
    return dask.array.concatenate(
        [
            dask.array.from_delayed(part, (size, *like.shape[1:]), like.dtype)
            for part, size in zip(parts, sizes, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )


def predict_partition(method: Callable[[Any], Array], like: Array, X: Any) -> Array:
    """One partition; learners refuse tables without rows."""
    return method(X) if len(X) else like


# --- clusters ----------------------------------------------------------------


def check_cluster() -> None:
    """Raise if there is a client and its scheduler is gone, or workers lack this package."""
    client = find_client()
    if client is None:
        return
    if client.status != "running":
        raise IcscmError(
            f"the Dask client is {client.status}; connect to a running scheduler, or close the "
            "client to use this machine alone"
        )
    # resolve_name is Python's own: who lacks this package can still be asked
    question = (resolve_name, "icscm:__version__")
    with explain_failures():
        found = {"scheduler": client.run_on_scheduler(*question)}
        found |= client.run(*question, on_error="return")
    for address, version in found.items():
        if isinstance(version, Exception):
            raise IcscmError(f"{NO_PACKAGE} ({address}: {version})") from version
        if version != __version__:
            raise IcscmError(
                f"icscm is {version} at the Dask {address}, and {__version__} here; install the "
                "same version everywhere"
            )


@contextmanager
def open_client(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of some workers on this machine.

    It is the current client until the end of the `with` block.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise IcscmError(
            "this needs dask.distributed; install it with: pip install 'icscm[dask]'"
        ) from None
    if address is None:
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as local,
            Client(local) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise IcscmError(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler`, or check "
            f"the address ({error})"
        ) from error
    with client:
        yield client


def fit_on_dask(
    learner: Any,
    path: str | Path,
    *,
    target: str,
    environments: str | None = None,
    client: Any = None,
) -> Any:
    """Fit a learner to a Parquet or CSV file, or a folder of them, read by the workers.

    `target` and `environments` name columns. `path` may be anything that Dask can read, such as
    s3://...; `client` is the current one unless given.
    """
    with nullcontext() if client is None else client.as_current():
        frame = read_folder(path)
        wanted = [target] if environments is None else [target, environments]
        absent = [repr(name) for name in wanted if name not in frame.columns]
        if absent:
            raise IcscmError(
                f"{path} has no column {shorten_list(absent)}; it has "
                f"{shorten_list([repr(name) for name in frame.columns])}"
            )
        places = None if environments is None else frame[environments]
        return learner.fit(frame.drop(columns=wanted), frame[target], environments=places)


def read_folder(path: str | Path) -> Any:
    """A Dask DataFrame over a Parquet or CSV file, or a folder of either."""
    import dask.dataframe

    text = str(path)
    is_csv = text.endswith((".csv", ".csv.gz")) or any(Path(text).glob("*.csv"))
    try:
        if not is_csv:
            return dask.dataframe.read_parquet(text)
        return dask.dataframe.read_csv(f"{text}/*.csv" if Path(text).is_dir() else text)
    except (OSError, ValueError) as error:
        raise IcscmError(f"cannot read {text} as Parquet or CSV: {error}") from error
