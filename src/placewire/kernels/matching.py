"""Matching a block of objects against the postings of one segment.

The block's objects are in cell order and its (object, term) pairs are grouped by term, so each
term is looked up once a block and its cells are walked in memory order.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.cells import MAX_LEVEL
from placewire.kernels.interning import EMPTY, slot_of_hash
from placewire.kernels.jit import inlined, kernel
from placewire.kernels.postings import (
    EARLIER_COVER,
    EXACT_REGION,
    EXPIRES,
    REQUIRES,
    ROW,
    SIGNATURE_HIGH,
    SIGNATURE_LOW,
    WHOLE_WHERE,
    signature_of_term,
)
from placewire.kernels.regions import region_contains_point
from placewire.model.subscriptions import NEVER_US


@inlined
def terms_contain(terms: np.ndarray, first: int, last: int, term: np.uint64) -> bool:
    """Whether the ascending slice has the term."""
    while last - first > 8:
        middle = (first + last) >> 1
        if terms[middle] <= term:
            first = middle
        else:
            last = middle
    for at in range(first, last):
        if terms[at] == term:
            return True
    return False


@inlined
def terms_satisfy_literals(
    terms: np.ndarray,
    first_term: int,
    last_term: int,
    literal_term: np.ndarray,
    literal_true: np.ndarray,
    literal_false: np.ndarray,
    first: int,
    last: int,
) -> bool:
    """Run a row's compiled expression over the object's terms; no literals accept anything."""
    if first == last:
        return True
    at = 0
    while at >= 0:
        if terms_contain(terms, first_term, last_term, literal_term[first + at]):
            at = literal_true[first + at]
        else:
            at = literal_false[first + at]
    return at == -1


@kernel
def objects_to_signatures(term_offsets: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """The union of the terms' signatures of each object: u64[n]."""
    signatures = np.zeros(term_offsets.size - 1, np.uint64)
    for i in range(signatures.size):
        bits = np.uint64(0)
        for at in range(term_offsets[i], term_offsets[i + 1]):
            bits |= signature_of_term(terms[at])
        signatures[i] = bits
    return signatures


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
    term_keys: np.ndarray,
    term_values: np.ndarray,
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
    expected: int,
) -> tuple:  # type: ignore[type-arg]
    """Every (object, row) that matches, once: objects u32[m], rows u32[m].

    Also the earliest `expires` among them that `nows_us` has not passed, and how many candidates
    were looked at. `dead` is a bitmap u64 over rows, or empty when no row has ended.
    """
    floats = postings.view(np.float32)
    out_object = np.empty(max(expected, 1024), np.uint32)
    out_row = np.empty(out_object.size, np.uint32)
    found = 0
    candidates = 0
    next_expiry = NEVER_US
    for g in range(group_term.size):
        slot = slot_of_hash(term_keys, term_values, group_term[g])
        if term_values[slot] == EMPTY:
            continue
        t = term_values[slot]
        for r in range(run_offsets[t], run_offsets[t + 1]):
            shift = 2 * (MAX_LEVEL - run_level[r])
            cell = np.int64(run_cells[r])
            last_cell = np.int64(run_cells[r + 1])
            for at in range(group_offsets[g], group_offsets[g + 1]):
                o = group_object[at]
                code = np.int64(codes[o]) >> shift
                if cell_code[cell] < code:
                    cell = first_cell_not_below(cell_code, cell, last_cell, code)
                    if cell == last_cell:
                        break
                if cell_code[cell] > code:
                    continue
                first = cell_offsets[cell]
                last = cell_offsets[cell + 1]
                if found + last - first > out_object.size:
                    room = 2 * (found + last - first)
                    grown = np.empty(room, np.uint32)
                    grown[:found] = out_object[:found]
                    out_object = grown
                    grown = np.empty(room, np.uint32)
                    grown[:found] = out_row[:found]
                    out_row = grown
                candidates += last - first
                lon = np.float32(lons[o])
                lat = np.float32(lats[o])
                have = signatures[o]
                for p in range(first, last):
                    west = floats[p, 0]
                    south = floats[p, 1]
                    east = floats[p, 2]
                    north = floats[p, 3]
                    if not ((lon >= west) & (lon <= east) & (lat >= south) & (lat <= north)):
                        continue
                    word = postings[p, SIGNATURE_HIGH]
                    # Rounding to 32 bits is monotone: only equality leaves the box in doubt.
                    in_doubt = (
                        (lon == west) | (lon == east) | (lat == south) | (lat == north)
                    ) or (word & EXACT_REGION)
                    row = np.int64(postings[p, ROW])
                    if word or in_doubt:
                        asked = (
                            (np.uint64(postings[p, SIGNATURE_LOW]) << np.uint64(32))
                            | np.uint64(word)
                        ) & ~np.uint64(0xFF)
                        if word & REQUIRES and (have & asked) != asked:
                            continue
                        if in_doubt and not region_contains_point(
                            region_kind[row],
                            box[row],
                            shape[shape_offsets[row] : shape_offsets[row + 1]],
                            lons[o],
                            lats[o],
                        ):
                            continue
                        if word & WHOLE_WHERE and not terms_satisfy_literals(
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
                        if word & EARLIER_COVER and (have & asked):
                            earlier = False
                            for k in range(literal_offsets[row], literal_offsets[row + 1]):
                                if literal_term[k] == group_term[g] and literal_cover[k]:
                                    break
                                if literal_cover[k] and terms_contain(
                                    terms, term_offsets[o], term_offsets[o + 1], literal_term[k]
                                ):
                                    earlier = True
                                    break
                            if earlier:
                                continue
                    if dead.size and ((dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1)):
                        continue
                    if word & EXPIRES:
                        if expires_us[row] <= nows_us[o]:
                            continue
                        next_expiry = min(next_expiry, expires_us[row])
                    out_object[found] = o
                    out_row[found] = row
                    found += 1
    return out_object[:found], out_row[:found], next_expiry, candidates


@kernel
def objects_satisfying_rows(
    lons: np.ndarray,
    lats: np.ndarray,
    nows_us: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    expires_us: np.ndarray,
    region_kind: np.ndarray,
    box: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    literal_true: np.ndarray,
    literal_false: np.ndarray,
    dead: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Every (object, row) that matches, by looking at each pair; returns as the indexed kernel."""
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
    return out_object[:found], out_row[:found], next_expiry, lons.size * expires_us.size
