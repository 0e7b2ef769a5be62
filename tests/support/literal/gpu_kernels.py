"""NumPy twins of the GPU kernels: slow and short; they replace a card in tests."""

from types import SimpleNamespace

import numpy as np
from scipy import special

from icscm.sources.gpu.card import Card
from icscm.sources.gpu.launching import (
    ALLOWED,
    CODES,
    DEPENDENT,
    NONE,
    OPEN,
    TILE_BITS,
    Key,
    compute_keys,
    count_padded,
)
from support.literal import kernels as engine_twins


def count_bits(words, segments, out):
    """The ones of each column in play, by segment."""
    bounds = segments.bounds
    # the tiles are for the card; here they are only checked
    starts = np.minimum(np.arange(len(segments.tiles)) * TILE_BITS, 32 * words.shape[1])
    assert (segments.tiles == np.searchsorted(bounds[:-1], starts)).all()
    assert words.shape[1] == count_padded(int(bounds[-1])) // 32 == len(segments.mask)
    bits = np.unpackbits((words & segments.mask).view(np.uint8), axis=1, bitorder="little")
    before = np.zeros((len(words), bits.shape[1] + 1), dtype=np.int32)
    np.cumsum(bits, axis=1, out=before[:, 1:])
    out[:] = before[:, bounds[1:]] - before[:, bounds[:-1]]


def judge_bits(words, segments, query, totals, codes, statistics=None, dofs=None):
    """What becomes of the two rules on each column; the lower half of a code is of the zeros."""
    ones = np.empty((len(words), 2 * segments.n_environments), dtype=np.int32)
    count_bits(words, segments, ones)
    _judge_ones(ones, segments, query, totals, codes, statistics, dofs)


def judge_counts(ones, segments, query, totals, codes, statistics=None, dofs=None):
    """The same of columns whose ones up to the start of each segment are known."""
    _judge_ones(np.diff(ones, axis=1), segments, query, totals, codes, statistics, dofs)


def _judge_ones(ones, segments, query, totals, codes, statistics, dofs):
    criteria, n_environments = query.criteria, segments.n_environments
    ones = ones.reshape(-1, 2, n_environments)
    in_play = segments.n_rows.reshape(2, n_environments)
    if criteria.is_inverted:
        ones, in_play = ones[:, ::-1], in_play[::-1]
    totals[:] = ones.sum(axis=2)
    codes[:] = 0
    for sign, leaves in enumerate((in_play - ones, ones)):
        found, dof = _compute_statistics(leaves.astype(np.int64), criteria.statistic)
        utility, _ = compute_keys(totals, query, sign)
        codes |= _judge(leaves, in_play, query, utility, found, dof) << np.uint8(4 * sign)
        if statistics is not None:
            statistics[:, sign], dofs[:, sign] = found, dof


def _compute_statistics(leaves, test):
    rows, sizes = leaves.sum(axis=2), leaves.sum(axis=1)
    dof = np.where((rows > 0).all(axis=1), (sizes > 0).sum(axis=1) - 1, 0)
    if test == "none":
        return np.zeros(len(leaves)), np.zeros_like(dof)
    with np.errstate(all="ignore"):
        if test == "g":
            expected = (
                sizes[:, np.newaxis] * (rows / rows.sum(axis=1)[:, np.newaxis])[:, :, np.newaxis]
            )
            parts = np.where(leaves > 0, leaves * np.log(leaves / expected), 0.0)
            found = np.maximum(2 * parts.sum(axis=(1, 2)), 0.0)
        else:
            rate = (rows[:, 1] / rows.sum(axis=1))[:, np.newaxis]
            shift = np.where((dof == 1) & (test == "yates"), 0.5, 0.0)[:, np.newaxis]
            off = np.maximum(np.abs(leaves[:, 1] - sizes * rate) - shift, 0.0)
            parts = np.where(sizes > 0, off * off / sizes, 0.0)
            found = parts.sum(axis=1) / (rate * (1 - rate))[:, 0]
    return np.where(dof > 0, found, 0.0), dof


def _judge(leaves, in_play, query, utility, found, dof):
    criteria = query.criteria
    negatives, sizes = leaves[:, 0].sum(axis=1), leaves.sum(axis=1).astype(np.int64)
    size, n_in_play = sizes.sum(axis=1), query.n_negative + query.n_positive
    in_leaf = sizes.astype(np.float64)
    weights = in_leaf * (in_play.sum(axis=0) - in_leaf) * query.replication_factors
    squares = np.maximum((weights**2).sum(axis=1), 1e-300)
    effective = np.maximum(weights.sum(axis=1) ** 2 / squares, 1.0)
    is_unreplicated = effective < criteria.unreplicated_below
    is_open = effective < criteria.replicated_from
    is_tested = (dof > 0) & (criteria.statistic != "none")
    conditions = [
        (NONE, (negatives == 0) | (size >= n_in_play)),
        (DEPENDENT, is_tested & (found >= query.fails_from[dof])),
        (OPEN, is_tested & ~(found < query.passes_below[dof])),
        (CODES.index("unreplicated"), is_unreplicated),
        (OPEN, is_open),
        (CODES.index("unhelpful"), utility < criteria.min_utility),
    ]
    if criteria.min_evidence > 0:
        evidence, largest = _compute_evidence(leaves, in_play, query.positive_rates)
        off = evidence - criteria.min_evidence
        is_open = np.abs(off) <= criteria.evidence_slack * largest
        conditions += [(OPEN, is_open), (CODES.index("unhelpful"), off < 0)]
    codes, holds = zip(*conditions, strict=True)
    return np.select(holds, codes, ALLOWED).astype(np.uint8)


def _compute_evidence(leaves, in_play, rates):
    """Of each leaf against chance, and the largest ratio of a cell to its number by chance."""
    found = np.stack((leaves, in_play - leaves), axis=1).sum(axis=3).astype(np.float64)
    shift = (leaves.sum(axis=1) * rates).sum(axis=1) - found[:, 0, 1]
    by_chance = found + shift[:, np.newaxis, np.newaxis] * [[-1, 1], [1, -1]]
    by_chance = np.where(found > 0, np.maximum(by_chance, 1e-300), 1.0)
    ratios = np.where((found > 0) & (shift[:, np.newaxis, np.newaxis] > 0), found / by_chance, 1.0)
    return (found * np.log(ratios)).sum(axis=(1, 2)), np.maximum(ratios.max(axis=(1, 2)), 1.0)


def tally_codes(codes, n_copies):
    """How many candidates have each code, identical features included."""
    tally = np.zeros(len(CODES), dtype=np.int64)
    weights = np.ones(len(codes), dtype=np.int64) if n_copies is None else n_copies
    for code in range(len(CODES)):
        tally[code] = (((codes & 15) == code) * weights + ((codes >> 4) == code) * weights).sum()
    return tally


def find_next(totals, codes, query, wanted, after):
    """The first candidate after another one, of those with a code that is wanted; or None."""
    keys = [
        Key(int(utility[i]), int(margin[i]), 2 * int(i) + sign)
        for sign, (utility, margin) in enumerate(compute_keys(totals, query, s) for s in (0, 1))
        for i in np.flatnonzero(np.isin((codes >> (4 * sign)) & 15, [*wanted]))
    ]
    ranks = sorted((-key.utility, -key.margin, key.order) for key in keys)
    last = -after.utility, -after.margin, after.order
    found = next((rank for rank in ranks if rank > last), None)
    return None if found is None else Key(-found[0], -found[1], found[2])


def list_columns(totals, codes, query, wanted, key=None):
    """Columns, in order, with a code that is wanted and, if given, a key's utility and margin."""
    found = np.zeros(len(codes), dtype=np.bool_)
    for sign in (0, 1):
        utility, margin = compute_keys(totals, query, sign)
        is_alike = key is None or (utility == key.utility) & (margin == key.margin)
        found |= np.isin((codes >> (4 * sign)) & 15, [*wanted]) & is_alike
    return np.flatnonzero(found)


class StagingBuffer:
    """Words on their way to the card; here there is none to go.

    `host` is filled once `wait` returns.
    """

    def __init__(self, shape):
        self.host = np.empty(shape, dtype=np.uint32)

    def wait(self):
        """Until what was sent has left `host`."""

    def send(self, out):
        """What is in `host`, as it is."""
        n_words = out.nbytes // 4
        out.view(np.uint32).reshape(-1)[:] = self.host.reshape(-1)[:n_words]
        self.host[:] = 0xDEADBEEF  # it is not to be read again

    def send_and_sort(self, n_columns, bit_of_row, out):
        """As `sort_bits`, of the first columns in `host`."""
        sort_bits(self.host[:n_columns].copy(), bit_of_row, out)
        self.host[:] = 0xDEADBEEF


def make_staging_buffers(shape):
    """Two, so that one is filled while the other one is on its way."""
    return StagingBuffer(shape), StagingBuffer(shape)


def sort_bits(words, bit_of_row, out):
    """Bit i of each column becomes bit bit_of_row[i] of the words given."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, bit_of_row]
    packed = np.packbits(bits, axis=1, bitorder="little")
    out[:] = 0
    out.view(np.uint8)[:, : packed.shape[1]] = packed


def count_codes(codes, rows, bounds, out):
    """Some rows by (feature, bin, segment); None for all."""
    out[:] = 0
    for column, table in zip(codes, out, strict=True):
        segment = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        np.add.at(table, (column if rows is None else column[rows], segment), 1)


def hash_rows(values, salt):
    """The hash of each row, of values by (column, row)."""
    out = np.empty(values.shape[1], dtype=np.uint64)
    engine_twins.hash_rows(values.T, np.arange(len(values)), salt, 0, len(out), out)
    return out


def code_values(values, source, columns, edges, n_edges, known, highest, codes):
    """Bins of some columns of (column, row), sorted; which hold other values than was known?"""
    surprised = np.zeros(len(columns), dtype=np.bool_)
    for k, column in enumerate(columns):
        own, found = values[column][source], edges[k, : n_edges[k]]
        is_missing = np.isnan(own)
        codes[k] = np.where(is_missing, 0, np.searchsorted(found, own, "left"))
        is_known = is_missing | np.isin(own, np.append(found, highest[k]))
        surprised[k] = known[k] and not is_known.all()
    return surprised


def make_stand_in(free=2**40):
    """A card that is none: NumPy, and the kernels' twins."""
    return Card(np, special, SimpleNamespace(**globals()), lambda: free)
