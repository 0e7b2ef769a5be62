"""Section `headline`: title, facts, and the main results in a few sentences."""

from __future__ import annotations

from icscm.model.saved import Learner
from icscm.report.formatting import Names, Plain
from icscm.report.sections.leaves import count_conclusions
from icscm.report.texts import write_lines, write_text
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA


def make_headline(learner: Learner, names: Names, summary: Plain) -> Plain:
    """A title, facts, and on each of four topics an answer and a detail."""
    counts = count_conclusions(leaf["conclusion"] for leaf in summary["leaves"])
    order = NOT_INVARIANT, TOO_LITTLE_DATA, INVARIANT
    conclusion = next((each for each in order if each in counts), None)
    content: Plain = {
        **summary,
        "names": names,
        "trace": learner.trace_,
        "tests_invariance": learner.tests_invariance,
        "conclusion": conclusion,
        "n_worst": counts.get(conclusion or "", 0),
    }
    is_effect = summary["nodes"]["invariance"] == "effect"
    topics = {
        "model": ("Model", "model"),
        "error": ("Performance against baseline", "error"),
        "invariance": (
            f"Invariance over every {names.environment}",
            "effects" if is_effect else "rates",
        ),
        "rejected": ("Rejected candidates", "rejected"),
    }
    headline: Plain = {"title": write_text("title", **content), "facts": list_facts(content)}
    for name, (topic, block) in topics.items():
        answer, *details = write_lines(block, **content)
        texts = {"topic": topic, "answer": answer, "detail": " ".join(details)}
        headline[name] = {**texts, "conclusion": conclusion if block == "rates" else None}
    return headline


def list_facts(content: Plain) -> list[list[str]]:
    """Terms and texts: a warning if there is cause, the model, its error and metrics."""
    return [line.split(": ", 1) for line in write_lines("facts", **content)]
