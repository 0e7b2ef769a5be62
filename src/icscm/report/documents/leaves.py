"""The leaves of a report, and prediction intervals for a new environment."""

from icscm.report.blocks import (
    Document,
    Heading,
    Note,
    Paragraph,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.documents.shared import (
    LIMITS,
    choose_by_name,
    list_rates,
    note_more,
)
from icscm.report.formatting import (
    Plain,
    format_detectable,
    format_p,
    format_points,
    format_prediction_interval,
    format_share,
)
from icscm.report.selection import choose_leaves, list_new_intervals
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Leaves of a tree that are named by their conditions, and environments that have a column of their
# own in the short form.
N_NAMED_LEAVES, N_SIDE_BY_SIDE = 8, 3
SYMBOLS = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}
SHORT_CONCLUSIONS = {
    INVARIANT: "yes",
    NOT_INVARIANT: "no",
    TOO_LITTLE_DATA: "too little data",
}


def write_leaves(summary: Plain) -> Document:
    """Return every leaf with its verdict and its rates by environment."""
    if not summary["leaves"]:
        return []
    document: Document = [Heading("Leaves"), Paragraph(describe_verdicts(summary["task"]))]
    for leaf in choose_leaves(summary["leaves"], LIMITS):
        document += write_leaf(leaf, summary)
    return document


def describe_verdicts(task: Plain) -> str:
    """Return what the verdicts on leaves test, and at which levels."""
    requirement = task["requirement"]
    if not task["has_environments"]:
        return "The data have no environments, so rates cannot be compared."
    afterwards = "; tested after the search" if requirement["afterwards"] else ""
    percents = {
        key: f"{100 * requirement[key]:.4g}%"
        for key in ("confidence", "difference_confidence", "power")
    }
    return (
        f"Null hypothesis of every test: {shorten_sentence(requirement['null_hypothesis'])} Level "
        f"{requirement['alpha']:g}, margin {requirement['margin_text']}{afterwards}. Intervals of "
        f"rates: {percents['confidence']}; of differences: {percents['difference_confidence']}. "
        f"The minimum detectable difference is detected with probability {percents['power']}."
    )


def write_leaf(leaf: Plain, summary: Plain) -> Document:
    """Return one leaf."""
    model, task = summary["model"], summary["task"]
    document: Document = [
        Heading(f"Leaf {leaf['number']}: {shorten_name(leaf['condition'])}", level=3)
    ]
    if leaf["end_text"] and model["n_rules"]:
        document.append(
            Paragraph(
                f"Rate {format_share(leaf['rate'])}; predicts {shorten_name(leaf['predicts'])}"
                f"{model['at_threshold']}. It was not split because {leaf['end_text']}."
            )
        )
    if leaf["conclusion"]:
        conclusion = f"{SYMBOLS[leaf['conclusion']]} {leaf['conclusion']}"
        document.append(Paragraph(f"{conclusion}. {shorten_sentence(leaf['explanation'])}"))
        document.append(Paragraph(describe_test(leaf)))
    environments = leaf["environments"]
    shown = choose_by_name(environments) if len(environments) > 1 else []
    titles = [shorten_name(task["environment"]), ">samples", ">rate", "interval"]
    document += list_rates(leaf, shown, titles)
    if len(shown) < len(environments) and shown:
        document.append(
            Paragraph(
                f"The {len(shown):,} with the most samples of {len(environments):,} are listed."
            )
        )
    return document


def describe_test(leaf: Plain) -> str:
    """Return the p-value, the largest difference and the minimum detectable one."""
    difference = "undefined"
    if leaf["difference"] is not None:
        low, high = leaf["difference_interval"]
        difference = (
            f"{format_points(leaf['difference'])} ({format_points(low)} to {format_points(high)})"
        )
    return (
        f"p-value {format_p(leaf['p_value'])}; difference {difference}; minimum detectable "
        f"difference {format_detectable(leaf['detectable'])}."
    )


def write_brief_leaves(summary: Plain) -> Document:
    """Return the rates of leaves in few environments, or their extremes."""
    model, task, leaves = summary["model"], summary["task"], summary["leaves"]
    shown = choose_leaves(leaves, LIMITS)
    is_side_by_side = task["n_environments"] <= N_SIDE_BY_SIDE
    by_environment = [">samples", "lowest", "highest"]
    if is_side_by_side:
        by_environment = [f">{shorten_name(each['environment'])}" for each in task["environments"]]
    predicts = model["at_threshold"].replace("threshold ", "").strip() or "predicts"
    titles = ["leaf", predicts, *by_environment]
    titles += ["invariant?"] if task["has_environments"] else []
    rows = []
    for leaf in shown:
        row = [
            name_leaf(leaf["name"], summary),
            "positive" if leaf["is_positive"] else "negative",
        ]
        row += list_side_by_side(leaf) if is_side_by_side else list_extremes(leaf)
        if task["has_environments"]:
            row.append(SHORT_CONCLUSIONS[leaf["conclusion"]])
        rows.append(row)
    document: Document = [
        Heading("Rate of positive labels in each leaf, by environment"),
        make_table(titles, rows),
    ]
    n_more = len(leaves) - len(shown)
    document += note_more(n_more, f"The report lists {n_more:,} more leaves.")
    if task["has_environments"]:
        document.append(Note(describe_brief_leaves(summary)))
    return [
        *document,
        *(
            Paragraph(f"Leaf {leaf['number']} is not invariant: it {leaf['outliers_text']}.")
            for leaf in leaves
            if leaf["outliers"]
        ),
    ]


def name_leaf(name: str, summary: Plain) -> str:
    """Return the name of a leaf; of one of many of a tree the number alone."""
    is_long = summary["model"]["noun"] == "tree" and len(summary["leaves"]) > N_NAMED_LEAVES
    return shorten_name(name.split(":")[0] if is_long else name)


def list_side_by_side(leaf: Plain) -> list[str]:
    """Return the rate in each environment."""
    return [
        f"{format_share(each['rate'])} of {each['n']:,}" if each["n"] else "no sample"
        for each in leaf["environments"]
    ]


def list_extremes(leaf: Plain) -> list[str]:
    """Return the number of rows, and the environments of the lowest and the highest rate."""
    lowest = highest = "no sample"
    if leaf["lowest"] is not None:
        lowest, highest = write_rate(leaf["lowest"]), "no other environment"
    if leaf["n_seen"] > 1:
        highest = write_rate(leaf["highest"])
    elif not leaf["n_seen"]:
        highest = ""
    return [f"{leaf['n']:,}", lowest, highest]


def write_rate(extreme: Plain) -> str:
    """Return the rate in an environment, and of how many rows."""
    environment = shorten_name(extreme["environment"])
    return f"{format_share(extreme['rate'])} of {extreme['n']:,} ({environment})"


def describe_brief_leaves(summary: Plain) -> str:
    """Return what the verdicts mean, and where all environments are listed."""
    task, nodes = summary["task"], summary["nodes"]
    text: str = task["requirement"]["bounds_text"]
    if nodes["invariance"] == "effect" and nodes["is_tested"]:
        text += " Effects must be homogeneous; rates may differ between environments."
    if task["n_environments"] > N_SIDE_BY_SIDE:
        text += " The report, and icscm show --all for a saved model, list all environments."
    return text


def write_new_environments(summary: Plain, *, is_brief: bool) -> Document:
    """Return the prediction intervals for a new environment."""
    new = summary["new_environments"]
    text = " ".join(filter(None, [shorten_sentence(new["text"]), new["unknown_text"]]))
    document: Document = [
        Heading("95% prediction interval for a new environment"),
        Paragraph(text),
    ]
    rows = [
        [
            name_leaf(row.name, summary) if is_brief else shorten_name(row.name),
            format_share(row.rate),
            row.seen,
            format_prediction_interval(row.new_interval),
            "-" if row.known_interval is None else format_prediction_interval(row.known_interval),
            f"{row.tau:.2f}",
        ]
        for row in list_new_intervals(summary, LIMITS)
    ]
    if rows:
        titles = ["leaf", ">rate", "in training", "at a new site", "if rate known", ">tau"]
        document.append(make_table(titles, rows))
    return document
