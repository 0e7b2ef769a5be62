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
N_HALVES, STABLE = 20, 0.6
PENALTIES = (0.003, 0.01, 0.03, 0.1)
# Forward selection: rows, predictors at most, the least gain, and standard deviations taken off.
FORWARD_ROWS, MAX_STEPS, LEAST_GAIN, HETEROGENEITY = 4_000, 10, 0.001, 1.0
_RIDGE, _NEWTON_STEPS = 1.0, 4
# Levels rarer than this are pooled, and at most so many are kept.
_RARE, _MAX_LEVELS = 0.01, 15
N_TREES = 50


class Sample(NamedTuple):
    """The rows that a method may learn from."""

    X: pandas.DataFrame
    y: NDArray[np.int64]
    environments: NDArray[Any]
    seed: int = 0


class Chosen(NamedTuple):
    """The columns kept, and how many times the learner was cross-fitted for it."""

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


def screen(sample: Sample, learner: str) -> Chosen:
    """The columns that `InvariantFeatureSelector` keeps for the learner."""
    selector = InvariantFeatureSelector(make_learner(learner), random_state=0, n_jobs=1)
    selector.fit(sample.X, sample.y, environments=sample.environments)
    return Chosen(selector.kept_, len(selector.rounds_))


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

    blocks = encode_columns(sample.X)
    Z, rng = csr_array(np.hstack([*blocks.values()])), np.random.default_rng(sample.seed)
    owner = np.repeat(np.arange(len(blocks)), [each.shape[1] for each in blocks.values()])
    losses = [
        -cross_val_score(_make_lasso(each), Z, sample.y, cv=3, scoring="neg_log_loss").mean()
        for each in PENALTIES
    ]
    best, counts = PENALTIES[int(np.argmin(losses))], np.zeros(len(blocks))
    for _number in range(N_HALVES):
        half = rng.permutation(len(sample.y))[: len(sample.y) // 2]
        lasso = _make_lasso(best).fit(Z[half], sample.y[half])
        counts += np.bincount(owner, np.abs(lasso.coef_[0]), len(blocks)) > 0
    stable = counts >= STABLE * N_HALVES
    return Chosen([name for name, is_stable in zip(blocks, stable, strict=True) if is_stable])


def _make_lasso(penalty: float) -> Any:
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
    y, environments = sample.y[rows], sample.environments[rows]
    blocks = encode_columns(sample.X.iloc[rows])
    sites = [each for each in np.unique(environments) if 0 < y[environments == each].mean() < 1]
    is_left_out = [environments == each for each in sites]
    design, chosen, best = np.ones((len(y), 1)), list[str](), 0.5
    starts = [np.zeros(1) for _ in sites]
    while sites and len(chosen) < MAX_STEPS:
        found = {
            name: _cross_validate(np.hstack((design, block)), y, is_left_out, starts)
            for name, block in blocks.items()
            if name not in chosen
        }
        name = max(found, key=lambda each: found[each][0], default=None)
        if name is None or found[name][0] < best + LEAST_GAIN:
            break
        best, starts = found[name]
        design = np.hstack((design, blocks[name]))
        chosen.append(name)
    return Chosen([name for name in sample.X if name in chosen], len(chosen))


def _cross_validate(
    Z: Floats, y: NDArray[np.int64], is_left_out: list[NDArray[np.bool_]], starts: list[Floats]
) -> tuple[float, list[Floats]]:
    """Mean AUC at the environments left out less its heterogeneity; and the coefficients."""
    aucs, coefficients = [], []
    for is_out, start in zip(is_left_out, starts, strict=True):
        beta = fit_logistic(Z[~is_out], y[~is_out], start)
        aucs.append(compute_auc(y[is_out], Z[is_out] @ beta))
        coefficients.append(beta)
    spread = float(np.std(aucs, ddof=1)) if len(aucs) > 1 else 0.0
    return float(np.mean(aucs)) - HETEROGENEITY * spread, coefficients


def fit_logistic(Z: Floats, y: NDArray[np.int64], start: Floats) -> Floats:
    """Logistic regression with a slight ridge by Newton's method, from a smaller model."""
    beta = np.concatenate((start, np.zeros(Z.shape[1] - len(start))))
    ridge = np.full(len(beta), _RIDGE)
    ridge[0] = 1e-6  # the intercept
    for _ in range(_NEWTON_STEPS):
        p = expit(Z @ beta)
        hessian = (Z * (p * (1.0 - p))[:, np.newaxis]).T @ Z + np.diag(ridge)
        beta = beta + np.linalg.solve(hessian, Z.T @ (y - p) - ridge * beta)
    return beta


def compute_auc(y: NDArray[np.int64], score: Floats) -> float:
    """The area under the ROC curve, from ranks.

    >>> compute_auc(np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 2.0, 3.0]))
    0.875
    """
    n_positive = int(y.sum())
    ranks = rankdata(score)[y == 1].sum() - n_positive * (n_positive + 1) / 2
    return float(ranks / (n_positive * (len(y) - n_positive)))


def encode_columns(X: pandas.DataFrame) -> dict[str, Floats]:
    """For each column numbers for a regression: standardised, or one for each frequent level.

    Missing numbers are replaced by the median and marked.
    """
    from pandas.api.types import is_numeric_dtype

    encode = {True: _encode_numbers, False: _encode_levels}
    return {name: encode[is_numeric_dtype(X[name].dtype)](X[name]) for name in X}


def _encode_numbers(column: pandas.Series) -> Floats:
    values: Floats = column.to_numpy(dtype=float, na_value=np.nan)
    is_missing = np.isnan(values)
    if is_missing.all():
        return np.zeros((len(values), 1))
    known = np.where(is_missing, np.nanmedian(values), values)
    scaled = (known - known.mean()) / (known.std() or 1.0)
    return np.column_stack((scaled, is_missing) if is_missing.any() else (scaled,))


def _encode_levels(column: pandas.Series) -> Floats:
    shares = column.astype(object).value_counts(normalize=True, dropna=False)
    frequent = shares[shares >= _RARE].index[:_MAX_LEVELS]
    text, wanted = column.astype(str).to_numpy(), [str(each) for each in frequent]
    # without the most frequent, to which the others are compared
    hot = [text == each for each in wanted[1:]] or [np.zeros(len(text))]
    return np.column_stack(hot).astype(float)


METHODS: dict[str, Callable[[Sample, str], Chosen]] = {
    "all columns": keep_all,
    "screened": screen,
    "forward selection": select_forward,
    "stability selection": select_stable,
    "invariant forest": use_forest,
}
# These choose without the learner; it is fitted on their columns.
PEERS = ("forward selection", "stability selection", "invariant forest")
