"""Putting a source's samples on the card."""

from __future__ import annotations

from typing import Any

import numpy as np

from icscm._types import Array
from icscm.engine.rows import Rows
from icscm.engine.stores import BitStore, CodeStore, Store
from icscm.sources.gpu.card import Card, told_plainly
from icscm.sources.gpu.segments import count_chunks
from icscm.sources.gpu.stores import CardBits, CardCodes

# Words sorted at a time.
_SORTED_BYTES = 2**28


def put_on_card(card: Card, store: Store, rows: Rows) -> Store:
    """The same columns on the card; those of more than 256 bins stay where they are."""
    with told_plainly():
        if isinstance(store, BitStore):
            return put_bits(card, store, rows)
        if isinstance(store, CodeStore) and store.codes.dtype == np.uint8:
            own = store.features, card.send(store.codes), store.n_bins, rows, store.layout
            return CardCodes(card, *own)
        return store


def put_bits(card: Card, store: BitStore, rows: Rows) -> CardBits:
    """A store of bits, without the gaps between its segments."""
    words = send_sorted(card, store.words.view(np.uint32), store.bits)
    return CardBits(card, store.features, words, rows, store.layout, store.n_alike)


def send_sorted(card: Card, words: Array, source: Array) -> Any:
    """Columns (feature, word) on the card, bit i being bit source[i] of the words given."""
    n_out = 4 * count_chunks(len(source))
    out = card.xp.empty((len(words), n_out), dtype=np.uint32)
    places = card.send(np.asarray(source, dtype=np.uint32))
    size = max(1, _SORTED_BYTES // max(1, 4 * words.shape[1]))
    for start in range(0, len(words), size):
        part = slice(start, start + size)
        card.kernels.sort_bits(card.send(np.ascontiguousarray(words[part])), places, out[part])
    return out
