"""Peers: what a good user of another tool would run instead, on the same workload and machine.

`spark_sql` and `duck` count all (object, subscription) matches by one plan: an inverted index of
subscriptions by (grid cell, term) joined with the terms of each object. `passthrough` carries the
objects through Spark and Python with no matching at all: the ceiling of any pipeline built so.
"""

from typing import NamedTuple

import numpy as np

# Letters, numbers and the underscore: what Python's `\w` accepts, in Java's and RE2's words.
WORD_PATTERN = r"[\p{L}\p{N}_]+"


class PeerRun(NamedTuple):
    """One timed run; `seconds` is the stream side only, `prepare_seconds` the standing index."""

    matches: int
    seconds: float
    prepare_seconds: float
    objects_per_s: float


class Answer(NamedTuple):
    """Matches of a peer outside of this process, as pairs of a subscription's row and an object's.

    `seconds` and `processor_s` are of the stream side only, `prepare_s` of registering.
    """

    pairs: np.ndarray  # i64[m, 2], in no order
    seconds: float
    processor_s: float
    prepare_s: float
