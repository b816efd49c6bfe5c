"""Find the objects of a block that may enter the results of `nearest` subscriptions.

Postings are those of the kind `boolean`, built from circles. The output may have false positives (a
circle has shrunk since) and duplicates (several terms match), but misses nothing. Settling decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import inlined_subkernel, kernel
from placewire.kernels.space.cells import MAX_LEVEL
from placewire.kernels.space.regions import distance_m
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kernels.text.term_sets import terms_contain
from placewire.kinds.boolean.kernels.postings import (
    EAST_NORTH,
    FLAGS,
    REQUIRES,
    ROW,
    SECOND_HINT,
    WEST_SOUTH,
    WORDS,
    BooleanIndex,
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
from placewire.kinds.nearest.rows import LAT, LON, WITHIN
from placewire.model.expression import COVER_ONE


class NearPredicates(NamedTuple):
    """The predicates of n rows: terms, and a circle (see `NearestRows`)."""

    expires_us: NDArray[np.int64]
    cover_mode: NDArray[np.uint8]
    literal_offsets: NDArray[np.int64]
    literal_term: NDArray[np.uint64]
    circle: NDArray[np.float64]


class Circles(NamedTuple):
    """The current circles of n rows: centres on the unit sphere f32[n, 3], limits f32[n]."""

    centres: NDArray[np.float32]
    limits: NDArray[np.float32]


class NearBuffers(NamedTuple):
    """Output room for candidates, and scratch, both at least as long as the longest list."""

    object: NDArray[np.uint32]
    row: NDArray[np.uint32]
    distance: NDArray[np.float64]
    aside_object: NDArray[np.uint32]
    aside_row: NDArray[np.uint32]


def make_buffers(room: int) -> NearBuffers:
    """Make buffers for `room` candidates."""
    objects, rows, aside_object, aside_row = (np.empty(room, np.uint32) for _ in range(4))
    return NearBuffers(objects, rows, np.empty(room, np.float64), aside_object, aside_row)


@inlined_subkernel
def postings_touching(
    words: np.ndarray,
    first: int,
    last: int,
    seen: ObjectInCell,
    out_object: np.ndarray,
    out_row: np.ndarray,
    found: int,
) -> int:
    """Select the postings of one cell whose box has the object and whose hints it may have.

    As in `postings_sifted`, no branch depends on a posting.
    """
    o, x, y, have = seen
    to = np.uint64(found)
    at = np.uint64(first) * np.uint64(WORDS)
    for _ in range(first, last):
        west_south = words[at + np.uint64(WEST_SOUTH)]
        east_north = words[at + np.uint64(EAST_NORTH)]
        flags = words[at + np.uint64(FLAGS)]
        touches = (
            (x >= west_south & np.uint32(0xFFFF))
            & (x <= east_north & np.uint32(0xFFFF))
            & (y >= west_south >> np.uint32(16))
            & (y <= east_north >> np.uint32(16))
        )
        one = (have >> np.uint64((flags >> np.uint32(14)) & np.uint32(63))) & np.uint64(1)
        two = (have >> np.uint64(flags >> np.uint32(26))) & np.uint64(1)
        short = ((flags & np.uint32(REQUIRES)) != 0) & (
            (one == 0) | ((two == 0) & ((flags & np.uint32(SECOND_HINT)) != 0))
        )
        out_object[to] = o
        out_row[to] = words[at + np.uint64(ROW)]
        to += np.uint64(touches & (not short))
        at += np.uint64(WORDS)
    return np.int64(to)


@inlined_subkernel
def terms_contain_literals(
    terms: np.ndarray,
    first_term: int,
    last_term: int,
    literal_term: np.ndarray,
    first: int,
    last: int,
) -> bool:
    """Return true if the object has every term of the row."""
    for at in range(first, last):
        if not terms_contain(terms, first_term, last_term, literal_term[at]):
            return False
    return True


@kernel
def objects_near_postings(
    probe: Probe,
    units: np.ndarray,
    index: BooleanIndex,
    rows: NearPredicates,
    circles: Circles,
    dead: np.ndarray,
    buffers: NearBuffers,
    cursor: Cursor,
) -> Cursor:
    """Write every (object, row, distance) that may enter a result into the buffers.

    `units` f32[objects, 3] are the objects on the unit sphere. Begins at the cursor; when the room
    is exhausted, returns a cursor at the first list not done.
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
    expires_us, cover_mode = rows.expires_us, rows.cover_mode
    literal_offsets, literal_term = rows.literal_offsets, rows.literal_term
    circle = rows.circle
    centres, limits = circles
    out_object, out_row, out_distance = buffers.object, buffers.row, buffers.distance
    aside_object, aside_row = buffers.aside_object, buffers.aside_row
    begin_run, begin_at = np.int64(cursor.run), np.int64(cursor.at)
    found, next_expiry, candidates = cursor.found, cursor.next_expiry_us, cursor.candidates
    hits = np.empty((AHEAD, 3), np.int64)
    touched = np.uint32(0)
    felt = np.float32(0.0)
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
                aside = 0
                full = False
                for h in range(met):
                    o = np.uint32(hits[h, OBJECT])
                    first = cell_offsets[hits[h, CELL]]
                    last = cell_offsets[hits[h, CELL] + 1]
                    room = found + aside + last - first <= out_row.size
                    if not room or aside + last - first > aside_row.size:
                        at = hits[h, AT]
                        cell = hits[h, CELL]
                        full = not room
                        break
                    candidates += last - first
                    seen = object_in_cell(o, lons, lats, signatures, level)
                    aside = postings_touching(
                        words, first, last, seen, aside_object, aside_row, aside
                    )
                # The rows' circles are scattered in memory: prefetch them.
                for k in range(aside):
                    row = np.int64(aside_row[k])
                    felt += centres[row, 0] + limits[row]
                left = 0
                for k in range(aside):
                    o = aside_object[k]
                    row = np.int64(aside_row[k])
                    dx = centres[row, 0] - units[o, 0]
                    dy = centres[row, 1] - units[o, 1]
                    dz = centres[row, 2] - units[o, 2]
                    aside_object[left] = o
                    aside_row[left] = row
                    left += dx * dx + dy * dy + dz * dz <= limits[row]
                for k in range(left):
                    row = np.int64(aside_row[k])
                    touched ^= np.uint32(circle[row, LON] > 0.0)
                for k in range(left):
                    o = aside_object[k]
                    row = np.int64(aside_row[k])
                    if dead.size and (dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
                        continue
                    if expires_us[row] <= nows_us[o]:
                        continue
                    if cover_mode[row] == COVER_ONE and not terms_contain_literals(
                        terms,
                        term_offsets[o],
                        term_offsets[o + 1],
                        literal_term,
                        literal_offsets[row],
                        literal_offsets[row + 1],
                    ):
                        continue
                    distance = distance_m(circle[row, LON], circle[row, LAT], lons[o], lats[o])
                    if distance > circle[row, WITHIN]:
                        continue
                    out_object[found] = o
                    out_row[found] = row
                    out_distance[found] = distance
                    found += 1
                if full:
                    return Cursor(g, r, at, found, next_expiry, candidates)
        begin_run = np.int64(0)
    if touched == np.uint32(1) and found < 0 and felt == np.float32(1.0):
        candidates += 1  # keeps the compiler from removing the prefetch
    return Cursor(group_term.size, 0, 0, found, next_expiry, candidates)


@kernel
def objects_near_rows(probe: Probe, rows: NearPredicates, dead: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Test every pair, without circles: object u32, row u32, distance f64."""
    lons, lats, nows_us = probe.lon, probe.lat, probe.now_us
    term_offsets, terms = probe.term_offsets, probe.terms
    expires_us, cover_mode = rows.expires_us, rows.cover_mode
    literal_offsets, literal_term = rows.literal_offsets, rows.literal_term
    circle = rows.circle
    room = 1024
    objects = np.empty(room, np.uint32)
    matched = np.empty(room, np.uint32)
    distances = np.empty(room, np.float64)
    found = 0
    for o in range(lons.size):
        first_term, last_term = term_offsets[o], term_offsets[o + 1]
        for row in range(expires_us.size):
            if dead.size and (dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
                continue
            if expires_us[row] <= nows_us[o]:
                continue
            shared = 0
            for at in range(literal_offsets[row], literal_offsets[row + 1]):
                shared += terms_contain(terms, first_term, last_term, literal_term[at])
            wanted = 1
            if cover_mode[row] == COVER_ONE:
                wanted = literal_offsets[row + 1] - literal_offsets[row]
            if shared < wanted:
                continue
            distance = distance_m(circle[row, LON], circle[row, LAT], lons[o], lats[o])
            if distance > circle[row, WITHIN]:
                continue
            if found == room:
                objects = np.append(objects, np.empty(room, np.uint32))
                matched = np.append(matched, np.empty(room, np.uint32))
                distances = np.append(distances, np.empty(room, np.float64))
                room *= 2
            objects[found] = o
            matched[found] = row
            distances[found] = distance
            found += 1
    return objects[:found], matched[:found], distances[:found]
