"""Putting a source's samples on the card."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icscm._types import IntArray
from icscm.engine.counts import ORDERED, Layout
from icscm.engine.stores import BitStore, CodeStore, Rows, Store
from icscm.exceptions import StreamedWarning, warn
from icscm.sources.gpu.card import Card, check_room, choose_card, has_room, told_plainly
from icscm.sources.gpu.sending import Sender, Unsorted
from icscm.sources.gpu.stores import CardBits, CardCodes, StreamedBits

# Bytes a second from this memory to the card, read, sent and sorted: as measured, low.
_SENT_EACH_SECOND = 8e9


def move_stores(stores: Sequence[Store], rows: Rows, device: str) -> Sequence[Store]:
    """The stores of one source where `device` wants them."""
    card = choose_card(device, sum(store.n_bytes for store in stores))
    return stores if card is None else [put_on_card(card, store, rows) for store in stores]


def put_on_card(card: Card, store: Store, rows: Rows) -> Store:
    """The same columns on the card; those of more than 256 bins stay where they are."""
    if isinstance(store, BitStore):
        words = store.words.view(np.uint32)
        unsorted = Unsorted(len(words), words.shape[1], words.__getitem__, store.bits)
        return put_bits(card, store.features, unsorted, rows, store.layout, store.n_alike)
    if isinstance(store, CodeStore) and store.codes.dtype == np.uint8:
        check_room(card, store.codes.nbytes)
        with told_plainly():
            own = store.features, card.send(store.codes), store.n_bins, rows, store.layout
            return CardCodes(card, *own)
    return store


def put_bits(
    card: Card,
    features: IntArray,
    unsorted: Unsorted,
    rows: Rows,
    layout: Layout = ORDERED,
    n_alike: IntArray | None = None,
) -> CardBits:
    """Columns of bits on the card, or sent to it for each look where they do not fit."""
    more = rows, layout, n_alike
    with told_plainly():
        sender = Sender(card, unsorted)
        if has_room(card, unsorted.n_bytes):
            return CardBits(card, features, sender.send_all(), *more)
        warn(
            f"The columns take {unsorted.n_bytes / 1e9:,.1f} GB and {card.count_free() / 1e9:,.1f} "
            "GB of the card's memory are free: they are sent to it anew for each rule, which takes "
            f"some {unsorted.n_bytes / _SENT_EACH_SECOND:,.1f} s each time.",
            StreamedWarning,
        )
        return StreamedBits(card, features, sender, *more)
