"""Keep the k best candidates of each subscription, as candidates arrive by seq."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel

NOTHING = -1  # nothing was dropped


@kernel
def candidates_entering_rows(
    rows: np.ndarray, distances: np.ndarray, sure: np.ndarray, ks: np.ndarray
) -> tuple:  # type: ignore[type-arg]
    """Return which candidates could enter, judged only by those before them: bool[n].

    Candidates are by (row, seq), each once. One that is not `sure` bool[n] may yet be rejected: it
    is kept, and rules out no other. `ks` u16 has the k of every row. Also returns the rows u32 that
    have k sure candidates, and the distance f64 of the k-th.
    """
    enters = np.empty(rows.size, np.bool_)
    full_rows = np.empty(rows.size, np.uint32)
    radii = np.empty(rows.size, np.float64)
    full = 0
    best = np.empty(1024, np.float64)
    held = 0
    for i in range(rows.size):
        if i == 0 or rows[i] != rows[i - 1]:
            held = 0
        k = np.int64(ks[rows[i]])
        distance = distances[i]
        enters[i] = held < k or distance < best[held - 1]
        if not enters[i] or not sure[i]:
            continue
        to = held if held < k else k - 1
        held = min(held + 1, k)
        while to > 0 and best[to - 1] > distance:
            best[to] = best[to - 1]
            to -= 1
        best[to] = distance
        if held == k:
            if full == 0 or full_rows[full - 1] != rows[i]:
                full_rows[full] = rows[i]
                full += 1
            radii[full - 1] = best[k - 1]
    return enters, full_rows[:full].copy(), radii[:full].copy()


@kernel
def candidates_into_results(
    rows: np.ndarray,
    seqs: np.ndarray,
    distances: np.ndarray,
    slot_offsets: np.ndarray,
    counts: np.ndarray,
    slot_distance: np.ndarray,
    slot_seq: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Apply candidates sorted by (row, seq) to the results, in place.

    Row r's result is in slots slot_offsets[r]:slot_offsets[r + 1], `counts` i32 of them in use, by
    (distance, seq). A repeated candidate counts once. Returns which candidates entered, bool[n],
    and the seq that each dropped, i64[n], NOTHING if none.
    """
    entered = np.zeros(rows.size, np.bool_)
    dropped = np.full(rows.size, NOTHING, np.int64)
    for i in range(rows.size):
        row = rows[i]
        if i and row == rows[i - 1] and seqs[i] == seqs[i - 1]:
            continue
        first = slot_offsets[row]
        k = slot_offsets[row + 1] - first
        held = np.int64(counts[row])
        distance = distances[i]
        # Every seq here is larger than those in the result: of equal distances the older stays.
        if held == k and distance >= slot_distance[first + k - 1]:
            continue
        if held == k:
            dropped[i] = slot_seq[first + k - 1]
            held -= 1
        to = first + held
        while to > first and slot_distance[to - 1] > distance:
            slot_distance[to] = slot_distance[to - 1]
            slot_seq[to] = slot_seq[to - 1]
            to -= 1
        slot_distance[to] = distance
        slot_seq[to] = seqs[i]
        counts[row] = held + 1
        entered[i] = True
    return entered, dropped


@kernel
def results_to_radii(
    slot_offsets: np.ndarray, counts: np.ndarray, slot_distance: np.ndarray, within_m: np.ndarray
) -> np.ndarray:
    """Return the largest distance at which an object may still enter each result: f64[n].

    It is the distance of the k-th object or, with fewer than k, `within_m` f64[n].
    """
    radii = np.empty(counts.size, np.float64)
    for row in range(counts.size):
        first, last = slot_offsets[row], slot_offsets[row + 1]
        radii[row] = slot_distance[last - 1] if counts[row] == last - first else within_m[row]
    return radii


@kernel
def slots_taken(
    slot_offsets: np.ndarray,
    counts: np.ndarray,
    slot_distance: np.ndarray,
    slot_seq: np.ndarray,
    picked: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Copy the results of the picked rows: slot_offsets, counts, slot_distance, slot_seq."""
    offsets = np.zeros(picked.size + 1, np.int64)
    for i in range(picked.size):
        offsets[i + 1] = offsets[i] + slot_offsets[picked[i] + 1] - slot_offsets[picked[i]]
    taken_counts = np.empty(picked.size, np.int32)
    distance = np.zeros(offsets[-1], np.float64)
    seq = np.zeros(offsets[-1], np.int64)
    for i in range(picked.size):
        first = slot_offsets[picked[i]]
        taken_counts[i] = counts[picked[i]]
        for s in range(counts[picked[i]]):
            distance[offsets[i] + s] = slot_distance[first + s]
            seq[offsets[i] + s] = slot_seq[first + s]
    return offsets, taken_counts, distance, seq
