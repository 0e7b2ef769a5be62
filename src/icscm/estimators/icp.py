"""Invariant causal prediction: sets of features given which the label is invariant."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from icscm import exceptions
from icscm._changes import data_by_name
from icscm._types import Array
from icscm.engine.pieces import make_level_counts
from icscm.exceptions import IcscmError, Parameter, warn
from icscm.formatting import count
from icscm.parameters import check_parameters, document_parameters, draw_seed, whole_or_nothing
from icscm.search.sets import InvariantSets, check_affordable, find_best, find_invariant_sets
from icscm.search.tree_sets import SetSettings, find_tree_sets
from icscm.sources.memory import make_memory_source
from icscm.tables.labels import check_labels, check_several, encode_environments, take_environments
from icscm.tables.parsing import check_table


class CausalPrediction(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the selectors that test sets of features."""

    # the parameter for finer thresholds
    _finer: ClassVar[str]

    @data_by_name
    @whole_or_nothing
    def fit(self, X: Any, y: Any, *, environments: Any = None) -> Self:
        """Test the sets of features.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The features: numbers or booleans, none missing.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        environments : array-like of shape (n_samples,)
            One hashable label per row, of at least two distinct ones.

        Returns
        -------
        self
            The fitted selector; if anything fails it stays as it was.

        Raises
        ------
        IcscmError
            If the data or the parameters cannot be used, or there are more sets than can be
            tested; the message says what to do.
        """
        check_parameters(self)
        X, environments = take_environments(X, environments)
        table = check_table(self, X)
        labels, _ = check_labels(y, len(table))
        if environments is None:
            raise IcscmError(
                "environments are missing, so invariance cannot be tested; pass fit(X, y, "
                "environments=...), one label per row (in a pipeline, route them)"
            )
        numbers, self.environments_ = encode_environments(environments, len(table))
        check_several(self.environments_)
        found, names = self._find_sets(table, labels, numbers), self._get_features()
        is_best = self.conclusion == "best"
        chosen = find_best(found.bics) if is_best else found.shared
        self.parents_ = None if chosen is None else tuple(names[j] for j in sorted(chosen))
        self.accepted_sets_, self.bic_ = (
            {tuple(names[j] for j in features): value for features, value in each.items()}
            for each in (found.accepted, found.bics if is_best else {})
        )
        self.p_values_, self.n_sets_tested_ = found.p_values, found.n_tested
        if found.n_beyond:
            what = f"Sets with any of {count(found.n_beyond, 'weaker feature')} beyond "
            untested = what, Parameter("max_features"), " were not tested."
            warn(untested, exceptions.UntestedSetsWarning)
        if self.parents_ is None:
            warn(
                f"All {found.n_tested} sets of features were rejected at alpha={self.alpha}: "
                "given any set, the label still depends on the environment. parents_ is None, "
                "which is not the empty set. Possible reasons are a cause that is hidden, binned "
                "too coarsely or excluded by max_set_size, and an environment that acts on the "
                "label directly. Try a smaller alpha, more features (screened if they are many), "
                f"a larger {self._finer}, or other and more environments.",
                exceptions.NothingAcceptedWarning,
            )
        return self

    def _get_features(self) -> list[str | int]:
        """Names where X had names, positions otherwise."""
        names = getattr(self, "feature_names_in_", None)
        return list(range(self.n_features_in_)) if names is None else names.tolist()

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "parents_")
        parents = self.parents_ or ()
        return np.array([feature in parents for feature in self._get_features()], dtype=np.bool_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # no classifier, but its y is that of one with two classes
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


@document_parameters
@dataclass(eq=False, repr=False)
class InvariantCausalPrediction(CausalPrediction):
    """Invariant causal prediction: features in every set given which the label is invariant.

    For each set S of features the label is tested against the environment within every
    combination of values of S. S is accepted when the p-value exceeds `alpha`, and the features
    that all accepted sets share are selected. If the causes of the label are among the
    features, and the environment acts on the label through them only, their set is accepted
    with probability 1 - alpha, and then every selected feature is one of them. A feature that
    is not selected may still be a cause that these environments cannot identify.

    The number of sets doubles with each feature. At most 20 features can be tested in full;
    with more, screen them first or bound the size of the sets with `max_set_size`.

    {parameters}

    Attributes
    ----------
    parents_ : tuple or None
        The selected features: names, or positions where X had no names. `()` when the accepted
        sets share nothing, or the best of them is empty; None when every set was rejected. Only
        those of `conclusion="intersection"` carry the guarantee.
    accepted_sets_ : dict
        p-value of each accepted set, by size and then in the order of features.
    bic_ : dict
        BIC of each accepted set for `conclusion="best"`, else empty.
    p_values_ : array of shape (n_features,)
        For each feature the largest p-value of the sets without it: a feature is in all accepted
        sets when that is not above alpha (and something was accepted).
    n_sets_tested_ : int
        Number of sets tested.
    environments_ : tuple
        The environments' labels.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Their names, where X had names.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.estimators.icp import InvariantCausalPrediction
    >>> data = make_conjunction(n_distractors=1, random_state=1)
    >>> icp = InvariantCausalPrediction().fit(data.X, data.y, environments=data.environments)
    >>> icp.parents_
    ('A1', 'A2')
    >>> for features in icp.accepted_sets_:
    ...     print(*features)
    A1 A2
    A1 A2 B1
    """

    _finer: ClassVar[str] = "max_levels"

    alpha: float = 0.05
    test: str = "g"
    max_set_size: int | None = None
    dof: str = "adjusted"
    max_levels: int = 4
    conclusion: str = "intersection"

    def _find_sets(self, table: Array, labels: Array, environments: Array) -> InvariantSets:
        """Test the sets."""
        own = table, labels, environments, len(self.environments_)
        counts = make_level_counts(*own, self.max_levels)
        size = min(self.max_set_size or counts.n_features, counts.n_features)
        check_affordable(counts, size, self.max_set_size)
        options: dict[str, Any] = {"alpha": self.alpha, "scored": self.conclusion == "best"}
        return find_invariant_sets(counts, size, test=self.test, dof=self.dof, **options)


@document_parameters
@dataclass(eq=False, repr=False)
class TreeCausalPrediction(CausalPrediction):
    """Invariant causal prediction with a tree for each set of features.

    `InvariantCausalPrediction` tests within every combination of the values of a set, of which
    there are soon more than samples. Here a tree over the features of a set is grown on one half of
    the rows of every environment, and the label is tested against the environment in its leaves on
    the other half; then the halves are exchanged. A set is accepted if twice the smaller p-value
    exceeds `alpha`; the features that all accepted sets share are selected.

    The guarantee is that of `InvariantCausalPrediction`, with level `alpha`, if

    - the causes are at most `max_set_size`, and among the features that were screened. A cause
      without marginal association (as in an exclusive or) is not;
    - the tree over the causes captures their whole effect: the label's rate is constant within each
      leaf. A true threshold lies between two of the `max_thresholds` that are tried, so samples in
      the bins on either side of a cut are not tested; a feature of at most 16 distinct values has
      no such bins.

    {parameters}

    Attributes
    ----------
    parents_, accepted_sets_, bic_, p_values_, n_sets_tested_, environments_, n_features_in_
        As in `InvariantCausalPrediction`. Of identical features the intersection holds
        none, the best set the first.
    feature_names_in_ : array of str
        Names of the columns, where X had names.

    Examples
    --------
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.estimators.icp import TreeCausalPrediction
    >>> data = make_conjunction(2000, n_distractors=20, random_state=0)
    >>> selector = TreeCausalPrediction(random_state=0)
    >>> selector.fit(data.X, data.y, environments=data.environments).parents_
    ('A1', 'A2')
    """

    _finer: ClassVar[str] = "max_thresholds"

    alpha: float = 0.05
    max_set_size: int | None = None
    max_features: int = 8
    max_leaves: int = 32
    min_samples_leaf: float = 0.01
    max_thresholds: int | None = 50
    random_state: Any = None
    conclusion: str = "intersection"

    def _find_sets(self, table: Array, labels: Array, environments: Array) -> InvariantSets:
        options: dict[str, Any] = {"max_thresholds": self.max_thresholds, "n_jobs": 1}
        options["environment_labels"] = self.environments_
        source = make_memory_source(table, labels, environments, **options)
        sizes = self.max_features, self.max_set_size or self.max_features, self.max_leaves
        seed = draw_seed(self.random_state)
        settings = SetSettings(float(self.alpha), *sizes, float(self.min_samples_leaf), seed)
        return find_tree_sets(source, table.shape[1], settings)
