"""Matching a block of objects against the postings of one segment.

The block's objects are in cell order and its (object, term) pairs are grouped by term, so each
term is looked up once a block and its cells are walked in memory order.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.cells import (
    MAX_LEVEL,
    fine_column_of_lon,
    fine_row_of_lat,
    place_in_cell,
)
from placewire.kernels.space.regions import region_contains_point
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kernels.text.term_sets import (
    row_covers_earlier,
    terms_have_hint,
    terms_satisfy_literals,
)
from placewire.kinds.boolean.kernels.postings import (
    EARLIER_COVER,
    EAST_NORTH,
    EXACT_REGION,
    EXPIRES,
    FLAGS,
    MORE_HINTS,
    REQUIRES,
    ROW,
    SECOND_HINT,
    WEST_SOUTH,
    WHOLE_WHERE,
    WORDS,
)

AHEAD = 256  # lists touched before they are read
DOUBTS = 1 << 14  # room for postings in doubt, unless a list is longer


@kernel
def first_cell_not_below(codes: np.ndarray, first: int, last: int, code: int) -> int:
    """The first position in ascending codes[first:last] whose code is >= `code`, by galloping."""
    step = 1
    low = first
    while low + step < last and codes[low + step] < code:
        low += step
        step *= 2
    high = min(low + step, last)
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@subkernel
def postings_sifted(
    words: np.ndarray,
    first: int,
    last: int,
    x: np.uint32,
    y: np.uint32,
    have: np.uint64,
    o: np.uint32,
    out_object: np.ndarray,
    out_row: np.ndarray,
    found: int,
    doubt_object: np.ndarray,
    doubt_posting: np.ndarray,
    doubtful: int,
) -> tuple[int, int]:
    """Sift one cell's postings for one object: sure matches out, doubtful ones aside.

    No branch depends on a posting: a third of them fail, at random, and a wrong guess of the
    processor costs more than the whole test. Indexes are unsigned to spare the test for < 0.
    """
    to = np.uint64(found)
    aside = np.uint64(doubtful)
    at = np.uint64(first) * np.uint64(WORDS)
    for p in range(first, last):
        west_south = words[at + np.uint64(WEST_SOUTH)]
        east_north = words[at + np.uint64(EAST_NORTH)]
        flags = words[at + np.uint64(FLAGS)]
        west = west_south & np.uint32(0xFFFF)
        south = west_south >> np.uint32(16)
        east = east_north & np.uint32(0xFFFF)
        north = east_north >> np.uint32(16)
        touches = (x >= west) & (x <= east) & (y >= south) & (y <= north)
        # Places are monotone in the coordinates: only equality leaves the box in doubt.
        within = (x > west) & (x < east) & (y > south) & (y < north)
        one = (have >> np.uint64((flags >> np.uint32(14)) & np.uint32(63))) & np.uint64(1)
        two = (have >> np.uint64(flags >> np.uint32(26))) & np.uint64(1)
        kind = flags & np.uint32(0xFF)
        # No flags, or earlier terms that the object surely lacks: a match.
        sure = within & (
            (kind == 0)
            | ((kind == EARLIER_COVER) & (one == 0))
            | ((kind == (EARLIER_COVER | SECOND_HINT)) & ((one | two) == 0))
        )
        # Terms that the object must have and surely lacks: no match.
        short = ((kind & np.uint32(REQUIRES)) != 0) & (
            (one == 0) | ((two == 0) & ((kind & np.uint32(SECOND_HINT)) != 0))
        )
        out_object[to] = o
        out_row[to] = words[at + np.uint64(ROW)]
        to += np.uint64(sure)
        doubt_object[aside] = o
        doubt_posting[aside] = p
        aside += np.uint64(touches & (not sure) & (not short))
        at += np.uint64(WORDS)
    return np.int64(to), np.int64(aside)


@kernel
def objects_matching_postings(
    # the block: objects in cell order, grouped by term
    group_term: np.ndarray,
    group_offsets: np.ndarray,
    group_object: np.ndarray,
    codes: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    nows_us: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    signatures: np.ndarray,
    # the index
    term_table: np.ndarray,
    run_offsets: np.ndarray,
    run_level: np.ndarray,
    run_cells: np.ndarray,
    cell_code: np.ndarray,
    cell_offsets: np.ndarray,
    postings: np.ndarray,
    # the rows
    expires_us: np.ndarray,
    region_kind: np.ndarray,
    box: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    literal_true: np.ndarray,
    literal_false: np.ndarray,
    literal_cover: np.ndarray,
    dead: np.ndarray,
    # where to put matches, and where to go on
    out_object: np.ndarray,
    out_row: np.ndarray,
    doubt_object: np.ndarray,
    doubt_posting: np.ndarray,
    doubt_flags: np.ndarray,
    cursor: np.ndarray,
    looked: np.ndarray,
) -> None:
    """Write every (object, row) that matches, once, into `out_object` and `out_row` u32[..].

    `cursor` i64[6] holds the group, run and position to begin at, how many matches are written,
    the earliest `expires` among them that `nows_us` has not passed, and how many candidates were
    looked at. When there is no more room it returns with the cursor at the list it could not do;
    otherwise with the cursor at the end of the groups. (Arrays that grow in here would cost a
    reference count for every list.) `dead` is a bitmap u64 over rows, empty when none has ended;
    the `doubt` arrays (u32, i64, u8) are scratch, at least as long as the longest list. What each
    object looks at is added to `looked` i64[objects].
    """
    words = postings.reshape(-1)
    hit_object = np.empty(AHEAD, np.uint32)
    hit_cell = np.empty(AHEAD, np.int64)
    hit_at = np.empty(AHEAD, np.int64)
    touched = np.uint32(0)
    begin_group, begin_run, begin_at = cursor[0], cursor[1], cursor[2]
    found = cursor[3]
    next_expiry = cursor[4]
    candidates = cursor[5]
    for g in range(begin_group, group_term.size):
        if group_offsets[g] == group_offsets[g + 1]:
            continue
        entry = entry_of_hash(term_table, group_term[g])
        if term_table[entry + np.uint64(1)] == EMPTY:
            continue
        t = np.int64(term_table[entry + np.uint64(1)])
        for r in range(max(np.int64(run_offsets[t]), begin_run), np.int64(run_offsets[t + 1])):
            level = np.int64(run_level[r])
            shift = 2 * (MAX_LEVEL - level)
            cell = np.int64(run_cells[r])
            last_cell = np.int64(run_cells[r + 1])
            at = max(group_offsets[g], begin_at)
            begin_at = np.int64(0)
            while at < group_offsets[g + 1] and cell < last_cell:
                # First find the cells of some objects and touch their lists, so that the
                # memory of all of them is on its way before the first is read.
                hits = 0
                while at < group_offsets[g + 1] and hits < AHEAD:
                    o = group_object[at]
                    code = np.int64(codes[o]) >> shift
                    if cell_code[cell] < code:
                        cell = first_cell_not_below(cell_code, cell, last_cell, code)
                        if cell == last_cell:
                            break
                    if cell_code[cell] == code:
                        hit_object[hits] = o
                        hit_cell[hits] = cell
                        hit_at[hits] = at
                        touched ^= words[cell_offsets[cell] * WORDS]
                        hits += 1
                    at += 1
                begun = found
                doubtful = 0
                full = False
                for h in range(hits):
                    o = hit_object[h]
                    first = cell_offsets[hit_cell[h]]
                    last = cell_offsets[hit_cell[h] + 1]
                    if (
                        found + doubtful + last - first > out_row.size
                        or doubtful + last - first > doubt_object.size
                    ):
                        # Out of room for matches or for doubts: settle these, then go on here.
                        at = hit_at[h]
                        cell = hit_cell[h]
                        full = found + doubtful + last - first > out_row.size
                        break
                    candidates += last - first
                    looked[o] += last - first
                    x = np.uint32(place_in_cell(np.int64(fine_column_of_lon(lons[o])), level))
                    y = np.uint32(place_in_cell(np.int64(fine_row_of_lat(lats[o])), level))
                    found, doubtful = postings_sifted(
                        words,
                        first,
                        last,
                        x,
                        y,
                        signatures[o],
                        o,
                        out_object,
                        out_row,
                        found,
                        doubt_object,
                        doubt_posting,
                        doubtful,
                    )
                # Look at what is in doubt in three rounds: what the posting itself can tell, then
                # the rows' literals on their way, then the exact tests.
                left = 0
                for d in range(doubtful):
                    o = doubt_object[d]
                    p = WORDS * doubt_posting[d]
                    flags = np.int64(words[p + FLAGS])
                    if flags & (REQUIRES | EARLIER_COVER) and not flags & MORE_HINTS:
                        # A hint tells all but one term in 4,096 apart.
                        one = terms_have_hint(
                            terms, term_offsets[o], term_offsets[o + 1], (flags >> 8) & 0xFFF
                        )
                        two = bool(flags & SECOND_HINT) and terms_have_hint(
                            terms, term_offsets[o], term_offsets[o + 1], flags >> 20
                        )
                        if flags & REQUIRES and (not one or (flags & SECOND_HINT and not two)):
                            continue
                        if flags & EARLIER_COVER and not one and not two:
                            flags &= ~EARLIER_COVER
                    row = np.int64(words[p + ROW])
                    touched ^= np.uint32(literal_offsets[row])
                    doubt_object[left] = o
                    doubt_posting[left] = doubt_posting[d]
                    doubt_flags[left] = flags & 0xFF
                    left += 1
                for d in range(left):
                    if doubt_flags[d] & (WHOLE_WHERE | EARLIER_COVER):
                        row = np.int64(words[WORDS * doubt_posting[d] + ROW])
                        touched ^= np.uint32(literal_term[literal_offsets[row]])
                        touched ^= np.uint32(literal_true[literal_offsets[row]])
                for d in range(left):
                    o = doubt_object[d]
                    p = WORDS * doubt_posting[d]
                    flags = np.int64(doubt_flags[d])
                    row = np.int64(words[p + ROW])
                    x = np.uint32(place_in_cell(np.int64(fine_column_of_lon(lons[o])), level))
                    y = np.uint32(place_in_cell(np.int64(fine_row_of_lat(lats[o])), level))
                    west = words[p + WEST_SOUTH] & np.uint32(0xFFFF)
                    south = words[p + WEST_SOUTH] >> np.uint32(16)
                    east = words[p + EAST_NORTH] & np.uint32(0xFFFF)
                    north = words[p + EAST_NORTH] >> np.uint32(16)
                    within = (x > west) & (x < east) & (y > south) & (y < north)
                    if (flags & EXACT_REGION or not within) and not region_contains_point(
                        region_kind[row],
                        box[row],
                        shape[shape_offsets[row] : shape_offsets[row + 1]],
                        lons[o],
                        lats[o],
                    ):
                        continue
                    if flags & WHOLE_WHERE and not terms_satisfy_literals(
                        terms,
                        term_offsets[o],
                        term_offsets[o + 1],
                        literal_term,
                        literal_true,
                        literal_false,
                        literal_offsets[row],
                        literal_offsets[row + 1],
                    ):
                        continue
                    if flags & EARLIER_COVER and row_covers_earlier(
                        terms,
                        term_offsets[o],
                        term_offsets[o + 1],
                        literal_term,
                        literal_cover,
                        literal_offsets[row],
                        literal_offsets[row + 1],
                        group_term[g],
                    ):
                        continue
                    if flags & EXPIRES:
                        if expires_us[row] <= nows_us[o]:
                            continue
                        next_expiry = min(next_expiry, expires_us[row])
                    out_object[found] = o
                    out_row[found] = row
                    found += 1
                if dead.size:
                    kept = begun
                    for k in range(begun, found):
                        row = np.int64(out_row[k])
                        out_object[kept] = out_object[k]
                        out_row[kept] = row
                        ended = (dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1)
                        kept += 1 - np.int64(ended)
                    found = kept
                if full:
                    cursor[0], cursor[1], cursor[2] = g, r, at
                    cursor[3], cursor[4], cursor[5] = found, next_expiry, candidates
                    return
        begin_run = np.int64(0)
    cursor[0], cursor[1], cursor[2] = group_term.size, 0, 0
    cursor[3], cursor[4], cursor[5] = found, next_expiry, candidates
    if touched == np.uint32(1) and found < 0:
        cursor[5] += 1  # keeps the compiler from leaving out the touching
