"""A Dask frame taken apart into features, labels and environments, as a user's options say.

Each of the three is read by itself, with the columns that tell which rows stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow

from icscm.io.roles import Labelling, Roles, RoleTally, find_labelling, tally_roles
from icscm.sources.dask.partitions import list_pieces
from icscm.sources.dask.source import Tasks, compute

# The column of row numbers while rows are chosen; nobody's column is called so.
_ROW = "\0row"


def take_apart(
    frame: Any, roles: Roles, columns: Sequence[str]
) -> tuple[tuple[Any, Any, Any], Labelling]:
    """Features, labels and environments, and what the labels mean."""
    target, environment = roles.target, roles.environment
    if roles.is_plain:
        places = None if environment is None else frame[environment]
        return (frame[list(columns)], frame[target], places), Labelling(roles=roles)
    told = frame[roles.columns]
    tally = partial(tally_partition, roles=roles)
    labelling = find_labelling(compute(Tasks().map("roles", tally, list_pieces(told))), roles)

    def take(part: Any, names: Sequence[str]) -> Any:
        change = partial(relabel, labelling=labelling, names=list(names))
        return part.map_partitions(change, meta=change(part._meta))

    X = take(frame[list(dict.fromkeys((*columns, *roles.columns)))], columns)
    places = None if environment is None else take(told, [environment])[environment]
    return (X, take(told, [target])[target], places), labelling


def tally_partition(frame: Any, roles: Roles) -> RoleTally:
    """What target and environment are in one partition."""
    return tally_roles(pyarrow.Table.from_pandas(frame, preserve_index=False), roles)


def relabel(frame: Any, labelling: Labelling, names: Sequence[str]) -> Any:
    """The rows of one partition that stay, some columns of them: as they were, or made anew."""
    import pandas

    roles = pyarrow.Table.from_pandas(frame[labelling.roles.columns], preserve_index=False)
    numbered = roles.append_column(_ROW, pyarrow.array(range(len(frame)), pyarrow.int64()))
    table = labelling.apply(numbered)
    if not {*names} <= {labelling.target, labelling.environment}:
        return frame[list(names)].iloc[table.column(_ROW).to_numpy()]
    return table.select(list(names)).to_pandas(types_mapper=pandas.ArrowDtype)
