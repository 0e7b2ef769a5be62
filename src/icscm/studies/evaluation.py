"""External validation: the performance of a fitted model on new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.formatting import as_text, count, format_level, make_plain, shorten_list
from icscm.io.naming import find_renamed
from icscm.model.forest import Forest, describe_size
from icscm.model.rules import CategoryRule, Rule
from icscm.model.saved import SavedModel, check_fitted, get_table_settings, make_label
from icscm.model.splits import CHAINS
from icscm.report.formatting import Plain
from icscm.report.page import make_frame
from icscm.report.texts import write_lines, write_text
from icscm.report.validation import draw_validation, render_page_of, render_text
from icscm.studies import scores as metrics
from icscm.studies.scores import TITLES, LeafCalibration, Score
from icscm.tables.columns import Levels, count_rows, find_levels, is_dask, read_column, take_rows
from icscm.tables.labels import encode_environments, take_environments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNDEFINED = Score(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Performance:
    """Scores of a model and of the majority-class baseline in one environment, or overall.

    Attributes
    ----------
    environment, n_samples, n_positive : label or None, int, int
        None for all samples; rows, and those of the positive class.
    is_new : bool or None
        Whether the environment did not occur in training; None if unknown.
    scores, baseline : dict of Score or None, by the names of `icscm.studies.scores.TITLES`
        Of the model and of the majority-class baseline; None where a metric is undefined.
    """

    environment: Any
    n_samples: int
    n_positive: int
    is_new: bool | None
    scores: dict[str, Score | None]
    baseline: dict[str, Score | None]

    def get_errors(self) -> tuple[Score, Score]:
        """The error of the model and that of the baseline."""
        return self.scores["error"] or _UNDEFINED, self.baseline["error"] or _UNDEFINED


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The performance of a model on new rows; see `evaluate`. Displayed in notebooks.

    Attributes
    ----------
    model, classes : str, tuple of two labels
        The rule, or the name of the classifier; the second class is the positive one.
    baseline, baseline_from : label, str
        The class that the majority-class baseline predicts, and whether it is the majority in
        `"training"` or, where that is unknown, in `"these data"`.
    verdict, p_value : str, float
        `"better"` than the baseline, `"not shown to be better"` or `"no better"`, by the errors
        and McNemar's exact test of their difference (level 0.05); with groups, the test of the
        groups' sums.
    overall, environments : Performance, tuple of Performance
        Of all rows, and of each environment; empty where none were given.
    leaves : tuple of LeafCalibration
        Of rule sets and trees; empty for other models.
    notes : tuple of str
        Remarks: new environments, absent classes, values that did not occur in training.
    target, environment, data : str or None
        Names of label, environments and rows.
    """

    model: str
    classes: tuple[Any, Any]
    baseline: Any
    baseline_from: str
    verdict: str
    p_value: float
    overall: Performance
    environments: tuple[Performance, ...] = ()
    leaves: tuple[LeafCalibration, ...] = ()
    notes: tuple[str, ...] = ()
    target: str | None = None
    environment: str | None = None
    data: str | None = None

    @property
    def headline(self) -> str:
        """The verdict in a sentence or two."""
        error, other = self.overall.get_errors()
        content = {"auc": self.overall.scores["auc"], "always": self._name(self.baseline)}
        return write_text("evaluation", found=self, error=error, other=other, **content)

    def _name(self, label: Any) -> str:
        return f"{as_text(self.target)} = " * (self.target is not None) + as_text(label)

    def to_frame(self) -> pd.DataFrame:
        """A row for all samples and one for each environment.

        Returns
        -------
        pandas.DataFrame
            `error`, `error_low`, `error_high`, `error_baseline` and so on for each metric; NaN
            where it is undefined.
        """
        rows, places = [], (self.overall, *self.environments)
        for place in places:
            names = "environment", "n_samples", "n_positive", "is_new"
            row: Plain = {name: getattr(place, name) for name in names}
            for name in TITLES:
                found, other = (s[name] or _UNDEFINED for s in (place.scores, place.baseline))
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
                row[f"{name}_baseline"] = other.value
            rows.append(row)
        # as objects: None among numbers would turn them to floats
        labels = pd.Series([each.environment for each in places], dtype=object)
        return pd.DataFrame(rows).assign(environment=labels)

    def to_dict(self) -> Plain:
        """The whole evaluation.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        own = {"headline": self.headline, **asdict(self), "positive": self._name(self.classes[1])}
        own |= {"measures": TITLES, "correction": "holm", "alpha": metrics.ALPHA}
        return make_plain(own, str)  # type: ignore[no-any-return]

    def plot(self) -> Figure:
        """The error in each environment, and each leaf's rate with that of training.

        Returns
        -------
        matplotlib.figure.Figure
            Dots with 95% intervals; open circles are the baseline's error and expected rates.
        """
        return draw_validation(self.to_dict())

    def to_html(self) -> str:
        """A page with all results.

        Returns
        -------
        str
            HTML that opens offline, with nothing else needed.
        """
        return render_page_of(self.to_dict())

    def __repr__(self) -> str:
        return render_text(self.to_dict())

    def _repr_html_(self) -> str:
        return make_frame(self.headline, self.to_html())


def evaluate(
    model: Any, X: Any, y: Any, environments: Any = None, groups: Any = None
) -> Evaluation:
    """Evaluate a fitted model on new rows (external validation).

    Parameters
    ----------
    model : SavedModel, SCMClassifier, ICSCMClassifier or any classifier
        Fitted, for two classes. Without `predict_proba`, AUC, Brier score and log loss are
        undefined. With a `SavedModel` of `icscm fit`, environments are merged and excluded as
        they were for training.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The new rows, as for the model's `predict`.
    y : array of shape (n_samples,)
        Their true labels, among the model's classes; one class alone is allowed.
    environments : array of shape (n_samples,), optional
        The environment of each row; they need not occur in the training data.
    groups : array of shape (n_samples,), str or list of str, optional
        Rows that belong together, such as those of a patient. Intervals and tests then treat
        groups as independent, not rows.

    Returns
    -------
    Evaluation
        Scores with 95% intervals and those of the majority-class baseline, overall and for each
        environment, and the calibration of each leaf of our models, with `to_frame()`, `plot()`
        and `to_html()`.

    Raises
    ------
    IcscmError
        If y holds labels that are not classes of the model, lengths differ, or there is no row.

    Examples
    --------
    >>> from icscm import ICSCMClassifier, evaluate
    >>> from icscm.datasets import make_conjunction
    >>> old, new = make_conjunction(random_state=1), make_conjunction(random_state=2)
    >>> learner = ICSCMClassifier().fit(old.X, old.y, environments=old.environments)
    >>> found = evaluate(learner, new.X, new.y, new.environments)
    >>> found.verdict, [each.has_moved for each in found.leaves]
    ('better', [False, False, False])
    """
    own, classes, known, settings = _open_model(model)
    X, environments = take_environments(X, environments)
    X, groups = take_environments(X, groups, "groups")
    X, is_positive, numbers, labels, together, notes = _read_rows(
        X, _read_labels(X, y, classes), environments, groups, settings
    )
    predicted, probability, leaves, unusual = _predict(model, own, X, classes, settings)
    rate = float(is_positive.mean())
    majority, name = int(rate > 0.5), type(model).__name__
    if own is not None:
        bare = own.make_baseline()
        majority, rate = int(bare.leaf_verdicts[0]), float(bare.leaf_probabilities()[0])
        name = as_text(own) if own.kind in CHAINS else describe_size(own)

    def score(label: Any, rows: Any) -> Performance:
        truth, p = is_positive[rows], None if probability is None else probability[rows]
        n, own = len(truth), None if together is None else together[rows]
        scores = metrics.compute_scores(truth, predicted[rows], p, own)
        baseline = metrics.compute_scores(truth, np.full(n, majority), np.full(n, rate), own)
        is_new = None if known is None or label is None else make_label(label) not in known
        return Performance(label, n, int(truth.sum()), is_new, scores, baseline)

    places = [score(label, np.flatnonzero(numbers == k)) for k, label in enumerate(labels)]
    # rows without environments are treated as one new environment
    new = [(k, each.environment) for k, each in enumerate(places) if each.is_new]
    new = new if labels else [(0, None)]
    of_rows = write_lines(
        "evaluation_notes",
        only=classes[int(is_positive[0])] if is_positive.all() or not is_positive.any() else None,
        places=places,
        single=[each for each in places if each.n_positive in (0, each.n_samples)],
        worse=[e for e in places if e.get_errors()[0].value >= e.get_errors()[1].value],
    )
    wrong = predicted != is_positive, is_positive != majority
    verdict, p_value = metrics.compare_errors(*wrong, together)
    rates = is_positive, numbers, new, together
    return Evaluation(
        model=name,
        classes=classes,
        baseline=classes[majority],
        baseline_from="these data" if own is None else "training",
        verdict=verdict,
        p_value=p_value,
        overall=score(None, slice(None)),
        environments=tuple(places),
        leaves=() if leaves is None else metrics.calibrate(own, leaves, *rates),
        notes=(*notes, *of_rows, *unusual),
        target=_get_name(y),
        environment=_get_name(environments),
    )


def _read_rows(
    X: Any, is_positive: BoolArray, environments: Any, groups: Any, settings: dict[str, Any]
) -> tuple[Any, BoolArray, IntArray, tuple[Any, ...], IntArray | None, list[str]]:
    """Features, labels, environments and groups of the rows that are not excluded, and notes."""
    numbers, labels, notes = np.zeros(len(is_positive), dtype=np.int64), tuple[Any, ...](), []
    together: IntArray | None = None
    if groups is not None:
        together, _ = encode_environments(groups, len(is_positive), what="groups")
    if environments is not None:
        numbers, labels = _read_environments(environments, len(is_positive), settings)
    if (numbers < 0).any():
        kept = np.flatnonzero(numbers >= 0)
        n_excluded = count(len(numbers) - len(kept), "sample")
        notes.append(f"Excluded: {n_excluded} of environments that were excluded in training.")
        X, is_positive, numbers = take_rows(X, kept), is_positive[kept], numbers[kept]
        together = None if together is None else together[kept]
    if together is not None:
        n_groups = count(len(np.unique(together)), "group")
        notes.append(f"Intervals and tests are those of {n_groups} of rows, not of single rows.")
    return X, is_positive, numbers, labels, together, notes


def _open_model(model: Any) -> tuple[Any, tuple[Any, Any], set[Any] | None, dict[str, Any]]:
    """The tree or forest (None for other classifiers), classes, environments and settings.

    The environments are those of training, as a model file holds them; the settings are those with
    which `icscm fit` read its table.
    """
    if isinstance(model, SavedModel):
        known = None if model.environments is None else {*model.environments}
        return model.model, model.classes, known, get_table_settings(model)
    is_ours = hasattr(model, "fit_counts")
    if is_ours:
        check_fitted(model)
    elif not hasattr(model, "classes_") or not hasattr(model, "predict"):
        raise IcscmError(
            "model must be a fitted classifier or a model read by icscm.load; "
            f"{type(model).__name__} has no classes or does not predict"
        )
    classes = np.asarray(model.classes_).tolist()
    if len(classes) != 2:
        raise IcscmError(
            f"model has {len(classes)} class{'es' * (len(classes) != 1)}; only classifiers of two "
            "can be evaluated"
        )
    labels = model.environments_ if is_ours else None
    known = None if labels is None else {make_label(each) for each in labels}
    return model.model_ if is_ours else None, (classes[0], classes[1]), known, {}


def _read_labels(X: Any, y: Any, classes: Sequence[Any]) -> BoolArray:
    """Which rows are positive."""
    if is_dask(X):
        raise IcscmError("X is a Dask collection; evaluate needs its rows in memory: X.compute()")
    n_rows = count_rows(X)
    if not n_rows:
        raise IcscmError("X has no rows; there is nothing to evaluate the model on")
    codes, labels = encode_environments(y, n_rows, what="y")
    unknown = [repr(label) for label in labels if not any(label == each for each in classes)]
    if unknown:
        raise IcscmError(
            Parameter("y"),
            f" holds labels that are not among the model's classes ({classes[0]!r} and "
            f"{classes[1]!r}): {shorten_list(unknown)}; drop these rows, or give the labels "
            "as they were in training",
        )
    return np.array([label == classes[1] for label in labels])[codes]


def _read_environments(
    environments: Any, n_rows: int, settings: dict[str, Any]
) -> tuple[IntArray, tuple[Any, ...]]:
    """As `encode_environments`, merged and excluded as `icscm fit` did; excluded rows have -1."""
    numbers, labels = encode_environments(environments, n_rows)
    options = [settings.get(name) for name in ("exclude_environment", "merge_environments")]
    names = [[e for e in o if isinstance(e, str)] if isinstance(o, list) else [] for o in options]
    renamed = find_renamed(labels, "", *names, may_lack=True)
    if not renamed:
        return numbers, labels
    kept = [k for k, label in enumerate(labels) if renamed[label] is not None]
    if not kept:
        raise IcscmError("all rows are in environments that were excluded in training")
    codes, labels = encode_environments([renamed[labels[k]] for k in kept], len(kept))
    number_of = np.full(len(renamed), -1)
    number_of[kept] = codes
    return number_of[numbers], labels


def _predict(
    model: Any, own: Any, X: Any, classes: Sequence[Any], settings: dict[str, Any]
) -> tuple[BoolArray, FloatArray | None, IntArray | None, list[str]]:
    """Predictions, probabilities, leaves of a tree, and notes on unusual values."""
    if own is None:
        chances = model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else None
        return np.asarray(model.predict(X)) == classes[1], chances, None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IcscmWarning)
        rows = model._check_rows(X)
        if isinstance(own, Forest):
            (predicted, probability, _), leaves = own.decide(rows), None
        else:
            leaves = own.find_leaves(rows)
            predicted, probability = own.leaf_verdicts[leaves], own.leaf_probabilities()[leaves]
    notes = [str(each.message) for each in caught if issubclass(each.category, IcscmWarning)]
    for each in caught:
        if not issubclass(each.category, IcscmWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    levels = settings.get("levels")
    notes += _note_levels(own.rules, rows, levels if isinstance(levels, dict) else {})
    return predicted, probability, leaves, list(dict.fromkeys(notes))


def _note_levels(rules: Sequence[Rule], X: Any, training: dict[Any, Any]) -> Iterator[str]:
    """Levels of rules that no row has, and levels that did not occur in training.

    Often these are different spellings of one level.
    """
    categories = [rule for rule in rules if isinstance(rule, CategoryRule)]
    for feature, rule in {rule.feature: rule for rule in categories}.items():
        column = read_column(X, rule.column, rule.name)
        if not isinstance(column, Levels):
            continue
        used = [each.levels for each in categories if each.feature == feature]
        absent = [levels[0] for levels in used if not find_levels(column, levels).any()]
        if absent:
            yield (
                f"Column {feature!r} does not contain {_list_levels(absent)}, which the rules use; "
                f"it contains {_list_levels(column.levels) or 'no value'}."
            )
        seen = training.get(feature)
        if isinstance(seen, list):
            known = [each for each in seen if isinstance(each, str | int | float)]
            is_new = ~find_levels(column, known)
            n_rows = int(np.append(is_new, False)[column.codes].sum())
            new = [level for level, each in zip(column.levels, is_new, strict=True) if each]
            if n_rows:
                yield (
                    f"Column {feature!r} contains levels that did not occur in training, in "
                    f"{count(n_rows, 'row')}: {_list_levels(new)}."
                )


def _list_levels(levels: Sequence[Any]) -> str:
    return shorten_list([format_level(level) for level in levels])


def _get_name(values: Any) -> str | None:
    """The name of a Series, or None."""
    name = getattr(values, "name", None)
    return None if name is None or callable(name) else str(name)
