"""SipHash-1-3: the keyed 64-bit hash that identifies terms and ids.

The key keeps clients from choosing words that collide; texts are untrusted. The variant with one
round per word and three final rounds is the usual one for hash tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.bytes import padded_word_at
from placewire.kernels.jit import kernel, subkernel

# Numba converts int64 with uint64 to float, so every number combined with a word is a uint64.
ZERO, ONE, TWO, THREE, SEVEN, EIGHT = (np.uint64(n) for n in (0, 1, 2, 3, 7, 8))
BITS_13, BITS_16, BITS_17, BITS_21 = (np.uint64(n) for n in (13, 16, 17, 21))
BITS_32, BITS_56, BITS_64 = (np.uint64(n) for n in (32, 56, 64))
INITIAL_0 = np.uint64(0x736F6D6570736575)
INITIAL_1 = np.uint64(0x646F72616E646F6D)
INITIAL_2 = np.uint64(0x6C7967656E657261)
INITIAL_3 = np.uint64(0x7465646279746573)
LAST = np.uint64(0xFF)

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@subkernel
def rotated(word: np.uint64, bits: np.uint64) -> np.uint64:
    """Rotate `word` left by `bits`."""
    return (word << bits) | (word >> (BITS_64 - bits))


@subkernel
def state_mixed(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> State:
    """Apply one SipRound."""
    v0 += v1
    v2 += v3
    v1 = rotated(v1, BITS_13) ^ v0
    v3 = rotated(v3, BITS_16) ^ v2
    v0 = rotated(v0, BITS_32)
    v2 += v1
    v0 += v3
    v1 = rotated(v1, BITS_17) ^ v2
    v3 = rotated(v3, BITS_21) ^ v0
    v2 = rotated(v2, BITS_32)
    return v0, v1, v2, v3


@subkernel
def key_state(k0: np.uint64, k1: np.uint64) -> State:
    """Return the initial state for a key."""
    return k0 ^ INITIAL_0, k1 ^ INITIAL_1, k0 ^ INITIAL_2, k1 ^ INITIAL_3


@subkernel
def state_after_word(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, word: np.uint64
) -> State:
    """Return the state after absorbing a full word."""
    v0, v1, v2, v3 = state_mixed(v0, v1, v2, v3 ^ word)
    return v0 ^ word, v1, v2, v3


@subkernel
def state_hash(
    v0: np.uint64,
    v1: np.uint64,
    v2: np.uint64,
    v3: np.uint64,
    rest: np.uint64,
    length: np.uint64,
) -> np.uint64:
    """Return the hash, given the last (fewer than eight) bytes and the total length."""
    v0, v1, v2, v3 = state_after_word(v0, v1, v2, v3, rest | (length << BITS_56))
    v0, v1, v2, v3 = state_mixed(v0, v1, v2 ^ LAST, v3)
    v0, v1, v2, v3 = state_mixed(v0, v1, v2, v3)
    v0, v1, v2, v3 = state_mixed(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@subkernel
def bytes_hash(
    raw: NDArray[np.uint8], start: int, end: int, k0: np.uint64, k1: np.uint64
) -> np.uint64:
    """Return the hash of `raw[start:end]`."""
    at = np.uint64(start)
    stop = np.uint64(end)
    length = stop - at
    v0, v1, v2, v3 = key_state(k0, k1)
    while stop - at >= EIGHT:
        v0, v1, v2, v3 = state_after_word(v0, v1, v2, v3, padded_word_at(raw, at))
        at += EIGHT
    rest = ZERO
    if at < stop:
        rest = padded_word_at(raw, at) & ((ONE << ((stop - at) << THREE)) - ONE)
    return state_hash(v0, v1, v2, v3, rest, length)


@kernel
def slices_hash(
    raw: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    k0: np.uint64,
    k1: np.uint64,
) -> NDArray[np.uint64]:
    """Return the hash of `raw[starts[i]:ends[i]]` for every i, as a new array."""
    hashes = np.empty(starts.size, np.uint64)
    for row in range(starts.size):
        hashes[row] = bytes_hash(raw, starts[row], ends[row], k0, k1)
    return hashes
