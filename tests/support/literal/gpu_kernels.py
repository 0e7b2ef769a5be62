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
    ones_before = np.zeros((len(words), bits.shape[1] + 1), dtype=np.int32)  # each bit
    np.cumsum(bits, axis=1, out=ones_before[:, 1:])
    out[:] = ones_before[:, bounds[1:]] - ones_before[:, bounds[:-1]]


def judge_bits(words, segments, query, totals, codes, statistics=None, dofs=None):
    """What becomes of the two rules on each column; the lower half of a code is of the zeros."""
    ones = np.empty((len(words), 2 * segments.n_environments), dtype=np.int32)
    count_bits(words, segments, ones)
    _judge_ones(ones, segments, query, totals, codes, statistics, dofs)


def judge_counts(ones, segments, query, totals, codes, statistics=None, dofs=None):
    """The same of columns whose ones up to the start of each segment are known."""
    _judge_ones(np.diff(ones, axis=1), segments, query, totals, codes, statistics, dofs)


def _judge_ones(ones, segments, query, totals, codes, statistics, dofs):
    """Judge both rules of each column, from its ones by (column, label, environment).

    The rule of the ones has its leaf where there are zeros, and the other way round.
    """
    criteria = query.criteria
    n_environments = segments.n_environments
    ones = ones.reshape(-1, 2, n_environments)
    in_play = segments.n_rows.reshape(2, n_environments)
    if criteria.is_inverted:
        ones = ones[:, ::-1]
        in_play = in_play[::-1]
    totals[:] = ones.sum(axis=2)
    codes[:] = 0
    for sign, leaves in enumerate((in_play - ones, ones)):
        statistic, dof = _compute_statistics(leaves.astype(np.int64), criteria.statistic)
        utility, _ = compute_keys(totals, query, sign)
        code = _judge(leaves, in_play, query, utility, statistic, dof)
        codes |= code << np.uint8(4 * sign)
        if statistics is not None:
            statistics[:, sign] = statistic
            dofs[:, sign] = dof


def _compute_statistics(leaves, test):
    """Statistic and degrees of freedom of each leaf, from counts by (leaf, label, environment)."""
    n_of_label = leaves.sum(axis=2)
    n_of_environment = leaves.sum(axis=1)
    has_both_labels = (n_of_label > 0).all(axis=1)
    dof = np.where(has_both_labels, (n_of_environment > 0).sum(axis=1) - 1, 0)
    if test == "none":
        return np.zeros(len(leaves)), np.zeros_like(dof)

    rates = n_of_label / np.maximum(n_of_label.sum(axis=1, keepdims=True), 1)  # (leaf, label)
    with np.errstate(all="ignore"):
        if test == "g":
            expected = n_of_environment[:, np.newaxis] * rates[:, :, np.newaxis]
            terms = np.where(leaves > 0, leaves * np.log(leaves / expected), 0.0)
            statistic = np.maximum(2 * terms.sum(axis=(1, 2)), 0.0)
        else:
            rate = rates[:, 1:]
            correction = np.where((dof == 1) & (test == "yates"), 0.5, 0.0)[:, np.newaxis]
            distance = np.abs(leaves[:, 1] - n_of_environment * rate)
            corrected = np.maximum(distance - correction, 0.0)
            terms = np.where(n_of_environment > 0, corrected * corrected / n_of_environment, 0.0)
            statistic = terms.sum(axis=1) / (rate * (1 - rate))[:, 0]
    return np.where(dof > 0, statistic, 0.0), dof


def _judge(leaves, in_play, query, utility, statistic, dof):
    """The code of each leaf: that of the first condition that holds."""
    criteria = query.criteria
    n_negative = leaves[:, 0].sum(axis=1)
    sizes = leaves.sum(axis=1).astype(np.int64)  # by (leaf, environment)
    n_in_play = query.n_negative + query.n_positive
    is_no_candidate = (n_negative == 0) | (sizes.sum(axis=1) >= n_in_play)

    is_tested = (dof > 0) & (criteria.statistic != "none")
    is_dependent = is_tested & (statistic >= query.fails_from[dof])
    is_test_open = is_tested & ~(statistic < query.passes_below[dof])

    effective = _count_effective_environments(sizes, in_play, query)
    conditions = [
        (NONE, is_no_candidate),
        (DEPENDENT, is_dependent),
        (OPEN, is_test_open),
        (CODES.index("unreplicated"), effective < criteria.unreplicated_below),
        (OPEN, effective < criteria.replicated_from),
        (CODES.index("unhelpful"), utility < criteria.min_utility),
    ]
    if criteria.min_evidence > 0:
        evidence, largest_ratio = _compute_evidence(leaves, in_play, query.positive_rates)
        excess = evidence - criteria.min_evidence
        is_too_near = np.abs(excess) <= criteria.evidence_slack * largest_ratio
        conditions += [(OPEN, is_too_near), (CODES.index("unhelpful"), excess < 0)]
    codes, holds = zip(*conditions, strict=True)
    return np.select(holds, codes, ALLOWED).astype(np.uint8)


def _count_effective_environments(sizes, in_play, query):
    """sum(w)^2 / sum(w^2), at least 1, of weights w = n_inside n_outside factor by environment."""
    n_inside = sizes.astype(np.float64)
    n_outside = in_play.sum(axis=0) - n_inside
    weights = n_inside * n_outside * query.replication_factors
    squares = np.maximum((weights**2).sum(axis=1), 1e-300)
    return np.maximum(weights.sum(axis=1) ** 2 / squares, 1.0)


def _compute_evidence(leaves, in_play, rates):
    """Of each leaf against chance, and the largest ratio of a cell to its number by chance.

    A cell is a number of rows inside or outside the leaf, with one label: (leaf, side, label).
    """
    cells = np.stack((leaves, in_play - leaves), axis=1).sum(axis=3).astype(np.float64)
    expected_positives = (leaves.sum(axis=1) * rates).sum(axis=1)
    shift = (expected_positives - cells[:, 0, 1])[:, np.newaxis, np.newaxis]
    by_chance = cells + shift * [[-1, 1], [1, -1]]
    by_chance = np.where(cells > 0, np.maximum(by_chance, 1e-300), 1.0)
    ratios = np.where((cells > 0) & (shift > 0), cells / by_chance, 1.0)
    evidence = (cells * np.log(ratios)).sum(axis=(1, 2))
    return evidence, np.maximum(ratios.max(axis=(1, 2)), 1.0)


def tally_codes(codes, n_copies):
    """How many candidates have each code, identical features included."""
    tally = np.zeros(len(CODES), dtype=np.int64)
    weights = np.ones(len(codes), dtype=np.int64) if n_copies is None else n_copies
    for code in range(len(CODES)):
        tally[code] = (((codes & 15) == code) * weights + ((codes >> 4) == code) * weights).sum()
    return tally


def find_next(totals, codes, query, wanted, after):
    """The first candidate after another one, of those with a code that is wanted; or None."""
    keys = []
    for sign in (0, 1):
        utility, margin = compute_keys(totals, query, sign)
        columns = np.flatnonzero(_has_code(codes, sign, wanted)).tolist()
        keys += [Key(int(utility[j]), int(margin[j]), 2 * j + sign) for j in columns]

    def rank(key):
        return -key.utility, -key.margin, key.order

    later_keys = [key for key in keys if rank(key) > rank(after)]
    return min(later_keys, key=rank, default=None)


def _has_code(codes, sign, wanted):
    """Whether the rule of a sign has a code that is wanted, in each column."""
    return np.isin((codes >> (4 * sign)) & 15, [*wanted])


def list_columns(totals, codes, query, wanted, key=None):
    """Columns, in order, with a code that is wanted and, if given, a key's utility and margin."""
    is_listed = np.zeros(len(codes), dtype=np.bool_)
    for sign in (0, 1):
        utility, margin = compute_keys(totals, query, sign)
        has_key = key is None or (utility == key.utility) & (margin == key.margin)
        is_listed |= _has_code(codes, sign, wanted) & has_key
    return np.flatnonzero(is_listed)


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


def code_values(values, row_of_sorted, columns, edges, n_edges, known, highest, codes):
    """Bins of some columns of (column, row), sorted; which hold other values than was known?"""
    surprised = np.zeros(len(columns), dtype=np.bool_)
    for k, column in enumerate(columns):
        sorted_values = values[column][row_of_sorted]
        edges_of_column = edges[k, : n_edges[k]]
        is_missing = np.isnan(sorted_values)
        bins = np.searchsorted(edges_of_column, sorted_values, "left")
        codes[k] = np.where(is_missing, 0, bins)
        known_values = np.append(edges_of_column, highest[k])
        is_known = is_missing | np.isin(sorted_values, known_values)
        surprised[k] = known[k] and not is_known.all()
    return surprised


def make_stand_in(free=2**40):
    """A card that is none: NumPy, and the kernels' twins."""
    return Card(np, special, SimpleNamespace(**globals()), lambda: free)
