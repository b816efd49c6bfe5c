"""Nearing: objects of a block that may enter the results of `nearest` subscriptions.

Postings are those of `kernels.postings` made of circles. What comes out may be too much, never too
little: a circle has shrunk since, a row's terms are met twice. The merger decides.
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
from placewire.kernels.space.regions import distance_m
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kernels.text.term_sets import terms_contain
from placewire.kinds.boolean.kernels.match import AHEAD, first_cell_not_below
from placewire.kinds.boolean.kernels.postings import (
    EAST_NORTH,
    FLAGS,
    REQUIRES,
    ROW,
    SECOND_HINT,
    WEST_SOUTH,
    WORDS,
)
from placewire.kinds.nearest.rows import NearestRows
from placewire.model.expression import COVER_ONE


@subkernel
def postings_touching(
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
) -> int:
    """Put aside the postings of one cell whose box has the object and whose hints it may have.

    As in `matching`, no branch depends on a posting.
    """
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


@subkernel
def terms_contain_literals(
    terms: np.ndarray,
    first_term: int,
    last_term: int,
    literal_term: np.ndarray,
    first: int,
    last: int,
) -> bool:
    """Whether the object has every term of the row."""
    for at in range(first, last):
        if not terms_contain(terms, first_term, last_term, literal_term[at]):
            return False
    return True


@kernel
def objects_near_postings(
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
    units: np.ndarray,
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
    cover_mode: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    points: NearestRows,
    centres: np.ndarray,
    limits: np.ndarray,
    dead: np.ndarray,
    # scratch, at least as long as the longest list
    aside_object: np.ndarray,
    aside_row: np.ndarray,
    # where to put candidates, and where to go on
    out_object: np.ndarray,
    out_row: np.ndarray,
    out_distance: np.ndarray,
    cursor: np.ndarray,
) -> None:
    """Write every (object, row, distance) that may enter a result.

    `centres` f32[n, 3] and `limits` f32[n] are the circles as known now; row r's point and farthest
    distance are in `points`. `cursor` i64[5] holds the group, run and position to begin at,
    how many candidates are written and how many postings were looked at; when there is no more
    room it returns with the cursor at the list it could not do.
    """
    row_lon, row_lat, within_m = points.lon, points.lat, points.within_m
    words = postings.reshape(-1)
    hit_object = np.empty(AHEAD, np.uint32)
    hit_cell = np.empty(AHEAD, np.int64)
    hit_at = np.empty(AHEAD, np.int64)
    touched = np.uint32(0)
    felt = np.float32(0.0)
    begin_group, begin_run, begin_at = cursor[0], cursor[1], cursor[2]
    found = cursor[3]
    looked = cursor[4]
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
                aside = 0
                full = False
                for h in range(hits):
                    o = hit_object[h]
                    first = cell_offsets[hit_cell[h]]
                    last = cell_offsets[hit_cell[h] + 1]
                    room = found + aside + last - first <= out_row.size
                    if not room or aside + last - first > aside_row.size:
                        at = hit_at[h]
                        cell = hit_cell[h]
                        full = not room
                        break
                    looked += last - first
                    x = np.uint32(place_in_cell(np.int64(fine_column_of_lon(lons[o])), level))
                    y = np.uint32(place_in_cell(np.int64(fine_row_of_lat(lats[o])), level))
                    aside = postings_touching(
                        words,
                        first,
                        last,
                        x,
                        y,
                        signatures[o],
                        o,
                        aside_object,
                        aside_row,
                        aside,
                    )
                # The rows' circles are all over memory: let them come before they are read.
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
                    touched ^= np.uint32(row_lon[row] + row_lat[row] + within_m[row] > 0.0)
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
                    distance = distance_m(row_lon[row], row_lat[row], lons[o], lats[o])
                    if distance > within_m[row]:
                        continue
                    out_object[found] = o
                    out_row[found] = row
                    out_distance[found] = distance
                    found += 1
                if full:
                    cursor[0], cursor[1], cursor[2] = g, r, at
                    cursor[3], cursor[4] = found, looked
                    return
        begin_run = np.int64(0)
    cursor[0], cursor[1], cursor[2] = group_term.size, 0, 0
    cursor[3], cursor[4] = found, looked
    if touched == np.uint32(1) and found < 0 and felt == np.float32(1.0):
        cursor[4] += 1  # keeps the compiler from leaving out the touching


@kernel
def objects_near_rows(
    lons: np.ndarray,
    lats: np.ndarray,
    nows_us: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    expires_us: np.ndarray,
    cover_mode: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    points: NearestRows,
    dead: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """The same by looking at every pair, circles or not: object u32, row u32, distance f64."""
    row_lon, row_lat, within_m = points.lon, points.lat, points.within_m
    room = 1024
    objects = np.empty(room, np.uint32)
    rows = np.empty(room, np.uint32)
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
            distance = distance_m(row_lon[row], row_lat[row], lons[o], lats[o])
            if distance > within_m[row]:
                continue
            if found == room:
                objects = np.append(objects, np.empty(room, np.uint32))
                rows = np.append(rows, np.empty(room, np.uint32))
                distances = np.append(distances, np.empty(room, np.float64))
                room *= 2
            objects[found] = o
            rows[found] = row
            distances[found] = distance
            found += 1
    return objects[:found], rows[:found], distances[:found]
