"""The TRIPOD+AI checklist as a document."""

from collections.abc import Sequence

from icscm.report.blocks import (
    Document,
    Heading,
    Paragraph,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.formatting import Plain


def write_document(summary: Plain, items: Sequence[Sequence[str]]) -> Document:
    """Return the items of the checklist: number, topic and text."""
    task, about = summary["task"], summary["about"]
    data = f"Data: {shorten_name(task['data'])}, " if task["data"] else ""
    rows = [[number, topic, shorten_sentence(text)] for number, topic, text in items]
    return [
        Heading(f"TRIPOD+AI checklist: {shorten_name(summary['model']['name'])}", level=1),
        Paragraph(
            f"{data}{task['n_rows']:,} samples. Items abridged from Collins and others, BMJ "
            f"2024;385:e078378; filled in by {about['package']} {about['version']} as far as the "
            "data and the model determine them."
        ),
        make_table(["item", "topic", "in this study"], rows),
    ]
