"""Section `advice`: what the result means, warnings, and what to try where nothing was found."""

from __future__ import annotations

from icscm.exceptions import Parameter, Words
from icscm.model.saved import Learner
from icscm.report.formatting import Names, Plain
from icscm.report.texts import write_lines


def make_advice(learner: Learner, names: Names, summary: Plain, words: Words) -> Plain:
    """What the result shows and does not show, warnings about it, and suggestions."""
    nodes = summary["nodes"]
    last = nodes["scans"][len(nodes["splits"]) :][-1:]  # the scan that found no rule
    misses = nodes["sets"] if nodes["criterion"] == "sets" else nodes["nearest"]
    content: Plain = {
        **summary,
        "names": names,
        "trace": learner.trace_,
        "settings": learner.get_params(deep=False),
        "n_rejected": dict.fromkeys(_REASONS, 0) | (last[0]["n_rejected"] if last else {}),
        "cutoff": (last and last[0]["cutoff"]) or nodes["alpha"],
        "nearest": next((each["p_value"] for each in misses), None),
        "option": lambda *parameter: words(Parameter(*parameter)),
    }
    kind = "rules" if summary["model"]["noun"] == "rule" else "trees"

    def write(block: str) -> list[str]:
        return write_lines(block, **content)

    return {
        "shows": write("shows"),
        "does_not_show": write("does_not_show"),
        "warnings": write(f"warnings_of_{kind}"),
        "suggestions": write(f"suggestions_of_{kind}"),
    }


# Reasons for which candidates are rejected that suggestions speak of.
_REASONS = ("small", "unreplicated", "unhelpful", "dependent")
