"""The leaves of a report, and prediction intervals for a new environment."""

from icscm._constants import VERDICT_CONFIDENCE, VERDICT_POWER
from icscm.report.blocks import (
    Document,
    Heading,
    Note,
    Paragraph,
    make_table,
    note_more,
    shorten_name,
    shorten_sentence,
)
from icscm.report.content.learner import LearnerContent
from icscm.report.content.leaves import Leaf
from icscm.report.content.rates import RateExtreme
from icscm.report.documents.shared import (
    LIMITS,
    choose_by_name,
    name_environments,
    write_rates,
)
from icscm.report.formatting import (
    format_detectable,
    format_p,
    format_points,
    format_prediction_interval,
    format_share,
)
from icscm.report.selection import choose_leaves, list_new_intervals
from icscm.report.wording.intervals import describe_new_environments, describe_unknown_intervals
from icscm.report.wording.leaves import explain_leaf
from icscm.report.wording.ranges import describe_outliers
from icscm.report.wording.requirement import (
    describe_bounds,
    describe_margin,
    describe_null_hypothesis,
)
from icscm.search.records import STOP_REASONS
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Leaves of a tree that are named by their conditions in the short form; of more, by numbers.
N_NAMED_LEAVES = 8
# Environments that have a column each in the short form; of more, the extremes are shown.
N_SIDE_BY_SIDE = 3
SYMBOLS = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}
SHORT_CONCLUSIONS = {
    INVARIANT: "yes",
    NOT_INVARIANT: "no",
    TOO_LITTLE_DATA: "too little data",
}


# --- the whole report -----------------------------------------------------------------------------


def write_leaves(content: LearnerContent) -> Document:
    """Return every leaf with its verdict and its rates by environment."""
    if not content.leaves:
        return []
    document: Document = [Heading("Leaves"), Paragraph(describe_verdicts(content))]
    for leaf in choose_leaves(content.leaves, LIMITS):
        document += write_leaf(leaf, content)
    return document


def describe_verdicts(content: LearnerContent) -> str:
    """Return what the verdicts on leaves test, and at which levels."""
    requirement = content.task.requirement
    difference_confidence = requirement.difference_confidence
    if not content.task.has_environments or difference_confidence is None:
        return "The data have no environments, so rates cannot be compared."
    null_hypothesis = shorten_sentence(describe_null_hypothesis(content.names))
    margin = describe_margin(requirement)
    afterwards = "; tested after the search" if requirement.afterwards else ""
    return (
        f"Null hypothesis of every test: {null_hypothesis} Level {requirement.alpha:g}, margin "
        f"{margin}{afterwards}. Intervals of rates: {write_percent(VERDICT_CONFIDENCE)}; of "
        f"differences: {write_percent(difference_confidence)}. The minimum detectable difference "
        f"is detected with probability {write_percent(VERDICT_POWER)}."
    )


def write_percent(level: float) -> str:
    """Return a level of confidence or a power.

    >>> write_percent(0.95), write_percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:.4g}%"


def write_leaf(leaf: Leaf, content: LearnerContent) -> Document:
    """Return one leaf."""
    model = content.model
    document: Document = [Heading(f"Leaf {leaf.number}: {shorten_name(leaf.condition)}", level=3)]
    if leaf.end is not None and model.n_rules:
        document.append(
            Paragraph(
                f"Rate {format_share(leaf.rate)}; predicts {shorten_name(leaf.predicts)}"
                f"{model.at_threshold}. It was not split because {STOP_REASONS[leaf.end]}."
            )
        )
    if leaf.conclusion is not None:
        conclusion = f"{SYMBOLS[leaf.conclusion]} {leaf.conclusion}"
        explanation = explain_leaf(leaf, content.names, content.task.requirement)
        document.append(Paragraph(f"{conclusion}. {shorten_sentence(explanation)}"))
        document.append(Paragraph(describe_test(leaf)))

    n_environments = len(leaf.environments)
    shown = choose_by_name(leaf.environments) if n_environments > 1 else []
    titles = [name_environments(content.names), ">samples", ">rate", "interval"]
    document.append(write_rates(leaf, shown, titles))
    if 0 < len(shown) < n_environments:
        text = f"The {len(shown):,} with the most samples of {n_environments:,} are listed."
        document.append(Paragraph(text))
    return document


def describe_test(leaf: Leaf) -> str:
    """Return the p-value, the largest difference and the minimum detectable one."""
    difference = "undefined"
    if leaf.difference is not None and leaf.difference_interval is not None:
        low, high = leaf.difference_interval
        difference = (
            f"{format_points(leaf.difference)} ({format_points(low)} to {format_points(high)})"
        )
    return (
        f"p-value {format_p(leaf.p_value)}; difference {difference}; minimum detectable "
        f"difference {format_detectable(leaf.detectable)}."
    )


# --- the short form -------------------------------------------------------------------------------


def write_brief_leaves(content: LearnerContent) -> Document:
    """Return a table with a row for each leaf, and below it what the verdicts on leaves mean.

    Its columns are the leaf, what it predicts, its rates in environments, and the verdict. Of few
    environments all rates are shown, of many the extremes:

        leaf        predicts    north          south                       invariant?
        age > 63    positive    20% of 500     22% of 310                  yes

        leaf        predicts    samples    lowest           highest        invariant?
        age > 63    positive    12,408     9% of 65 (e7)    31% of 80 (e2) no

    Without environments no leaf has a verdict. Leaves that would be invariant but for a few
    environments are then listed with these.
    """
    has_verdicts = content.task.has_environments
    shown_leaves = choose_leaves(content.leaves, LIMITS)

    titles = list_brief_titles(content)
    if has_verdicts:
        titles.append("invariant?")

    rows = []
    for leaf in shown_leaves:
        row = list_brief_cells(leaf, content)
        if has_verdicts:
            assert leaf.conclusion is not None
            row.append(SHORT_CONCLUSIONS[leaf.conclusion])
        rows.append(row)

    n_more = len(content.leaves) - len(shown_leaves)
    document: Document = [
        Heading("Rate of positive labels in each leaf, by environment"),
        make_table(titles, rows),
        *note_more(n_more, f"The report lists {n_more:,} more leaves."),
    ]
    if has_verdicts:
        document.append(Note(describe_brief_leaves(content)))
    for leaf in content.leaves:
        if leaf.outliers:
            where = describe_outliers(leaf.outliers, leaf.n_seen)
            document.append(Paragraph(f"Leaf {leaf.number} is not invariant: it {where}."))
    return document


def has_column_for_each_environment(content: LearnerContent) -> bool:
    """Return whether environments are few enough to be shown side by side."""
    return content.task.n_environments <= N_SIDE_BY_SIDE


def list_brief_titles(content: LearnerContent) -> list[str]:
    """Return the titles of the columns but the verdict; `>` begins that of a column of numbers.

    That of the prediction has the threshold of the model, if it has one: `at 0.3`.
    """
    threshold = content.model.at_threshold.replace("threshold ", "").strip()
    titles = ["leaf", threshold or "predicts"]
    if not has_column_for_each_environment(content):
        return [*titles, ">samples", "lowest", "highest"]
    environments = [rate.environment for rate in content.task.environments]
    return [*titles, *(f">{shorten_name(environment)}" for environment in environments)]


def list_brief_cells(leaf: Leaf, content: LearnerContent) -> list[str]:
    """Return the cells of a leaf's row but the verdict, under `list_brief_titles`."""
    cells = [name_leaf(leaf.name, content), "positive" if leaf.is_positive else "negative"]
    if not has_column_for_each_environment(content):
        return [*cells, *list_extremes(leaf)]
    return [*cells, *list_side_by_side(leaf)]


def name_leaf(name: str, content: LearnerContent) -> str:
    """Return the name of a leaf; of one of many of a tree the number alone."""
    is_long = content.model.noun == "tree" and len(content.leaves) > N_NAMED_LEAVES
    return shorten_name(name.split(":")[0] if is_long else name)


def list_side_by_side(leaf: Leaf) -> list[str]:
    """Return the rate in each environment."""
    return [
        f"{format_share(rate.rate)} of {rate.n:,}" if rate.n else "no sample"
        for rate in leaf.environments
    ]


def list_extremes(leaf: Leaf) -> list[str]:
    """Return the number of rows, and the environments of the lowest and the highest rate."""
    n_rows = f"{leaf.n:,}"
    if leaf.lowest is None or leaf.highest is None:
        return [n_rows, "no sample", ""]
    highest = write_rate(leaf.highest) if leaf.n_seen > 1 else "no other environment"
    return [n_rows, write_rate(leaf.lowest), highest]


def write_rate(extreme: RateExtreme) -> str:
    """Return the rate in an environment, and of how many rows."""
    environment = shorten_name(extreme.environment)
    return f"{format_share(extreme.rate)} of {extreme.n:,} ({environment})"


def describe_brief_leaves(content: LearnerContent) -> str:
    """Return what the verdicts mean, and where all environments are listed."""
    text = describe_bounds(content.leaves, describe_margin(content.task.requirement))
    if content.nodes.invariance == "effect" and content.nodes.is_tested:
        text += " Effects must be homogeneous; rates may differ between environments."
    if content.task.n_environments > N_SIDE_BY_SIDE:
        text += " The report, and icscm show --all for a saved model, list all environments."
    return text


# --- a new environment ----------------------------------------------------------------------------


def write_new_environments(content: LearnerContent, *, is_brief: bool) -> Document:
    """Return the prediction intervals for a new environment."""
    text = shorten_sentence(describe_new_environments(content.new_environments, content.names))
    unknown_text = describe_unknown_intervals(content.new_environments)
    document: Document = [
        Heading("95% prediction interval for a new environment"),
        Paragraph(f"{text} {unknown_text}" if unknown_text else text),
    ]
    rows = [
        [
            name_leaf(row.name, content) if is_brief else shorten_name(row.name),
            format_share(row.rate),
            row.seen,
            format_prediction_interval(row.new_interval),
            "-" if row.known_interval is None else format_prediction_interval(row.known_interval),
            f"{row.tau:.2f}",
        ]
        for row in list_new_intervals(content, LIMITS)
    ]
    if rows:
        titles = ["leaf", ">rate", "in training", "at a new site", "if rate known", ">tau"]
        document.append(make_table(titles, rows))
    return document
