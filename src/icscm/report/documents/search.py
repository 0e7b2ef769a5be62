"""The search of a report: what was chosen and what was rejected."""

from collections.abc import Sequence

from icscm.report.blocks import (
    Bullets,
    Document,
    Heading,
    Note,
    Paragraph,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.content.candidates import RuleCandidate, SplitCandidate
from icscm.report.content.learner import LearnerContent
from icscm.report.content.nodes import (
    Nodes,
    Pruning,
    PruningTestContent,
    RejectedCandidate,
    RejectedColumnContent,
    TriedTreeContent,
)
from icscm.report.documents.shared import (
    LIMITS,
    N_BRIEF,
    N_FEW,
    write_ratio,
    write_rejected_count,
)
from icscm.report.formatting import (
    Names,
    format_deviance,
    format_p,
    format_ratio,
    format_share,
    format_utility,
)
from icscm.report.selection import list_rejecting
from icscm.report.wording.ranges import describe_outliers
from icscm.report.wording.rejections import describe_pruning, explain_rejection
from icscm.report.wording.requirement import describe_margin, describe_tests
from icscm.report.wording.search import describe_end


def write_search(content: LearnerContent, *, is_brief: bool, with_rejected: bool) -> Document:
    """Return what was chosen and what was rejected.

    Each part is empty for models whose search has nothing of the kind: only an exhaustive search
    tests sets, only that of a tree rejects columns.
    """
    model = content.model
    nodes = content.nodes
    n_columns = N_BRIEF if is_brief else LIMITS.environments
    n_sets = N_FEW if is_brief else LIMITS.sets
    # the brief form says in the part on the model why no rule was found
    has_steps = model.is_rule_set and not (is_brief and not model.n_rules)

    document: Document = []
    if has_steps:
        document += write_steps(content, is_brief=is_brief)
    document += write_rejected_columns(nodes.rejected_columns[:n_columns])
    document += write_nearest(nodes.nearest, content.names)
    if not is_brief:
        document += write_screening(nodes)
    document += write_sets(nodes, n_listed=n_sets)
    document += write_outliers(nodes.outliers)
    if is_brief:
        document += write_rejected_features(content)
    if with_rejected:
        document += write_rejected(content)
    if not is_brief:
        document += write_tried_trees(nodes.tried)
    document += write_pruning(nodes.pruning)
    return document


# --- the search of a rule set ---------------------------------------------------------------------


def write_steps(content: LearnerContent, *, is_brief: bool) -> Document:
    """Return the rules in the order in which they were added."""
    nodes = content.nodes
    document: Document = [Heading("Search")]
    if not is_brief:
        document.append(Paragraph(describe_end(content)))
    if not nodes.added_rules:
        return document

    rows = []
    for step in nodes.added_rules:
        candidate = step.candidate
        remark = "" if step.in_model else " (removed by pruning)"
        row = [
            str(step.number),
            f"{shorten_name(candidate.rule)}{remark}",
            f"{candidate.n_right:,}",
            f"{candidate.n_wrong:,}",
            format_utility(candidate.utility),
            format_p(candidate.p_value),
            format_p(step.p_value_uncovered),
            write_rejected_count(step.size),
        ]
        rows.append(row)
    titles = [
        ">step",
        "rule",
        ">right",
        ">wrong",
        ">utility",
        ">p covered",
        ">p uncovered",
        ">rejected",
    ]
    return [*document, make_table(titles, rows), Note(describe_steps(content))]


def describe_steps(content: LearnerContent) -> str:
    """Return what the columns of the table of steps mean."""
    truth = "false" if content.model.kind == "conjunction" else "true"
    text = (
        "right, wrong: samples that the rule covers correctly and wrongly; it covers those where "
        f"it is {truth}."
    )
    if not content.nodes.is_tested:
        return text
    margin = describe_margin(content.task.requirement)
    return f"{text} {describe_tests(content.nodes, margin)}"


def write_nearest(nearest: Sequence[RejectedCandidate], names: Names) -> Document:
    """Return the rejected rules with the largest p-values."""
    if not nearest:
        return []
    rows = []
    for rejected in nearest:
        candidate = rejected.rule_candidate
        rows.append(
            [
                shorten_name(candidate.rule),
                f"{candidate.n:,}",
                format_utility(candidate.utility),
                format_p(candidate.p_value),
                shorten_sentence(explain_rejection(rejected, names)),
            ]
        )
    titles = ["nearest candidate", ">covers", ">utility", ">p covered", "why"]
    return [
        Paragraph("Candidates with the largest p-values in the last scan:"),
        make_table(titles, rows),
    ]


def write_screening(nodes: Nodes) -> Document:
    """Return the best rule of each column in the exhaustive search."""
    if not nodes.screening:
        return []
    rows = [[shorten_name(best.rule), format_p(best.p_value)] for best in nodes.screening]
    text = (
        "The best rule of each column that is associated with the label, p corrected for all rules "
        "tried:"
    )
    return [Paragraph(text), make_table(["rule", ">p"], rows)]


def write_sets(nodes: Nodes, *, n_listed: int) -> Document:
    """Return the sets of columns that the exhaustive search tested."""
    if not nodes.sets:
        return []
    rows = [
        [
            format_p(tested.p_value),
            format_deviance(tested.bic),
            shorten_name(", ".join(tested.features)) or "(none)",
            "yes" if tested.accepted else "no",
        ]
        for tested in nodes.sets[:n_listed]
    ]
    note = (
        "Sets of rules, those of largest p first; accepted where p exceeds "
        f"{nodes.alpha:g}. {len(nodes.sets):,} were tested."
    )
    return [make_table([">p", ">BIC", "set of columns", "accepted"], rows), Note(note)]


def write_outliers(outliers: Sequence[RejectedCandidate]) -> Document:
    """Return the rules that a few environments spoil."""
    points = []
    for rejected in outliers:
        candidate = rejected.candidate
        where = describe_outliers(rejected.outliers, candidate.n_seen)
        points.append(f"{shorten_name(candidate.rule)} {shorten_sentence(where)}.")
    return [Heading("Rejected because of a few environments"), Bullets(points)] if points else []


# --- rejected columns and candidates --------------------------------------------------------------


def write_rejected_columns(columns: Sequence[RejectedColumnContent]) -> Document:
    """Return the columns that a tree may not use."""
    if not columns:
        return []
    rows = []
    for column in columns:
        share = column.heterogeneity_share
        rows.append(
            [
                shorten_name(column.feature),
                "-" if share is None else format_share(share),
                write_ratio(column.lowest),
                write_ratio(column.highest),
                column.reason,
            ]
        )
    titles = ["rejected column", ">share", "lowest effect", "highest effect", "reason"]
    return [
        make_table(titles, rows),
        Note(
            "share: heterogeneity of the effect, given all other columns, as a share of the "
            "deviance explained. effect: odds ratio relative to the common one."
        ),
    ]


def write_rejected_features(content: LearnerContent) -> Document:
    """Return the best rejected split of columns that are not in the model."""
    rejected_splits = content.nodes.rejected_features
    if not rejected_splits:
        return []
    points = []
    for rejected in rejected_splits[:N_FEW]:
        reason = explain_rejection(rejected, content.names)
        points.append(f"{shorten_name(rejected.candidate.rule)}: {shorten_sentence(reason)}.")
    note = f"Associated with the label, but not in the {content.model.noun}."
    n_more = len(rejected_splits) - N_FEW
    if n_more > 0:
        note += f" There are {n_more:,} more."
    return [Heading("Rejected columns"), Bullets(points), Note(note)]


def write_rejected(content: LearnerContent) -> Document:
    """Return the rejected candidates of each scan."""
    scans = list_rejecting(content.nodes)[: LIMITS.leaves]
    if not scans:
        return []
    is_rule_set = content.model.is_rule_set
    measures = [">utility", ">p"] if is_rule_set else [">deviance", ">odds ratio", ">differs"]
    rows = [
        [
            shorten_name(scan.title),
            shorten_name(rejected.candidate.rule),
            *write_measures(rejected.candidate),
            shorten_sentence(explain_rejection(rejected, content.names)),
        ]
        for scan in scans
        for rejected in scan.rejected
    ]
    titles = ["scan", "rejected", *measures, "why"]
    return [Heading("Rejected candidates"), make_table(titles, rows)]


def write_measures(candidate: RuleCandidate | SplitCandidate) -> list[str]:
    """Return the worth of a rejected candidate, and what it was rejected by."""
    if isinstance(candidate, RuleCandidate):
        return [format_utility(candidate.utility), format_p(candidate.p_value)]
    return [
        format_deviance(candidate.deviance_explained),
        format_ratio(candidate.odds_ratio),
        f"{candidate.variation:.0%}",
    ]


# --- invariant rates, and pruning -----------------------------------------------------------------


def write_tried_trees(tried: Sequence[TriedTreeContent]) -> Document:
    """Return the trees that were grown in the search for invariant rates."""
    if not tried:
        return []
    rows = [
        [
            shorten_name(", ".join(tree.banned)) or "none",
            shorten_name(", ".join(tree.used)) or "none",
            format_deviance(tree.deviance_explained),
            format_deviance(tree.rate_heterogeneity),
            f"{tree.dof:,}",
            format_deviance(tree.score),
        ]
        for tree in tried[: LIMITS.sets]
    ]
    titles = ["excluded", "used", ">deviance", ">rate heterogeneity", ">by chance", ">score"]
    return [Heading("Trees tried"), make_table(titles, rows)]


def write_pruning(pruning: Pruning) -> Document:
    """Return what pruning removed and had to keep."""
    text = describe_pruning(pruning)
    return [Paragraph(shorten_sentence(text))] if text else []


def write_pruning_tests(pruning: Pruning) -> Document:
    """Return the tests of pruning."""
    if not pruning.tests:
        return []
    rows = [
        [
            str(test.round),
            shorten_name(test.feature),
            f"{test.statistic:.1f}",
            f"{test.dof:,}",
            format_p(test.p_value),
            describe_removal(test),
        ]
        for test in pruning.tests
    ]
    text = (
        "Pruning removes a column without which the label is still independent of the environment "
        "(p above alpha):"
    )
    titles = [">round", "without column", ">G", ">degrees of freedom", ">p", "removed"]
    return [Paragraph(text), make_table(titles, rows)]


def describe_removal(test: PruningTestContent) -> str:
    """Return whether pruning removed a column, and whether that was undone."""
    if test.removed:
        return "yes"
    return "undone" if test.undone else "no"
