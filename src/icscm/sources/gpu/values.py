"""Plain tables of numbers on the card: binned there as the engine bins them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icscm._constants import BINARY_LOOK_ROWS, CODE_DTYPE, MAX_NARROW_BINS, QUANTILE_SAMPLE
from icscm._types import BoolArray, IntArray
from icscm.engine import binning
from icscm.engine.binning import Binning, ColumnPlan
from icscm.engine.sampling import choose_sample, is_sampled, make_salt
from icscm.engine.stores import Rows, Store
from icscm.engine.threads import split_evenly
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
        return int(self.values.shape[1])

    def take(self, rows: IntArray) -> "CardValues":
        """Some rows, or some several times."""
        values = self.values[:, self.card.send(rows)]
        return replace(self, values=values, has_missing=_find_missing(self.card, values))

    @translate_card_errors()
    def encode(
        self, position: NDArray[np.uint32], rows: Rows, max_thresholds: int, n_threads: int
    ) -> tuple[Binning, list[Store]]:
        """Thresholds and stores: those of `icscm.engine.coding.encode`, of the same values.

        All columns are coded by a sample, then those again that have more values than it.
        """
        check_room(self.card, self.values.size)
        source = self.card.xp.empty(len(position), dtype=np.uint32)  # row of each sorted one
        source[self.card.send(position)] = self.card.xp.arange(len(position), dtype=np.uint32)
        plan = self._plan_sample(max_thresholds)
        stores, surprised = self._code(plan, source, rows)
        edges, any_sampled = (
            list(plan.edges),
            is_sampled(self.n_rows) and not plan.is_complete.all(),
        )
        if len(surprised):  # few values in the sample, more in all rows
            X = self.card.bring(self.card.take(self.values, surprised)).T
            again = binning.plan_columns(
                X,
                np.arange(len(surprised)),
                has_missing=self.has_missing[surprised],
                rows=slice(None),
                max_thresholds=max_thresholds,
                n_threads=n_threads,
            )
            again = replace(again, columns=surprised)
            again = again.use_sample(plan.select(surprised), max_thresholds)
            more, _ = self._code(again, source, rows)
            stores += more
            any_sampled |= not again.is_complete.all()
            for column, found in zip(again.columns.tolist(), again.edges, strict=True):
                edges[column] = found
        edges = [part[int(gap) :] for part, gap in zip(edges, self.has_missing, strict=True)]
        table = CodedTable(np.empty((0, len(edges))), has_missing=self.has_missing)
        return binning.make_binning(edges, table, bool(any_sampled)), stores

    def _plan_sample(self, max_thresholds: int) -> ColumnPlan:
        card, values = self.card, self.values
        if is_sampled(self.n_rows):
            hashes = card.kernels.hash_rows(values, card.send(make_salt(len(values))))
            ordered = card.xp.sort(hashes)
            sample = card.xp.flatnonzero(hashes <= ordered[QUANTILE_SAMPLE - 1])
            if (ordered[1:] == ordered[:-1]).any():  # rows with copies: mixed by the engine
                sample = card.send(choose_sample(card.bring(hashes)))
            values = values[:, sample]
        ordered = card.xp.sort(values, axis=1)  # missing ones last
        parts = split_evenly(len(ordered), -(-ordered.size // _PLANNED_CELLS))
        found = [binning.choose_edges(card.bring(ordered[part]), max_thresholds) for part in parts]
        edges = [edges for chosen in found for edges in chosen.edges]
        return ColumnPlan(
            columns=np.arange(len(edges)),
            edges=binning.add_missing_edges(edges, self.has_missing),
            is_complete=np.concatenate([chosen.is_complete for chosen in found]),
            highest=np.concatenate([chosen.highest for chosen in found]),
        )

    def _code(self, plan: ColumnPlan, source: Any, rows: Rows) -> tuple[list[Store], IntArray]:
        """Stores of the columns that are as planned, and the columns that are not."""
        stores: list[Store] = []
        card, surprised = self.card, [plan.columns[:0]]
        for gap in (False, True):
            own = plan.select(np.flatnonzero(self.has_missing[plan.columns] == gap))
            if len(own.columns) == 0:
                continue
            n_edges = np.array([len(edges) for edges in own.edges], dtype=np.int32)
            padded = np.zeros((len(n_edges), max(1, n_edges.max())), dtype=self.values.dtype)
            for row, edges in zip(padded, own.edges, strict=True):
                row[: len(edges)] = edges
            codes = card.xp.empty((len(n_edges), self.n_rows), dtype=CODE_DTYPE)
            places = own.columns, padded, n_edges, own.is_complete.astype(np.uint8), own.highest
            given = map(card.send, places)
            is_new = card.kernels.code_values(self.values, source, *given, codes)
            kept = ~is_new & (n_edges > 0)  # constant columns make no rules
            surprised.append(own.columns[is_new])
            if not kept.all():
                codes = card.take(codes, np.flatnonzero(kept))
            if kept.any():
                layout = binning.find_layout(int(own.columns[0]), {}, self.has_missing)
                kept_ones, n_bins = own.columns[kept], int(n_edges[kept].max()) + 1
                stores.append(CardCodes(card, kept_ones, codes, rows, layout, n_bins))
        return stores, np.sort(np.concatenate(surprised))


def put_values(X: Any, device: str, max_thresholds: int | None) -> "CardValues | None":
    """A plain table of floats on the card, if that is where it belongs.

    None where the processor bins: other kinds of tables, zeros and ones, very many thresholds.
    """
    is_plain = is_on_card(X) or type(X) is np.ndarray
    if device == "cpu" or not is_plain or max_thresholds is None:
        return None
    n_bytes, is_float = X.dtype.itemsize * int(np.prod(X.shape)), str(X.dtype) in _FLOATS
    if not is_float or X.ndim != 2 or n_bytes == 0 or max_thresholds + 2 > MAX_NARROW_BINS:
        return None
    card, first = choose_card(device, n_bytes // X.dtype.itemsize), X[:BINARY_LOOK_ROWS]
    if card is None or bool(((first == 0) | (first == 1)).all()):
        return None
    with translate_card_errors():
        if is_on_card(X):
            values = card.xp.ascontiguousarray(card.xp.asarray(open_on_card(X)).T)
        else:
            check_room(card, 2 * X.nbytes)
            is_transposed = X.flags.f_contiguous and not X.flags.c_contiguous
            values = send_plain(card, X.T if is_transposed else np.ascontiguousarray(X))
            values = values if is_transposed else card.xp.ascontiguousarray(values.T)
        return CardValues(card, values, _find_missing(card, values))


def _find_missing(card: Card, values: Any) -> BoolArray:
    """Which columns have missing values; raises for infinities."""
    highest, lowest = values.max(axis=1), values.min(axis=1)  # NaN where one is missing
    if not card.xp.isfinite(highest - lowest).all():  # or where the difference is too large
        infinite = card.bring(card.xp.isinf(values).any(axis=1))
        if infinite.any():
            raise make_infinity_error(name_columns(np.flatnonzero(infinite).tolist(), None))
    return np.asarray(card.bring(card.xp.isnan(highest)))
