"""Searching the window for subscriptions: the best objects of each, and all above a score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.blocks import NEVER
from placewire.kernels.jit import kernel, subkernel
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

FIRST_US = np.int64(-(1 << 63))


class ScoredRows(NamedTuple):
    """What the scores of `relevant` rows depend on: their terms, the idf of these, and weights."""

    literal_offsets: np.ndarray
    literal_term: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    alpha: np.ndarray
    reach_m: np.ndarray
    norm: np.ndarray
    literal_idf: np.ndarray


@subkernel
def word_of_hash(hashes: np.ndarray, order: np.ndarray, wanted: np.uint64) -> int:
    """The number of the word with a hash, by the order of hashes; -1 if there is none."""
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
    """How many words a picked row asks for at most."""
    most = 1
    for i in range(picked.size):
        most = max(most, rows.literal_offsets[picked[i] + 1] - rows.literal_offsets[picked[i]])
    return most


@subkernel
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
    """What a row asks of a file; `asked` and `weights` are room for its words."""
    literal_term, literal_idf = rows.literal_term, rows.literal_idf
    word_hash, word_order = file.word_hash, file.word_order
    count = 0
    for at in range(rows.literal_offsets[row], rows.literal_offsets[row + 1]):
        word = word_of_hash(word_hash, word_order, literal_term[at])
        if word >= 0:
            asked[count] = word
            weights[count] = literal_idf[at]
            count += 1
    return Ask(
        rows.lon[row],
        rows.lat[row],
        rows.alpha[row],
        rows.reach_m[row],
        rows.norm[row],
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
    after_us: np.ndarray,
    after_seq: np.ndarray,
    before_seq: np.ndarray,
    rows: ScoredRows,
    file: Columns,
    page_layers: PageLayers,
    layered: bool,
    by_time: bool,
    best_offsets: np.ndarray,
    best_counts: np.ndarray,
    looked: np.ndarray,
    found: ScoredObjects,
) -> None:
    """Put the objects of one file among the best of each picked row, in place.

    Row picked[i] wants objects with ts > after_us[i] and after_seq[i] < seq < before_seq[i]. Unless
    `layered` the lists are walked. `looked` i64[n] counts the objects that were scored.
    """
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


@kernel
def best_objects_of_query(
    lon: float,
    lat: float,
    alpha: float,
    reach_m: float,
    norm: float,
    asked: np.ndarray,
    weights: np.ndarray,
    after_us: int,
    until_us: int,
    after_seq: int,
    before_seq: int,
    section: int,
    file: Columns,
    page_layers: PageLayers,
    layered: bool,
    held: int,
    found: ScoredObjects,
) -> int:
    """Put the objects of one file among the best of a query; gives how many these are.

    What is kept of each is its place: the section's number and the row.
    """
    scratch = make_scratch(page_layers.page_inverse.size, asked.size)
    ask = Ask(
        lon,
        lat,
        alpha,
        reach_m,
        norm,
        asked,
        weights,
        np.int64(after_us),
        np.int64(until_us),
        np.int64(after_seq),
        np.int64(before_seq),
    )
    aim = Aim(False, np.int64(0), np.int64(found.nano.size), np.int64(BY_PLACE), np.int64(section))
    return search_file(page_layers, layered, file, ask, aim, np.int64(0), held, found, scratch)


@kernel
def objects_above_rows(
    picked: np.ndarray,
    after_seq: np.ndarray,
    before_seq: np.ndarray,
    theta: np.ndarray,
    rows: ScoredRows,
    file: Columns,
    page_layers: PageLayers,
    layered: bool,
    by_time: bool,
) -> tuple:  # type: ignore[type-arg]
    """The objects of one file between two seqs that score theta[picked[i]] at least.

    Gives i i64, nano i32, seq i64 and exp i64 of each, by i.
    """
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
        ask = ask_of_row(rows, row, file, asked, weights, FIRST_US, after_seq[i], before_seq[i])
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
def cheapest_sizes(ks: np.ndarray, looked: np.ndarray, growth: float) -> np.ndarray:
    """How many objects above the threshold make a buffer cheapest to keep: i64[n].

    With n of them, a buffer has about k (1 + ln(n / k)) that are not dominated, and an arriving or
    leaving one walks along these. A search looks at `looked` objects; it is needed once the number
    above the threshold, a random walk with a reflecting barrier at 2 n, has come down to k - 1.
    In it `growth` objects arrive for each that leaves.
    Both costs are taken by arriving object and without their common factor; the sum falls, then
    rises, and the least is found by descent.
    """
    sizes = np.empty(ks.size, np.int64)
    for i in range(ks.size):
        k = np.float64(ks[i])
        n = k
        step = max(1.0, np.floor(k / 2))
        cost = buffer_cost(n, k, looked[i], growth)
        while step >= 1.0:
            more = buffer_cost(n + step, k, looked[i], growth)
            less = buffer_cost(max(n - step, k), k, looked[i], growth)
            if more < cost and more <= less:
                n += step
                cost = more
            elif less < cost:
                n = max(n - step, k)
                cost = less
            else:
                step = np.floor(step / 2)
        sizes[i] = np.int64(n)
    return sizes


@subkernel
def buffer_cost(n: float, k: float, looked: float, growth: float) -> float:
    keeping = n * k * (1.0 + np.log(n / k))
    searching = SEARCH_STEP * (looked + SEARCH_BASE)
    return keeping + searching * n / steps_down(n - k + 1.0, n, growth)


@subkernel
def steps_down(above: float, n: float, growth: float) -> float:
    """How many steps a walk takes to come down by `above`, its barrier n above where it begins.

    One step down from a place d below the barrier takes (1 + growth) (1 + growth + .. + growth^d)
    steps, which is summed up here. Far up it takes so long that its length no longer matters.
    """
    if abs(growth - 1.0) < 1e-6:
        return 2.0 * above * n + above * (above + 1.0)
    far = growth ** min(n + 1.0, 200.0) * (growth ** min(above, 200.0) - 1.0) / (growth - 1.0)
    return (far - above) * (1.0 + growth) / (growth - 1.0)


# What a search takes beside scoring objects, as so many of them: words looked up in every file,
# bounds of pages, memory that is not in a cache; some tenths of a millisecond in all.
SEARCH_BASE = 30_000.0
SEARCH_STEP = 4.0  # the cost of scoring an object, in steps along a buffer


@kernel
def postings_of_rows(
    rows: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    word_hash: np.ndarray,
    word_order: np.ndarray,
    list_offsets: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add the lengths of the lists that each row asks for to `counts` f64[n]."""
    for i in range(rows.size):
        for at in range(literal_offsets[rows[i]], literal_offsets[rows[i] + 1]):
            word = word_of_hash(word_hash, word_order, literal_term[at])
            if word >= 0:
                counts[i] += list_offsets[word + 1] - list_offsets[word]
