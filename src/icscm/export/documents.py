"""A model as a JSON document, a text, a Python module without dependencies, or FASTA."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any, Final

from icscm._repr import align
from icscm.exceptions import IcscmError
from icscm.export import conditions
from icscm.export.conditions import Condition, Leaf, describe_missing_error, make_leaves
from icscm.formatting import (
    as_text,
    count,
    format_exactly,
    format_json,
    format_level,
    format_name,
    make_plain,
    shorten_list,
)
from icscm.model.forest import Forest
from icscm.model.rules import CategoryRule
from icscm.model.saved import SavedModel, get_table_settings
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree
from icscm.tables.columns import Level

# --- JSON ----------------------------------------------------------------------------------------

SCHEMA: Final = 1

_FOLLOW_TREE: Final = (
    "Begin at split 0, or at leaf 0 if there is none. Where a split's condition is true go to "
    "if_true, else to if_false: a number from 0 is that of a split, -1 is leaf 0, -2 leaf 1 and so "
    "on."
)
_FOLLOW_FOREST: Final = (
    f"In each tree: {_FOLLOW_TREE} The probability is the mean of the leaves' probabilities, "
    "added in order; above 1/2 it is the second of the classes, else the first."
)
_MISSING: Final = (
    " For a missing value (null, NaN) a condition is what its if_missing says. Columns without a "
    "name are found by position, from 0. Text that is in missing_texts, spaces around it aside, is "
    "missing, and in columns of numbers all that is in missing_numbers is."
)


def make_json(saved: SavedModel) -> str:
    """The splits and leaves, for a program in any language."""
    trees: list[dict[str, Any]] = []
    for tree in conditions.list_trees(saved.model):
        splits = [
            asdict(conditions.make_condition(each.rule, saved))
            | {"if_true": each.if_true, "if_false": each.if_false}
            for each in tree.splits
        ]
        leaves = [asdict(leaf) for leaf in make_leaves(saved, tree)]
        trees.append({"splits": make_plain(splits), "leaves": make_plain(leaves)})
    form, follow, content = "tree", _FOLLOW_TREE, trees[0]
    if isinstance(saved.model, Forest):
        form, follow, content = "forest", _FOLLOW_FOREST, {"trees": trees}
    absent = conditions.find_absent(saved)
    document = {
        "format": f"icscm-decision-{form}",
        "schema": SCHEMA,
        "version": saved.version,
        "how_to_read": " ".join([follow + _MISSING, *describe_missing_error(saved)]),
        "missing_texts": [] if absent is None else list(absent.texts),
        "missing_numbers": [] if absent is None else list(absent.numbers),
        "rule": str(saved),
        "classes": list(saved.classes),
    }
    return format_json(document | content)


# --- text ----------------------------------------------------------------------------------------


def make_text(saved: SavedModel) -> str:
    """The rule or tree with tables of its leaves; of a forest a summary."""
    model, (negative, positive) = saved.model, map(format_level, saved.classes)
    pools = "\n".join(
        f"The rare levels of {format_name(rule.feature)}: "
        f"{', '.join(map(format_level, rule.levels))}."
        for rule in model.rules
        if isinstance(rule, CategoryRule) and rule.pooled
    )
    if isinstance(model, Forest):
        start = f"Predicts {positive} where the mean of the probabilities that its trees give "
        start += f"exceeds 1/2,\nand {negative} elsewhere: a {model}"
        parts = [start, "All its trees are in the exports to 'python', 'sql' and 'json'.", pools]
    else:
        parts = [_describe_tree(model, negative, positive), pools]
        parts += _make_leaf_tables(saved, model, negative, positive)
    parts += [*describe_missing_error(saved), conditions.describe_origin(saved)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _describe_tree(model: Tree, negative: str, positive: str) -> str:
    if not model.rules:
        always = positive if model.leaf_verdicts[0] else negative
        return f"Predicts {always} for every sample: {model}."
    if not model.is_chain:
        lines = str(model).replace("\n", "\n    ")
        start = f"Predicts {positive} in leaves marked positive and {negative} in others"
        return f"{start} (shares are of {positive}):\n\n    {lines}"
    rules = f"\n   {CHAINS[model.kind].joiner}".join(map(str, model.simple_rules))
    return f"Predicts {positive} where\n\n    {rules}\n\nand {negative} elsewhere."


def _make_leaf_tables(saved: SavedModel, model: Tree, negative: str, positive: str) -> list[str]:
    """The leaves, how their probability is made, and their rates by environment."""
    rows = [["decided by", "predicts", f"probability of {positive}", negative, positive]]
    for leaf in make_leaves(saved, model):
        counts = (f"{count:,}" for count in leaf.training_samples)
        predicts, probability = format_level(leaf.prediction), f"{leaf.probability:.4f}"
        rows.append([leaf.decided_by, predicts, probability, *counts])
    first, mean = "The first line that is true of a sample decides.", ""
    if not model.is_chain:
        first = "Each sample is in one of these leaves."
        mean = " in the\nmean over the environments that have samples there" * model.balanced
    how = f"{first} The probability is\n(samples of {positive} + 1) / (samples + 2){mean}."
    parts = ["\n".join(align(rows, n_text=2)), how]
    if saved.environments is not None:
        columns = [["environment", *map(as_text, saved.environments)]]
        for number, (negatives, positives) in enumerate(model.leaves, start=1):
            pairs = zip(negatives, positives, strict=True)
            columns.append([f"line {number}", *(f"{k:,} / {n + k:,}" for n, k in pairs)])
        title = f"Samples of {positive} / all samples, by environment and line of the table above:"
        table = list(zip(*columns, strict=True)) if model.is_chain else columns
        parts += [title, "\n".join(align(table, n_text=1))]
    return parts


# --- Python --------------------------------------------------------------------------------------


def make_python(saved: SavedModel) -> str:
    """A module that predicts, without imports.

    It holds tables of rules, splits and leaves: nested blocks would reach Python's limit of 100.
    """
    model, absent = saved.model, conditions.find_absent(saved)
    numbers = {rule: number for number, rule in enumerate(dict.fromkeys(model.rules))}
    rules = [conditions.make_condition(rule, saved) for rule in numbers]
    of_text = {"booleans": "as_boolean", "text": "as_level"} if absent is not None else {}
    readers = [({"numbers": "as_number"} | of_text).get(each.compares, "") for each in rules]
    sets: dict[str, tuple[Level, ...]] = {}
    if absent is not None and any(readers):
        sets["MISSING_TEXTS"] = absent.texts
        sets |= {"MISSING_NUMBERS": absent.numbers} if absent.numbers else {}
    is_forest = isinstance(model, Forest)
    trees = [
        (
            [(numbers[each.rule], each.if_true, each.if_false) for each in tree.splits],
            [_make_leaf(leaf, saved, is_forest=is_forest) for leaf in make_leaves(saved, tree)],
        )
        for tree in conditions.list_trees(model)
    ]
    lines = str(saved).replace("\n", "\n    ")
    negative, positive = map(quote_python, saved.classes)
    return conditions.fill_template(
        "model.py.txt",
        saved,
        facts=_escape(f"{conditions.describe_origin(saved)}\n\n    {lines}"),
        keys="name" if saved.has_names else "position",
        positive=_escape(format_level(saved.classes[1])),
        absent=absent,
        stripped="value.strip()" if absent is None or absent.is_trimmed else "value",
        sets={name: map(quote_python, values) for name, values in sets.items()},
        readers=readers,
        rules=map(_make_rule, rules, readers),
        trees=trees,
        is_forest=is_forest,
        n_trees=count(len(trees), "tree"),
        negative_literal=negative,
        positive_literal=positive,
    )


def _escape(text: str) -> str:
    """Text inside a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _make_leaf(leaf: Leaf, saved: SavedModel, *, is_forest: bool) -> str:
    """What `predict` returns for a leaf; in a forest what is summed over its trees."""
    above, below = leaf.fraction or (leaf.probability, 1)
    if is_forest:
        return f"{above} / {below}, {leaf.prediction == saved.classes[1]}"
    return f"{quote_python(leaf.prediction)}, {above} / {below}, {quote_python(leaf.decided_by)}"


def _make_rule(condition: Condition, reader: str) -> str:
    """An entry of the table of rules; being missing leaves nothing to compare."""
    value = "()"
    if isinstance(condition.value, tuple):
        value = f"{{{', '.join(map(quote_python, condition.value))}}}"
    elif condition.value is not None:
        value = format_exactly(condition.value)
    operator = "in" if condition.operator == "is missing" else condition.operator
    operator = "not in" if operator == "is present" else operator
    column = quote_python(condition.position if condition.column is None else condition.column)
    return f'{column}, {reader or "as_found"}, "{operator}", {value}, {condition.if_missing}'


def quote_python(value: Level) -> str:
    """A literal: `repr`, with the quotes that most code has where the text allows them.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    literal = repr(value)
    is_simple = isinstance(value, str) and literal == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_simple else literal


# --- FASTA ---------------------------------------------------------------------------------------

_SEQUENCE = re.compile("[ACGTUNRYSWKMBDHV]+", re.IGNORECASE)


def export_fasta(saved: SavedModel) -> str:
    """A record for each rule, `rule1`, and for each of its equivalents, `rule1.1`."""
    if saved.model.kind not in CHAINS:
        raise IcscmError(
            f"FASTA is for the rules of a conjunction or disjunction, and this model is a "
            f"{saved.model.kind}; see its rules with icscm show"
        )
    found = get_table_settings(saved).get("equivalents")
    found = found if isinstance(found, list) else []
    records = []
    for i, rule in enumerate(saved.model.rules, start=1):
        alike = found[i - 1] if i <= len(found) and isinstance(found[i - 1], list) else []
        for j, each in enumerate([rule, *alike]):  # formatted as `ACGT present`
            name, _, state = str(each).rpartition(" ")
            same = f".{j} {state}, covers the same genomes as rule{i}"
            records.append((f"rule{i}{same if j else f' {state}'}", name))
    others = [repr(name) for _, name in records if not _SEQUENCE.fullmatch(name)]
    if others:
        raise IcscmError(
            f"FASTA is for rules on k-mers or unitigs, and {shorten_list(others)} names no "
            "sequence of nucleotides; see the rule with icscm show"
        )
    if not records:
        raise IcscmError("the model has no rule, and so no sequence")
    return "".join(f">{title}\n{sequence}\n" for title, sequence in records)
