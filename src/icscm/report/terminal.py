"""A trace as tables for the terminal.

Names come from users, so every cell is `Text`: nothing in it is read as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

from icscm._constants import SPARSE_ENVIRONMENT
from icscm.model.rule_sets import LeafCounts, RuleSet
from icscm.report.errors import count_errors, find_worst_and_best, is_positive
from icscm.search.trace import REFUSALS, Look, Refusal, Trace
from icscm.stats.verdicts import INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA, Verdict
from icscm.text import escape_controls, format_name, format_number

if TYPE_CHECKING:
    from icscm.datasets import DatasetInfo
    from icscm.studies.checkup import CheckUp, Giveaway
    from icscm.studies.choice import PChoice

# `trace.REFUSALS` in few words.
_WHY = {"dependent": "label shifts between environments", "small": "too few samples"}

# Headings of columns that hold words, not numbers.
_PROSE = ("why", "accepted", "lowest rate", "highest rate")

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
        "leaf", "predicts", *(f"environment {as_text(environment)}" for environment in environments)
    )
    if verdicts:
        table.add_column("invariant?")
    for number, (text, counts) in enumerate(zip(list_leaves(model), model.leaves, strict=True)):
        conclusion = [_BRIEFLY[verdict.conclusion] for verdict in verdicts[number : number + 1]]
        predicts = "positive" if is_positive(model, number) else "negative"
        _add_row(table, text, predicts, *format_rates(counts), *conclusion)
    return table


def list_leaves(model: RuleSet) -> list[str]:
    """Each leaf by the rule that settles it; the last is what none settles."""
    if not model.rules:
        return ["all samples"]
    settled = [rule if model.settles_when else rule.negate() for rule in model.rules]
    return [*(("else " if i else "") + str(rule) for i, rule in enumerate(settled)), "else"]


def make_range_table(
    model: RuleSet, environments: Sequence[object], verdicts: Sequence[Verdict] = ()
) -> Table:
    """As `make_rate_table` for many environments: those of lowest and highest rate.

    An environment with hardly a sample in a leaf has a rate of 0 or 1 by chance, and is passed
    over where there are others.
    """
    table = _make_table("leaf", "predicts", "samples", "lowest rate", "highest rate")
    if verdicts:
        table.add_column("invariant?")
    for number, (text, counts) in enumerate(zip(list_leaves(model), model.leaves, strict=True)):
        ends = _format_ends(counts, environments)
        conclusion = [_BRIEFLY[verdict.conclusion] for verdict in verdicts[number : number + 1]]
        predicts = "positive" if is_positive(model, number) else "negative"
        _add_row(table, text, predicts, f"{count_samples(counts):,}", *ends, *conclusion)
    return table


def _format_ends(counts: LeafCounts, environments: Sequence[object]) -> list[str]:
    """Lowest and highest rate, each with its environment; a single environment once."""
    rates, order = format_rates(counts), _sort_by_rate(counts)
    if count_samples(counts) == 0:
        return ["no sample", ""]
    texts = [f"{rates[k]}\n(env {as_text(environments[k])})" for k in (order[0], order[-1])]
    return texts if len(order) > 1 else [texts[0], "no other env"]


def _sort_by_rate(counts: LeafCounts) -> list[int]:
    """Environments by the share of positive labels, those with few samples left out."""
    sizes = [negatives + positives for negatives, positives in zip(*counts, strict=True)]
    enough = [k for k, n in enumerate(sizes) if n >= SPARSE_ENVIRONMENT]
    if len(enough) < 2:
        enough = [k for k, n in enumerate(sizes) if n] or [0]
    return sorted(enough, key=lambda k: counts[1][k] / max(sizes[k], 1))


def make_leaf_detail(
    counts: LeafCounts, environments: Sequence[object], most: int | None = None
) -> Table:
    """One leaf, an environment a line, the largest first; `most` limits the lines."""
    table = _make_number_table("environment", "samples", "positive", "rate")
    sizes = [negatives + positives for negatives, positives in zip(*counts, strict=True)]
    for k in sorted(range(len(sizes)), key=lambda k: -sizes[k])[:most]:
        rate = f"{counts[1][k] / sizes[k]:.1%}" if sizes[k] else "-"
        _add_row(table, as_text(environments[k]), f"{sizes[k]:,}", f"{counts[1][k]:,}", rate)
    return table


def describe_errors(model: RuleSet, environments: Sequence[object]) -> str:
    """Share of training samples predicted wrongly: of all, and where it is worst and best."""
    wrong, total = count_errors(model)
    text = f"{sum(wrong) / max(sum(total), 1):.1%} of {sum(total):,} training samples"
    if len(environments) < 2:
        return text
    ends = find_worst_and_best(wrong, total)
    if ends is None:
        return text
    worst, best = (
        f"{as_text(environments[k])}, {wrong[k] / total[k]:.1%} of {total[k]:,}" for k in ends
    )
    return f"{text}; worst in environment {worst}, best in {best}"


def describe_guess(model: RuleSet) -> str:
    """What the error is to be held against: that of always guessing the more frequent label."""
    negatives = sum(sum(leaf[0]) for leaf in model.leaves)
    positives = sum(sum(leaf[1]) for leaf in model.leaves)
    label = "positive" if positives > negatives else "negative"
    n_wrong = min(negatives, positives)
    text = f"always guessing {label} would be wrong for {n_wrong / (negatives + positives):.1%}"
    return text if n_wrong >= sum(count_errors(model)[0]) else f"{text}, less than the rule"


def make_nearest_table(trace: Trace) -> Table:
    """Refused candidates that came nearest to being allowed."""
    table = _make_number_table("nearest candidate", "settles", "p leaf", "why")
    for refusal in trace.nearest:
        candidate = refusal.candidate
        _add_row(
            table,
            str(candidate.rule),
            f"{count_samples(candidate.leaf):,}",
            format_p(candidate.p_value),
            _explain(refusal),
        )
    return table


def make_set_table(trace: Trace, most: int = 5) -> Table:
    """The sets of the exhaustive search that came nearest to being accepted, or were."""
    table = _make_table("p", "set of features", "accepted")
    for test in sorted(trace.sets, key=lambda test: -test.p_value)[:most]:
        names = ", ".join(format_name(feature) for feature in test.features) or "(none)"
        _add_row(table, format_p(test.p_value), names, "yes" if test.accepted else "no")
    return table


def describe_refusals(trace: Trace) -> str:
    """How many candidates the last look refused, and why, as a sentence; empty without one."""
    look = trace.last_look
    if look is None or not look.n_candidates:
        return ""
    reasons = [f"{n:,} because {REFUSALS[reason]}" for reason, n in look.n_refused.items() if n]
    n_refused = sum(look.n_refused.values())
    if not reasons:
        return ""
    return f"Of {look.n_candidates:,} candidates it refused {n_refused:,}: {'; '.join(reasons)}."


def make_p_table(choice: PChoice) -> Table:
    """What cross-validation found for each p."""
    table = _make_table("p", "error in cross-validation")
    for p, error in zip(choice.p_values, choice.errors, strict=True):
        mark = "  <- chosen" if p == choice.best else ""
        _add_row(table, format_number(p), f"{error:.2%}{mark}")
    return table


def make_fact_table(facts: Sequence[tuple[str, str]]) -> Table:
    """What is what: a word and its explanation a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in facts:
        _add_row(table, name, text)
    return table


def make_environment_table(found: CheckUp, most: int | None = None) -> Table:
    """The environments before fitting, the largest first; `most` limits the lines."""
    table = _make_number_table(
        "environment", "rows", "positive", "95 % interval", "missing", "would see"
    )
    ranked = sorted(found.environments, key=lambda each: -each.n_rows)
    for each in ranked[:most]:
        low, high = each.rate_interval
        _add_row(
            table,
            as_text(each.label),
            f"{each.n_rows:,}",
            f"{each.rate:.1%}",
            f"{low:.1%} - {high:.1%}",
            f"{each.missing:.1%}",
            format_difference(each.detectable),
        )
    return table


def make_giveaway_table(giveaways: Sequence[Giveaway]) -> Table:
    """Columns by what they tell of the environment."""
    table = _make_number_table("column", "by its values", "by being missing")
    for each in giveaways:
        by_missing = "-" if each.missingness is None else f"{each.missingness:.2f}"
        values = "copy of it" if each.is_copy else f"{each.values:.2f}"
        _add_row(table, format_name(each.column), values, by_missing)
    return table


def format_difference(difference: float | None) -> str:
    """A difference of rates, in points.

    >>> format_difference(0.0312), format_difference(None)
    ('3.1 points', 'none')
    """
    return "none" if difference is None else f"{difference * 100:.1f} points"


def count(n: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def as_text(value: object) -> str:
    """Something a user named, as text that can do nothing to a terminal."""
    return escape_controls(str(value))


def describe_verdicts(verdicts: Sequence[Verdict], margin: float, margin_on: str = "rate") -> str:
    """How far apart the rates may still be, and what would have been seen, as sentences."""
    most = f"{margin:.1%}" if margin_on == "rate" else f"an odds ratio of {margin:g}"
    sentences = [f"Invariant: shown to differ by at most {most} between environments."]
    highest = max((v.difference_interval[1] for v in verdicts if v.difference_interval), default=1)
    if highest < 0.9995:  # 100.0% is no bound
        sentences.append(f"In no leaf do the data allow more than {highest:.1%}.")
    if any(v.detectable is None for v in verdicts):
        sentences.append("In some leaf no difference, however large, would have been seen.")
    elif verdicts:
        seen = max(v.detectable or 0.0 for v in verdicts)
        sentences.append(f"In each the test would likely have seen {seen:.1%}.")
    return " ".join(sentences)


def describe_uncompared(model: RuleSet, environments: Sequence[object]) -> list[str]:
    """A sentence for each leaf that holds samples of one environment only.

    Its p-value is 1 by definition, which reads like the best of evidence and is none.
    """
    if len(environments) < 2:
        return []
    sentences = []
    for number, counts in enumerate(model.leaves):
        seen = [k for k, pair in enumerate(zip(*counts, strict=True)) if sum(pair)]
        if len(seen) == 1:
            where = as_text(environments[seen[0]])
            sentences.append(_describe_one_environment(model, number, where))
    return sentences


def _describe_one_environment(model: RuleSet, leaf: int, where: str) -> str:
    if leaf == len(model.rules):
        return (
            f"The samples that no rule settles are of one environment only, {where}: nothing could "
            "be compared there."
        )
    return (
        f"{model.rules[leaf]} settles rows of one environment only, {where}: nothing could be "
        "compared there; such a rule may be a mark of the site."
    )


def count_verdicts(verdicts: Sequence[Verdict]) -> str:
    """How many leaves are invariant, are not, or cannot be told."""
    counted = Counter(verdict.conclusion for verdict in verdicts)
    order = (INVARIANT, NOT_INVARIANT, TOO_LITTLE_DATA)
    return ", ".join(f"{counted[each]} {each}" for each in order if counted[each])


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
        f"{format_name(test.feature)} (p {format_p(test.p_value)})"
        for test in trace.pruning
        if test.removed
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
    table.add_column(Text(first), overflow="fold")
    table.add_column(Text(second), overflow="fold")
    for name in others:
        _add_column(table, name)
    return table


def _make_number_table(first: str, *others: str) -> Table:
    """A name in the first column, numbers in the others."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(Text(first), overflow="fold")
    for name in others:
        _add_column(table, name)
    return table


def _add_column(table: Table, name: str) -> None:
    """Words to the left, numbers to the right; nothing is cut off."""
    justify: Literal["left", "right"] = "left" if name in _PROSE else "right"
    table.add_column(Text(name), justify=justify, overflow="fold")


def _add_row(table: Table, *cells: str) -> None:
    table.add_row(*(Text(cell) for cell in cells))
