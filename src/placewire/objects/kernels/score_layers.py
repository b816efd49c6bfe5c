"""Strata: the rows of a file by norm and then by place, so that a page of them has one bound.

A place is a row's position in that order. Rows of about one norm lie in cell order, so the rows of
a page are alike in both of what a score is made of, and one look tells if any of them can score
enough. Points are on the unit sphere: chords need no care for poles or the antimeridian.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import kernel, subkernel
from placewire.objects.kernels.score import row_norm

PAGE = 1_024  # places; 512 and 2048 take as long on 1 M posts
PAGE_WORDS = PAGE // 64
RARE, OFTEN = -1, 64  # a word in one row of OFTEN has bits, else a list of places
NORM_SLACK = 1.0 + 1e-6  # more than any rounding to 32 bits
CHORD_SLACK = 1e-6


class PageLayers(NamedTuple):
    """n places in p pages of a file with v words, b of them frequent.

    A card is what bounds the score of a place, side by side: x, y, z and 1 / norm rounded up, 0
    without a norm. The rest of it is its marks, the same memory as u64: marks[:, 2] has a bit for
    each frequent word of the row, marks[:, 3] for each rare one, several words to a bit.
    A circle is x, y, z of its middle and the chord that no point of a page, or of 64 places, is
    farther from it. A record has all of a row that its score is made of, side by side: see
    `rows_to_records`. Lists of rare words are a CSR column of places; bits[bitmap[w]] are those of
    a frequent one.
    """

    records: np.ndarray  # i64[n, 8]
    values: np.ndarray  # the same as f64
    cards: np.ndarray  # f32[n, 8]
    marks: np.ndarray  # u64[n, 4]
    page_inverse: np.ndarray  # f64[p]
    page_balls: np.ndarray  # f64[p, 4]
    circles: np.ndarray  # f64[words of 64 places, 4]
    place_offsets: np.ndarray  # i64[v + 1]
    places: np.ndarray  # u32
    bitmap: np.ndarray  # i32[v]
    bits: np.ndarray  # u64[b, words of 64 places]


@subkernel
def mark_of_word(word: int) -> np.uint64:
    """The bit of a rare word among the marks of a card."""
    return np.uint64(1) << ((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58))


@kernel
def norms_to_inverse(norms: np.ndarray, term_offsets: np.ndarray) -> np.ndarray:
    """1 / norm f32[n] of rows, rounded up; without norms every term weighs 1."""
    inverse = np.empty(term_offsets.size - 1, np.float32)
    for row in range(inverse.size):
        norm = row_norm(norms, term_offsets, row)
        inverse[row] = NORM_SLACK / norm if norm > 0.0 else 0.0
    return inverse


@kernel
def rows_to_cards(
    rows: np.ndarray, lons: np.ndarray, lats: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    """The cards f32[n, 8] of rows, without marks."""
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
    """Write the records of rows: seq, ts, where terms begin and end, row, lon, lat, norm."""
    for place in range(rows.size):
        row = np.int64(rows[place])
        records[place, 0], records[place, 1] = seqs[row], ts_us[row]
        records[place, 2], records[place, 3] = term_offsets[row], term_offsets[row + 1]
        records[place, 4] = row
        values[place, 5], values[place, 6] = lons[row], lats[row]
        values[place, 7] = row_norm(norms, term_offsets, row)


@kernel
def cards_to_balls(cards: np.ndarray, size: int) -> tuple:  # type: ignore[type-arg]
    """The circle f64[p, 4] about every `size` places, and their greatest inverse norm f64[p]."""
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
    """Which words get bits, as their numbers i32[v], how many, and offsets for the others."""
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
    """The places u32 that have each rare word, ascending, and the bits of `count` frequent ones.

    Cards get their marks, in place.
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
