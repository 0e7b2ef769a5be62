"""What `icscm check` and `icscm show` print. Slow to load, so commands import it when they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from icscm.formatting import as_text, format_name, shorten_list
from icscm.model.forest import Forest, describe_size
from icscm.model.saved import SavedModel, get_table_settings, list_used
from icscm.model.splits import count_labels, format_counts
from icscm.model.tree import Tree
from icscm.report.formatting import format_p, format_prediction_interval, make_names
from icscm.report.sections.errors import describe_errors
from icscm.report.sections.headline import list_facts
from icscm.report.sections.leaves import describe_leaves
from icscm.report.terminal import (
    make_environment_table,
    make_fact_table,
    make_heading,
    make_list,
    make_note,
    make_table,
)
from icscm.studies.checkup import CheckUp


def render_checkup(
    found: CheckUp, facts: Sequence[tuple[str, str]], most: int | None
) -> Iterator[RenderableType]:
    """What a check-up found, below the facts about the data."""
    yield make_fact_table(facts)
    yield from _render_environments(found, most)
    yield from _render_columns(found, most)
    yield from _render_power(found)
    if found.advice:
        yield make_heading("Advice")
        yield make_list(found.advice)


def _render_environments(found: CheckUp, most: int | None) -> Iterator[RenderableType]:
    columns = "environment", ">rows", ">positive", ">95 % interval", ">missing", ">would see"
    ranked = sorted(found.environments, key=lambda each: -each.n_rows)
    rows = [
        (
            as_text(each.label),
            f"{each.n_rows:,}",
            f"{each.rate:.1%}",
            "{:.1%} - {:.1%}".format(*each.rate_interval),
            f"{each.missing:.1%}",
            _format_difference(each.min_detectable),
        )
        for each in ranked[:most]
    ]
    yield make_heading("Environments")
    yield make_table(columns, rows)
    yield from _render_rest(len(ranked), most, "environments")
    yield make_note(
        "\npositive: share of positive labels. missing: share of empty cells. would see: the "
        "smallest difference from the others' rate that a test would likely notice."
    )
    yield f"Does the label's rate differ between environments? p = {format_p(found.p_value)}."
    if found.sparse:
        yield make_heading("Sparse: rows of a class in an environment")
        for cell in found.sparse[:most]:
            label = "positive" if cell.label == found.classes[1] else "negative"
            yield f"{label} in {as_text(cell.environment)}: {cell.n_rows}"
        yield from _render_rest(len(found.sparse), most, "cells")


def _render_columns(found: CheckUp, most: int | None) -> Iterator[RenderableType]:
    if found.dropped:
        left_out = [(as_text(name), why) for name, why in found.dropped.items()]
        yield make_heading("Columns that fit will leave out unless asked for (--keep)")
        yield make_fact_table(left_out[:most])
        yield from _render_rest(len(left_out), most, "columns")
    strong = found.strong_associations
    shown = found.associations if most is None else strong[:most] or found.associations[:3]
    yield make_heading(
        "Columns that give the environment away"
        if strong
        else "No column gives the environment away; the most telling"
    )
    rows = [
        (
            format_name(each.column),
            "copy of it" if each.is_copy else f"{each.values:.2f}",
            "-" if each.missingness is None else f"{each.missingness:.2f}",
        )
        for each in shown
    ]
    yield make_table(("column", ">by its values", ">by being missing"), rows)
    yield from _render_rest(len(strong), most, "columns")
    yield make_note(
        "\nCramer's V with the environment: 0 unrelated, 1 one tells the other, from 0.5 listed. "
        "Numbers are cut into 16 bins; missing values are looked at apart."
    )


def _render_power(found: CheckUp) -> Iterator[RenderableType]:
    names = {1.0: "whole table", 0.5: "a half of it", 0.1: "a tenth"}
    yield make_heading("What could be seen")
    yield make_fact_table(
        (names[each.share], f"{each.n_rows:,} rows: {_format_difference(each.difference)}")
        for each in found.power
    )
    yield make_note(
        "\nThe smallest difference of the label's rate between the two largest environments that "
        f"a test at alpha {found.alpha} sees with 80 % power, in leaves of this size."
    )


def _format_difference(difference: float | None) -> str:
    """A difference of rates, in points."""
    return "none" if difference is None else f"{difference * 100:.1f} points"


def _render_rest(n: int, most: int | None, what: str = "") -> Iterator[RenderableType]:
    if most is not None and n > most:
        yield make_note(f"and {n - most:,} more{what and f' {what}'}; --all shows them")


def render_saved(saved: SavedModel, most: int | None) -> Iterator[RenderableType]:
    """What is in a model file, up to so many environments of each leaf."""
    yield make_fact_table((word, as_text(text)) for word, text in _list_facts(saved))
    yield ""
    if isinstance(saved.model, Tree) and saved.model.is_chain:
        yield from _render_rules(saved, saved.model, most)
    else:
        yield from _render_trees(saved, saved.model, most)
    yield make_heading("Settings")
    settings = [(name, value) for name, value in saved.settings.items() if name != "table"]
    yield make_fact_table((as_text(name), as_text(value)) for name, value in settings)


def _render_trees(
    saved: SavedModel, model: Tree | Forest, most: int | None
) -> Iterator[RenderableType]:
    """A tree as it prints, of a forest a summary; what they are made of where all is asked for."""
    yield Text(str(model))
    if isinstance(model, Forest):
        if most is not None:
            yield make_note("\n--all shows the trees")
        for number, tree in enumerate(() if most is not None else model.trees, start=1):
            yield make_heading(f"Tree {number:,}")
            yield Text(str(tree))
        return
    wrong, n = sum(model.count_wrong()), sum(sum(count_labels(leaf)) for leaf in model.leaves)
    yield ""
    yield make_fact_table([("Error", f"{wrong / max(n, 1):.1%} of {n:,} training samples")])
    if most is not None:
        yield make_note("\n--all shows the leaves by environment")
        return
    names = [as_text(each) for each in saved.environments or ("all",)]
    for number, (text, leaf) in enumerate(zip(model.leaf_texts, model.leaves, strict=True), 1):
        yield make_heading(f"Leaf {number:,}: {text}")
        pairs = zip(names, *leaf, strict=True)
        rows = [(name, *format_counts(negative, positive)) for name, negative, positive in pairs]
        yield make_table(("environment", ">samples", ">positive", ">rate"), rows)


def _render_rules(saved: SavedModel, model: Tree, most: int | None) -> Iterator[RenderableType]:
    names = make_names(saved.environments or ("all",), saved.classes)
    leaves = describe_leaves(model, names)
    errors = describe_errors(model, names, saved.settings.get("p", 1.0))
    described = {"noun": "rule", "text": str(model), "n_rules": len(model.rules), "discarded": None}
    facts = list_facts({"model": described, "leaves": leaves, "errors": errors})
    yield make_fact_table((term, text) for term, text in facts)
    for leaf, chance in zip(leaves, model.leaf_probabilities().tolist(), strict=True):
        yield make_heading(f"Leaf {leaf['number']}: {leaf['name']}")
        predicted = names.classes[leaf["is_positive"]]
        yield f"predicts {predicted}; the probability of {names.classes[1]} is {chance:.3f}"
        if leaf["new_interval"] is not None:
            interval = format_prediction_interval(leaf["new_interval"])
            tau = f"tau {leaf['tau']:.2f}"
            yield f"95% prediction interval for a new environment: {interval}; {tau}"
        elif saved.environments is not None:
            yield f"no prediction interval for a new environment: {leaf['new_reason']}"
        yield make_environment_table(leaf, most)
        yield from _render_rest(len(names.environments), most)


def _list_facts(saved: SavedModel) -> list[tuple[str, str]]:
    used = list_used(saved)
    told = get_table_settings(saved)
    target, column = told.get("target"), told.get("environment")
    values = " or ".join(map(str, told.get("positive") or []))
    environments = "none: nothing was tested for invariance"
    if saved.environments is not None:
        environments = f"{len(saved.environments):,}{f', by {column}' if column else ''}"
    return [
        ("Model", describe_size(saved.model)),
        *(
            [("Target", f"{target}, positive where it is {values}" if values else target)]
            if target
            else []
        ),
        ("Classes", f"{saved.classes[1]} (positive) and {saved.classes[0]}"),
        ("Columns", f"{len(used)} used ({shorten_list(used) or 'none'}) of {len(saved.features)}"),
        ("Environments", environments),
        ("Version", f"icscm {saved.version}"),
    ]
