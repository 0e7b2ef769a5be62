"""Plain tables of numbers on the card: binned there as the engine bins them.

    sampled values --to this memory--> thresholds --to the card--> bin numbers of all values

The thresholds are chosen here, by the engine's own functions, so that they are the same. What takes
time in a large table, to hash its rows and to compare its values, is done on the card.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import BINARY_LOOK_ROWS, CODE_DTYPE, MAX_NARROW_BINS, QUANTILE_SAMPLE
from icscm._types import BoolArray, FloatArray, IntArray
from icscm.engine import binning
from icscm.engine.binning import Binning, ColumnPlan, Extremes
from icscm.engine.sampling import choose_sample, is_sampled, make_salt
from icscm.engine.stores import Rows, Store
from icscm.engine.threads import divide_up, split_evenly
from icscm.sources.gpu.card import Card, check_room, choose_card, translate_card_errors
from icscm.sources.gpu.sending import send_plain
from icscm.sources.gpu.stores import CardCodes
from icscm.tables.coded import CodedTable
from icscm.tables.columns import is_on_card, open_on_card
from icscm.tables.errors import make_infinity_error, name_columns

# Sampled values that come back at a time for thresholds to be chosen.
_PLANNED_CELLS = 2**26
# What the card bins, by NumPy's names and torch's.
_FLOATS = ("float32", "float64", "torch.float32", "torch.float64")


@dataclass(frozen=True)
class CardValues:
    """A table's values by (column, row) on the card, finite but for NaN where one is missing."""

    card: Card
    values: Any
    has_missing: BoolArray

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.values.shape[1])

    def take(self, rows: IntArray) -> "CardValues":
        """Take some rows, or some several times."""
        values = self.values[:, self.card.send(rows)]
        return replace(self, values=values, has_missing=_find_missing(self.card, values))

    @translate_card_errors()
    def encode(
        self, position: NDArray[np.uint32], rows: Rows, max_thresholds: int, n_threads: int
    ) -> tuple[Binning, list[Store]]:
        """Choose thresholds and make stores: those of `icscm.engine.coding.encode` of these values.

        All columns are coded by thresholds from a sample. Those with values that the sample does
        not have are coded again, by thresholds from all rows.
        """
        check_room(self.card, self.values.size)
        row_of_sorted = self._invert(position)

        # A plan is complete for a column of which it has all values, not quantiles of a sample.
        sample_plan = self._plan_from_sample(max_thresholds)
        coded = self._code(sample_plan, row_of_sorted, rows)
        stores = coded.stores
        edges = list(sample_plan.edges)
        lowest = sample_plan.lowest.copy()
        highest = sample_plan.highest.copy()
        is_any_sampled = is_sampled(self.n_rows) and not sample_plan.is_complete.all()

        if len(coded.surprised) > 0:
            full_plan = self._plan_from_all_rows(
                coded.surprised, sample_plan, max_thresholds=max_thresholds, n_threads=n_threads
            )
            stores += self._code(full_plan, row_of_sorted, rows).stores
            is_any_sampled |= not full_plan.is_complete.all()
            for column, new_edges in zip(full_plan.columns.tolist(), full_plan.edges, strict=True):
                edges[column] = new_edges
            lowest[full_plan.columns] = full_plan.lowest
            highest[full_plan.columns] = full_plan.highest

        binned_columns = self._make_binning(
            edges,
            is_any_sampled=bool(is_any_sampled),
            extremes=Extremes(lowest=lowest, highest=highest),
        )
        return binned_columns, stores

    def _invert(self, position: NDArray[np.uint32]) -> Any:
        """Return which row each sorted row is, given the position of each row among these."""
        row_of_sorted = self.card.xp.empty(len(position), dtype=np.uint32)
        row_numbers = self.card.xp.arange(len(position), dtype=np.uint32)
        row_of_sorted[self.card.send(position)] = row_numbers
        return row_of_sorted

    def _make_binning(
        self, edges: Sequence[FloatArray], *, is_any_sampled: bool, extremes: Extremes
    ) -> Binning:
        """Make the binning of all columns from their edges.

        The first edge of a column with missing values only sets these apart: it is no threshold.
        """
        thresholds = [
            edges_of_column[1:] if has_missing else edges_of_column
            for edges_of_column, has_missing in zip(edges, self.has_missing, strict=True)
        ]
        table = CodedTable(np.empty((0, len(thresholds))), has_missing=self.has_missing)
        return binning.make_binning(thresholds, table, is_any_sampled, extremes)

    def _plan_from_sample(self, max_thresholds: int) -> ColumnPlan:
        """Choose the thresholds of all columns from the sampled rows; from all if they are few."""
        card = self.card
        values = self.values
        if is_sampled(self.n_rows):
            values = values[:, self._choose_sample()]
        ordered = card.xp.sort(values, axis=1)  # missing ones last

        n_parts = divide_up(ordered.size, _PLANNED_CELLS)
        chosen = [
            binning.choose_edges(card.bring(ordered[part]), max_thresholds)
            for part in split_evenly(len(ordered), n_parts)
        ]
        edges = [edges for part in chosen for edges in part.edges]
        return ColumnPlan(
            columns=np.arange(len(edges)),
            edges=binning.add_missing_edges(edges, self.has_missing),
            is_complete=np.concatenate([part.is_complete for part in chosen]),
            lowest=np.concatenate([part.lowest for part in chosen]),
            highest=np.concatenate([part.highest for part in chosen]),
        )

    def _choose_sample(self) -> Any:
        """Choose the rows of the sample: those of lowest hash, unless rows have copies."""
        card = self.card
        salt = card.send(make_salt(len(self.values)))
        hashes = card.kernels.hash_rows(self.values, salt)
        ordered = card.xp.sort(hashes)
        has_copies = bool((ordered[1:] == ordered[:-1]).any())
        if has_copies:  # only some of the copies of a row may be chosen, which the engine decides
            return card.send(choose_sample(card.bring(hashes)))
        return card.xp.flatnonzero(hashes <= ordered[QUANTILE_SAMPLE - 1])

    def _plan_from_all_rows(
        self, columns: IntArray, plan: ColumnPlan, *, max_thresholds: int, n_threads: int
    ) -> ColumnPlan:
        """Plan columns again that have few values in the sample, and more in all rows.

        Where they are so many that there must be quantiles, these are those of the first plan.
        """
        X = self.card.bring(self.card.take(self.values, columns)).T
        new_plan = binning.plan_columns(
            X,
            np.arange(len(columns)),
            has_missing=self.has_missing[columns],
            rows=slice(None),
            max_thresholds=max_thresholds,
            n_threads=n_threads,
        )
        new_plan = replace(new_plan, columns=columns)
        return new_plan.use_sample(plan.select(columns), max_thresholds)

    def _code(self, plan: ColumnPlan, row_of_sorted: Any, rows: Rows) -> "CodedColumns":
        """Code columns by a plan; those without and with missing values have different layouts."""
        stores: list[Store] = []
        surprised: list[IntArray] = [plan.columns[:0]]
        for has_missing in (False, True):
            is_of_layout = self.has_missing[plan.columns] == has_missing
            if not is_of_layout.any():
                continue
            plan_of_layout = plan.select(np.flatnonzero(is_of_layout))
            coded = self._code_layout(plan_of_layout, row_of_sorted, rows)
            stores += coded.stores
            surprised.append(coded.surprised)
        return CodedColumns(stores, surprised=np.sort(np.concatenate(surprised)))

    def _code_layout(self, plan: ColumnPlan, row_of_sorted: Any, rows: Rows) -> "CodedColumns":
        """Code columns of one layout; those whose values are as planned make a store.

        A plan from a sample may say of a column that it has just these few values. If the rows
        have another one, the column is *surprised*: its codes are not used, and it has no store.
        """
        card = self.card

        # The edges of all columns in one array (column, edge), shorter ones filled up with 0.
        n_edges = np.array([len(edges) for edges in plan.edges], dtype=np.int32)
        padded_edges = np.zeros((len(n_edges), max(1, n_edges.max())), dtype=self.values.dtype)
        for padded, edges in zip(padded_edges, plan.edges, strict=True):
            padded[: len(edges)] = edges

        # The kernel fills in the codes (column, row).
        codes = card.xp.empty((len(n_edges), self.n_rows), dtype=CODE_DTYPE)
        is_surprised = card.kernels.code_values(
            values=self.values,
            row_of_sorted=row_of_sorted,
            columns=card.send(plan.columns),
            edges=card.send(padded_edges),
            n_edges=card.send(n_edges),
            known=card.send(plan.is_complete.astype(np.uint8)),
            highest=card.send(plan.highest),
            codes=codes,
        )
        surprised = plan.columns[is_surprised]

        is_constant = n_edges == 0  # which makes no rule
        is_kept = ~is_surprised & ~is_constant
        if not is_kept.any():
            return CodedColumns([], surprised)

        if not is_kept.all():
            codes = card.take(codes, np.flatnonzero(is_kept))
        store = CardCodes(
            card=card,
            columns=plan.columns[is_kept],
            codes=codes,
            rows=rows,
            layout=binning.find_layout(int(plan.columns[0]), {}, self.has_missing),
            n_bins=int(n_edges[is_kept].max()) + 1,
        )
        return CodedColumns([store], surprised)


@dataclass(frozen=True)
class CodedColumns:
    """Stores of columns, and the `surprised` ones, which have other values than their plan.

    These have no store: they need another plan first.
    """

    stores: list[Store]
    surprised: IntArray


def put_values(X: Any, device: str, max_thresholds: int | None) -> "CardValues | None":
    """Put a plain table of floats on the card, so that it is binned there; None if it is not.

    The processor bins all other tables: those of other types, which it must read first; zeros and
    ones, which it packs as bits; and those of more thresholds than a byte can number.
    """
    if device == "cpu" or max_thresholds is None:
        return None
    if max_thresholds + 2 > MAX_NARROW_BINS:  # a bin more than thresholds, and one for missing
        return None
    if not _is_table_of_floats(X):
        return None
    n_code_bytes = int(np.prod(X.shape))  # a byte for the code of each cell
    card = choose_card(device, n_code_bytes)
    if card is None or _looks_binary(X):
        return None

    with translate_card_errors():
        values = _send_columns(card, X)
        return CardValues(card, values, _find_missing(card, values))


def _is_table_of_floats(X: Any) -> bool:
    """Return whether this is an array, in memory or on a card, of rows and columns of floats."""
    if not (is_on_card(X) or type(X) is np.ndarray):
        return False
    is_float = str(X.dtype) in _FLOATS
    has_cells = X.ndim == 2 and int(np.prod(X.shape)) > 0
    return is_float and has_cells


def _looks_binary(X: Any) -> bool:
    """Return whether the first rows are all 0 or 1, which the processor packs as bits."""
    first_rows = X[:BINARY_LOOK_ROWS]
    return bool(((first_rows == 0) | (first_rows == 1)).all())


def _send_columns(card: Card, X: Any) -> Any:
    """Send a table to the card, or take it where it is there already, as (column, row)."""
    if is_on_card(X):
        return card.xp.ascontiguousarray(card.xp.asarray(open_on_card(X)).T)
    check_room(card, 2 * X.nbytes)
    is_by_column = X.flags.f_contiguous and not X.flags.c_contiguous
    if is_by_column:
        return send_plain(card, X.T)
    by_row = send_plain(card, np.ascontiguousarray(X))
    return card.xp.ascontiguousarray(by_row.T)


def _find_missing(card: Card, values: Any) -> BoolArray:
    """Find the columns with missing values; raises for infinities."""
    # these are NaN where a value of the column is missing
    highest = values.max(axis=1)
    lowest = values.min(axis=1)

    # A quick check of all columns at once. The difference is infinite where a value is, but also
    # where it is too large for a float, so that a failure is looked into.
    if not card.xp.isfinite(highest - lowest).all():
        infinite = card.bring(card.xp.isinf(values).any(axis=1))
        if infinite.any():
            raise make_infinity_error(name_columns(np.flatnonzero(infinite).tolist(), None))
    return np.asarray(card.bring(card.xp.isnan(highest)))
