"""Term maps: tables that replace terms by stems or drop stop words.

A table holds (key, value) pairs of hashes as in `kernels/text/hash_table.py`, at most half full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewire.kernels.jit import kernel, subkernel
from placewire.kernels.text.hash_table import EMPTY, entry_of_hash
from placewire.kernels.text.siphash import ONE
from placewire.kernels.text.tokens import sort_distinct

NOTHING = EMPTY - ONE  # the value of a stop word

Hashes = NDArray[np.uint64]


class TermMap(NamedTuple):
    """A table, and whether terms that it lacks map to themselves or are unknown."""

    table: Hashes
    others_stay: bool


@subkernel
def map_term(term: np.uint64, mapping: TermMap) -> np.uint64:
    """Return the term that a term maps to, NOTHING for a stop word or EMPTY if unknown."""
    found = mapping.table[entry_of_hash(mapping.table, term) + ONE]
    if found == EMPTY and mapping.others_stay:
        return term
    return found


@kernel
def put_pairs(table: Hashes, keys: Hashes, values: Hashes) -> None:
    """Insert pairs into a table that has room for them, replacing values of existing keys."""
    for k in range(keys.size):
        at = entry_of_hash(table, keys[k])
        table[at] = keys[k]
        table[at + ONE] = values[k]


@kernel
def put_table(table: Hashes, old: Hashes) -> None:
    """Insert all pairs of a smaller table into an empty one."""
    for at in range(0, old.size, 2):
        if old[at + 1] != EMPTY:
            entry = entry_of_hash(table, old[at])
            table[entry] = old[at]
            table[entry + ONE] = old[at + 1]


@kernel
def values_of_hashes(hashes: Hashes, table: Hashes) -> tuple:  # type: ignore[type-arg]
    """Return the value of each hash, EMPTY if unknown: u64[n], and the number of unknown hashes."""
    values = np.empty(hashes.size, np.uint64)
    unknown = 0
    for i in range(hashes.size):
        values[i] = table[entry_of_hash(table, hashes[i]) + ONE]
        unknown += values[i] == EMPTY
    return values, unknown


@kernel
def drop_terms(offsets: NDArray[np.int64], hashes: Hashes, table: Hashes) -> None:
    """Remove the terms that are in the table from all sets (see `TermSets`), in place."""
    count = 0
    first = offsets[0]
    for row in range(offsets.size - 1):
        last = offsets[row + 1]
        for at in range(first, last):
            hashes[count] = hashes[at]
            count += table[entry_of_hash(table, hashes[at]) + ONE] == EMPTY
        offsets[row + 1] = count
        first = last


@kernel
def make_sets(offsets: NDArray[np.int64], hashes: Hashes) -> None:
    """Sort the terms of each row and remove duplicates, in place."""
    count = np.uint64(0)
    first = np.uint64(offsets[0])
    for row in range(offsets.size - 1):
        last = np.uint64(offsets[row + 1])
        top = count
        for at in range(first, last):
            hashes[count] = hashes[at]
            count += ONE
        count = sort_distinct(hashes, top, count)
        offsets[row + 1] = np.int64(count)
        first = last


def make_table(pairs: int) -> Hashes:
    """Return an empty table with room for a number of pairs."""
    size = 16
    while size < 4 * pairs:
        size *= 2
    return np.full(size, EMPTY, np.uint64)
