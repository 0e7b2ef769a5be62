"""Files made countable by Dask's workers, as the command line does."""

from icscm.io.locating import translate_errors
from icscm.io.naming import check_columns
from icscm.sources.dask.frames import read_folder
from icscm.sources.dask.opening import open_dask


def open_dask_files(path, target, environments=None, text=None):
    with translate_errors(path):
        frame = read_folder(path, text)
        roles = [target] if environments is None else [target, environments]
        check_columns(roles, list(frame.columns), str(path))
        return open_dask(
            frame.drop(columns=roles),
            frame[target],
            environments=None if environments is None else frame[environments],
        )
