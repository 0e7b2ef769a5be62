"""The model of a report: rules, a tree, points, or the trees of a forest."""

from collections.abc import Sequence

from icscm.formatting import shorten_list
from icscm.report.blocks import (
    Block,
    Bullets,
    Cell,
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
    N_BRIEF,
    write_ratio,
    write_rejected_count,
)
from icscm.report.drawing import draw_nodes
from icscm.report.formatting import (
    Plain,
    format_deviance,
    format_ratio,
    format_score,
    format_share,
)
from icscm.report.selection import choose_leaves

# Levels by which a node of a tree is indented at most.
MAX_LEVEL = 12


def write_model(summary: Plain, *, is_brief: bool) -> Document:
    """Return the rules, the tree, the points or the trees; why there is no rule."""
    model = summary["model"]
    if model["noun"] != "rule":
        return [
            *write_tree(summary, is_brief=is_brief),
            *write_points(summary),
            *write_trees(summary, is_brief=is_brief),
        ]
    if is_brief and not model["n_rules"]:
        return [
            Heading("Why no rule was found"),
            *write_discarded(summary),
            Paragraph(describe_stop(summary["nodes"])),
        ]
    document: Document = [] if is_brief else write_rules(summary)
    return [*document, *write_equivalent_rules(model, is_brief=is_brief)]


def write_rules(summary: Plain) -> Document:
    """Return the leaves of a rule set, in the order of its rules."""
    model = summary["model"]
    text = "The first rule that covers a sample determines its leaf."
    if model["missing"]:
        text += f" {model['missing']}"
    titles = [
        ">leaf",
        "condition, of the samples that reach it",
        f"predicts{model['at_threshold']}",
        ">samples",
        f">rate of {shorten_name(summary['task']['positive'])}",
        "verdict",
    ]
    rows = [
        [
            str(leaf["number"]),
            shorten_name(leaf["condition"]),
            shorten_name(leaf["predicts"]),
            f"{leaf['n']:,}",
            format_share(leaf["rate"]),
            leaf["conclusion"] or "not tested",
        ]
        for leaf in choose_leaves(summary["leaves"], LIMITS)
    ]
    return [Heading("Model"), Paragraph(text), make_table(titles, rows)]


def write_equivalent_rules(model: Plain, *, is_brief: bool) -> Document:
    """Return the rules that cover the same rows as a rule of the model.

    The short form leaves out those on the same column.
    """
    points = []
    for rule in model["rules"]:
        others = [
            shorten_name(other)
            for other in rule["equivalent"]
            if not (is_brief and other.startswith(f"{rule['feature']} "))
        ]
        if others:
            points.append(
                f"Rule {rule['number']}, {shorten_name(rule['text'])}, cannot be distinguished "
                f"from {list_equivalent(others, is_brief=is_brief)}: they cover the same samples."
            )
    return [Heading("Equivalent rules"), Bullets(points)] if points else []


def list_equivalent(rules: Sequence[str], *, is_brief: bool) -> str:
    """Return the first rules, and how many more there are."""
    if is_brief:
        return shorten_list(rules)
    text = ", ".join(rules[: LIMITS.equivalent])
    n_more = len(rules) - LIMITS.equivalent
    return f"{text} and {n_more:,} more" if n_more > 0 else text


def write_tree(summary: Plain, *, is_brief: bool) -> Document:
    """Return the nodes of a tree, and its splits; nothing without a split."""
    model, task = summary["model"], summary["task"]
    tree = draw_nodes(summary["nodes"]["walk"], LIMITS)
    if len(tree["rows"]) < 2:
        return []
    document: Document = [Heading("Tree")]
    if not is_brief:
        text = f"Rate of {shorten_name(task['positive'])}, by node."
        document.append(Paragraph(" ".join(filter(None, [text, model["missing"]]))))
    titles = ["node", ">leaf", f"predicts{model['at_threshold']}", ">samples", ">rate"]
    document.append(make_table(titles, map(write_node, tree["rows"])))
    if tree["n_left_out"]:
        document.append(Note(f"{tree['n_left_out']:,} further leaves are not listed."))
    if not is_brief:
        document.append(write_importances(summary["nodes"]["importances"]))
    return [*document, *write_splits(summary)]


def write_node(node: Plain) -> list[str | Cell]:
    """Return the row of a node, indented by its depth."""
    predicts = "split further" if node["is_cut"] else ""
    if node["leaf"]:
        predicts = shorten_name(node["predicts"])
    return [
        Cell(shorten_name(node["rule"]), level=min(node["depth"], MAX_LEVEL)),
        str(node["leaf"] or ""),
        predicts,
        f"{node['n']:,}",
        format_share(node["rate"]),
    ]


def write_importances(importances: Sequence[Plain]) -> Block:
    """Return what each column of a tree explains."""
    return make_table(
        ["column", ">deviance explained", ">share", ">rate heterogeneity"],
        [
            [
                shorten_name(each["feature"]),
                format_deviance(each["deviance_explained"]),
                format_share(each["share"]),
                format_deviance(each["rate_heterogeneity"]),
            ]
            for each in importances[: LIMITS.environments]
        ],
    )


def write_splits(summary: Plain) -> Document:
    """Return the effect of each split; with environments, how it varies over them."""
    has_environments = summary["task"]["has_environments"]
    by_environment = ["lowest to highest", ">differs"] if has_environments else []
    titles = [">split", "rule", ">samples", ">deviance", ">OR", *by_environment, ">rejected"]
    rows = []
    for split in summary["nodes"]["splits"][: LIMITS.leaves]:
        row = [
            str(split["number"]),
            shorten_name(split["rule"]),
            f"{split['n']:,}",
            format_deviance(split["deviance_explained"]),
            format_ratio(split["odds_ratio"]),
        ]
        if has_environments:
            row += [write_ratio_range(split), f"{split['variation']:.0%}"]
        rows.append([*row, write_rejected_count(split)])
    note = (
        "deviance: explained by the split. OR: odds ratio of positive labels where the rule "
        "is true."
    )
    if has_environments:
        note += (
            " lowest to highest: by environment. differs: coefficient of variation of its "
            "logarithm, beyond chance."
        )
    return [Heading("Splits"), make_table(titles, rows), Note(note)]


def write_ratio_range(split: Plain) -> str:
    """Return the lowest and the highest odds ratio, with their environments."""
    if split["lowest"] is None:
        return ""
    return f"{write_ratio(split['lowest'])} to {write_ratio(split['highest'])}"


def write_points(summary: Plain) -> Document:
    """Return the points of a score, and the risk of each total."""
    model = summary["model"]
    if model["noun"] != "score" or not model["n_rules"]:
        return []
    points = [
        [shorten_name(each["column"]), shorten_name(each["value"]), str(each["points"])]
        for each in model["points"][: LIMITS.environments]
    ]
    risks = [
        [str(total), format_share(risk)]
        for total, risk in enumerate(model["risks"][: LIMITS.environments])
    ]
    return [
        Heading("Points"),
        make_table(["column", "value", ">points"], points),
        make_table([">total", f">risk of {shorten_name(summary['task']['positive'])}"], risks),
        Note(
            "risk: probability at a new site. Classes of totals, their rates and 95% prediction "
            "intervals for a new environment are listed as leaves."
        ),
    ]


def write_trees(summary: Plain, *, is_brief: bool) -> Document:
    """Return the columns of a forest, with their importances."""
    trees = summary["model"]["trees"]
    if trees is None:
        return []
    sizes = " to ".join(map(str, dict.fromkeys(trees["n_leaves"])))
    document: Document = [
        Heading("Trees"),
        Paragraph(f"{trees['n_trees']:,} trees with {sizes} leaves."),
    ]
    if not is_brief:
        document.append(Paragraph(shorten_sentence(trees["text"])))
    is_permuted = bool(trees["n_permuted"])
    losses = [">AUC loss" if is_brief else ">loss of AUC", "lowest to highest"]
    losses += [] if is_brief else [">loss of log loss"]
    titles = ["column", ">importance", *(losses if is_permuted else []), ">trees"]
    uses = trees["uses"][: N_BRIEF if is_brief else LIMITS.environments]
    rows = []
    for use in uses:
        row = [shorten_name(use["feature"]), format_share(use["importance"])]
        if is_permuted:
            row += [format_score(use["auc"]), write_loss_range(use)]
            row += [] if is_brief else [format_score(use["log_loss"])]
        rows.append([*row, f"{use['n_trees']:,}"])
    return [*document, make_table(titles, rows)]


def write_loss_range(use: Plain) -> str:
    """Return the least and the largest loss of AUC, with their environments."""
    if use["lowest"] is None:
        return "-"
    ends = [
        f"{format_score(loss)} ({shorten_name(name)})"
        for loss, name in (use["lowest"], use["highest"])
    ]
    return " to ".join(ends)


def write_discarded(summary: Plain) -> Document:
    """Return why rules that were found were discarded."""
    discarded = summary["model"]["discarded"]
    return [] if discarded is None else [Paragraph(shorten_sentence(discarded["explanation"]))]


def describe_stop(nodes: Plain) -> str:
    """Return why the search stopped, and what the last scan rejected."""
    return " ".join(filter(None, [nodes["stop_text"], nodes["rejected_text"]]))
