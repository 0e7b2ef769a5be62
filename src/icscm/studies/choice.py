"""The old place of `icscm.studies.tuning`, kept for one version."""

import warnings
from typing import Any

from icscm.studies.tuning import GridSearch, grid_search


def choose(*args: Any, **kwargs: Any) -> GridSearch:
    """The old name of `icscm.studies.tuning.grid_search`."""
    what = "icscm.studies.choice.choose is now icscm.studies.tuning.grid_search"
    warnings.warn(what, FutureWarning, stacklevel=2)
    return grid_search(*args, **kwargs)
