"""How the search of a rule set ended: why it stopped, and what its last scan rejected."""

from icscm.report.content.learner import LearnerContent
from icscm.report.content.nodes import Nodes
from icscm.report.wording.rejections import describe_rejections
from icscm.search.records import STOP_REASONS


def describe_stop(stop_reason: str | None) -> str:
    """Return why the search at one level of alpha stopped."""
    return f"The search stopped because {STOP_REASONS[stop_reason or 'no_candidate']}."


def describe_own_stop(content: LearnerContent) -> str | None:
    """Return why the search of the report's own model stopped; None of a tree, which has no end."""
    return content.trace.stop_text if content.nodes.is_chain else None


def describe_last_rejections(nodes: Nodes) -> str | None:
    """Return why candidates of the last scan were rejected; None if there is nothing to say."""
    if nodes.last_scan is None:
        return None
    return describe_rejections(nodes.last_scan.size) or None


def describe_end(content: LearnerContent) -> str:
    """Return why the search stopped, and what its last scan rejected."""
    sentences = [describe_own_stop(content), describe_last_rejections(content.nodes)]
    return " ".join(sentence for sentence in sentences if sentence)
