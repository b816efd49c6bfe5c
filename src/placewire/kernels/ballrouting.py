"""Routing for `nearest` rows that are dealt out to workers: who may need to see an object.

A map of hashed (worker, cell, term) keys says where some ball of a worker asks for a term; as in
`routing`, a clear bit proves that none does, and set bits may be there by chance.
"""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import inlined, kernel
from placewire.kernels.routing import bits_of_key, key_is_set, key_of_scope_term, word_of_key

WIDE_CELL = -1  # stands for all cells: the ball touches too many


@inlined
def scope_of_worker_cell(worker: int, cell: int, cells: int) -> int:
    """A number for a worker and one of so many cells, or WIDE_CELL."""
    return worker * (cells + 1) + cell + 1


@kernel
def balls_into_map(
    post_row: np.ndarray,
    post_term: np.ndarray,
    owner: np.ndarray,
    cell_offsets: np.ndarray,
    cells_of_rows: np.ndarray,
    cells: int,
    words: np.ndarray,
) -> None:
    """Set the keys of every post in every cell of its row: cells_of_rows[offsets[r]:...]."""
    for p in range(post_row.size):
        row = post_row[p]
        worker = np.int64(owner[row])
        for at in range(cell_offsets[row], cell_offsets[row + 1]):
            scope = scope_of_worker_cell(worker, np.int64(cells_of_rows[at]), cells)
            key = key_of_scope_term(scope, post_term[p])
            words[word_of_key(key, words.size)] |= bits_of_key(key)


@kernel
def objects_to_ball_workers(
    codes: np.ndarray,
    term_offsets: np.ndarray,
    terms: np.ndarray,
    words: np.ndarray,
    workers: int,
    cells: int,
    cell_shift: int,
) -> tuple:  # type: ignore[type-arg]
    """The shares of all workers, one after another.

    Gives offsets i64[workers + 1] into objects i64. An object that a worker has no live term for
    is not in its share.
    """
    offsets = np.zeros(workers + 1, np.int64)
    objects = np.empty(codes.size * workers, np.int64)
    sent = 0
    for worker in range(workers):
        wide = scope_of_worker_cell(worker, WIDE_CELL, cells)
        for o in range(codes.size):
            cell = np.int64(codes[o] >> np.uint32(cell_shift))
            scope = scope_of_worker_cell(worker, cell, cells)
            for at in range(term_offsets[o], term_offsets[o + 1]):
                if key_is_set(words, key_of_scope_term(scope, terms[at])) or key_is_set(
                    words, key_of_scope_term(wide, terms[at])
                ):
                    objects[sent] = o
                    sent += 1
                    break
        offsets[worker + 1] = sent
    return offsets, objects[:sent]
