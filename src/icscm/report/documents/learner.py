"""A report on a fitted learner as a document: the whole of it, or its short form."""

from collections.abc import Sequence
from operator import itemgetter

from icscm.formatting import shorten_list
from icscm.report.blocks import (
    Block,
    Bullets,
    Cell,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.documents.shared import LIMITS, N_BRIEF, choose_by_name, list_rates, note_more
from icscm.report.drawing import draw_nodes
from icscm.report.formatting import (
    Plain,
    format_detectable,
    format_deviance,
    format_estimate,
    format_interval,
    format_p,
    format_points,
    format_prediction_interval,
    format_ratio,
    format_score,
    format_share,
    format_utility,
    format_value,
)
from icscm.report.selection import choose_leaves, list_new_intervals, list_rejecting, list_spans
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Sets, rejected columns and frequencies in the short form, levels of indent, and leaves of a tree
# that are named by their conditions.
N_FEW, MAX_LEVEL, N_NAMED_LEAVES = 5, 12, 8
# Environments that have a column of their own in the short form.
N_SIDE_BY_SIDE = 3
# Facts that the whole report repeats below its headline.
REPEATED_FACTS = ("Shape", "Stability")
SYMBOLS = {INVARIANT: "✓", NOT_INVARIANT: "✗", TOO_LITTLE_DATA: "?"}
SHORT_CONCLUSIONS = {
    INVARIANT: "yes",
    NOT_INVARIANT: "no",
    TOO_LITTLE_DATA: "too little data",
}


def write_document(
    summary: Plain, *, is_brief: bool = False, with_rejected: bool = False
) -> Document:
    """Return a report on a fitted learner.

    Parameters
    ----------
    summary : dict
        The value of `icscm.report.summary.make_summary`.
    is_brief : bool
        Whether it is the short form, as the terminal shows it.
    with_rejected : bool
        Whether the short form has the rejected candidates of each scan.
    """
    if is_brief:
        return write_brief(summary, with_rejected=with_rejected)
    return [
        *write_headline(summary),
        *write_left_out(summary, is_brief=False),
        *write_model(summary, is_brief=False),
        *write_search(summary, is_brief=False, with_rejected=True),
        *write_discarded(summary),
        *write_pruning_tests(summary),
        *write_advice(summary),
        *write_stability(summary, n_listed=N_BRIEF),
        *write_path(summary),
        *write_leaves(summary),
        *write_new_environments(summary, is_brief=False),
        *write_errors(summary, is_brief=False),
        *write_task(summary),
        *write_interpretation(summary),
    ]


def write_brief(summary: Plain, *, with_rejected: bool) -> Document:
    """Return the short form of a report."""
    model, leaves = summary["model"], summary["leaves"]
    document: Document = [Facts(shorten_facts(summary["headline"]["facts"]))]
    document += write_left_out(summary, is_brief=True)
    document += write_model(summary, is_brief=True)
    document += write_search(summary, is_brief=True, with_rejected=with_rejected)
    if model["n_rules"]:
        if model["noun"] == "rule":
            document.append(Paragraph(summary["nodes"]["stop_text"]))
        document += [Paragraph(note) for note in summary["task"]["notes"]]
    document += write_advice(summary)
    document += write_stability(summary, n_listed=N_FEW)
    path = summary["path"]
    if path is not None and path["parameter"] == "tolerance":
        document += write_path(summary)
    has_environments = summary["task"]["has_environments"]
    if leaves and model["n_rules"] and (has_environments or model["noun"] == "rule"):
        document += write_brief_leaves(summary)
    if leaves and model["n_rules"]:
        document += write_new_environments(summary, is_brief=True)
    if summary["errors"]["is_out_of_bag"]:
        document += write_errors(summary, is_brief=True)
    return document


def shorten_facts(facts: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return facts with texts of limited length."""
    return [[term, shorten_sentence(text)] for term, text in facts]


# --- headline and environments left out -----------------------------------------------------------


def write_headline(summary: Plain) -> Document:
    """Return the title, the model in a sentence, and the answers on each topic."""
    task, headline, path = summary["task"], summary["headline"], summary["path"]
    source = f"Data: {shorten_name(task['data'])}, " if task["data"] else ""
    source += f"{task['n_rows']:,} samples"
    if task["has_environments"]:
        source += f", {task['n_environments']:,} environments"
    source += f"; {task['learner']}, {summary['about']['package']} {summary['about']['version']}"

    answers = [headline[topic] for topic in ("new_sites", "error", "invariance", "rejected")]
    points = [
        f"{shorten_name(each['topic'])}: {each['answer']}. {shorten_sentence(each['detail'])}"
        for each in answers
    ]
    points += [
        f"{term}: {shorten_sentence(text)}."
        for term, text in headline["facts"]
        if term in REPEATED_FACTS
    ]
    document: Document = [
        Heading(headline["title"], level=1),
        Paragraph(source),
        Note(shorten_sentence(summary["model"]["sentence"])),
        Bullets(points),
    ]
    if summary["model"]["noun"] != "rule":
        document.append(Paragraph(shorten_sentence(headline["model"]["detail"])))
    if path is not None and path["n_models"] > 1:
        document.append(Paragraph(shorten_sentence(path["text"])))
    return document


def write_left_out(summary: Plain, *, is_brief: bool) -> Document:
    """Return the scores in environments left out, and their random-effects means."""
    validation = summary["validation"]
    if not validation["pooled"]:
        return []
    names = list(validation["titles"])
    environments = validation["environments"][: N_BRIEF if is_brief else LIMITS.environments]
    rows = [
        [
            shorten_name(str(each["environment"])),
            f"{each['n_samples']:,}",
            *(write_score(each["scores"][name], is_brief=is_brief) for name in names),
        ]
        for each in environments
    ]
    pooled = [validation["pooled"][name] for name in names]
    rows.append(["random effects", "", *(write_score(p, is_brief=is_brief) for p in pooled)])
    if not is_brief:
        rows.append(["95% prediction interval", "", *map(write_new_interval, pooled)])

    titles = [f">{shorten_title(title)}" for title in validation["titles"].values()]
    note = "Each model was learned without the environment."
    if not is_brief:
        note += (
            " slope, intercept: of a logistic regression of the label on the predicted log odds; "
            "1 and 0 at best. skill: relative reduction of the Brier score of the rate in "
            "training. Random effects: DerSimonian and Laird, with the interval of Hartung and "
            "Knapp."
        )
    elif len(validation["environments"]) > N_BRIEF:
        note += " The report lists all of them."
    return [
        Heading("Environments left out" if is_brief else "Performance in environments left out"),
        make_table([shorten_name(summary["task"]["environment"]), ">samples", *titles], rows),
        Note(note),
    ]


def shorten_title(title: str) -> str:
    """Return the title of a score as that of a narrow column."""
    title = title.replace("Calibration ", "").replace("Brier skill", "skill")
    return title.replace(" score", "")


def write_score(score: Plain | None, *, is_brief: bool) -> str:
    """Return a score, in the whole report with its interval."""
    if not is_brief:
        return format_estimate(score)
    return "-" if score is None else f"{score['value']:.2f}"


def write_new_interval(pooled: Plain | None) -> str:
    """Return the prediction interval of a score in a new environment."""
    if pooled is None or isinstance(pooled["new_low"], str):
        return "-"
    return f"{pooled['new_low']:.2f} to {pooled['new_high']:.2f}"


# --- the model ------------------------------------------------------------------------------------


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


def describe_stop(nodes: Plain) -> str:
    """Return why the search stopped, and what the last scan rejected."""
    return " ".join(filter(None, [nodes["stop_text"], nodes["rejected_text"]]))


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


def write_ratio(extreme: Plain | None) -> str:
    """Return the odds ratio in an environment."""
    if extreme is None:
        return "-"
    return f"{format_ratio(extreme['odds_ratio'])} ({shorten_name(extreme['environment'])})"


def write_rejected_count(scan: Plain) -> str:
    """Return how many candidates of a scan were rejected."""
    return f"{scan['n_rejected_all']:,} of {scan['n_candidates']:,}"


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


# --- the search -----------------------------------------------------------------------------------


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


# --- advice, stability, other levels --------------------------------------------------------------


def write_advice(summary: Plain) -> Document:
    """Return warnings and suggestions."""
    document: Document = []
    for title in ("warnings", "suggestions"):
        points = [shorten_sentence(point) for point in summary["advice"][title]]
        if points:
            document += [Heading(title.capitalize()), Bullets(points)]
    return document


def write_stability(summary: Plain, *, n_listed: int) -> Document:
    """Return how often columns, rules and models were found on subsamples."""
    stability = summary["stability"]
    if stability is None:
        return []
    document: Document = [Heading("Stability"), Paragraph(stability["text"])]
    for title, key in (("column", "features"), ("rule", "rules"), ("model", "models")):
        listed = stability[key]
        if listed:
            rows = [
                [
                    format_share(each["frequency"]),
                    shorten_name(each["text"]) + (" (this model)" if each["is_own"] else ""),
                ]
                for each in listed[:n_listed]
            ]
            document.append(make_table([">of subsamples", title], rows))
            n_more = len(listed) - n_listed
            document += note_more(n_more, f"and {n_more:,} more")
    return document


def write_path(summary: Plain) -> Document:
    """Return the models at other levels or tolerances."""
    path = summary["path"]
    if path is None:
        return []
    return write_levels(path) if path["parameter"] == "alpha" else write_tolerances(path)


def write_tolerances(path: Plain) -> Document:
    """Return the trees along the tolerance, from a plain one to a strict one."""
    has_scores = path["has_scores"]
    scores = [">AUC left out", ">worst"] if has_scores else []
    titles = ["tolerance", ">leaves", ">deviance", ">heterogeneity", *scores, "leave", "enter"]
    rows = []
    for point in path["points"]:
        row = [
            point["name"] + (" (this report)" if point["is_own"] else ""),
            f"{point['n_leaves']:,}",
            format_deviance(point["deviance_explained"]),
            format_deviance(point["varies"]),
        ]
        if has_scores:
            row += [format_score(point["mean_auc"]), format_score(point["worst_auc"])]
        changes = [shorten_sentence(", ".join(point[key])) for key in ("leave", "enter")]
        rows.append([*row, *changes])
    note = (
        "From a plain tree to a strict one. deviance: explained by the tree. heterogeneity: "
        "between environments, beyond chance."
    )
    if has_scores:
        note += " AUC left out: mean over leave-one-environment-out."
    return [
        Heading("Other tolerances"),
        make_table(titles, rows),
        Note(f"{note} {path['caution']}"),
    ]


def write_levels(path: Plain) -> Document:
    """Return the models along alpha, with the conclusions on their leaves."""
    rows = [
        [
            model["name"],
            span.text + (" (this report)" if span.is_own else ""),
            shorten_sentence(model["text"]),
            format_share(model["errors"]["error"]),
            span.conclusions,
        ]
        for model in path["models"]
        for span in list_spans(model["levels"])
    ]
    text = f"The model was learned at {path['n_searches']} levels. {path['meaning']}"
    titles = ["model", "alpha", "rule", ">error", "leaves at these levels"]
    return [Heading("Other levels"), Paragraph(text), make_table(titles, rows)]


# --- leaves ---------------------------------------------------------------------------------------


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


# --- errors and task ------------------------------------------------------------------------------


def write_errors(summary: Plain, *, is_brief: bool) -> Document:
    """Return the errors by environment, beside those of the baseline."""
    errors, task = summary["errors"], summary["task"]
    document: Document = [Heading(f"Errors on {errors['on']}")]
    if not is_brief:
        text = (
            f"{summary['headline']['error']['answer']}. The majority-class baseline, "
            f"{shorten_name(errors['majority_class'])}, is wrong for "
            f"{format_share(errors['majority_error'])}."
        )
        if errors["worst"] is not None:
            text += f" Worst: {shorten_sentence(errors['worst']['text'])}."
        document.append(Paragraph(text))

    is_out_of_bag = errors["is_out_of_bag"]
    scores = [">AUC"] if is_out_of_bag else [">sensitivity", ">specificity"]
    titles = [
        shorten_name(task["environment"]),
        ">samples",
        ">wrong",
        ">error",
        "interval",
        *scores,
        ">baseline",
    ]
    environments = choose_by_name(errors["environments"]) if task["has_environments"] else []
    rows = []
    for name, each in [("all", errors), *((e["environment"], e) for e in environments)]:
        shares = [format_share(each["sensitivity"]), format_share(each["specificity"])]
        rows.append(
            [
                shorten_name(name),
                f"{each['n']:,}",
                f"{each['n_errors']:,}",
                format_share(each["error"]),
                format_interval(each["error_interval"]),
                *([format_score(each["auc"])] if is_out_of_bag else shares),
                format_share(each["majority_error"]),
            ]
        )
    return [*document, make_table(titles, rows)]


def write_task(summary: Plain) -> Document:
    """Return what was predicted from which data, with which settings."""
    task = summary["task"]
    classes = task["classes"]
    text = (
        f"Predict {shorten_name(task['target'])} ({shorten_name(classes['negative'])} or "
        f"{shorten_name(classes['positive'])}; the latter is positive) from "
        f"{task['n_columns']:,} columns. Requirement: "
        f"{shorten_sentence(task['requirement']['text'])}"
    )
    environments = choose_by_name(task["environments"]) if task["has_environments"] else []
    rate = f">rate of {shorten_name(task['positive'])}"
    titles = [shorten_name(task["environment"]), ">samples", rate, "interval"]
    settings = [
        [
            each["name"],
            shorten_name(format_value(each["value"])) + ("" if each["is_default"] else " (chosen)"),
            each["meaning"],
        ]
        for each in sorted(task["settings"], key=itemgetter("is_default"))
    ]
    document: Document = [
        Heading("Task"),
        Paragraph(text),
        *list_rates(task["overall"], environments, titles),
        make_table(["setting", "value", "meaning"], settings),
    ]
    dropped = [
        [shorten_name(each["column"]), shorten_name(each["reason"])]
        for each in task["dropped"][: LIMITS.environments]
    ]
    if dropped:
        document.append(make_table(["dropped column", "reason"], dropped))
    if task["notes"]:
        document.append(Bullets(task["notes"]))
    return document


def write_interpretation(summary: Plain) -> Document:
    """Return what the result shows and what it does not show."""
    advice = summary["advice"]
    return [
        Heading("Interpretation"),
        Paragraph("What the result shows:"),
        Bullets([shorten_sentence(point) for point in advice["shows"]]),
        Paragraph("What it does not show:"),
        Bullets(advice["does_not_show"]),
    ]
