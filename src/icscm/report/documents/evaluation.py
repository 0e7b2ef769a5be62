"""An evaluation on new rows as a document."""

from collections.abc import Sequence

from icscm.report.blocks import (
    Block,
    Bullets,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.content.evaluation import CalibratedLeaf, EvaluatedRows, EvaluationContent
from icscm.report.documents.shared import LIMITS
from icscm.report.formatting import format_p, format_prediction_interval, format_share
from icscm.report.wording.evaluation import (
    describe_baseline,
    describe_checks,
    describe_interval_check,
    describe_leaves,
    describe_movement,
    write_bounds,
    write_measure,
)
from icscm.report.wording.facts import Fact


def write_document(
    content: EvaluationContent,
    *,
    environments: Sequence[EvaluatedRows | None],
    decision_text: str,
) -> Document:
    """Return an evaluation; None among the environments stands for those that are left out."""
    document: Document = [
        Paragraph(shorten_sentence(content.headline)),
        Facts(list_facts(content, decision_text)),
        Heading(f"Scores, from error to NPV {content.at}"),
        write_scores(content),
    ]
    if environments:
        document += write_environments(content, environments)
    if content.leaves:
        document += write_leaves(content)
    if content.notes:
        notes = [shorten_sentence(note) for note in content.notes]
        document += [Heading("Notes"), Bullets(notes)]
    return document


def list_facts(content: EvaluationContent, decision_text: str) -> list[Fact]:
    """Return the model, the rows, the baseline, and decisions."""
    overall = content.overall
    rate = format_share(overall.n_positive / overall.n_samples)
    positive = shorten_name(content.positive)
    baseline = describe_baseline(shorten_name(content.baseline), content.baseline_from)
    facts = [
        Fact("Model", shorten_sentence(content.model)),
        Fact("Samples", f"{overall.n_samples:,}, of which {rate} are {positive}"),
        Fact("Baseline", baseline),
    ]
    return [*facts, Fact("Decisions", decision_text)] if decision_text else facts


def write_scores(content: EvaluationContent) -> Block:
    """Return each measure of the model and of the baseline."""
    overall = content.overall
    rows = [
        [
            title,
            write_measure(overall.scores, name),
            write_bounds(overall.scores, name),
            write_measure(overall.baseline, name),
        ]
        for name, title in content.measures.items()
    ]
    return make_table(["measure", ">model", ">95% interval", ">baseline"], rows)


def write_environments(
    content: EvaluationContent, environments: Sequence[EvaluatedRows | None]
) -> Document:
    """Return the scores by environment, the worst first."""
    titles = ["environment", ">samples", ">AUC", ">95% interval", ">slope", ">Brier"]
    titles += [">baseline", ">error"]
    rows = [write_environment(evaluated, len(titles)) for evaluated in environments]
    document: Document = [
        Heading(f"By {content.environment or 'environment'}, the worst first"),
        make_table(titles, rows),
        Note(
            "slope: of calibration, 1 is best. baseline: Brier score of the constant rate. error: "
            f"{content.at}."
        ),
    ]
    if None in environments:
        document.append(Note("The others are listed with --all, or by to_frame()."))
    return document


def write_environment(rows: EvaluatedRows | None, n_columns: int) -> list[str]:
    """Return the scores in one environment; dots for those that are left out."""
    if rows is None:
        return ["...", *[""] * (n_columns - 1)]
    scores = rows.scores
    return [
        shorten_name(rows.environment) + (" (new)" if rows.is_new else ""),
        f"{rows.n_samples:,}",
        write_measure(scores, "auc"),
        write_bounds(scores, "auc"),
        write_measure(scores, "slope"),
        write_measure(scores, "brier"),
        write_measure(rows.baseline, "brier"),
        write_measure(scores, "error"),
    ]


def write_leaves(content: EvaluationContent) -> Document:
    """Return the rate of each leaf in the new rows, beside that in training.

    In new environments, it is also held against the prediction interval of the leaf.
    """
    shown_leaves = content.leaves[: LIMITS.leaves]
    rows = [
        [
            name_leaf(leaf),
            "-" if leaf.expected is None else format_share(leaf.expected),
            f"{leaf.n_training:,}",
            "-" if leaf.observed is None else format_share(leaf.observed),
            f"{leaf.n_samples:,}",
            format_p(leaf.adjusted),
            describe_movement(leaf.has_moved),
        ]
        for leaf in shown_leaves
    ]
    titles = ["leaf", ">training", ">samples", ">observed", ">samples", ">p", ""]
    return [
        Heading("Calibration by leaf"),
        Paragraph(describe_leaves(content.leaves)),
        make_table(titles, rows),
        Note(
            "training, observed: rate of positive samples. p: Fisher's exact test (Pearson's where "
            "counts are large) that both rates are equal, corrected for the number of leaves "
            "(Holm); differs where it is at most 0.05."
        ),
        *write_interval_checks(content, shown_leaves),
    ]


def write_interval_checks(
    content: EvaluationContent, shown_leaves: Sequence[CalibratedLeaf]
) -> Document:
    """Return whether rates in new environments are within the prediction intervals of the leaves.

    Nothing where no leaf has both an interval and a rate to hold against it.
    """
    checks_text = describe_checks(content)
    if not checks_text:
        return []
    rows = [
        [
            name_leaf(leaf),
            format_prediction_interval(leaf.new_interval),
            shorten_name(describe_interval_check(leaf.interval_checks)),
        ]
        for leaf in shown_leaves
    ]
    return [
        Heading("95% prediction interval for a new environment"),
        Paragraph(checks_text),
        make_table(["leaf", ">95% prediction interval", ""], rows),
        Note(
            "A rate is within the interval if it is no more extreme than those of 95% of new "
            "environments, with the sampling error of the new samples taken into account (mid-p "
            "above 0.05)."
        ),
    ]


def name_leaf(leaf: CalibratedLeaf) -> str:
    """Return the number and the condition of a leaf."""
    return f"{leaf.leaf}: {shorten_name(leaf.text)}"
