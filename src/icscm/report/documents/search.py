"""The search of a report: what was chosen and what was rejected."""

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
from icscm.report.documents.model import describe_stop
from icscm.report.documents.shared import (
    LIMITS,
    N_BRIEF,
    N_FEW,
    write_ratio,
    write_rejected_count,
)
from icscm.report.formatting import (
    Plain,
    format_deviance,
    format_p,
    format_ratio,
    format_share,
    format_utility,
)
from icscm.report.selection import list_rejecting


def write_search(summary: Plain, *, is_brief: bool, with_rejected: bool) -> Document:
    """Return what was chosen and what was rejected."""
    model, nodes = summary["model"], summary["nodes"]
    document: Document = []
    has_search = model["noun"] == "rule" and not (is_brief and not model["n_rules"])
    if has_search:
        document += write_steps(summary, is_brief=is_brief)
    document += write_rejected_columns(nodes, is_brief=is_brief)
    document += write_nearest(nodes)
    if not is_brief:
        document += write_screening(nodes)
    document += write_sets(nodes, n_listed=N_FEW if is_brief else LIMITS.sets)
    document += write_outliers(nodes)
    if is_brief:
        document += write_rejected_features(nodes, model["noun"])
    if with_rejected:
        document += write_rejected(nodes, is_rule_set=model["noun"] == "rule")
    if not is_brief:
        document += write_tried_trees(nodes)
    if nodes["pruning"]["text"]:
        document.append(Paragraph(shorten_sentence(nodes["pruning"]["text"])))
    return document


def write_steps(summary: Plain, *, is_brief: bool) -> Document:
    """Return the steps of a rule set's search."""
    model, nodes = summary["model"], summary["nodes"]
    document: Document = [Heading("Search")]
    if not is_brief:
        document.append(Paragraph(describe_stop(nodes)))
    if not nodes["splits"]:
        return document
    rows = [
        [
            str(step["number"]),
            shorten_name(step["rule"]) + ("" if step["in_model"] else " (removed by pruning)"),
            f"{step['n_right']:,}",
            f"{step['n_wrong']:,}",
            format_utility(step["utility"]),
            format_p(step["p_value"]),
            format_p(step["p_value_uncovered"]),
            write_rejected_count(step),
        ]
        for step in nodes["splits"]
    ]
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
    truth = "false" if model["kind"] == "conjunction" else "true"
    note = (
        "right, wrong: samples that the rule covers correctly and wrongly; it covers those where "
        f"it is {truth}."
    )
    if nodes["is_tested"]:
        note += f" {nodes['tests_text']}"
    return [*document, make_table(titles, rows), Note(note)]


def write_rejected_columns(nodes: Plain, *, is_brief: bool) -> Document:
    """Return the columns that a tree may not use."""
    columns = nodes["rejected_columns"][: N_BRIEF if is_brief else LIMITS.environments]
    if not columns:
        return []
    rows = []
    for each in columns:
        share = each["heterogeneity_share"]
        rows.append(
            [
                shorten_name(each["feature"]),
                "-" if share is None else format_share(share),
                write_ratio(each["lowest"]),
                write_ratio(each["highest"]),
                each["reason"],
            ]
        )
    return [
        make_table(
            ["rejected column", ">share", "lowest effect", "highest effect", "reason"], rows
        ),
        Note(
            "share: heterogeneity of the effect, given all other columns, as a share of the "
            "deviance explained. effect: odds ratio relative to the common one."
        ),
    ]


def write_nearest(nodes: Plain) -> Document:
    """Return the rejected rules with the largest p-values."""
    if not nodes["nearest"]:
        return []
    rows = [
        [
            shorten_name(each["rule"]),
            f"{each['n']:,}",
            format_utility(each["utility"]),
            format_p(each["p_value"]),
            shorten_sentence(each["why"]),
        ]
        for each in nodes["nearest"]
    ]
    titles = ["nearest candidate", ">covers", ">utility", ">p covered", "why"]
    return [
        Paragraph("Candidates with the largest p-values in the last scan:"),
        make_table(titles, rows),
    ]


def write_screening(nodes: Plain) -> Document:
    """Return the best rule of each column in the exhaustive search."""
    if not nodes["screening"]:
        return []
    rows = [[shorten_name(each["rule"]), format_p(each["p_value"])] for each in nodes["screening"]]
    text = (
        "The best rule of each column that is associated with the label, p corrected for all rules "
        "tried:"
    )
    return [Paragraph(text), make_table(["rule", ">p"], rows)]


def write_sets(nodes: Plain, *, n_listed: int) -> Document:
    """Return the sets of columns that the exhaustive search tested."""
    sets = nodes["sets"]
    if not sets:
        return []
    rows = [
        [
            format_p(each["p_value"]),
            format_deviance(each["bic"]),
            shorten_name(", ".join(each["features"])) or "(none)",
            "yes" if each["accepted"] else "no",
        ]
        for each in sets[:n_listed]
    ]
    note = (
        "Sets of rules, those of largest p first; accepted where p exceeds "
        f"{nodes['alpha']:g}. {len(sets):,} were tested."
    )
    return [make_table([">p", ">BIC", "set of columns", "accepted"], rows), Note(note)]


def write_outliers(nodes: Plain) -> Document:
    """Return the rules that a few environments spoil."""
    points = [
        f"{shorten_name(each['rule'])} {shorten_sentence(each['outliers_text'])}."
        for each in nodes["outliers"]
    ]
    return [Heading("Rejected because of a few environments"), Bullets(points)] if points else []


def write_rejected_features(nodes: Plain, noun: str) -> Document:
    """Return the best rejected split of columns that are not in the model."""
    features = nodes["rejected_features"]
    if not features:
        return []
    points = [
        f"{shorten_name(each['rule'])}: {shorten_sentence(each['why'])}."
        for each in features[:N_FEW]
    ]
    note = f"Associated with the label, but not in the {noun}."
    if len(features) > N_FEW:
        note += f" There are {len(features) - N_FEW:,} more."
    return [Heading("Rejected columns"), Bullets(points), Note(note)]


def write_rejected(nodes: Plain, *, is_rule_set: bool) -> Document:
    """Return the rejected candidates of each scan."""
    scans = list_rejecting(nodes)[: LIMITS.leaves]
    if not scans:
        return []
    numbers = [">utility", ">p"] if is_rule_set else [">deviance", ">odds ratio", ">differs"]
    rows = []
    for scan in scans:
        for each in scan["rejected"]:
            if is_rule_set:
                values = [format_utility(each["utility"]), format_p(each["p_value"])]
            else:
                values = [
                    format_deviance(each["deviance_explained"]),
                    format_ratio(each["odds_ratio"]),
                    f"{each['variation']:.0%}",
                ]
            names = [shorten_name(scan["title"]), shorten_name(each["rule"])]
            rows.append([*names, *values, shorten_sentence(each["why"])])
    return [Heading("Rejected candidates"), make_table(["scan", "rejected", *numbers, "why"], rows)]


def write_tried_trees(nodes: Plain) -> Document:
    """Return the trees that were grown in the search for invariant rates."""
    if not nodes["tried"]:
        return []
    rows = [
        [
            shorten_name(", ".join(each["banned"])) or "none",
            shorten_name(", ".join(each["used"])) or "none",
            format_deviance(each["deviance_explained"]),
            format_deviance(each["rate_heterogeneity"]),
            f"{each['dof']:,}",
            format_deviance(each["score"]),
        ]
        for each in nodes["tried"][: LIMITS.sets]
    ]
    titles = ["excluded", "used", ">deviance", ">rate heterogeneity", ">by chance", ">score"]
    return [Heading("Trees tried"), make_table(titles, rows)]


def write_pruning_tests(summary: Plain) -> Document:
    """Return the tests of pruning."""
    tests = summary["nodes"]["pruning"]["tests"]
    if not tests:
        return []
    rows = [
        [
            str(test["round"]),
            shorten_name(test["feature"]),
            f"{test['statistic']:.1f}",
            f"{test['dof']:,}",
            format_p(test["p_value"]),
            describe_removal(test),
        ]
        for test in tests
    ]
    text = (
        "Pruning removes a column without which the label is still independent of the environment "
        "(p above alpha):"
    )
    titles = [">round", "without column", ">G", ">degrees of freedom", ">p", "removed"]
    return [Paragraph(text), make_table(titles, rows)]


def describe_removal(test: Plain) -> str:
    """Return whether pruning removed a column, and whether that was undone."""
    if test["removed"]:
        return "yes"
    return "undone" if test["undone"] else "no"
