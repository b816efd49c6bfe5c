"""Updates as JSON Lines: what entered and left results, with distances or scores."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.resultlines import (
    END,
    SEQ,
    put_bytes,
    put_escaped,
    put_number,
    put_slice,
)

UPDATE = np.frombuffer(b',"type":"update","subscription":"', np.uint8).copy()
ADD = np.frombuffer(b'","add":[', np.uint8).copy()
OBJECT_NAME = np.frombuffer(b'{"object":"', np.uint8).copy()
SCORE = np.frombuffer(b'","score":', np.uint8).copy()
DISTANCE = np.frombuffer(b'","distance_m":', np.uint8).copy()
MORE_DATA = np.frombuffer(b',"data":', np.uint8).copy()
DROP = np.frombuffer(b'],"drop":[', np.uint8).copy()
END_UPDATE = np.frombuffer(b"]}\n", np.uint8).copy()


@inlined
def put_metres(out: np.ndarray, at: int, metres: float) -> int:
    """A distance in whole millimetres, shortest form: 812.4, 3.0, 0.001."""
    millimetres = np.int64(np.rint(metres * 1000.0))
    at = put_number(out, at, millimetres // 1000)
    out[at] = 46
    at += 1
    rest = millimetres % 1000
    out[at] = np.uint8(48 + rest // 100)
    at += 1
    if rest % 100:
        out[at] = np.uint8(48 + rest // 10 % 10)
        at += 1
        if rest % 10:
            out[at] = np.uint8(48 + rest % 10)
            at += 1
    return at


@inlined
def put_score(out: np.ndarray, at: int, score: float) -> int:
    """A score in whole numbers of 1e-9, without zeros at the end: 0.5, 1.0, 0.000000001."""
    nano = np.int64(np.rint(score * 1e9))
    at = put_number(out, at, nano // 1_000_000_000)
    out[at] = 46
    rest = nano % 1_000_000_000
    at += 1
    digit = 100_000_000
    while True:
        out[at] = np.uint8(48 + rest // digit)
        at += 1
        rest %= digit
        if rest == 0:
            return at
        digit //= 10


@inlined
def put_objects(
    out: np.ndarray,
    at: int,
    first: int,
    last: int,
    with_data: bool,
    measures: np.ndarray,
    scored: bool,
    offsets: np.ndarray,
    ids: np.ndarray,
    data_offsets: np.ndarray,
    data: np.ndarray,
) -> int:
    """Objects first:last as JSON, with their measures if there are any."""
    for i in range(first, last):
        if i > first:
            out[at] = 44
            at += 1
        at = put_bytes(out, at, OBJECT_NAME)
        at = put_escaped(out, at, ids, offsets[i], offsets[i + 1])
        if measures.size == 0:
            at = put_bytes(out, at, END[:1])
        elif scored:
            at = put_bytes(out, at, SCORE)
            at = put_score(out, at, measures[i])
        else:
            at = put_bytes(out, at, DISTANCE)
            at = put_metres(out, at, measures[i])
        if with_data and data_offsets[i + 1] > data_offsets[i]:
            at = put_bytes(out, at, MORE_DATA)
            at = put_slice(out, at, data, data_offsets[i], data_offsets[i + 1])
        at = put_bytes(out, at, END[1:2])
    return at


@kernel
def updates_to_lines(
    first: int,
    last: int,
    with_data: bool,
    seqs: np.ndarray,
    scored: np.ndarray,
    subscription_offsets: np.ndarray,
    subscription_bytes: np.ndarray,
    measures: np.ndarray,
    adds: np.ndarray,
    add_offsets: np.ndarray,
    add_bytes: np.ndarray,
    add_data_offsets: np.ndarray,
    add_data_bytes: np.ndarray,
    drops: np.ndarray,
    drop_offsets: np.ndarray,
    drop_bytes: np.ndarray,
    drop_data_offsets: np.ndarray,
    drop_data_bytes: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """JSON Lines of the updates first:last: where each begins i64[n + 1], and the bytes u8[..].

    Update u adds the objects adds[u]:adds[u + 1] and drops drops[u]:drops[u + 1]; `measures` are of
    those added, scores if it is `scored` and distances if not.
    """
    room = 80 * (last - first)
    room += 6 * (subscription_offsets[last] - subscription_offsets[first])
    a, b = adds[first], adds[last]
    room += 64 * (b - a) + 6 * (add_offsets[b] - add_offsets[a])
    room += add_data_offsets[b] - add_data_offsets[a]
    a, b = drops[first], drops[last]
    room += 32 * (b - a) + 6 * (drop_offsets[b] - drop_offsets[a])
    room += drop_data_offsets[b] - drop_data_offsets[a]
    out = np.empty(room, np.uint8)
    starts = np.empty(last - first + 1, np.int64)
    at = 0
    for u in range(first, last):
        starts[u - first] = at
        at = put_bytes(out, at, SEQ)
        at = put_number(out, at, seqs[u])
        at = put_bytes(out, at, UPDATE)
        at = put_escaped(
            out, at, subscription_bytes, subscription_offsets[u], subscription_offsets[u + 1]
        )
        at = put_bytes(out, at, ADD)
        at = put_objects(
            out,
            at,
            adds[u],
            adds[u + 1],
            with_data,
            measures,
            scored[u],
            add_offsets,
            add_bytes,
            add_data_offsets,
            add_data_bytes,
        )
        at = put_bytes(out, at, DROP)
        at = put_objects(
            out,
            at,
            drops[u],
            drops[u + 1],
            with_data,
            measures[:0],
            False,
            drop_offsets,
            drop_bytes,
            drop_data_offsets,
            drop_data_bytes,
        )
        at = put_bytes(out, at, END_UPDATE)
    starts[last - first] = at
    return starts, out[:at]
