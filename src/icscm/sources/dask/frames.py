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
from dataclasses import replace
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

_PARTITION_BYTES = 2**26
# The column of row numbers while rows are chosen; no user's column has this name.
_ROW = "\0row"


def read_folder(path: str | Path, text: TextFormat | None = None) -> Any:
    """A Dask DataFrame over a Parquet or text file, or a folder of either, anywhere Dask reads.

    Its columns are typed as the same files would be in memory.
    """
    import dask.dataframe
    import pandas

    try:
        sources = _find_texts(str(path))
        if not sources:
            return dask.dataframe.read_parquet(str(path))
    except (OSError, ValueError) as error:
        raise IcscmError(f"cannot read {path} as Parquet or CSV: {error}") from error
    files = TextFiles(sources, text or TextFormat(), {})
    parts = [*chain.from_iterable(compute(map_tasks("cut", cut_lines, files.files)))]
    find = partial(Lines.find_kinds, names=files.names)
    schema = files.make_schema(files.names, compute(map_tasks("kinds", find, parts)))
    meta = schema.empty_table().to_pandas(types_mapper=pandas.ArrowDtype)
    return dask.dataframe.from_map(partial(read_part, schema), parts, meta=meta)


def _find_texts(path: str) -> list[Source]:
    """Text files; remote ones, and patterns of names, as fsspec finds them."""
    if Path(path).exists():
        return [source for source in locating.find_sources(Path(path)) if source.kind == "text"]
    if locating.find_ending(path) not in locating.TEXT_ENDINGS:
        return []
    from fsspec import open_files  # type: ignore[import-untyped]

    found = [(Path(file.path), file) for file in open_files(path, compression="infer")]
    return [Source(where, where.name, "text", remote=file) for where, file in found]


def cut_lines(lines: Lines) -> list[Lines]:
    """Pieces of about so many bytes; a single one where the file must stay whole."""
    source, size = lines.source, _PARTITION_BYTES
    is_packed = source.path.suffix.lower() in locating.PACKED_ENDINGS
    is_wide = "\n".encode(lines.form.encoding) != b"\n"
    if source.member or source.remote or is_packed or is_wide or source.path.stat().st_size <= size:
        return [lines]
    with source.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        if content.find(b'"') >= 0:
            return [lines]
        end = len(content)
        starts = {content.find(b"\n", place) + 1 for place in range(size, end, size)}
    first, *spans = pairwise(sorted(starts | {0, end}))
    parts = [replace(source, span=span, member=f"from byte {span[0]:,}") for span in spans]
    below = [replace(lines, source=part, n_header=0) for part in parts]
    return [replace(lines, source=replace(source, span=first)), *below]


def read_part(schema: pyarrow.Schema, part: Lines, columns: Sequence[str] | None = None) -> Any:
    """The rows of one partition, some columns of them, as a pandas frame of Arrow's types."""
    import pandas

    wanted = schema if columns is None else pyarrow.schema([schema.field(n) for n in columns])
    tables = [wanted.empty_table(), *part.read(wanted)]
    return pyarrow.concat_tables(tables).to_pandas(types_mapper=pandas.ArrowDtype)


def take_apart(
    frame: Any, roles: Roles, columns: Sequence[str]
) -> tuple[tuple[Any, Any, Any], Roles]:
    """Features, labels and environments, and the meaning of the labels."""
    target, environment = roles.target, roles.environment
    if roles.is_plain:
        places = None if environment is None else frame[environment]
        return (frame[list(columns)], frame[target], places), roles
    special = frame[roles.columns]
    tally = partial(tally_partition, roles=roles)
    labelling = find_labelling(compute(map_tasks("roles", tally, list_pieces(special))), roles)

    def take(part: Any, names: Sequence[str]) -> Any:
        change = partial(relabel, labelling=labelling, names=list(names))
        return part.map_partitions(change, meta=change(part._meta))

    X = take(frame[list(dict.fromkeys((*columns, *roles.columns)))], columns)
    places = None if environment is None else take(special, [environment])[environment]
    return (X, take(special, [target])[target], places), labelling


def tally_partition(frame: Any, roles: Roles) -> Counter[RowKey]:
    """The rows of one partition by target and environment."""
    return tally_roles(pyarrow.Table.from_pandas(frame, preserve_index=False), roles)


def relabel(frame: Any, labelling: Roles, names: Sequence[str]) -> Any:
    """Some columns of the rows of one partition that are kept: features as they were, or roles."""
    import pandas

    roles = pyarrow.Table.from_pandas(frame[labelling.columns], preserve_index=False)
    numbered = roles.append_column(_ROW, pyarrow.array(range(len(frame)), pyarrow.int64()))
    table = labelling.apply(numbered)
    if not {*names} <= {labelling.target, labelling.environment}:
        return frame[list(names)].iloc[table.column(_ROW).to_numpy()]
    return table.select(list(names)).to_pandas(types_mapper=pandas.ArrowDtype)


def align_partitions(X: Any, y: Any, environments: Any) -> tuple[Sequence[Any], ...]:
    """X, y, environments and number of each partition, the former as delayed tasks.

    Raises if their metadata show that the collections are partitioned at different rows.
    """
    if X.ndim != 2:
        raise IcscmError(f"X must be a table, got a Dask collection of {X.ndim} dimension(s)")
    if hasattr(X, "chunks") and X.dtype.kind not in "biuf":
        raise IcscmError(f"X is a Dask array of type {X.dtype}; give numbers, or a Dask DataFrame")
    pieces, given = list_pieces(X), {"y": y, "environments": environments}
    columns: dict[str, Sequence[Any]] = {"environments": [None] * len(pieces)}
    for what, values in given.items() if environments is not None else [("y", y)]:
        if not is_dask(values):
            advice = f"give {what} as a Dask series or array with the same partitions"
            raise IcscmError(f"X is a Dask collection but {what} is not; {advice}")
        if values.ndim != 1:
            raise IcscmError(f"{what} must be one column of labels, not a table")
        advice = f"take {what} from the same Dask DataFrame, or give it the partitions of X"
        if hasattr(X, "chunks"):
            advice = f"call {what} = {what}.rechunk((X.chunks[0],))"
        if values.npartitions != len(pieces):
            why = f"{what} has {values.npartitions} partitions but X has {len(pieces)}"
            raise IcscmError(f"{why}; they must be partitioned at the same rows: {advice}")
        cuts, wanted = _find_cuts(values), _find_cuts(X)
        if type(cuts) is type(wanted) and cuts != wanted:
            raise IcscmError(f"{what} and X are partitioned at different rows: {advice}")
        columns[what] = list_pieces(values)
    return pieces, columns["y"], columns["environments"], range(len(pieces))


def list_pieces(collection: Any) -> list[Delayed]:
    """The partitions of a collection, each a delayed task."""
    if hasattr(collection, "chunks"):
        if collection.ndim == 2 and collection.numblocks[1] > 1:
            why = f"the columns of X are in {collection.numblocks[1]} chunks"
            raise IcscmError(f"{why}, but rows must be in one; call X = X.rechunk({{1: -1}}) first")
        return list(np.ravel(collection.to_delayed()))
    # reads only the columns that are used, and stops there: Dask would also join small files, as
    # many as the columns allow, and so cut y at other rows than X
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _find_cuts(collection: Any) -> Any:
    """Where it is cut: sizes of an array's chunks, divisions of a frame; None if unknown."""
    if hasattr(collection, "chunks"):
        sizes = collection.chunks[0]
        return None if np.isnan(sizes).any() else [int(size) for size in sizes]
    return collection.divisions if collection.known_divisions else None


def predict_lazily(method: Callable[[Any], Array], X: Any, like: Array) -> Any:
    """A Dask array of the results of a learner's `method` for each partition of X.

    `like` is its result for a table without rows.
    """
    import dask.array

    pieces = list_pieces(X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(pieces)
    parts = map_tasks("predict", partial(predict_partition, method, like), pieces)
    shapes = [(size, *like.shape[1:]) for size in sizes]
    arrays = map(partial(dask.array.from_delayed, dtype=like.dtype), parts, shapes)
    return dask.array.concatenate([*arrays], allow_unknown_chunksizes=True)


def predict_partition(method: Callable[[Any], Array], like: Array, X: Any) -> Array:
    """One partition; learners reject tables without rows."""
    return method(X) if len(X) else like
