"""Model files, and tables that are read as the table of a model was: shared by several commands.

A model file says how its table was read: which texts meant missing, the decimal mark, the type of
each column. A table to predict or to evaluate is read the same way, so that a code such as 07 stays
text where it was text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm._types import Array
from icscm.cli import files
from icscm.cli.options import Options
from icscm.exceptions import IcscmError, reject_unknown
from icscm.formatting import count
from icscm.io import formats
from icscm.io.environments import index_texts
from icscm.io.locating import describe_path
from icscm.io.naming import check_columns, suggest
from icscm.io.roles import Roles, find_labelling, split_names, tally_roles

if TYPE_CHECKING:
    import pyarrow

    from icscm.model.saved import SavedModel

# How a text column must be read for levels of a type; others are text.
_CELL_TYPES = {bool: formats.BOOLEAN, int: formats.NUMBER, float: formats.NUMBER}
# Advice where a threshold would need labels.
_UNLABELLED = "needs labelled rows; choose it with icscm fit, or give a number or costs=1:10"


def load_with_threshold(path: Path, threshold: str | None) -> SavedModel:
    """The model in a file, with another threshold if one is given."""
    from icscm.model.saved import load
    from icscm.model.thresholds import fix_threshold

    if threshold is None:
        return load(path)
    fixed = fix_threshold(threshold, _UNLABELLED)  # an error comes before the file is read
    return load(path).set_threshold(fixed)


# --- columns ------------------------------------------------------------------------


def find_types(saved: SavedModel) -> dict[str, str]:
    """How a text file's columns must be read: as the rules compare them.

    Levels keep their types: text that looks like a number stays text, and True is not text.
    """
    from icscm.model.rules import CategoryRule, ThresholdRule
    from icscm.model.saved import list_used

    types: dict[str, str] = {}
    for column in saved.features:
        if column.type in (formats.NUMBER, formats.CATEGORY):
            types[str(column.name)] = column.type
    for rule in saved.model.rules:
        if isinstance(rule, ThresholdRule):
            types[str(rule.feature)] = formats.NUMBER
        elif isinstance(rule, CategoryRule):
            types[str(rule.feature)] = _find_level_type(rule.levels)
    for values in saved.model.training_values:
        if values.levels is not None:
            types[str(values.feature)] = _find_level_type(values.levels)
    used_columns = set(list_used(saved))
    return {name: cell_type for name, cell_type in types.items() if name in used_columns}


def _find_level_type(levels: Any) -> str:
    """How cells must be read that are compared with these levels."""
    level_types = {type(level) for level in levels}
    if len(level_types) > 1:
        return formats.CATEGORY
    return _CELL_TYPES.get(level_types.pop(), formats.CATEGORY)


def read_alike(
    saved: SavedModel, path: Path, options: Options, types: dict[str, str]
) -> pyarrow.Table:
    """Read a file, with the settings for missing values and decimals of the model's own table."""
    from icscm.model.saved import get_table_settings, list_missing_texts

    settings = get_table_settings(saved)
    decimal_of_model = "," if settings.get("decimal") == "," else "."
    options_alike = options | {
        "na": (*options["na"], *list_missing_texts(settings)),
        "no_default_na": options["no_default_na"] or settings.get("default_na") is False,
        "decimal": options["decimal"] or decimal_of_model,
    }
    return files.load_table(path, options_alike, types).table


# --- rows with their outcome --------------------------------------------------------


@dataclass(frozen=True)
class LabelledRows:
    """A table to evaluate or to recalibrate on."""

    table: pyarrow.Table
    #: the outcome of each row, as classes of the model
    y: Array
    #: which column is what, and which values of the target are positive
    roles: Roles
    #: sentences on what was found in the table
    notes: tuple[str, ...]


def read_labelled_rows(saved: SavedModel, data: Path, options: Options) -> LabelledRows:
    """Read rows with their outcome, to compare it with what the model predicts.

    1. read the table, and choose its columns of outcome and environment: those that an option
       names, or else those of the table that the model was learned from
    2. find which values of the outcome are positive, and which rows are dropped
    3. write outcomes as the model writes them, since it may call several values one class
    """
    from icscm.model.saved import list_used

    where = describe_path(data)
    roles = _find_roles(saved, options)
    table = _read_columns(saved, data, options, _find_role_types(saved, roles))
    column_names = table.column_names
    notes: list[str] = []
    if options["environment"] is not None:
        environment_columns = split_names([options["environment"]], column_names, where)
        roles = replace(roles, environment_columns=tuple(environment_columns))
    else:
        absent = [name for name in roles.environment_columns if name not in column_names]
        if absent:
            notes.append(f"There is no column {absent[0]!r}, so no environments are distinguished.")
            roles = replace(roles, environment_columns=())
    check_columns([*list_used(saved), *roles.columns], column_names, where)

    tally = tally_roles(table, roles)
    target_values = index_texts(key.target for key in tally if key.is_complete)
    _check_positive(options["positive"], target_values, roles.target)
    labelling = find_labelling([tally], roles, is_new=True)
    if labelling.n_dropped:
        notes.append(f"Dropped: {count(labelling.n_dropped, 'row')} without target or environment.")

    labelled = labelling.apply(table)
    y = list_values(labelled, roles.target)
    if roles.positive:
        # The target is now True or False, for several values each.
        y = np.array([saved.classes[label is True] for label in y.tolist()], dtype=object)
        # These rows may lack some of the positive values of fit, which the report names still.
        negative = labelling.negative or tuple(sorted(set(target_values.values()), key=str))
        labelling = replace(labelling, positive=roles.positive, negative=negative)
    return LabelledRows(table=labelled, y=y, roles=labelling, notes=tuple(notes))


def list_values(table: pyarrow.Table, name: str) -> Array:
    """The values of a column, each with its own type: NumPy would give them one."""
    return np.array(table.column(name).to_pylist(), dtype=object)


def _find_roles(saved: SavedModel, options: Options) -> Roles:
    """The roles that the options name, or else those of the model's own table."""
    from icscm.model.saved import get_table_settings

    settings = get_table_settings(saved)
    target = options["target"] or settings.get("target")
    if not isinstance(target, str):
        raise IcscmError("the model file does not name the target; name it with --target")
    if options["environment"] is not None:
        columns = [options["environment"]]
    else:
        columns = settings.get("environment_columns") or [settings.get("environment")]
    return Roles(
        target=target,
        environment_columns=tuple(name for name in columns if name is not None),
        group=options["group"],
        weight=options.get("weight"),
        positive=options["positive"] or tuple(settings.get("positive", ())),
        drop_missing=options["drop_missing"],
    )


def _find_role_types(saved: SavedModel, roles: Roles) -> dict[str, str]:
    """Labels and environments that were text are read as text: 07 is not 7."""
    types = {}
    if not roles.positive and all(isinstance(label, str) for label in saved.classes):
        types[roles.target] = formats.CATEGORY
    environments = saved.environments or ()
    are_texts = all(isinstance(name, str) for name in environments)
    if len(roles.environment_columns) == 1 and environments and are_texts:
        types[roles.environment_columns[0]] = formats.CATEGORY
    return types


def _check_positive(texts: tuple[str, ...], values: dict[str, Any], target: str) -> None:
    """Raise if --positive names a value that the target does not have."""
    for text in texts:
        if text not in values:
            hint = suggest(text, list(values))
            raise IcscmError(f"the target {target!r} has no value {text!r}{hint}")


def _read_columns(
    saved: SavedModel, data: Path, options: Options, types: dict[str, str]
) -> pyarrow.Table:
    """The rows of a table or, of genomes, those of --labels with the genes of the model.

    The table of --labels names a genome in each row; the genes of that genome are added to it.
    """
    labels_path = options["labels"]
    are_genomes = files.check_labels(data, labels_path)
    if not are_genomes:
        return read_alike(saved, data, options, find_types(saved) | types)

    from icscm.model.saved import list_used
    from icscm.sources.bits.opening import read_genomes

    used_genes = list_used(saved)
    genomes = read_genomes(data, used_genes)

    table = read_alike(saved, labels_path, options, types)
    name_column = options["sample_column"] or table.column_names[0]
    check_columns([name_column], table.column_names, describe_path(labels_path))
    labelled_genomes = [str(name) for name in table.column(name_column).to_pylist()]

    genome_names = genomes.column("genome").to_pylist()
    position_of = {name: position for position, name in enumerate(genome_names)}
    reject_unknown(
        labelled_genomes, position_of, f"{labels_path} names genomes that {data} does not hold: "
    )

    genes = genomes.take([position_of[name] for name in labelled_genomes])
    for gene in used_genes:
        table = table.append_column(gene, genes.column(gene))
    return table
