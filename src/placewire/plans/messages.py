"""Messages between the coordinator and the tasks of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from placewire.ingest.clock import LeapEntry
from placewire.kinds.candidates import ObjectBlock, PieceSummary
from placewire.model.arrays import F64, I64, U8, U32, U64, Bools
from placewire.model.settings import Settings
from placewire.plans.route.leaf_route import PlanRef, PreviousRef, RouteRef
from placewire.storage.manifest import SegmentEntry, StoreEntry


class BatchContext(NamedTuple):
    """What a task needs to know of its batch; small, because it is pickled into each task."""

    root: str
    batch: int
    key: tuple[int, int]
    now_us: int | None
    ahead_us: int
    segments: tuple[SegmentEntry, ...]
    keep_objects: bool
    leaves: PlanRef | None = None  # the plan whose leaves place retained objects
    routes: Mapping[int, RouteRef] = {}  # by kind; others match where they read
    previous: PreviousRef | None = None  # the previous plan, for segments that still use it
    scans: frozenset[int] = frozenset()  # kinds that match by scanning
    sample_objects: int = 0  # of each block, for the next plan
    settings: Settings = Settings()
    with_text: bool = False  # texts are kept with the objects
    tally: bool = False  # workers count what they do by leaf of the plan
    lines: bool = False  # and along columns and rows
    next_plan: str = ""  # the file of a plan in force after the batch
    rewrites: tuple[str, ...] = ()  # segments that replace others after the batch


class BlockSummary(msgspec.Struct, frozen=True):
    """Report of a task about a block it dispatched."""

    index: int
    first_seq: int
    end_byte: int
    events: int
    objects: int
    subscribes: int
    unsubscribes: int
    dead: int
    first_ts_us: int | None
    last_now_us: int
    leaps: list[LeapEntry]
    file: str
    decode_s: float
    route_s: float
    match_s: float
    write_s: float
    sent: int  # objects sent to workers, each once for every worker that gets it
    sent_by_kind: dict[int, int] = {}  # of these, for which kind
    stored: StoreEntry | None = None  # its objects, as they are retained
    retain_s: float = 0.0
    queries: int = 0


class WorkerSummary(msgspec.Struct, frozen=True):
    """What a worker did in a batch for subscriptions of one kind; `file` has it by leaf."""

    worker: int
    kind: int
    objects: int
    candidates: int
    matches: int
    bytes: int
    busy_s: float
    file: str = ""
    fetched: int = 0  # postings prefetched for the next plan


class Ran(NamedTuple):
    """Reports of all tasks of a batch."""

    blocks: list[BlockSummary]
    pieces: list[PieceSummary]
    workers: list[WorkerSummary]


class Routed(NamedTuple):
    """Objects of one block for one worker, which matches them with subscriptions of one kind.

    With `previous` they are for the segments that still use the previous plan.
    `object` is each one's number in the block's file, `event` its place in the block; one that is
    not `sure` may yet be rejected. The other columns are those of `ObjectBlock`.
    """

    worker: int
    block: int
    kind: int
    previous: bool
    object: U32
    event: U32
    sure: Bools
    codes: U32
    lon: F64
    lat: F64
    now_us: I64
    term_offsets: I64
    terms: U64
    probed: U8
    alone: U8
    norms: F64

    def objects(self) -> ObjectBlock:
        """The objects as kinds match them."""
        return ObjectBlock(**{name: getattr(self, name) for name in ObjectBlock._fields})


class Dispatched(NamedTuple):
    """A block's summary, its matches if it was matched here, and what is for others."""

    summary: BlockSummary
    pieces: list[PieceSummary]
    routed: list[Routed]
