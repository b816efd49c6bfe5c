"""The statistics of a quadtree's cells, and terms shared out among the parts of one of them."""

from __future__ import annotations

import math

import numpy as np

from placewire.kernels.jit import kernel, subkernel


@kernel
def rows_to_histograms(
    picked: np.ndarray,
    kind: np.ndarray,
    length: np.ndarray,
    duration: np.ndarray,
    shape: tuple,  # type: ignore[type-arg]
) -> tuple:  # type: ignore[type-arg]
    """Of the `picked` rows, by kind: the lengths, the classes of duration, the durations' sums.

    `shape` is how many kinds, lengths and classes there are; class i ends at 2^i.
    Returns i64[kinds, lengths], i64[kinds, classes] and f64[kinds, classes].
    """
    lengths = np.zeros((shape[0], shape[1]), np.int64)
    lives = np.zeros((shape[0], shape[2]), np.int64)
    lived = np.zeros((shape[0], shape[2]), np.float64)
    for row in picked:
        _, exponent = math.frexp(duration[row])
        life = min(max(exponent, 0), shape[2] - 1)
        lengths[kind[row], length[row]] += 1
        lives[kind[row], life] += 1
        lived[kind[row], life] += duration[row]
    return lengths, lives, lived


@kernel
def terms_to_objects(
    offsets: np.ndarray, terms: np.ndarray, picked: np.ndarray, number: np.ndarray, count: int
) -> tuple:  # type: ignore[type-arg]
    """Inverted lists: for each numbered term the picked objects that have it, by their position.

    `number` i32[lexicon] is 0..count - 1, or -1 for a term that has no list. Returns
    offsets i64[count + 1] and positions i32.
    """
    list_offsets = np.zeros(count + 1, np.int64)
    for o in picked:
        for at in range(offsets[o], offsets[o + 1]):
            if number[terms[at]] >= 0:
                list_offsets[number[terms[at]] + 1] += 1
    for t in range(count):
        list_offsets[t + 1] += list_offsets[t]
    positions = np.empty(list_offsets[count], np.int32)
    cursor = list_offsets.copy()
    for i in range(picked.size):
        for at in range(offsets[picked[i]], offsets[picked[i] + 1]):
            t = number[terms[at]]
            if t >= 0:
                positions[cursor[t]] = i
                cursor[t] += 1
    return list_offsets, positions


@subkernel
def weight_of_asked(asked: np.ndarray, chance: np.ndarray, share: np.ndarray) -> float:
    """What looks at each object of a part that has a `share` f64[2] of two kinds' keywords.

    `asked` f64[2] is the weight of all queries of a kind; chance f64[2, lengths] how probable each
    number of keywords is, all of which must be there (equation 1 of SSTD).
    """
    weight = 0.0
    for s in range(asked.size):
        covered = 0.0
        for length in range(chance.shape[1] - 1, -1, -1):
            covered = covered * share[s] + chance[s, length]
        weight += asked[s] * covered
    return weight


@kernel
def terms_to_parts(
    order: np.ndarray,
    list_offsets: np.ndarray,
    positions: np.ndarray,
    objects: int,
    steady: float,
    asked: np.ndarray,
    chance: np.ndarray,
    shares: np.ndarray,
    everything: bool,
    parts: int,
) -> np.ndarray:
    """The part i32[terms] of each term: in `order`, the one whose workload it increases least.

    A term brings its share f64[terms, 2] of the keywords of the `asked` kinds, and those of its
    objects that the part has not yet. The weight `steady` looks at every object of every part.
    Part 0 has all objects if `everything`. Of equal parts one that has the objects is taken, then
    the lightest. At most 8 parts.
    """
    part_of = np.zeros(order.size, np.int32)
    seen = np.zeros(objects, np.uint8)
    held = np.zeros(parts, np.int64)
    has = np.zeros((parts, asked.size), np.float64)
    weight = np.full(parts, steady + weight_of_asked(asked, chance, has[0]))
    if everything:
        seen[:] = 1
        held[0] = objects
    new = np.empty(parts, np.int64)
    for t in order:
        new[:] = 0
        for at in range(list_offsets[t], list_offsets[t + 1]):
            for part in range(parts):
                if not (seen[positions[at]] >> part) & 1:
                    new[part] += 1
        # Keywords that no object has bring no query to a part.
        share = shares[t] if list_offsets[t + 1] > list_offsets[t] else 0.0 * shares[t]
        best = 0
        least = np.inf
        for part in range(parts):
            grown = steady + weight_of_asked(asked, chance, has[part] + share)
            increment = held[part] * (grown - weight[part]) + new[part] * grown
            if part > 0 and abs(increment - least) <= 1e-9 * least:
                better = new[part] < new[best] or (
                    new[part] == new[best] and held[part] * weight[part] < held[best] * weight[best]
                )
            else:
                better = increment < least
            if better:
                least = increment
                best = part
        part_of[t] = best
        held[best] += new[best]
        has[best] += share
        weight[best] = steady + weight_of_asked(asked, chance, has[best])
        for at in range(list_offsets[t], list_offsets[t + 1]):
            seen[positions[at]] |= np.uint8(1 << best)
    return part_of
