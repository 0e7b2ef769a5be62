"""How `icscm fit` learns on each route, and what it measures where rows can be taken.

Rows of a table in memory, and genomes of a packed store, can be taken again for other fits. So
these models are also validated in environments left out, and learned again from subsamples and with
other settings, for the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from icscm.cli import files
from icscm.cli.console import Progress, hide_repeated_warnings
from icscm.cli.genomes import open_genome_file, read_genome_samples
from icscm.cli.grid import Grid
from icscm.cli.learners import MODELS
from icscm.cli.options import Options
from icscm.cli.routes import Route
from icscm.exceptions import IcscmError
from icscm.formatting import count
from icscm.io import roles as io_roles
from icscm.io.locating import describe_path, find_format, translate_errors
from icscm.io.roles import Roles, Samples
from icscm.tables.columns import StoredTable

if TYPE_CHECKING:
    from icscm.estimators.base import BaseRuleClassifier
    from icscm.sources.countable import Countable
    from icscm.validation.tuning import GridSearch

# Rows of a batch in which the values of target and environment are counted.
_TALLY_ROWS = 2**16
# Rows in which a report permutes columns: a forest predicts them about thirty times.
_MAX_PERMUTED = 3_000
# The format that a model file names for packed genomes, whose cells have types.
_TYPED_FORMAT = "parquet"
# What a step of a fit is (see `count_steps`), in a table and in a packed store. There the bits of
# many cells are counted at once, and numbers of two bins are tested sooner than those of many:
# 1,000 x 200,000 cells in five environments take a tree 8 s of one core, and a rule 2 s.
_COSTS_OF_CELLS = {"n_steps_of_number": 4}
_COSTS_OF_BITS = {"n_steps_of_number": 1, "n_cells_of_step": 256}
_NO_ENVIRONMENTS = "the data have no environments"
_NO_ROWS_TAKEN = "it needs a table in memory"


@dataclass(frozen=True)
class Learned:
    """A fitted learner, and what is known of the rows that it learned from."""

    learner: Any
    roles: Roles
    table_format: str
    #: the rows, where they can be taken: in memory, or in a packed store
    samples: Samples | None = None
    #: what --cv chose
    choice: GridSearch | None = None
    #: what the report shows besides the model, as `make_summary` names it
    findings: dict[str, Any] = field(default_factory=dict)
    #: whether the rows were genomes, as bits
    is_packed: bool = False


def learn(
    learner: BaseRuleClassifier,
    route: Route,
    data: Path,
    *,
    options: Options,
    grid: Grid,
    progress: Progress,
) -> Learned:
    """Fit the learner where the rows are."""
    if route == Route.MEMORY:
        with progress.stage(f"Reading {describe_path(data)}"):
            samples = files.read_labelled(data, options)
        table_format = find_format(data, options["member"])
    elif route == Route.PACKED:
        # the store is read until the command ends
        store = click.get_current_context().with_resource(open_genome_file(data, options))
        samples = read_genome_samples(store, options)
        table_format = _TYPED_FORMAT
    else:
        return _learn_outside(learner, route, data, options=options, progress=progress)

    study = _Study(learner, samples=samples, options=options, progress=progress)
    choice = study.choose_parameters(grid) if grid else None
    findings = study.learn_and_measure()
    return Learned(
        learner=learner,
        roles=samples,
        table_format=table_format,
        samples=samples,
        choice=choice,
        findings=findings,
        is_packed=route == Route.PACKED,
    )


# --- rows that are read again for each scan ------------------------------------------


def _learn_outside(
    learner: BaseRuleClassifier, route: Route, data: Path, *, options: Options, progress: Progress
) -> Learned:
    """Fit the learner where no rows can be taken, to leave some out."""
    learn_on_route = _LEARN_BY_ROUTE[route]
    with progress.stage(f"Learning from {data}"), hide_repeated_warnings():
        roles = learn_on_route(learner, data, options)
    unvalidated = "--no-validation" if options["no_validation"] else _NO_ROWS_TAKEN
    return Learned(
        learner=learner,
        roles=replace(roles, label=learner.classes_.tolist()[1]),
        table_format=find_format(data, options["member"]),
        findings={"unvalidated": unvalidated},
    )


def _learn_in_passes(learner: BaseRuleClassifier, data: Path, options: Options) -> Roles:
    """Learn from a file or folder that is read again for each step; return the roles of columns."""
    from icscm.io.streams import ChangedReader, get_misread, open_table

    reader = open_table(data, files.make_text_format(options), member=options["member"])
    roles, columns = _choose_columns(reader.names, data, options)
    if not roles.is_plain:  # what target and environment become depends on all their values
        batches = reader.read(roles.columns, _TALLY_ROWS)
        tallies = (io_roles.tally_roles(batch, roles) for batch in batches)
        roles = io_roles.find_labelling(tallies, roles)
    learner.fit_dataset(
        ChangedReader(reader, roles.apply, roles.needs),
        roles.target,
        environments=roles.environment,
        groups=roles.group,
        columns=columns,
        max_memory=options["max_memory"],
        temp_dir=options["temp_dir"],
    )
    return roles.keep_misread(get_misread(reader), columns)


def _learn_on_dask(learner: BaseRuleClassifier, data: Path, options: Options) -> Roles:
    """Learn from a folder of files on a cluster; return the roles of columns."""
    from icscm.sources.dask.client import open_client
    from icscm.sources.dask.frames import read_folder, take_apart
    from icscm.sources.dask.opening import open_dask

    with open_client(options["dask"], options["workers"]), translate_errors(data):
        frame = read_folder(data, files.make_text_format(options))
        roles, columns = _choose_columns(list(frame.columns), data, options)
        table = take_apart(frame, roles, columns)
        countable = open_dask(
            table.X,
            table.y,
            environments=table.environments,
            groups=table.groups,
            preparation=learner.prepare(),
        )
        learner.fit_counts(countable)
    return table.labelling


_LEARN_BY_ROUTE: dict[Route, Callable[[BaseRuleClassifier, Path, Options], Roles]] = {
    Route.PASSES: _learn_in_passes,
    Route.DASK: _learn_on_dask,
}


def _choose_columns(names: list[str], data: Path, options: Options) -> tuple[Roles, list[str]]:
    """The roles of columns, and the columns to learn from."""
    where = str(data)
    roles = io_roles.make_roles(names, **files.get_roles(options), where=where)
    columns = io_roles.choose_features(
        names, roles, drop=options["drop"], only=options["only"], where=where
    )
    return roles, columns


# --- rows that can be taken ---------------------------------------------------------


class _Study:
    """A learner and the rows that it learns from, once and again.

    The methods that return a dict return what they found under the names of `make_summary`; it is
    empty where a step does not apply.
    """

    def __init__(
        self,
        learner: Any,
        *,
        samples: Samples,
        options: Options,
        progress: Progress,
    ) -> None:
        self.learner = learner
        self.samples = samples
        self.options = options
        self.progress = progress
        self.model = MODELS[options["model"]]
        is_packed = isinstance(samples.X, StoredTable)
        #: what steps of a fit are counted by
        self.costs = _COSTS_OF_BITS if is_packed else _COSTS_OF_CELLS
        self.n_rows = len(samples.y)
        #: what functions that take a table are called with
        self.table: dict[str, Any] = {
            "X": samples.X,
            "y": samples.y,
            "environments": samples.environments,
            "groups": samples.groups,
            "sample_weight": samples.weights,
        }

    def learn_and_measure(self) -> dict[str, Any]:
        """Fit the learner, and measure what the report shows."""
        countable = self.learn()
        findings = self.validate(countable) | self.resample(countable)
        if self.options["report"] is not None:
            findings |= self.permute_columns() | self.learn_with_other_settings(countable)
        return findings

    def choose_parameters(self, grid: Grid) -> GridSearch:
        """Set the parameters that cross-validation finds best."""
        from icscm.validation.tuning import grid_search

        with self.progress.stage(f"Cross-validating {', '.join(grid)}"):
            choice = grid_search(
                self.learner,
                **self.table,
                grid=grid,
                scorer=self.options["cv_scorer"],
                folds=self.options["cv_folds"],
                random_state=self.options["random_state"],
            )
        self.learner.set_params(**choice.best)
        return choice

    def learn(self) -> Countable[Any]:
        """Fit the learner; its bins and counts serve later steps, too."""
        from icscm.estimators.base import find_opener

        open_table = find_opener(self.samples.X)
        with self.progress.stage(f"Learning from {self.n_rows:,} rows"), hide_repeated_warnings():
            countable = open_table(**self.table, preparation=self.learner.prepare())
            self.learner.fit_counts(countable)
        return countable

    def validate(self, countable: Countable[Any]) -> dict[str, Any]:
        """Measure the performance in environments left out, or say why that is not done.

        It takes a fit for each environment. So where that would take long, it is only done if the
        user asks for it by --validation.
        """
        from icscm.search.shape import count_steps
        from icscm.validation.leave_one_out import leave_one_environment_out

        n_environments = len(self.learner.environments_ or ())
        if n_environments < 2:
            return {"unvalidated": _NO_ENVIRONMENTS}
        if self.options["no_validation"]:
            return {"unvalidated": "--no-validation"}

        is_asked_for = self.options["validation"]
        n_steps_of_fit = count_steps(countable, self.n_rows, **self.costs)
        n_steps = n_environments * n_steps_of_fit
        max_steps = self.model.max_validation_steps
        if not is_asked_for and n_steps > max_steps:
            size = f"{n_steps:,} steps, by default at most {max_steps:,}"
            why = f"too many cells and environments ({size}); --validation measures it"
            return {"unvalidated": why}

        text = f"Validating in {n_environments} environments left out (--no-validation omits it)"
        try:
            with self.progress.stage(text), hide_repeated_warnings():
                validation = leave_one_environment_out(self.learner, **self.table)
        except IcscmError as error:
            if is_asked_for:
                raise
            return {"unvalidated": str(error)}
        return {"validation": validation}

    def resample(self, countable: Countable[Any]) -> dict[str, Any]:
        """Learn from random subsamples, to see how often they give the same columns.

        The user may ask for a number of them (--stability), for a table of the report. Else there
        are a few, for one line on how often a rule returned, if that does not take long.
        """
        from icscm.search.shape import count_steps
        from icscm.validation import stability

        if self.samples.weights is not None:  # a subsample counts each row once
            return {}
        n_subsamples = self.options["stability"]
        is_for_one_line = n_subsamples is None
        if is_for_one_line:
            has_rules = self.model.is_rule and bool(self.learner.model_.rules)
            is_small = count_steps(countable, self.n_rows) <= stability.MAX_BRIEF_STEPS
            n_subsamples = stability.N_BRIEF if has_rules and is_small else 0
        if n_subsamples == 0:
            return {}

        text = f"Learning from {count(n_subsamples, 'random subsample')}"
        with self.progress.stage(text), hide_repeated_warnings():
            selection = stability.stability_selection(
                self.learner,
                self.samples.X,
                self.samples.y,
                environments=self.samples.environments,
                groups=self.samples.groups,
                n_resamples=n_subsamples,
                random_state=self.options["random_state"],
            )
        if is_for_one_line:
            n_same = round(selection.columns_frequency * n_subsamples)
            return {"n_returned": (n_same, n_subsamples)}
        return {"stability": selection}

    def permute_columns(self) -> dict[str, Any]:
        """Measure how much a forest needs each column; columns of a store cannot be permuted."""
        is_permutable = self.samples.weights is None and not isinstance(self.samples.X, StoredTable)
        if self.options["model"] != "forest" or not is_permutable:
            return {}
        from icscm.validation.importances import permutation_importance

        with self.progress.stage("Permuting columns"):
            importances = permutation_importance(
                self.learner,
                self.samples.X,
                self.samples.y,
                environments=self.samples.environments,
                n_repeats=3,
                max_rows=_MAX_PERMUTED,
            )
        return {"importances": importances}

    def learn_with_other_settings(self, countable: Countable[Any]) -> dict[str, Any]:
        """Learn at other levels (alpha) of a rule, or at other tolerances of a tree or forest."""
        if self.options["no_path"] or self.model.path is None:
            return {}
        from icscm.validation.path import compute_alpha_path, compute_tolerance_path

        if self.learner.get_params(deep=False)[self.model.path] is None:  # a plain tree
            return {}
        settings = self.learner.make_settings(countable)
        compute_path = compute_alpha_path if self.model.path == "alpha" else compute_tolerance_path
        with self.progress.stage("Learning with other settings"):
            return {"path": compute_path(countable.source, settings)}
