"""Tokens cut into pieces: runs of characters of some scripts become overlapping pairs of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.hashing import ONE, bytes_hash
from placewire.kernels.jit import inlined

# First and last code points of scripts i32[n, 2], ascending; None cuts nothing. The compiler makes
# a kernel of its own for None, which is as fast as if there were no scripts.
Scripts = NDArray[np.int32] | None


@inlined
def code_at(raw: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The code point whose UTF-8 begins at `at`, and its width."""
    byte = raw[at]
    if byte < 0x80:
        return int(byte), 1
    if byte < 0xE0:
        width = 2
        code = int(byte & 0x1F)
    elif byte < 0xF0:
        width = 3
        code = int(byte & 0x0F)
    else:
        width = 4
        code = int(byte & 0x07)
    for step in range(1, width):
        code = (code << 6) | int(raw[at + step] & 0x3F)
    return code, width


@inlined
def is_of_scripts(code: int, scripts: NDArray[np.int32]) -> bool:
    """Whether a code point is of the scripts."""
    for k in range(scripts.shape[0]):
        if code <= scripts[k, 1]:
            return bool(code >= scripts[k, 0])
    return False


@inlined
def piece_at(
    raw: NDArray[np.uint8], at: int, end: int, paired: bool, scripts: NDArray[np.int32]
) -> tuple[int, int, bool]:
    """The piece of the token raw[..:end] that begins at `at`: its end, and where to go on.

    A run of the scripts is cut into pairs, one character alone is a piece, and so is all between
    two runs. `paired` tells, and is told, that the character at `at` is the second of a pair; as
    the last of a run it begins no piece, and the end is `at`.
    """
    code, width = code_at(raw, at)
    if not is_of_scripts(code, scripts):
        stop = at + width
        while stop < end:
            code, width = code_at(raw, stop)
            if is_of_scripts(code, scripts):
                break
            stop += width
        return stop, stop, False
    after = at + width
    if after < end:
        code, width = code_at(raw, after)
        if is_of_scripts(code, scripts):
            return after + width, after, True
    return at if paired else after, after, False


@inlined
def token_hashed(
    token: NDArray[np.uint8],
    size: int,
    k0: np.uint64,
    k1: np.uint64,
    scripts: Scripts,
    hashes: NDArray[np.uint64],
    count: np.uint64,
) -> np.uint64:
    """Put the hashes of the terms of token[:size] after the first `count`; gives their number."""
    if scripts is None:
        hashes[count] = bytes_hash(token, 0, size, k0, k1)
        return count + ONE
    at = 0
    paired = False
    while at < size:
        stop, onward, paired = piece_at(token, at, size, paired, scripts)
        if stop > at:
            hashes[count] = bytes_hash(token, at, stop, k0, k1)
            count += ONE
        at = onward
    return count
