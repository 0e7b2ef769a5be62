"""A saved model as a document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icscm.formatting import as_text, shorten_list
from icscm.model.forest import Forest, describe_size
from icscm.model.saved import SavedModel, get_table_settings, list_used
from icscm.model.splits import CHAINS
from icscm.report.blocks import (
    Code,
    Document,
    Facts,
    Heading,
    Note,
    Paragraph,
    make_table,
    note_more,
)
from icscm.report.content.errors import make_errors
from icscm.report.content.leaves import Leaf, make_leaves
from icscm.report.content.model import ModelSize, find_noun
from icscm.report.formatting import Names, format_prediction_interval, make_names
from icscm.report.wording.facts import Fact
from icscm.report.wording.model_facts import list_model_facts


@dataclass(frozen=True, kw_only=True)
class SavedContent:
    """What is shown of a saved model.

    Parameters
    ----------
    saved, size, names : SavedModel, str, Names
        The model, its size in words, and the names of its classes and environments.
    facts : sequence of Fact
        On its rules and errors.
    leaves, probabilities : sequence of Leaf, sequence of float
        Empty for a forest.
    n_listed : int or None
        Environments that are listed of each leaf; None lists all, and every leaf or tree.
    """

    saved: SavedModel
    size: str
    names: Names
    facts: Sequence[Fact]
    leaves: Sequence[Leaf]
    probabilities: Sequence[float]
    n_listed: int | None

    @property
    def is_chain(self) -> bool:
        """Whether it is a rule set."""
        return self.saved.model.kind in CHAINS


def make_saved_content(saved: SavedModel, *, n_listed: int | None) -> SavedContent:
    """Return what is shown of a saved model, with the errors on its training data."""
    model = saved.model
    names = make_names(saved.environments or ("all",), saved.classes)
    size = describe_size(model)
    facts: list[Fact] = []
    leaves: list[Leaf] = []
    probabilities: list[float] = []
    if not isinstance(model, Forest):
        leaves = make_leaves(model, names)
        probabilities = model.leaf_probabilities().tolist()
        described = ModelSize(
            noun=find_noun(model),
            text=str(model),
            n_rules=len(model.rules),
            threshold=model.threshold,
        )
        errors = make_errors(model, names, saved.settings.get("p", 1.0))
        facts = list_model_facts(described, errors, leaves, name=size)
    return SavedContent(
        saved=saved,
        size=size,
        names=names,
        facts=facts,
        leaves=leaves,
        probabilities=probabilities,
        n_listed=n_listed,
    )


def write_document(content: SavedContent) -> Document:
    """Return a saved model: what it is, how it predicts, and its settings."""
    document: Document = [Facts(list_facts(content))]
    if not content.is_chain:
        document.append(Code(str(content.saved.model)))
    facts = [fact for fact in content.facts if fact.term != "Tree"]
    if facts:
        document.append(Facts(facts))
    if content.n_listed is not None and not content.is_chain:
        document.append(Note(f"--all shows the {name_hidden(content)}"))
    else:
        document += write_trees(content)
        for leaf, probability in zip(content.leaves, content.probabilities, strict=True):
            document += write_leaf(leaf, probability, content)
    return [*document, Heading("Settings"), Facts(list_settings(content.saved.settings))]


def list_facts(content: SavedContent) -> list[Fact]:
    """Return size, target, classes, columns, environments and how it predicts."""
    saved, model = content.saved, content.saved.model
    table = get_table_settings(saved)
    facts = [Fact("Model", content.size)]
    if table.get("target"):
        positive = as_text(" or ".join(table.get("positive", ())))
        where = f", positive where it is {positive}" if positive else ""
        facts.append(Fact("Target", f"{as_text(table['target'])}{where}"))
    negative, positive = map(as_text, saved.classes)
    facts.append(Fact("Classes", f"{positive} (positive) and {negative}"))
    facts.append(Fact("Columns", describe_columns(saved)))
    facts.append(Fact("Environments", describe_environments(saved, table)))
    if model.is_calibrated:
        facts.append(Fact("Calibration", model.describe_calibration()))
    if model.threshold is not None:
        facts.append(Fact("Threshold", f"{positive} from a probability of {model.threshold} on"))
    return [*facts, Fact("Version", f"icscm {as_text(saved.version)}")]


def describe_columns(saved: SavedModel) -> str:
    """Return the columns that are used, and of how many."""
    used = list_used(saved)
    text = f"{len(used)} used ({as_text(shorten_list(used)) or 'none'})"
    return f"{text} of {len(saved.features)}" if len(saved.features) > len(used) else text


def describe_environments(saved: SavedModel, table: Mapping[str, Any]) -> str:
    """Return the number of environments, or that nothing was tested."""
    if saved.environments is None:
        return "none: nothing was tested for invariance"
    by = f", by {as_text(table['environment'])}" if table.get("environment") else ""
    return f"{len(saved.environments):,}{by}"


def name_hidden(content: SavedContent) -> str:
    """Return what is shown only if everything is."""
    if not content.leaves:
        return "trees"
    is_score = content.saved.model.kind == "score"
    return f"{'classes of totals' if is_score else 'leaves'} by environment"


def write_trees(content: SavedContent) -> Document:
    """Return the trees of a forest."""
    model = content.saved.model
    document: Document = []
    for number, tree in enumerate(model.trees if isinstance(model, Forest) else (), start=1):
        document += [Heading(f"Tree {number:,}"), Code(str(tree))]
    return document


def write_leaf(leaf: Leaf, probability: float, content: SavedContent) -> Document:
    """Return the prediction of a leaf, and its largest environments."""
    at_threshold = content.saved.model.at_threshold
    classes = content.names.classes
    lines = [
        f"the probability of {classes[1]} is {probability:.3f}; predicts "
        f"{classes[leaf.is_positive]}{at_threshold}"
    ]
    if leaf.new_interval is not None:
        lines.append(describe_new_interval(leaf))
    elif content.saved.environments is not None:
        lines.append(f"no prediction interval for a new environment: {leaf.new_reason}")
    largest = sorted(leaf.environments, key=lambda rate: -rate.n)[: content.n_listed]
    rows = [
        [
            rate.environment,
            f"{rate.n:,}",
            f"{rate.n_positive:,}",
            "-" if rate.rate is None else f"{rate.rate:.1%}",
        ]
        for rate in largest
    ]
    n_more = len(leaf.environments) - len(largest)
    condition = leaf.name if content.is_chain else leaf.condition
    return [
        Heading(f"Leaf {leaf.number}: {condition}"),
        Paragraph("\n".join(lines)),
        make_table(["environment", ">samples", ">positive", ">rate"], rows, is_tight=True),
        *note_more(n_more, f"and {n_more:,} more; --all shows them", is_tight=True),
    ]


def describe_new_interval(leaf: Leaf) -> str:
    """Return the prediction intervals of a leaf, and the heterogeneity."""
    text = f"95% prediction interval at a new site: {format_prediction_interval(leaf.new_interval)}"
    if leaf.known_interval:
        known = format_prediction_interval(leaf.known_interval)
        text += f"; at a new site with the rate of training: {known}"
    return f"{text}; tau {leaf.tau:.2f}"


def list_settings(settings: Mapping[str, Any]) -> list[Fact]:
    """Return the parameters of the learner."""
    return [
        Fact(as_text(name), format_setting(value))
        for name, value in settings.items()
        if name != "table"
    ]


def format_setting(value: Any) -> str:
    """Return the value of a parameter; that of each column where they differ."""
    if not isinstance(value, Mapping):
        return as_text(value)
    values = [f"{as_text(column)} {write_number(number)}" for column, number in value.items()]
    return ", ".join(values)


def write_number(value: Any) -> str:
    """Return the value of a parameter for one column, a fraction in three digits."""
    return f"{value:.3g}" if isinstance(value, float) else as_text(value)
