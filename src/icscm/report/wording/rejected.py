"""The answer of a report on rejected candidates: how many there are, and the best of them."""

from icscm.formatting import count
from icscm.report.content.learner import LearnerContent
from icscm.report.content.nodes import CriterionName, Nodes
from icscm.report.formatting import format_features
from icscm.report.wording.facts import Answer, Judgement
from icscm.report.wording.rejections import explain_rejection
from icscm.report.wording.requirement import SHARED_BY_SETS
from icscm.stats.giveaways import DETERMINES


def answer_rejected(content: LearnerContent) -> Answer:
    """Return how many candidates were rejected, and the best of them."""
    rejected = judge_rejected(content)
    return Answer("Rejected candidates", rejected.answer, rejected.detail)


def judge_rejected(content: LearnerContent) -> Judgement:
    """Return the number and the best of sets of rules, columns, or candidates of a scan."""
    nodes = content.nodes
    if not nodes.is_tested:
        return Judgement("None", f"Nothing was tested: {explain_untested(content)}.")
    if nodes.criterion == CriterionName.SETS:
        return judge_rejected_sets(nodes)
    if content.model.noun == "score":
        return judge_rejected_columns(nodes)
    return judge_first_scan(content)


def explain_untested(content: LearnerContent) -> str:
    """Return why no candidate was tested."""
    if content.tests_invariance and not content.task.has_environments:
        return "the data have no environments"
    return "the search did not use environments"


def judge_rejected_sets(nodes: Nodes) -> Judgement:
    """Return how many sets of rules were rejected, in a search of all sets."""
    n_rejected = sum(not candidate_set.accepted for candidate_set in nodes.sets)
    n_sets = count(len(nodes.sets), "set")
    detail = (
        "In the leaves of a rejected set the label still depends on the environment. The model "
        f"is {SHARED_BY_SETS}."
    )
    return Judgement(f"{n_rejected:,} of {n_sets} of rules", detail)


def judge_rejected_columns(nodes: Nodes) -> Judgement:
    """Return how many columns the screen before a score rejected, and which."""
    columns = [rejected.feature for rejected in nodes.rejected_columns]
    if not columns:
        return Judgement(count(0, "column"), "All columns passed the screen.")
    return Judgement(count(len(columns), "column"), f"{format_features(columns)}.")


def judge_first_scan(content: LearnerContent) -> Judgement:
    """Return how many candidates of the first scan were rejected, and the best of them."""
    nodes = content.nodes
    first_scan = nodes.scans[0] if nodes.scans else None
    if first_scan is None or not first_scan.size.n_rejected_all:
        determining = nodes.determining_columns
        if determining:
            listed = f"Before the search: {format_features(determining)}, {DETERMINES}."
            return Judgement(count(len(determining), "column"), listed)
        return Judgement("None in the first scan", "No candidate was rejected there.")

    n_rejected = first_scan.size.n_rejected_all
    candidates = count(first_scan.size.n_candidates, "candidate")
    if content.model.is_rule_set:
        answer = f"{n_rejected:,} of {candidates} in the first scan"
        return Judgement(answer, detail_rejected_rules(content))
    answer = f"{n_rejected:,} of {candidates} of all samples"
    return Judgement(answer, detail_rejected_splits(content))


def detail_rejected_rules(content: LearnerContent) -> str:
    """Return the most useful rejected rule, and why it was rejected."""
    best = content.nodes.best_rejected
    assert best is not None
    reason = explain_rejection(best, content.names)
    return f"The most useful of all, {best.candidate.rule}: {reason}."


def detail_rejected_splits(content: LearnerContent) -> str:
    """Return the columns of rejected splits that are not in the model, and the best split."""
    rejected_splits = content.nodes.rejected_features
    if not rejected_splits:
        return "Every column with a rejected split is in the model."
    columns = format_features([rejected.candidate.feature for rejected in rejected_splits])
    best = rejected_splits[0]
    reason = explain_rejection(best, content.names)
    return (
        f"Associated with the label but not in the {content.model.noun}: {columns}. The split that "
        f"explains most, {best.candidate.rule}: {reason}."
    )
