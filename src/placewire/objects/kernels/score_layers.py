"""Page layers: the rows of a file sorted by norm, then by cell, with score bounds per page.

A place is a row's position in that order. Rows of about one norm are in cell order, so the rows of
a page are similar in both parts of a score, and one test decides if any of them can score enough.
Points are on the unit sphere: chords need no special cases for poles or the antimeridian.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.model.regions import EARTH_RADIUS_M
from placewire.objects.kernels.score import row_norm

PAGE = 1_024  # places; 512 and 2048 take as long on 1 M posts
PAGE_WORDS = PAGE // 64
RARE, OFTEN = -1, 64  # a word in at least one of OFTEN rows has a bitmap, else a list of places
NORM_SLACK = 1.0 + 1e-6  # more than any rounding error in 32 bits
CHORD_SLACK = 1e-6
TEXT_SLACK = 1.0 + 1e-9


class PageLayers(NamedTuple):
    """n places in p pages of a file with v words, b of them frequent.

    A card bounds the score of a place: x, y, z and 1 / norm rounded up, 0 without a norm. The rest
    of it holds its marks, in the same memory as u64: marks[:, 2] has a bit for each frequent word
    of the row, marks[:, 3] for each rare one; several words share a bit. A circle is x, y, z of the
    centre of a page, or of 64 places, and the chord to the farthest of their points. A record
    holds all of a row's data that its score depends on, side by side: see `rows_to_records`. Lists
    of rare words are a CSR column of places; bits[bitmap[w]] is the bitmap of a frequent word.
    """

    records: np.ndarray  # i64[n, 8]
    values: np.ndarray  # the same as f64
    cards: np.ndarray  # f32[n, 8]
    marks: np.ndarray  # u64[n, 4]
    page_inverse: np.ndarray  # f64[p]
    page_circles: np.ndarray  # f64[p, 4]
    circles: np.ndarray  # f64[words of 64 places, 4]
    place_offsets: np.ndarray  # i64[v + 1]
    places: np.ndarray  # u32
    bitmap: np.ndarray  # i32[v]
    bits: np.ndarray  # u64[b, words of 64 places]


@subkernel
def mark_of_word(word: int) -> np.uint64:
    """Return the bit of a rare word among the marks of a card."""
    return np.uint64(1) << ((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58))


@kernel
def norms_to_inverse(norms: np.ndarray, term_offsets: np.ndarray) -> np.ndarray:
    """Return 1 / norm f32[n] of rows, rounded up; without norms every term weighs 1."""
    inverse = np.empty(term_offsets.size - 1, np.float32)
    for row in range(inverse.size):
        norm = row_norm(norms, term_offsets, row)
        inverse[row] = NORM_SLACK / norm if norm > 0.0 else 0.0
    return inverse


@kernel
def rows_to_cards(
    rows: np.ndarray, lons: np.ndarray, lats: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    """Build the cards f32[n, 8] of rows, without marks."""
    cards = np.zeros((rows.size, 8), np.float32)
    for place in range(rows.size):
        row = rows[place]
        lon, lat = math.radians(lons[row]), math.radians(lats[row])
        cards[place, 0] = math.cos(lat) * math.cos(lon)
        cards[place, 1] = math.cos(lat) * math.sin(lon)
        cards[place, 2] = math.sin(lat)
        cards[place, 3] = inverse[row]
    return cards


@kernel
def rows_to_records(
    rows: np.ndarray,
    lons: np.ndarray,
    lats: np.ndarray,
    ts_us: np.ndarray,
    seqs: np.ndarray,
    term_offsets: np.ndarray,
    norms: np.ndarray,
    records: np.ndarray,
    values: np.ndarray,
) -> None:
    """Write the records of rows: seq, ts, begin and end of terms, row, lon, lat, norm."""
    for place in range(rows.size):
        row = np.int64(rows[place])
        records[place, 0], records[place, 1] = seqs[row], ts_us[row]
        records[place, 2], records[place, 3] = term_offsets[row], term_offsets[row + 1]
        records[place, 4] = row
        values[place, 5], values[place, 6] = lons[row], lats[row]
        values[place, 7] = row_norm(norms, term_offsets, row)


@kernel
def cards_to_circles(cards: np.ndarray, size: int) -> tuple:  # type: ignore[type-arg]
    """Return the circle f64[p, 4] around every `size` places, and their largest 1 / norm f64[p]."""
    pages = (cards.shape[0] + size - 1) // size
    circles = np.zeros((pages, 4), np.float64)
    greatest = np.zeros(pages, np.float64)
    for page in range(pages):
        first, last = page * size, min((page + 1) * size, cards.shape[0])
        for axis in range(3):
            low = high = np.float64(cards[first, axis])
            for place in range(first, last):
                low = min(low, np.float64(cards[place, axis]))
                high = max(high, np.float64(cards[place, axis]))
            circles[page, axis] = (low + high) / 2.0
        farthest = 0.0
        for place in range(first, last):
            x = circles[page, 0] - np.float64(cards[place, 0])
            y = circles[page, 1] - np.float64(cards[place, 1])
            z = circles[page, 2] - np.float64(cards[place, 2])
            farthest = max(farthest, x * x + y * y + z * z)
            greatest[page] = max(greatest[page], np.float64(cards[place, 3]))
        circles[page, 3] = math.sqrt(farthest)
    return circles, greatest


@kernel
def lists_to_bitmaps(list_offsets: np.ndarray, rows: int) -> tuple:  # type: ignore[type-arg]
    """Choose words for bitmaps; return their numbers i32[v], how many, and the others' offsets."""
    words = list_offsets.size - 1
    bitmap = np.full(words, RARE, np.int32)
    offsets = np.zeros(words + 1, np.int64)
    count = 0
    for word in range(words):
        length = list_offsets[word + 1] - list_offsets[word]
        if OFTEN * length >= rows:
            bitmap[word] = count
            count += 1
            length = 0
        offsets[word + 1] = offsets[word] + length
    return bitmap, count, offsets


@kernel
def terms_to_places(
    rows: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    bitmap: np.ndarray,
    count: int,
    offsets: np.ndarray,
    marks: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Return the places u32 of each rare word, ascending, and bitmaps of `count` frequent words.

    Writes the marks of cards in place.
    """
    cursor = offsets[:-1].copy()
    places = np.empty(offsets[-1], np.uint32)
    bits = np.zeros((count, (rows.size + 63) // 64), np.uint64)
    for place in range(rows.size):
        row = rows[place]
        often = rarely = np.uint64(0)
        for at in range(term_offsets[row], term_offsets[row + 1]):
            term = terms[at]
            number = bitmap[term]
            if number == RARE:
                places[cursor[term]] = place
                cursor[term] += 1
                rarely |= mark_of_word(np.int64(term))
            else:
                often |= np.uint64(1) << np.uint64(number & 63)
                bits[number, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
        marks[place, 2], marks[place, 3] = often, rarely
    return places, bits


@subkernel
def spatial_part(alpha: float, reach_m: float, square: float, radius: float) -> float:
    """Return the most that distance adds to a score: the chord is sqrt(square) - radius at least.

    An arc is at least c + c^3 / 24.
    """
    chord = max(0.0, math.sqrt(square) - radius - CHORD_SLACK)
    arc = EARTH_RADIUS_M * chord * (1.0 + chord * chord / 24.0)
    return alpha * max(0.0, 1.0 - arc / reach_m)


@subkernel
def square_between(points: np.ndarray, at: int, x: float, y: float, z: float) -> float:
    """Return the square of the chord between two points."""
    i = x - np.float64(points[at, 0])
    j = y - np.float64(points[at, 1])
    k = z - np.float64(points[at, 2])
    return i * i + j * j + k * k


@subkernel
def circles_to_space(
    circles: np.ndarray,
    x: float,
    y: float,
    z: float,
    alpha: float,
    reach_m: float,
    space: np.ndarray,
) -> None:
    """Write the most that distance adds to a score in each page."""
    for page in range(circles.shape[0]):
        square = square_between(circles, page, x, y, z)
        space[page] = spatial_part(alpha, reach_m, square, circles[page, 3])


@subkernel
def place_may_reach(
    cards: np.ndarray,
    place: int,
    textual: float,
    least: float,
    x: float,
    y: float,
    z: float,
    alpha: float,
    reach_m: float,
) -> bool:
    """Return true if a place may reach a score, given what text adds to it."""
    if alpha + textual < least:
        return False
    square = square_between(cards, place, x, y, z)
    return spatial_part(alpha, reach_m, square, 0.0) + textual >= least


@subkernel
def most_text(gain: float, norm: float) -> float:
    """Return an upper bound of TSim for a gain; the norm is at least that of the shared words."""
    return math.sqrt(gain / norm) * TEXT_SLACK if norm > 0.0 else 0.0


@subkernel
def sift_up(heap: np.ndarray, of: np.ndarray, at: int, value: float, page: int) -> None:
    """Push a page onto a heap whose last free place is `at`."""
    while at > 0 and heap[(at - 1) >> 1] < value:
        heap[at], of[at] = heap[(at - 1) >> 1], of[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at], of[at] = value, page


@subkernel
def sift_down(heap: np.ndarray, of: np.ndarray, size: int) -> None:
    """Pop the top of a heap, and move its last page, at `size`, into place."""
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


@subkernel
def heap_pages(
    page_inverse: np.ndarray,
    space: np.ndarray,
    text_share: float,
    gain: float,
    most: float,
    least: float,
    heap: np.ndarray,
    of: np.ndarray,
) -> int:
    """Build a heap of pages that may reach a score with a gain, best on top; return its size."""
    size = 0
    for page in range(page_inverse.size):
        bound = space[page] + text_share * min(most, gain * page_inverse[page])
        if bound >= least:
            sift_up(heap, of, size, bound, page)
            size += 1
    return size


@subkernel
def heap_listed_pages(
    places: np.ndarray,
    begin: int,
    end: int,
    page_inverse: np.ndarray,
    space: np.ndarray,
    text_share: float,
    gain: float,
    most: float,
    least: float,
    heap: np.ndarray,
    of: np.ndarray,
) -> int:
    """As `heap_pages`, but only for pages that have places of a list."""
    size, last = 0, -1
    for at in range(begin, end):
        page = np.int64(places[at]) // PAGE
        if page != last:
            last = page
            bound = space[page] + text_share * min(most, gain * page_inverse[page])
            if bound >= least:
                sift_up(heap, of, size, bound, page)
                size += 1
    return size


@subkernel
def gain_of_marks(
    marks: np.ndarray,
    place: int,
    columns: np.ndarray,
    masks: np.ndarray,
    gains: np.ndarray,
    begin: int,
    end: int,
) -> float:
    """Return the most that some words gain at a place, judged by its marks."""
    gain = 0.0
    for turn in range(begin, end):
        if marks[place, columns[turn]] & masks[turn]:
            gain += gains[turn]
    return gain


@subkernel
def gain_of_bits(
    bits: np.ndarray, numbers: np.ndarray, gains: np.ndarray, words: int, place: int
) -> float:
    """Return what the frequent words, bits[numbers[w]], gain at a place."""
    gain = 0.0
    shift = np.uint64(place & 63)
    for word in range(words):
        if (bits[numbers[word], place >> 6] >> shift) & np.uint64(1):
            gain += gains[word]
    return gain


@subkernel
def choose_subsets(
    subset_gain: np.ndarray,
    subset_most: np.ndarray,
    words: int,
    space: float,
    text_share: float,
    inverse: float,
    least: float,
    good: np.ndarray,
    chosen: np.ndarray,
) -> int:
    """Choose the smallest word subsets whose rows may reach a score in a page; return how many."""
    count = 0
    for subset in range(1 << words):
        textual = min(subset_most[subset], subset_gain[subset] * inverse)
        good[subset] = space + text_share * textual >= least
        smallest = good[subset]
        for word in range(words):
            if (subset >> word) & 1 and good[subset ^ (1 << word)]:
                smallest = False
        if smallest:
            chosen[count] = subset
            count += 1
    return count


@subkernel
def places_of_subsets(
    bits: np.ndarray, numbers: np.ndarray, words: int, chosen: np.ndarray, count: int, at: int
) -> np.uint64:
    """Return, as bits, those of 64 places that have all words of one of the chosen subsets."""
    mask = np.uint64(0)
    for i in range(count):
        subset = chosen[i]
        if subset == 0:  # any of the frequent words is enough
            for word in range(words):
                mask |= bits[numbers[word], at]
            return mask
        every = ~np.uint64(0)
        word = 0
        while subset:
            if subset & 1:
                every &= bits[numbers[word], at]
            subset >>= 1
            word += 1
        mask |= every
    return mask


@subkernel
def bit_number(bit: np.uint64) -> int:
    """Return the position of a single bit in a word of 64."""
    number = 0
    for step in range(5, -1, -1):
        shift = np.uint64(1 << step)
        if bit >> shift:
            bit >>= shift
            number += 1 << step
    return number
