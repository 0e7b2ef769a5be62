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
    """A random part of the samples that a task describes."""
    names = ("n_distractors", "n_parents", "n_environments")
    knobs |= {"n_distractors": N_DISTRACTORS} | {name: task[name] for name in names if name in task}
    knobs |= {"continuous": task.get("features") == "continuous", "random_state": seed}
    data = make_conjunction(task["n_samples"], **knobs)
    rows = np.random.default_rng(seed).permutation(len(data.y))[: round(len(data.y) * share)]
    X, y, environments = data.X.to_numpy()[rows], data.y[rows], data.environments[rows]
    return Training(X, y, environments, list(data.X.columns), set(data.parents), seed)


def find_features(method: str, train: Training) -> set[str] | None:
    """The features that a method's model relies on; None where ICP rejects every set."""
    from sklearn.tree import DecisionTreeClassifier

    if method == "DT":
        plain = train._replace(X=train.X.astype(np.float32))
        tree = _tune(DecisionTreeClassifier(random_state=0), TREE_GRID, plain)
        return train.name(column for column in tree.tree_.feature if column >= 0)
    if method in ("SCM", "ICSCM"):
        learner = SCMClassifier(n_jobs=1) if method == "SCM" else ICSCMClassifier(n_jobs=1, **PAPER)
        tuned = _tune(learner, {"p": list(P_GRID)}, train, environments=train.environments)
        return train.name(tuned.features_used_)
    dof = {"ICP": "adjusted", "ICP, nominal dof": "nominal"}[method]
    icp = InvariantCausalPrediction(dof=dof)
    icp.fit(train.X, train.y, environments=train.environments)
    return None if icp.parents_ is None else train.name(icp.parents_)


def fit_invariant(learner: ICSCMClassifier, train: Training) -> set[str]:
    """Fit as the paper does, but for what the learner's own parameters change; its features."""
    learner.set_params(**PAPER).fit(train.X, train.y, environments=train.environments)
    return train.name(learner.features_used_)


def fit_rate_tree(train: Training) -> set[str]:
    """The features of a tree whose leaves have the same rate in all environments."""
    tree = InvariantTreeClassifier(invariance="rate", n_jobs=1)
    tree.fit(train.X, train.y, environments=train.environments)
    return train.name(tree.features_used_)


def _tune(learner: Any, grid: dict[str, list[Any]], train: Training, **known: Any) -> Any:
    """The learner of the grid that is best by 5-fold cross-validation on accuracy."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=train.seed % 2**32)
    return GridSearchCV(learner, grid, cv=folds).fit(train.X, train.y, **known).best_estimator_
