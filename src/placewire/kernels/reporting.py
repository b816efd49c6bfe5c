"""Reports of frequent terms: one sweep over due times, with objects that come and go between."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel


@kernel
def terms_reported(
    due_us: np.ndarray,
    due_k: np.ndarray,
    counts: np.ndarray,
    objects: int,
    add_us: np.ndarray,
    add_offsets: np.ndarray,
    add_terms: np.ndarray,
    drop_us: np.ndarray,
    drop_offsets: np.ndarray,
    drop_terms: np.ndarray,
) -> tuple:  # type: ignore[type-arg]
    """The `due_k` most frequent terms at each of the ascending due times.

    `counts` i64 are those of all terms at the beginning, of `objects` objects, and are changed. The
    objects that come do so at add_us, those that go at drop_us, both ascending, each with its terms
    as a CSR column. Of equal counts the lower term is first. Gives for each time how many terms,
    -1 if there was no object, and these one after another with their counts.
    """
    sizes = np.empty(due_us.size, np.int64)
    terms = np.empty(1024, np.uint32)
    amounts = np.empty(1024, np.int64)
    keys = np.empty(counts.size, np.int64)
    used = 0
    add = 0
    drop = 0
    for d in range(due_us.size):
        while add < add_us.size and add_us[add] <= due_us[d]:
            for at in range(add_offsets[add], add_offsets[add + 1]):
                counts[add_terms[at]] += 1
            objects += 1
            add += 1
        while drop < drop_us.size and drop_us[drop] <= due_us[d]:
            for at in range(drop_offsets[drop], drop_offsets[drop + 1]):
                counts[drop_terms[at]] -= 1
            objects -= 1
            drop += 1
        if objects == 0:
            sizes[d] = -1
            continue
        present = 0
        for term in range(counts.size):
            if counts[term] > 0:
                keys[present] = (counts[term] << 32) | (np.int64(0xFFFFFFFF) - term)
                present += 1
        size = min(int(due_k[d]), present)
        best = keys[:present]
        if present > 4 * size + 64:
            best = np.partition(best, present - size)[present - size :]
        best = np.sort(best)
        while used + size > terms.size:
            terms = np.append(terms, terms)
            amounts = np.append(amounts, amounts)
        for i in range(size):
            key = best[best.size - 1 - i]
            terms[used + i] = np.int64(0xFFFFFFFF) - (key & 0xFFFFFFFF)
            amounts[used + i] = key >> 32
        used += size
        sizes[d] = size
    return sizes, terms[:used].copy(), amounts[:used].copy()
