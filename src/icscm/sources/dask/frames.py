"""Dask collections: read from files, split into roles, aligned, and predicted lazily.

Parquet is read by Dask, text by our own reader:

    every file        where lines start, about every `_PARTITION_BYTES`      icscm-cut
    every partition   possible types of its columns                          icscm-kinds
    joined here       the type of each column
    every partition   read in these types, whenever Dask needs it

A file is one partition if it is compressed, or if quotes in it could hold ends of lines.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from dask.delayed import Delayed

from icscm._types import Array
from icscm.exceptions import IcscmError
from icscm.io import locating
from icscm.io.formats import TextFormat
from icscm.io.lines import Lines
from icscm.io.locating import Source
from icscm.io.roles import Roles, RowKey, find_labelling, tally_roles
from icscm.io.streams import TextFiles
from icscm.sources.dask.client import compute, map_tasks
from icscm.tables.columns import is_dask

# Bytes of text in a partition, at least.
_PARTITION_BYTES = 2**26
# The column of row numbers while rows are chosen; no user's column has this name.
_ROW = "\0row"


def read_folder(path: str | Path, text: TextFormat | None = None) -> Any:
    """Open a Parquet or text file, or a folder of either, anywhere Dask reads, as a Dask DataFrame.

    Its columns have the types that they would have in memory, which for text depend on all rows.
    """
    import dask.dataframe
    import pandas

    form = text or TextFormat()
    try:
        sources = _find_texts(str(path))
        if not sources:
            frame = dask.dataframe.read_parquet(str(path))
            categories = form.find_categories(list(frame.columns), path)
            return frame.astype(dict.fromkeys(categories, "category"))
    except (OSError, ValueError) as error:
        if isinstance(error, IcscmError):
            raise
        raise IcscmError(f"cannot read {path} as Parquet or CSV: {error}") from error

    # The partitions: a part of a file each.
    files = TextFiles(sources, form, {})
    parts_of_files = compute(map_tasks("cut", cut_lines, files.files))
    parts = list(chain.from_iterable(parts_of_files))

    # The type of each column, by what all parts of it can be.
    find_kinds = partial(Lines.find_kinds, names=files.names)
    kinds_of_parts = compute(map_tasks("kinds", find_kinds, parts))
    schema = files.make_schema(files.names, kinds_of_parts)

    empty_frame = schema.empty_table().to_pandas(types_mapper=pandas.ArrowDtype)
    return dask.dataframe.from_map(partial(read_part, schema), parts, meta=empty_frame)


def _find_texts(path: str) -> list[Source]:
    """Find text files; remote ones, and patterns of names, as fsspec finds them."""
    if Path(path).exists():
        return [source for source in locating.find_sources(Path(path)) if source.kind == "text"]
    if locating.find_ending(path) not in locating.TEXT_ENDINGS:
        return []
    from fsspec import open_files  # type: ignore[import-untyped]

    sources = []
    for file in open_files(path, compression="infer"):
        place = Path(file.path)
        sources.append(Source(place, place.name, "text", remote=file))
    return sources


def cut_lines(lines: Lines) -> list[Lines]:
    """Cut a file at ends of lines about every `_PARTITION_BYTES`, unless it must stay whole.

    The first part has the header; the others have lines only.
    """
    source = lines.source
    if _must_stay_whole(lines):
        return [lines]

    with source.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        if content.find(b'"') >= 0:  # quotes may hold ends of lines
            return [lines]
        n_bytes = len(content)
        # the first line that begins at or after each multiple of the size; 0 if there is none
        starts_of_parts = [
            content.find(b"\n", position) + 1
            for position in range(_PARTITION_BYTES, n_bytes, _PARTITION_BYTES)
        ]

    # A line may be longer than a part: then several parts would begin at the same place.
    bounds = sorted({0, *starts_of_parts, n_bytes})
    first_span, *later_spans = pairwise(bounds)
    parts = [replace(lines, source=replace(source, span=first_span))]
    for span in later_spans:
        later_source = replace(source, span=span, member=f"from byte {span[0]:,}")
        parts.append(replace(lines, source=later_source, n_header=0))
    return parts


def _must_stay_whole(lines: Lines) -> bool:
    """Return whether a file is too small to be cut, or of a kind whose bytes show no lines."""
    source = lines.source
    is_packed = source.path.suffix.lower() in locating.PACKED_ENDINGS
    has_wide_characters = "\n".encode(lines.form.encoding) != b"\n"
    if source.member or source.remote or is_packed or has_wide_characters:
        return True
    return source.path.stat().st_size <= _PARTITION_BYTES


def read_part(schema: pyarrow.Schema, part: Lines, columns: Sequence[str] | None = None) -> Any:
    """Read one partition, or some columns of it, as a pandas frame of Arrow's types."""
    import pandas

    if columns is not None:
        schema = pyarrow.schema([schema.field(name) for name in columns])
    tables = [schema.empty_table(), *part.read(schema)]
    return pyarrow.concat_tables(tables).to_pandas(types_mapper=pandas.ArrowDtype)


@dataclass(frozen=True)
class LabelledFrame:
    """The columns of a Dask DataFrame by their roles, for `open_dask`.

    `labelling` are the roles, with what the outcomes mean where that depends on all rows.
    """

    X: Any
    y: Any
    environments: Any
    groups: Any
    labelling: Roles


def take_apart(frame: Any, roles: Roles, columns: Sequence[str]) -> LabelledFrame:
    """Take the columns, outcomes and environments of a Dask DataFrame apart, by the chosen roles.

    The user may have chosen which outcomes are positive, environments to exclude or to merge, or
    that rows without either are dropped. What that means for each row depends on all rows, so:

        1. all rows are counted by outcome and environment, which is computed now
        2. these counts tell how outcomes and environments are relabelled, and which rows are kept
        3. each partition is relabelled by that, whenever Dask needs it

    Without such choices the columns are taken as they are, and nothing is computed.
    """
    if roles.is_plain:
        return LabelledFrame(
            X=frame[list(columns)],
            y=frame[roles.target],
            environments=None if roles.environment is None else frame[roles.environment],
            groups=None if roles.group is None else frame[roles.group],
            labelling=roles,
        )

    frame_of_roles = frame[roles.columns]
    labelling = _find_labelling_of_all_rows(frame_of_roles, roles)

    outcomes = _relabel_lazily(frame_of_roles, labelling, [roles.target])
    environments = None
    if roles.environment is not None:
        relabelled = _relabel_lazily(frame_of_roles, labelling, [roles.environment])
        environments = relabelled[roles.environment]

    groups = None
    if roles.group is not None:
        groups = _relabel_lazily(frame_of_roles, labelling, [roles.group])[roles.group]

    # Which rows are kept is seen in the columns with roles, so they are read with the others.
    all_columns = list(dict.fromkeys((*columns, *roles.columns)))
    return LabelledFrame(
        X=_relabel_lazily(frame[all_columns], labelling, columns),
        y=outcomes[roles.target],
        environments=environments,
        groups=groups,
        labelling=labelling,
    )


def _find_labelling_of_all_rows(frame_of_roles: Any, roles: Roles) -> Roles:
    """Find what outcomes and environments mean, by counts of the rows of every partition."""
    tally = partial(tally_partition, roles=roles)
    tasks = map_tasks("roles", tally, list_pieces(frame_of_roles))
    return find_labelling(compute(tasks), roles)


def _relabel_lazily(frame: Any, labelling: Roles, names: Sequence[str]) -> Any:
    """Return some columns of the kept rows as a Dask DataFrame, of which nothing is computed yet.

    Dask wants to know names and types of the result before: those of a partition without rows.
    """
    relabel_partition = partial(relabel, labelling=labelling, names=list(names))
    empty_result = relabel_partition(frame._meta)
    return frame.map_partitions(relabel_partition, meta=empty_result)


def tally_partition(frame: Any, roles: Roles) -> Counter[RowKey]:
    """Count the rows of one partition by target and environment."""
    return tally_roles(pyarrow.Table.from_pandas(frame, preserve_index=False), roles)


def relabel(frame: Any, labelling: Roles, names: Sequence[str]) -> Any:
    """Return some columns of the rows that are kept of one partition.

    These are outcome and environment, which are relabelled, or other columns, which stay as they
    are. `labelling` chooses and relabels rows by the columns with roles alone. So rows get numbers
    before, and the numbers that are left tell which rows of the other columns are kept.
    """
    import pandas

    row_numbers = pyarrow.array(range(len(frame)), pyarrow.int64())
    roles = pyarrow.Table.from_pandas(frame[labelling.columns], preserve_index=False)
    kept_rows = labelling.apply(roles.append_column(_ROW, row_numbers))

    are_roles_wanted = {*names} <= {labelling.target, labelling.environment}
    if are_roles_wanted:
        return kept_rows.select(list(names)).to_pandas(types_mapper=pandas.ArrowDtype)
    kept_numbers = kept_rows.column(_ROW).to_numpy()
    return frame[list(names)].iloc[kept_numbers]


@dataclass(frozen=True)
class Partitions:
    """The partitions of a table: for each a task that yields it, or None where nothing is given."""

    X: Sequence[Any]
    y: Sequence[Any]
    environments: Sequence[Any]
    groups: Sequence[Any]

    @property
    def numbers(self) -> range:
        """The partitions' numbers, by which messages name them."""
        return range(len(self.X))


def align_partitions(X: Any, y: Any, environments: Any, groups: Any) -> Partitions:
    """List the partitions of X, y, environments and groups, which must be cut at the same rows.

    Raises if the collections' metadata show that they are not.
    """
    if X.ndim != 2:
        raise IcscmError(f"X must be a table, got a Dask collection of {X.ndim} dimension(s)")
    if hasattr(X, "chunks") and X.dtype.kind not in "biuf":
        raise IcscmError(f"X is a Dask array of type {X.dtype}; give numbers, or a Dask DataFrame")
    pieces = list_pieces(X)
    y_pieces = _align_with(X, y, what="y", n_partitions=len(pieces))
    nothing = [None] * len(pieces)
    environment_pieces: Sequence[Any] = nothing
    if environments is not None:
        environment_pieces = _align_with(
            X, environments, what="environments", n_partitions=len(pieces)
        )
    group_pieces: Sequence[Any] = nothing
    if groups is not None:
        group_pieces = _align_with(X, groups, what="groups", n_partitions=len(pieces))
    return Partitions(pieces, y=y_pieces, environments=environment_pieces, groups=group_pieces)


def _align_with(X: Any, values: Any, *, what: str, n_partitions: int) -> list[Delayed]:
    """List the partitions of y, or environments; raise if they are not cut as X is."""
    if not is_dask(values):
        raise IcscmError(
            f"X is a Dask collection but {what} is not; "
            f"give {what} as a Dask series or array with the same partitions"
        )
    if values.ndim != 1:
        raise IcscmError(f"{what} must be one column of labels, not a table")

    advice = f"take {what} from the same Dask DataFrame, or give it the partitions of X"
    if hasattr(X, "chunks"):
        advice = f"call {what} = {what}.rechunk((X.chunks[0],))"
    if values.npartitions != n_partitions:
        raise IcscmError(
            f"{what} has {values.npartitions} partitions but X has {n_partitions}; "
            f"they must be partitioned at the same rows: {advice}"
        )
    cuts = _find_cuts(values)
    cuts_of_X = _find_cuts(X)
    # sizes of chunks cannot be compared with divisions, nor either with what is unknown
    are_comparable = type(cuts) is type(cuts_of_X)
    if are_comparable and cuts != cuts_of_X:
        raise IcscmError(f"{what} and X are partitioned at different rows: {advice}")
    return list_pieces(values)


def list_pieces(collection: Any) -> list[Delayed]:
    """List the partitions of a collection, each a delayed task."""
    if hasattr(collection, "chunks"):
        if collection.ndim == 2 and collection.numblocks[1] > 1:
            raise IcscmError(
                f"the columns of X are in {collection.numblocks[1]} chunks, "
                "but rows must be in one; call X = X.rechunk({1: -1}) first"
            )
        return list(np.ravel(collection.to_delayed()))
    # Simplified, it reads only the columns that are used. To optimize the graph would go too far:
    # Dask would also join small files, as many as the columns allow, and cut y at other rows than X
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _find_cuts(collection: Any) -> Any:
    """Find where a collection is cut: the sizes of an array's chunks, or a frame's divisions.

    The result is None where Dask does not know it.
    """
    if hasattr(collection, "chunks"):
        sizes = collection.chunks[0]
        return None if np.isnan(sizes).any() else [int(size) for size in sizes]
    return collection.divisions if collection.known_divisions else None


def predict_lazily(method: Callable[[Any], Array], X: Any, like: Array) -> Any:
    """Make a Dask array of the results of a learner's `method` for each partition of X.

    Nothing is computed yet. `like` is the result for a table without rows: it shows the type.
    """
    import dask.array

    pieces = list_pieces(X)
    predictions = map_tasks("predict", partial(predict_partition, method, like), pieces)
    n_rows_by_piece = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(pieces)
    arrays = [
        dask.array.from_delayed(prediction, shape=(n_rows, *like.shape[1:]), dtype=like.dtype)
        for prediction, n_rows in zip(predictions, n_rows_by_piece, strict=True)
    ]
    return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)


def predict_partition(method: Callable[[Any], Array], like: Array, X: Any) -> Array:
    """Predict one partition; learners reject tables without rows."""
    return method(X) if len(X) else like
