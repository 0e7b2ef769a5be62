"""Tables of the screen, made from bins without a source of rows."""

import numpy as np

from icscm.screening.boosting import BinnedRows
from icscm.screening.outcomes import Environments
from icscm.screening.screened_table import ScreenedTable, find_clusters


def make_screened_table(
    columns,
    environments,
    *,
    is_nominal=None,
    has_missing=None,
    groups=None,
    is_weighted=False,
    count=None,
):
    """Make the table whose columns have these bins."""
    bins = np.stack([np.asarray(column) for column in columns]).astype(np.uint8)
    places = Environments(
        np.asarray(environments, dtype=np.int64), count or int(np.max(environments)) + 1
    )
    none = np.zeros(len(bins), dtype=np.bool_)
    return ScreenedTable(
        columns=BinnedRows(
            bins=bins,
            n_bins=bins.max(axis=1).astype(np.int64) + 1,
            is_nominal=none if is_nominal is None else np.array(is_nominal),
        ),
        has_missing=none if has_missing is None else np.array(has_missing),
        places=places,
        clusters=None if groups is None else find_clusters(np.asarray(groups), places),
        is_weighted=is_weighted,
        names=range(len(bins)),
    )


def bin_evenly(values, n_bins=20):
    """Return bins of equally many values."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return (ranks * n_bins // len(values)).astype(np.uint8)
