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
    leaves: Sequence[str] = []
    environments: Sequence[str] = []
    if not isinstance(model, Forest):
        leaves = _list_leaves(saved, model)
        if saved.environments is not None:
            environments = _list_environments(saved.environments, model)
    return fill_template(
        "model.text.txt",
        saved,
        chain=CHAINS.get(model.kind),
        leaves=leaves,
        environments=environments,
    )


def _list_leaves(saved: SavedModel, model: Tree | Score) -> Sequence[str]:
    """List each leaf with its prediction, its probability and its training rows."""
    negative, positive = map(format_level, saved.classes)
    rows = [["decided by", "predicts", f"probability of {positive}", negative, positive]]
    for leaf in make_leaves(saved, model):
        n_negative, n_positive = leaf.training_samples
        rows.append(
            [
                leaf.decided_by,
                format_level(leaf.prediction),
                f"{leaf.probability:.4f}",
                f"{n_negative:,}",
                f"{n_positive:,}",
            ]
        )
    return align(rows, n_text=2)


def _list_environments(environments: Sequence[object], model: Tree | Score) -> Sequence[str]:
    """List the positives and all rows of each leaf by environment.

    A chain has few leaves, which are columns; those of a tree are rows.
    """
    lines = [["environment", *map(as_text, environments)]]
    for number, (negatives, positives) in enumerate(model.leaves, start=1):
        cells = [
            f"{n_positive:,} / {n_negative + n_positive:,}"
            for n_negative, n_positive in zip(negatives, positives, strict=True)
        ]
        lines.append([f"line {number}", *cells])
    if model.is_chain:
        lines = [list(column) for column in zip(*lines, strict=True)]
    return align(lines, n_text=1)
