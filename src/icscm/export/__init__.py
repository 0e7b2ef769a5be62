"""A saved model as SQL, Python, R, JSON or text.

All exports are written from `conditions` and leaves, with minimal nesting in SQL and as tables
elsewhere: `document` (JSON), `text`, `programs` (Python and R), `fasta` and `sql`. A forest adds up
its trees in the same order everywhere, so that means and predictions are the same to the last bit;
its calibrated probability uses exp, whose last digits differ between languages. Names and levels
come from users: for each language one function quotes all text.

Nothing here knows an estimator: an export reads a saved model.
"""

from collections.abc import Callable
from functools import partial

from icscm.exceptions import IcscmError
from icscm.export.document import make_json
from icscm.export.programs import make_python, make_r
from icscm.export.sql.statement import make_sql
from icscm.export.text import make_text
from icscm.model.saved import SavedModel


def export_model(
    saved: SavedModel, to: str, *, table: str = "data", schema: str | None = None
) -> str:
    """Export a model to another language; predictions are the same.

    Parameters
    ----------
    saved : SavedModel
        The result of `icscm.load` or `make_saved_model`.
    to : {"sql", "python", "r", "json", "text"}
        `"sql"`: one SELECT for SQLite and DuckDB. `"python"`: a module with `predict(row)` that
        needs the standard library only. `"r"`: a function of base R for a data frame. `"json"`: the
        splits and leaves, for a program in any language. `"text"`: the rule or the tree and a table
        of its leaves, for an e-mail or a paper; for a forest, a summary.
    table : str, default="data"
        For SQL, the table to select from.
    schema : str, optional
        For SQL, the schema of the table.

    Returns
    -------
    str
        The code, document or text.

    Raises
    ------
    IcscmError
        If the language is unknown, or SQL cannot hold a name.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.export import export_model
    >>> from icscm.model.saved import make_saved_model
    >>> data = make_conjunction(random_state=1)
    >>> learner = ICSCMClassifier().fit(data.X, data.y, environments=data.environments)
    >>> print(export_model(make_saved_model(learner), "sql").splitlines()[-1])
    FROM "data" AS d;
    """
    writers: dict[str, Callable[[SavedModel], str]] = {
        "sql": partial(make_sql, table=table, schema=schema),
        "python": make_python,
        "r": make_r,
        "json": make_json,
        "text": make_text,
    }
    if to not in writers:
        known = ", ".join(map(repr, writers))
        raise IcscmError(f"a model is exported to {known}; not {to!r}")
    return writers[to](saved)
