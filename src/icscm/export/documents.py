"""A model as a JSON document, a text, a program in Python or R without dependencies, or FASTA.

Documents and SQL are made from conditions and leaves, which are the first part of this module.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from icscm import formatting
from icscm._constants import LARGEST_EXACT
from icscm._repr import align
from icscm.exceptions import IcscmError
from icscm.formatting import count, escape_controls, format_level, format_name, make_plain
from icscm.io.formats import TextFormat, find_numbers
from icscm.model.calibration import Decisions
from icscm.model.forest import Forest, Model
from icscm.model.parsing import NUMBER, Label
from icscm.model.routes import name_missing
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.model.saved import SavedModel, get_table_settings, list_missing_texts
from icscm.model.score import Score
from icscm.model.splits import CHAINS, count_labels
from icscm.model.tree import Tree
from icscm.tables.columns import Level

# Characters of a number that R reads exactly.
MAX_R_DIGITS: Final = 15
# Characters of a literal; R reads none of more than 10,000 if there are codes in it.
MAX_R_TEXT: Final = 5_000

_TEMPLATES = Environment(
    loader=PackageLoader("icscm.export"),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)
_TEMPLATES.filters |= {"level": format_level, "name": format_name, "of": count}
_TEMPLATES.filters |= {"number": formatting.format_number, "escape_controls": escape_controls}


@dataclass(frozen=True)
class Leaf:
    """The prediction for samples in a leaf; `training_samples` are counts of each class."""

    prediction: Label
    probability: float
    decided_by: str
    training_samples: tuple[int, int]

    @property
    def fraction(self) -> tuple[int, int] | None:
        """The whole numbers of Laplace's rule; None if their quotient is not the probability."""
        above, below = self.training_samples[1] + 1, sum(self.training_samples) + 2
        is_exact = below < LARGEST_EXACT and above / below == self.probability
        return (above, below) if is_exact else None


@dataclass(frozen=True)
class Condition:
    """A condition on one column; where `if_missing` is None, a model follows both branches."""

    column: str | None
    position: int
    type: str
    operator: str
    value: float | tuple[Level, ...] | None
    if_missing: bool | None

    @property
    def compares(self) -> str:
        """What it compares: numbers (also as categories), booleans or text."""
        first = self.value[0] if isinstance(self.value, tuple) else ""
        if self.type == NUMBER or not isinstance(first, str | bool):
            return "numbers"
        return "booleans" if isinstance(first, bool) else "text"


@dataclass(frozen=True)
class Absent:
    """The texts and numbers that meant missing in the file that `icscm fit` read.

    `numbers` are those of the user's own texts that are numbers. `is_trimmed` is whether spaces
    around a text are ignored, as in text files.
    """

    texts: tuple[str, ...]
    numbers: tuple[float, ...]
    is_trimmed: bool


def find_absent(saved: SavedModel) -> Absent | None:
    """From the settings of the model; None where missing values are NULL, None or NaN only."""
    settings = get_table_settings(saved)
    if not settings:
        return None
    na = list_missing_texts(settings)
    is_text = settings.get("format", "text") == "text"
    form = TextFormat(tuple(na), settings.get("default_na") is not False)
    texts = tuple(dict.fromkeys(form.missing_texts if is_text else na))
    return Absent(texts, tuple(find_numbers(na)), is_text) if texts else None


def make_leaves(saved: SavedModel, model: Tree | Score) -> list[Leaf]:
    """The leaves of a tree, or classes of totals of a score, in their order."""
    labels = [saved.classes[int(verdict)] for verdict in model.leaf_verdicts]
    counts = [count_labels(leaf) for leaf in model.leaves]
    parts = labels, model.leaf_probabilities().tolist(), model.leaf_texts, counts
    return [Leaf(*each) for each in zip(*parts, strict=True)]


def make_condition(rule: Rule, saved: SavedModel, *, is_true: bool = True) -> Condition:
    """The condition that is true where the rule is true, or where it is false."""
    operators, if_missing = (">", "<="), rule.truth_of_missing
    value: float | tuple[Level, ...] | None = 0  # of presence
    if isinstance(rule, ThresholdRule):
        value = rule.threshold
    elif isinstance(rule, CategoryRule):
        operators, value = ("in", "not in"), rule.levels
    elif isinstance(rule, MissingRule):
        operators, value = ("is missing", "is present"), None
    operator = operators[rule.is_affirmative != is_true]
    kind = saved.features[rule.column].type
    if_missing = None if if_missing is None else if_missing == is_true
    return Condition(rule.name, rule.column, kind, operator, value, if_missing)


def list_unsure(model: Model) -> list[tuple[Rule, str]]:
    """A rule on each column whose missing values are reported, and the column's name.

    For trees, the columns without missing values at fitting; for a score, all.
    """
    unsure: dict[Any, Rule] = {r.feature: r for r in reversed(model.rules) if r.is_unsure}
    if isinstance(model, Score):
        unsure = {rule.feature: rule for rule in model.missing_rules}
    features = dict.fromkeys(rule.feature for rule in model.rules)
    averaged = getattr(model, "averaged", ())
    return [(unsure[each], name_missing(each, averaged)) for each in features if each in unsure]


def list_trees(model: Model) -> tuple[Tree, ...]:
    """The trees of a forest, or the model itself if it is a tree; a score has none."""
    if isinstance(model, Score):
        return ()
    return (model,) if isinstance(model, Tree) else model.trees


def list_points(saved: SavedModel, model: Score) -> list[list[tuple[Condition, int]]]:
    """For each column its conditions and their points; the first true one counts."""
    return [
        [(make_condition(rule, saved), points) for rule, points in terms]
        for terms in model.list_columns()
    ]


def describe_origin(saved: SavedModel) -> str:
    """The version that learned the model, and from how many samples."""
    models = list_trees(saved.model) or (saved.model,)
    sizes = [sum(sum(map(sum, leaf)) for leaf in getattr(each, "leaves", ())) for each in models]
    template = _TEMPLATES.get_template("origin.txt")
    return template.render(saved=saved, sizes=sizes).strip()


def fill_template(name: str, saved: SavedModel, **values: Any) -> str:
    """An export made with a template; text that comes from users is quoted there or by callers."""
    # exported code cannot enforce it
    line = "The model was fitted without missing values and rejects them: make sure there are none."
    rejected = [line] if saved.settings.get("missing") == "error" else []
    known: dict[str, Any] = {"saved": saved, "model": saved.model, "rejected": rejected}
    known |= {"is_forest": isinstance(saved.model, Forest), "absent": find_absent(saved)}
    known |= {"origin": describe_origin(saved), "fields": Decisions._fields}
    known |= dict(zip(("negative", "positive"), map(format_level, saved.classes), strict=True))
    return _TEMPLATES.get_template(name).render(known | values)


# --- JSON ----------------------------------------------------------------------------------------

SCHEMA: Final = 2


def make_json(saved: SavedModel) -> str:
    """The splits and leaves, or points and risks, for a program in any language."""
    trees: list[dict[str, Any]] = []
    for tree in list_trees(saved.model):
        splits = [
            asdict(make_condition(each.rule, saved))
            | {"if_true": each.if_true, "if_false": each.if_false, "share_true": share}
            for each, share in zip(tree.splits, tree.shares, strict=True)
        ]
        leaves = [asdict(leaf) for leaf in make_leaves(saved, tree)]
        trees.append({"splits": make_plain(splits), "leaves": make_plain(leaves)})
    is_forest = isinstance(saved.model, Forest)
    model = saved.model
    content: dict[str, Any] = {"trees": trees} if is_forest else {}
    if isinstance(model, Score):
        columns = [
            [asdict(condition) | {"points": points} for condition, points in terms]
            for terms in list_points(saved, model)
        ]
        risks = model.compute_risks().tolist()
        content = {"columns": make_plain(columns), "risks": risks, "cut": model.cut}
    content = content or trees[0]
    if isinstance(model, Forest) and model.is_moved:  # leaves of a tree have theirs
        content |= {"calibration": model.calibration, "cut": model.find_cut()}
    elif model.threshold is not None:
        content["threshold"] = model.threshold
    how_to_read = fill_template("how_to_read.txt", saved)
    absent, shape = find_absent(saved), "forest" if is_forest else "tree"
    document = {
        "format": "icscm-score" if isinstance(model, Score) else f"icscm-decision-{shape}",
        "schema": SCHEMA,
        "version": saved.version,
        "how_to_read": " ".join(how_to_read.split()),
        "missing_texts": [] if absent is None else list(absent.texts),
        "missing_numbers": [] if absent is None else list(absent.numbers),
        "rule": str(saved),
        "classes": list(saved.classes),
    }
    return formatting.format_json(document | content)


# --- text ----------------------------------------------------------------------------------------


def make_text(saved: SavedModel) -> str:
    """The rule, tree or score with tables of its leaves; for a forest, a summary."""
    model, (negative, positive) = saved.model, map(format_level, saved.classes)
    leaves, by_environment = [], []
    if not isinstance(model, Forest):
        rows = [["decided by", "predicts", f"probability of {positive}", negative, positive]]
        for leaf in make_leaves(saved, model):
            counts = (f"{count:,}" for count in leaf.training_samples)
            predicts, probability = format_level(leaf.prediction), f"{leaf.probability:.4f}"
            rows.append([leaf.decided_by, predicts, probability, *counts])
        leaves = align(rows, n_text=2)
    if not isinstance(model, Forest) and saved.environments is not None:
        lines = [["environment", *map(formatting.as_text, saved.environments)]]
        for number, (negatives, positives) in enumerate(model.leaves, start=1):
            pairs = zip(negatives, positives, strict=True)
            lines.append([f"line {number}", *(f"{k:,} / {n + k:,}" for n, k in pairs)])
        by_environment = align([*zip(*lines, strict=True)] if model.is_chain else lines, n_text=1)
    tables = {"leaves": leaves, "environments": by_environment}
    return fill_template("model.text.txt", saved, chain=CHAINS.get(model.kind), **tables)


# --- Python and R --------------------------------------------------------------------------------


def make_code(saved: SavedModel, template: str, quote: Callable[[Any], str]) -> str:
    """A program that predicts, without dependencies.

    It holds tables of rules, splits and leaves: nested blocks would reach Python's limit of 100.
    """
    model, absent = saved.model, find_absent(saved)
    numbers = {rule: number for number, rule in enumerate(dict.fromkeys(model.rules))}
    rules = [make_condition(rule, saved) for rule in numbers]
    of_text = {"booleans": "as_boolean", "text": "as_level"} if absent is not None else {}
    readers = [({"numbers": "as_number"} | of_text).get(each.compares, "") for each in rules]
    sets: dict[str, tuple[Level, ...]] = {}
    if absent is not None and any(readers):
        sets["MISSING_TEXTS"] = absent.texts
        sets |= {"MISSING_NUMBERS": absent.numbers} if absent.numbers else {}
    trees = []
    for tree in list_trees(model):
        shares = zip(tree.splits, tree.shares, strict=True)
        splits = [(numbers[s.rule], s.if_true, s.if_false, share) for s, share in shares]
        trees.append((splits, make_leaves(saved, tree)))
    columns = [
        [(numbers[rule], points) for rule, points in terms]
        for terms in (model.list_columns() if isinstance(model, Score) else ())
    ]
    lines = str(saved).replace("\n", "\n    ")
    return fill_template(
        template,
        saved,
        facts=_escape(f"{describe_origin(saved)}\n\n    {lines}"),
        positive=_escape(format_level(saved.classes[1])),
        stripped="value.strip()" if absent is None or absent.is_trimmed else "value",
        sets=sets,
        readers=readers,
        rules=zip(rules, readers, strict=True),
        unsure=[(r.feature, readers[numbers[r]], name) for r, name in list_unsure(model)],
        trees=trees,
        columns=columns,
        quote=quote,
        exact=formatting.format_exactly,
    )


def _escape(text: str) -> str:
    """Text inside a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def quote_python(value: Level | tuple[Level, ...]) -> str:
    """A Python literal: `repr` with double quotes where possible, or a set.

    >>> print(quote_python("age"), quote_python('"'), quote_python(2))
    "age" '"' 2
    """
    if isinstance(value, tuple):
        return f"{{{', '.join(map(quote_python, value))}}}"
    literal = repr(value)
    is_simple = isinstance(value, str) and literal == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_simple else literal


def quote_r(value: Any) -> str:
    r"""A literal of R; numbers that R may read with another last bit are hexadecimal, as in C.

    >>> print(quote_r(("age", "\xe9")), quote_r(2.5), quote_r(1 / 3), quote_r(True))
    c("age", "\U{e9}") 2.5 0x1.5555555555555p-2 TRUE
    """
    if isinstance(value, list | tuple):
        return f"c({', '.join(map(quote_r, value))})"
    if not isinstance(value, str):
        text = str(value).upper() if isinstance(value, bool) else repr(value)
        return float(value).hex() if "e" in text or len(text) > MAX_R_DIGITS else text
    if any(each == "\0" or "\ud800" <= each <= "\udfff" for each in value):
        raise IcscmError(
            f"{escape_controls(repr(value))} holds a character that R cannot; rename it, or export "
            "to 'python' or 'json'"
        )
    if len(value) > (n := MAX_R_TEXT):
        return f"paste0({', '.join(quote_r(value[i : i + n]) for i in range(0, len(value), n))})"
    plain = (each if " " <= each <= "~" and each not in '"\\' else None for each in value)
    codes = zip(plain, value, strict=True)
    return '"' + "".join(a or f"\\U{{{ord(b):x}}}" for a, b in codes) + '"'


# --- FASTA ---------------------------------------------------------------------------------------

_SEQUENCE = re.compile("[ACGTUNRYSWKMBDHV]+", re.IGNORECASE)


def export_fasta(saved: SavedModel) -> str:
    """A record for each rule, `rule1`, and for each of its equivalents, `rule1.1`."""
    if saved.model.kind not in CHAINS:
        raise IcscmError(
            f"FASTA is for the rules of a conjunction or disjunction, and this model is a "
            f"{saved.model.kind}; see its rules with icscm show"
        )
    found = get_table_settings(saved).get("equivalents", [])
    records = []
    for i, rule in enumerate(saved.model.rules, start=1):
        alike = found[i - 1] if i <= len(found) else []
        for j, each in enumerate([rule, *alike]):  # formatted as `ACGT present`
            name, _, state = str(each).rpartition(" ")
            same = f".{j} {state}, covers the same genomes as rule{i}"
            records.append((f"rule{i}{same if j else f' {state}'}", name))
    others = [repr(name) for _, name in records if not _SEQUENCE.fullmatch(name)]
    if others:
        raise IcscmError(
            f"FASTA is for rules on k-mers or unitigs, and {formatting.shorten_list(others)} names "
            "no sequence of nucleotides; see the rule with icscm show"
        )
    if not records:
        raise IcscmError("the model has no rule, and so no sequence")
    return "".join(f">{title}\n{sequence}\n" for title, sequence in records)
