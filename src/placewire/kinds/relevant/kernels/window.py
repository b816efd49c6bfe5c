"""The sliding window past buffers: what arrives and leaves, event by event, and the updates."""

from __future__ import annotations

import numpy as np

from placewire.kernels.blocks import NEVER, ranks_before
from placewire.kernels.jit import kernel, subkernel
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


@subkernel
def changed_result(
    before: int,
    old_nanos: np.ndarray,
    old_seqs: np.ndarray,
    first: int,
    after: int,
    nanos: np.ndarray,
    seqs: np.ndarray,
    adds: int,
    add_nano: np.ndarray,
    add_seq: np.ndarray,
    drops: int,
    drop_seq: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Write what entered and what left a result; gives how many entries both lists have now."""
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
    return adds, drops


@kernel
def window_past_rows(
    rows: np.ndarray,
    ks: np.ndarray,
    stops: np.ndarray,
    begins: np.ndarray,
    candidate_offsets: np.ndarray,
    candidate_nano: np.ndarray,
    candidate_seq: np.ndarray,
    candidate_exp: np.ndarray,
    move_seq: np.ndarray,
    move_horizon: np.ndarray,
    dominance: bool,
    trim: bool,
    buffers: Buffers,
    soonest: np.ndarray,
    status: np.ndarray,
    update_row: np.ndarray,
    update_seq: np.ndarray,
    update_adds: np.ndarray,
    update_drops: np.ndarray,
    add_nano: np.ndarray,
    add_seq: np.ndarray,
    drop_seq: np.ndarray,
    cursor: np.ndarray,
) -> None:
    """Let a stretch of the log pass the buffers of some rows, in place, and write the updates.

    Row rows[i] has the candidates candidate_offsets[i]:candidate_offsets[i + 1] by seq; it sees the
    events after begins[i] i64 and before stops[i] i64. The horizon moves at the events `move_seq`,
    ascending. What arrives and what leaves at one event is applied together.

    A row that would have fewer than k while the window has more stops before that event: its seq
    is in `status` i64[n], otherwise DONE. Updates end with `update_adds` and `update_drops` of the
    flat lists. The cursor i64[4] counts rows, updates, adds and drops; when room runs out the
    kernel returns early, and goes on when it is called again with the last three 0.
    """
    offsets, counts, theta = buffers.offsets, buffers.counts, buffers.theta
    nanos, seqs, exps = buffers.nano, buffers.seq, buffers.exp
    old_nanos = np.empty(MOST_K, np.int32)
    old_seqs = np.empty(MOST_K, np.int64)
    updates, adds, drops = cursor[1], cursor[2], cursor[3]
    for i in range(cursor[0], rows.size):
        row = rows[i]
        k = np.int64(ks[row])
        first = offsets[row]
        at = candidate_offsets[i]
        end = candidate_offsets[i + 1]
        while at < end and candidate_seq[at] <= begins[i]:
            at += 1
        status[i] = DONE
        while True:
            seq = NEVER
            move = first_reaching(move_horizon, soonest[row])
            if move < move_seq.size and soonest[row] < NEVER:
                seq = move_seq[move]
            arrives = at < end and candidate_seq[at] <= seq
            if arrives:
                seq = candidate_seq[at]
            if seq == NEVER or seq >= stops[i]:
                break
            if (
                updates == update_row.size
                or adds + MOST_K > add_seq.size
                or drops + MOST_K > drop_seq.size
            ):
                begins[i] = seq - 1
                cursor[0], cursor[1], cursor[2], cursor[3] = i, updates, adds, drops
                return
            last = first_reaching(move_seq, seq + 1) - 1
            horizon = move_horizon[last] if last >= 0 else -NEVER
            enters = arrives and candidate_exp[at] > horizon and candidate_nano[at] >= theta[row]
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
                    np.int64(candidate_nano[at]),
                    candidate_seq[at],
                    candidate_exp[at],
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
            after = min(np.int64(counts[row]), k)
            more_adds, more_drops = changed_result(
                before,
                old_nanos,
                old_seqs,
                first,
                after,
                nanos,
                seqs,
                adds,
                add_nano,
                add_seq,
                drops,
                drop_seq,
            )
            if more_adds > adds or more_drops > drops:
                adds, drops = more_adds, more_drops
                update_row[updates], update_seq[updates] = row, seq
                update_adds[updates], update_drops[updates] = adds, drops
                updates += 1
    cursor[0], cursor[1], cursor[2], cursor[3] = rows.size, updates, adds, drops


@kernel
def best_into_buffers(
    rows: np.ndarray,
    ks: np.ndarray,
    at_seq: np.ndarray,
    complete: np.ndarray,
    best_offsets: np.ndarray,
    best_counts: np.ndarray,
    best_nano: np.ndarray,
    best_seq: np.ndarray,
    best_exp: np.ndarray,
    dominance: bool,
    buffers: Buffers,
    soonest: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Fill the buffers of some rows anew with the best of the window, and write the updates.

    Row rows[i] gets the first best_counts[i] of the slots best_offsets[i]:best_offsets[i + 1], by
    rank; if it is `complete` bool, they are all candidates that there are. Gives rows
    i64, seqs i64, ends of adds and drops i64, nanos i32 and seqs i64 of adds, seqs i64 of drops.
    """
    counts, nanos, seqs = buffers.counts, buffers.nano, buffers.seq
    theta, theta_seq = buffers.theta, buffers.theta_seq
    room = rows.size
    add_room = 0
    for i in range(rows.size):
        add_room += min(np.int64(ks[rows[i]]), best_counts[i])
    drop_room = 0
    for i in range(rows.size):
        drop_room += min(np.int64(ks[rows[i]]), np.int64(counts[rows[i]]))
    update_row = np.empty(room, np.int64)
    update_seq = np.empty(room, np.int64)
    update_adds = np.empty(room, np.int64)
    update_drops = np.empty(room, np.int64)
    add_nano = np.empty(add_room, np.int32)
    add_seq = np.empty(add_room, np.int64)
    drop_seq = np.empty(drop_room, np.int64)
    old_nanos = np.empty(MOST_K, np.int32)
    old_seqs = np.empty(MOST_K, np.int64)
    updates = 0
    adds = 0
    drops = 0
    for i in range(rows.size):
        row = rows[i]
        k = np.int64(ks[row])
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
        after = min(np.int64(counts[row]), k)
        more_adds, more_drops = changed_result(
            before,
            old_nanos,
            old_seqs,
            first,
            after,
            nanos,
            seqs,
            adds,
            add_nano,
            add_seq,
            drops,
            drop_seq,
        )
        if more_adds > adds or more_drops > drops:
            adds, drops = more_adds, more_drops
            update_row[updates], update_seq[updates] = row, at_seq[i]
            update_adds[updates], update_drops[updates] = adds, drops
            updates += 1
    return (
        update_row[:updates].copy(),
        update_seq[:updates].copy(),
        update_adds[:updates].copy(),
        update_drops[:updates].copy(),
        add_nano[:adds].copy(),
        add_seq[:adds].copy(),
        drop_seq[:drops].copy(),
    )
