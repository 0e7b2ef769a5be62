"""Points scores: whole points for each column, and a risk for each total."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from icscm._lazy import special
from icscm._repr import Display, align
from icscm._types import BoolArray, FloatArray, IntArray
from icscm.exceptions import IcscmError
from icscm.formatting import count, format_name, format_number, shorten_list
from icscm.model.calibration import CalibratedModel, Decisions
from icscm.model.routes import Columns, name_unseen, read_columns
from icscm.model.rules import CategoryRule, MissingRule, Rule, ThresholdRule
from icscm.model.splits import LeafCounts, sum_leaves
from icscm.model.tree import Tree
from icscm.tables.columns import count_rows

# Totals in a line of the table of risks.
_N_TOTALS: Final = 10
# The largest total of points: a file must not require a table of risks larger than memory.
MAX_TOTAL: Final = 10_000


class Term(NamedTuple):
    """Points of the samples for which the rule is the first of its column that is true."""

    rule: Rule
    points: int


class PointsRow(NamedTuple):
    """A row of the printed table: the column, its value or values, and their points."""

    column: str
    value: str
    points: int


def find_max_total(terms: Sequence[Term]) -> int:
    """The largest total of points: the sum of the largest points of each column."""
    columns = groupby(terms, lambda term: term.rule.feature)
    return sum(max(points for _, points in own) for _, own in columns)


@dataclass(frozen=True, repr=False)
class Score(CalibratedModel):
    """Whole points for the values of some columns; their total gives the risk.

    Parameters
    ----------
    terms : tuple of Term
        Rules and their points, the terms of a column together. Of each column the first rule that
        is true counts.
    log_odds : tuple of float
        For each total, in a new environment; never decreasing.
    bounds : tuple of int
        The least total of each class of totals but the first.
    leaves : tuple of counts by (label, environment)
        Training samples of each class of totals.
    calibration, threshold : pair of floats, float or None
        As in `CalibratedModel`; the raw probability is expit(log_odds[total]).

    Examples
    --------
    >>> from icscm.model.rules import ThresholdRule
    >>> from icscm.model.score import Score, Term
    >>> rule = ThresholdRule(column=0, name="age", threshold=63, above=True)
    >>> terms = Term(rule, 2), Term(rule.negate(), 0)
    >>> print(Score(terms, (-2.0, -1.0, 0.0), (1,), (((5, 6), (0, 1)), ((1, 2), (3, 4)))))
    score of 1 column, 0 to 2 points
    column  value  points
    age     <= 63       0
            > 63        2
    total      0      1      2
    risk   11.9%  26.9%  50.0%
    """

    terms: tuple[Term, ...]
    log_odds: tuple[float, ...]
    bounds: tuple[int, ...]
    leaves: tuple[LeafCounts, ...]

    kind: ClassVar[str] = "score"
    # exact from classes, since no class holds totals of two verdicts
    count_contrary: ClassVar[Any] = Tree.count_contrary

    def __post_init__(self) -> None:
        super().__post_init__()
        if not max(self.bounds, default=0) <= self.max_total <= MAX_TOTAL:
            raise IcscmError(
                f"totals, and bounds of their classes, are at most {MAX_TOTAL:,} points"
            )
        rises = np.diff(self.log_odds)
        if len(self.log_odds) != self.max_total + 1 or not (
            np.isfinite(self.log_odds).all() and (rises >= 0).all()
        ):
            raise IcscmError("log_odds must have a number for each total, and must not fall")
        if len(self.leaves) != len(self.bounds) + 1 or [*self.bounds] != sorted({*self.bounds}):
            raise IcscmError("bounds of the classes of totals must rise, and each class has counts")

    def decide(self, X: Any) -> Decisions:
        """Prediction, risk and total of points for each row, in one pass.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        Decisions
            A tuple of three arrays: `prediction`, `probability`, `decided_by`, which names the
            columns that are missing.
        """
        columns, _ = read_columns(X, self.rules)
        totals = self._add(columns, count_rows(X))
        texts = np.array([f"total of {n}" for n in range(self.max_total + 1)], dtype=object)[totals]
        lacking = {r.feature: r.judge(columns[r.feature]) for r in self.missing_rules}
        rows = np.flatnonzero(np.logical_or.reduce([*lacking.values()]))
        if len(rows):
            texts[rows] = name_unseen(lacking, rows, self.averaged) + texts[rows]
        return Decisions(totals >= self.cut, self.compute_risks()[totals], texts)

    def add_points(self, X: Any) -> IntArray:
        """The total of points of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0 to `max_total`.
        """
        return self._add(read_columns(X, self.rules)[0], count_rows(X))

    def _add(self, columns: Columns, n_rows: int) -> IntArray:
        totals = np.zeros(n_rows, dtype=np.int64)
        for terms in self.list_columns():
            column = columns[terms[0].rule.feature]
            truths = [rule.judge(column) for rule, _ in terms]
            totals += np.select(truths, [points for _, points in terms], 0)
        return totals

    def find_leaves(self, X: Any) -> IntArray:
        """Number of the class of totals that each row falls in.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0, as in `leaves`.
        """
        return np.searchsorted(self.bounds, self.add_points(X), side="right")

    # --- content --------------------------------------------------------------------------------

    def list_columns(self) -> Iterator[list[Term]]:
        """The terms of each column.

        Yields
        ------
        list of Term
            In their order: the first that is true counts.
        """
        for _, terms in groupby(self.terms, lambda term: term.rule.feature):
            yield [*terms]

    @property
    def max_total(self) -> int:
        """The largest total of points."""
        return find_max_total(self.terms)

    def compute_risks(self) -> FloatArray:
        """The risk of each total, calibrated.

        Returns
        -------
        array of float
            From 0 points to `max_total`.
        """
        raw: FloatArray = special.expit(np.array(self.log_odds))
        return self.calibrate(raw.clip(1e-9, 1.0 - 1e-9))

    @property
    def cut(self) -> int:
        """The least total that is predicted positive; `max_total` + 1 where none is."""
        return int((~self.is_positive(self.compute_risks())).sum())

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the terms."""
        return tuple(rule for rule, _ in self.terms)

    @property
    def missing_rules(self) -> tuple[MissingRule, ...]:
        """For each column the rule that its value is missing."""
        return tuple(r for r in self.rules if isinstance(r, MissingRule) and r.is_missing)

    @property
    def averaged(self) -> set[str | int]:
        """Columns without a missing value in training, whose missing values get average points."""
        return {rule.feature for rule in self.rules if rule.is_unsure}

    def replace_rules(self, change: Callable[[Rule], Rule]) -> Self:
        """The same score with each rule changed.

        Parameters
        ----------
        change : callable
            From a rule to another.

        Returns
        -------
        Score
            With the same points.
        """
        return replace(self, terms=tuple(Term(change(rule), points) for rule, points in self.terms))

    def make_baseline(self) -> Tree:
        """The majority-class baseline.

        Returns
        -------
        Tree
            One leaf, in which the more likely class is predicted.
        """
        return Tree((), (sum_leaves(self.leaves),))

    @property
    def leaf_texts(self) -> tuple[str, ...]:
        """The totals of each class: `4 to 6 points`."""
        lows, highs = (0, *self.bounds), (*(each - 1 for each in self.bounds), self.max_total)
        pairs = zip(lows, highs, strict=True)
        return tuple(f"{a} to {b} points" if a < b else count(a, "point") for a, b in pairs)

    def leaf_probabilities(self) -> FloatArray:
        """The risk in the middle of each class of totals.

        Returns
        -------
        array of float
            One for each class.
        """
        edges, risks = np.array([0, *self.bounds, self.max_total + 1]), self.compute_risks()
        return np.asarray(risks[(edges[:-1] + edges[1:] - 1) // 2])

    @property
    def leaf_verdicts(self) -> BoolArray:
        """Whether the samples of each class are predicted positive."""
        return self.is_positive(self.leaf_probabilities())

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values.

        Returns
        -------
        dict
            What a model file holds.
        """
        fields = {
            "kind": self.kind,
            "terms": [{"rule": rule.to_dict(), "points": points} for rule, points in self.terms],
            "log_odds": [*self.log_odds],
            "bounds": [*self.bounds],
            "leaves": [[list(row) for row in leaf] for leaf in self.leaves],
        }
        return fields | self._list_fields()

    def __len__(self) -> int:
        return sum(1 for _ in self.list_columns())

    # --- text -----------------------------------------------------------------------------------

    def list_rows(self) -> list[PointsRow]:
        """The table of points as it is printed.

        Returns
        -------
        list of PointsRow
            Values in ascending order, levels with the same points in one row, missing ones last.
        """
        rows = []
        for terms in self.list_columns():
            found: dict[Any, list[str]] = {}
            for place, (rule, points) in reversed([*enumerate(terms)]):
                is_level = isinstance(rule, CategoryRule) and rule.equal
                text = _describe_values(rule, terms[place - 1].rule if place else None)
                if isinstance(rule, MissingRule) and rule.feature in self.averaged:
                    text += " (average)"
                found.setdefault((points, is_level or place), []).insert(0, text)
            name = format_name(terms[0].rule.feature)
            rows += [PointsRow(name, shorten_list(each), key[0]) for key, each in found.items()]
        return rows

    def __str__(self) -> str:
        line, columns, _ = self._display()
        if not self.terms:
            return line
        rows = [(*row[:2], str(row.points)) for row in self.list_rows()]
        repeated = {k for k in range(1, len(rows)) if rows[k][0] == rows[k - 1][0]}
        shown = [("" if k in repeated else a, b, c) for k, (a, b, c) in enumerate(rows)]
        risks, lines = self.compute_risks().tolist(), []
        for start in range(0, len(risks), _N_TOTALS):
            part = risks[start : start + _N_TOTALS]
            totals = map(str, range(start, start + len(part)))
            lines += align([["total", *totals], ["risk", *(f"{p:.1%}" for p in part)]], n_text=1)
        head = [each.removeprefix(">") for each in columns]
        return "\n".join([line, *align([head, *shown], n_text=2), *lines])

    def _display(self) -> Display:
        """A row for each value of a column and for each class of totals."""
        if not self.terms:
            return Display(
                f"no term was found (risk {self.compute_risks()[0]:.1%} for every sample)"
            )
        rows = [(*row[:2], str(row.points)) for row in self.list_rows()]
        risks, edges = self.compute_risks(), (0, *self.bounds, self.max_total + 1)
        for text, low, end in zip(self.leaf_texts, edges[:-1], edges[1:], strict=True):
            rows.append(("total", text, f"risk {risks[low]:.1%} to {risks[end - 1]:.1%}"))
        line = f"score of {count(len(self), 'column')}, 0 to {count(self.max_total, 'point')}"
        return Display(line, ("column", "value", ">points"), rows)


def _describe_values(rule: Rule, above: Rule | None) -> str:
    """The values of a row: `> 50 to 60`, a level, `other`, `missing`."""
    if isinstance(rule, MissingRule):
        return "missing"
    if isinstance(rule, CategoryRule):
        return rule._format_condition().removeprefix("== ") if rule.equal else "other"
    text = rule._format_condition()
    if isinstance(rule, ThresholdRule) and rule.above and isinstance(above, ThresholdRule):
        text += f" to {format_number(above.threshold)}"
    return text
