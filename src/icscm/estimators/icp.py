"""Invariant causal prediction: sets of columns given which the outcome is invariant.

`fit` makes the candidate sets, of tables or of trees; `icscm.search.sets` tests them and finds what
the accepted ones share; `_keep` gives that the names of the columns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from icscm import exceptions
from icscm._changes import data_by_name
from icscm._types import Array
from icscm.engine.levels import make_level_counts
from icscm.estimators.fitted import find_feature_names
from icscm.exceptions import IcscmError, Parameter, warn
from icscm.formatting import count, format_name
from icscm.parameters import check_parameters, document_parameters, draw_seed, whole_or_nothing
from icscm.search import table_sets, tree_sets
from icscm.search.comparable import ComparableColumns, describe_determining
from icscm.search.sets import (
    CandidateSet,
    InvariantSets,
    SetTester,
    find_best,
    find_invariant_sets,
)
from icscm.search.table_sets import TableTester, make_table_clusters
from icscm.search.tree_sets import TreeTester, TreeTestSettings, screen_columns
from icscm.sources.memory import make_memory_source
from icscm.tables.environments import check_several, encode_environments, take_environments
from icscm.tables.labels import check_labels
from icscm.tables.parsing import check_table


@dataclass(frozen=True)
class _Candidates:
    """The sets to test: how, up to which size, and what is known of the columns in them.

    Attributes
    ----------
    tester : SetTester
        It computes the p-value of a set.
    max_size : int
        The largest number of columns in a set.
    copied : set of int
        Columns that stand for several identical ones.
    n_beyond : int
        How many columns are in no set because their number is limited.

    Columns are numbered among those that can be compared, without those that determine the
    environment.
    """

    tester: SetTester
    max_size: int
    copied: set[int] = field(default_factory=set)
    n_beyond: int = 0


@document_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class InvariantCausalPrediction(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Invariant causal prediction: columns in every set given which the outcome is invariant.

    For each set S of columns the outcome is tested against the environment given S. S is accepted
    when the p-value exceeds `alpha`, and the columns that all accepted sets share are selected. If
    the causes of the outcome are among the columns, and the environment acts on the outcome through
    them only, their set is accepted with probability 1 - alpha, and then every selected column is
    one of them. A column that is not selected may still be a cause that these environments cannot
    identify.

    With `model="table"` the test is made within every combination of the values of S. That is for
    discrete columns; the number of sets doubles with each, and at most 20 can be tested in full.

    With `model="tree"` a tree over the columns of S is grown on one half of the rows of every
    environment, and the outcome is tested against the environment in its leaves on the other half;
    then the halves are exchanged, and the p-value is twice the smaller one. That is also for
    numeric columns, and for any number of them: sets are made of the columns that explain most. The
    guarantee then also needs that

    - the causes are at most `max_set_size`, and among the `max_features` columns that were
      screened. A cause without marginal association (as in an exclusive or) is not;
    - the tree over the causes captures their whole effect: the outcome's rate is constant within
      each leaf. A true threshold lies between two of the `max_thresholds` that are tried, so rows
      in the bins on either side of a cut are not tested; a column of at most 16 distinct values
      has no such bins.

    {parameters}

    Attributes
    ----------
    parents_ : tuple or None
        The selected columns: names, or positions where X had no names. `()` when the accepted
        sets share nothing, or the best of them is empty; None when every set was rejected. Only
        those of `conclusion="intersection"` carry the guarantee. Of identical columns a tree's
        intersection holds none, the best set the first.
    accepted_sets_ : dict
        p-value of each accepted set, by size and then in the order of columns.
    bic_ : dict
        BIC of each accepted set for `conclusion="best"`, else empty.
    p_values_ : array of shape (n_features,)
        For each column the largest p-value of the sets without it: a column is in all accepted
        sets when that is not above alpha (and something was accepted).
    rejected_ : list
        Columns in no set since they determine the environment: given one, nothing can be tested.
    n_sets_tested_ : int
        Number of sets tested.
    environments_ : tuple
        The environments' labels.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Their names, where X had names.

    References
    ----------
    Peters, Bühlmann and Meinshausen (2016), Causal inference by using invariant prediction.
    Heinze-Deml, Peters and Meinshausen (2018), Invariant causal prediction for nonlinear models.

    Examples
    --------
    >>> from icscm import InvariantCausalPrediction
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(n_distractors=1, random_state=1)
    >>> icp = InvariantCausalPrediction().fit(data.X, data.y, environments=data.environments)
    >>> icp.parents_
    ('A1', 'A2')
    >>> for columns in icp.accepted_sets_:
    ...     print(*columns)
    A1 A2
    A1 A2 B1

    Of many columns by trees:

    >>> data = make_conjunction(2000, n_distractors=20, random_state=0)
    >>> icp = InvariantCausalPrediction(model="tree", random_state=0)
    >>> icp.fit(data.X, data.y, environments=data.environments).parents_
    ('A1', 'A2')
    """

    model: str = "table"
    alpha: float = 0.05
    max_set_size: int | None = None
    conclusion: str = "intersection"
    test: str = "g"
    dof: str = "adjusted"
    max_levels: int = 4
    max_features: int = 8
    max_leaves: int = 32
    min_samples_leaf: float = 0.01
    max_thresholds: int | None = 50
    random_state: Any = None

    @data_by_name
    @whole_or_nothing
    def fit(self, X: Any, y: Any, *, environments: Any = None, groups: Any = None) -> Self:
        """Test the sets of columns.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The columns: numbers or booleans, none missing.
        y : array-like of shape (n_samples,)
            Outcomes of two classes.
        environments : array-like of shape (n_samples,)
            One hashable label per row, of at least two distinct ones.
        groups : array-like of shape (n_samples,), str or list of str, optional
            Rows that belong together, such as the visits of a patient: the statistic of a set is
            divided by its design effect. With `model="table"` only.

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
        X, environments = take_environments(X, environments)  # they may be a column of X
        X, groups = take_environments(X, groups, "groups")
        if groups is not None and self.model != "table":
            raise IcscmError(
                "groups cannot be used with ",
                Parameter("model", self.model),
                ", whose trees are tested on halves of the rows; use ",
                Parameter("model", "table"),
            )
        whole_table = check_table(self, X)
        outcomes, _ = check_labels(y, len(whole_table))
        if environments is None:
            raise IcscmError(
                "environments are missing, so invariance cannot be tested; pass fit(X, y, "
                "environments=...), one label per row (in a pipeline, route them)"
            )
        environment_codes, self.environments_ = encode_environments(environments, len(whole_table))
        check_several(self.environments_)
        self._reject_determining(whole_table, environment_codes)
        table = whole_table[:, self._comparable]

        if self.model == "table":
            candidates = self._make_tables(table, outcomes, environment_codes, groups)
        else:
            candidates = self._make_trees(table, outcomes, environment_codes)

        sets = find_invariant_sets(
            candidates.tester, max_size=candidates.max_size, alpha=float(self.alpha)
        )
        self._keep(sets, candidates)
        self._warn(candidates)
        return self

    def _reject_determining(self, table: Array, environments: Array) -> None:
        """Reject the columns that determine the environment, with a warning.

        Given such a column there is nothing to test, so that every set with it would be accepted.
        """
        no_outcome = np.zeros(len(table), dtype=np.int64)
        source = make_memory_source(
            table, no_outcome, environments, environment_labels=self.environments_
        )
        columns = ComparableColumns(source)
        columns.examine()
        self._comparable = np.setdiff1d(np.arange(self.n_features_in_), columns.list_rejected())
        names = self._get_names()
        self.rejected_ = [names[column] for column in columns.list_rejected()]
        if not self.rejected_:
            return
        if not len(self._comparable):
            raise IcscmError(
                "each column of X determines the environment, so that there is nothing to compare; "
                "give other columns"
            )
        warn(
            describe_determining([format_name(name) for name in self.rejected_]),
            exceptions.LeftOutWarning,
        )

    def _make_tables(
        self, table: Array, outcomes: Array, environments: Array, groups: Any
    ) -> _Candidates:
        """Count the table of all columns, whose values are cut into levels."""
        counts = make_level_counts(
            table, outcomes, environments, len(self.environments_), self.max_levels
        )
        n_columns = counts.n_features
        max_size = min(self.max_set_size or n_columns, n_columns)
        table_sets.check_affordable(counts, max_size, self.max_set_size)
        clusters = None
        if groups is not None:
            group_codes, _ = encode_environments(groups, len(table), what="groups")
            clusters = make_table_clusters(
                group_codes, environments, outcomes, len(self.environments_)
            )
        tester = TableTester(counts, test=self.test, dof=self.dof, clusters=clusters)
        return _Candidates(tester=tester, max_size=max_size)

    def _make_trees(self, table: Array, outcomes: Array, environments: Array) -> _Candidates:
        """Bin the columns, and screen those whose sets are tested."""
        source = make_memory_source(
            table,
            outcomes,
            environments,
            max_thresholds=self.max_thresholds,
            n_jobs=1,
            environment_labels=self.environments_,
        )
        settings = TreeTestSettings(
            max_columns=self.max_features,
            max_leaves=self.max_leaves,
            min_share=float(self.min_samples_leaf),
            seed=draw_seed(self.random_state),
        )
        screened = screen_columns(source, settings)
        n_columns = len(screened.columns)
        max_size = min(self.max_set_size or self.max_features, n_columns)
        tree_sets.check_affordable(n_columns, max_size)
        return _Candidates(
            tester=TreeTester(source, screened.columns, settings),
            max_size=max_size,
            copied=screened.copied,
            n_beyond=screened.n_beyond,
        )

    def _keep(self, sets: InvariantSets, candidates: _Candidates) -> None:
        """Keep the parents and the tested sets, with columns by name.

        The parents are the accepted set of lowest BIC, or the columns that all accepted sets share;
        None where no set was accepted.
        """
        bics: dict[CandidateSet, float] = {}
        if self.conclusion == "best":
            bics = candidates.tester.compute_bics(sets.accepted)
            parents = find_best(bics)
        else:
            shared = sets.find_shared()
            # of identical columns none is needed: another one could take its place
            parents = None if shared is None else shared.difference(candidates.copied)

        all_names = self._get_names()
        names = [all_names[column] for column in self._comparable.tolist()]
        self.parents_ = None if parents is None else name_columns(sorted(parents), names)
        self.accepted_sets_ = {
            name_columns(columns, names): p_value for columns, p_value in sets.accepted.items()
        }
        self.bic_ = {name_columns(columns, names): bic for columns, bic in bics.items()}
        # all sets leave out a column that was rejected
        self.p_values_ = np.full(self.n_features_in_, max(sets.p_values.values()))
        self.p_values_[self._comparable] = sets.find_largest_p_values(
            len(names), never_needed=candidates.copied
        )
        self.n_sets_tested_ = len(sets.p_values)

    def _warn(self, candidates: _Candidates) -> None:
        """Warn of sets that were not tested, and if no set was accepted."""
        if candidates.n_beyond:
            message = (
                f"Sets with any of {count(candidates.n_beyond, 'weaker feature')} beyond ",
                Parameter("max_features"),
                " were not tested.",
            )
            warn(message, exceptions.UntestedSetsWarning)
        if self.parents_ is None:
            bins_parameter = "max_levels" if self.model == "table" else "max_thresholds"
            warn(
                f"All {self.n_sets_tested_} sets of features were rejected at alpha={self.alpha}: "
                "given any set, the label still depends on the environment. parents_ is None, "
                "which is not the empty set. Possible reasons are a cause that is hidden, binned "
                "too coarsely or excluded by max_set_size, and an environment that acts on the "
                "label directly. Try a smaller alpha, more features (screened if they are many), "
                f"a larger {bins_parameter}, or other and more environments.",
                exceptions.NothingAcceptedWarning,
            )

    def _get_names(self) -> list[str | int]:
        """Names where X had names, positions otherwise."""
        names = find_feature_names(self)
        return list(range(self.n_features_in_)) if names is None else list(names)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "parents_")
        parents = self.parents_ or ()
        return np.array([name in parents for name in self._get_names()], dtype=np.bool_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # no classifier, but its y is that of one with two classes
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def name_columns(columns: Iterable[int], names: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the names of columns, in the same order."""
    return tuple(names[column] for column in columns)
