"""Test the sorted distinct terms of an object against terms, expressions and covers."""

from __future__ import annotations

import numpy as np

from placewire.kernels.jit import kernel, subkernel

HINT_SHIFT = 52  # a hint is the top 12 bits of a term's hash


@subkernel
def signature_of_term(term: np.uint64) -> np.uint64:
    """Return the signature of a term: one of 64 bits, chosen by the top 6 bits of its hash."""
    return np.uint64(1) << (term >> np.uint64(58))


@subkernel
def place_of_term(terms: np.ndarray, first: int, last: int, term: np.uint64) -> int:
    """Return the position of a term in an ascending slice, or -1."""
    while last - first > 8:
        middle = (first + last) >> 1
        if terms[middle] <= term:
            first = middle
        else:
            last = middle
    for at in range(first, last):
        if terms[at] == term:
            return at
    return -1


@subkernel
def terms_contain(terms: np.ndarray, first: int, last: int, term: np.uint64) -> bool:
    """Return true if the ascending slice has the term."""
    return place_of_term(terms, first, last, term) >= 0


@subkernel
def terms_satisfy_literals(
    terms: np.ndarray,
    first_term: int,
    last_term: int,
    literal_term: np.ndarray,
    literal_true: np.ndarray,
    literal_false: np.ndarray,
    first: int,
    last: int,
) -> bool:
    """Evaluate a row's compiled expression on the object's terms; no literals accept anything."""
    if first == last:
        return True
    at = 0
    while at >= 0:
        if terms_contain(terms, first_term, last_term, literal_term[first + at]):
            at = literal_true[first + at]
        else:
            at = literal_false[first + at]
    return at == -1


@kernel
def objects_to_signatures(term_offsets: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """Return the union of the signatures of each object's terms: u64[n]."""
    signatures = np.zeros(term_offsets.size - 1, np.uint64)
    for i in range(signatures.size):
        bits = np.uint64(0)
        for at in range(term_offsets[i], term_offsets[i + 1]):
            bits |= signature_of_term(terms[at])
        signatures[i] = bits
    return signatures


@subkernel
def terms_have_hint(terms: np.ndarray, first: int, last: int, hint: int) -> bool:
    """Return true if the top bits of any term's hash equal `hint`."""
    for at in range(first, last):
        if terms[at] >> np.uint64(HINT_SHIFT) == np.uint64(hint):
            return True
    return False


@subkernel
def row_covers_earlier(
    terms: np.ndarray,
    first_term: int,
    last_term: int,
    literal_term: np.ndarray,
    literal_cover: np.ndarray,
    first: int,
    last: int,
    posted: np.uint64,
) -> bool:
    """Return true if the object has a covering term of the row that precedes the posted one."""
    for at in range(first, last):
        if literal_cover[at]:
            if literal_term[at] == posted:
                return False
            if terms_contain(terms, first_term, last_term, literal_term[at]):
                return True
    return False
