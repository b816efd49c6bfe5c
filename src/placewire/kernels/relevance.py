"""Relevance: the score of an object for a `relevant` row, and every pair by looking at each.

Scores are whole billionths ("nano", i32), as the specification rounds them. A row's shape is lon,
lat, alpha, reach_m, norm and the idf of each of its terms (`model.subscriptions`).
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.regions import distance_m
from placewire.kernels.termsets import terms_contain

LON, LAT, ALPHA, REACH, NORM, IDF = 0, 1, 2, 3, 4, 5  # places in a row's shape


@inlined
def row_is_over(dead: np.ndarray, expires_us: np.ndarray, row: int, now_us: int) -> bool:
    """Whether a row has ended or expired."""
    if dead.size and (dead[row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
        return True
    return bool(expires_us[row] <= now_us)


@inlined
def row_similarity(
    terms: np.ndarray,
    first_term: int,
    last_term: int,
    norm: float,
    literal_term: np.ndarray,
    first: int,
    last: int,
    shape: np.ndarray,
    shape_at: int,
) -> float:
    """TSim of the specification's section 7 over the row's terms in their order; -1 shares none."""
    row_norm = shape[shape_at + NORM]
    textual = -1.0
    for at in range(first, last):
        if terms_contain(terms, first_term, last_term, literal_term[at]):
            textual = max(textual, 0.0)
            if row_norm != 0.0 and norm != 0.0:
                idf = shape[shape_at + IDF + at - first]
                textual += (idf / row_norm) * (idf / norm)
    return textual


@inlined
def score_nano(
    lon: float, lat: float, textual: float, shape: np.ndarray, shape_at: int
) -> np.int32:
    """The score of the specification's section 7 in billionths."""
    alpha = shape[shape_at + ALPHA]
    distance = distance_m(shape[shape_at + LON], shape[shape_at + LAT], lon, lat)
    spatial = max(0.0, 1.0 - distance / shape[shape_at + REACH])
    return np.int32(np.rint(1e9 * (alpha * spatial + (1.0 - alpha) * textual)))


@kernel
def objects_relevant_to_rows(
    lons: np.ndarray,
    lats: np.ndarray,
    nows_us: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    norms: np.ndarray,
    expires_us: np.ndarray,
    shape_offsets: np.ndarray,
    shape: np.ndarray,
    literal_offsets: np.ndarray,
    literal_term: np.ndarray,
    theta: np.ndarray,
    dead: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Every (object u32, row u32, score i32) with a shared term and a score of at least `theta`.

    By looking at each pair: the oracle of the index, and its null form.
    """
    room = 1024
    objects = np.empty(room, np.uint32)
    rows = np.empty(room, np.uint32)
    nanos = np.empty(room, np.int32)
    found = 0
    for o in range(lons.size):
        for row in range(expires_us.size):
            if row_is_over(dead, expires_us, row, nows_us[o]):
                continue
            textual = row_similarity(
                terms,
                term_offsets[o],
                term_offsets[o + 1],
                norms[o],
                literal_term,
                literal_offsets[row],
                literal_offsets[row + 1],
                shape,
                shape_offsets[row],
            )
            if textual < 0.0:
                continue
            nano = score_nano(lons[o], lats[o], textual, shape, shape_offsets[row])
            if nano < theta[row]:
                continue
            if found == room:
                objects = np.append(objects, np.empty(room, np.uint32))
                rows = np.append(rows, np.empty(room, np.uint32))
                nanos = np.append(nanos, np.empty(room, np.int32))
                room *= 2
            objects[found] = o
            rows[found] = row
            nanos[found] = nano
            found += 1
    return objects[:found], rows[:found], nanos[:found]
