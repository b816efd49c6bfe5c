"""Build postings: from subscription rows to (term, level, cell) -> postings list.

A posting repeats in 16 bytes the data that decides most candidates, so that matching reads little
memory, and reads it in order: the region's bounding box inside the cell, the row, flags, and hash
prefixes of up to two other terms of the expression: required terms, or earlier covering terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import freeze, kernel, subkernel
from placewire.kernels.space.cells import (
    MAX_LEVEL,
    fine_column_of_lon,
    fine_row_of_lat,
    gather_bits,
    place_in_cell,
    range_overlaps_cell,
)
from placewire.kernels.text.term_sets import HINT_SHIFT
from placewire.model.expression import COVER_ALL, COVER_ONE
from placewire.model.regions import BOX, EVERYWHERE
from placewire.model.subscriptions import NEVER_US, SubscriptionRows

ANY_TERM = np.uint64(0)  # the pseudo-term that every object has

# A posting is 4 words: west and south, east and north (16 bits each; 1..65534 in the cell, 0 and
# 65535 beyond it), row, and 8 bits of flags below two hints of 12 bits.
WORDS = 4
WEST_SOUTH = 0
EAST_NORTH = 1
ROW = 2
FLAGS = 3
BEFORE = 0
BEYOND = 65535

EXACT_REGION = 1  # the posting's box only bounds the region
WHOLE_WHERE = 2  # the posted term alone does not satisfy the expression
EARLIER_COVER = 4  # an object with an earlier covering term matches there
EXPIRES = 8
REQUIRES = 16  # the hints are of required terms
SECOND_HINT = 32
MORE_HINTS = 64  # more required terms than hints


class Predicates(NamedTuple):
    """The predicates of n rows: the columns of `SubscriptionRows` that decide a match."""

    expires_us: NDArray[np.int64]
    region_kind: NDArray[np.uint8]
    box: NDArray[np.float64]
    shape_offsets: NDArray[np.int64]
    shape: NDArray[np.float64]
    cover_mode: NDArray[np.uint8]
    literal_offsets: NDArray[np.int64]
    literal_term: NDArray[np.uint64]
    literal_true: NDArray[np.int16]
    literal_false: NDArray[np.int16]
    literal_cover: NDArray[np.uint8]


def predicates_of(rows: SubscriptionRows) -> Predicates:
    """Return the predicates of rows."""
    return freeze(Predicates, (getattr(rows, name) for name in Predicates._fields))


class BooleanIndex(NamedTuple):
    """Postings and their directory; every array can be mapped from disk."""

    term_table: NDArray[np.uint64]
    run_offsets: NDArray[np.uint32]
    run_level: NDArray[np.int8]
    run_cells: NDArray[np.uint32]
    cell_code: NDArray[np.uint32]
    cell_offsets: NDArray[np.int64]
    postings: NDArray[np.uint32]

    @property
    def size(self) -> int:
        """Return the number of postings."""
        return int(self.postings.shape[0])

    @property
    def longest(self) -> int:
        """Return the length of the longest list."""
        return int(np.diff(self.cell_offsets).max(initial=0))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return freeze, (BooleanIndex, tuple(self))


class Placements(NamedTuple):
    """Postings in cells: the term, level, code and number of each."""

    term: NDArray[np.uint32]
    level: NDArray[np.int8]
    code: NDArray[np.uint32]
    post: NDArray[np.uint32]


@subkernel
def edge_in_cell(fine: int, level: int, cell: int) -> int:
    """Return the position of a box edge relative to a cell's column or row."""
    its = fine >> (32 - level) if level else 0
    if its < cell:
        return BEFORE
    if its > cell:
        return BEYOND
    return place_in_cell(fine, level)


@kernel
def rows_to_covers(rows: Predicates, literal_count: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Return the (row, literal) pairs to post: u32[p], i32[p]; literal -1 stands for ANY_TERM.

    `literal_count` is the frequency of each literal's term. Where several literals would each do,
    the rarest is posted: the paper's least frequent keyword.
    """
    cover_mode, literal_offsets = rows.cover_mode, rows.literal_offsets
    literal_cover = rows.literal_cover
    total = 0
    for row in range(cover_mode.size):
        if cover_mode[row] == COVER_ALL:
            for at in range(literal_offsets[row], literal_offsets[row + 1]):
                total += literal_cover[at]
        else:
            total += 1
    post_row = np.empty(total, np.uint32)
    post_literal = np.empty(total, np.int32)
    k = 0
    for row in range(cover_mode.size):
        first = literal_offsets[row]
        last = literal_offsets[row + 1]
        if cover_mode[row] == COVER_ALL:
            for at in range(first, last):
                if literal_cover[at]:
                    post_row[k] = row
                    post_literal[k] = at - first
                    k += 1
            continue
        best = -1
        if cover_mode[row] == COVER_ONE:
            for at in range(first, last):
                if literal_cover[at] and (
                    best < 0 or literal_count[at] < literal_count[first + best]
                ):
                    best = at - first
        post_row[k] = row
        post_literal[k] = best
        k += 1
    return post_row, post_literal


@kernel
def groups_to_cells(
    term_offsets: np.ndarray,
    term_posts: np.ndarray,
    post_row: np.ndarray,
    ranges: np.ndarray,
    finest: np.ndarray,
    is_stop: np.ndarray,
    short_list: int,
) -> Placements:
    """Move the postings of long lists down to finer cells, term by term.

    At every level of `is_stop` a list of at most `short_list` postings stays, and so does any
    posting whose range is too large for a finer cell. Placements are by (level, term, code).
    """
    count = term_posts.size
    act_term = np.empty(count, np.uint32)
    act_code = np.zeros(count, np.uint32)
    act_post = np.empty(count, np.uint32)
    for t in range(term_offsets.size - 1):
        for k in range(term_offsets[t], term_offsets[t + 1]):
            act_term[k] = t
            act_post[k] = term_posts[k]
    active = count
    placed = 0
    out_term = np.empty(count + 16, np.uint32)
    out_level = np.empty(count + 16, np.int8)
    out_code = np.empty(count + 16, np.uint32)
    out_post = np.empty(count + 16, np.uint32)
    for level in range(MAX_LEVEL + 1):
        if active == 0:
            break
        if placed + active > out_term.size:
            room = 2 * (placed + active)
            out_term = np.append(out_term[:placed], np.empty(room - placed, np.uint32))
            out_level = np.append(out_level[:placed], np.empty(room - placed, np.int8))
            out_code = np.append(out_code[:placed], np.empty(room - placed, np.uint32))
            out_post = np.append(out_post[:placed], np.empty(room - placed, np.uint32))
        next_term = np.empty(active + 16, np.uint32)
        next_code = np.empty(active + 16, np.uint32)
        next_post = np.empty(active + 16, np.uint32)
        following = 0
        i = 0
        while i < active:
            j = i + 1
            while j < active and act_term[j] == act_term[i] and act_code[j] == act_code[i]:
                j += 1
            stops = is_stop[level]
            keep_all = stops and j - i <= short_list
            descending = 0
            for k in range(i, j):
                row = post_row[act_post[k]]
                if keep_all or (stops and finest[row] <= level):
                    out_term[placed] = act_term[k]
                    out_level[placed] = level
                    out_code[placed] = act_code[k]
                    out_post[placed] = act_post[k]
                    placed += 1
                else:
                    act_post[i + descending] = act_post[k]
                    descending += 1
            if descending:
                if following + 4 * descending > next_term.size:
                    room = 2 * (following + 4 * descending)
                    next_term = np.append(next_term, np.empty(room - next_term.size, np.uint32))
                    next_code = np.append(next_code, np.empty(room - next_code.size, np.uint32))
                    next_post = np.append(next_post, np.empty(room - next_post.size, np.uint32))
                for child in range(4):
                    code = (np.int64(act_code[i]) << 2) | child
                    column = gather_bits(code)
                    line = gather_bits(code >> 1)
                    for k in range(i, i + descending):
                        row = post_row[act_post[k]]
                        if range_overlaps_cell(ranges, row, level + 1, column, line):
                            next_term[following] = act_term[i]
                            next_code[following] = code
                            next_post[following] = act_post[k]
                            following += 1
            i = j
        act_term = next_term
        act_code = next_code
        act_post = next_post
        active = following
    return Placements(out_term[:placed], out_level[:placed], out_code[:placed], out_post[:placed])


@kernel
def placements_to_runs(placed: Placements, order: np.ndarray, terms: int) -> tuple:  # type: ignore[type-arg]
    """Build the directory of placements in (term, level, code) `order`: runs of a term's levels.

    Returns run_offsets u32[terms + 1], run_level i8[r], run_cells u32[r + 1], cell_code u32[c],
    cell_offsets i64[c + 1].
    """
    placed_term, placed_level, placed_code = placed.term, placed.level, placed.code
    n = order.size
    runs = 0
    cells = 0
    for k in range(n):
        a = order[k]
        b = order[k - 1] if k else a
        new_run = k == 0 or placed_term[a] != placed_term[b] or placed_level[a] != placed_level[b]
        runs += new_run
        cells += new_run or placed_code[a] != placed_code[b]
    run_offsets = np.zeros(terms + 1, np.uint32)
    run_level = np.empty(runs, np.int8)
    run_cells = np.empty(runs + 1, np.uint32)
    cell_code = np.empty(cells, np.uint32)
    cell_offsets = np.empty(cells + 1, np.int64)
    r = 0
    c = 0
    for k in range(n):
        a = order[k]
        b = order[k - 1] if k else a
        new_run = k == 0 or placed_term[a] != placed_term[b] or placed_level[a] != placed_level[b]
        if new_run:
            run_level[r] = placed_level[a]
            run_cells[r] = c
            run_offsets[placed_term[a] + 1] += 1
            r += 1
        if new_run or placed_code[a] != placed_code[b]:
            cell_code[c] = placed_code[a]
            cell_offsets[c] = k
            c += 1
    run_cells[r] = c
    cell_offsets[c] = n
    for t in range(terms):
        run_offsets[t + 1] += run_offsets[t]
    return run_offsets, run_level, run_cells, cell_code, cell_offsets


@kernel
def placements_to_postings(
    placed: Placements,
    order: np.ndarray,
    post_row: np.ndarray,
    post_literal: np.ndarray,
    rows: Predicates,
) -> np.ndarray:
    """Build the postings u32[n, WORDS] in `order`."""
    region_kind, box, expires_us = rows.region_kind, rows.box, rows.expires_us
    cover_mode, literal_offsets = rows.cover_mode, rows.literal_offsets
    literal_term, literal_true = rows.literal_term, rows.literal_true
    literal_cover = rows.literal_cover
    placed_level, placed_code, placed_post = placed.level, placed.code, placed.post
    flags_of_post = np.zeros(post_row.size, np.uint32)
    for p in range(post_row.size):
        row = post_row[p]
        first = literal_offsets[row]
        last = literal_offsets[row + 1]
        flags = 0
        if region_kind[row] != EVERYWHERE and (
            region_kind[row] != BOX or box[row, 0] > box[row, 2]
        ):
            flags |= EXACT_REGION
        if expires_us[row] != NEVER_US:
            flags |= EXPIRES
        for at in range(first, last):
            if literal_true[at] != -1:
                flags |= WHOLE_WHERE
                break
        posted = post_literal[p]
        until = last
        means = REQUIRES
        if cover_mode[row] != COVER_ONE:
            until = first + max(posted, 0)
            means = EARLIER_COVER
        hints = 0
        for at in range(first, until):
            if literal_cover[at] and at - first != posted:
                hint = np.int64(literal_term[at] >> np.uint64(HINT_SHIFT))
                flags |= means
                if hints == 0:
                    flags |= hint << 8
                elif hints == 1:
                    flags |= SECOND_HINT | (hint << 20)
                else:
                    flags |= MORE_HINTS
                hints += 1
        flags_of_post[p] = flags
    postings = np.empty((order.size, WORDS), np.uint32)
    for k in range(order.size):
        a = order[k]
        p = placed_post[a]
        row = post_row[p]
        level = np.int64(placed_level[a])
        column = gather_bits(np.int64(placed_code[a]))
        line = gather_bits(np.int64(placed_code[a]) >> 1)
        west = east = south = north = 0
        if region_kind[row] == EVERYWHERE:
            east = north = BEYOND
        else:
            south = edge_in_cell(fine_row_of_lat(box[row, 1]), level, line)
            north = edge_in_cell(fine_row_of_lat(box[row, 3]), level, line)
            if box[row, 0] > box[row, 2]:
                east = BEYOND  # crosses the antimeridian: the exact test decides
            else:
                west = edge_in_cell(fine_column_of_lon(box[row, 0]), level, column)
                east = edge_in_cell(fine_column_of_lon(box[row, 2]), level, column)
        postings[k, WEST_SOUTH] = west | (south << 16)
        postings[k, EAST_NORTH] = east | (north << 16)
        postings[k, ROW] = row
        postings[k, FLAGS] = flags_of_post[p]
    return postings
