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
from icscm.report.formatting import (
    Plain,
    format_bounds,
    format_measure,
    format_p,
    format_prediction_interval,
    format_share,
)
from icscm.report.wording.evaluation import describe_baseline, describe_movement


def write_document(found: Plain) -> Document:
    """Return an evaluation that was laid out; None stands for environments that are left out."""
    document: Document = [
        Paragraph(shorten_sentence(found["headline"])),
        Facts(list_facts(found)),
        Heading(f"Scores, from error to NPV {found['at']}"),
        write_scores(found),
    ]
    if found["environments"]:
        document += write_environments(found, found["shown_environments"])
    if found["leaves"]:
        document += write_leaves(found)
    if found["notes"]:
        notes = [shorten_sentence(note) for note in found["notes"]]
        document += [Heading("Notes"), Bullets(notes)]
    return document


def list_facts(found: Plain) -> list[list[str]]:
    """Return the model, the rows, the baseline, and decisions."""
    overall = found["overall"]
    rate = format_share(overall["n_positive"] / overall["n_samples"])
    positive, baseline = shorten_name(found["positive"]), shorten_name(str(found["baseline"]))
    facts = [
        ["Model", shorten_sentence(str(found["model"]))],
        ["Samples", f"{overall['n_samples']:,}, of which {rate} are {positive}"],
        ["Baseline", describe_baseline(baseline, found["baseline_from"])],
    ]
    decisions = found["decision_text"]
    return [*facts, ["Decisions", decisions]] if decisions else facts


def write_scores(found: Plain) -> Block:
    """Return each measure of the model and of the baseline."""
    overall = found["overall"]
    rows = [
        [
            title,
            format_measure(overall["scores"], name),
            format_bounds(overall["scores"], name),
            format_measure(overall["baseline"], name),
        ]
        for name, title in found["measures"].items()
    ]
    return make_table(["measure", ">model", ">95% interval", ">baseline"], rows)


def write_environments(found: Plain, environments: Sequence[Plain | None]) -> Document:
    """Return the scores by environment, the worst first."""
    titles = ["environment", ">samples", ">AUC", ">95% interval", ">slope", ">Brier"]
    titles += [">baseline", ">error"]
    rows = [write_environment(each, len(titles)) for each in environments]
    document: Document = [
        Heading(f"By {found['environment'] or 'environment'}, the worst first"),
        make_table(titles, rows),
        Note(
            "slope: of calibration, 1 is best. baseline: Brier score of the constant rate. error: "
            f"{found['at']}."
        ),
    ]
    if None in environments:
        document.append(Note("The others are listed with --all, or by to_frame()."))
    return document


def write_environment(found: Plain | None, n_columns: int) -> list[str]:
    """Return the scores in one environment; dots for those that are left out."""
    if found is None:
        return ["...", *[""] * (n_columns - 1)]
    scores = found["scores"]
    return [
        shorten_name(str(found["environment"])) + (" (new)" if found["is_new"] else ""),
        f"{found['n_samples']:,}",
        format_measure(scores, "auc"),
        format_bounds(scores, "auc"),
        format_measure(scores, "slope"),
        format_measure(scores, "brier"),
        format_measure(found["baseline"], "brier"),
        format_measure(scores, "error"),
    ]


def write_leaves(found: Plain) -> Document:
    """Return the rates of leaves beside those of training, and of prediction intervals."""
    leaves = found["shown_leaves"]
    rows = [
        [
            name_leaf(leaf),
            "-" if leaf["expected"] is None else format_share(leaf["expected"]),
            f"{leaf['n_training']:,}",
            "-" if leaf["observed"] is None else format_share(leaf["observed"]),
            f"{leaf['n_samples']:,}",
            format_p(leaf["adjusted"]),
            describe_movement(leaf["has_moved"]),
        ]
        for leaf in leaves
    ]
    titles = ["leaf", ">training", ">samples", ">observed", ">samples", ">p", ""]
    document: Document = [
        Heading("Calibration by leaf"),
        Paragraph(found["moved_text"]),
        make_table(titles, rows),
        Note(
            "training, observed: rate of positive samples. p: Fisher's exact test (Pearson's where "
            "counts are large) that both rates are equal, corrected for the number of leaves "
            "(Holm); differs where it is at most 0.05."
        ),
    ]
    if not found["checks_text"]:
        return document
    intervals = [
        [
            name_leaf(leaf),
            format_prediction_interval(leaf["new_interval"]),
            shorten_name(found["check"](leaf)),
        ]
        for leaf in leaves
    ]
    return [
        *document,
        Heading("95% prediction interval for a new environment"),
        Paragraph(found["checks_text"]),
        make_table(["leaf", ">95% prediction interval", ""], intervals),
        Note(
            "A rate is within the interval if it is no more extreme than those of 95% of new "
            "environments, with the sampling error of the new samples taken into account (mid-p "
            "above 0.05)."
        ),
    ]


def name_leaf(leaf: Plain) -> str:
    """Return the number and the condition of a leaf."""
    return f"{leaf['leaf']}: {shorten_name(leaf['text'])}"
