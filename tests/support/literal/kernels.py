"""The kernels once more in plain NumPy: slow, short, and what the tests hold the fast ones to."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

import numpy as np

from icscm._types import Array

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def hash_rows(X, columns, salt, start, stop, out):
    values = X[start:stop, columns]
    hashes = np.zeros(values.shape, dtype=np.uint64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:  # narrower ones are exact
        is_large = (values > 2**53) | (values < -(2**53))
        low = np.where(is_large, values & values.dtype.type(0xFFFF), 0).astype(np.uint64)
        hashes += np.where(is_large, _mix(low ^ ~salt[columns]), np.uint64(0))
        values = values - low.astype(values.dtype)
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.inf
    hashes += _mix(_mix(numbers.view(np.uint64) ^ salt[columns]))
    out[start:stop] = hashes.sum(axis=1, dtype=np.uint64)


def hash_column(values, salt, out):
    hashes = np.empty_like(out)
    hash_rows(values[:, np.newaxis], np.arange(1), np.array([salt]), 0, len(values), hashes)
    out += hashes


def tally_values(values, found, n_rows):
    distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
    found[:], n_rows[:] = 0, 0
    if len(distinct) > len(found):
        return len(found) + 1
    order = np.argsort(first)
    found[: len(distinct)] = values[first[order]]
    n_rows[: len(distinct)] = counts[order]
    return len(distinct)


def _mix(bits):
    bits = bits * _MULTIPLIER
    return bits ^ (bits >> np.uint64(32))


def choose_edges(ordered, most, edges, n_edges, known, highest):
    for k, values in enumerate(ordered):
        present = values[~np.isnan(values)]
        distinct = np.unique(present)
        if len(distinct):
            highest[k] = distinct[-1]
        known[k] = len(distinct) - 1 <= most
        edges_of_column = distinct[:-1]
        if not known[k]:
            ranks = -(-np.arange(1, most + 1) * len(present) // (most + 1)) - 1  # rounded up
            edges_of_column = np.unique(np.minimum(present[ranks], distinct[-2]))
        n_edges[k] = len(edges_of_column)
        edges[k, : len(edges_of_column)] = edges_of_column


def code_columns(X, position, columns, table, known, highest, start, stop, codes, surprised):
    for k, column in enumerate(columns):
        values = X[start:stop, column]
        edges = table.edges[k, : table.n_edges[k]]
        is_missing = np.isnan(values)
        bins = np.where(is_missing, 0, np.searchsorted(edges, values, "left"))
        codes[k, position[start:stop]] = bins
        is_known_gap = is_missing & (edges[:1] == -np.inf).any()
        is_known = is_known_gap | np.isin(values, np.append(edges, highest[k]))
        if known[k] and not is_known.all():
            surprised[k] = True


def pack_columns(X, bit_position, columns, edge, known, highest, words, surprised):
    for k, column in enumerate(columns):
        values = X[:, column]
        bits = np.zeros(words.shape[1] * 64, dtype=np.uint8)
        bits[bit_position] = values > edge[k]
        words[k] = np.packbits(bits, bitorder="little").view(np.uint64)
        is_gap = np.isnan(values) & (edge[k] == -np.inf)
        if known[k] and not (is_gap | np.isin(values, [edge[k], highest[k]])).all():
            surprised[k] = True


def pack_rows(X, row_of_bit, first, last, words):
    values = X[:, first:last]
    if not np.isin(values, (0, 1)).all():
        return False
    bits = np.where(row_of_bit[:, np.newaxis] >= 0, values[row_of_bit] == 1, False)
    words[first:last] = _pack_bits(bits.T)
    return True


def _pack_bits(bits):
    """(column, bit) as words."""
    packed = np.packbits(bits, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint64)


def pack_sparse_columns(values, rows, starts, *rest):
    columns = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return _pack_entries(values, rows, columns, *rest)


def pack_sparse_rows(values, columns, starts, *rest):
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return _pack_entries(values, rows, columns, *rest)


def _pack_entries(values, rows, columns, bit_position, first, last, words):
    wanted = (first <= columns) & (columns < last)
    bits = np.zeros((last - first, words.shape[1] * 64), dtype=np.bool_)
    bits[columns[wanted] - first, bit_position[rows[wanted]]] = values[wanted] == 1
    words[first:last] = _pack_bits(bits)
    return bool(np.isin(values[wanted], (0, 1)).all())


def hash_patterns(words, out):
    total = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:
        total = _mix(total ^ column) + _MULTIPLIER
    out[:] = total


def number_patterns(words, hashes, stored, slots, known, first, numbers):
    found = {pattern.tobytes(): number for number, pattern in enumerate(stored)}
    n_new = 0
    for i, pattern in enumerate(words):
        key = pattern.tobytes()
        if key not in found:
            found[key] = len(stored) + n_new
            known[found[key]] = hashes[i]
            first[n_new] = i
            n_new += 1
        numbers[i] = found[key]
    fill_slots(known[: len(found)], slots)
    return n_new


def list_members(numbers, offsets, members):
    for number, (start, stop) in enumerate(pairwise(offsets)):
        members[start:stop] = np.flatnonzero(numbers == number)


def _are_groups(numbers, offsets, members):
    wanted = [np.flatnonzero(numbers == number) for number in range(len(offsets) - 1)]
    ends = np.cumsum([0, *map(len, wanted)])
    is_listed = np.array_equal(offsets, ends) and np.array_equal(members, np.concatenate(wanted))
    if not is_listed or any(len(group) == 0 for group in wanted):
        return False
    return bool(all(one[0] < other[0] for one, other in pairwise(wanted)))


def sum_words(words, sums):
    for word in words.tolist():
        sums[0] = (int(sums[0]) + word) % 2**64
        sums[1] = (int(sums[1]) + int(sums[0])) % 2**64


def parse_lines(text, n_samples, words, names, ends: Array):
    n_lines = at = name_end = 0
    for line in BytesIO(text.tobytes()):
        if n_lines == len(words):
            break
        name, *cells = line.removesuffix(b"\n").rstrip(b"\r").split(b"\t")
        if line.lstrip(b"\r") != b"\n":
            is_right = line[-1:] == b"\n" and len(cells) == n_samples and {*cells} <= {b"0", b"1"}
            if not is_right:
                break
            bits = np.zeros(64 * words.shape[1], dtype=np.uint8)
            bits[:n_samples] = [int(cell) for cell in cells]
            words[n_lines] = np.packbits(bits, bitorder="little").view(np.uint64)
            names[name_end : name_end + len(name)] = np.frombuffer(name, dtype=np.uint8)
            name_end += len(name)
            ends[n_lines] = name_end
            n_lines += 1
        at += len(line)
    return n_lines, at


def hash_names(names, ends, out):
    for i, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        total = np.array([end - start], dtype=np.uint64)
        for byte in names[start:end]:
            total = _mix(total ^ np.uint64(byte))
        out[i] = total[0]


def fill_slots(known, slots):
    slots[:] = 0
    for number, value in enumerate(known.tolist()):
        slot = value % len(slots)
        while slots[slot] > 0:
            slot = (slot + 1) % len(slots)
        slots[slot] = number + 1


def count_codes(codes, rows, bounds, out):
    listed = codes if rows is None else codes[:, rows]
    for f in range(codes.shape[0]):
        for s in range(len(bounds) - 1):
            segment = listed[f, bounds[s] : bounds[s + 1]]
            out[f, :, s] += np.bincount(segment, minlength=out.shape[1])


def sort_cells(labels, environments, n_environments, position, bounds):
    cells = labels.astype(np.int64) * n_environments + environments
    position[np.argsort(cells, kind="stable")] = np.arange(len(cells))
    bounds[1:] = np.cumsum(np.bincount(cells, minlength=2 * n_environments))


def split_rows(rows, bounds, covered, stay, left, left_bounds: Array):
    listed = np.arange(len(covered)) if rows is None else rows
    stay[:], left[:] = [*listed[~covered], 0], [*listed[covered], 0]
    left_bounds[:] = [np.count_nonzero(covered[:bound]) for bound in bounds]


def count_bits(words, in_play, word_bounds, n_in_play, out: Array):
    ones = np.bitwise_count(words & in_play).astype(np.int64)
    for s in range(len(word_bounds) - 1):
        out[:, 1, s] = ones[:, word_bounds[s] : word_bounds[s + 1]].sum(axis=1)
    out[:, 0] = n_in_play - out[:, 1]


def sort_bits(words, source, tiles):
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    bits = np.ascontiguousarray(bits[:, source])
    lay_bits(np.packbits(bits, axis=1, bitorder="little").view(np.uint64), tiles)


def lay_bits(words, tiles):
    filled = np.zeros((64 * len(tiles), tiles.shape[1]), dtype=np.uint64)
    filled[: len(words)] = words
    tiles[:] = filled.reshape(len(tiles), 64, -1).transpose(0, 2, 1)


def count_tiles(tiles, places, masks, bounds, n_in_play, out: Array):
    ones = np.bitwise_count(tiles[:, places] & masks[:, np.newaxis]).astype(np.int64)
    for s, (start, stop) in enumerate(pairwise(bounds)):
        out[:, 1, s] = ones[:, start:stop].sum(axis=1).ravel()[: len(out)]
    out[:, 0] = n_in_play - out[:, 1]


def add_values(codes, environments, values, sums: Array):
    for code, environment, row in zip(codes.tolist(), environments.tolist(), values, strict=True):
        sums[code, :, environment] += row


def count_clusters(covered, clusters, n_negative, n, p):
    positive = np.arange(len(covered)) >= n_negative
    n[:] = np.bincount(clusters[covered], minlength=len(n))
    p[:] = np.bincount(clusters[covered & positive], minlength=len(n))


def add_moments(n, p, starts, n_clusters, sum_nn, sum_np, sum_pp):
    for e, (start, stop) in enumerate(pairwise(starts.tolist())):
        n_of_e, p_of_e = n[start:stop], p[start:stop]
        n_clusters[e] += (n_of_e > 0).sum()
        sum_nn[e] += n_of_e @ n_of_e
        sum_np[e] += n_of_e @ p_of_e
        sum_pp[e] += p_of_e @ p_of_e
