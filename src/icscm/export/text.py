"""A model as a text for an e-mail or a paper."""

from __future__ import annotations

from collections.abc import Sequence

from icscm._repr import align
from icscm.export.conditions import make_leaves
from icscm.export.templates import fill_template
from icscm.formatting import as_text, format_level
from icscm.model.forest import Forest
from icscm.model.saved import SavedModel
from icscm.model.score import Score
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree


def make_text(saved: SavedModel) -> str:
    """Write the rule, tree or score with tables of its leaves; of a forest, a summary."""
    model = saved.model
    leaf_table: Sequence[str] = []
    environment_table: Sequence[str] = []
    if not isinstance(model, Forest):
        leaf_table = _write_leaf_table(saved, model)
        if saved.environments is not None:
            environment_table = _write_environment_table(saved.environments, model)
    return fill_template(
        "model.text.txt",
        saved,
        chain=CHAINS.get(model.kind),
        leaves=leaf_table,
        environments=environment_table,
    )


def _write_leaf_table(saved: SavedModel, model: Tree | Score) -> Sequence[str]:
    """Write a line for each leaf: its prediction, its probability and its training rows."""
    negative, positive = map(format_level, saved.classes)
    header = ["decided by", "predicts", f"probability of {positive}", negative, positive]
    table = [header]
    for leaf in make_leaves(saved, model):
        n_negative, n_positive = leaf.training_samples
        table.append(
            [
                leaf.decided_by,
                format_level(leaf.prediction),
                f"{leaf.probability:.4f}",
                f"{n_negative:,}",
                f"{n_positive:,}",
            ]
        )
    return align(table, n_text=2)


def _write_environment_table(environments: Sequence[object], model: Tree | Score) -> Sequence[str]:
    """Write the positive rows and all rows of each leaf, by environment.

    environment      p1       p2
    line 1       3 / 10  12 / 40
    line 2        7 / 9  25 / 31

    Line 1 is the first leaf in the table of leaves. A chain has few leaves, which are columns here.
    """
    header = ["environment", *map(as_text, environments)]
    table = [header]
    for line_number, (negatives, positives) in enumerate(model.leaves, start=1):
        cells = [
            f"{n_positive:,} / {n_negative + n_positive:,}"
            for n_negative, n_positive in zip(negatives, positives, strict=True)
        ]
        table.append([f"line {line_number}", *cells])
    if model.is_chain:
        table = [list(column) for column in zip(*table, strict=True)]
    return align(table, n_text=1)
