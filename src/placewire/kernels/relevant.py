"""The most relevant rows of a file for one search, by strata or by walking lists.

Words are taken by rising length of their lists. A row that comes first in the list of one has none
of the words before it, so what all words from there on could give bounds its text. The frequent
words come last and together: their bits tell which rows have enough of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import inlined
from placewire.kernels.scoring import (
    Aim,
    Ask,
    Columns,
    Found,
    offer_row,
    row_norm,
    score_to_reach,
)
from placewire.kernels.strata import (
    CHORD_SLACK,
    PAGE,
    PAGE_WORDS,
    RARE,
    Strata,
    chord_between,
)
from placewire.model.regions import EARTH_RADIUS_M

MOST_WORDS = 64 * 64
SUBSETS = 32  # of up to 5 frequent words; what more there are may be in any row
TEXT_SLACK = 1.0 + 1e-9
SPARSE = 4  # entries a page: a list with fewer is walked whole


class Scratch(NamedTuple):
    """Room for one search at a time in files of up to `pages` pages."""

    ranks: np.ndarray  # i64[words]
    turn: np.ndarray  # i64[words]: places in `asked`
    gain: np.ndarray  # f64[words]: what a word adds to TSim, times the object's norm
    space: np.ndarray  # f64[pages]: the most that place can add to a score
    heap: np.ndarray  # f64[pages]
    heap_page: np.ndarray  # i64[pages]
    subset_gain: np.ndarray  # f64[SUBSETS]
    subset_most: np.ndarray  # f64[SUBSETS]
    subset_good: np.ndarray  # bool[SUBSETS]
    chosen: np.ndarray  # i64[SUBSETS]


@inlined
def make_scratch(pages: int) -> Scratch:
    return Scratch(
        np.empty(MOST_WORDS, np.int64),
        np.empty(MOST_WORDS, np.int64),
        np.empty(MOST_WORDS, np.float64),
        np.empty(pages, np.float64),
        np.empty(pages, np.float64),
        np.empty(pages, np.int64),
        np.empty(SUBSETS, np.float64),
        np.empty(SUBSETS, np.float64),
        np.empty(SUBSETS, np.bool_),
        np.empty(SUBSETS, np.int64),
    )


@inlined
def words_in_turn(file: Columns, ask: Ask, scratch: Scratch) -> None:
    """Put the asked words in their turn, by length of their lists, and find what each gains."""
    for number in range(ask.asked.size):
        word = ask.asked[number]
        length = file.list_offsets[word + 1] - file.list_offsets[word]
        at = number
        while at > 0:
            other = ask.asked[scratch.turn[at - 1]]
            if file.list_offsets[other + 1] - file.list_offsets[other] <= length:
                break
            scratch.turn[at] = scratch.turn[at - 1]
            at -= 1
        scratch.turn[at] = number
        weight = ask.weights[number]
        gain = weight * weight / ask.norm * TEXT_SLACK if ask.norm > 0.0 else 0.0
        scratch.gain[number] = gain
    for at in range(ask.asked.size):
        scratch.ranks[scratch.turn[at]] = at


@inlined
def gain_from(ask: Ask, scratch: Scratch, turn: int) -> float:
    """What the words from a turn on can gain together."""
    total = 0.0
    for at in range(turn, ask.asked.size):
        total += scratch.gain[scratch.turn[at]]
    return total


@inlined
def most_text(ask: Ask, gain: float) -> float:
    """The most TSim of rows that have some words of that gain: their norm is of these at least."""
    return math.sqrt(gain / ask.norm) * TEXT_SLACK if ask.norm > 0.0 else 0.0


@inlined
def spatial_part(ask: Ask, chord: float) -> float:
    """The most that place adds to a score at that chord or more; arcs are c + c^3/24 at least."""
    chord = max(0.0, chord - CHORD_SLACK)
    arc = EARTH_RADIUS_M * chord * (1.0 + chord * chord / 24.0)
    return ask.alpha * max(0.0, 1.0 - arc / ask.reach_m)


@inlined
def walk_lists(
    file: Columns, ask: Ask, aim: Aim, first: int, held: int, found: Found, scratch: Scratch
) -> int:
    """Offer the rows of the whole lists; gives how many are held."""
    words_in_turn(file, ask, scratch)
    for turn in range(ask.asked.size):
        gain = gain_from(ask, scratch, turn)
        most = most_text(ask, gain)
        least = score_to_reach(aim, first, held, found)
        if ask.alpha + (1.0 - ask.alpha) * most < least:
            break
        word = ask.asked[scratch.turn[turn]]
        for at in range(file.list_offsets[word], file.list_offsets[word + 1]):
            row = np.int64(file.lists[at])
            norm = row_norm(file.norm, file.term_offsets, row)
            text = min(most, gain / norm) if norm > 0.0 else 0.0
            if ask.alpha + (1.0 - ask.alpha) * text >= least:
                held = offer_row(file, ask, row, scratch.ranks, turn, aim, first, held, found)
                least = score_to_reach(aim, first, held, found)
    return held


@inlined
def sift_up(heap: np.ndarray, of: np.ndarray, at: int, value: float, page: int) -> None:
    while at > 0 and heap[(at - 1) >> 1] < value:
        heap[at], of[at] = heap[(at - 1) >> 1], of[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at], of[at] = value, page


@inlined
def sift_down(heap: np.ndarray, of: np.ndarray, size: int) -> None:
    """Take the top of a heap away; its last, at `size`, finds a place."""
    value, page = heap[size], of[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at], of[at] = heap[child], of[child]
        at = child
    heap[at], of[at] = value, page


@inlined
def heap_pages(strata: Strata, ask: Ask, gain: float, least: float, scratch: Scratch) -> int:
    """The pages that may reach a score with words of a gain, the best on top; gives how many."""
    most = most_text(ask, gain)
    size = 0
    for page in range(strata.page_inverse.size):
        bound = scratch.space[page] + (1.0 - ask.alpha) * min(
            most, gain * strata.page_inverse[page]
        )
        if bound >= least:
            sift_up(scratch.heap, scratch.heap_page, size, bound, page)
            size += 1
    return size


@inlined
def first_place(places: np.ndarray, begin: int, end: int, place: int) -> int:
    while begin < end:
        middle = (begin + end) >> 1
        if np.int64(places[middle]) < place:
            begin = middle + 1
        else:
            end = middle
    return begin


@inlined
def place_may_reach(
    strata: Strata,
    ask: Ask,
    place: int,
    gain: float,
    least: float,
    x: float,
    y: float,
    z: float,
) -> bool:
    """Whether a place with words of a gain may reach a score."""
    textual = (1.0 - ask.alpha) * min(TEXT_SLACK, gain * np.float64(strata.inverse[place]))
    if ask.alpha + textual < least:
        return False
    chord = chord_between(
        x,
        y,
        z,
        np.float64(strata.points[place, 0]),
        np.float64(strata.points[place, 1]),
        np.float64(strata.points[place, 2]),
    )
    return spatial_part(ask, chord) + textual >= least


@inlined
def gain_of_bits(
    strata: Strata, ask: Ask, scratch: Scratch, begin: int, end: int, place: int
) -> float:
    """What the frequent words, those of turns begin:end, gain at a place."""
    gain = 0.0
    shift = np.uint64(place & 63)
    for turn in range(begin, end):
        number = scratch.turn[turn]
        bits = strata.bits[strata.bitmap[ask.asked[number]], place >> 6]
        if (bits >> shift) & np.uint64(1):
            gain += scratch.gain[number]
    return gain


@inlined
def search_file(
    strata: Strata,
    layered: bool,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: Found,
    scratch: Scratch,
) -> int:
    """Offer what a file has; gives how many are held."""
    if ask.asked.size == 0 or (not aim.every and aim.room == 0):
        return held
    if layered:
        return search_strata(strata, file, ask, aim, first, held, found, scratch)
    return walk_lists(file, ask, aim, first, held, found, scratch)


@inlined
def search_strata(
    strata: Strata,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: Found,
    scratch: Scratch,
) -> int:
    """Offer the rows that may be wanted, those of the likeliest pages first; gives how many held."""
    words_in_turn(file, ask, scratch)
    lon, lat = math.radians(ask.lon), math.radians(ask.lat)
    x, y, z = math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)
    for page in range(strata.page_inverse.size):
        ball = strata.page_balls[page]
        chord = chord_between(x, y, z, ball[0], ball[1], ball[2]) - ball[3]
        scratch.space[page] = spatial_part(ask, chord)
    rare = 0
    while rare < ask.asked.size and strata.bitmap[ask.asked[scratch.turn[rare]]] == RARE:
        rare += 1
    for turn in range(rare):
        held = search_list(
            strata, file, ask, aim, first, held, found, scratch, turn, rare, x, y, z
        )
    if rare < ask.asked.size:
        held = search_bits(strata, file, ask, aim, first, held, found, scratch, rare, x, y, z)
    return held


@inlined
def search_list(
    strata: Strata,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: Found,
    scratch: Scratch,
    turn: int,
    rare: int,
    x: float,
    y: float,
    z: float,
) -> int:
    """Offer the rows of a rare word's list that have none of the words before it."""
    word = ask.asked[scratch.turn[turn]]
    begin, end = strata.place_offsets[word], strata.place_offsets[word + 1]
    least = score_to_reach(aim, first, held, found)
    gain = gain_from(ask, scratch, turn)
    listed = gain - gain_from(ask, scratch, rare)  # without the frequent words
    paged = end - begin >= SPARSE * strata.page_inverse.size
    size = heap_pages(strata, ask, gain, least, scratch) if paged else 1
    while size > 0:
        low, high = begin, end
        if paged:
            if scratch.heap[0] < least:
                break
            page = scratch.heap_page[0]
            size -= 1
            sift_down(scratch.heap, scratch.heap_page, size)
            low = first_place(strata.places, begin, end, page * PAGE)
            high = first_place(strata.places, low, end, (page + 1) * PAGE)
        else:
            size = 0
        for at in range(low, high):
            place = np.int64(strata.places[at])
            here = listed + gain_of_bits(strata, ask, scratch, rare, ask.asked.size, place)
            if place_may_reach(strata, ask, place, here, least, x, y, z):
                row = np.int64(strata.rows[place])
                held = offer_row(file, ask, row, scratch.ranks, turn, aim, first, held, found)
                least = score_to_reach(aim, first, held, found)
    return held


@inlined
def make_subsets(ask: Ask, scratch: Scratch, rare: int) -> int:
    """What each subset of the heaviest frequent words gains, with all the others; gives how many.

    Word w of the subsets is that of turn rare + w; a heavier one is rarer, so it comes earlier.
    """
    words = min(ask.asked.size - rare, 5)
    rest = gain_from(ask, scratch, rare + words)
    for subset in range(1 << words):
        gain = rest
        for word in range(words):
            if (subset >> word) & 1:
                gain += scratch.gain[scratch.turn[rare + word]]
        scratch.subset_gain[subset] = gain
        scratch.subset_most[subset] = most_text(ask, gain)
    return words


@inlined
def choose_subsets(
    strata: Strata, ask: Ask, scratch: Scratch, words: int, page: int, least: float
) -> int:
    """The least subsets whose rows may reach a score in a page; gives how many are `chosen`."""
    count = 0
    for subset in range(1 << words):
        textual = min(
            scratch.subset_most[subset], scratch.subset_gain[subset] * strata.page_inverse[page]
        )
        good = scratch.space[page] + (1.0 - ask.alpha) * textual >= least
        scratch.subset_good[subset] = good
        for word in range(words):
            good = good and not (
                (subset >> word) & 1 and scratch.subset_good[subset ^ (1 << word)]
            )
        if good:
            scratch.chosen[count] = subset
            count += 1
    return count


@inlined
def search_bits(
    strata: Strata,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: Found,
    scratch: Scratch,
    rare: int,
    x: float,
    y: float,
    z: float,
) -> int:
    """Offer the rows that have enough of the frequent words and none of the rare ones."""
    for turn in range(rare, ask.asked.size):
        scratch.ranks[scratch.turn[turn]] = rare  # they come together
    words = make_subsets(ask, scratch, rare)
    least = score_to_reach(aim, first, held, found)
    size = heap_pages(strata, ask, gain_from(ask, scratch, rare), least, scratch)
    while size > 0 and scratch.heap[0] >= least:
        page = scratch.heap_page[0]
        size -= 1
        sift_down(scratch.heap, scratch.heap_page, size)
        count = choose_subsets(strata, ask, scratch, words, page, least)
        for at in range(page * PAGE_WORDS, min((page + 1) * PAGE_WORDS, strata.bits.shape[1])):
            mask = places_of_subsets(strata, ask, scratch, rare, count, at)
            while mask:
                low = mask & (~mask + np.uint64(1))
                mask ^= low
                place = 64 * at + bit_number(low)
                here = gain_of_bits(strata, ask, scratch, rare, ask.asked.size, place)
                if place_may_reach(strata, ask, place, here, least, x, y, z):
                    row = np.int64(strata.rows[place])
                    held = offer_row(file, ask, row, scratch.ranks, rare, aim, first, held, found)
                    least = score_to_reach(aim, first, held, found)
    return held


@inlined
def places_of_subsets(
    strata: Strata, ask: Ask, scratch: Scratch, rare: int, count: int, at: int
) -> np.uint64:
    """Those of 64 places, as bits, that have all words of one of the chosen subsets."""
    mask = np.uint64(0)
    for i in range(count):
        subset = scratch.chosen[i]
        every = ~np.uint64(0)
        if subset == 0:
            every = np.uint64(0)  # any of the frequent words will do
            for turn in range(rare, ask.asked.size):
                every |= strata.bits[strata.bitmap[ask.asked[scratch.turn[turn]]], at]
        turn = rare
        while subset:
            if subset & 1:
                every &= strata.bits[strata.bitmap[ask.asked[scratch.turn[turn]]], at]
            subset >>= 1
            turn += 1
        mask |= every
    return mask


@inlined
def bit_number(bit: np.uint64) -> int:
    """Which bit it is, of 64."""
    number = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if bit >> np.uint64(shift):
            bit >>= np.uint64(shift)
            number += shift
    return number
