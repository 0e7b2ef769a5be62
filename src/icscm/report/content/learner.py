"""Everything that a report on a fitted learner shows, in one record."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icscm.exceptions import IcscmError, Words
from icscm.formatting import make_plain
from icscm.model.forest import Forest, Model
from icscm.model.saved import Learner, check_fitted
from icscm.model.splits import LeafCounts
from icscm.report.content.errors import Errors, make_errors, make_out_of_bag_errors
from icscm.report.content.leaves import (
    Leaf,
    NewEnvironment,
    find_requirement,
    make_model_leaves,
    make_new_environment,
)
from icscm.report.content.model import ModelContent, make_model
from icscm.report.content.nodes import Nodes, make_nodes
from icscm.report.content.paths import PathContent, make_path
from icscm.report.content.stability import Stability, StabilityRecord
from icscm.report.content.task import DroppedColumns, Task, make_task
from icscm.report.content.validation import ValidationRecord
from icscm.report.formatting import Names, make_names
from icscm.report.importances import PermutationImportance
from icscm.search.trace import Trace
from icscm.stats.new_environments import CONFIDENCE, make_expectations

if TYPE_CHECKING:
    from icscm.report.path import Path

UNVALIDATED = "icscm.leave_one_environment_out measures it"


@dataclass(frozen=True, kw_only=True)
class NewEnvironments:
    """Prediction intervals for a new environment.

    Parameters
    ----------
    confidence, n_environments : float, int
        The level, and the environments over which heterogeneity was estimated.
    overall : NewEnvironment
        Of all rows together.
    leaves, n_leaves : list of int, int
        The numbers of the leaves that have an interval, and of how many.
    rate : float
        The rate of all rows in training.
    """

    confidence: float
    n_environments: int
    overall: NewEnvironment
    leaves: list[int]
    n_leaves: int
    rate: float


@dataclass(frozen=True, kw_only=True)
class LearnerContent:
    """What a report on a fitted learner shows.

    Parameters
    ----------
    names : Names
        Of the label, its classes and the environments.
    task, model, nodes, leaves, errors, new_environments : records
        Data and settings, the result, and how it was found.
    validation, unvalidated : ValidationRecord or None, str
        Performance in environments left out, or why it is not known.
    path, stability : PathContent or None, Stability or None
        Results of learning again.
    n_returned : pair of int or None
        In how many of so many subsamples a model of the same columns was found.
    settings : mapping
        The parameters of the learner.
    tests_invariance : bool
        Whether the learner can test for invariance at all.
    learned, trace : Model, Trace
        The model itself, and the record of the search.
    words : function
        Names a parameter in suggestions, as in Python or as an option of the command line.
    commands : mapping
        Commands that learn a "tree" or a "score", or make a "screen", of the same data.
    """

    names: Names
    task: Task
    model: ModelContent
    nodes: Nodes
    leaves: list[Leaf]
    errors: Errors
    new_environments: NewEnvironments
    validation: ValidationRecord | None
    unvalidated: str
    path: PathContent | None
    stability: Stability | None
    n_returned: tuple[int, int] | None
    settings: Mapping[str, Any]
    tests_invariance: bool
    learned: Model
    trace: Trace
    words: Words = str
    commands: Mapping[str, str] = field(default_factory=dict)


def make_learner_content(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    class_names: tuple[str, str] | None = None,
    dropped: DroppedColumns | None = None,
    path: "Path | None" = None,
    stability: StabilityRecord | None = None,
    n_returned: tuple[int, int] | None = None,
    validation: ValidationRecord | None = None,
    unvalidated: str = UNVALIDATED,
    importances: PermutationImportance | None = None,
    words: Words = str,
    commands: Mapping[str, str] | None = None,
) -> LearnerContent:
    """Return what a report on a fitted learner shows; see `icscm.report.summary.make_summary`."""
    check_fitted(learner)
    if stability is not None:
        check_stability(learner, stability)

    trace = learner.trace_
    settings = learner.get_params(deep=False)
    names = make_names(trace.environments, class_names or trace.classes, target, environment)
    requirement = find_requirement(learner, names)
    nodes = make_nodes(learner, names)
    leaves = make_model_leaves(learner, names, requirement)
    if learner.model_.kind == "tree":
        leaves = add_ends(leaves, nodes)
    return LearnerContent(
        names=names,
        task=make_task(learner, names, data_name, dropped, requirement),
        model=make_model(learner, names, nodes, importances),
        nodes=nodes,
        leaves=leaves,
        errors=make_learner_errors(learner, names, settings),
        new_environments=make_new_environments(leaves, learner.class_counts_),
        validation=validation,
        unvalidated=unvalidated,
        path=None if path is None else make_path(path, names),
        stability=None if stability is None else stability.make_content(),
        n_returned=n_returned,
        settings=settings,
        tests_invariance=learner.tests_invariance,
        learned=learner.model_,
        trace=trace,
        words=words,
        commands=commands or {},
    )


def add_ends(leaves: list[Leaf], nodes: Nodes) -> list[Leaf]:
    """Return the leaves of a tree with the reasons why they were not split.

    The scans of leaves follow those that made a split. There may be fewer of them than leaves.
    """
    leaf_scans = nodes.scans[len(nodes.splits) :]
    ends = [scan.end for scan in leaf_scans][: len(leaves)]
    ends += [None] * (len(leaves) - len(ends))
    return [replace(leaf, end=end) for leaf, end in zip(leaves, ends, strict=True)]


def make_learner_errors(learner: Learner, names: Names, settings: Mapping[str, Any]) -> Errors:
    """Return the errors in training; of a forest, which fits its rows closely, those out of bag."""
    if isinstance(learner.model_, Forest):
        return make_out_of_bag_errors(learner, names)
    cost_ratio = make_plain(settings.get("p", 1.0))
    return make_errors(learner.model_, names, cost_ratio)


def make_new_environments(leaves: list[Leaf], totals: LeafCounts) -> NewEnvironments:
    """Return the interval of all rows, and which leaves have one."""
    (overall,) = make_expectations([np.array(totals, dtype=np.int64)])
    n_rows = sum(map(sum, totals))
    return NewEnvironments(
        confidence=CONFIDENCE,
        n_environments=overall.n_environments,
        overall=make_new_environment(overall),
        leaves=[leaf.number for leaf in leaves if leaf.new_interval is not None],
        n_leaves=len(leaves),
        rate=sum(totals[1]) / max(n_rows, 1),
    )


def check_stability(learner: Learner, stability: StabilityRecord) -> None:
    """Raise if the subsamples were learned with settings that give another model than fit."""
    if stability.model != replace(learner.model_, threshold=None):
        raise IcscmError(
            "stability was computed with settings or data that give a different model than fit; "
            "call stability_selection with the settings and data of fit"
        )
