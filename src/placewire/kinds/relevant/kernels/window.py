"""Slide the window past buffers: apply arrivals and departures by event, and write the updates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.blocks import NEVER, ranks_before
from placewire.kernels.jit import array_subkernel, kernel, subkernel
from placewire.kinds.relevant.kernels.buffers import (
    ALL,
    DONE,
    MOST_K,
    Buffers,
    enter_buffer,
    first_reaching,
    leave_buffer,
    soonest_in_buffer,
)
from placewire.objects.kernels.best_of_rows import BestObjects
from placewire.objects.window import Moves


class WindowMatches(NamedTuple):
    """Matching objects of rows by seq, CSR by row; `exp` is when each leaves the window."""

    offsets: NDArray[np.int64]
    nano: NDArray[np.int32]
    seq: NDArray[np.int64]
    exp: NDArray[np.int64]


class PassedRows(NamedTuple):
    """Rows to slide the window past: the events after `begin` and before `stop`.

    `status` receives the seq of the event before which a row needs a refill, otherwise DONE.
    """

    row: NDArray[np.int64]
    k: NDArray[np.int64]
    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    status: NDArray[np.int64]


class RefilledRows(NamedTuple):
    """Rows to refill at an event; a row is `complete` if the window has no more objects for it."""

    row: NDArray[np.int64]
    k: NDArray[np.int64]
    at_seq: NDArray[np.int64]
    complete: NDArray[np.bool_]


class WindowUpdates(NamedTuple):
    """Updates of rows with the objects that each adds and drops, CSR by update."""

    row: NDArray[np.int64]
    seq: NDArray[np.int64]
    add_offsets: NDArray[np.int64]
    drop_offsets: NDArray[np.int64]
    add_nano: NDArray[np.int32]
    add_seq: NDArray[np.int64]
    drop_seq: NDArray[np.int64]


@array_subkernel
def make_update_room(updates: int, adds: int, drops: int) -> WindowUpdates:
    """Return room for a number of updates, objects added and objects dropped."""
    return WindowUpdates(
        np.empty(updates, np.int64),
        np.empty(updates, np.int64),
        np.zeros(updates + 1, np.int64),
        np.zeros(updates + 1, np.int64),
        np.empty(adds, np.int32),
        np.empty(adds, np.int64),
        np.empty(drops, np.int64),
    )


@array_subkernel
def copy_updates(room: WindowUpdates, written: np.ndarray) -> WindowUpdates:
    """Return the first updates; `written` i64[3] counts updates, adds and drops."""
    updates, adds, drops = written[0], written[1], written[2]
    return WindowUpdates(
        room.row[:updates].copy(),
        room.seq[:updates].copy(),
        room.add_offsets[: updates + 1].copy(),
        room.drop_offsets[: updates + 1].copy(),
        room.add_nano[:adds].copy(),
        room.add_seq[:adds].copy(),
        room.drop_seq[:drops].copy(),
    )


@subkernel
def changed_result(
    row: int,
    seq: int,
    before: int,
    old_nanos: np.ndarray,
    old_seqs: np.ndarray,
    k: int,
    buffers: Buffers,
    room: WindowUpdates,
    written: np.ndarray,
) -> None:
    """Write the objects that entered and left a result since it was copied, if any."""
    nanos, seqs = buffers.nano, buffers.seq
    add_nano, add_seq, drop_seq = room.add_nano, room.add_seq, room.drop_seq
    first = buffers.offsets[row]
    after = min(int(buffers.counts[row]), k)
    updates, adds, drops = written[0], written[1], written[2]
    i = 0
    j = 0
    while i < before or j < after:
        at = first + j
        if i < before and j < after and old_seqs[i] == seqs[at]:
            i += 1
            j += 1
        elif j == after or (
            i < before
            and ranks_before(np.int64(old_nanos[i]), old_seqs[i], np.int64(nanos[at]), seqs[at])
        ):
            drop_seq[drops] = old_seqs[i]
            drops += 1
            i += 1
        else:
            add_nano[adds], add_seq[adds] = nanos[at], seqs[at]
            adds += 1
            j += 1
    if adds > written[1] or drops > written[2]:
        room.row[updates], room.seq[updates] = row, seq
        room.add_offsets[updates + 1], room.drop_offsets[updates + 1] = adds, drops
        written[0], written[1], written[2] = updates + 1, adds, drops


@kernel
def window_past_rows(
    passed: PassedRows,
    matches: WindowMatches,
    moves: Moves,
    dominance: bool,
    trim: bool,
    buffers: Buffers,
    soonest: np.ndarray,
    room: WindowUpdates,
    written: np.ndarray,
    first_row: int,
) -> int:
    """Apply a range of the log to the buffers of some rows, in place, and write the updates.

    Arrivals and departures at one event are applied together. A row that would fall below k while
    the window has more objects stops before that event. `written` i64[3] counts updates, adds and
    drops. Returns the row to resume at when the output is full.
    """
    rows, ks, stops = passed.row, passed.k, passed.stop
    begins, status = passed.begin, passed.status
    match_offsets, match_nano = matches.offsets, matches.nano
    match_seq, match_exp = matches.seq, matches.exp
    move_seq, move_horizon = moves.seq, moves.horizon
    offsets, counts, theta = buffers.offsets, buffers.counts, buffers.theta
    nanos, seqs, exps = buffers.nano, buffers.seq, buffers.exp
    most_updates, most_adds, most_drops = room.row.size, room.add_seq.size, room.drop_seq.size
    old_nanos = np.empty(MOST_K, np.int32)
    old_seqs = np.empty(MOST_K, np.int64)
    for i in range(first_row, rows.size):
        row = rows[i]
        k = ks[i]
        first = offsets[row]
        at = match_offsets[i]
        end = match_offsets[i + 1]
        while at < end and match_seq[at] <= begins[i]:
            at += 1
        status[i] = DONE
        while True:
            seq = NEVER
            move = first_reaching(move_horizon, soonest[row])
            if move < move_seq.size and soonest[row] < NEVER:
                seq = move_seq[move]
            arrives = at < end and match_seq[at] <= seq
            if arrives:
                seq = match_seq[at]
            if seq == NEVER or seq >= stops[i]:
                break
            if (
                written[0] == most_updates
                or written[1] + MOST_K > most_adds
                or written[2] + MOST_K > most_drops
            ):
                begins[i] = seq - 1
                return i
            last = first_reaching(move_seq, seq + 1) - 1
            horizon = move_horizon[last] if last >= 0 else -NEVER
            enters = arrives and match_exp[at] > horizon and match_nano[at] >= theta[row]
            held = np.int64(counts[row])
            left = 0
            for slot in range(first, first + held):
                if exps[slot] <= horizon:
                    left += 1
            if theta[row] != ALL and held - left + (1 if enters else 0) < k:
                status[i] = seq
                break
            before = min(held, k)
            for slot in range(before):
                old_nanos[slot], old_seqs[slot] = nanos[first + slot], seqs[first + slot]
            if left:
                leave_buffer(row, horizon, buffers)
            place = -1
            if enters:
                place = enter_buffer(
                    row,
                    np.int64(match_nano[at]),
                    match_seq[at],
                    match_exp[at],
                    k,
                    dominance,
                    trim,
                    buffers,
                )
            if arrives:
                at += 1
            soonest[row] = soonest_in_buffer(row, buffers)
            if left == 0 and (place < 0 or place >= k):
                continue
            changed_result(row, seq, before, old_nanos, old_seqs, k, buffers, room, written)
    return rows.size


@kernel
def best_into_buffers(
    refilled: RefilledRows,
    best: BestObjects,
    dominance: bool,
    buffers: Buffers,
    soonest: np.ndarray,
) -> WindowUpdates:
    """Refill the buffers of some rows with the best of the window, and return the updates.

    Row i gets the first best.counts[i] of the slots best.offsets[i]:best.offsets[i + 1], by rank.
    If it is complete, these are all candidates.
    """
    rows, ks = refilled.row, refilled.k
    at_seq, complete = refilled.at_seq, refilled.complete
    best_offsets, best_counts = best.offsets, best.counts
    best_nano, best_seq, best_exp = best.nano, best.seq, best.exp
    counts, nanos, seqs = buffers.counts, buffers.nano, buffers.seq
    theta, theta_seq = buffers.theta, buffers.theta_seq
    adds = 0
    drops = 0
    for i in range(rows.size):
        adds += min(ks[i], best_counts[i])
        drops += min(ks[i], np.int64(counts[rows[i]]))
    room = make_update_room(rows.size, adds, drops)
    written = np.zeros(3, np.int64)
    old_nanos = np.empty(MOST_K, np.int32)
    old_seqs = np.empty(MOST_K, np.int64)
    for i in range(rows.size):
        row = rows[i]
        k = ks[i]
        first = buffers.offsets[row]
        before = min(np.int64(counts[row]), k)
        for slot in range(before):
            old_nanos[slot], old_seqs[slot] = nanos[first + slot], seqs[first + slot]
        counts[row] = 0
        theta[row], theta_seq[row] = ALL, 0
        lowest = best_offsets[i] + best_counts[i] - 1
        if not complete[i]:
            theta[row], theta_seq[row] = best_nano[lowest], best_seq[lowest]
        for at in range(best_offsets[i], best_offsets[i] + best_counts[i]):
            if theta[row] != ALL and ranks_before(
                np.int64(theta[row]), theta_seq[row], np.int64(best_nano[at]), best_seq[at]
            ):
                break
            enter_buffer(
                row,
                np.int64(best_nano[at]),
                best_seq[at],
                best_exp[at],
                k,
                dominance,
                False,
                buffers,
            )
        soonest[row] = soonest_in_buffer(row, buffers)
        changed_result(row, at_seq[i], before, old_nanos, old_seqs, k, buffers, room, written)
    return copy_updates(room, written)
