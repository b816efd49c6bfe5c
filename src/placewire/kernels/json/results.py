"""Order results by (seq, type, subscription id) and print them as JSON Lines, in compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, subkernel

SEQ = np.frombuffer(b'{"seq":', np.uint8).copy()
MATCH = np.frombuffer(b',"type":"match","subscription":"', np.uint8).copy()
OBJECT = np.frombuffer(b'","object":"', np.uint8).copy()
DATA = np.frombuffer(b'","data":', np.uint8).copy()
END = np.frombuffer(b'"}\n', np.uint8).copy()
HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()


@subkernel
def slice_precedes_slice(
    raw: np.ndarray, a_start: int, a_end: int, b_start: int, b_end: int
) -> bool:
    """Return true if slice `a` is before slice `b` in byte order, UTF-8's code-point order."""
    length = min(a_end - a_start, b_end - b_start)
    for k in range(length):
        if raw[a_start + k] != raw[b_start + k]:
            return bool(raw[a_start + k] < raw[b_start + k])
    return a_end - a_start < b_end - b_start


@kernel
def matches_to_order(seqs: np.ndarray, id_offsets: np.ndarray, id_bytes: np.ndarray) -> np.ndarray:
    """Return the positions i64[n] by (seq, id). Sorts the seqs first, then the ids of each seq."""
    order = np.argsort(seqs, kind="mergesort")
    spare = np.empty(order.size, np.int64)
    i = 0
    while i < order.size:
        j = i + 1
        while j < order.size and seqs[order[j]] == seqs[order[i]]:
            j += 1
        # Bottom-up merge sort of order[i:j] by id.
        width = 1
        while width < j - i:
            low = i
            while low < j:
                middle = min(low + width, j)
                high = min(low + 2 * width, j)
                a = low
                b = middle
                for to in range(low, high):
                    if a < middle and (
                        b >= high
                        or not slice_precedes_slice(
                            id_bytes,
                            id_offsets[order[b]],
                            id_offsets[order[b] + 1],
                            id_offsets[order[a]],
                            id_offsets[order[a] + 1],
                        )
                    ):
                        spare[to] = order[a]
                        a += 1
                    else:
                        spare[to] = order[b]
                        b += 1
                low = high
            order[i:j] = spare[i:j]
            width *= 2
        i = j
    return order


@subkernel
def put_bytes(out: np.ndarray, at: int, piece: np.ndarray) -> int:
    for k in range(piece.size):
        out[at + k] = piece[k]
    return at + piece.size


@subkernel
def put_number(out: np.ndarray, at: int, number: int) -> int:
    digits = 1
    rest = number // 10
    while rest:
        digits += 1
        rest //= 10
    for k in range(digits - 1, -1, -1):
        out[at + k] = np.uint8(48 + number % 10)
        number //= 10
    return at + digits


@subkernel
def put_escaped(out: np.ndarray, at: int, raw: np.ndarray, start: int, end: int) -> int:
    """Write the inside of a JSON string: UTF-8 unchanged; quotes, backslashes, controls escaped."""
    for k in range(start, end):
        byte = raw[k]
        if byte == 34 or byte == 92:
            out[at] = 92
            out[at + 1] = byte
            at += 2
        elif byte < 32:
            out[at] = 92
            out[at + 1] = 117
            out[at + 2] = 48
            out[at + 3] = 48
            out[at + 4] = HEX[byte >> 4]
            out[at + 5] = HEX[byte & 15]
            at += 6
        else:
            out[at] = byte
            at += 1
    return at


@subkernel
def put_slice(out: np.ndarray, at: int, raw: np.ndarray, start: int, end: int) -> int:
    for k in range(start, end):
        out[at + k - start] = raw[k]
    return at + end - start


@kernel
def matches_to_lines(
    order: np.ndarray,
    seqs: np.ndarray,
    subscription_offsets: np.ndarray,
    subscription_bytes: np.ndarray,
    objects: np.ndarray,
    object_offsets: np.ndarray,
    object_bytes: np.ndarray,
    data_offsets: np.ndarray,
    data_bytes: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Print the matches in `order` as JSON Lines: return line starts i64[n + 1], bytes u8[..].

    If `data_offsets` is empty, lines have no data.
    """
    starts = np.empty(order.size + 1, np.int64)
    room = 0
    for k in range(order.size):
        m = order[k]
        o = objects[m]
        room += 80 + 6 * (subscription_offsets[m + 1] - subscription_offsets[m])
        room += 6 * (object_offsets[o + 1] - object_offsets[o])
        if data_offsets.size:
            room += data_offsets[o + 1] - data_offsets[o]
    out = np.empty(room, np.uint8)
    at = 0
    for k in range(order.size):
        m = order[k]
        o = objects[m]
        starts[k] = at
        at = put_bytes(out, at, SEQ)
        at = put_number(out, at, seqs[m])
        at = put_bytes(out, at, MATCH)
        at = put_escaped(
            out, at, subscription_bytes, subscription_offsets[m], subscription_offsets[m + 1]
        )
        at = put_bytes(out, at, OBJECT)
        at = put_escaped(out, at, object_bytes, object_offsets[o], object_offsets[o + 1])
        if data_offsets.size and data_offsets[o + 1] > data_offsets[o]:
            at = put_bytes(out, at, DATA)
            at = put_slice(out, at, data_bytes, data_offsets[o], data_offsets[o + 1])
            at = put_bytes(out, at, END[1:])
        else:
            at = put_bytes(out, at, END)
    starts[order.size] = at
    return starts, out[:at]


@kernel
def lines_by_seq(
    a_seqs: np.ndarray,
    a_starts: np.ndarray,
    a_bytes: np.ndarray,
    b_seqs: np.ndarray,
    b_starts: np.ndarray,
    b_bytes: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """Merge two runs of lines sorted by seq; on equal seqs the lines of `a` come first.

    Returns seqs i64[n], starts i64[n + 1] and the bytes u8.
    """
    out = np.empty(a_bytes.size + b_bytes.size, np.uint8)
    seqs = np.empty(a_seqs.size + b_seqs.size, np.int64)
    starts = np.empty(seqs.size + 1, np.int64)
    starts[0] = 0
    at = 0
    a = 0
    b = 0
    while a < a_seqs.size or b < b_seqs.size:
        seqs[a + b] = b_seqs[b] if a == a_seqs.size else a_seqs[a]
        if b < b_seqs.size:
            seqs[a + b] = min(seqs[a + b], b_seqs[b])
        if b == b_seqs.size or (a < a_seqs.size and a_seqs[a] <= b_seqs[b]):
            at = put_slice(out, at, a_bytes, a_starts[a], a_starts[a + 1])
            a += 1
        else:
            at = put_slice(out, at, b_bytes, b_starts[b], b_starts[b + 1])
            b += 1
        starts[a + b] = at
    return seqs, starts, out


UPDATE = np.frombuffer(b',"type":"update","subscription":"', np.uint8).copy()
ADD = np.frombuffer(b'","add":[', np.uint8).copy()
OBJECT_NAME = np.frombuffer(b'{"object":"', np.uint8).copy()
SCORE = np.frombuffer(b'","score":', np.uint8).copy()
DISTANCE = np.frombuffer(b'","distance_m":', np.uint8).copy()
MORE_DATA = np.frombuffer(b',"data":', np.uint8).copy()
DROP = np.frombuffer(b'],"drop":[', np.uint8).copy()
END_UPDATE = np.frombuffer(b"]}\n", np.uint8).copy()


@subkernel
def put_metres(out: np.ndarray, at: int, metres: float) -> int:
    """Write a distance, rounded to millimetres, in its shortest form: 812.4, 3.0, 0.001."""
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


@subkernel
def put_score(out: np.ndarray, at: int, score: float) -> int:
    """Write a score, a whole number of 1e-9, without trailing zeros: 0.5, 1.0, 0.000000001."""
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


@subkernel
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
    """Write the objects first:last as JSON, with their measures if there are any."""
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


class UpdateColumns(NamedTuple):
    """The columns of n updates: update u adds objects adds[u]:adds[u + 1], and so for drops.

    `measure` has one entry per added object: a score if the update is `scored`, else a distance.
    """

    seq: NDArray[np.int64]
    scored: NDArray[np.bool_]
    subscription_offsets: NDArray[np.int64]
    subscription_bytes: NDArray[np.uint8]
    measure: NDArray[np.float64]
    adds: NDArray[np.int64]
    add_offsets: NDArray[np.int64]
    add_bytes: NDArray[np.uint8]
    add_data_offsets: NDArray[np.int64]
    add_data_bytes: NDArray[np.uint8]
    drops: NDArray[np.int64]
    drop_offsets: NDArray[np.int64]
    drop_bytes: NDArray[np.uint8]
    drop_data_offsets: NDArray[np.int64]
    drop_data_bytes: NDArray[np.uint8]


@kernel
def updates_to_lines(first: int, last: int, with_data: bool, updates: UpdateColumns) -> tuple:  # type: ignore[type-arg]
    """Print updates first:last as JSON Lines: return line starts i64[n + 1] and bytes u8[..]."""
    seqs, scored, measures = updates.seq, updates.scored, updates.measure
    subscription_offsets = updates.subscription_offsets
    subscription_bytes = updates.subscription_bytes
    adds, add_offsets, add_bytes = updates.adds, updates.add_offsets, updates.add_bytes
    add_data_offsets, add_data_bytes = updates.add_data_offsets, updates.add_data_bytes
    drops, drop_offsets, drop_bytes = updates.drops, updates.drop_offsets, updates.drop_bytes
    drop_data_offsets, drop_data_bytes = updates.drop_data_offsets, updates.drop_data_bytes
    no_measures = measures[:0]
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
            no_measures,
            False,
            drop_offsets,
            drop_bytes,
            drop_data_offsets,
            drop_data_bytes,
        )
        at = put_bytes(out, at, END_UPDATE)
    starts[last - first] = at
    return starts, out[:at]
