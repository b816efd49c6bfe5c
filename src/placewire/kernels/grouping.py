"""Grouping: the postings of `relevant` rows by term, cell and alpha, with bounds of each group.

For an object outside all doubt one inequality decides whether a posting may reach its threshold,

    near * x + later * y >= need + min(pull * chord, alpha)

where `near` is (1 - alpha) u of the posted term, `later` the same summed over the row's terms after
it, x the object's weight of the term, y the largest of its weights after it, `need` theta - alpha,
`pull` alpha in earth radii over reach_m, and `chord` the straight way between the two points on the
unit sphere, which is never longer than the arc. It holds for a group too, with the largest and the
smallest of each (docs/decisions/0010). Everything is in 32-bit floats, padded for their rounding.
"""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.postings import signature_of_term
from placewire.kernels.relevance import ALPHA, IDF, LAT, LON, NORM, REACH
from placewire.model.regions import EARTH_RADIUS_M

# Facts of a posting; a group's postings have them one fact after another.
NEED, NEAR, LATER, PULL, ALPHA_OF, UNIT_X, UNIT_Y, UNIT_Z = 0, 1, 2, 3, 4, 5, 6, 7
FACTS = 8
BOUNDS = 5  # the first of these, as least and largest
BOX = 5  # where a cell's box begins among its bounds: three least and three largest coordinates
CHUNK = 16  # postings of a group that share bounds
LEAST_GROUP = 32  # postings, unless the cell has fewer
NEED_PADDING = 2e-6  # more than 32-bit floats and the rounding of a score may add up to
WEIGHT_PADDING = 1e-6
MOST_PULL = 1e30  # a reach of nothing at all, still a number


@kernel
def rows_to_weights(
    picked: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    literal_number: np.ndarray,
    posted: np.ndarray,
    theta: np.ndarray,
    dropping: bool,
) -> tuple:  # type: ignore[type-arg]
    """The postings of picked rows: literal i64[p], row u32[p], near, later f32[p], hints u64[p].

    A row's terms are taken in the order of their numbers, those that are not posted (bool, empty:
    all are) last. If `dropping`, a posting is left out whose row could not reach `theta` by it even
    with an object at its place.
    """
    total = 0
    longest = 1
    for row in picked:
        total += literal_offsets[row + 1] - literal_offsets[row]
        longest = max(longest, literal_offsets[row + 1] - literal_offsets[row])
    post_literal = np.empty(total, np.int64)
    post_row = np.empty(total, np.uint32)
    post_near = np.empty(total, np.float32)
    post_later = np.empty(total, np.float32)
    post_hints = np.empty(total, np.uint64)
    key = np.empty(longest, np.int64)
    place = np.empty(longest, np.int64)
    k = 0
    for row in picked:
        first, last = literal_offsets[row], literal_offsets[row + 1]
        at = shape_offsets[row]
        alpha, norm = shape[at + ALPHA], shape[at + NORM]
        for i in range(last - first):
            its = np.int64(literal_number[first + i])
            if posted.size and not posted[first + i]:
                its += 1 << 40
            to = i
            while to > 0 and key[to - 1] > its:
                key[to], place[to] = key[to - 1], place[to - 1]
                to -= 1
            key[to], place[to] = its, i
        later, squares = 0.0, 0.0
        hints = np.uint64(0)
        for to in range(last - first - 1, -1, -1):
            i = place[to]
            weight = shape[at + IDF + i] / norm if norm != 0.0 else 0.0
            squares += weight * weight
            reached = alpha + (1.0 - alpha) * math.sqrt(squares) + NEED_PADDING >= 1e-9 * theta[row]
            if key[to] < 1 << 40 and (reached or not dropping):
                post_literal[k] = first + i
                post_row[k] = row
                post_near[k] = (1.0 - alpha) * weight * (1.0 + WEIGHT_PADDING)
                post_later[k] = (1.0 - alpha) * later * (1.0 + WEIGHT_PADDING)
                post_hints[k] = hints
                k += 1
            later += weight
            hints |= signature_of_term(literal_term[first + i])
    return post_literal[:k], post_row[:k], post_near[:k], post_later[:k], post_hints[:k]


@kernel
def rows_to_facts(
    post_row: np.ndarray,
    post_near: np.ndarray,
    post_later: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    theta: np.ndarray,
) -> np.ndarray:
    """The facts f32[FACTS, p] of postings."""
    facts = np.empty((FACTS, post_row.size), np.float32)
    for p in range(post_row.size):
        row = np.int64(post_row[p])
        at = shape_offsets[row]
        alpha = shape[at + ALPHA]
        facts[NEED, p] = 1e-9 * theta[row] - alpha - NEED_PADDING
        facts[NEAR, p] = post_near[p]
        facts[LATER, p] = post_later[p]
        facts[PULL, p] = min(alpha * (EARTH_RADIUS_M / shape[at + REACH]), MOST_PULL)
        facts[ALPHA_OF, p] = alpha
        phi, turn = math.radians(shape[at + LAT]), math.radians(shape[at + LON])
        facts[UNIT_X, p] = math.cos(phi) * math.cos(turn)
        facts[UNIT_Y, p] = math.cos(phi) * math.sin(turn)
        facts[UNIT_Z, p] = math.sin(phi)
    return facts


@kernel
def lists_to_cells(
    list_offsets: np.ndarray, order: np.ndarray, codes: np.ndarray, leaf: int
) -> tuple:  # type: ignore[type-arg]
    """Sort each list of postings along the curve and cut it into cells of at most `leaf` of them.

    Writes into `order` i64[p]; `codes` u32[p] are of postings. Returns how many cells each list
    has, as offsets i64[n + 1], and the postings of each cell, as offsets i64[c + 1].
    """
    list_cells = np.zeros(list_offsets.size, np.int64)
    cell_offsets = np.zeros(1024, np.int64)
    cells = 0
    stack = np.empty((128, 3), np.int64)
    for t in range(list_offsets.size - 1):
        begin, end = list_offsets[t], list_offsets[t + 1]
        if end - begin > leaf:
            here = order[begin:end].copy()
            order[begin:end] = here[np.argsort(codes[here], kind="mergesort")]
        depth = 1
        stack[0, 0], stack[0, 1], stack[0, 2] = begin, end, 32
        while depth:
            depth -= 1
            first, last, shift = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            if first == last:
                continue
            if last - first <= leaf or shift == 0:
                if cells + 2 > cell_offsets.size:
                    cell_offsets = np.append(cell_offsets, np.zeros(cells, np.int64))
                cells += 1
                cell_offsets[cells] = last
                continue
            shift -= 2
            # The last quarter goes below, so that cells come out in order.
            to = last
            for quarter in range(3, -1, -1):
                low, high = first, to
                while low < high:
                    middle = (low + high) >> 1
                    if (np.int64(codes[order[middle]]) >> shift) & 3 < quarter:
                        low = middle + 1
                    else:
                        high = middle
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = low, to, shift
                depth += 1
                to = low
        list_cells[t + 1] = cells
    return list_cells, cell_offsets[: cells + 1].copy()


@inlined
def groups_of(postings: int, groups: int) -> int:
    """How many groups a cell is cut into."""
    return max(1, min(groups, postings // LEAST_GROUP))


@kernel
def cells_to_groups(
    cell_offsets: np.ndarray,
    order: np.ndarray,
    alphas: np.ndarray,
    needs: np.ndarray,
    groups: int,
) -> tuple:  # type: ignore[type-arg]
    """Cut each cell into groups of like alpha, of as many postings each, by rising need.

    Writes into `order`. Returns the groups of each cell, the postings and the chunks of each group,
    all as offsets i64.
    """
    cells = cell_offsets.size - 1
    cell_groups = np.zeros(cells + 1, np.int64)
    for c in range(cells):
        count = groups_of(cell_offsets[c + 1] - cell_offsets[c], groups)
        cell_groups[c + 1] = cell_groups[c] + count
    group_offsets = np.zeros(cell_groups[cells] + 1, np.int64)
    group_chunks = np.zeros(cell_groups[cells] + 1, np.int64)
    for c in range(cells):
        begin, end = cell_offsets[c], cell_offsets[c + 1]
        count = cell_groups[c + 1] - cell_groups[c]
        if count > 1:
            here = order[begin:end].copy()
            order[begin:end] = here[np.argsort(alphas[here], kind="mergesort")]
        for i in range(count):
            g = cell_groups[c] + i
            first = begin + (end - begin) * i // count
            last = begin + (end - begin) * (i + 1) // count
            if last - first > 1:
                inside = order[first:last].copy()
                order[first:last] = inside[np.argsort(needs[inside], kind="mergesort")]
            group_offsets[g + 1] = last
            group_chunks[g + 1] = group_chunks[g] + (last - first + CHUNK - 1) // CHUNK
    return cell_groups, group_offsets, group_chunks


@inlined
def widen_bounds(bounds: np.ndarray, facts: np.ndarray, p: int) -> None:
    """Take a posting into bounds f32[>= BOUNDS]."""
    bounds[NEED] = min(bounds[NEED], facts[NEED, p])
    bounds[NEAR] = max(bounds[NEAR], facts[NEAR, p])
    bounds[LATER] = max(bounds[LATER], facts[LATER, p])
    bounds[PULL] = min(bounds[PULL], facts[PULL, p])
    bounds[ALPHA_OF] = min(bounds[ALPHA_OF], facts[ALPHA_OF, p])


@kernel
def groups_to_bounds(
    cell_offsets: np.ndarray,
    group_offsets: np.ndarray,
    group_chunks: np.ndarray,
    order: np.ndarray,
    facts: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Bounds of cells f32[c, BOX + 6] and chunks f32[k, BOUNDS], and facts by group f32[8 p].

    The bounds of a chunk are of it and all after it in its group: those of the first are the
    group's.
    """
    cell_bounds = np.empty((cell_offsets.size - 1, BOX + 6), np.float32)
    for c in range(cell_offsets.size - 1):
        bounds = cell_bounds[c]
        bounds[:] = np.inf
        bounds[NEAR], bounds[LATER] = 0.0, 0.0
        bounds[BOX + 3 :] = -np.inf
        for k in range(cell_offsets[c], cell_offsets[c + 1]):
            p = order[k]
            widen_bounds(bounds, facts, p)
            for axis in range(3):
                bounds[BOX + axis] = min(bounds[BOX + axis], facts[UNIT_X + axis, p])
                bounds[BOX + 3 + axis] = max(bounds[BOX + 3 + axis], facts[UNIT_X + axis, p])
    groups = group_offsets.size - 1
    chunk_bounds = np.empty((group_chunks[groups], BOUNDS), np.float32)
    by_group = np.empty(FACTS * order.size, np.float32)
    for g in range(groups):
        first, last = group_offsets[g], group_offsets[g + 1]
        for chunk in range(group_chunks[g + 1] - group_chunks[g] - 1, -1, -1):
            bounds = chunk_bounds[group_chunks[g] + chunk]
            if group_chunks[g] + chunk + 1 == group_chunks[g + 1]:
                bounds[:] = np.inf
                bounds[NEAR], bounds[LATER] = 0.0, 0.0
            else:
                bounds[:] = chunk_bounds[group_chunks[g] + chunk + 1]
            for k in range(first + chunk * CHUNK, min(last, first + (chunk + 1) * CHUNK)):
                widen_bounds(bounds, facts, order[k])
        for fact in range(FACTS):
            to = FACTS * first + fact * (last - first)
            for k in range(first, last):
                by_group[to + k - first] = facts[fact, order[k]]
    return cell_bounds, chunk_bounds, by_group
