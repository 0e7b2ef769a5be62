"""Which `p`, model type, level or margin: chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from icscm._types import Array
from icscm.estimators.counted import CountedClassifier
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.model.learner import check_learner
from icscm.parameters import check_value, one_of, whole_number
from icscm.sources.memory import open_memory
from icscm.studies.scores import OF_PREDICTIONS, OF_PROBABILITIES
from icscm.tables.columns import count_rows, take_rows
from icscm.tables.environments import encode_environments, take_environments
from icscm.tables.labels import check_labels
from icscm.tables.parsing import read_table

if TYPE_CHECKING:
    import pandas

# As in the paper.
N_FOLDS = 5
# By what can be chosen, the first unless told.
SCORERS = ("balanced_accuracy", "auc", "log_loss", "accuracy")
FOLDS = ("rows", "environments")

# Called with a fitted classifier, rows and their labels, as scikit-learn's: larger is better.
Scorer = Callable[[Any, Any, Array], float]


@dataclass(frozen=True)
class Choice:
    """What cross-validation found; see `choose`.

    Attributes
    ----------
    tried, scores : tuple of dict, tuple of float
        Each combination of parameters, and its score on what was held out, averaged over folds.
    best : dict
        The combination of best score.
    constant : float
        The score of always saying what is more frequent, with its rate as the probability.
    scorer, folds, n_folds : str, str, int
        What was measured, and on what.
    """

    tried: tuple[dict[str, Any], ...]
    scores: tuple[float, ...]
    best: dict[str, Any]
    constant: float
    scorer: str
    folds: str
    n_folds: int

    @property
    def beats_constant(self) -> bool:
        """Whether the best does better than always saying the same."""
        gain = self.scores[self.tried.index(self.best)] - self.constant
        return (-gain if self.scorer == "log_loss" else gain) > 0

    def to_frame(self) -> pandas.DataFrame:
        """A row for each combination, and the constant's as the last."""
        import pandas

        rows = [
            {**each, "score": score, "chosen": each == self.best}
            for each, score in zip(self.tried, self.scores, strict=True)
        ]
        return pandas.DataFrame([*rows, {"score": self.constant, "chosen": False}])


def choose(
    learner: CountedClassifier,
    X: Any,
    y: Any,
    environments: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    scorer: str | Scorer = SCORERS[0],
    folds: str = FOLDS[0],
    n_folds: int = N_FOLDS,
    seed: int = 0,
    on_fold: Callable[[], None] | None = None,
) -> Choice:
    """Find by cross-validation which of some parameters do best on what was held out.

    Of equally good combinations the one whose `p` is nearest 1 is taken, then the first. All that
    is learned, thresholds included, comes from the other folds. A fold on which the score has no
    value, such as balanced accuracy where one class is absent, does not count.

    Parameters
    ----------
    learner : SCMClassifier or ICSCMClassifier
        Its other parameters are kept; it is not changed.
    X, y, environments : as for `fit`
        The samples; environments may be None for an `SCMClassifier`.
    grid : mapping of str to sequence
        The values to try of each parameter, such as `{"p": [0.1, 1, "balanced"]}`; every
        combination is tried.
    scorer : {"balanced_accuracy", "auc", "log_loss", "accuracy"} or callable
        What is measured. A callable gets a fitted classifier, rows and labels, as scikit-learn's
        scorers do; larger is better.
    folds : {"rows", "environments"}, default="rows"
        What is held out: rows of every environment, with equal shares of each label in each as
        far as the numbers allow, or whole environments, which tells how a model does elsewhere.
    n_folds : int, default=5
        As in the paper; fewer where there are fewer environments to hold out.
    seed : int, default=0
        Of the folds of rows.
    on_fold : callable, optional
        Called after each fold.

    Returns
    -------
    Choice
        The score of each combination and of the constant, and the best.

    Raises
    ------
    IcscmError
        Where a parameter or its value is not allowed, or the samples are too few for the folds.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> data = make_conjunction(random_state=1)
    >>> grid = {"model_type": ["conjunction", "disjunction"]}
    >>> found = choose(ICSCMClassifier(), data.X, data.y, data.environments, grid)
    >>> found.best, [round(score, 2) for score in (*found.scores, found.constant)]
    ({'model_type': 'conjunction'}, [0.91, 0.5, 0.5])
    """
    check_learner(learner)
    check_value("folds", folds, one_of(*FOLDS))
    check_value("n_folds", n_folds, whole_number(2))
    if not callable(scorer):
        check_value("scorer", scorer, one_of(*SCORERS))
    candidates = [clone(learner).set_params(**each) for each in list_combinations(learner, grid)]
    for each in candidates:
        each.prepare()
    X, environments = take_environments(X, environments)
    rows = read_table(X).rows
    n_rows = count_rows(rows)
    codes, classes = check_labels(y, n_rows)
    numbers, names = None, ()
    if environments is not None:
        numbers, names = encode_environments(environments, n_rows)
    if folds == "rows":
        fold_of = _make_folds(codes, numbers, n_folds, seed)
    else:
        fold_of = _deal_environments(learner, numbers, len(names), n_folds)
    scores = []
    for held_out in _list_folds(fold_of):
        without = np.flatnonzero(~held_out)
        seen = take_rows(rows, without), classes[codes[without]]
        unseen = take_rows(rows, np.flatnonzero(held_out)), classes[codes[held_out]]
        try:
            fitted = [*_fit_all(candidates, *seen, None if numbers is None else numbers[without])]
        except IcscmError as error:
            raise IcscmError(f"cannot learn from all folds but one: {error}") from None
        scores.append([_measure(scorer, each, *unseen, classes[1]) for each in fitted])
        if on_fold is not None:
            on_fold()
    return _choose_best(np.array(scores), candidates, grid, scorer, folds)


def choose_p(
    learner: CountedClassifier,
    X: Any,
    y: Any,
    environments: Any,
    p_values: Sequence[float | str],
    **options: Any,
) -> Choice:
    """Find the `p` that does best by cross-validation: `choose` with a single parameter.

    Parameters
    ----------
    learner, X, y, environments : as for `choose`
        What to learn with, and the samples.
    p_values : sequence of float or "balanced"
        The `p` to try.
    **options : optional
        As for `choose`.

    Returns
    -------
    Choice
        The score of each `p`, and the best.

    Examples
    --------
    >>> from icscm import ICSCMClassifier
    >>> from icscm.datasets import make_conjunction
    >>> from icscm.studies.choice import choose_p
    >>> data = make_conjunction(random_state=1)
    >>> choose_p(ICSCMClassifier(), data.X, data.y, data.environments, [0.1, 1, 10]).best
    {'p': 1}
    """
    return choose(learner, X, y, environments, {"p": p_values}, **options)


def list_combinations(
    learner: CountedClassifier, grid: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Every combination of the values in a grid; raise for what the learner does not have."""
    known = learner.get_params(deep=False)
    for name, values in grid.items():
        if name not in known:
            raise IcscmError(
                f"grid names {name!r}, which {type(learner).__name__} does not have; its "
                f"parameters are {', '.join(known)}"
            )
        if isinstance(values, str) or not len(values):
            raise IcscmError(f"grid must give a list of values for {name!r}; got {values!r}")
    if not grid:
        raise IcscmError("grid is empty; name a parameter and its values, as in {'p': [0.5, 1]}")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _fit_all(
    candidates: Sequence[CountedClassifier], X: Any, y: Array, environments: Any
) -> Iterator[Any]:
    """Each learner fitted, and the constant; rows are binned again only where one asks for it."""
    samples, preparation = None, None
    # that a fold has few samples or gives no rule is what its score tells
    with warnings.catch_warnings(action="ignore", category=IcscmWarning):
        for learner in candidates:
            if samples is None or learner.prepare() != preparation:
                preparation = learner.prepare()
                samples = open_memory(X, y, environments, preparation=preparation)
            again = replace(samples, source=samples.source.start_again())
            yield clone(learner).fit_counts(again)
    yield DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y)


def _measure(scorer: str | Scorer, fitted: Any, X: Any, y: Array, positive: Any) -> float:
    """The score on what was held out; NaN where it has no value."""
    if callable(scorer):
        return float(scorer(fitted, X, y))
    is_positive = y == positive
    if scorer in OF_PROBABILITIES:
        score = OF_PROBABILITIES[scorer](is_positive, fitted.predict_proba(X)[:, 1])
    else:
        name = "error" if scorer == "accuracy" else scorer
        score = OF_PREDICTIONS[name](is_positive, fitted.predict(X) == positive)
    if score is None:
        return np.nan
    return 1.0 - score.value if scorer == "accuracy" else score.value


def _choose_best(
    scores: NDArray[np.float64],
    candidates: Sequence[CountedClassifier],
    grid: Mapping[str, Any],
    scorer: str | Scorer,
    folds: str,
) -> Choice:
    """From scores by fold and candidate, the last of which is the constant."""
    name = scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "score")
    has_value = ~np.isnan(scores).any(axis=1)
    if not has_value.any():
        raise IcscmError(f"{name} has no value on any fold: each holds a single class")
    *means, constant = scores[has_value].mean(axis=0).tolist()
    sign = 1 if name == "log_loss" else -1
    # rounded: the same predictions in other folds must tie
    ranks = [
        (sign * round(mean, 12), _find_distance(getattr(each, "p", 1.0)), place)
        for place, (mean, each) in enumerate(zip(means, candidates, strict=True))
    ]
    tried = tuple({key: getattr(each, key) for key in grid} for each in candidates)
    best = tried[min(ranks)[-1]]
    return Choice(tried, tuple(means), best, constant, name, folds, len(scores))


def _find_distance(p: float | str) -> float:
    """How far from 1 on a scale of factors; `"balanced"` comes after the numbers."""
    return np.inf if isinstance(p, str) else abs(float(np.log(p)))


def _list_folds(fold_of: NDArray[np.intp]) -> Iterator[NDArray[np.bool_]]:
    """Which rows each fold holds out."""
    for fold in range(int(fold_of.max()) + 1):
        yield fold_of == fold


def _deal_environments(
    learner: CountedClassifier, numbers: Any, n_environments: int, n_folds: int
) -> NDArray[np.intp]:
    """The fold of each row: environments are dealt out in turn, the largest first."""
    least = 3 if learner.tests_invariance else 2
    if n_environments < least:
        raise IcscmError(
            Parameter("folds", "environments"),
            f" needs at least {least} environments, so that {least - 1} remain to learn from; got "
            f"{n_environments}",
        )
    fold_of = np.empty(n_environments, dtype=np.intp)
    fold_of[np.argsort(-np.bincount(numbers), kind="stable")] = np.arange(n_environments) % n_folds
    dealt: NDArray[np.intp] = fold_of[numbers]
    return dealt


def _make_folds(y: Array, environments: Array | None, n_folds: int, seed: int) -> NDArray[np.intp]:
    """The fold of each row: the rows of a label in an environment are dealt out in turn."""
    smallest = min(int((y == label).sum()) for label in set(y.tolist()))
    if smallest < n_folds:
        raise IcscmError(
            f"cross-validation in {n_folds} folds needs {n_folds} rows of each class; one has "
            f"{smallest}; set the parameters instead"
        )
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(rows) for rows in _list_cells(y, environments)])
    folds = np.empty(len(y), dtype=np.intp)
    folds[order] = np.arange(len(y)) % n_folds
    return folds


def _list_cells(y: Array, environments: Array | None) -> list[NDArray[np.intp]]:
    """The rows of each label in each environment."""
    import pandas

    label = pandas.factorize(y, sort=True)[0]
    environment = label * 0 if environments is None else pandas.factorize(environments)[0]
    rows = pandas.Series(label).groupby([label, environment]).indices
    return [rows[cell] for cell in sorted(rows)]
