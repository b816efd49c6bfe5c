"""Pairing: the objects of a block and the terms by which an index of `relevant` rows knows them."""

from __future__ import annotations

import numpy as np

from placewire.kernels.grouping import WEIGHT_PADDING
from placewire.kernels.interning import EMPTY, entry_of_hash
from placewire.kernels.jit import inlined, kernel
from placewire.kernels.postings import signature_of_term
from placewire.kernels.prunings import MAX_WEIGHT, PREFIX, UNSEEN_BOUND

NO_BOUND = 1e6  # a weight that no text has


@inlined
def weights_of(weight: float, most: float, prunings: int) -> tuple[float, float]:
    """The weights x and y of a pair, by its term's and the largest of the others', padded."""
    x, y = NO_BOUND, NO_BOUND
    if prunings & UNSEEN_BOUND:
        x, y = weight, most
        if not prunings & MAX_WEIGHT:
            y = 1.0
    elif prunings & PREFIX:
        x = max(weight, most) if prunings & MAX_WEIGHT else 1.0
        y = x
    return x * (1.0 + WEIGHT_PADDING), y * (1.0 + WEIGHT_PADDING)


@kernel
def objects_to_pairs(
    term_offsets: np.ndarray,
    terms: np.ndarray,
    norms: np.ndarray,
    term_table: np.ndarray,
    term_idf: np.ndarray,
    in_order: bool,
    prunings: int,
) -> tuple:  # type: ignore[type-arg]
    """Pairs of objects and terms that the index knows, in lists by term, objects ascending.

    Returns the number i32 of each term or -1; the numbers i32[l] and offsets i64[l + 1] of lists;
    and for each pair its object u32[p], weights x and y f32[p] and hints u64[p] of the terms after
    it. Unless `in_order`, a row may have any of the other terms after it.
    """
    term_number = np.full(terms.size, -1, np.int32)
    owner = np.empty(terms.size, np.uint32)
    places = np.empty(terms.size, np.int64)
    pairs = 0
    for o in range(norms.size):
        for at in range(term_offsets[o], term_offsets[o + 1]):
            owner[at] = o
            entry = entry_of_hash(term_table, terms[at])
            if term_table[entry + np.uint64(1)] != EMPTY:
                term_number[at] = np.int32(term_table[entry + np.uint64(1)])
                places[pairs] = at
                pairs += 1
    places = places[:pairs]
    places = places[np.argsort(term_number[places], kind="mergesort")]
    list_number = np.empty(pairs, np.int32)
    list_offsets = np.zeros(pairs + 1, np.int64)
    lists = 0
    pair_object = np.empty(pairs, np.uint32)
    pair_x = np.empty(pairs, np.float32)
    pair_y = np.empty(pairs, np.float32)
    pair_hints = np.zeros(pairs, np.uint64)
    weights = np.zeros(pairs, np.float64)
    others = np.zeros(pairs, np.float64)
    # Of each object, the largest weight and the signatures of the terms met: from the last term to
    # the first and, if the terms before count as well, back again.
    for backwards in (True, False):
        most = np.zeros(norms.size, np.float64)
        hints = np.zeros(norms.size, np.uint64)
        for step in range(pairs if backwards or not in_order else 0):
            k = pairs - 1 - step if backwards else step
            o = owner[places[k]]
            weight = 0.0
            if norms[o] != 0.0:
                weight = term_idf[term_number[places[k]]] / norms[o]
            weights[k] = weight
            others[k] = max(others[k], most[o])
            pair_hints[k] |= hints[o]
            most[o] = max(most[o], weight)
            hints[o] |= signature_of_term(terms[places[k]])
    for k in range(pairs):
        pair_object[k] = owner[places[k]]
        pair_x[k], pair_y[k] = weights_of(weights[k], others[k], prunings)
        number = term_number[places[k]]
        if k == 0 or number != list_number[lists - 1]:
            list_number[lists] = number
            lists += 1
        list_offsets[lists] = k + 1
    return (
        term_number,
        list_number[:lists],
        list_offsets[: lists + 1],
        pair_object,
        pair_x,
        pair_y,
        pair_hints,
    )
