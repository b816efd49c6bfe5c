"""Strata: the rows of a file by norm and then by place, so that a page of them has one bound.

A place is a row's position in that order. Rows of about one norm lie in cell order, so the rows of
a page are alike in both of what a score is made of, and one look tells if any of them can score
enough. Points are on the unit sphere: chords need no care for poles or the antimeridian.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placewire.kernels.jit import inlined, kernel

PAGE = 1_024  # places; of 256 to 4096 the quickest on 1 M posts
PAGE_WORDS = PAGE // 64
RARE, OFTEN = -1, 64  # a word in one row of OFTEN has bits, else a list of places
NORM_SLACK = 1.0 + 1e-6  # more than any rounding to 32 bits
CHORD_SLACK = 1e-6


class Strata(NamedTuple):
    """n places in p pages of a file with v words, b of them frequent.

    `inverse` are 1 / norm rounded up, 0 without a norm; a ball is x, y, z of its middle and the
    chord that no point of the page is farther from it. Lists of rare words are a CSR column of
    places; bits[bitmap[w]] are those of a frequent one.
    """

    rows: np.ndarray  # u32[n]
    inverse: np.ndarray  # f32[n]
    points: np.ndarray  # f32[n, 3]
    page_inverse: np.ndarray  # f64[p]
    page_balls: np.ndarray  # f64[p, 4]
    place_offsets: np.ndarray  # i64[v + 1]
    places: np.ndarray  # u32
    bitmap: np.ndarray  # i32[v]
    bits: np.ndarray  # u64[b, words of 64 places]


@inlined
def chord_between(x: float, y: float, z: float, i: float, j: float, k: float) -> float:
    return math.sqrt((x - i) * (x - i) + (y - j) * (y - j) + (z - k) * (z - k))


@kernel
def norms_to_inverse(norms: np.ndarray, term_offsets: np.ndarray) -> np.ndarray:
    """1 / norm f32[n] of rows, rounded up; without norms every term weighs 1."""
    inverse = np.empty(term_offsets.size - 1, np.float32)
    for row in range(inverse.size):
        if norms.size:
            norm = norms[row]
        else:
            norm = np.sqrt(np.float64(term_offsets[row + 1] - term_offsets[row]))
        inverse[row] = NORM_SLACK / norm if norm > 0.0 else 0.0
    return inverse


@kernel
def rows_to_points(rows: np.ndarray, lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """The points f32[n, 3] of rows on the unit sphere."""
    points = np.empty((rows.size, 3), np.float32)
    for place in range(rows.size):
        lon, lat = math.radians(lons[rows[place]]), math.radians(lats[rows[place]])
        points[place, 0] = math.cos(lat) * math.cos(lon)
        points[place, 1] = math.cos(lat) * math.sin(lon)
        points[place, 2] = math.sin(lat)
    return points


@kernel
def points_to_balls(points: np.ndarray, inverse: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """The ball f64[p, 4] about the points of each page, and the greatest inverse norm f64[p]."""
    pages = (points.shape[0] + PAGE - 1) // PAGE
    balls = np.zeros((pages, 4), np.float64)
    greatest = np.zeros(pages, np.float64)
    for page in range(pages):
        first, last = page * PAGE, min((page + 1) * PAGE, points.shape[0])
        low, high = points[first].copy(), points[first].copy()
        for place in range(first, last):
            greatest[page] = max(greatest[page], np.float64(inverse[place]))
            for axis in range(3):
                low[axis] = min(low[axis], points[place, axis])
                high[axis] = max(high[axis], points[place, axis])
        for axis in range(3):
            balls[page, axis] = (np.float64(low[axis]) + np.float64(high[axis])) / 2.0
        x, y, z = balls[page, 0], balls[page, 1], balls[page, 2]
        for place in range(first, last):
            chord = chord_between(
                x, y, z, points[place, 0], points[place, 1], np.float64(points[place, 2])
            )
            balls[page, 3] = max(balls[page, 3], chord)
    return balls, greatest


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
) -> tuple:  # type: ignore[type-arg]
    """The places u32 that have each rare word, ascending, and the bits of `count` frequent ones."""
    cursor = offsets[:-1].copy()
    places = np.empty(offsets[-1], np.uint32)
    bits = np.zeros((count, (rows.size + 63) // 64), np.uint64)
    for place in range(rows.size):
        row = rows[place]
        for at in range(term_offsets[row], term_offsets[row + 1]):
            term = terms[at]
            number = bitmap[term]
            if number == RARE:
                places[cursor[term]] = place
                cursor[term] += 1
            else:
                bits[number, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    return places, bits
