"""Input and output of matching: blocks of objects, target segments, and candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from placewire.model.arrays import F64, I64, U8, U32, U64, Array, Bools
from placewire.segments.segment import NONE_DEAD, Segment
from placewire.storage.manifest import PieceEntry

ALL_OF_THEM = np.empty(0, np.uint8)
NO_EVENTS = np.empty(0, np.uint32)
ALL_SURE = np.empty(0, np.bool_)
NO_NORMS = np.empty(0, np.float64)


class ObjectBlock(NamedTuple):
    """n objects in cell order.

    A router may assign some (object, term) pairs to other workers: then only pairs marked in
    `probed`, and objects marked in `alone` without a term, count; empty columns mark all. `event`
    is the position of each object in its block of the log; the clock may still reject an object
    that is not `sure`. `norms` are of the objects' terms.
    """

    codes: U32
    lon: F64
    lat: F64
    now_us: I64
    term_offsets: I64
    terms: U64
    probed: U8 = ALL_OF_THEM
    alone: U8 = ALL_OF_THEM
    event: U32 = NO_EVENTS
    sure: Bools = ALL_SURE
    norms: F64 = NO_NORMS


class Target(NamedTuple):
    """A segment to match with objects: the parts to probe, current thresholds and ended rows."""

    segment: Segment
    dead: U64 = NONE_DEAD
    parts: Sequence[int] = (0,)
    thresholds: Any = None


class Matches(NamedTuple):
    """Matches or candidates of a block in one segment: object u32[m], row u32[m].

    Ranked rows have a `measure`: distances f64[m], or scores i32[m] in units of 1e-9.
    """

    object: U32
    row: U32
    next_expiry_us: int
    candidates: int
    measure: Array | None = None
    passed: int = 0  # candidates within the thresholds
    looked: I64 | None = None  # number of candidates per object


class PieceSummary(msgspec.Struct, frozen=True):
    """Summary for the coordinator of the matches of one block with one segment."""

    piece: PieceEntry
    next_expiry_us: int
    candidates: int
    worker: int
    match_s: float
    passed: int = 0
