"""Find the most relevant rows of a file for one search, by page layers or by scanning lists.

Words are ordered by ascending length of their lists. A row that first occurs in the list of one has
none of the earlier words, so the gain of all later words bounds its text score. With page layers,
only pages that may reach a score are searched, the most promising first: rare words one by one in
their lists, then all frequent words together, whose bitmaps show which rows have enough of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import array_subkernel, subkernel
from placewire.kernels.space.regions import distance_m
from placewire.objects.kernels.find import first_in_list
from placewire.objects.kernels.score import (
    Aim,
    Ask,
    Columns,
    ScoredObjects,
    offer_row,
    put_object,
    row_counts,
    row_norm,
    score_terms,
    score_to_reach,
)
from placewire.objects.kernels.score_layers import (
    PAGE,
    PAGE_WORDS,
    RARE,
    TEXT_SLACK,
    PageLayers,
    bit_number,
    choose_subsets,
    circles_to_space,
    gain_of_bits,
    gain_of_marks,
    heap_listed_pages,
    heap_pages,
    mark_of_word,
    most_text,
    place_may_reach,
    places_of_subsets,
    sift_down,
    spatial_part,
    square_between,
)

MOST_SUBSETS = 32  # of up to 5 frequent words; further ones may be in any row
SPARSE = 4  # entries per page; of a sparser list only its own pages are visited
FEW = 64  # lists of at most this many entries are scanned in full


class Scratch(NamedTuple):
    """Scratch for one search at a time in files of up to p pages."""

    ranks: np.ndarray  # i64[words]: the turn of each asked word
    turn: np.ndarray  # i64[words]: places in `asked`
    gain: np.ndarray  # f64[words]: what the word of a turn adds to TSim, times the object's norm
    numbers: np.ndarray  # i64[words]: bitmaps of the frequent words
    columns: np.ndarray  # i64[words]: the column of the mark of a turn's word
    masks: np.ndarray  # u64[words]: the mark itself
    space: np.ndarray  # f64[p]: the most that distance can add to a score
    heap: np.ndarray  # f64[p]
    heap_page: np.ndarray  # i64[p]
    subset_gain: np.ndarray  # f64[MOST_SUBSETS]
    subset_most: np.ndarray  # f64[MOST_SUBSETS]
    good: np.ndarray  # bool[MOST_SUBSETS]
    chosen: np.ndarray  # i64[MOST_SUBSETS]
    looked: np.ndarray  # i64[1]: how many objects were scored


@array_subkernel
def make_scratch(pages: int, words: int) -> Scratch:
    """Return scratch for searches with a number of words."""
    return Scratch(
        np.empty(words, np.int64),
        np.empty(words, np.int64),
        np.empty(words, np.float64),
        np.empty(words, np.int64),
        np.empty(words, np.int64),
        np.empty(words, np.uint64),
        np.empty(pages, np.float64),
        np.empty(pages, np.float64),
        np.empty(pages, np.int64),
        np.empty(MOST_SUBSETS, np.float64),
        np.empty(MOST_SUBSETS, np.float64),
        np.empty(MOST_SUBSETS, np.bool_),
        np.empty(MOST_SUBSETS, np.int64),
        np.zeros(1, np.int64),
    )


@subkernel
def offer_place(
    page_layers: PageLayers,
    file: Columns,
    ask: Ask,
    place: int,
    ranks: np.ndarray,
    rank: int,
    aim: Aim,
    first: int,
    held: int,
    found: ScoredObjects,
) -> int:
    """Score the row at a place and insert it by rank; return the number of objects held."""
    records, values = page_layers.records, page_layers.values
    seq, ts_us, row = records[place, 0], records[place, 1], records[place, 4]
    if not row_counts(file.parts, ask, row, seq, ts_us):
        return held
    distance = distance_m(ask.lon, ask.lat, values[place, 5], values[place, 6])
    nano = score_terms(
        file.terms,
        records[place, 2],
        records[place, 3],
        values[place, 7],
        ask,
        distance,
        ranks,
        rank,
    )
    return put_object(aim, first, held, nano, seq, ts_us, row, found)


@subkernel
def search_list(
    page_layers: PageLayers,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: ScoredObjects,
    scratch: Scratch,
    turn: int,
    x: float,
    y: float,
    z: float,
) -> int:
    """Score the rows of a rare word's list that have none of the words before it."""
    alpha, reach_m, text_share = ask.alpha, ask.reach_m, 1.0 - ask.alpha
    places, cards, marks = page_layers.places, page_layers.cards, page_layers.marks
    page_inverse, space = page_layers.page_inverse, scratch.space
    columns, masks, gains = scratch.columns, scratch.masks, scratch.gain
    heap, heap_page = scratch.heap, scratch.heap_page
    words = ask.asked.size
    gain = gains[turn:words].sum()
    most = most_text(gain, ask.norm)
    word = ask.asked[scratch.turn[turn]]
    begin, end = page_layers.place_offsets[word], page_layers.place_offsets[word + 1]
    least = score_to_reach(aim, first, held, found)
    paged = end - begin > FEW
    size = 1
    if end - begin > SPARSE * page_inverse.size and paged:
        size = heap_pages(page_inverse, space, text_share, gain, most, least, heap, heap_page)
    elif paged:
        size = heap_listed_pages(
            places,
            begin,
            end,
            page_inverse,
            space,
            text_share,
            gain,
            most,
            least,
            heap,
            heap_page,
        )
    while size > 0:
        size -= 1
        low, high = begin, end
        if paged:
            if heap[0] < least:
                break
            page = heap_page[0]
            sift_down(heap, heap_page, size)
            low = first_in_list(places, begin, end, page * PAGE)
            high = first_in_list(places, low, end, (page + 1) * PAGE)
        for at in range(low, high):
            place = np.int64(places[at])
            here = gains[turn] + gain_of_marks(marks, place, columns, masks, gains, turn + 1, words)
            textual = text_share * min(most, here * np.float64(cards[place, 3]))
            if place_may_reach(cards, place, textual, least, x, y, z, alpha, reach_m):
                scratch.looked[0] += 1
                held = offer_place(
                    page_layers, file, ask, place, scratch.ranks, turn, aim, first, held, found
                )
                least = score_to_reach(aim, first, held, found)
    return held


@subkernel
def make_subsets(
    gains: np.ndarray, norm: float, subset_gain: np.ndarray, subset_most: np.ndarray
) -> int:
    """Write the gain and maximum TSim of each subset of the first words; return their number."""
    words = min(gains.size, 5)
    for subset in range(1 << words):
        gain = gains[words:].sum()
        for word in range(words):
            if (subset >> word) & 1:
                gain += gains[word]
        subset_gain[subset] = gain
        subset_most[subset] = most_text(gain, norm)
    return words


@subkernel
def search_bits(
    page_layers: PageLayers,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: ScoredObjects,
    scratch: Scratch,
    rare: int,
    x: float,
    y: float,
    z: float,
) -> int:
    """Score the rows that have enough of the frequent words and none of the rare ones."""
    alpha, reach_m, text_share = ask.alpha, ask.reach_m, 1.0 - ask.alpha
    cards, circles, bits, numbers = (
        page_layers.cards,
        page_layers.circles,
        page_layers.bits,
        scratch.numbers,
    )
    space, page_inverse, chosen = scratch.space, page_layers.page_inverse, scratch.chosen
    heap, heap_page = scratch.heap, scratch.heap_page
    frequent = ask.asked.size - rare
    gains = scratch.gain[rare : ask.asked.size]
    words = make_subsets(gains, ask.norm, scratch.subset_gain, scratch.subset_most)
    gain = gains.sum()
    most = most_text(gain, ask.norm)
    least = score_to_reach(aim, first, held, found)
    size = heap_pages(page_inverse, space, text_share, gain, most, least, heap, heap_page)
    while size > 0 and heap[0] >= least:
        page = heap_page[0]
        size -= 1
        sift_down(heap, heap_page, size)
        count = choose_subsets(
            scratch.subset_gain,
            scratch.subset_most,
            words,
            space[page],
            text_share,
            page_inverse[page],
            least,
            scratch.good,
            chosen,
        )
        for at in range(page * PAGE_WORDS, min((page + 1) * PAGE_WORDS, bits.shape[1])):
            mask = places_of_subsets(bits, numbers, frequent, chosen, count, at)
            if mask & (mask - np.uint64(1)):  # several rows: their positions may rule them out
                square = square_between(circles, at, x, y, z)
                near = spatial_part(alpha, reach_m, square, circles[at, 3])
                if near + text_share * min(most, gain * page_inverse[page]) < least:
                    continue
            while mask:
                bit = mask & (~mask + np.uint64(1))
                mask ^= bit
                place = 64 * at + bit_number(bit)
                here = gain_of_bits(bits, numbers, gains, frequent, place)
                textual = text_share * min(most, here * np.float64(cards[place, 3]))
                if place_may_reach(cards, place, textual, least, x, y, z, alpha, reach_m):
                    scratch.looked[0] += 1
                    held = offer_place(
                        page_layers, file, ask, place, scratch.ranks, rare, aim, first, held, found
                    )
                    least = score_to_reach(aim, first, held, found)
    return held


@subkernel
def words_in_turn(
    list_offsets: np.ndarray,
    asked: np.ndarray,
    weights: np.ndarray,
    norm: float,
    turn: np.ndarray,
    ranks: np.ndarray,
    gain: np.ndarray,
) -> None:
    """Order the asked words by length of their lists, and compute the gain of each."""
    for number in range(asked.size):
        length = list_offsets[asked[number] + 1] - list_offsets[asked[number]]
        at = number
        while at > 0:
            other = asked[turn[at - 1]]
            if list_offsets[other + 1] - list_offsets[other] <= length:
                break
            turn[at] = turn[at - 1]
            at -= 1
        turn[at] = number
    for at in range(asked.size):
        ranks[turn[at]] = at
        weight = weights[turn[at]]
        gain[at] = weight * weight / norm * TEXT_SLACK if norm > 0.0 else 0.0


@subkernel
def search_file(
    page_layers: PageLayers,
    layered: bool,
    file: Columns,
    ask: Ask,
    aim: Aim,
    first: int,
    held: int,
    found: ScoredObjects,
    scratch: Scratch,
) -> int:
    """Search one file and insert its objects by rank; return the number of objects held.

    Callers pass `first` and `held` as np.int64(0): a bare 0 has another type, for which the
    compiler would compile the whole search again.
    """
    if ask.asked.size == 0 or (not aim.every and aim.room == 0):
        return held
    words_in_turn(
        file.list_offsets,
        ask.asked,
        ask.weights,
        ask.norm,
        scratch.turn,
        scratch.ranks,
        scratch.gain,
    )
    if not layered:
        return walk_lists(file, ask, aim, first, held, found, scratch)
    lon, lat = math.radians(ask.lon), math.radians(ask.lat)
    x, y, z = math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)
    rare = longest = np.int64(0)
    for turn in range(ask.asked.size):
        word = ask.asked[scratch.turn[turn]]
        number = np.int64(page_layers.bitmap[word])
        if number == RARE:
            rare += 1
            longest = page_layers.place_offsets[word + 1] - page_layers.place_offsets[word]
            scratch.columns[turn], scratch.masks[turn] = 3, mark_of_word(word)
        else:
            scratch.numbers[turn - rare] = number
            scratch.columns[turn] = 2
            scratch.masks[turn] = np.uint64(1) << np.uint64(number & 63)
            scratch.ranks[scratch.turn[turn]] = rare  # search the frequent words together
    if longest > FEW or rare < ask.asked.size:
        circles_to_space(page_layers.page_circles, x, y, z, ask.alpha, ask.reach_m, scratch.space)
    for turn in range(rare):
        held = search_list(page_layers, file, ask, aim, first, held, found, scratch, turn, x, y, z)
    if rare < ask.asked.size:
        held = search_bits(page_layers, file, ask, aim, first, held, found, scratch, rare, x, y, z)
    return held


@subkernel
def walk_lists(
    file: Columns, ask: Ask, aim: Aim, first: int, held: int, found: ScoredObjects, scratch: Scratch
) -> int:
    """Score the rows of the whole lists; return the number of objects held."""
    alpha, lists, norms, offsets = ask.alpha, file.lists, file.norm, file.term_offsets
    for turn in range(ask.asked.size):
        gain = scratch.gain[turn : ask.asked.size].sum()
        most = most_text(gain, ask.norm)
        least = score_to_reach(aim, first, held, found)
        word = ask.asked[scratch.turn[turn]]
        for at in range(file.list_offsets[word], file.list_offsets[word + 1]):
            row = np.int64(lists[at])
            norm = row_norm(norms, offsets, row)
            text = min(most, gain / norm) if norm > 0.0 else 0.0
            if alpha + (1.0 - alpha) * text >= least:
                scratch.looked[0] += 1
                held = offer_row(file, ask, row, scratch.ranks, turn, aim, first, held, found)
                least = score_to_reach(aim, first, held, found)
    return held
