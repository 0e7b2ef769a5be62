"""The choice of settings by cross-validation as a document."""

from collections.abc import Mapping, Sequence
from typing import Any

from icscm.report.blocks import Document, Heading, Note, make_table
from icscm.report.formatting import format_value


def write_document(
    *,
    best: Mapping[str, Any],
    tried: Sequence[Mapping[str, Any]],
    scores: Sequence[float],
    baseline: float,
    scorer: str,
    title: str,
    n_folds: int,
    folds: str,
    beats_baseline: bool,
) -> Document:
    """Return every combination of settings with its score, and that of the baseline.

    `best` are the settings that were chosen, `title` is that of the scorer, and `folds` what was
    left out.
    """
    is_share = scorer.endswith("accuracy")
    n_settings = len(best)
    rows = []
    for settings, score in zip(tried, scores, strict=True):
        chosen = "  <- chosen" if settings == best else ""
        values = [format_value(value) for value in settings.values()]
        rows.append([*values, f"{format_score(score, is_share=is_share)}{chosen}"])
    empty = [""] * (n_settings - 1)
    rows.append(["baseline", *empty, format_score(baseline, is_share=is_share)])

    measure = title.lower().replace("auc", "AUC")
    direction = "Smaller" if scorer == "log_loss" else "Larger"
    note = (
        f"Mean over {n_folds} folds of {folds}. {direction} is better. baseline: the majority "
        "class."
    )
    if not beats_baseline:
        note += " No combination is better than the baseline."
    return [
        Heading(f"{', '.join(best)} by cross-validation"),
        make_table([*best, f"{measure} where held out"], rows),
        Note(note),
    ]


def format_score(score: float, *, is_share: bool) -> str:
    """Return a score; accuracies in percent."""
    return f"{score:.2%}" if is_share else f"{score:.4f}"
