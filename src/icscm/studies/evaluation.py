"""External validation: how a fitted model does on rows that it was not learned from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from icscm._types import BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError, IcscmWarning, Parameter
from icscm.formatting import as_text, count, format_level, shorten_list
from icscm.model.forest import Forest, Model, describe_size
from icscm.model.plain import make_plain
from icscm.model.rules import CategoryRule
from icscm.model.saved import SavedModel, get_table_settings, make_saved_model
from icscm.model.splits import CHAINS
from icscm.model.tree import Tree
from icscm.report.render import make_frame
from icscm.report.validation import draw_validation, render_page_of, render_text
from icscm.report.words import Plain, format_p, format_share
from icscm.studies.calibration import ALPHA, LeafCalibration, calibrate
from icscm.studies.scores import TITLES, Score, compute_scores
from icscm.tables.columns import Levels, count_rows, find_levels, is_dask, read_column
from icscm.tables.environments import encode_environments, take_environments

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

BETTER, UNCLEAR, NO_BETTER = "better", "not shown to be better", "no better"


@dataclass(frozen=True)
class Performance:
    """How a model does in one environment, or in all together, beside the constant.

    Attributes
    ----------
    environment : label or None
        None is all together.
    n_samples, n_positive : int
        Rows, and those of the positive class.
    is_new : bool or None
        Whether training knew no such environment; None where that is not known.
    scores, constant : dict of Score or None, by the names of `icscm.studies.scores.TITLES`
        Of the model, and of always saying the same; None where a measure has no value.
    """

    environment: Any
    n_samples: int
    n_positive: int
    is_new: bool | None
    scores: dict[str, Score | None]
    constant: dict[str, Score | None]

    def to_dict(self) -> Plain:
        """Plain values; a score is its value and the ends of its interval."""
        named = {"scores": _name_scores(self.scores), "constant": _name_scores(self.constant)}
        return make_plain({**vars(self), **named}, str)  # type: ignore[no-any-return]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How a model does on new rows; see `evaluate`. In a notebook it shows itself.

    Attributes
    ----------
    model : str
        The rule, or the classifier's name.
    classes : tuple of two labels
        The second is the positive one.
    constant, constant_from : label, str
        The class that is compared with, and whether it was the more frequent one in `"training"`
        or, where training is not known, in `"these data"`.
    verdict, p_value : str, float
        `"better"` than the constant, `"not shown to be better"` or `"no better"`, by their errors
        and McNemar's exact test whether one of them is wrong more often (level 0.05).
    overall : Performance
        Of all rows.
    environments : tuple of Performance
        One for each; empty where none were given.
    leaves : tuple of LeafCalibration
        Of our models; empty for other classifiers.
    notes : tuple of str
        What to keep in mind: unknown environments, absent classes, values never seen before.
    target, environment, data : str or None
        What label, environments and rows are called.
    """

    model: str
    classes: tuple[Any, Any]
    constant: Any
    constant_from: str
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
        """The truth in a sentence or two: better than the constant, or not."""
        saying = f"always saying {self._name(self.constant)}"
        error, other = self.overall.scores["error"], self.overall.constant["error"]
        assert error is not None and other is not None  # noqa: PT018 (there is a row)
        wrong = (
            f"wrong for {format_share(error.value)} of {count(self.overall.n_samples, 'sample')} "
            f"({format_share(error.low)} to {format_share(error.high)}), where the constant is "
            f"for {format_share(other.value)}"
        )
        if self.verdict == UNCLEAR:
            return f"Not shown to be better than {saying}: {wrong} (p = {format_p(self.p_value)})."
        if self.verdict == BETTER:
            return f"Better than {saying}: {wrong}."
        auc = self.overall.scores["auc"]
        if auc is None or auc.low <= 0.5:
            return f"No better than {saying}: {wrong}."
        return (
            f"No better than {saying}: {wrong}. It does rank samples better than chance, with "
            f"an AUC of {auc.value:.2f} ({auc.low:.2f} to {auc.high:.2f})."
        )

    def _name(self, label: Any) -> str:
        text = as_text(label)
        return text if self.target is None else f"{as_text(self.target)} = {text}"

    def to_frame(self) -> pandas.DataFrame:
        """A row for all together and one for each environment.

        Returns
        -------
        pandas.DataFrame
            `error`, `error_low`, `error_high`, `error_constant` and so on for each measure; NaN
            where one has no value.
        """
        import pandas

        places = (self.overall, *self.environments)
        frame = pandas.DataFrame([_flatten(each) for each in places])
        # as objects: None among numbers would turn them to floats
        labels = pandas.Series([each.environment for each in places], dtype=object)
        frame.insert(0, "environment", labels)
        return frame

    def to_dict(self) -> Plain:
        """All that was found.

        Returns
        -------
        dict
            Values that JSON knows.
        """
        leaves = [asdict(each) for each in self.leaves]
        own = {
            "headline": self.headline,
            **vars(self),
            "positive": self._name(self.classes[1]),
            "overall": self.overall.to_dict(),
            "environments": [each.to_dict() for each in self.environments],
            "leaves": leaves,
            "measures": TITLES,
            "correction": "holm",
            "alpha": ALPHA,
        }
        return make_plain(own, str)  # type: ignore[no-any-return]

    def plot(self) -> Figure:
        """The error in each environment, and each leaf's rate beside the one expected.

        Returns
        -------
        matplotlib.figure.Figure
            Dots with 95 % intervals; open marks are the constant's error and expected rates.
        """
        return draw_validation(self.to_dict())

    def to_html(self) -> str:
        """A page to read and to hand on.

        Returns
        -------
        str
            HTML that opens offline, with nothing beside it.
        """
        return render_page_of(self.to_dict())

    def __repr__(self) -> str:
        return render_text(self.to_dict())

    def _repr_html_(self) -> str:
        return make_frame(self.headline, self.to_html())


def evaluate(model: Any, X: Any, y: Any, environments: Any = None) -> Evaluation:
    """External validation: a fitted model on rows that it was not learned from.

    Parameters
    ----------
    model : SavedModel, SCMClassifier, ICSCMClassifier or any classifier of scikit-learn's kind
        A fitted one for two classes. Without `predict_proba` there is no AUC, Brier score or log
        loss.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The new rows, as the model's `predict` takes them.
    y : array of shape (n_samples,)
        Their true labels, among the model's classes; one class alone is allowed.
    environments : array of shape (n_samples,), optional
        Where each row comes from; the model need not know them.

    Returns
    -------
    Evaluation
        Scores with 95 % intervals beside those of the constant, in all and for each environment;
        for our models the calibration of each leaf. `to_frame()`, `plot()` and `to_html()` show it.

    Raises
    ------
    IcscmError
        If y holds labels that the model does not know, lengths differ, or there is no row.

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
    judged, classes = _open_model(model)
    X, environments = take_environments(X, environments)
    n_rows = _count_samples(X)
    is_positive, numbers, labels = _read_labels(y, environments, n_rows, classes)
    said, notes = _ask(judged, X, classes)
    predicted, probability, leaves = said
    rules = judged.model if isinstance(judged, SavedModel) else None
    constant, rate = _find_constant(rules, is_positive)
    always = np.full(n_rows, constant), np.full(n_rows, rate)
    known = judged.environments if isinstance(judged, SavedModel) else None

    def judge(label: Any, rows: Any, is_new: bool | None = None) -> Performance:
        truth, p = is_positive[rows], None if probability is None else probability[rows]
        scores = compute_scores(truth, predicted[rows], p)
        alike = compute_scores(truth, always[0][rows], always[1][rows])
        return Performance(label, len(truth), int(truth.sum()), is_new, scores, alike)

    places = []
    for k, label in enumerate(labels):
        is_new = None if known is None else not any(label == each for each in known)
        places.append(judge(label, np.flatnonzero(numbers == k), is_new))
    # rows that name no environment are taken for one that training did not see
    new = [(k, each.environment) for k, each in enumerate(places) if each.is_new]
    new = new if environments is not None else [(0, None)]
    verdict, p_value = _compare(predicted != is_positive, always[0] != is_positive)
    return Evaluation(
        model=type(model).__name__ if rules is None else _name_model(judged),
        classes=classes,
        constant=classes[constant],
        constant_from="these data" if rules is None else "training",
        verdict=verdict,
        p_value=p_value,
        overall=judge(None, slice(None)),
        environments=tuple(places),
        leaves=(
            calibrate(rules, leaves, is_positive, numbers, new) if isinstance(rules, Tree) else ()
        ),
        notes=(*_note_rows(is_positive, classes, places), *notes),
        target=_get_name(y),
        environment=_get_name(environments),
    )


def _name_model(judged: SavedModel) -> str:
    """The rule; a tree would not fit a line."""
    return as_text(judged) if judged.model.kind in CHAINS else describe_size(judged.model)


def _open_model(model: Any) -> tuple[Any, tuple[Any, Any]]:
    """What predicts, and its two classes; ours as a `SavedModel`, which tells leaves, too."""
    if hasattr(model, "fit_counts"):
        model = make_saved_model(model)
    if isinstance(model, SavedModel):
        return model, model.classes
    classes = getattr(model, "classes_", None)
    if classes is None or not hasattr(model, "predict"):
        raise IcscmError(
            f"model must be a fitted classifier or what icscm.load gives; {type(model).__name__} "
            "has no classes or does not predict"
        )
    known = np.asarray(classes).tolist()
    if len(known) != 2:
        raise IcscmError(
            f"model knows {len(known)} class{'es' * (len(known) != 1)}; only classifiers of two "
            "can be evaluated"
        )
    return model, (known[0], known[1])


def _count_samples(X: Any) -> int:
    if is_dask(X):
        raise IcscmError("X is a Dask collection; evaluate needs its rows here: X.compute()")
    n_rows = count_rows(X)
    if not n_rows:
        raise IcscmError("X has no rows; there is nothing to evaluate the model on")
    return n_rows


def _read_labels(
    y: Any, environments: Any, n_rows: int, classes: Sequence[Any]
) -> tuple[BoolArray, IntArray, tuple[Any, ...]]:
    """Whether each row is positive, the number of its environment, and the environments."""
    codes, labels = encode_environments(y, n_rows, what="y")
    unknown = [repr(label) for label in labels if not any(label == each for each in classes)]
    if unknown:
        raise IcscmError(
            Parameter("y"),
            f" holds labels that are not among the model's classes ({classes[0]!r} and "
            f"{classes[1]!r}): {shorten_list(unknown)}; leave these rows out, or give the labels "
            "as they were in training",
        )
    is_positive = np.array([label == classes[1] for label in labels])[codes]
    if environments is None:
        return is_positive, np.zeros(n_rows, dtype=np.int64), ()
    return is_positive, *encode_environments(environments, n_rows)


class _Said(NamedTuple):
    """What a model says of each row; leaves are those of our models only."""

    predicted: BoolArray
    probability: FloatArray | None
    leaves: Any


def _ask(judged: Any, X: Any, classes: Sequence[Any]) -> tuple[_Said, list[str]]:
    """Predictions, and what was odd about the values they come from."""
    if not isinstance(judged, SavedModel):
        predicted = np.asarray(judged.predict(X)) == classes[1]
        has_chances = hasattr(judged, "predict_proba")
        return _Said(predicted, judged.predict_proba(X)[:, 1] if has_chances else None, None), []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", IcscmWarning)
        said = _ask_saved(judged, X)
    for each in told:
        if not issubclass(each.category, IcscmWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    notes = [str(each.message) for each in told if issubclass(each.category, IcscmWarning)]
    return said, [*dict.fromkeys([*notes, *_note_levels(judged, X)])]


def _ask_saved(judged: SavedModel, X: Any) -> _Said:
    model = judged.model
    if isinstance(model, Forest):  # which has no leaves of its own
        prediction, probability, _ = judged.decide(X)
        return _Said(prediction == judged.classes[1], probability, None)
    leaves = judged.find_leaves(X)
    return _Said(model.leaf_verdicts[leaves], model.leaf_probabilities()[leaves], leaves)


def _note_levels(saved: SavedModel, X: Any) -> Iterator[str]:
    """Levels that training never saw, where it says which it did, and those that no row has now.

    Often they are only spelled otherwise.
    """
    told = get_table_settings(saved).get("levels")
    rules: dict[str | int, list[CategoryRule]] = {}
    for rule in saved.model.rules:
        if isinstance(rule, CategoryRule):
            rules.setdefault(rule.feature, []).append(rule)
    for feature, asking in rules.items():
        column = read_column(X, asking[0].column, asking[0].name)
        if not isinstance(column, Levels):
            continue
        absent = [r.levels[0] for r in asking if not find_levels(column, r.levels).any()]
        if absent:
            there = _list_levels(column.levels)
            yield (
                f"Column {feature!r} never holds {_list_levels(absent)}, which rules ask for; it "
                f"holds {there or 'nothing'}."
            )
        seen = told.get(feature) if isinstance(told, dict) else None
        if isinstance(seen, list):
            plain = [level for level in seen if isinstance(level, str | int | float)]
            is_new = ~find_levels(column, plain)
            n_rows = int(np.append(is_new, False)[column.codes].sum())
            if n_rows:
                new = [level for level, each in zip(column.levels, is_new, strict=True) if each]
                yield (
                    f"Column {feature!r} holds levels never seen in training, in "
                    f"{count(n_rows, 'row')}: {_list_levels(new)}."
                )


def _list_levels(levels: Sequence[Any]) -> str:
    return shorten_list([format_level(level) for level in levels])


def _find_constant(rules: Model | None, is_positive: BoolArray) -> tuple[int, float]:
    """The class that was more frequent, and the chance of the positive one."""
    if rules is not None:
        bare = rules.make_baseline()
        return int(bare.leaf_verdicts[0]), float(bare.leaf_probabilities()[0])
    rate = float(is_positive.mean())
    return int(rate > 0.5), rate


def _compare(wrong: BoolArray, constant_wrong: BoolArray) -> tuple[str, float]:
    """Whether the model beats the constant, by the rows in which only one of them is wrong."""
    only_model = int((wrong & ~constant_wrong).sum())
    only_constant = int((constant_wrong & ~wrong).sum())
    n = only_model + only_constant
    p_value = float(binomtest(only_model, n).pvalue) if n else 1.0
    if only_model >= only_constant:
        return NO_BETTER, p_value
    return BETTER if p_value <= ALPHA else UNCLEAR, p_value


def _note_rows(
    is_positive: BoolArray, classes: Sequence[Any], places: Sequence[Performance]
) -> Iterator[str]:
    """Absent classes and unknown environments."""
    if is_positive.all() or not is_positive.any():
        yield (
            f"All samples are {as_text(classes[int(is_positive[0])])}: what needs both classes "
            "(balanced accuracy, AUC) has no value."
        )
    else:
        lone = [each for each in places if each.n_positive in (0, each.n_samples)]
        if lone:
            names = shorten_list([as_text(each.environment) for each in lone])
            yield f"One class only, so no AUC or balanced accuracy: {names}."
    worse = [each for each in places if not _is_below(each.scores, each.constant)]
    if worse and len(places) > 1:
        names = shorten_list([as_text(each.environment) for each in worse])
        yield f"In {len(worse)} of {len(places)} environments the constant errs no more: {names}."
    new = [each for each in places if each.is_new]
    if new:
        names = shorten_list([as_text(each.environment) for each in new])
        n_new = sum(each.n_samples for each in new)
        yield f"Never seen in training, {count(n_new, 'sample')}: {names}."


def _is_below(scores: dict[str, Score | None], others: dict[str, Score | None]) -> bool:
    one, other = scores["error"], others["error"]
    return one is not None and other is not None and one.value < other.value


def _get_name(values: Any) -> str | None:
    """That of a Series."""
    name = getattr(values, "name", None)
    return None if name is None or callable(name) else str(name)


def _name_scores(scores: dict[str, Score | None]) -> Plain:
    return {name: score and score._asdict() for name, score in scores.items()}


def _flatten(place: Performance) -> Plain:
    """A line of the frame."""
    line: Plain = {
        "n_samples": place.n_samples,
        "n_positive": place.n_positive,
        "is_new": place.is_new,
    }
    for name, score in place.scores.items():
        value, low, high = score or (None,) * 3
        other = place.constant[name]
        constant = None if other is None else other.value
        parts = {"": value, "_low": low, "_high": high, "_constant": constant}
        line |= {f"{name}{end}": np.nan if x is None else x for end, x in parts.items()}
    return line
