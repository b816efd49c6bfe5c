"""Bounds of scores in page_layers: pages that may reach a score, the likeliest first, and
places."""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.jit import subkernel
from placewire.model.regions import EARTH_RADIUS_M
from placewire.objects.kernels.score_layers import CHORD_SLACK, PAGE

TEXT_SLACK = 1.0 + 1e-9


@subkernel
def spatial_part(alpha: float, reach_m: float, square: float, radius: float) -> float:
    """The most that place adds to a score, given a chord's square and how much it may be less.

    An arc is c + c^3 / 24 at least.
    """
    chord = max(0.0, math.sqrt(square) - radius - CHORD_SLACK)
    arc = EARTH_RADIUS_M * chord * (1.0 + chord * chord / 24.0)
    return alpha * max(0.0, 1.0 - arc / reach_m)


@subkernel
def square_between(points: np.ndarray, at: int, x: float, y: float, z: float) -> float:
    """The square of the chord between two points."""
    i = x - np.float64(points[at, 0])
    j = y - np.float64(points[at, 1])
    k = z - np.float64(points[at, 2])
    return i * i + j * j + k * k


@subkernel
def balls_to_space(
    circles: np.ndarray,
    x: float,
    y: float,
    z: float,
    alpha: float,
    reach_m: float,
    space: np.ndarray,
) -> None:
    """The most that place adds to a score in each page."""
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
    """Whether a place may reach a score if text adds so much to it."""
    if alpha + textual < least:
        return False
    square = square_between(cards, place, x, y, z)
    return spatial_part(alpha, reach_m, square, 0.0) + textual >= least


@subkernel
def most_text(gain: float, norm: float) -> float:
    """The most TSim of rows whose shared words gain so much: their norm is of these at least."""
    return math.sqrt(gain / norm) * TEXT_SLACK if norm > 0.0 else 0.0


@subkernel
def sift_up(heap: np.ndarray, of: np.ndarray, at: int, value: float, page: int) -> None:
    """Put a page into a heap whose last free place is `at`."""
    while at > 0 and heap[(at - 1) >> 1] < value:
        heap[at], of[at] = heap[(at - 1) >> 1], of[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at], of[at] = value, page


@subkernel
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
    """The pages that may reach a score with words of a gain, the best on top; gives how many."""
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
    """The same of those pages only that have places of a list."""
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
    """What those of some words can gain at a place that its marks may stand for."""
    gain = 0.0
    for turn in range(begin, end):
        if marks[place, columns[turn]] & masks[turn]:
            gain += gains[turn]
    return gain


@subkernel
def gain_of_bits(
    bits: np.ndarray, numbers: np.ndarray, gains: np.ndarray, words: int, place: int
) -> float:
    """What the frequent words, bits[numbers[w]], gain at a place."""
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
    """The smallest subsets of words whose rows may reach a score in a page; gives how many."""
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
    """Those of 64 places, as bits, that have all words of one of the chosen subsets."""
    mask = np.uint64(0)
    for i in range(count):
        subset = chosen[i]
        if subset == 0:  # any of the frequent words will do
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
    """Which of 64 bits the one is."""
    number = 0
    for step in range(5, -1, -1):
        shift = np.uint64(1 << step)
        if bit >> shift:
            bit >>= shift
            number += 1 << step
    return number
