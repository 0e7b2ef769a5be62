"""A comparison of learners as a document."""

from collections.abc import Callable, Sequence

from icscm.formatting import as_text, shorten_list
from icscm.report.blocks import (
    Bullets,
    Document,
    Facts,
    Heading,
    Note,
    make_table,
    shorten_name,
    shorten_sentence,
)
from icscm.report.documents.shared import shorten_facts
from icscm.report.formatting import Plain
from icscm.report.wording.facts import Fact

# Writes the value of a measure, with its interval where that is given.
WriteScore = Callable[..., str]
MEASURES = ("log_loss", "slope", "intercept", "error")


def write_document(comparison: Plain, facts: Sequence[Fact], write_score: WriteScore) -> Document:
    """Return tables, rules and conclusions, below facts about the data.

    The comparison is the value of `Comparison.to_dict`. `write_score` writes the value of a
    measure, where it is given with its interval.
    """
    candidates = comparison["candidates"]
    listed = [*shorten_facts(facts), *list_facts(comparison)]
    document: Document = [Facts(listed)] if listed else []
    if comparison["environments"]:
        document += write_environments(comparison, write_score)
    document += write_folds(comparison, write_score)
    document += write_texts("Learned from all rows", candidates, key="model")
    document += write_texts("Failed on some folds", candidates, key="failure")
    conclusions = [shorten_sentence(conclusion) for conclusion in comparison["conclusions"]]
    return [*document, Heading("Conclusions"), Bullets(conclusions)]


def write_texts(title: str, candidates: Sequence[Plain], *, key: str) -> Document:
    """Return a text of each candidate that has it, below a title; nothing without any."""
    facts = [
        Fact(shorten_name(candidate["name"]), shorten_name(as_text(candidate[key])))
        for candidate in candidates
        if candidate[key]
    ]
    return [Heading(title), Facts(facts)] if facts else []


def list_facts(comparison: Plain) -> list[Fact]:
    """Return the columns that were dropped, and the environments that were not left out."""
    facts: list[Fact] = []
    if comparison["dropped"]:
        dropped = as_text(shorten_list(list(comparison["dropped"])))
        facts.append(Fact("Dropped", f"{dropped}, for all candidates; see icscm check"))
    small = [
        f"{place['environment']} ({place['n_rows']:,} rows)" for place in comparison["kept_in"]
    ]
    if small:
        facts.append(Fact("Not held out", f"too small: {as_text(shorten_list(small))}"))
    return facts


def write_environments(comparison: Plain, write_score: WriteScore) -> Document:
    """Return the mean scores in environments left out, and the worst AUC."""
    rows = []
    for candidate in comparison["candidates"]:
        scores = candidate["environments"]
        rows.append(
            [
                shorten_name(candidate["name"]),
                write_score("auc", scores["auc"], candidate["intervals"]["auc"]),
                write_score("auc", candidate["worst"]["auc"]),
                *(write_score(measure, scores[measure]) for measure in MEASURES),
            ]
        )
    titles = ["candidate", ">AUC", ">worst", ">log loss", ">slope", ">intercept", ">error"]
    n_environments = len(comparison["environments"])
    return [
        Heading(f"Leave-one-environment-out: {n_environments:,} environments"),
        make_table(titles, rows),
        Note(
            "Means over environments with the 95% interval of the mean, and the worst environment. "
            "slope, intercept: calibration, 1 and 0 at best. error: at threshold 0.5, for rule "
            "sets by their rules."
        ),
    ]


def write_folds(comparison: Plain, write_score: WriteScore) -> Document:
    """Return the mean scores over folds of rows, and the time of a fit."""
    rows = [
        [
            shorten_name(candidate["name"]),
            *(write_score(measure, candidate["rows"][measure]) for measure in ("auc", *MEASURES)),
            f"{candidate['fit_seconds']:.2f}",
        ]
        for candidate in comparison["candidates"]
    ]
    titles = ["candidate", ">AUC", ">log loss", ">slope", ">intercept", ">error"]
    return [
        Heading(f"By rows: {comparison['n_folds']} folds"),
        make_table([*titles, ">seconds to fit"], rows),
    ]
