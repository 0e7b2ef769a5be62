"""What the page of a fitted learner shows where: every choice that its template would else make.

Each function returns the fields of one section, by the names that the template places. The summary
itself holds everything; here it is cut to the limits of a page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icscm.drawing.decisions import DecisionCurves
from icscm.formatting import clip, count
from icscm.report.content.nodes import CriterionName
from icscm.report.drawing import (
    Limits,
    PlotRow,
    choose_largest,
    draw_auc_rows,
    draw_decisions,
    draw_nodes,
    draw_points_bar,
    draw_risks,
    draw_splits,
    draw_tolerance_path,
    make_decision_curves,
    make_plot,
    make_plot_row,
)
from icscm.report.formatting import (
    Plain,
    format_estimate,
    format_p,
    format_points,
    format_ratio,
    format_share,
)
from icscm.report.selection import (
    choose_leaves,
    list_new_intervals,
    list_rejecting,
    list_spans,
)
from icscm.report.wording.requirement import SHARED_BY_SETS
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA

# Nodes of a tree from which on it scrolls within the page.
N_TALL = 31
# Characters from which on rules are set smaller, or folded; rules that are never folded, and those
# that are shown above the folded ones.
LONG_RULE, LONG_RULES, N_WHOLE, N_FIRST = 90, 400, 4, 2
# Frequencies on subsamples that are listed.
N_FREQUENT = 10
# Characters of a sentence that holds names, relative to those of a name.
SENTENCE = 8
REPEATED_FACTS = ("Shape", "Stability")
# The symbol beside a verdict.
MARKS: Mapping[str, str] = {
    INVARIANT: "yes",
    NOT_INVARIANT: "no",
    TOO_LITTLE_DATA: "unsure",
    "kept": "yes",
    "rejected": "no",
    "cannot tell": "unsure",
}


def lay_out_learner(summary: Plain, limits: Limits) -> Plain:
    """Return the summary of a fitted learner with its drawings and with all choices made."""
    return {
        **summary,
        "limits": limits,
        **lay_out_start(summary),
        **lay_out_left_out(summary, limits),
        **lay_out_model(summary, limits),
        **lay_out_search(summary, limits),
        **lay_out_leaves(summary, limits),
        **lay_out_errors(summary, limits),
        **lay_out_stability(summary["stability"]),
        **lay_out_path(summary["path"], limits),
        **lay_out_task(summary["task"], limits),
    }


def lay_out_start(summary: Plain) -> Plain:
    """Return what the summary at the top of the page shows."""
    advice, path = summary["advice"], summary["path"]
    facts = summary["headline"]["facts"]
    return {
        "cautions": [
            (title.capitalize(), advice[title])
            for title in ("warnings", "suggestions")
            if advice[title]
        ],
        "repeated_facts": [fact for fact in facts if fact[0] in REPEATED_FACTS],
        "has_several_models": path is not None and path["n_models"] > 1,
    }


# --- environments left out ------------------------------------------------------------------------


def lay_out_left_out(summary: Plain, limits: Limits) -> Plain:
    """Return the scores in environments left out, and their curves."""
    validation = summary["validation"]
    decisions = lay_out_decisions(validation, limits)
    if not validation["pooled"]:
        return decisions
    titles = [f">{title}" for title in validation["titles"].values()]
    environment = clip(summary["task"]["environment"], limits.characters)
    pooled = [validation["pooled"][name] for name in validation["titles"]]
    return {
        **decisions,
        "auc_rows": [describe_auc_row(row) for row in draw_auc_rows(validation, limits)],
        "left_out_columns": [environment, ">samples", *titles],
        "new_scores": [format_new_score(score) for score in pooled],
    }


def lay_out_decisions(validation: Plain, limits: Limits) -> Plain:
    """Return the curves of calibration and net benefit, where they are known."""
    overall = validation.get("overall")
    thresholds = validation.get("thresholds")
    if not overall or not thresholds:
        return draw_decisions(None, environments=[], thresholds=[], limits=limits)
    return draw_decisions(
        find_decision_curves(overall),
        environments=[find_decision_curves(row) for row in validation["environments"]],
        thresholds=thresholds,
        limits=limits,
    )


def find_decision_curves(row: Plain) -> DecisionCurves:
    """Return the curves of some rows."""
    return make_decision_curves(
        row["calibration_curve"], net_benefit=row["net_benefit"], treat_all=row["treat_all"]
    )


def describe_auc_row(row: Plain) -> Plain:
    """Return a drawn AUC with its interval in words."""
    score = row["score"]
    if score["value"] is not None:
        return {**row, "text": format_estimate(score)}
    ends = f"{score['low']:.2f} to {score['high']:.2f}"
    return {**row, "text": f"{ends}, 95% prediction interval"}


def format_new_score(pooled: Plain | None) -> str:
    """Return the prediction interval of a score, on one line."""
    if pooled is None or isinstance(pooled["new_low"], str):
        return "-"
    return f"{pooled['new_low']:.2f}\u00a0to\u00a0{pooled['new_high']:.2f}"


# --- the model ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RuleList:
    """Rules in a sentence, joined by a word: the first, the folded ones, and how many more."""

    word: str
    first: Sequence[str]
    folded: Sequence[str]
    n_folded: int
    n_more: int


def make_rule_list(model: Plain, limits: Limits) -> RuleList:
    """Return the rules of a rule set; few and short ones are shown whole."""
    rules = model["simple_rules"]
    word = "or" if model["kind"] == "disjunction" else "and"
    if len(rules) <= N_WHOLE and len(model["text"]) <= LONG_RULES:
        return RuleList(word, first=rules, folded=(), n_folded=0, n_more=0)
    return RuleList(
        word,
        first=rules[:N_FIRST],
        folded=rules[N_FIRST : limits.leaves],
        n_folded=len(rules) - N_FIRST,
        n_more=max(len(rules) - limits.leaves, 0),
    )


def lay_out_model(summary: Plain, limits: Limits) -> Plain:
    """Return the model: its rules, its tree, its points or the columns of its trees."""
    model, nodes = summary["model"], summary["nodes"]
    is_rule = model["noun"] == "rule"
    has_rules = bool(model["n_rules"])
    has_trees = model["trees"] is not None
    is_score = model["noun"] == "score"
    is_tree = has_rules and not is_rule and not has_trees and not is_score
    is_points = is_score and has_rules
    tree = draw_nodes(nodes["walk"], limits)
    splits = draw_splits(nodes["splits"], limits) if model["kind"] == "tree" else None
    has_effects = splits is not None and bool(splits["rows"])
    if splits is not None:
        rows = [describe_effect(row, limits) for row in splits["rows"]]
        splits = {**splits, "rows": rows}
    is_permuted = has_trees and bool(model["trees"]["n_permuted"])
    losses = [">loss of AUC", ">lowest to highest", ">loss of log loss"] if is_permuted else []
    return {
        "is_rule": is_rule,
        "is_tree": is_tree,
        "is_points": is_points,
        "is_rule_shown": is_rule and has_rules and not model["threshold"],
        "is_long": len(model["text"]) > LONG_RULE,
        "is_tall": is_tree and len(tree["rows"]) > N_TALL,
        "has_model": not is_tree or bool(nodes["importances"]),
        "has_columns": bool(nodes["importances"]) and not has_trees,
        "has_effects": has_effects,
        "tree": tree,
        "effects": splits,
        "rule_list": make_rule_list(model, limits),
        "covers_where": "false" if model["kind"] == "conjunction" else "true",
        "shown_rules": [describe_rule(rule, limits) for rule in model["rules"][: limits.leaves]],
        "uses_columns": ["column", ">importance", *losses, ">trees"],
        "draw_points_bar": draw_points_bar,
        "risk_drawing": draw_risks(model, summary["leaves"]) if is_score else None,
    }


def describe_rule(rule: Plain, limits: Limits) -> Plain:
    """Return a rule with its equivalent rules, the first of many."""
    equivalent = rule["equivalent"]
    return {
        **rule,
        "equivalent_count": count(len(equivalent), "other rule"),
        "shown_equivalent": equivalent[: limits.equivalent],
        "n_more": max(len(equivalent) - limits.equivalent, 0),
    }


def describe_effect(split: Plain, limits: Limits) -> Plain:
    """Return a split with the variation of its effect in words."""
    if not split["variation_text"]:
        return {**split, "differs": ""}
    lowest, highest = split["lowest"], split["highest"]
    has_range = lowest is not None and split["n_seen"] > 1
    is_reversed = has_range and lowest["odds_ratio"] < 1 < highest["odds_ratio"]
    verb = "reverses, and differs" if split["variation"] and is_reversed else "differs"
    text = f"{verb} {split['variation_text']}"
    if has_range:
        text += f"; {format_extreme(lowest, limits)} to {format_extreme(highest, limits)}"
    return {**split, "differs": text}


def format_extreme(extreme: Plain, limits: Limits) -> str:
    """Return the odds ratio in an environment."""
    environment = clip(extreme["environment"], limits.characters)
    return f"{format_ratio(extreme['odds_ratio'])} ({environment})"


# --- the search -----------------------------------------------------------------------------------


def lay_out_search(summary: Plain, limits: Limits) -> Plain:
    """Return what was chosen and what was rejected."""
    nodes, is_rule = summary["nodes"], summary["model"]["noun"] == "rule"
    scans = list_rejecting(nodes)[: limits.leaves]
    tests = [">p covered", ">p uncovered"] if nodes["is_tested"] else []
    numbers = [">utility", ">p"] if is_rule else [">deviance", ">differs"]
    steps = "Rules added"
    if nodes["sets"]:
        steps = f"Rules of the model: {SHARED_BY_SETS}"
    tried, n_tried = "Trees tried", len(nodes["tried"])
    if n_tried > limits.sets:
        tried += f", the first {limits.sets} of {n_tried}"
    return {
        "has_search_note": nodes["is_tested"] and not nodes["sets"],
        "steps_caption": steps,
        "steps_columns": [
            *(">step", "rule", ">correctly covered", ">wrongly", ">utility"),
            *tests,
            ">rejected",
        ],
        "scans": scans,
        "level_text": describe_level(nodes),
        "has_rejected": bool(scans) and not nodes["sets"],
        "rejected_titles": ["rejected candidate, and why", *numbers],
        "shown_columns": [
            {**each, "share_text": format_known_share(each["heterogeneity_share"])}
            for each in nodes["rejected_columns"][: limits.environments]
        ],
        "sets_text": SHARED_BY_SETS,
        "shown_sets": nodes["sets"][: limits.sets],
        "n_more_sets": max(len(nodes["sets"]) - limits.sets, 0),
        "tried_caption": tried,
        "shown_tried": [
            {
                **each,
                "banned_text": ", ".join(each["banned"]) or "none",
                "used_text": ", ".join(each["used"]) or "none",
            }
            for each in nodes["tried"][: limits.sets]
        ],
    }


def describe_level(nodes: Plain) -> str:
    """Return the p-value up to which scans rejected; empty where p-values did not decide."""
    if nodes["criterion"] != CriterionName.P_VALUES:
        return ""
    return f", p up to {format_p(nodes['alpha'])}"


def format_known_share(share: float | None) -> str:
    """Return a share, or a dash."""
    return "-" if share is None else format_share(share)


# --- leaves and errors ----------------------------------------------------------------------------


def lay_out_leaves(summary: Plain, limits: Limits) -> Plain:
    """Return the leaves, and the prediction intervals for a new environment."""
    leaves = summary["leaves"]
    return {
        "requires_effects": summary["nodes"]["invariance"] == "effect",
        "shown_leaves": [
            lay_out_leaf(leaf, summary, limits) for leaf in choose_leaves(leaves, limits)
        ],
        "n_more_leaves": max(len(leaves) - limits.leaves, 0),
        "new_plot": lay_out_new_environments(summary, limits),
    }


def lay_out_leaf(leaf: Plain, summary: Plain, limits: Limits) -> Plain:
    """Return a leaf with its drawing, and with what is said of it."""
    model = summary["model"]
    margin = summary["task"]["requirement"]["margin"]
    place = ""
    if model["noun"] == "rule" and model["n_rules"]:
        if leaf["is_rest"]:
            place = ", uncovered samples"
        elif leaf["number"] > 1:
            place = ", of the samples that reach it"
    difference, ends = "undefined", ""
    if leaf["difference"] is not None:
        low, high = map(format_points, leaf["difference_interval"])
        low = low.removesuffix("s").removesuffix(" point")
        difference, ends = format_points(leaf["difference"]), f"({low} to {high})"
    return {
        **leaf,
        "place": place,
        "difference_text": difference,
        "difference_ends": ends,
        "end_shown": leaf["end_text"] if model["n_rules"] else "",
        "plot": make_plot(
            [make_plot_row(row) for row in leaf["environments"]],
            make_plot_row(leaf),
            limits,
            margin=margin,
            by_name=True,
        ),
    }


def lay_out_new_environments(summary: Plain, limits: Limits) -> Plain | None:
    """Return a row for each leaf with a prediction interval, and one for all rows."""
    intervals = list_new_intervals(summary, limits)
    if not intervals:
        return None
    rows = [
        PlotRow(
            row.name, n=row.n, share=row.rate, interval=(row.new_interval[0], row.new_interval[1])
        )
        for row in intervals
    ]
    all_limits = limits._replace(environments=len(rows))
    plot = make_plot(rows, rows[0], all_limits, has_mean=False)  # leaves differ in rate
    drawn = [
        {**vars(row), "seen": source.seen, "tau": source.tau, "known": source.known_interval}
        for row, source in zip(plot.rows, intervals, strict=True)
    ]
    return {"rows": drawn, "axis": plot.axis}


def lay_out_errors(summary: Plain, limits: Limits) -> Plain:
    """Return the errors overall and by environment."""
    errors, task = summary["errors"], summary["task"]
    environment, positive, negative = (
        clip(task[name], limits.characters) for name in ("environment", "positive", "negative")
    )
    caption = (
        f"Sensitivity is the share of {positive} predicted as such, specificity that of {negative}"
    )
    measures = [">sensitivity", ">specificity"]
    if errors["is_out_of_bag"]:
        caption, measures = "Metrics", [">AUC", ">Brier score"]
    shown = choose_largest(errors["environments"], limits.environments, "name")
    return {
        "error_plot": make_plot(
            [make_plot_row(row, "error") for row in errors["environments"]],
            make_plot_row(errors, "error"),
            limits,
            by_name=True,
        ),
        "errors_caption": caption,
        "errors_columns": [environment, ">wrong", ">samples", *measures, ">baseline error"],
        "error_rows": [errors, *(shown if len(errors["environments"]) > 1 else [])],
    }


# --- results of learning again, and the task ------------------------------------------------------


def lay_out_stability(stability: Plain | None) -> Plain:
    """Return the most frequent columns, rules and models on subsamples."""
    if stability is None:
        return {"frequencies": []}
    frequencies = []
    for noun, key in (("column", "features"), ("rule", "rules"), ("model", "models")):
        listed = stability[key]
        what = f"{noun}s".capitalize()
        if len(listed) > N_FREQUENT:
            what = f"The {N_FREQUENT} most frequent of {len(listed)} {noun}s"
        if listed:
            frequencies.append(
                {
                    "name": f"stability-{noun}s",
                    "noun": noun,
                    "caption": f"{what} of the subsamples",
                    "rows": listed[:N_FREQUENT],
                }
            )
    return {"frequencies": frequencies}


def lay_out_path(path: Plain | None, limits: Limits) -> Plain:
    """Return the models at other levels, or the trees at other tolerances."""
    if path is None:
        return {}
    if path["parameter"] == "alpha":
        levels = [lay_out_level(model, limits) for model in path["models"]]
        return {"is_alpha_path": True, "levels": levels}
    scores = [">AUC, mean", ">worst"] if path["has_scores"] else []
    return {
        "is_alpha_path": False,
        "path_columns": [
            *("tolerance", ">leaves", ">deviance", ">varies"),
            *scores,
            "columns that leave and enter",
        ],
        "path_points": [
            {**point, "changes": describe_changes(point, limits)} for point in path["points"]
        ],
        "path_drawing": draw_tolerance_path(path["points"]),
    }


def lay_out_level(model: Plain, limits: Limits) -> Plain:
    """Return a model along alpha; neighbouring levels with the same conclusions are one row."""
    levels = f"{model['alpha_from']:g}"
    if model["alpha_from"] != model["alpha_to"]:
        levels = f"from {model['alpha_from']:g} to {model['alpha_to']:g}"
    leaves = []
    for leaf in model["leaves"][: limits.leaves]:
        difference = leaf["difference"]
        text = "none" if difference is None else format_points(difference)
        leaves.append({**leaf, "difference_text": text})
    return {
        **model,
        "levels_text": levels,
        "shown_leaves": leaves,
        "tree": draw_nodes(model["walk"], limits),
        "spans": list_spans(model["levels"]),
    }


def describe_changes(point: Plain, limits: Limits) -> str:
    """Return the columns that leave the tree at a tolerance, and those that enter."""
    parts = [
        f"{word} {clip(', '.join(point[key]), SENTENCE * limits.characters)}"
        for word, key in (("without", "leave"), ("with", "enter"))
        if point[key]
    ]
    return "; ".join(parts)


def lay_out_task(task: Plain, limits: Limits) -> Plain:
    """Return the rates in the data, the settings and the dropped columns."""
    return {
        "task_plot": make_plot(
            [make_plot_row(row) for row in task["environments"]],
            make_plot_row(task["overall"]),
            limits,
            by_name=True,
        ),
        "chosen": [setting for setting in task["settings"] if not setting["is_default"]],
        "not_chosen": [setting for setting in task["settings"] if setting["is_default"]],
        "n_more_dropped": max(len(task["dropped"]) - limits.environments, 0),
    }
