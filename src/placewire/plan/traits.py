"""Traits: which of SSTD's six kinds each row of a sample is, what it asks for and for how long."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Snapshot range, nearest and trending queries, then the continuous ones, as SSTD names them.
SRQ, SKQ, STQ, CRQ, CKQ, CTQ = range(6)
KINDS = 6
LONGEST = 8  # queries of more keywords count as this long: hardly any part of a cell has them all


class Traits(NamedTuple):
    """The kinds of a sample's m rows, and the time its objects took to arrive.

    `kind` i8[m]; `length` i8[m], the number of keywords that an object must have all of, at most
    LONGEST; `duration` f64[m] in the unit of `span`: how far back or ahead a row looks. Keywords
    of row i are keywords[keyword_offsets[i]:keyword_offsets[i + 1]], i32 positions in the lexicon;
    -1 is none. If objects are `kept`, to be asked about later, each is in exactly one part of a
    plan; else it is sent to every part that asks for one of its terms, and to no other.
    """

    kind: NDArray[np.int8]
    length: NDArray[np.int8]
    duration: NDArray[np.float64]
    keyword_offsets: NDArray[np.int64]
    keywords: NDArray[np.int32]
    span: float
    kept: bool = False
