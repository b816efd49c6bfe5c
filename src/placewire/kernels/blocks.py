"""Operations on columns of a block: sort by cell, gather slices, run the clock."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel

NEVER = np.int64((1 << 63) - 1)


@kernel
def codes_to_order(codes: np.ndarray) -> np.ndarray:
    """Return positions i64[n] that sort codes u32[n] stably: three radix passes of 11 bits."""
    n = codes.size
    order = np.empty(n, np.int64)
    other = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    for shift in (0, 11, 22):
        counts = np.zeros(2049, np.int64)
        for i in range(n):
            counts[((codes[i] >> shift) & 2047) + 1] += 1
        for d in range(2048):
            counts[d + 1] += counts[d]
        for i in range(n):
            at = order[i]
            d = (codes[at] >> shift) & 2047
            other[counts[d]] = at
            counts[d] += 1
        order, other = other, order
    return order


@kernel
def slices_to_buffer(raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple:  # type: ignore[type-arg]
    """Copy the slices of `raw` into one buffer: offsets i64[n + 1], bytes u8[total]."""
    offsets = np.empty(starts.size + 1, np.int64)
    offsets[0] = 0
    for i in range(starts.size):
        offsets[i + 1] = offsets[i] + (np.int64(ends[i]) - np.int64(starts[i]))
    gathered = np.empty(offsets[-1], np.uint8)
    for i in range(starts.size):
        start = np.int64(starts[i])
        to = offsets[i]
        for k in range(offsets[i + 1] - to):
            gathered[to + k] = raw[start + k]
    return offsets, gathered


@kernel
def times_to_clock(ts_us: np.ndarray, now_us: int, ahead_us: int) -> tuple:  # type: ignore[type-arg]
    """Return `now` after each event, from `now_us` before them, and which events are too far ahead.

    An event more than `ahead_us` past `now` does not move it.
    """
    nows = np.empty(ts_us.size, np.int64)
    leaps = np.zeros(ts_us.size, np.bool_)
    for i in range(ts_us.size):
        if ts_us[i] - now_us > ahead_us:
            leaps[i] = True
        else:
            now_us = max(now_us, ts_us[i])
        nows[i] = now_us
    return nows, leaps


@subkernel
def ranks_before(nano_a: int, seq_a: int, nano_b: int, seq_b: int) -> bool:
    """Return true if `a` ranks before `b`: by score, then by seq, both descending."""
    return nano_a > nano_b or (nano_a == nano_b and seq_a > seq_b)
