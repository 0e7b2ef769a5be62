"""Equal values and equal patterns found and numbered."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

import numpy as np

from icscm.compiling import compiled
from icscm.engine._kernels.hashing import ONE, mix


@compiled
def tally_values(values, found, n_rows):
    """The distinct values, in the order of their first rows, and the rows of each.

    Returns their number; one more than `found` has room for, and zeros, if there are more.
    None of the values may be NaN.
    """
    most = found.shape[0]
    n_places = 64
    while n_places < 4 * most:
        n_places *= 2
    last = np.uint64(n_places - 1)
    at_place = np.full(n_places, -1, np.int64)  # open addressing: the number of a value, or -1
    n_found = 0
    n_rows[:] = 0
    for i in range(values.shape[0]):
        value = values[i]
        # as in `_hash_value`: equal numbers must have equal bits
        place = mix(np.float64(value + 0.0).view(np.uint64)) & last
        while at_place[place] >= 0 and found[at_place[place]] != value:
            place = (place + ONE) & last
        number = at_place[place]
        if number < 0:
            if n_found == most:
                found[:] = 0
                n_rows[:] = 0
                return most + 1
            found[n_found] = value
            at_place[place] = n_found
            number = n_found
            n_found += 1
        n_rows[number] += 1
    return n_found


@compiled
def fill_slots(known, slots):
    """Enter patterns 0, 1, ... with these hashes into an empty table."""
    last_slot = np.uint64(slots.shape[0] - 1)
    for number in range(known.shape[0]):
        slot = known[number] & last_slot
        while slots[slot] > 0:
            slot = (slot + ONE) & last_slot
        slots[slot] = number + 1


@compiled
def number_patterns(words, hashes, stored, slots, known, first, numbers):
    """numbers[i] = the number of the pattern in row i; patterns count from their first row on.

    Those in `stored` have their numbers already; `first` lists the rows of the new ones. `slots`
    is a table of numbers plus one, 0 where free, at most half full, by the patterns' `known`
    hashes. Equal hashes are not enough: all words are compared. Returns the number of new ones.
    """
    n_new = 0
    last_slot = np.uint64(slots.shape[0] - 1)
    for i in range(words.shape[0]):
        slot = hashes[i] & last_slot
        while True:
            number = np.int64(slots[slot]) - 1
            if number < 0:
                number = stored.shape[0] + n_new
                slots[slot] = number + 1
                known[number] = hashes[i]
                first[n_new] = i
                n_new += 1
                break
            if known[number] == hashes[i]:
                if number < stored.shape[0]:
                    is_same = np.array_equal(stored[number], words[i])
                else:
                    is_same = np.array_equal(words[first[number - stored.shape[0]]], words[i])
                if is_same:
                    break
            slot = (slot + ONE) & last_slot
        numbers[i] = number
    return n_new


@compiled
def list_members(numbers, offsets, members):
    """members[offsets[k] : offsets[k + 1]] = the places of k in `numbers`, ascending."""
    at = offsets.copy()
    for i in range(numbers.shape[0]):
        members[at[numbers[i]]] = i
        at[numbers[i]] += 1


@compiled
def are_groups(numbers, offsets, members):
    """Whether `members` are as `list_members` lists them, groups in the order of their first.

    None is empty. Reads nothing beyond the arrays, whatever they hold.
    """
    n, n_groups = members.shape[0], offsets.shape[0] - 1
    if numbers.shape[0] != n or offsets[0] != 0 or offsets[n_groups] != n:
        return False
    last_first = np.int64(-1)
    for k in range(n_groups):
        if not offsets[k] < offsets[k + 1] <= n or np.int64(members[offsets[k]]) <= last_first:
            return False
        last = np.int64(-1)
        for i in range(offsets[k], offsets[k + 1]):
            member = np.int64(members[i])
            if member <= last or member >= n or numbers[member] != k:
                return False
            last = member
        last_first = np.int64(members[offsets[k]])
    return True


@compiled
def add_groups(counts, rows, starts, out):
    """out[g] = sum of the counts of rows[starts[g]] up to rows[starts[g + 1]], the last to the end.

    `np.add.reduceat` takes five times as long for groups of two.
    """
    group = -1
    for i in range(rows.shape[0]):
        if group + 1 < starts.shape[0] and starts[group + 1] == i:
            group += 1
            out[group] = 0
        for label in range(counts.shape[1]):
            for k in range(counts.shape[2]):
                out[group, label, k] += counts[rows[i], label, k]
