"""A trace as tables for the terminal.

Names come from users, so every cell is `Text`: nothing in it is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from icscm.models import LeafCounts, RuleSet
from icscm.rules import format_number
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA, Verdict
from icscm.trace import Look, Refusal, Trace

if TYPE_CHECKING:
    from icscm.datasets import DatasetInfo

# `trace.REFUSALS` in few words.
_WHY = {"dependent": "label shifts between environments", "small": "too few samples"}

# Conclusions under the heading "invariant?".
_BRIEFLY = {INVARIANT: "yes", NOT_INVARIANT: "no", TOO_LITTLE_DATA: "cannot tell"}


def make_step_table(trace: Trace) -> Table:
    """One line for each rule that was added."""
    table = _make_table("step", "rule", "utility", "settles")
    is_tested = trace.alpha is not None
    if is_tested:
        table.add_column("p leaf", justify="right")
        table.add_column("p rest", justify="right")
    table.add_column("refused", justify="right")
    for number, step in enumerate(trace.steps, start=1):
        n_refused = sum(step.look.n_refused.values())
        _add_row(
            table,
            str(number),
            str(step.chosen.rule),
            format_number(step.chosen.utility),
            f"{count_samples(step.chosen.leaf):,}",
            *([format_p(step.chosen.p_value), format_p(step.p_value_remaining)] * is_tested),
            f"{n_refused:,} of {step.look.n_candidates:,}",
        )
    return table


def make_refusal_table(trace: Trace, per_step: int = 3) -> Table:
    """The most useful candidates that each step refused, and why."""
    table = _make_table("step", "refused rule", "utility", "p leaf", "why")
    for number, look in _list_looks(trace):
        for refusal in look.best_refused[:per_step]:
            _add_row(
                table,
                str(number),
                str(refusal.candidate.rule),
                format_number(refusal.candidate.utility),
                format_p(refusal.candidate.p_value),
                _explain(refusal),
            )
    return table


def make_rate_table(
    model: RuleSet, environments: Sequence[object], verdicts: Sequence[Verdict] = ()
) -> Table:
    """How often the label is positive in each leaf of the model, by environment.

    With verdicts also whether that is invariant.
    """
    table = _make_table(
        "leaf", "predicts", *(f"environment {environment}" for environment in environments)
    )
    if verdicts:
        table.add_column("invariant?")
    settled = [rule if model.settles_when else rule.negate() for rule in model.rules]
    leaves = [("else " if i else "") + str(rule) for i, rule in enumerate(settled)]
    for number, (text, counts) in enumerate(zip([*leaves, "else"], model.leaves, strict=True)):
        is_positive = model.settles_when == (number < len(model.rules))
        conclusion = [_BRIEFLY[verdict.conclusion] for verdict in verdicts[number : number + 1]]
        predicts = "positive" if is_positive else "negative"
        _add_row(table, text, predicts, *format_rates(counts), *conclusion)
    return table


def describe_verdicts(verdicts: Sequence[Verdict], margin: float) -> str:
    """How far apart the rates may still be, and what would have been seen, as sentences."""
    highest = max((v.difference_interval[1] for v in verdicts if v.difference_interval), default=1)
    seen = [1.0 if v.detectable is None else v.detectable for v in verdicts]
    return (
        f"Invariant: shown to differ by at most {margin:.1%} between environments. In no leaf "
        f"do the data allow more than {highest:.1%}; in each the test would likely have seen "
        f"{max(seen, default=1.0):.1%}."
    )


def make_dataset_table(infos: Sequence[DatasetInfo]) -> Table:
    """The real data sets: what, how large, from where, and whether the files are there."""
    table = _make_table("name", "what, source and licence", "samples", "here")
    table.leading = 1
    for info in infos:
        what = f"{info.title}\n{info.source}\nlicence: {info.licence}"
        _add_row(table, info.name, what, f"{info.n_samples:,}", "yes" if info.present else "no")
    return table


def describe_pruning(trace: Trace) -> str:
    """What pruning removed, as a sentence."""
    removed = [
        f"{test.feature} (p {format_p(test.p_value)})" for test in trace.pruning if test.removed
    ]
    if not removed:
        return "Pruning removed nothing."
    return f"Pruning removed, as not needed for invariance: {', '.join(removed)}."


def _explain(refusal: Refusal) -> str:
    """Why it was refused, in few words; refused by equivalence, a leaf need not be dependent."""
    verdict = refusal.candidate.verdict
    if refusal.reason == "dependent" and verdict and verdict.conclusion == TOO_LITTLE_DATA:
        return verdict.conclusion
    return _WHY[refusal.reason]


def format_rates(leaf: LeafCounts) -> list[str]:
    """Share of positives and number of samples in each environment."""
    texts = []
    for negatives, positives in zip(*leaf, strict=True):
        n = negatives + positives
        texts.append(f"{positives / n:.1%} of {n:,}" if n else "no sample")
    return texts


def format_p(p_value: float | None) -> str:
    """A p-value in as many digits as a reader can use.

    >>> format_p(0.20427), format_p(0.04), format_p(3.1e-12), format_p(0.0), format_p(None)
    ('0.20', '0.040', '3e-12', '<1e-300', '-')
    """
    if p_value is None:
        return "-"
    if p_value < 1e-300:
        return "<1e-300"
    if p_value < 0.001:
        return f"{p_value:.0e}"
    return f"{p_value:.2f}" if p_value >= 0.1 else f"{p_value:.3f}"


def count_samples(leaf: LeafCounts) -> int:
    """All samples of a leaf."""
    return sum(map(sum, leaf))


def _list_looks(trace: Trace) -> Iterator[tuple[int, Look]]:
    looks: Sequence[Look | None] = [*(step.look for step in trace.steps), trace.last_look]
    for number, look in enumerate(looks, start=1):
        if look is not None:
            yield number, look


def _make_table(first: str, second: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(Text(first))
    table.add_column(Text(second), overflow="fold")
    for name in others:
        table.add_column(Text(name), justify="left" if name == "why" else "right")
    return table


def _add_row(table: Table, *cells: str) -> None:
    table.add_row(*(Text(cell) for cell in cells))
