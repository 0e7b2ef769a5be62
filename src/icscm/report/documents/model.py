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
from icscm.report.content.candidates import SplitCandidate
from icscm.report.content.learner import LearnerContent
from icscm.report.content.model import ColumnUse, Discarded, ModelContent
from icscm.report.content.nodes import ColumnImportance
from icscm.report.documents.shared import (
    LIMITS,
    N_BRIEF,
    write_ratio,
    write_rejected_count,
)
from icscm.report.drawn_tree import DrawnNode, draw_nodes
from icscm.report.formatting import (
    format_deviance,
    format_ratio,
    format_score,
    format_share,
)
from icscm.report.importances import ColumnLosses, EnvironmentLoss
from icscm.report.selection import choose_leaves
from icscm.report.wording.importances import describe_importances
from icscm.report.wording.model import MISSING, explain_discarded
from icscm.report.wording.search import describe_end

# Levels by which a node of a tree is indented at most.
MAX_LEVEL = 12


def write_model(content: LearnerContent, *, is_brief: bool) -> Document:
    """Return the rules, the tree, the points or the trees; why there is no rule."""
    model = content.model
    if not model.is_rule_set:
        return [
            *write_tree(content, is_brief=is_brief),
            *write_points(content),
            *write_trees(model, is_brief=is_brief),
        ]
    if is_brief and not model.n_rules:
        return [
            Heading("Why no rule was found"),
            *write_discarded(content),
            Paragraph(describe_end(content)),
        ]
    document: Document = [] if is_brief else write_rules(content)
    return [*document, *write_equivalent_rules(model, is_brief=is_brief)]


# --- rule sets ------------------------------------------------------------------------------------


def write_rules(content: LearnerContent) -> Document:
    """Return the leaves of a rule set, in the order of its rules."""
    model = content.model
    text = "The first rule that covers a sample determines its leaf."
    if model.has_missing:
        text += f" {MISSING}"
    titles = [
        ">leaf",
        "condition, of the samples that reach it",
        f"predicts{model.at_threshold}",
        ">samples",
        f">rate of {shorten_name(content.names.positive)}",
        "verdict",
    ]
    rows = [
        [
            str(leaf.number),
            shorten_name(leaf.condition),
            shorten_name(leaf.predicts),
            f"{leaf.n:,}",
            format_share(leaf.rate),
            leaf.conclusion or "not tested",
        ]
        for leaf in choose_leaves(content.leaves, LIMITS)
    ]
    return [Heading("Model"), Paragraph(text), make_table(titles, rows)]


def write_equivalent_rules(model: ModelContent, *, is_brief: bool) -> Document:
    """Return the rules that cover the same rows as a rule of the model.

    The short form leaves out those on the same column.
    """
    points = []
    for rule in model.rules:
        equivalent = [
            shorten_name(text)
            for text in rule.equivalent
            if not (is_brief and text.startswith(f"{rule.feature} "))
        ]
        if equivalent:
            points.append(
                f"Rule {rule.number}, {shorten_name(rule.text)}, cannot be distinguished "
                f"from {list_equivalent(equivalent, is_brief=is_brief)}: they cover the same "
                "samples."
            )
    return [Heading("Equivalent rules"), Bullets(points)] if points else []


def list_equivalent(rules: Sequence[str], *, is_brief: bool) -> str:
    """Return the first rules, and how many more there are."""
    if is_brief:
        return shorten_list(rules)
    text = ", ".join(rules[: LIMITS.equivalent])
    n_more = len(rules) - LIMITS.equivalent
    return f"{text} and {n_more:,} more" if n_more > 0 else text


def write_discarded(content: LearnerContent) -> Document:
    """Return why rules that were found were discarded."""
    discarded: Discarded | None = content.model.discarded
    if discarded is None:
        return []
    explanation = explain_discarded(discarded, content.errors.error)
    return [Paragraph(shorten_sentence(explanation))]


# --- trees ----------------------------------------------------------------------------------------


def write_tree(content: LearnerContent, *, is_brief: bool) -> Document:
    """Return the nodes of a tree, and its splits; nothing without a split."""
    model, nodes = content.model, content.nodes
    tree = draw_nodes(nodes.walk, LIMITS)
    if len(tree.rows) < 2:
        return []
    document: Document = [Heading("Tree")]
    if not is_brief:
        text = f"Rate of {shorten_name(content.names.positive)}, by node."
        document.append(Paragraph(f"{text} {MISSING}" if model.has_missing else text))
    titles = ["node", ">leaf", f"predicts{model.at_threshold}", ">samples", ">rate"]
    document.append(make_table(titles, [write_node(drawn) for drawn in tree.rows]))
    if tree.n_left_out:
        document.append(Note(f"{tree.n_left_out:,} further leaves are not listed."))
    if not is_brief:
        document.append(write_importances(nodes.importances))
    return [*document, *write_splits(content)]


def write_node(drawn: DrawnNode) -> list[str | Cell]:
    """Return the row of a node, indented by its depth."""
    node = drawn.node
    predicts = "split further" if drawn.is_cut else ""
    if node.predicts is not None:
        predicts = shorten_name(node.predicts)
    return [
        Cell(shorten_name(node.rule), level=min(node.depth, MAX_LEVEL)),
        str(node.leaf or ""),
        predicts,
        f"{node.n:,}",
        format_share(node.rate),
    ]


def write_importances(importances: Sequence[ColumnImportance]) -> Block:
    """Return what each column of a tree explains."""
    rows = [
        [
            shorten_name(column.feature),
            format_deviance(column.deviance_explained),
            format_share(column.share),
            format_deviance(column.rate_heterogeneity),
        ]
        for column in importances[: LIMITS.environments]
    ]
    return make_table(["column", ">deviance explained", ">share", ">rate heterogeneity"], rows)


def write_splits(content: LearnerContent) -> Document:
    """Return the effect of each split as an odds ratio, and how it varies over environments."""
    has_environments = content.task.has_environments
    titles = [">split", "rule", ">samples", ">deviance", ">OR"]
    if has_environments:
        titles += ["lowest to highest", ">differs"]
    titles.append(">rejected")

    rows = []
    for split in content.nodes.tree_splits[: LIMITS.leaves]:
        candidate = split.candidate
        row = [
            str(split.number),
            shorten_name(candidate.rule),
            f"{candidate.n:,}",
            format_deviance(candidate.deviance_explained),
            format_ratio(candidate.odds_ratio),
        ]
        if has_environments:
            row += [write_ratio_range(candidate), f"{candidate.variation:.0%}"]
        row.append(write_rejected_count(split.size))
        rows.append(row)

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


def write_ratio_range(candidate: SplitCandidate) -> str:
    """Return the lowest and the highest odds ratio, with their environments."""
    if candidate.lowest is None:
        return ""
    return f"{write_ratio(candidate.lowest)} to {write_ratio(candidate.highest)}"


# --- scores and forests ---------------------------------------------------------------------------


def write_points(content: LearnerContent) -> Document:
    """Return the points of a score, and the risk of each total."""
    score = content.model.score
    if score is None or not content.model.n_rules:
        return []
    points = [
        [shorten_name(row.column), shorten_name(row.value), str(row.points)]
        for row in score.points[: LIMITS.environments]
    ]
    risks = [
        [str(total), format_share(risk)]
        for total, risk in enumerate(score.risks[: LIMITS.environments])
    ]
    risk_title = f">risk of {shorten_name(content.names.positive)}"
    return [
        Heading("Points"),
        make_table(["column", "value", ">points"], points),
        make_table([">total", risk_title], risks),
        Note(
            "risk: probability at a new site. Classes of totals, their rates and 95% prediction "
            "intervals for a new environment are listed as leaves."
        ),
    ]


def write_trees(model: ModelContent, *, is_brief: bool) -> Document:
    """Return the columns of a forest, with their importances; nothing for other models.

    The short form has fewer columns of the table, and fewer rows.
    """
    forest = model.forest
    if forest is None:
        return []
    fewest_leaves, most_leaves = forest.n_leaves
    sizes = f"{fewest_leaves}"
    if most_leaves != fewest_leaves:
        sizes += f" to {most_leaves}"
    document: Document = [
        Heading("Trees"),
        Paragraph(f"{forest.n_trees:,} trees with {sizes} leaves."),
    ]
    if not is_brief:
        text = describe_importances(forest.n_permuted)
        document.append(Paragraph(shorten_sentence(text)))

    titles = list_use_titles(has_losses=bool(forest.n_permuted), is_brief=is_brief)
    n_listed = N_BRIEF if is_brief else LIMITS.environments
    rows = [write_use(use, is_brief=is_brief) for use in forest.uses[:n_listed]]
    return [*document, make_table(titles, rows)]


def list_use_titles(*, has_losses: bool, is_brief: bool) -> list[str]:
    """Return the titles of what `write_use` returns; those after `>` are aligned to the right.

    `has_losses` says whether the losses are known where the values of a column are permuted.
    """
    titles = ["column", ">importance"]
    if has_losses and is_brief:
        titles += [">AUC loss", "lowest to highest"]
    elif has_losses:
        titles += [">loss of AUC", "lowest to highest", ">loss of log loss"]
    return [*titles, ">trees"]


def write_use(use: ColumnUse, *, is_brief: bool) -> list[str]:
    """Return the row of a column of a forest, with its losses where it was permuted."""
    row = [shorten_name(use.feature), format_share(use.importance)]
    if use.losses is not None:
        row += [format_score(use.losses.auc), write_loss_range(use.losses)]
        if not is_brief:
            row.append(format_score(use.losses.log_loss))
    return [*row, f"{use.n_trees:,}"]


def write_loss_range(losses: ColumnLosses) -> str:
    """Return the least and the largest loss of AUC, with their environments."""
    if losses.lowest is None or losses.highest is None:
        return "-"
    return f"{write_loss(losses.lowest)} to {write_loss(losses.highest)}"


def write_loss(extreme: EnvironmentLoss) -> str:
    """Return the loss of AUC in an environment."""
    return f"{format_score(extreme.loss)} ({shorten_name(extreme.environment)})"
