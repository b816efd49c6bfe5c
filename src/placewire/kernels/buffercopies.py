"""Buffers copied and put together again: for files, for what a batch changed, for merges."""

from __future__ import annotations

import numpy as np

from placewire.kernels.buffers import (
    ALL,
    enter_buffer,
    leave_buffer,
    ranks_before,
    soonest_in_buffer,
)
from placewire.kernels.jit import kernel


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
