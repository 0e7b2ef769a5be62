"""The paper's methods with the grids of its Appendix A, and the samples they learn from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm import ICSCMClassifier, InvariantCausalPrediction, InvariantTreeClassifier, SCMClassifier
from icscm.datasets import make_conjunction
from paper.runner import Task

P_GRID = (0.1, 0.5, 0.75, 1.0, 2.5, 5, 10)
TREE_GRID: dict[str, list[Any]] = {
    "max_depth": [1, 2, 3, 4, 5, 10],
    "min_samples_split": [2, 0.01, 0.05, 0.1, 0.3],
}
# The paper's own search; our defaults are warier.
PAPER: dict[str, Any] = {"pruning": "always", "min_replication": 0, "min_utility": None}
N_FOLDS = 5
TRAIN_SHARE = 0.8
# Where a task does not say.
N_DISTRACTORS = 5


class Training(NamedTuple):
    """The samples a method may learn from; an array, since thousands of fits check no names."""

    X: NDArray[Any]
    y: NDArray[np.int64]
    environments: NDArray[Any]
    names: list[str]
    parents: set[str]
    seed: int

    def name(self, columns: Iterable[Any]) -> set[str]:
        """The names of some columns."""
        return {self.names[column] for column in columns}


def simulate(task: Task, seed: int, share: float = TRAIN_SHARE, **knobs: Any) -> Training:
    """A random part of the samples that a task describes; `knobs` are of the simulation."""
    knobs["n_distractors"] = task.get("n_distractors", N_DISTRACTORS)
    for name in ("n_parents", "n_environments"):
        if name in task:
            knobs[name] = task[name]
    is_continuous = task.get("features") == "continuous"
    data = make_conjunction(task["n_samples"], continuous=is_continuous, random_state=seed, **knobs)

    n_samples = len(data.y)
    rows = np.random.default_rng(seed).permutation(n_samples)[: round(n_samples * share)]
    return Training(
        X=data.X.to_numpy()[rows],
        y=data.y[rows],
        environments=data.environments[rows],
        names=list(data.X.columns),
        parents=set(data.parents),
        seed=seed,
    )


def find_features(method: str, train: Training) -> set[str] | None:
    """The features that a method's model relies on; None where ICP rejects every set."""
    if method == "DT":
        return _find_features_of_tree(train)
    if method == "SCM":
        return _find_features_of_rules(SCMClassifier(n_jobs=1), train)
    if method == "ICSCM":
        return _find_features_of_rules(ICSCMClassifier(n_jobs=1, **PAPER), train)
    dof = {"ICP": "adjusted", "ICP, nominal dof": "nominal"}[method]
    icp = InvariantCausalPrediction(dof=dof)
    icp.fit(train.X, train.y, environments=train.environments)
    return None if icp.parents_ is None else train.name(icp.parents_)


def _find_features_of_tree(train: Training) -> set[str]:
    """The features of scikit-learn's tree."""
    from sklearn.tree import DecisionTreeClassifier

    single_precision = train._replace(X=train.X.astype(np.float32))
    tree = _tune(DecisionTreeClassifier(random_state=0), TREE_GRID, single_precision)
    features_of_nodes = tree.tree_.feature  # negative for leaves
    return train.name(feature for feature in features_of_nodes if feature >= 0)


def _find_features_of_rules(learner: SCMClassifier | ICSCMClassifier, train: Training) -> set[str]:
    """The features of a learner of this package, its p chosen by cross-validation."""
    tuned = _tune(learner, {"p": list(P_GRID)}, train, environments=train.environments)
    return train.name(tuned.features_used_)


def fit_invariant(learner: ICSCMClassifier, train: Training) -> set[str]:
    """Fit as the paper does, but for what the learner's own parameters change; its features."""
    learner.set_params(**PAPER).fit(train.X, train.y, environments=train.environments)
    return train.name(learner.features_used_)


def fit_rate_tree(train: Training) -> set[str]:
    """The features of a tree whose leaves have the same rate in all environments."""
    tree = InvariantTreeClassifier(invariance="rate", n_jobs=1)
    tree.fit(train.X, train.y, environments=train.environments)
    return train.name(tree.features_used_)


def _tune(learner: Any, grid: dict[str, list[Any]], train: Training, **arguments: Any) -> Any:
    """The learner of the grid that is best by 5-fold cross-validation on accuracy.

    `arguments` are further ones of its `fit`.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=train.seed % 2**32)
    search = GridSearchCV(learner, grid, cv=folds).fit(train.X, train.y, **arguments)
    return search.best_estimator_
