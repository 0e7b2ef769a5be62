"""What `icscm fit` prints: the rule, how it was found, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from icscm.cli.console import print_all, print_heading, print_note
from icscm.cli.words import translate

if TYPE_CHECKING:
    from rich.console import Console

    from icscm.io.samples import Labelling
    from icscm.model.learner import Learner
    from icscm.search.trace import Trace
    from icscm.studies.choice import PChoice

# Up to this many environments stand side by side in 80 columns.
_N_BESIDE = 3

# A level below this refuses next to nothing, so that it is no advice.
_WORTH_A_TRY = 1e-4


def print_fit(
    console: Console,
    learner: Learner,
    samples: Labelling,
    name: str,
    choice: PChoice | None,
) -> None:
    """The rule, how it was found, and how it fares in each environment."""
    from icscm.report.terminal import (
        as_text,
        count_verdicts,
        describe_errors,
        describe_guess,
        make_fact_table,
        make_p_table,
    )

    model, trace = learner.model_, learner.trace_
    console.print(
        make_fact_table([(a, as_text(b)) for a, b in _list_facts(learner, samples, name)])
    )
    if choice is not None:
        print_heading(console, "p by cross-validation")
        console.print(make_p_table(choice))
    console.print()
    facts = [("Rule", f"positive where {model}" if model.rules else f"none: {model}")]
    if model.rules:
        facts.append(("Error", describe_errors(model, trace.environments)))
        facts.append(("", describe_guess(model)))
    if model.rules and trace.verdicts:
        facts.append(("Leaves", count_verdicts(trace.verdicts)))
    console.print(make_fact_table(facts))
    if model.rules:
        _print_search(console, learner)
        _print_leaves(console, learner)
    else:
        _print_nothing_found(console, learner)
    console.print()


def _list_facts(learner: Learner, samples: Labelling, name: str) -> list[tuple[str, str]]:
    from icscm.report.terminal import count

    negatives, positives = np.sum(np.array(learner.model_.leaves), axis=(0, 2)).tolist()
    n_positive, n_rows = positives, negatives + positives
    n_used = learner.n_features_in_ - len(learner.left_out_)
    facts = [
        ("Data", f"{name}: {count(n_rows, 'row')}, {count(n_used, 'column')} to learn from"),
        ("Positive", f"{samples.positive_text}, in {n_positive / n_rows:.1%} of the rows"),
    ]
    if samples.environment is not None:
        n_environments = len(learner.trace_.environments)
        facts.append(("Environments", f"{n_environments:,}, by {samples.environment}"))
    if samples.n_dropped:
        facts.append(
            ("Dropped", f"{count(samples.n_dropped, 'row')} without target or environment")
        )
    if learner.left_out_:
        facts.append(("Left out", f"{_describe_left_out(learner.left_out_)} (--keep keeps them)"))
    return facts


def _describe_left_out(left_out: Mapping[str | int, str]) -> str:
    from icscm.text import shorten_list

    by_reason: dict[str, list[str]] = {}
    for name, why in left_out.items():
        by_reason.setdefault(why, []).append(str(name))
    return "; ".join(f"{shorten_list(names)}: {why}" for why, names in by_reason.items())


def _print_search(console: Console, learner: Learner) -> None:
    from icscm.report.terminal import describe_pruning, make_set_table, make_step_table

    trace = learner.trace_
    print_heading(console, "How it was found")
    console.print(make_step_table(trace))
    if trace.sets:
        console.print()
        console.print(make_set_table(trace))
    notes = [trace.stop_text, *map(translate, trace.notes)]
    if trace.pruning:
        notes.insert(1, describe_pruning(trace))
    print_note(console, "\n" + " ".join(notes))
    if trace.alpha is not None:
        print_note(console, _explain_p_values(trace))


def _explain_p_values(trace: Trace) -> str:
    leaf = (
        "p leaf: is the label independent of the environment among the rows that the rule settles?"
    )
    rest = "p rest: the same for the rows that remain."
    if trace.sets:
        return (
            f"{leaf} {rest} p of a set: in all leaves of its rules together; accepted if above "
            f"{trace.alpha:g}. The model is what all accepted sets share."
        )
    return f"{leaf} Refused unless above {trace.alpha:g}. {rest}"


def _print_leaves(console: Console, learner: Learner) -> None:
    from icscm.report.terminal import describe_verdicts, make_range_table, make_rate_table

    model, environments = learner.model_, learner.trace_.environments
    verdicts = learner.trace_.verdicts
    if verdicts:
        _print_cautions(console, learner)
    print_heading(console, "Positive labels in each leaf, by environment")
    if len(environments) <= _N_BESIDE:
        console.print(make_rate_table(model, environments, verdicts))
    else:
        console.print(make_range_table(model, environments, verdicts))
        print_note(
            console,
            f"\nOf {len(environments):,} environments those of lowest and highest rate; the "
            "report and `icscm show model.json --all` have all.",
        )
    if verdicts:
        margin = learner.get_params()["margin"], learner.get_params()["margin_on"]
        print_note(console, "\n" + describe_verdicts(verdicts, *margin))


def _print_cautions(console: Console, learner: Learner) -> None:
    from icscm.report.terminal import describe_uncompared, make_fact_table

    found = describe_uncompared(learner.model_, learner.trace_.environments)
    if found:
        print_heading(console, "Read with care")
        console.print(make_fact_table([("-", text) for text in found]))


def _print_nothing_found(console: Console, learner: Learner) -> None:
    from icscm.report.terminal import (
        describe_refusals,
        make_fact_table,
        make_nearest_table,
        make_set_table,
    )

    trace = learner.trace_
    print_heading(console, "Why no rule was found")
    texts = trace.stop_text, translate(describe_refusals(trace))
    print_all(console, *filter(None, texts))
    if trace.nearest:
        console.print()
        console.print(make_nearest_table(trace))
    if trace.sets:
        console.print()
        console.print(make_set_table(trace))
    print_heading(console, "What to try")
    console.print(make_fact_table([("-", text) for text in _suggest(learner)]))


def _suggest(learner: Learner) -> list[str]:
    """What might lead to a rule, the most promising first."""
    trace = learner.trace_
    other = {"conjunction": "disjunction", "disjunction": "conjunction"}[
        learner.get_params()["model_type"]
    ]
    turned = f"--type {other}: its rules settle the other label."
    if trace.alpha is None:
        return [turned, "Other columns, or a smaller --p."]
    suggestions = [turned]
    best = max(_list_p_values(trace), default=0.0)
    if best >= _WORTH_A_TRY:
        text = (
            f"A smaller --alpha than {trace.alpha:g} refuses fewer; the nearest has p {best:.2g}."
        )
        suggestions.insert(0, text)
    if learner.get_params()["search"] == "greedy":
        suggestions.append(
            "--search exhaustive --alpha auto: tests sets of rules, not single ones."
        )
    return [
        *suggestions,
        "icscm check: columns that give the environment away (--drop), environments to merge.",
        "--model scm: the best rule without invariance, to compare.",
    ]


def _list_p_values(trace: Trace) -> list[float]:
    nearest = [each.candidate.p_value for each in trace.nearest]
    return [p for p in nearest if p is not None] + [test.p_value for test in trace.sets]
