"""Trees whose splits, or leaves, are homogeneous across environments; the base of forests.

The *heterogeneity* of a column or tree is compared with the *tolerance*: columns above it are
rejected before the tree is grown. Without environments there is no tolerance, and a plain tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar

from icscm import exceptions
from icscm._changes import reject_removed_options
from icscm.estimators.base import BaseRuleClassifier, warn_of_environments
from icscm.exceptions import NothingFoundWarning, warn
from icscm.model.tree import Tree
from icscm.parameters import document_parameters
from icscm.search.design_effects import measure_chance_effect
from icscm.search.grow import TOLERANCES, TreeSettings
from icscm.search.trace import Trace
from icscm.search.trees import find_tree
from icscm.sources.countable import Countable
from icscm.stats.verdicts import Verdicts
from icscm.tables.environments import check_several, warn_of_two


class BaseTreeClassifier(BaseRuleClassifier):
    """Base of the learners of trees and forests."""

    tests_invariance: ClassVar[bool] = True

    #: the tolerance used; None for a plain tree
    tolerance_: float | None
    trace_: Trace

    def _make_settings(self, countable: Countable[Any]) -> TreeSettings:
        tolerance = self._find_tolerance(countable)
        if tolerance is not None:
            check_several(countable.source.environments)

        n_rows = int(countable.source.count_rows().sum())
        return TreeSettings(
            invariance=self.invariance,
            tolerance=tolerance,
            max_leaves=self.max_leaves,
            min_leaf_rows=max(1, ceil(self.min_samples_leaf * n_rows)),
            balanced=self.probabilities == "balanced",
            min_replication=float(self.min_replication),
            design=measure_chance_effect(countable.source),
        )

    def _find_tolerance(self, countable: Countable[Any]) -> float | None:
        """Return the tolerance; None if nothing is compared."""
        if self.tolerance is None or not countable.has_environments:
            return None
        if isinstance(self.tolerance, str):  # "auto"
            return TOLERANCES[self.invariance]
        return float(self.tolerance)

    def _warn_of_environments(self, countable: Countable[Any]) -> None:
        """Warn of environments that are missing, sparse or few."""
        warn_of_environments(countable, "nothing can be compared: this is a plain tree")
        if countable.has_environments:
            warn_of_two(countable.source.environments)

    def _warn_of_findings(self) -> None:
        """Warn where one environment has nearly all information on the effects that are used."""
        if not self.min_replication:
            return
        lone_environment = self.trace_.describe_lone()
        if lone_environment is not None:
            warn(lone_environment, exceptions.FewEnvironmentsWarning)


@document_parameters
@reject_removed_options
@dataclass(eq=False, repr=False, kw_only=True)
class InvariantTreeClassifier(BaseTreeClassifier):
    """A tree of columns whose effects are homogeneous across environments.

    Grown on counts, best first. `invariance` is what must be homogeneous:

    - `"effect"`, for prediction at a new site: every environment may have its own rate of the
      label, but the effect of a column, given all others, must be the same. Columns are screened
      before the tree is grown, by a tree of more leaves: the worst is rejected if its effect
      differs by more than the tolerance, and the others are tested again without it. A column that
      is strong and points the same way everywhere is kept though its strength differs, and one that
      may be reversed in a new environment is rejected though it explains little. Causes that
      interact are kept. A child of the label whose association with it is the same everywhere
      passes.
    - `"rate"`, for parents: the label's rate in each leaf must be the same in all environments,
      as in the paper. Features that make the leaves depend on the environment are not used.

    Neither proves a cause; both show which columns are invariant across these environments.

    {parameters}

    Attributes
    ----------
    model_ : Tree
        The fitted tree; it prints with the label's rate in every node.
    trace_ : Trace
        For each node the split that was made, the best that were rejected, and why; the columns
        that were rejected: `trace_.to_frame("columns")`.
    tolerance_ : float or None
        The tolerance used; None for a plain tree.
    classes_ : array of shape (2,)
        The two labels; the second is the positive one.
    environments_ : tuple or None
        The environments' labels, in the order of all counts; None if none were given.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Their names, where X had names.
    feature_types_ : tuple of str
        Of each column, `"number"`, `"category"` or `"left_out"`.
    levels_ : dict of tuples
        The levels of each category, by column; not for a packed store.
    dropped_columns_ : dict
        Why columns were dropped, by name.

    Examples
    --------
    >>> import numpy as np
    >>> from icscm import InvariantTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> clinic = rng.integers(0, 3, 3000)
    >>> age, code = rng.integers(20, 90, 3000), rng.integers(0, 2, 3000)
    >>> ill = rng.random(3000) < np.where(age > 60, 0.7, 0.2)
    >>> code = np.where(rng.random(3000) < np.array([0.9, 0.5, 0.1])[clinic], ill, code)
    >>> tree = InvariantTreeClassifier(max_leaves=2).fit(np.c_[age, code], ill, environments=clinic)
    >>> tree.features_used_
    [0]
    """

    model_: Tree = field(init=False)

    invariance: str = "effect"
    tolerance: float | str | None = "auto"
    max_leaves: int = 16
    min_samples_leaf: float = 0.01
    max_thresholds: int | None = 50
    probabilities: str = "pooled"
    n_jobs: int | None = None
    device: str = "cpu"
    min_replication: float = 0.15

    def _learn(self, countable: Countable[Any]) -> None:
        settings = self._make_settings(countable)
        self._warn_of_environments(countable)
        self.tolerance_ = settings.tolerance
        self.model_, self.trace_ = find_tree(countable.source, settings)

    def _warn_of_findings(self) -> None:
        super()._warn_of_findings()
        if not self.model_.splits:
            warn(
                f"No split was made: the model is: {self.model_}. See trace_ for what was tried "
                "and rejected.",
                NothingFoundWarning,
            )
        excess = self.trace_.describe_excess()
        if excess is not None:
            warn(excess, exceptions.NotInvariantWarning)

    @property
    def verdicts_(self) -> Verdicts:
        """For each leaf whether the label's rate is the same in all environments.

        Rates may differ in a tree of invariant effects: every environment has its own.
        """
        return Verdicts(self.trace_.verdicts if self.environments_ else ())
