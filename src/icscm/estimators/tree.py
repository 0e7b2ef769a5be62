"""Trees whose splits, or leaves, mean the same in every environment."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from icscm.estimators.counted import CountedClassifier
from icscm.estimators.reporting import ReportedTreeMixin
from icscm.exceptions import (
    FewEnvironmentsWarning,
    NoEnvironmentsWarning,
    NothingFoundWarning,
    NotInvariantWarning,
    warn,
)
from icscm.model.tree import Tree
from icscm.parameters import SHARE_OR_NUMBER, TOLERANCE, Allowed, one_of, whole_number
from icscm.search.grow import TOLERANCES, TreeSettings
from icscm.search.trace import Trace
from icscm.search.trees import find_tree
from icscm.sources.countable import Countable
from icscm.stats.verdicts import Verdicts
from icscm.tables.labels import warn_of_sparse

if TYPE_CHECKING:
    import pandas


class GrownClassifier(CountedClassifier):
    """What learners of trees share; see `InvariantTreeClassifier`."""

    tests_invariance: ClassVar[bool] = True

    _allowed: ClassVar[dict[str, Allowed]] = {
        **CountedClassifier._allowed,
        "invariance": one_of("effect", "rate"),
        "tolerance": TOLERANCE,
        "max_leaves": whole_number(1),
        "min_samples_leaf": SHARE_OR_NUMBER,
        "probabilities": one_of("pooled", "balanced"),
    }

    invariance: str
    tolerance: float | str | None
    max_leaves: int
    min_samples_leaf: float
    probabilities: str

    #: what `tolerance` came to; None for a plain tree
    tolerance_: float | None
    trace_: Trace

    def make_settings(self, countable: Countable[Any]) -> TreeSettings:
        """What the search is told besides the counts.

        Parameters
        ----------
        countable : Countable
            The samples to be learned from.

        Returns
        -------
        TreeSettings
            This learner's parameters, made ready for `icscm.search.trees.find_tree`.

        Raises
        ------
        IcscmError
            If a parameter has a value that is not allowed.
        """
        self.prepare()
        n_samples = int(countable.source.count_totals().sum())
        least = self.min_samples_leaf
        return TreeSettings(
            invariance=self.invariance,
            tolerance=self._choose_tolerance(countable),
            max_leaves=self.max_leaves,
            n_least=max(1, ceil(least * n_samples) if least < 1 else int(least)),
            missing=self.missing,
            balanced=self.probabilities == "balanced",
        )

    def _choose_tolerance(self, countable: Countable[Any]) -> float | None:
        """The tolerance as given, or that of all data; None where there is nothing to compare."""
        if self.tolerance is None or len(countable.source.environments) < 2:
            return None
        return TOLERANCES[self.invariance] if self.tolerance == "auto" else float(self.tolerance)

    def _warn_of_findings(self) -> None:
        beyond = self.trace_.describe_excess()
        if beyond is not None:
            warn(beyond, NotInvariantWarning)

    def _look_at_environments(self, countable: Countable[Any]) -> None:
        """Warn of environments that nothing, or little, can be made of."""
        source = countable.source
        if not countable.has_environments:
            warn(
                "No environments were given, so nothing can be compared: this is a plain tree. "
                "Pass fit(X, y, environments=...).",
                NoEnvironmentsWarning,
            )
            return
        warn_of_sparse(source.count_totals(), source.environments, source.classes)
        if len(source.environments) == 2:
            warn(
                "With two environments a difference can be seen, but not how effects vary: what "
                "both have in common may be a habit of these two. Three or more tell more.",
                FewEnvironmentsWarning,
            )


class InvariantTreeClassifier(ReportedTreeMixin, GrownClassifier):
    """A tree that predicts by what holds in every environment.

    Grown on counts, best first. Of every split two numbers are known: what it tells of the label,
    and how much of that differs between environments. `invariance` says which difference counts:

    - `"effect"`, for prediction elsewhere: every environment may have its own rate of the label,
      but what a split does to the odds must be the same. A shortcut that works better in some
      places than in others is refused, on this branch for good. A child of the label whose
      relation to it is the same everywhere passes.
    - `"rate"`, for parents: the label's rate in each leaf must be the same in all environments,
      as in the paper. Features that make the leaves depend on the environment are left out.

    Neither proves a cause; both show what these environments could show.

    Parameters
    ----------
    invariance : {"effect", "rate"}, default="effect"
        What must be the same in all environments.
    tolerance : float, "auto" or None, default="auto"
        For effects, the greatest square of the coefficient of variation of a split's log odds
        ratio over environments: 0.03 is a variation by 17 %. For rates, the greatest share of the
        tree's information that may be owed to differences between environments. `"auto"` is 0.03
        for effects and 0.005 for rates, the same for all data. None grows a plain tree.
    max_leaves : int, default=16
        Number of leaves at which growth stops.
    min_samples_leaf : float or int, default=0.01
        The least samples of a leaf: a share of all, or a number from 1 on.
    max_thresholds : int or None, default=50
        Thresholds tried per feature, as in `SCMClassifier`.
    probabilities : {"pooled", "balanced"}, default="pooled"
        Whether a leaf's probability is that of its samples, or the mean over its environments,
        each counting alike.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    missing : {"candidate", "separate", "error"}, default="candidate"
        As in `SCMClassifier`; samples with a missing value go where the rule is true, or false.
    keep_columns : "all", str or sequence of str, optional
        As in `SCMClassifier`.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        As in `SCMClassifier`.

    Attributes
    ----------
    model_ : Tree
        The fitted tree; it prints with the label's rate in every node.
    trace_ : Trace
        For each node the split that was made, the best that were refused, and why.
    tolerance_ : float or None
        What `tolerance` came to.
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
    left_out_ : dict
        Why columns were left out, by name.

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

    model_: Tree
    trace_: Trace

    def __init__(
        self,
        invariance: str = "effect",
        tolerance: float | str | None = "auto",
        max_leaves: int = 16,
        min_samples_leaf: float = 0.01,
        max_thresholds: int | None = 50,
        probabilities: str = "pooled",
        n_jobs: int | None = None,
        missing: str = "candidate",
        keep_columns: Any = None,
        device: str = "cpu",
    ) -> None:
        self.invariance = invariance
        self.tolerance = tolerance
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.max_thresholds = max_thresholds
        self.probabilities = probabilities
        self.n_jobs = n_jobs
        self.missing = missing
        self.keep_columns = keep_columns
        self.device = device

    def _learn(self, countable: Countable[Any]) -> None:
        settings = self.make_settings(countable)
        self._look_at_environments(countable)
        self.tolerance_ = settings.tolerance
        self.model_, self.trace_ = find_tree(countable.source, settings)

    def _warn_of_findings(self) -> None:
        if not self.model_.splits:
            warn(
                f"No split was made: the model is: {self.model_}. See trace_ for what was tried "
                "and refused.",
                NothingFoundWarning,
            )
        super()._warn_of_findings()

    @property
    def verdicts_(self) -> Verdicts:
        """For each leaf whether the label's rate is the same in all environments.

        Rates may differ in a tree of invariant effects: every environment has its own.
        """
        check_is_fitted(self, "model_")
        return Verdicts(self.trace_.verdicts if self.environments_ else ())

    @property
    def feature_importances_(self) -> pandas.DataFrame:
        """Deviance that each feature explains, and heterogeneity of the rates that it adds.

        A row for each feature, `deviance_explained` and `rate_heterogeneity` summed over the splits
        of the feature; a heterogeneity below 0 was explained by it.
        """
        check_is_fitted(self, "model_")
        return make_importances(self, self.trace_.list_importances())


def make_importances(learner: Any, found: dict[str | int, tuple[float, float]]) -> pandas.DataFrame:
    """A row for each feature, zeros for those that are not used."""
    import pandas

    names = getattr(learner, "feature_names_in_", None)
    index = range(learner.n_features_in_) if names is None else names
    frame = pandas.DataFrame(0.0, index=index, columns=["deviance_explained", "rate_heterogeneity"])
    for feature, values in found.items():
        frame.loc[feature] = values
    return frame
