"""Match a block of objects with groups of `relevant` rows: each pair that may reach, once.

A pair is found at the first term of the row, in the index's order, that the object has. So a
posting's data about later terms bounds the text score of all terms that the two may share.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kinds.relevant.kernels.groups import (
    ALPHA_OF,
    BOX,
    BY_HINTS,
    BY_INNER,
    BY_PREFIX,
    BY_UNSEEN,
    CELL_PRUNING,
    CELLS,
    CELLS_SKIPPED,
    CHUNK,
    COUNT_POSTINGS,
    CUT,
    EARLY_TERMINATION,
    FACTS,
    GROUP_PRUNING,
    GROUPS,
    GROUPS_SKIPPED,
    HINTS,
    IN_CELLS,
    IN_GROUPS,
    INNER_BOUND,
    LATER,
    LOOKED,
    NEAR,
    NEED,
    NEED_PADDING,
    OUTER_BOUND,
    PULL,
    UNIT_X,
    GroupIndex,
    TermPairs,
)
from placewire.kinds.relevant.kernels.score import CandidateRoom

CHORD_PADDING = np.float32(4e-7)  # of the earth's radius: 2.5 m, as for circles


@subkernel
def chord_to_box(bounds: np.ndarray, x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    """Return a lower bound of the chord from the point to any point of the box."""
    zero = np.float32(0.0)
    dx = max(bounds[BOX] - x, x - bounds[BOX + 3], zero)
    dy = max(bounds[BOX + 1] - y, y - bounds[BOX + 4], zero)
    dz = max(bounds[BOX + 2] - z, z - bounds[BOX + 5], zero)
    return max(np.sqrt(dx * dx + dy * dy + dz * dz) - CHORD_PADDING, zero)


@subkernel
def bounds_reached(bounds: np.ndarray, x: np.float32, y: np.float32, chord: np.float32) -> bool:
    """Return true if a posting within the bounds may reach its threshold."""
    text = bounds[NEAR] * x + bounds[LATER] * y
    return bool(text >= bounds[NEED] + min(bounds[PULL] * chord, bounds[ALPHA_OF]))


@subkernel
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
    """Write by how much each of the first `count` postings of a group may exceed its need: f32.

    These are plain loops over slices, which the compiler turns into vector instructions.
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


@subkernel
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
    """As `postings_exceeding`, with the chord of the cell for all postings."""
    for i in range(count):
        far = min(facts[base + PULL * stride + i] * chord, facts[base + ALPHA_OF * stride + i])
        text = facts[base + NEAR * stride + i] * x + facts[base + LATER * stride + i] * y
        excess[i] = text - facts[base + i] - far


@kernel
def count_postings(
    facts: np.ndarray,
    base: int,
    stride: int,
    count: int,
    most: np.float32,
    chord: np.float32,
    excess: np.ndarray,
    inside: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Count for each posting the bound that skips it: the cell's prefix, its place, or `excess`.

    `inside` is the excess that the prefix allows at the posting's place.
    """
    for i in range(count):
        far = min(facts[base + PULL * stride + i] * chord, facts[base + ALPHA_OF * stride + i])
        both = facts[base + NEAR * stride + i] + facts[base + LATER * stride + i]
        if excess[i] >= np.float32(0.0):
            continue
        if both * most < facts[base + i] + far:
            counters[BY_PREFIX] += 1
        elif inside[i] < np.float32(0.0):
            counters[BY_INNER] += 1
        else:
            counters[BY_UNSEEN] += 1


@subkernel
def chunks_reached(
    chunk_bounds: np.ndarray,
    first: int,
    last: int,
    x: np.float32,
    y: np.float32,
    chord: np.float32,
) -> int:
    """Return, by bisection, the first chunk after `first` from which on none is reached."""
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
    pairs: TermPairs,
    units: np.ndarray,
    index: GroupIndex,
    prunings: int,
    excess: np.ndarray,
    room: CandidateRoom,
    cursor: np.ndarray,
    counters: np.ndarray,
) -> int:
    """Write every (object, row, term) that may reach the row's threshold, with a score bound.

    Returns how many are written. `excess` f32 is scratch; it and `room` are at least as long as the
    longest cell. `cursor` i64[3] holds the list, cell and pair to begin at; when the room is
    exhausted it is set to the first cell not done, at the end to past the last list.
    """
    list_number, list_offsets = pairs.list_number, pairs.list_offsets
    pair_object, pair_hints = pairs.object, pairs.hints
    pair_x, pair_y = pairs.x, pairs.y
    term_cells, cell_offsets, cell_groups = index.term_cells, index.cell_offsets, index.cell_groups
    group_offsets, group_chunks = index.group_offsets, index.group_chunks
    cell_bounds, chunk_bounds, facts = index.cell_bounds, index.chunk_bounds, index.facts
    posting_row, posting_hints = index.posting_row, index.posting_hints
    out_object, out_row, out_number, out_bound = room.object, room.row, room.number, room.bound
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
                    if prunings & COUNT_POSTINGS:
                        most = max(x, y)
                        inside = np.zeros(count, np.float32)
                        if prunings & INNER_BOUND:
                            postings_exceeding(
                                facts, base, stride, count, most, most, units[o], inside
                            )
                        count_postings(
                            facts, base, stride, count, most, chord, excess, inside, counters
                        )
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
