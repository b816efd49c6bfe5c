"""Groups of `relevant` postings, the prunings of their search (each optional), and its counters.

docs/decisions/0010 explains the prunings and what each saves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kernels.text.term_sets import signature_of_term
from placewire.kinds.relevant.kernels.score import RelevanceBlock
from placewire.model.regions import EARTH_RADIUS_M
from placewire.objects.kernels.best_of_rows import ALPHA, LAT, LON, NORM, REACH, ScoredRows

# Prunings, one bit each.
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
COUNT_POSTINGS = 512  # count which pruning skips a posting; slow

# Counters: cells and groups visited and skipped; the postings in them, those skipped by early
# termination of a group, and those tested; of these, those that each bound skipped (the first three
# only with COUNT_POSTINGS); candidates whose threshold has risen since; and candidates scored.
COUNTER_NAMES = (
    *("cells", "cells_skipped", "groups", "groups_skipped"),
    *("in_cells", "in_groups", "cut", "looked"),
    *("by_prefix", "by_inner", "by_unseen", "by_hints"),
    *("raised", "verified"),
)
CELLS, CELLS_SKIPPED, GROUPS, GROUPS_SKIPPED = 0, 1, 2, 3
IN_CELLS, IN_GROUPS, CUT, LOOKED = 4, 5, 6, 7
BY_PREFIX, BY_INNER, BY_UNSEEN, BY_HINTS = 8, 9, 10, 11
RAISED, VERIFIED = 12, 13


# Facts of a posting; a group stores each fact of all its postings contiguously.
NEED, NEAR, LATER, PULL, ALPHA_OF, UNIT_X, UNIT_Y, UNIT_Z = 0, 1, 2, 3, 4, 5, 6, 7
FACTS = 8
BOUNDS = 5  # the first of these, as minimum and maximum
BOX = 5  # where a cell's box begins among its bounds: three minima and three maxima
CHUNK = 16  # postings of a group that share bounds
LEAST_GROUP = 32  # minimum postings of a group, unless the cell has fewer
NEED_PADDING = 2e-6  # more than the total error of 32-bit floats and of rounding a score
WEIGHT_PADDING = 1e-6
NOT_POSTED = 1 << 40  # more than any term number
MOST_PULL = 1e30  # the pull of a reach of 0, kept finite


class GroupIndex(NamedTuple):
    """Terms numbered from the rarest, their cells, groups, chunks and postings.

    Every array can be mapped from disk. `posted` marks the literals of the rows that are in the
    index; it is empty if all are. `longest` is the number of postings of the largest cell.
    """

    term_table: NDArray[np.uint64]
    term_idf: NDArray[np.float64]
    term_cells: NDArray[np.int64]
    cell_offsets: NDArray[np.int64]
    cell_groups: NDArray[np.int64]
    cell_bounds: NDArray[np.float32]
    group_offsets: NDArray[np.int64]
    group_chunks: NDArray[np.int64]
    chunk_bounds: NDArray[np.float32]
    facts: NDArray[np.float32]
    posting_row: NDArray[np.uint32]
    posting_hints: NDArray[np.uint64]
    posted: NDArray[np.bool_]
    longest: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Return the number of postings."""
        return int(self.posting_row.size)


class TermPairs(NamedTuple):
    """The (object, term) pairs of an index, in lists by term, objects ascending.

    A list has the number of its term. A pair has its object, weights x and y, and hints of the
    terms that may follow it.
    """

    list_number: NDArray[np.int32]
    list_offsets: NDArray[np.int64]
    object: NDArray[np.uint32]
    x: NDArray[np.float32]
    y: NDArray[np.float32]
    hints: NDArray[np.uint64]


@kernel
def rows_to_weights(
    picked: np.ndarray,
    rows: ScoredRows,
    literal_number: np.ndarray,
    posted: np.ndarray,
    in_place: bool,
    theta: np.ndarray,
    dropping: bool,
) -> tuple:  # type: ignore[type-arg]
    """The postings of picked rows: literal i64[p], row u32[p], near, later f32[p], hints u64[p].

    A row's terms are ordered by number. Terms that are not posted (bool; empty: all are) come last,
    unless they stay `in_place`: then another index finds a pair whose object has an earlier one of
    them. If `dropping`, postings are omitted by which the row could not reach `theta`, even with
    an object at its point.
    """
    literal_offsets, literal_term = rows.literal_offsets, rows.literal_term
    literal_idf, weights = rows.literal_idf, rows.weights
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
        alpha, norm = weights[row, ALPHA], weights[row, NORM]
        for i in range(last - first):
            its = np.int64(literal_number[first + i])
            if posted.size and not posted[first + i] and not in_place:
                its += NOT_POSTED
            to = i
            while to > 0 and key[to - 1] > its:
                key[to], place[to] = key[to - 1], place[to - 1]
                to -= 1
            key[to], place[to] = its, i
        later, squares = 0.0, 0.0
        hints = np.uint64(0)
        for to in range(last - first - 1, -1, -1):
            i = place[to]
            weight = literal_idf[first + i] / norm if norm != 0.0 else 0.0
            squares += weight * weight
            reached = alpha + (1.0 - alpha) * math.sqrt(squares) + NEED_PADDING >= 1e-9 * theta[row]
            here = posted.size == 0 or posted[first + i]
            if here and (reached or not dropping):
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
    rows: ScoredRows,
    theta: np.ndarray,
) -> np.ndarray:
    """Return the facts f32[FACTS, p] of postings."""
    weights = rows.weights
    facts = np.empty((FACTS, post_row.size), np.float32)
    for p in range(post_row.size):
        row = np.int64(post_row[p])
        alpha = weights[row, ALPHA]
        facts[NEED, p] = 1e-9 * theta[row] - alpha - NEED_PADDING
        facts[NEAR, p] = post_near[p]
        facts[LATER, p] = post_later[p]
        facts[PULL, p] = min(alpha * (EARTH_RADIUS_M / weights[row, REACH]), MOST_PULL)
        facts[ALPHA_OF, p] = alpha
        phi, turn = math.radians(weights[row, LAT]), math.radians(weights[row, LON])
        facts[UNIT_X, p] = math.cos(phi) * math.cos(turn)
        facts[UNIT_Y, p] = math.cos(phi) * math.sin(turn)
        facts[UNIT_Z, p] = math.sin(phi)
    return facts


@kernel
def lists_to_cells(
    list_offsets: np.ndarray, order: np.ndarray, codes: np.ndarray, leaf: int
) -> tuple:  # type: ignore[type-arg]
    """Sort each list of postings along the Z-order curve and cut it into cells of at most `leaf`.

    Writes into `order` i64[p]; `codes` u32[p] are of postings. Returns the offsets of each list's
    cells, i64[n + 1], and of each cell's postings, i64[c + 1].
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
            # The last quarter is pushed first, so that cells come out in order.
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


@subkernel
def groups_of(postings: int, groups: int) -> int:
    """Return the number of groups that a cell is cut into."""
    return max(1, min(groups, postings // LEAST_GROUP))


@kernel
def cells_to_groups(
    cell_offsets: np.ndarray,
    order: np.ndarray,
    alphas: np.ndarray,
    needs: np.ndarray,
    groups: int,
) -> tuple:  # type: ignore[type-arg]
    """Cut each cell into equal groups of similar alpha, each sorted by ascending need.

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


@subkernel
def widen_bounds(bounds: np.ndarray, facts: np.ndarray, p: int) -> None:
    """Extend bounds f32[>= BOUNDS] by a posting."""
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

    The bounds of a chunk cover it and all later chunks of its group, so the first chunk's are those
    of the group.
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


NO_BOUND = 1e6  # a weight that no text has


@subkernel
def weights_of(weight: float, most: float, prunings: int) -> tuple[float, float]:
    """Return the weights x and y of a pair from its term's and the largest other weight, padded."""
    x, y = NO_BOUND, NO_BOUND
    if prunings & UNSEEN_BOUND:
        x, y = weight, most
        if not prunings & MAX_WEIGHT:
            y = 1.0
    elif prunings & PREFIX:
        x = max(weight, most) if prunings & MAX_WEIGHT else 1.0
        y = x
    return x * (1.0 + WEIGHT_PADDING), y * (1.0 + WEIGHT_PADDING)


@kernel
def objects_to_pairs(block: RelevanceBlock, index: GroupIndex, prunings: int) -> tuple:  # type: ignore[type-arg]
    """Return the number i32 of each object's term, -1 if the index has none, and the pairs.

    If only some literals are posted, a row may have any other term of the object after a pair's.
    """
    term_offsets, terms, norms = block.term_offsets, block.terms, block.norms
    term_table, term_idf = index.term_table, index.term_idf
    in_order = index.posted.size == 0
    term_number = np.full(terms.size, -1, np.int32)
    owner = np.empty(terms.size, np.uint32)
    places = np.empty(terms.size, np.int64)
    pairs = 0
    for o in range(norms.size):
        for at in range(term_offsets[o], term_offsets[o + 1]):
            owner[at] = o
            entry = entry_of_hash(term_table, terms[at])
            if term_table[entry + np.uint64(1)] != EMPTY:
                term_number[at] = np.int32(term_table[entry + np.uint64(1)])
                places[pairs] = at
                pairs += 1
    places = places[:pairs]
    places = places[np.argsort(term_number[places], kind="mergesort")]
    list_number = np.empty(pairs, np.int32)
    list_offsets = np.zeros(pairs + 1, np.int64)
    lists = 0
    pair_object = np.empty(pairs, np.uint32)
    pair_x = np.empty(pairs, np.float32)
    pair_y = np.empty(pairs, np.float32)
    pair_hints = np.zeros(pairs, np.uint64)
    weights = np.zeros(pairs, np.float64)
    others = np.zeros(pairs, np.float64)
    # For each object, the largest weight and the signatures of the terms seen: from the last term
    # to the first and, if earlier terms count as well, back again.
    for backwards in (True, False):
        most = np.zeros(norms.size, np.float64)
        hints = np.zeros(norms.size, np.uint64)
        for step in range(pairs if backwards or not in_order else 0):
            k = pairs - 1 - step if backwards else step
            o = owner[places[k]]
            weight = 0.0
            if norms[o] != 0.0:
                weight = term_idf[term_number[places[k]]] / norms[o]
            weights[k] = weight
            others[k] = max(others[k], most[o])
            pair_hints[k] |= hints[o]
            most[o] = max(most[o], weight)
            hints[o] |= signature_of_term(terms[places[k]])
    for k in range(pairs):
        pair_object[k] = owner[places[k]]
        pair_x[k], pair_y[k] = weights_of(weights[k], others[k], prunings)
        number = term_number[places[k]]
        if k == 0 or number != list_number[lists - 1]:
            list_number[lists] = number
            lists += 1
        list_offsets[lists] = k + 1
    lists_of = list_number[:lists], list_offsets[: lists + 1]
    return term_number, TermPairs(*lists_of, pair_object, pair_x, pair_y, pair_hints)
