"""The TRIPOD+AI checklist as a document."""

from collections.abc import Sequence

from icscm._version import __version__
from icscm.report.blocks import (
    Document,
    Heading,
    Paragraph,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.content.learner import LearnerContent
from icscm.report.wording.model import name_model
from icscm.report.wording.tripod import Item


def write_document(content: LearnerContent, items: Sequence[Item]) -> Document:
    """Return the items of the checklist: number, topic and text."""
    task = content.task
    name = name_model(content.learned, content.model.features)
    data = f"Data: {shorten_name(task.data)}, " if task.data else ""
    rows = [[item.number, item.topic, shorten_sentence(item.text)] for item in items]
    return [
        Heading(f"TRIPOD+AI checklist: {shorten_name(name)}", level=1),
        Paragraph(
            f"{data}{task.n_rows:,} samples. Items abridged from Collins and others, BMJ "
            f"2024;385:e078378; filled in by icscm {__version__} as far as the data and the model "
            "determine them."
        ),
        make_table(["item", "topic", "in this study"], rows),
    ]
