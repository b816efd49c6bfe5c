"""Match a block of objects with the postings of one segment, or with every row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import inlined_subkernel, kernel
from placewire.kernels.space.cells import MAX_LEVEL
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
    BooleanIndex,
    Predicates,
)
from placewire.kinds.boolean.kernels.probes import (
    AHEAD,
    AT,
    CELL,
    OBJECT,
    Cursor,
    ObjectInCell,
    Probe,
    object_in_cell,
    objects_meeting_cells,
)
from placewire.model.subscriptions import NEVER_US

DOUBTS = 1 << 14  # room for undecided postings


class MatchBuffers(NamedTuple):
    """Output room for matches, and scratch for undecided postings."""

    object: NDArray[np.uint32]
    row: NDArray[np.uint32]
    doubt_object: NDArray[np.uint32]
    doubt_posting: NDArray[np.int64]
    doubt_flags: NDArray[np.uint8]


def make_buffers(room: int, doubts: int = DOUBTS) -> MatchBuffers:
    """Make buffers for `room` matches and `doubts` undecided postings."""
    return MatchBuffers(
        np.empty(room, np.uint32),
        np.empty(room, np.uint32),
        np.empty(doubts, np.uint32),
        np.empty(doubts, np.int64),
        np.empty(doubts, np.uint8),
    )


def double_buffers(buffers: MatchBuffers) -> MatchBuffers:
    """Copy the matches to buffers of twice the size."""
    wider = make_buffers(2 * buffers.row.size, 2 * buffers.doubt_object.size)
    wider.object[: buffers.object.size] = buffers.object
    wider.row[: buffers.row.size] = buffers.row
    return wider


@inlined_subkernel
def postings_sifted(
    words: np.ndarray,
    first: int,
    last: int,
    seen: ObjectInCell,
    out_object: np.ndarray,
    out_row: np.ndarray,
    found: int,
    doubt_object: np.ndarray,
    doubt_posting: np.ndarray,
    doubtful: int,
) -> tuple[int, int]:
    """Test one cell's postings for one object; write sure matches out and undecided postings aside.

    No branch depends on a posting: about a third fail at random, so a mispredicted branch costs
    more than the whole test. Indexes are unsigned to avoid a test for < 0.
    """
    o, x, y, have = seen
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
        # Cell positions are monotone in the coordinates: only equality leaves the box undecided.
        within = (x > west) & (x < east) & (y > south) & (y < north)
        one = (have >> np.uint64((flags >> np.uint32(14)) & np.uint32(63))) & np.uint64(1)
        two = (have >> np.uint64(flags >> np.uint32(26))) & np.uint64(1)
        kind = flags & np.uint32(0xFF)
        # No flags, or only earlier terms that the object surely lacks: a match.
        sure = within & (
            (kind == 0)
            | ((kind == EARLIER_COVER) & (one == 0))
            | ((kind == (EARLIER_COVER | SECOND_HINT)) & ((one | two) == 0))
        )
        # A required term that the object surely lacks: no match.
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
    probe: Probe,
    index: BooleanIndex,
    rows: Predicates,
    dead: np.ndarray,
    buffers: MatchBuffers,
    cursor: Cursor,
    looked: np.ndarray,
) -> Cursor:
    """Write every matching (object, row) pair once into the buffers.

    Begins at the cursor. When the room is exhausted, returns a cursor at the first list not done,
    otherwise one at the end of the groups. (Arrays that grew in here would cost a reference count
    for every list.) `dead` is a bitmap u64 over rows, empty if none has ended. The number of
    postings tested for each object is added to `looked` i64[objects].
    """
    # Copy fields to locals, so that the loops count no references.
    group_term, group_offsets = probe.group_term, probe.group_offsets
    group_object, codes = probe.group_object, probe.codes
    lons, lats, signatures = probe.lon, probe.lat, probe.signatures
    nows_us, term_offsets, terms = probe.now_us, probe.term_offsets, probe.terms
    term_table, run_offsets = index.term_table, index.run_offsets
    run_level, run_cells = index.run_level, index.run_cells
    cell_code, cell_offsets = index.cell_code, index.cell_offsets
    words = index.postings.reshape(-1)
    expires_us, region_kind, box = rows.expires_us, rows.region_kind, rows.box
    shape_offsets, shape = rows.shape_offsets, rows.shape
    literal_offsets, literal_term = rows.literal_offsets, rows.literal_term
    literal_true, literal_false = rows.literal_true, rows.literal_false
    literal_cover = rows.literal_cover
    out_object, out_row = buffers.object, buffers.row
    doubt_object, doubt_posting = buffers.doubt_object, buffers.doubt_posting
    doubt_flags = buffers.doubt_flags
    begin_run, begin_at = np.int64(cursor.run), np.int64(cursor.at)
    found, next_expiry, candidates = cursor.found, cursor.next_expiry_us, cursor.candidates
    hits = np.empty((AHEAD, 3), np.int64)
    touched = np.uint32(0)
    for g in range(cursor.group, group_term.size):
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
                # First find the cells of some objects and prefetch their lists, so that
                # the memory loads overlap.
                met, at, cell, touched = objects_meeting_cells(
                    group_object,
                    at,
                    group_offsets[g + 1],
                    codes,
                    shift,
                    cell_code,
                    cell_offsets,
                    words,
                    cell,
                    last_cell,
                    hits,
                    touched,
                )
                begun = found
                doubtful = 0
                full = False
                for h in range(met):
                    o = np.uint32(hits[h, OBJECT])
                    first = cell_offsets[hits[h, CELL]]
                    last = cell_offsets[hits[h, CELL] + 1]
                    room = found + doubtful + last - first <= out_row.size
                    if not room or doubtful + last - first > doubt_object.size:
                        # No room for matches or undecided postings: settle these, then resume here.
                        at = hits[h, AT]
                        cell = hits[h, CELL]
                        full = not room or last - first > doubt_object.size
                        break
                    candidates += last - first
                    looked[o] += last - first
                    seen = object_in_cell(o, lons, lats, signatures, level)
                    found, doubtful = postings_sifted(
                        words,
                        first,
                        last,
                        seen,
                        out_object,
                        out_row,
                        found,
                        doubt_object,
                        doubt_posting,
                        doubtful,
                    )
                # Decide the undecided postings in three rounds: by the posting alone, by the rows'
                # literals (prefetched), then by exact tests.
                left = 0
                for d in range(doubtful):
                    o = doubt_object[d]
                    p = WORDS * doubt_posting[d]
                    flags = np.int64(words[p + FLAGS])
                    if flags & (REQUIRES | EARLIER_COVER) and not flags & MORE_HINTS:
                        # A hint rules out all but one term in 4,096.
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
                    seen = object_in_cell(o, lons, lats, signatures, level)
                    west = words[p + WEST_SOUTH] & np.uint32(0xFFFF)
                    south = words[p + WEST_SOUTH] >> np.uint32(16)
                    east = words[p + EAST_NORTH] & np.uint32(0xFFFF)
                    north = words[p + EAST_NORTH] >> np.uint32(16)
                    within = (seen.x > west) & (seen.x < east) & (seen.y > south) & (seen.y < north)
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
                    return Cursor(g, r, at, found, next_expiry, candidates)
        begin_run = np.int64(0)
    if touched == np.uint32(1) and found < 0:
        candidates += 1  # keeps the compiler from removing the prefetch
    return Cursor(group_term.size, 0, 0, found, next_expiry, candidates)


@kernel
def object_meeting_postings(probe: Probe, index: BooleanIndex, buffers: MatchBuffers) -> tuple:  # type: ignore[type-arg]
    """Count the work of probing one object: terms with postings, cells searched, cells found,
    postings tested, and of these sure matches and undecided postings, left to exact tests.
    """
    term_table, run_offsets, run_cells = index.term_table, index.run_offsets, index.run_cells
    cell_code, cell_offsets = index.cell_code, index.cell_offsets
    words = index.postings.reshape(-1)
    hits = np.empty((AHEAD, 3), np.int64)
    known = searched = met = looked = sure = doubtful = 0
    for g in range(probe.group_term.size):
        if probe.group_offsets[g] == probe.group_offsets[g + 1]:
            continue
        entry = entry_of_hash(term_table, probe.group_term[g])
        if term_table[entry + np.uint64(1)] == EMPTY:
            continue
        known += 1
        t = np.int64(term_table[entry + np.uint64(1)])
        for r in range(np.int64(run_offsets[t]), np.int64(run_offsets[t + 1])):
            searched += 1
            level = np.int64(index.run_level[r])
            hit, _, cell, _ = objects_meeting_cells(
                probe.group_object,
                probe.group_offsets[g],
                probe.group_offsets[g + 1],
                probe.codes,
                2 * (MAX_LEVEL - level),
                cell_code,
                cell_offsets,
                words,
                np.int64(run_cells[r]),
                np.int64(run_cells[r + 1]),
                hits,
                np.uint32(0),
            )
            if hit == 0:
                continue
            met += 1
            first, last = cell_offsets[cell], cell_offsets[cell + 1]
            looked += last - first
            seen = object_in_cell(np.uint32(0), probe.lon, probe.lat, probe.signatures, level)
            found, aside = postings_sifted(
                words,
                first,
                last,
                seen,
                buffers.object,
                buffers.row,
                0,
                buffers.doubt_object,
                buffers.doubt_posting,
                0,
            )
            sure += found
            doubtful += aside
    return known, searched, met, looked, sure, doubtful


@kernel
def objects_satisfying_rows(probe: Probe, rows: Predicates, dead: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Return every matching (object, row) pair by testing each pair, and the next expiry."""
    expires_us, region_kind, box = rows.expires_us, rows.region_kind, rows.box
    shape_offsets, shape, literal_offsets = rows.shape_offsets, rows.shape, rows.literal_offsets
    literal_term, literal_true = rows.literal_term, rows.literal_true
    literal_false = rows.literal_false
    lons, lats, nows_us = probe.lon, probe.lat, probe.now_us
    term_offsets, terms = probe.term_offsets, probe.terms
    out_object = np.empty(1024, np.uint32)
    out_row = np.empty(1024, np.uint32)
    found = 0
    next_expiry = NEVER_US
    for o in range(lons.size):
        for row in range(expires_us.size):
            if dead.size and ((dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1)):
                continue
            if expires_us[row] <= nows_us[o]:
                continue
            if not region_contains_point(
                region_kind[row],
                box[row],
                shape[shape_offsets[row] : shape_offsets[row + 1]],
                lons[o],
                lats[o],
            ):
                continue
            if not terms_satisfy_literals(
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
            if found == out_object.size:
                out_object = np.append(out_object, np.empty(found, np.uint32))
                out_row = np.append(out_row, np.empty(found, np.uint32))
            out_object[found] = o
            out_row[found] = row
            found += 1
            next_expiry = min(next_expiry, expires_us[row])
    return out_object[:found], out_row[:found], next_expiry
