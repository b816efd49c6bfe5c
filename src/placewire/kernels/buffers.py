"""Buffers of `relevant` rows: the objects that a result may need, by rank, as the window slides.

Row r's buffer is in slots offsets[r]:offsets[r + 1], the first counts[r] of them by rank: score
descending, then seq descending. Scores are whole numbers of 1e-9 (`nano`). `exp` says when an
object leaves the window: as soon as the horizon reaches it. An object dominates another of lower
rank if it stays at least as long; `dom` counts those that dominate an object. With k of them it can
never be in the result again, and is left out.

A buffer has every object of the window that ranks at or above (theta, theta_seq) and is not left
out; if theta is ALL, simply every candidate.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel

ALL = -1
DONE = -1  # the status of a row that needs no refill
NEVER = np.int64((1 << 63) - 1)
MOST_K = 1_000


@inlined
def ranks_before(nano_a: int, seq_a: int, nano_b: int, seq_b: int) -> bool:
    return nano_a > nano_b or (nano_a == nano_b and seq_a > seq_b)


@inlined
def first_reaching(values: np.ndarray, value: int) -> int:
    """The first of ascending values that is at least `value`."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def enter_buffer(
    row: int,
    nano: int,
    seq: int,
    exp: int,
    k: int,
    dominance: bool,
    trim: bool,
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
    theta: np.ndarray,
    theta_seq: np.ndarray,
) -> int:
    """Put an object into a buffer; gives its place there, or -1 if k others keep it out.

    A full buffer lets the lowest go and remembers that it did: theta rises. With `trim` it then
    makes room for a while, so that what comes next need not rank so high.
    """
    first = offsets[row]
    room = offsets[row + 1] - first
    held = np.int64(counts[row])
    place = held
    while place > 0 and ranks_before(
        nano, seq, np.int64(nanos[first + place - 1]), seqs[first + place - 1]
    ):
        place -= 1
    own = 0
    if dominance:
        for at in range(first, first + place):
            if exps[at] >= exp:
                own += 1
        if own >= k:
            return -1
        kept = first + place
        for at in range(first + place, first + held):
            dom = np.int64(doms[at])
            if exps[at] <= exp:
                dom += 1
                if dom >= k:
                    continue
            nanos[kept], seqs[kept], exps[kept] = nanos[at], seqs[at], exps[at]
            doms[kept] = dom
            kept += 1
        held = kept - first
    full = held == room
    if full:
        held = min(room - 1, k + (room - k) // 2) if trim else room - 1
        if place > held or (trim and place == held):
            counts[row] = held if trim else room
            lowest = first + counts[row] - 1
            theta[row], theta_seq[row] = nanos[lowest], seqs[lowest]
            return -1
    for at in range(first + held, first + place, -1):
        nanos[at], seqs[at], exps[at] = nanos[at - 1], seqs[at - 1], exps[at - 1]
        doms[at] = doms[at - 1]
    at = first + place
    nanos[at], seqs[at], exps[at], doms[at] = nano, seq, exp, own
    counts[row] = held + 1
    if full:
        theta[row], theta_seq[row] = nanos[first + held], seqs[first + held]
    return place


@inlined
def leave_buffer(
    row: int,
    horizon: int,
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
) -> None:
    """Let the objects go that the horizon has reached."""
    first = offsets[row]
    kept = first
    for at in range(first, first + counts[row]):
        if exps[at] > horizon:
            nanos[kept], seqs[kept], exps[kept] = nanos[at], seqs[at], exps[at]
            doms[kept] = doms[at]
            kept += 1
    counts[row] = kept - first


@inlined
def soonest_in_buffer(
    row: int, offsets: np.ndarray, counts: np.ndarray, exps: np.ndarray
) -> np.int64:
    """When the first object of a buffer leaves."""
    soonest = NEVER
    for at in range(offsets[row], offsets[row] + counts[row]):
        soonest = min(soonest, exps[at])
    return soonest


@inlined
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
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
    theta: np.ndarray,
    theta_seq: np.ndarray,
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
                leave_buffer(row, horizon, offsets, counts, nanos, seqs, exps, doms)
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
                    offsets,
                    counts,
                    nanos,
                    seqs,
                    exps,
                    doms,
                    theta,
                    theta_seq,
                )
            if arrives:
                at += 1
            soonest[row] = soonest_in_buffer(row, offsets, counts, exps)
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
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
    theta: np.ndarray,
    theta_seq: np.ndarray,
    soonest: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Fill the buffers of some rows anew with the best of the window, and write the updates.

    Row rows[i] gets the first best_counts[i] of the slots best_offsets[i]:best_offsets[i + 1], by
    rank; if it is `complete` bool, they are all candidates that there are. Gives rows
    i64, seqs i64, ends of adds and drops i64, nanos i32 and seqs i64 of adds, seqs i64 of drops.
    """
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
        first = offsets[row]
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
                offsets,
                counts,
                nanos,
                seqs,
                exps,
                doms,
                theta,
                theta_seq,
            )
        soonest[row] = soonest_in_buffer(row, offsets, counts, exps)
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


@kernel
def entrants_into_buffers(
    rows: np.ndarray,
    entrant_nano: np.ndarray,
    entrant_seq: np.ndarray,
    entrant_exp: np.ndarray,
    horizon: int,
    ks: np.ndarray,
    dominance: bool,
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
    theta: np.ndarray,
    theta_seq: np.ndarray,
) -> None:
    """Put objects that entered the buffers of rows[i] there again, in place."""
    for i in range(rows.size):
        if entrant_exp[i] > horizon:
            enter_buffer(
                np.int64(rows[i]),
                np.int64(entrant_nano[i]),
                entrant_seq[i],
                entrant_exp[i],
                np.int64(ks[rows[i]]),
                dominance,
                False,
                offsets,
                counts,
                nanos,
                seqs,
                exps,
                doms,
                theta,
                theta_seq,
            )


@kernel
def buffers_above_theta(
    rows: np.ndarray,
    theta: np.ndarray,
    theta_seq: np.ndarray,
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
) -> None:
    """Leave out what ranks below (theta, theta_seq) in the buffers of some rows, in place."""
    for i in range(rows.size):
        row = np.int64(rows[i])
        if theta[row] == ALL:
            continue
        first = offsets[row]
        while counts[row] and ranks_before(
            np.int64(theta[row]),
            theta_seq[row],
            np.int64(nanos[first + counts[row] - 1]),
            seqs[first + counts[row] - 1],
        ):
            counts[row] -= 1


@kernel
def buffers_past_horizon(
    horizon: int,
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
) -> np.ndarray:
    """Leave out what has left the window, in place; gives when the next object of each row does."""
    soonest = np.empty(counts.size, np.int64)
    for row in range(counts.size):
        leave_buffer(row, horizon, offsets, counts, nanos, seqs, exps, doms)
        soonest[row] = soonest_in_buffer(row, offsets, counts, exps)
    return soonest


@kernel
def buffers_taken(
    picked: np.ndarray,
    new_offsets: np.ndarray,
    since_seq: int,
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
    new_nanos: np.ndarray,
    new_seqs: np.ndarray,
    new_exps: np.ndarray,
    new_doms: np.ndarray,
) -> np.ndarray:
    """Copy what came at `since_seq` or later in the buffers of the picked rows to other slots.

    Gives how many there are of each, i32[n].
    """
    taken = np.zeros(picked.size, np.int32)
    for i in range(picked.size):
        row = np.int64(picked[i])
        to = new_offsets[i]
        for at in range(offsets[row], offsets[row] + counts[row]):
            if seqs[at] >= since_seq:
                new_nanos[to], new_seqs[to], new_exps[to] = nanos[at], seqs[at], exps[at]
                new_doms[to] = doms[at]
                to += 1
        taken[i] = to - new_offsets[i]
    return taken


@kernel
def newcomers_counted(
    picked: np.ndarray,
    since_seq: int,
    offsets: np.ndarray,
    counts: np.ndarray,
    seqs: np.ndarray,
) -> np.ndarray:
    """How many objects in the buffers of the picked rows came at `since_seq` or later: i64[n]."""
    newcomers = np.zeros(picked.size, np.int64)
    for i in range(picked.size):
        row = np.int64(picked[i])
        for at in range(offsets[row], offsets[row] + counts[row]):
            if seqs[at] >= since_seq:
                newcomers[i] += 1
    return newcomers


@kernel
def buffers_put(
    rows: np.ndarray,
    from_offsets: np.ndarray,
    from_counts: np.ndarray,
    from_nanos: np.ndarray,
    from_seqs: np.ndarray,
    from_exps: np.ndarray,
    from_doms: np.ndarray,
    from_theta: np.ndarray,
    from_theta_seq: np.ndarray,
    offsets: np.ndarray,
    counts: np.ndarray,
    nanos: np.ndarray,
    seqs: np.ndarray,
    exps: np.ndarray,
    doms: np.ndarray,
    theta: np.ndarray,
    theta_seq: np.ndarray,
) -> None:
    """Copy buffers to those of some rows; what finds no room there is below theta."""
    for i in range(rows.size):
        row = rows[i]
        first = offsets[row]
        room = offsets[row + 1] - first
        held = min(np.int64(from_counts[i]), room)
        for slot in range(held):
            at = from_offsets[i] + slot
            to = first + slot
            nanos[to], seqs[to], exps[to] = from_nanos[at], from_seqs[at], from_exps[at]
            doms[to] = from_doms[at]
        counts[row] = held
        theta[row], theta_seq[row] = from_theta[i], from_theta_seq[i]
        if held < from_counts[i]:
            theta[row], theta_seq[row] = nanos[first + held - 1], seqs[first + held - 1]
