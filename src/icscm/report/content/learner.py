"""Everything that a report on a fitted learner shows, in one record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icscm.exceptions import IcscmError
from icscm.formatting import make_plain
from icscm.model.forest import Forest
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
from icscm.report.content.task import DroppedColumns, Task, make_task
from icscm.report.content.validation import ValidationRecord
from icscm.report.formatting import Names, make_names
from icscm.report.importances import PermutationImportance
from icscm.stats.new_environments import CONFIDENCE, make_expectations


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
    path, stability : PathContent or None, StabilitySelection or None
        Results of learning again.
    n_returned : pair of int or None
        In how many of so many subsamples a model of the same columns was found.
    settings : mapping
        The parameters of the learner.
    tests_invariance : bool
        Whether the learner can test for invariance at all.
    trace : Trace
        The record of the search.
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
    stability: Any
    n_returned: tuple[int, int] | None
    settings: Mapping[str, Any]
    tests_invariance: bool
    learned: Any
    trace: Any


def make_learner_content(
    learner: Learner,
    *,
    data_name: str | None = None,
    target: str | None = None,
    environment: str | None = None,
    dropped: DroppedColumns | None = None,
    path: Any = None,
    stability: Any = None,
    n_returned: tuple[int, int] | None = None,
    validation: ValidationRecord | None = None,
    unvalidated: str,
    importances: PermutationImportance | None = None,
    class_names: tuple[str, str] | None = None,
) -> LearnerContent:
    """Return what a report on a fitted learner shows; see `icscm.report.summary.make_summary`."""
    check_fitted(learner)
    trace, settings = learner.trace_, learner.get_params(deep=False)
    names = make_names(trace.environments, class_names or trace.classes, target, environment)
    requirement = find_requirement(learner, names)
    nodes = make_nodes(learner, names)
    leaves = make_model_leaves(learner, names, requirement)
    if learner.model_.kind == "tree":
        leaf_scans = nodes.scans[len(nodes.splits) :]
        ends = [scan.end for scan in leaf_scans][: len(leaves)]
        ends += [None] * (len(leaves) - len(ends))
        leaves = [replace(leaf, end=end) for leaf, end in zip(leaves, ends, strict=True)]
    if isinstance(learner.model_, Forest):
        errors = make_out_of_bag_errors(learner, names)
    else:
        errors = make_errors(learner.model_, names, make_plain(settings.get("p", 1.0)))
    if stability is not None:
        check_stability(learner, stability)
    return LearnerContent(
        names=names,
        task=make_task(learner, names, data_name, dropped, requirement),
        model=make_model(learner, names, nodes, importances),
        nodes=nodes,
        leaves=leaves,
        errors=errors,
        new_environments=make_new_environments(leaves, learner.class_counts_),
        validation=validation,
        unvalidated=unvalidated,
        path=None if path is None else make_path(path, names),
        stability=stability,
        n_returned=n_returned,
        settings=settings,
        tests_invariance=learner.tests_invariance,
        learned=learner.model_,
        trace=trace,
    )


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


def check_stability(learner: Learner, stability: Any) -> None:
    """Raise if the subsamples were learned with settings that give another model than fit."""
    if stability.model != replace(learner.model_, threshold=None):
        raise IcscmError(
            "stability was computed with settings or data that give a different model than fit; "
            "call stability_selection with the settings and data of fit"
        )
