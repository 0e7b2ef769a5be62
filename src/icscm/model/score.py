"""Points scores: whole points for each column, and a risk for each total.

    total = sum over columns of the points of the first term that is true
    risk  = expit(a + b log_odds[total])        a, b: the calibration

A *term* is a rule on a column with its points. Totals next to each other form a *class of totals*,
of which the rows in training are known; classes are the leaves of a score.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
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
# Risks are at least this, and as far from 1: their log odds are finite.
_LOWEST_RISK: Final = 1e-9
# The largest total of points: a file must not require a table of risks larger than memory.
MAX_TOTAL: Final = 10_000


class Term(NamedTuple):
    """Points of the rows for which the rule is the first of its column that is true."""

    rule: Rule
    points: int


class PointsRow(NamedTuple):
    """A row of the printed table: the column, its value or values, and their points."""

    column: str
    value: str
    points: int


def find_max_total(terms: Sequence[Term]) -> int:
    """Find the largest total of points: the sum of the largest points of each column."""
    return sum(max(term.points for term in column) for column in group_by_column(terms))


def group_by_column(terms: Sequence[Term]) -> Iterator[list[Term]]:
    """Group terms by column; those of a column come together."""
    for _, terms_of_column in groupby(terms, lambda term: term.rule.feature):
        yield list(terms_of_column)


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
        The smallest total of each class of totals but the first.
    leaves : tuple of counts by (outcome, environment)
        Training rows of each class of totals.
    calibration, threshold, training_values : pair of floats, float or None, tuple
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
    # The method of a tree: it needs leaves and their verdicts only, and no class of totals holds
    # two verdicts.
    count_contrary: ClassVar[Any] = Tree.count_contrary

    def __post_init__(self) -> None:
        """Raise unless there is a risk for each total, and counts for each class of totals."""
        super().__post_init__()
        if not max(self.bounds, default=0) <= self.max_total <= MAX_TOTAL:
            raise IcscmError(
                f"totals, and bounds of their classes, are at most {MAX_TOTAL:,} points"
            )

        has_all_totals = len(self.log_odds) == self.max_total + 1
        are_finite = bool(np.isfinite(self.log_odds).all())
        log_odds_fall = bool((np.diff(self.log_odds) < 0).any())
        if not has_all_totals or not are_finite or log_odds_fall:
            raise IcscmError("log_odds must have a number for each total, and must not fall")

        has_all_classes = len(self.leaves) == len(self.bounds) + 1
        bounds_rise = list(self.bounds) == sorted(set(self.bounds))
        if not has_all_classes or not bounds_rise:
            raise IcscmError("bounds of the classes of totals must rise, and each class has counts")

    def decide(self, X: Any) -> Decisions:
        """Decide on each row by its total of points, in one pass.

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
        columns, _ = read_columns(X, self.rules, self.training_values)
        totals = self._add(columns, count_rows(X))
        texts_of_totals = [f"total of {total}" for total in range(self.max_total + 1)]
        texts = np.array(texts_of_totals, dtype=object)[totals]

        # Rows that lack a value have points for that, and their text says what is missing.
        is_missing = {
            rule.feature: rule.judge(columns[rule.feature]) for rule in self.missing_rules
        }
        incomplete_rows = np.flatnonzero(np.logical_or.reduce(list(is_missing.values())))
        if len(incomplete_rows):
            names = name_unseen(is_missing, incomplete_rows, self.averaged)
            texts[incomplete_rows] = names + texts[incomplete_rows]
        return Decisions(
            prediction=totals >= self.cut,
            probability=self.compute_risks()[totals],
            decided_by=texts,
        )

    def add_points(self, X: Any) -> IntArray:
        """Add up the points of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of int, of shape (n_samples,)
            From 0 to `max_total`.
        """
        columns, _ = read_columns(X, self.rules, self.training_values)
        return self._add(columns, count_rows(X))

    def _add(self, columns: Columns, n_rows: int) -> IntArray:
        """Add up the points of each row, given the columns that have some."""
        totals = np.zeros(n_rows, dtype=np.int64)
        for terms in self.list_columns():
            column = columns[terms[0].rule.feature]
            truths = [term.rule.judge(column) for term in terms]
            # `np.select` takes the first that is true
            totals += np.select(truths, [term.points for term in terms], 0)
        return totals

    def find_leaves(self, X: Any) -> IntArray:
        """Find the class of totals that each row falls in.

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
        """List the terms column by column.

        Yields
        ------
        list of Term
            In their order: the first that is true counts.
        """
        yield from group_by_column(self.terms)

    @property
    def max_total(self) -> int:
        """The largest total of points."""
        return find_max_total(self.terms)

    def compute_risks(self) -> FloatArray:
        """Compute the risk of each total, calibrated.

        Returns
        -------
        array of float
            From 0 points to `max_total`.
        """
        raw: FloatArray = special.expit(np.array(self.log_odds))
        return self.calibrate(raw.clip(_LOWEST_RISK, 1.0 - _LOWEST_RISK))

    @property
    def cut(self) -> int:
        """The smallest total that is predicted positive; `max_total` + 1 where none is."""
        is_positive = self.is_positive(self.compute_risks())
        return int(np.count_nonzero(~is_positive))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the terms."""
        return tuple(term.rule for term in self.terms)

    @property
    def missing_rules(self) -> tuple[MissingRule, ...]:
        """For each column the rule that its value is missing."""
        return tuple(
            rule for rule in self.rules if isinstance(rule, MissingRule) and rule.is_missing
        )

    @property
    def averaged(self) -> set[str | int]:
        """Columns without a missing value in training, whose missing values get average points."""
        return {rule.feature for rule in self.rules if rule.is_unsure}

    def replace_rules(self, change: Callable[[Rule], Rule]) -> Self:
        """Return the same score with other rules.

        Parameters
        ----------
        change : callable
            From a rule to another.

        Returns
        -------
        Score
            With the same points.
        """
        terms = tuple(Term(rule=change(term.rule), points=term.points) for term in self.terms)
        return replace(self, terms=terms)

    def make_baseline(self) -> Tree:
        """Make the majority-class baseline.

        Returns
        -------
        Tree
            One leaf, in which the more likely class is predicted.
        """
        return Tree((), (sum_leaves(self.leaves),))

    @property
    def leaf_texts(self) -> tuple[str, ...]:
        """The totals of each class: `4 to 6 points`."""
        return tuple(
            f"{totals.lowest} to {totals.highest} points"
            if totals.lowest < totals.highest
            else count(totals.lowest, "point")
            for totals in self._list_classes()
        )

    def _list_classes(self) -> list["_ClassOfTotals"]:
        """List the classes of totals, in ascending order."""
        edges = (0, *self.bounds, self.max_total + 1)
        return [_ClassOfTotals(lowest=start, highest=end - 1) for start, end in pairwise(edges)]

    def leaf_probabilities(self) -> FloatArray:
        """Compute the risk in the middle of each class of totals.

        Returns
        -------
        array of float
            One for each class.
        """
        middle = [(totals.lowest + totals.highest) // 2 for totals in self._list_classes()]
        return np.asarray(self.compute_risks()[middle])

    @property
    def leaf_verdicts(self) -> BoolArray:
        """Whether the rows of each class are predicted positive."""
        return self.is_positive(self.leaf_probabilities())

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain values.

        Returns
        -------
        dict
            What a model file holds.
        """
        fields = {
            "kind": self.kind,
            "terms": [{"rule": term.rule.to_dict(), "points": term.points} for term in self.terms],
            "log_odds": [*self.log_odds],
            "bounds": [*self.bounds],
            "leaves": [[list(row) for row in leaf] for leaf in self.leaves],
        }
        return fields | self._list_fields()

    def __len__(self) -> int:
        return sum(1 for _ in self.list_columns())

    # --- text -----------------------------------------------------------------------------------

    def list_rows(self) -> list[PointsRow]:
        """List the table of points as it is printed.

        Returns
        -------
        list of PointsRow
            Values in ascending order, levels with the same points in one row, missing ones last.
        """
        return [row for terms in self.list_columns() for row in self._list_rows_of_column(terms)]

    def _list_rows_of_column(self, terms: Sequence[Term]) -> list[PointsRow]:
        """List the rows of one column, given its terms; levels with the same points share one.

        The first term that is true counts, so that terms on numbers come in descending order, and
        rows are printed from the last term to the first:

            terms    age > 60: 3    age > 50: 1    age <= 50: 0
            rows     <= 50    0
                     > 50 to 60    1
                     > 60    3
        """
        texts_of_rows: dict[_RowKey, list[str]] = {}
        for number in reversed(range(len(terms))):
            rule, points = terms[number]
            rule_before = terms[number - 1].rule if number > 0 else None
            text = _describe_values(rule, rule_before)
            if isinstance(rule, MissingRule) and rule.feature in self.averaged:
                text += " (average)"

            is_level = isinstance(rule, CategoryRule) and rule.equal
            row = _RowKey(points=points, number=None if is_level else number)
            texts_of_rows.setdefault(row, []).insert(0, text)

        name = format_name(terms[0].rule.feature)
        return [
            PointsRow(column=name, value=shorten_list(texts), points=row.points)
            for row, texts in texts_of_rows.items()
        ]

    def __str__(self) -> str:
        if not self.terms:
            return self._describe()
        return "\n".join([self._describe(), *self._write_points(), *self._write_risks()])

    def _write_points(self) -> list[str]:
        """Write the table of points; a column's name is written in its first row only."""
        table = [["column", "value", "points"]]
        previous_column = None
        for row in self.list_rows():
            name = "" if row.column == previous_column else row.column
            table.append([name, row.value, str(row.points)])
            previous_column = row.column
        return align(table, n_text=2)

    def _write_risks(self) -> list[str]:
        """Write the risk of each total, in tables of a few totals below each other."""
        risks = [f"{risk:.1%}" for risk in self.compute_risks().tolist()]
        totals = [str(total) for total in range(len(risks))]
        lines: list[str] = []
        for start in range(0, len(risks), _N_TOTALS):
            end = start + _N_TOTALS
            table = [["total", *totals[start:end]], ["risk", *risks[start:end]]]
            lines += align(table, n_text=1)
        return lines

    def _display(self) -> Display:
        """Show a row for each value of a column and for each class of totals."""
        if not self.terms:
            return Display(self._describe())
        risks = self.compute_risks()
        rows = [(row.column, row.value, str(row.points)) for row in self.list_rows()]
        for text, totals in zip(self.leaf_texts, self._list_classes(), strict=True):
            lowest_risk = risks[totals.lowest]
            highest_risk = risks[totals.highest]
            rows.append(("total", text, f"risk {lowest_risk:.1%} to {highest_risk:.1%}"))
        return Display(self._describe(), ("column", "value", ">points"), rows)

    def _describe(self) -> str:
        """Describe the score in a line."""
        if not self.terms:
            return f"no term was found (risk {self.compute_risks()[0]:.1%} for every sample)"
        n_columns = count(len(self), "column")
        return f"score of {n_columns}, 0 to {count(self.max_total, 'point')}"


class _ClassOfTotals(NamedTuple):
    """Totals next to each other, from the lowest to the highest."""

    lowest: int
    highest: int


class _RowKey(NamedTuple):
    """What tells the printed rows of a column apart.

    Levels with the same points share a row; every other term has one, by its number.
    """

    points: int
    number: int | None


def _describe_values(rule: Rule, rule_before: Rule | None) -> str:
    """Describe the values of a column that get the points of a rule, for the table of points.

    Such as `yes`, a level; `other`, all levels without points of their own; or `missing`. Of the
    rules on a column the first that is true gives the points. So after age > 60, whose rows have
    got theirs, the rule age > 50 is left with the values `> 50 to 60`.
    """
    if isinstance(rule, MissingRule):
        return "missing"
    if isinstance(rule, CategoryRule) and not rule.equal:
        return "other"

    condition = rule.format_condition()
    if isinstance(rule, CategoryRule):
        return condition.removeprefix("== ")  # a single level needs no sign
    if not isinstance(rule, ThresholdRule) or not rule.above:
        return condition

    if isinstance(rule_before, ThresholdRule):
        return f"{condition} to {format_number(rule_before.threshold)}"
    return condition
