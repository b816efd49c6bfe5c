"""Relating a block of objects to the groups of `relevant` rows: each pair that reaches, once.

A pair is found at the first term of the row, in the index's order, that the object has. So what a
posting tells of the terms after it bounds all the text that the two may share.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.grouping import (
    ALPHA_OF,
    BOX,
    CHUNK,
    FACTS,
    LATER,
    NEAR,
    NEED,
    NEED_PADDING,
    PULL,
    UNIT_X,
    WEIGHT_PADDING,
)
from placewire.kernels.interning import EMPTY, entry_of_hash
from placewire.kernels.jit import inlined, kernel
from placewire.kernels.postings import signature_of_term

# Prunings, each a bit; see docs/decisions/0010.
CELL_PRUNING = 1  # Lemma 6
GROUP_PRUNING = 2  # Theorem 3
EARLY_TERMINATION = 4  # Theorem 4
OUTER_BOUND = 8  # the object's distance from a cell
INNER_BOUND = 16  # the row's place in the cell
PREFIX = 32  # Lemma 3
MAX_WEIGHT = 64  # Theorem 1
UNSEEN_BOUND = 128  # Theorem 2
HINTS = 256  # terms that the object surely lacks
ALL_PRUNINGS = 511
COUNT_POSTINGS = 512  # say which pruning skips a posting; slow

# Counters.
CELLS, CELLS_SKIPPED, GROUPS, GROUPS_SKIPPED = 0, 1, 2, 3
IN_CELLS, IN_GROUPS, CUT, LOOKED = 4, 5, 6, 7  # postings skipped by each, and looked at
BY_PREFIX, BY_INNER, BY_UNSEEN, BY_HINTS = 8, 9, 10, 11  # postings skipped one by one
RAISED, VERIFIED, FOUND = 12, 13, 14
COUNTERS = 15

CHORD_PADDING = np.float32(4e-7)  # of the earth's radius: 2.5 m, as for balls
NO_BOUND = 1e6  # a weight that no text has


@kernel
def objects_to_pairs(
    term_offsets: np.ndarray,
    terms: np.ndarray,
    norms: np.ndarray,
    term_table: np.ndarray,
    term_idf: np.ndarray,
    in_order: bool,
    prunings: int,
) -> tuple:  # type: ignore[type-arg]
    """The terms of objects that the index knows.

    Returns the number of each term or -1, i32; and for each known one its number i32[p], its object
    u32[p], weights x and y f32[p] and hints u64[p] of the terms after it. Unless `in_order`, a row
    may have any of the other terms after it.
    """
    term_number = np.full(terms.size, -1, np.int32)
    pairs = 0
    for o in range(norms.size):
        for at in range(term_offsets[o], term_offsets[o + 1]):
            entry = entry_of_hash(term_table, terms[at])
            if term_table[entry + np.uint64(1)] != EMPTY:
                term_number[at] = np.int64(term_table[entry + np.uint64(1)])
                pairs += 1
    pair_number = np.empty(pairs, np.int32)
    pair_object = np.empty(pairs, np.uint32)
    pair_x = np.empty(pairs, np.float32)
    pair_y = np.empty(pairs, np.float32)
    pair_hints = np.empty(pairs, np.uint64)
    k = 0
    for o in range(norms.size):
        first, last = term_offsets[o], term_offsets[o + 1]
        for at in range(first, last):
            number = term_number[at]
            if number < 0:
                continue
            weight = term_idf[number] / norms[o] if norms[o] != 0.0 else 0.0
            most = 0.0
            hints = np.uint64(0)
            for other in range(first, last):
                its = term_number[other]
                if its < 0 or its == number or (in_order and its < number):
                    continue
                if norms[o] != 0.0:
                    most = max(most, term_idf[its] / norms[o])
                hints |= signature_of_term(terms[other])
            if prunings & UNSEEN_BOUND:
                x, y = weight, most if prunings & MAX_WEIGHT else 1.0
            elif prunings & PREFIX:
                x = max(weight, most) if prunings & MAX_WEIGHT else 1.0
                y = x
            else:
                x, y = NO_BOUND, NO_BOUND
            pair_number[k] = number
            pair_object[k] = o
            pair_x[k] = x * (1.0 + WEIGHT_PADDING)
            pair_y[k] = y * (1.0 + WEIGHT_PADDING)
            pair_hints[k] = hints
            k += 1
    return term_number, pair_number, pair_object, pair_x, pair_y, pair_hints


@inlined
def chord_to_box(bounds: np.ndarray, x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    """No point of the box is nearer to the point than this."""
    zero = np.float32(0.0)
    dx = max(bounds[BOX] - x, x - bounds[BOX + 3], zero)
    dy = max(bounds[BOX + 1] - y, y - bounds[BOX + 4], zero)
    dz = max(bounds[BOX + 2] - z, z - bounds[BOX + 5], zero)
    return max(np.sqrt(dx * dx + dy * dy + dz * dz) - CHORD_PADDING, zero)


@inlined
def bounds_reached(bounds: np.ndarray, x: np.float32, y: np.float32, chord: np.float32) -> bool:
    """Whether a posting within the bounds may reach its threshold."""
    text = bounds[NEAR] * x + bounds[LATER] * y
    return bool(text >= bounds[NEED] + min(bounds[PULL] * chord, bounds[ALPHA_OF]))


@inlined
def postings_exceeding(
    facts: np.ndarray,
    base: int,
    stride: int,
    count: int,
    x: np.float32,
    y: np.float32,
    units: np.ndarray,
    excess: np.ndarray,
) -> None:
    """By how much each of the first `count` postings of a group may exceed its need: f32.

    Plain loops over slices: the compiler makes vector instructions of them.
    """
    need = facts[base : base + count]
    near = facts[base + NEAR * stride : base + NEAR * stride + count]
    later = facts[base + LATER * stride : base + LATER * stride + count]
    pull = facts[base + PULL * stride : base + PULL * stride + count]
    alpha = facts[base + ALPHA_OF * stride : base + ALPHA_OF * stride + count]
    to = base + UNIT_X * stride
    unit_x = facts[to : to + count]
    unit_y = facts[to + stride : to + stride + count]
    unit_z = facts[to + 2 * stride : to + 2 * stride + count]
    px, py, pz = units[0], units[1], units[2]
    for i in range(count):
        dx = unit_x[i] - px
        dy = unit_y[i] - py
        dz = unit_z[i] - pz
        chord = np.sqrt(dx * dx + dy * dy + dz * dz) - CHORD_PADDING
        chord = chord if chord > np.float32(0.0) else np.float32(0.0)
        far = pull[i] * chord
        far = far if far < alpha[i] else alpha[i]
        excess[i] = near[i] * x + later[i] * y - need[i] - far


@inlined
def postings_exceeding_at(
    facts: np.ndarray,
    base: int,
    stride: int,
    count: int,
    x: np.float32,
    y: np.float32,
    chord: np.float32,
    excess: np.ndarray,
) -> None:
    """The same with one chord for all, that of the cell."""
    for i in range(count):
        far = min(facts[base + PULL * stride + i] * chord, facts[base + ALPHA_OF * stride + i])
        text = facts[base + NEAR * stride + i] * x + facts[base + LATER * stride + i] * y
        excess[i] = text - facts[base + i] - far


@inlined
def chunks_reached(
    chunk_bounds: np.ndarray,
    first: int,
    last: int,
    x: np.float32,
    y: np.float32,
    chord: np.float32,
) -> int:
    """The first chunk after `first` from which on none is reached, by bisection."""
    low, high = first + 1, last
    while low < high:
        middle = (low + high) >> 1
        if bounds_reached(chunk_bounds[middle], x, y, chord):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def objects_reaching_groups(
    # pairs of objects, in cell order, and terms of the index, grouped by term
    list_number: np.ndarray,
    list_offsets: np.ndarray,
    pair_object: np.ndarray,
    pair_x: np.ndarray,
    pair_y: np.ndarray,
    pair_hints: np.ndarray,
    units: np.ndarray,
    # the index
    term_cells: np.ndarray,
    cell_offsets: np.ndarray,
    cell_groups: np.ndarray,
    cell_bounds: np.ndarray,
    group_offsets: np.ndarray,
    group_chunks: np.ndarray,
    chunk_bounds: np.ndarray,
    facts: np.ndarray,
    posting_row: np.ndarray,
    posting_hints: np.ndarray,
    prunings: int,
    # scratch, and where to put candidates: at least as long as the longest cell
    excess: np.ndarray,
    out_object: np.ndarray,
    out_row: np.ndarray,
    out_number: np.ndarray,
    out_bound: np.ndarray,
    cursor: np.ndarray,
    counters: np.ndarray,
) -> int:
    """Write every (object, row, term) that may reach the row's threshold, with a bound of its score.

    Gives how many are written. `cursor` i64[3] holds the list, cell and pair to begin at; when there
    is no more room it is at the cell that could not be done, at the end past the last list.
    """
    begin_list, begin_cell, begin_pair = cursor[0], cursor[1], cursor[2]
    found = 0
    for n in range(begin_list, list_number.size):
        number = list_number[n]
        first_cell = max(term_cells[number], begin_cell)
        begin_cell = np.int64(0)
        for c in range(first_cell, term_cells[number + 1]):
            size = cell_offsets[c + 1] - cell_offsets[c]
            first_pair = max(list_offsets[n], begin_pair)
            begin_pair = np.int64(0)
            for pair in range(first_pair, list_offsets[n + 1]):
                o = np.int64(pair_object[pair])
                x, y = pair_x[pair], pair_y[pair]
                if found + size > out_row.size:
                    cursor[0], cursor[1], cursor[2] = n, c, pair
                    return found
                counters[CELLS] += 1
                chord = np.float32(0.0)
                if prunings & OUTER_BOUND:
                    chord = chord_to_box(cell_bounds[c], units[o, 0], units[o, 1], units[o, 2])
                if prunings & CELL_PRUNING and not bounds_reached(cell_bounds[c], x, y, chord):
                    counters[CELLS_SKIPPED] += 1
                    counters[IN_CELLS] += size
                    continue
                for g in range(cell_groups[c], cell_groups[c + 1]):
                    begin, end = group_offsets[g], group_offsets[g + 1]
                    chunk, last_chunk = group_chunks[g], group_chunks[g + 1]
                    counters[GROUPS] += 1
                    if prunings & GROUP_PRUNING and not bounds_reached(
                        chunk_bounds[chunk], x, y, chord
                    ):
                        counters[GROUPS_SKIPPED] += 1
                        counters[IN_GROUPS] += end - begin
                        continue
                    count = end - begin
                    if prunings & EARLY_TERMINATION and last_chunk - chunk > 1:
                        until = chunks_reached(chunk_bounds, chunk, last_chunk, x, y, chord)
                        count = min(count, (until - chunk) * CHUNK)
                        counters[CUT] += end - begin - count
                    counters[LOOKED] += count
                    base, stride = FACTS * begin, end - begin
                    if prunings & INNER_BOUND:
                        postings_exceeding(facts, base, stride, count, x, y, units[o], excess)
                    else:
                        postings_exceeding_at(facts, base, stride, count, x, y, chord, excess)
                    for i in range(count):
                        left = excess[i]
                        if left < np.float32(0.0):
                            continue
                        if prunings & HINTS and not posting_hints[begin + i] & pair_hints[pair]:
                            left -= facts[base + LATER * stride + i] * y
                            if left < -np.float32(NEED_PADDING):
                                counters[BY_HINTS] += 1
                                continue
                        out_object[found] = o
                        out_row[found] = posting_row[begin + i]
                        out_number[found] = number
                        alpha = facts[base + ALPHA_OF * stride + i]
                        out_bound[found] = left + facts[base + i] + alpha
                        found += 1
    cursor[0], cursor[1], cursor[2] = list_number.size, 0, 0
    return found
