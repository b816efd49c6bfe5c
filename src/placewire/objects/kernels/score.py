"""Score retained objects for one search: its query, which rows count, the best rows so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placewire.kernels.blocks import ranks_before
from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.space.regions import distance_m

BY_SEQ, BY_TIME, BY_PLACE = 0, 1, 2  # the value stored with a found object besides its seq
NANO_SLACK = 5  # more than any rounding error of a bound
SECTION_SHIFT = 32  # a place holds the section's number above this bit, the row below
ROW_MASK = (1 << SECTION_SHIFT) - 1


class Columns(NamedTuple):
    """Columns of a file of retained objects, as kernels search them.

    `parts` i64[p, 2] are the row ranges that count, ascending; empty if all do.
    """

    word_hash: np.ndarray
    word_order: np.ndarray
    code: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    ts_us: np.ndarray
    seq: np.ndarray
    term_offsets: np.ndarray
    terms: np.ndarray
    norm: np.ndarray
    list_offsets: np.ndarray
    lists: np.ndarray
    parts: np.ndarray


class Ask(NamedTuple):
    """The query of one search: `asked` i64 words of the file, ascending, `weights` f64 their idf.

    Objects count with after_us < ts <= until_us and after_seq < seq < before_seq.
    """

    lon: float
    lat: float
    alpha: float
    reach_m: float
    norm: float
    asked: np.ndarray
    weights: np.ndarray
    after_us: int
    until_us: int
    after_seq: int
    before_seq: int


class Aim(NamedTuple):
    """The wanted results: the best `room` or all that score `floor`, and what to keep of each."""

    every: bool
    floor: int
    room: int
    keep: int
    section: int


class ScoredObjects(NamedTuple):
    """Objects by rank or, if all above a score are wanted, in the order found."""

    nano: np.ndarray  # i32
    seq: np.ndarray  # i64
    kept: np.ndarray  # i64


@kernel
def score_nano(distance: float, textual: float, alpha: float, reach_m: float) -> np.int32:
    """Return the score of the specification's section 7 in billionths."""
    spatial = max(0.0, 1.0 - distance / reach_m)
    return np.int32(np.rint(1e9 * (alpha * spatial + (1.0 - alpha) * textual)))


@subkernel
def row_norm(norms: np.ndarray, term_offsets: np.ndarray, row: int) -> float:
    """Return the norm of an object; without norms every term weighs 1."""
    if norms.size:
        return float(norms[row])
    return float(np.sqrt(np.float64(term_offsets[row + 1] - term_offsets[row])))


@subkernel
def row_counts(parts: np.ndarray, ask: Ask, row: int, seq: int, ts_us: int) -> bool:
    """Return true if a row is in the searched span and parts."""
    if seq <= ask.after_seq or seq >= ask.before_seq:
        return False
    if ts_us <= ask.after_us or ts_us > ask.until_us:
        return False
    if parts.shape[0] == 0:
        return True
    low, high = 0, parts.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if parts[middle, 1] <= row:
            low = middle + 1
        else:
            high = middle
    return low < parts.shape[0] and parts[low, 0] <= row


@subkernel
def score_terms(
    terms: np.ndarray,
    begin: int,
    end: int,
    norm: float,
    ask: Ask,
    distance: float,
    ranks: np.ndarray,
    rank: int,
) -> int:
    """The score of an object in 1e-9; -1 if its lowest-ranked asked term is not of rank `rank`.

    Adds TSim (specification, section 7) over the shared terms in code-point order.
    """
    textual, least, number = 0.0, ranks.size, 0
    at = begin
    while at < end and number < ask.asked.size:
        term = np.int64(terms[at])
        if term < ask.asked[number]:
            at += 1
        elif term > ask.asked[number]:
            number += 1
        else:
            least = min(least, ranks[number])
            if ask.norm != 0.0 and norm != 0.0:
                weight = ask.weights[number]
                textual += (weight / ask.norm) * (weight / norm)
            at += 1
            number += 1
    if least != rank:
        return -1
    return np.int64(score_nano(distance, textual, ask.alpha, ask.reach_m))


@subkernel
def put_best(
    first: int, room: int, held: int, nano: int, seq: int, kept: int, found: ScoredObjects
) -> int:
    """Insert an object into the ranked best if it qualifies; return their number."""
    last = first + held - 1
    if held == room and (
        room == 0 or not ranks_before(nano, seq, np.int64(found.nano[last]), found.seq[last])
    ):
        return held
    at = first + (held if held < room else room - 1)
    while at > first and ranks_before(nano, seq, np.int64(found.nano[at - 1]), found.seq[at - 1]):
        found.nano[at], found.seq[at] = found.nano[at - 1], found.seq[at - 1]
        found.kept[at] = found.kept[at - 1]
        at -= 1
    found.nano[at], found.seq[at], found.kept[at] = nano, seq, kept
    return min(held + 1, room)


@subkernel
def offer_row(
    file: Columns,
    ask: Ask,
    row: int,
    ranks: np.ndarray,
    rank: int,
    aim: Aim,
    first: int,
    held: int,
    found: ScoredObjects,
) -> int:
    """Score a row that may be wanted and insert it by rank; return the number of objects held."""
    seq, ts_us = file.seq[row], file.ts_us[row]
    if not row_counts(file.parts, ask, row, seq, ts_us):
        return held
    begin, end = file.term_offsets[row], file.term_offsets[row + 1]
    norm = row_norm(file.norm, file.term_offsets, row)
    distance = distance_m(ask.lon, ask.lat, file.lon[row], file.lat[row])
    nano = score_terms(file.terms, begin, end, norm, ask, distance, ranks, rank)
    return put_object(aim, first, held, nano, seq, ts_us, row, found)


@subkernel
def put_object(
    aim: Aim, first: int, held: int, nano: int, seq: int, ts_us: int, row: int, found: ScoredObjects
) -> int:
    """Insert an object by rank if its score is high enough; return the number of objects held.

    If all are wanted, objects for which there is no room are only counted.
    """
    if nano < max(aim.floor, 0):
        return held
    kept = seq
    if aim.keep == BY_TIME:
        kept = ts_us
    elif aim.keep == BY_PLACE:
        kept = (np.int64(aim.section) << SECTION_SHIFT) | row
    if not aim.every:
        return put_best(first, aim.room, held, nano, seq, kept, found)
    if held < aim.room:
        at = first + held
        found.nano[at], found.seq[at], found.kept[at] = nano, seq, kept
    return held + 1


@subkernel
def score_to_reach(aim: Aim, first: int, held: int, found: ScoredObjects) -> float:
    """Return the score below which no object is wanted any more, with some slack."""
    nano = np.int64(aim.floor)
    if not aim.every and held == aim.room and held > 0:
        nano = max(nano, np.int64(found.nano[first + held - 1]))
    return (nano - NANO_SLACK) * 1e-9
