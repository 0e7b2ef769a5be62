"""Ways to choose columns of a table with several environments, and learners to use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import rankdata

from icscm import InvariantFeatureSelector, InvariantForestClassifier
from icscm.estimators.learners import TableClassifier
from icscm.sources import open_memory

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]

# Stability selection: random halves, the share of them that must choose a column, and penalties.
N_HALVES = 20
STABLE = 0.6
PENALTIES = (0.003, 0.01, 0.03, 0.1)
# Forward selection: rows and columns at most, the least gain in AUC of a step, and how many
# standard deviations between environments are taken off the mean AUC.
FORWARD_ROWS = 4_000
MAX_STEPS = 10
LEAST_GAIN = 0.001
HETEROGENEITY = 1.0
# Newton's method from the coefficients of a smaller model needs few steps.
_RIDGE = 1.0
_NEWTON_STEPS = 4
# Levels rarer than this are pooled, and at most so many are kept.
_RARE = 0.01
_MAX_LEVELS = 15
N_TREES = 50


class Sample(NamedTuple):
    """The rows that a method may learn from."""

    X: pandas.DataFrame
    y: NDArray[np.int64]
    environments: NDArray[Any]
    seed: int = 0


class Chosen(NamedTuple):
    """The columns kept, and in how many rounds they were chosen."""

    columns: list[str]
    n_rounds: int = 0


def make_learner(name: str) -> Any:
    """A learner that takes a frame with categories and missing values."""
    if name == "boosting":
        return TableClassifier("hgb", 0)
    if name == "logistic regression":
        return TableClassifier("logistic", 0)
    return _make_forest()


LEARNERS = ("boosting", "logistic regression", "random forest")


def _make_forest() -> Any:
    """A random forest that takes a frame, text as codes."""
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    unknown = {"unknown_value": np.nan, "encoded_missing_value": np.nan}
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", **unknown)
    text = make_column_selector(dtype_exclude="number")
    encode = ColumnTransformer([("text", codes, text)], remainder="passthrough")
    trees = RandomForestClassifier(N_TREES, min_samples_leaf=5, n_jobs=1, random_state=0)
    return make_pipeline(encode, trees)


def keep_all(sample: Sample, _: str) -> Chosen:
    """Every column."""
    return Chosen(list(sample.X))


def screen(sample: Sample, _: str) -> Chosen:
    """The columns that `InvariantFeatureSelector` keeps, for any learner."""
    selector = InvariantFeatureSelector(make_learner("boosting"), random_state=0, n_jobs=1)
    selector.fit(sample.X, sample.y, environments=sample.environments)
    return Chosen(selector.kept_, len(selector.rounds_))


def make_screen(*, is_number: bool) -> InvariantFeatureSelector:
    """A screen for studies of its verdicts alone: behind it there is no learner to speak of.

    The screen has trees of its own, so that its verdicts do not depend on the learner.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor

    learner = DummyRegressor() if is_number else DummyClassifier()
    return InvariantFeatureSelector(learner, random_state=0, n_jobs=1)


def use_forest(sample: Sample, _: str) -> Chosen:
    """The columns that some tree of an invariant forest uses."""
    forest = InvariantForestClassifier(n_estimators=N_TREES, random_state=0, n_jobs=1)
    countable = open_memory(
        sample.X,
        sample.y,
        environments=sample.environments,
        preparation=replace(forest.prepare(), drop_suspicious=False),
    )
    forest.fit_counts(countable)
    used = set(forest.features_used_)
    return Chosen([name for name in sample.X if name in used])


def select_stable(sample: Sample, _: str) -> Chosen:
    """Stability selection (Meinshausen and Bühlmann 2010): L1 regression on random halves.

    The penalty is chosen once, by cross-validated log loss. A column is chosen by a half if any of
    its coefficients is not 0, and kept if at least 60 % of the halves choose it.
    """
    from scipy.sparse import csr_array
    from sklearn.model_selection import cross_val_score

    # Each column becomes a block of numbers, side by side in Z; column_of names the block of each.
    blocks = encode_columns(sample.X)
    n_columns = len(blocks)
    Z = csr_array(np.hstack([*blocks.values()]))
    column_of = np.repeat(np.arange(n_columns), [block.shape[1] for block in blocks.values()])

    losses = []
    for penalty in PENALTIES:
        lasso = _make_lasso(penalty)
        scores = cross_val_score(lasso, Z, sample.y, cv=3, scoring="neg_log_loss")
        losses.append(-scores.mean())
    best_penalty = PENALTIES[int(np.argmin(losses))]

    n_rows = len(sample.y)
    rng = np.random.default_rng(sample.seed)
    times_chosen = np.zeros(n_columns)
    for _number in range(N_HALVES):
        half = rng.permutation(n_rows)[: n_rows // 2]
        lasso = _make_lasso(best_penalty).fit(Z[half], sample.y[half])
        sizes = np.bincount(column_of, np.abs(lasso.coef_[0]), n_columns)
        times_chosen += sizes > 0
    is_stable = times_chosen >= STABLE * N_HALVES
    return Chosen([name for name, stable in zip(blocks, is_stable, strict=True) if stable])


def _make_lasso(penalty: float) -> Any:
    """A logistic regression with an L1 penalty; smaller numbers penalise more."""
    from sklearn.linear_model import LogisticRegression

    # scikit-learn 1.8 renamed it
    is_old = LogisticRegression().get_params()["penalty"] == "l2"
    kind: dict[str, Any] = {"penalty": "l1"} if is_old else {"l1_ratio": 1.0}
    return LogisticRegression(C=penalty, solver="liblinear", tol=1e-3, random_state=0, **kind)


def select_forward(sample: Sample, _: str) -> Chosen:
    """Forward selection of predictors by internal-external cross-validation.

    After the idea of de Jong et al. (2021), doi 10.1002/sim.8981: in each step the predictor is
    added with which a logistic regression generalises best to environments left out in turn, by
    the mean of a performance measure and its heterogeneity; here the mean AUC less its standard
    deviation between environments. It ends when no predictor adds 0.001. At most 4,000 rows and
    10 predictors, since each step fits a regression for each column and environment.
    """
    rows = np.random.default_rng(sample.seed).permutation(len(sample.y))[:FORWARD_ROWS]
    y = sample.y[rows]
    environments = sample.environments[rows]
    blocks = encode_columns(sample.X.iloc[rows])
    is_left_out = []
    for name in np.unique(environments):
        is_out = environments == name
        if 0 < y[is_out].mean() < 1:  # an AUC needs both labels
            is_left_out.append(is_out)

    chosen: list[str] = []
    design = np.ones((len(y), 1))
    intercepts = [np.zeros(1) for _ in is_left_out]
    current = _Validated(score=0.5, coefficients=intercepts)
    while is_left_out and len(chosen) < MAX_STEPS:
        candidates = {
            name: _cross_validate(
                np.hstack((design, block)), y, is_left_out, starts=current.coefficients
            )
            for name, block in blocks.items()
            if name not in chosen
        }
        best = max(candidates, key=lambda name: candidates[name].score, default=None)
        if best is None or candidates[best].score < current.score + LEAST_GAIN:
            break
        current = candidates[best]
        design = np.hstack((design, blocks[best]))
        chosen.append(best)
    return Chosen([name for name in sample.X if name in chosen], n_rounds=len(chosen))


class _Validated(NamedTuple):
    """How well a regression does in the environments left out, and the coefficients without each.

    `score` is the mean AUC less its heterogeneity.
    """

    score: float
    coefficients: list[Floats]


def _cross_validate(
    Z: Floats, y: NDArray[np.int64], is_left_out: list[NDArray[np.bool_]], starts: list[Floats]
) -> _Validated:
    """Fit without each environment, from coefficients of a smaller model, and test there."""
    aucs = []
    coefficients = []
    for is_out, start in zip(is_left_out, starts, strict=True):
        beta = fit_logistic(Z[~is_out], y[~is_out], start)
        aucs.append(compute_auc(y[is_out], Z[is_out] @ beta))
        coefficients.append(beta)
    spread = float(np.std(aucs, ddof=1)) if len(aucs) > 1 else 0.0
    score = float(np.mean(aucs)) - HETEROGENEITY * spread
    return _Validated(score=score, coefficients=coefficients)


def fit_logistic(Z: Floats, y: NDArray[np.int64], start: Floats) -> Floats:
    """The coefficients of a logistic regression with a slight ridge, by Newton's method.

    A step adds H^-1 (Z'(y - p) - ridge beta), with H = Z' diag(p (1 - p)) Z + diag(ridge). `start`
    has the coefficients of a smaller model, that of the first columns of Z; the others start at 0.
    """
    beta = np.concatenate((start, np.zeros(Z.shape[1] - len(start))))
    ridge = np.full(len(beta), _RIDGE)
    ridge[0] = 1e-6  # the intercept
    for _ in range(_NEWTON_STEPS):
        p = expit(Z @ beta)
        gradient = Z.T @ (y - p) - ridge * beta
        hessian = (Z * (p * (1.0 - p))[:, np.newaxis]).T @ Z + np.diag(ridge)
        beta = beta + np.linalg.solve(hessian, gradient)
    return beta


def compute_auc(y: NDArray[np.int64], score: Floats) -> float:
    """The area under the ROC curve, from ranks.

    >>> compute_auc(np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 2.0, 3.0]))
    0.875
    """
    n_positive = int(y.sum())
    n_pairs = n_positive * (len(y) - n_positive)
    lowest_sum = n_positive * (n_positive + 1) / 2
    n_in_order = rankdata(score)[y == 1].sum() - lowest_sum
    return float(n_in_order / n_pairs)


def encode_columns(X: pandas.DataFrame) -> dict[str, Floats]:
    """For each column a block of numbers (row, predictor) for a regression.

    A column of numbers is standardised; others have a predictor for each frequent level.
    """
    from pandas.api.types import is_numeric_dtype

    blocks = {}
    for name in X:
        column = X[name]
        is_number = is_numeric_dtype(column.dtype)
        blocks[name] = _encode_numbers(column) if is_number else _encode_levels(column)
    return blocks


def _encode_numbers(column: pandas.Series) -> Floats:
    """Standardised numbers; missing ones are replaced by the median, and marked."""
    values: Floats = column.to_numpy(dtype=float, na_value=np.nan)
    is_missing = np.isnan(values)
    if is_missing.all():
        return np.zeros((len(values), 1))
    known = np.where(is_missing, np.nanmedian(values), values)
    scaled = (known - known.mean()) / (known.std() or 1.0)
    if not is_missing.any():
        return np.column_stack((scaled,))
    return np.column_stack((scaled, is_missing))


def _encode_levels(column: pandas.Series) -> Floats:
    """A column of zeros and ones for each frequent level but the first; rare ones have none."""
    shares = column.astype(object).value_counts(normalize=True, dropna=False)
    frequent = shares[shares >= _RARE].index[:_MAX_LEVELS]
    _most_frequent, *others = [str(level) for level in frequent] or [""]  # the reference
    text = column.astype(str).to_numpy()
    has_level = [text == level for level in others]
    if not has_level:
        return np.zeros((len(text), 1))
    return np.column_stack(has_level).astype(float)


METHODS: dict[str, Callable[[Sample, str], Chosen]] = {
    "all columns": keep_all,
    "screened": screen,
    "forward selection": select_forward,
    "stability selection": select_stable,
    "invariant forest": use_forest,
}
# These choose without the learner; it is fitted on their columns.
PEERS = ("screened", "forward selection", "stability selection", "invariant forest")
