"""The paper's methods with the grids of its Appendix A."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icscm.datasets import Simulation
from icscm.estimators.cover import ICSCMClassifier, SCMClassifier
from icscm.estimators.icp import InvariantCausalPrediction

P_GRID = (0.1, 0.5, 0.75, 1.0, 2.5, 5, 10)
TREE_GRID: dict[str, list[Any]] = {
    "max_depth": [1, 2, 3, 4, 5, 10],
    "min_samples_split": [2, 0.01, 0.05, 0.1, 0.3],
}
N_FOLDS = 5
TRAIN_SHARE = 0.8


class Training(NamedTuple):
    """The samples a method may learn from; an array, since thousands of fits check no names."""

    X: NDArray[Any]
    y: NDArray[np.int64]
    environments: NDArray[Any]
    names: list[str]
    seed: int

    def name(self, columns: Iterable[Any]) -> set[str]:
        """The names of some columns."""
        return {self.names[column] for column in columns}


def take_training_part(data: Simulation, seed: int, share: float = TRAIN_SHARE) -> Training:
    """A random part of the samples."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data.y))[: round(len(data.y) * share)]
    X = data.X.to_numpy()[rows]
    return Training(X, data.y[rows], data.environments[rows], list(data.X.columns), seed)


def find_features(method: str, train: Training) -> set[str] | None:
    """The features that a method's model relies on; None where ICP rejects every set."""
    finders: dict[str, Callable[[Training], set[str] | None]] = {
        "SCM": lambda train: _find_with_cover(SCMClassifier(n_jobs=1), train),
        "DT": _find_with_tree,
        "ICP": lambda train: _find_with_icp("adjusted", train),
        "ICP, nominal dof": lambda train: _find_with_icp("nominal", train),
        "ICSCM": lambda train: _find_with_cover(ICSCMClassifier(n_jobs=1), train),
    }
    return finders[method](train)


def fit_invariant(learner: ICSCMClassifier, train: Training) -> set[str]:
    """Fit with the learner's own parameters; the features it uses."""
    learner.fit(train.X, train.y, environments=train.environments)
    return train.name(learner.features_used_)


def _find_with_cover(learner: SCMClassifier | ICSCMClassifier, train: Training) -> set[str]:
    """With p by 5-fold cross-validation on accuracy."""
    search = _make_search(learner, {"p": list(P_GRID)}, train.seed)
    search.fit(train.X, train.y, environments=train.environments)
    return train.name(search.best_estimator_.features_used_)


def _find_with_tree(train: Training) -> set[str]:
    from sklearn.tree import DecisionTreeClassifier

    search = _make_search(DecisionTreeClassifier(random_state=0), TREE_GRID, train.seed)
    search.fit(train.X.astype(np.float32), train.y)
    return train.name(column for column in search.best_estimator_.tree_.feature if column >= 0)


def _find_with_icp(dof: str, train: Training) -> set[str] | None:
    icp = InvariantCausalPrediction(dof=dof)
    icp.fit(train.X, train.y, environments=train.environments)
    return None if icp.parents_ is None else train.name(icp.parents_)


def _make_search(estimator: Any, grid: dict[str, list[Any]], seed: int) -> Any:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed % 2**32)
    return GridSearchCV(estimator, grid, cv=folds)
