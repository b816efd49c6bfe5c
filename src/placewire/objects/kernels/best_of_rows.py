"""Search the window for subscriptions: the best objects of each, and all above a score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import NEVER
from placewire.kernels.jit import array_subkernel, kernel, read_only, subkernel
from placewire.model.subscriptions import lengths_to_offsets
from placewire.objects.kernels.relevant import make_scratch, search_file
from placewire.objects.kernels.score import (
    BY_PLACE,
    BY_SEQ,
    BY_TIME,
    Aim,
    Ask,
    Columns,
    ScoredObjects,
)
from placewire.objects.kernels.score_layers import PageLayers

LON, LAT, ALPHA, REACH, NORM = range(5)  # positions in the weights of a row
WEIGHTS = 5


class ScoredRows(NamedTuple):
    """The data that scores of `relevant` rows depend on: terms, their idf, and weights.

    `weights` f64[n, WEIGHTS] are a row's lon, lat, alpha, reach_m and norm side by side, because a
    search reads them together and rows are scattered in memory.
    """

    literal_offsets: np.ndarray
    literal_term: np.ndarray
    weights: np.ndarray
    literal_idf: np.ndarray


class SearchWindows(NamedTuple):
    """The objects to search for each row: ts > after_us, after_seq < seq < before_seq."""

    after_us: NDArray[np.int64]
    after_seq: NDArray[np.int64]
    before_seq: NDArray[np.int64]

    @property
    def widest(self) -> tuple[int, int, int]:
        """The union of all windows: after_seq, after_us, before_seq."""
        return int(self.after_seq.min()), int(self.after_us.min()), int(self.before_seq.max())


class BestObjects(NamedTuple):
    """The best objects by rank: row i fills counts[i] of the slots offsets[i]:offsets[i + 1].

    `looked` counts the objects scored for each row.
    """

    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    looked: NDArray[np.int64]
    nano: NDArray[np.int32]
    seq: NDArray[np.int64]
    exp: NDArray[np.int64]

    def of_rows(self, begin: int, end: int) -> BestObjects:
        """Return those of a range of rows, in the same slots."""
        offsets, counts = self.offsets[begin : end + 1], self.counts[begin:end]
        return BestObjects(offsets, counts, self.looked[begin:end], *self[3:])


def make_best_objects(sizes: NDArray[np.int64]) -> BestObjects:
    """Return room for `sizes` objects of each row."""
    offsets = lengths_to_offsets(sizes)
    counts, looked = np.zeros((2, sizes.size), np.int64)
    nano = np.empty(int(offsets[-1]), np.int32)
    return BestObjects(
        read_only(offsets), counts, looked, nano, *np.empty((2, nano.size), np.int64)
    )


@subkernel
def word_of_hash(hashes: np.ndarray, order: np.ndarray, wanted: np.uint64) -> int:
    """Return the number of the word with a hash, by the order of hashes; -1 if there is none."""
    low, high = 0, order.size
    while low < high:
        middle = (low + high) // 2
        if hashes[order[middle]] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < order.size and hashes[order[low]] == wanted:
        return int(order[low])
    return -1


@subkernel
def most_words(rows: ScoredRows, picked: np.ndarray) -> int:
    """Return the largest number of words that a picked row asks for."""
    most = 1
    for i in range(picked.size):
        most = max(most, rows.literal_offsets[picked[i] + 1] - rows.literal_offsets[picked[i]])
    return most


@array_subkernel
def ask_of_row(
    rows: ScoredRows,
    row: int,
    file: Columns,
    asked: np.ndarray,
    weights: np.ndarray,
    after_us: int,
    after_seq: int,
    before_seq: int,
) -> Ask:
    """Build a row's query for a file; `asked` and `weights` are scratch for its words."""
    literal_term, literal_idf, own = rows.literal_term, rows.literal_idf, rows.weights[row]
    word_hash, word_order = file.word_hash, file.word_order
    count = 0
    for at in range(rows.literal_offsets[row], rows.literal_offsets[row + 1]):
        word = word_of_hash(word_hash, word_order, literal_term[at])
        if word >= 0:
            asked[count] = word
            weights[count] = literal_idf[at]
            count += 1
    return Ask(
        own[LON],
        own[LAT],
        own[ALPHA],
        own[REACH],
        own[NORM],
        asked[:count],
        weights[:count],
        np.int64(after_us),
        NEVER,
        np.int64(after_seq),
        np.int64(before_seq),
    )


@kernel
def best_objects_of_rows(
    picked: np.ndarray,
    wanted: SearchWindows,
    rows: ScoredRows,
    file: Columns,
    page_layers: PageLayers,
    layered: bool,
    by_time: bool,
    best: BestObjects,
) -> None:
    """Insert the objects of one file among the best of each picked row, in place.

    Row picked[i] searches the window wanted[i]. Unless `layered`, lists are scanned.
    """
    after_us, after_seq, before_seq = wanted.after_us, wanted.after_seq, wanted.before_seq
    best_offsets, best_counts, looked = best.offsets, best.counts, best.looked
    found = ScoredObjects(best.nano, best.seq, best.exp)
    words = most_words(rows, picked)
    asked, weights = np.empty(words, np.int64), np.empty(words, np.float64)
    scratch = make_scratch(page_layers.page_inverse.size, words)
    keep = BY_TIME if by_time else BY_SEQ
    for i in range(picked.size):
        ask = ask_of_row(
            rows, picked[i], file, asked, weights, after_us[i], after_seq[i], before_seq[i]
        )
        first = best_offsets[i]
        aim = Aim(False, 0, best_offsets[i + 1] - first, keep, 0)
        best_counts[i] = search_file(
            page_layers, layered, file, ask, aim, first, best_counts[i], found, scratch
        )
        looked[i] += scratch.looked[0]
        scratch.looked[0] = 0


def make_ask(
    point: tuple[float, float],
    alpha: float,
    reach_m: float,
    norm: float,
    asked: NDArray[np.int64],
    weights: NDArray[np.float64],
    span: tuple[int, int, int, int],
) -> Ask:
    """Return a query; `span` is after_us, until_us, after_seq and before_seq."""
    lon, lat = map(float, point)
    words = np.ascontiguousarray(asked), np.ascontiguousarray(weights)
    return Ask(lon, lat, float(alpha), float(reach_m), float(norm), *words, *map(int, span))


@kernel
def best_objects_of_query(
    ask: Ask,
    section: int,
    file: Columns,
    page_layers: PageLayers,
    layered: bool,
    held: int,
    found: ScoredObjects,
) -> int:
    """Insert the objects of one file among the best of a query; return their number.

    Of each object its place is kept: the section's number and the row.
    """
    scratch = make_scratch(page_layers.page_inverse.size, ask.asked.size)
    aim = Aim(False, np.int64(0), np.int64(found.nano.size), np.int64(BY_PLACE), np.int64(section))
    return search_file(page_layers, layered, file, ask, aim, np.int64(0), held, found, scratch)


@kernel
def objects_above_rows(
    picked: np.ndarray,
    wanted: SearchWindows,
    theta: np.ndarray,
    rows: ScoredRows,
    file: Columns,
    page_layers: PageLayers,
    layered: bool,
    by_time: bool,
) -> tuple:  # type: ignore[type-arg]
    """Find the objects of one file in the window wanted[i] that score at least theta[picked[i]].

    Returns i i64, nano i32, seq i64 and exp i64 of each, sorted by i.
    """
    after_us, after_seq, before_seq = wanted.after_us, wanted.after_seq, wanted.before_seq
    words = most_words(rows, picked)
    asked, weights = np.empty(words, np.int64), np.empty(words, np.float64)
    scratch = make_scratch(page_layers.page_inverse.size, words)
    keep = BY_TIME if by_time else BY_SEQ
    of = np.empty(1024, np.int64)
    found = ScoredObjects(
        np.empty(1024, np.int32), np.empty(1024, np.int64), np.empty(1024, np.int64)
    )
    written = np.int64(0)
    for i in range(picked.size):
        row = picked[i]
        ask = ask_of_row(rows, row, file, asked, weights, after_us[i], after_seq[i], before_seq[i])
        while True:
            aim = Aim(True, np.int64(theta[row]), of.size - written, keep, 0)
            held = search_file(
                page_layers, layered, file, ask, aim, written, np.int64(0), found, scratch
            )
            if held <= of.size - written:
                break
            more = max(of.size, held)
            of = np.concatenate((of, np.empty(more, np.int64)))
            found = ScoredObjects(
                np.concatenate((found.nano, np.empty(more, np.int32))),
                np.concatenate((found.seq, np.empty(more, np.int64))),
                np.concatenate((found.kept, np.empty(more, np.int64))),
            )
        of[written : written + held] = i
        written += held
    return (
        of[:written].copy(),
        found.nano[:written].copy(),
        found.seq[:written].copy(),
        found.kept[:written].copy(),
    )


@kernel
def postings_of_rows(
    picked: np.ndarray, rows: ScoredRows, file: Columns, counts: np.ndarray
) -> None:
    """Add the lengths of the lists that each row asks for to `counts` f64[n]."""
    literal_offsets, literal_term = rows.literal_offsets, rows.literal_term
    word_hash, word_order, list_offsets = file.word_hash, file.word_order, file.list_offsets
    for i in range(picked.size):
        for at in range(literal_offsets[picked[i]], literal_offsets[picked[i] + 1]):
            word = word_of_hash(word_hash, word_order, literal_term[at])
            if word >= 0:
                counts[i] += list_offsets[word + 1] - list_offsets[word]
