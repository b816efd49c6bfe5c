"""Sample the objects of the stream, or those of files, into a reservoir.

All planners share the sample of the stream. The command `plan` surveys files instead: their objects
and live subscriptions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from placewire.ingest.decode import Changes, DecodedBlock
from placewire.ingest.log import batch_end, detect_format
from placewire.ingest.sources import DecodeContext, LogSource, decode_block
from placewire.kernels.ids import changes_to_chains
from placewire.kernels.jit import read_only
from placewire.model.arrays import I64, U32, U64, Array
from placewire.model.errors import Unusable
from placewire.model.kinds import BOOLEAN
from placewire.model.settings import Settings
from placewire.model.subscriptions import (
    SubscriptionRows,
    concat_columns,
    concat_offsets,
    concat_rows,
    map_columns,
    no_rows,
    take_rows,
    take_slices,
)
from placewire.objects.store import open_retained
from placewire.plans.kernels.term_maps import Objects
from placewire.plans.sample.questions import Questions
from placewire.plans.sample.sample import choose_evenly, pick_objects
from placewire.storage.layout import StateDir
from placewire.storage.manifest import Offset, StoreEntry

SAMPLE_EVENTS = 100_000
OBJECTS_OF_EVENTS = 10  # one in so many of the sample's events must be an object at least
FEW = 500
RECENT = 16_000  # objects: one half for adjusting a plan to what comes now, the other to try it
SAMPLE_A_BLOCK = 256  # objects of a block of thousands, once there is a plan


def take_retained(state: StateDir, store: Sequence[StoreEntry], most: int = RECENT) -> Objects:
    """Some of the last retained objects, in code order: cell codes, offsets and distinct terms."""
    parts: list[Objects] = []
    have = 0
    for entry in reversed(store):
        kept = open_retained(state.file(entry.name))
        chosen = choose_evenly(np.arange(kept.code.size), most - have)
        offsets, at = take_slices(kept.term_offsets, chosen)
        parts.append(Objects(kept.code[chosen], offsets, kept.word_hash[kept.terms[at]]))
        have += chosen.size
        if have >= most:
            break
    reservoir = Reservoir(most)
    for part in parts:
        reservoir.add(*part)
    return reservoir.in_order()


class Sampler:
    """The sample: of a log's first events all objects, then a few of each block.

    `recent` is a smaller sample of the last batches. Neither is saved: after a restart both begin
    empty.
    """

    def __init__(self, sample_events: int = SAMPLE_EVENTS) -> None:
        self.sample_events = sample_events
        self.objects = Reservoir()
        self.recent = Reservoir(RECENT)
        self.recent.fading = True
        self.events = 0
        self.refilled = False
        self.queries: Questions | None = None
        self.first_us: int | None = None  # the clock when the sample began, and now
        self.last_us = 0

    def observe(self, arrays: dict[str, Array], events: int, whole: bool) -> None:
        """Add a block: all of its objects, or those it selected for the sample."""
        self.events += events
        part = "object" if whole else "sample"
        if f"{part}.code" in arrays:
            self.objects.fading = not whole
            columns = [arrays[f"{part}.{of}"] for of in ("code", "term_offsets", "terms")]
            self.objects.add(*columns)
            self.recent.add(*columns)

    def refill(self, take: Callable[[int], Objects]) -> None:
        """Start with retained objects of a resumed state; they suffice if there are many."""
        least = max(1, self.sample_events // OBJECTS_OF_EVENTS)
        columns = take(least)
        self.objects.add(*columns)
        self.recent.add(*columns)
        self.refilled = self.objects.seen >= least

    def set_time(self, now_us: int | None) -> None:
        """Set the clock after a batch."""
        if now_us is not None:
            self.first_us = now_us if self.first_us is None else self.first_us
            self.last_us = now_us

    def take_recent(self, retained: Callable[[], Objects]) -> Objects:
        """Objects of the last batches, in code order; before there are any, retained ones."""
        return self.recent.in_order() if self.recent.seen >= FEW else retained()

    @property
    def span_s(self) -> float:
        """The seconds in which the sample arrived, at least one."""
        return max(1.0, (self.last_us - (self.first_us or 0)) / 1e6)

    @property
    def source(self) -> str:
        """What a plan was made from, in words."""
        if self.refilled:
            return f"{self.objects.seen} objects, of which some were retained"
        return f"{self.events} events"

    @property
    def enough(self) -> bool:
        """Whether a plan can be made: a log may begin with subscriptions alone."""
        objects = max(1, self.sample_events // OBJECTS_OF_EVENTS)
        return self.refilled or (self.events >= self.sample_events and self.objects.seen >= objects)


CAPACITY = 100_000
WAITING_SHARE = 16  # one in so many of the capacity may wait


class Reservoir:
    """At most `capacity` objects (cell code, distinct terms), each seen one as likely as any.

    The first ones are all kept; then each newcomer replaces a random one with the chance that
    keeps the sample fair. The seed makes it the same in every run of the same blocks. While
    `fading` is set every newcomer gets in, so that the sample follows what comes and forgets what
    was long ago.

    Adding objects copies the reservoir, so newcomers wait until there are enough of them.
    """

    def __init__(self, capacity: int = CAPACITY, seed: int = 0) -> None:
        self.capacity = capacity
        self.seen = 0
        self.fading = False
        self._kept = Objects(np.empty(0, np.uint32), np.zeros(1, np.int64), np.empty(0, np.uint64))
        self._waiting: list[Objects] = []
        self._waiting_objects = 0
        self._random = np.random.default_rng(seed)

    def add(self, codes: U32, term_offsets: I64, terms: U64) -> None:
        """Add a block of objects; its arrays, which may be mapped from a file, are copied."""
        self.seen += int(codes.size)
        self._waiting.append(Objects(codes.copy(), term_offsets.copy(), terms.copy()))
        self._waiting_objects += int(codes.size)
        if self._waiting_objects * WAITING_SHARE >= self.capacity:
            self._take_in()

    def in_order(self) -> Objects:
        """The objects in code order: codes, term offsets, terms."""
        self._take_in()
        return pick_objects(self._kept, np.argsort(self._kept.codes, kind="stable"))

    def _take_in(self) -> None:
        """Move waiting objects into the reservoir."""
        if self._waiting_objects == 0:
            return
        joined = [self._kept, *self._waiting]
        chosen, slots = self._choose(self._waiting_objects)
        self._waiting, self._waiting_objects = [], 0
        if chosen.size == 0:
            return
        # Where each slot's object comes from, the old ones first; the last newcomer wins a slot.
        origin = np.arange(max(self._kept.total, int(slots.max()) + 1))
        origin[slots] = self._kept.total + chosen
        self._kept = pick_objects(concat_columns(joined), origin)

    def _choose(self, newcomers: int) -> tuple[I64, I64]:
        """Which of the latest so many objects are kept, and the slots that they get."""
        room = self.capacity - self._kept.total
        early = np.arange(min(room, newcomers))
        late = np.arange(early.size, newcomers)
        if not self.fading:
            ordinals = self.seen - newcomers + late
            late = late[self._random.random(late.size) * (ordinals + 1) < self.capacity]
        slots = self._random.integers(0, self.capacity, late.size)
        return np.concatenate([early, late]), np.concatenate([self._kept.total + early, slots])


BATCH_ROWS = 200_000
Show = Callable[[int, int], None]  # bytes read so far, and events found in them


class SurveyedFile(NamedTuple):
    """What was read of one file; `first_error` is empty when no event is invalid."""

    path: Path
    events: int
    invalid: int
    first_error: str


class Survey(NamedTuple):
    """A sample of a log's objects and live subscriptions, and how many there are of each."""

    objects: Objects
    rows: SubscriptionRows
    objects_seen: int
    subscriptions_seen: int
    others_seen: int  # subscriptions that are not boolean
    files: tuple[SurveyedFile, ...]


class Surveyor:
    """Collects blocks: objects in a reservoir, changes in a list that is settled at the end."""

    def __init__(self, sample: int) -> None:
        self.objects = Reservoir(sample)
        self.changes: list[Changes] = []
        self.rows: list[SubscriptionRows] = []

    def add_objects(self, block: DecodedBlock) -> None:
        """Add a block's objects."""
        self.objects.add(block.codes, block.objects.term_offsets, block.objects.terms)

    def add_changes(self, block: DecodedBlock) -> None:
        """Add a block's subscribes and unsubscribes."""
        if block.changes.event.size:
            self.changes.append(block.changes)
            self.rows.append(block.rows)

    def live_rows(self, most: int) -> tuple[SubscriptionRows, int, int]:
        """Those that stand at the end, or an even choice of `most` of them, and their number.

        Only boolean ones: plans cut their world, and no other's. Last comes how many others stand.
        """
        if not self.changes:
            return no_rows(), 0, 0
        previous = changes_to_chains(
            read_only(np.concatenate([c.id_hash for c in self.changes])),
            read_only(concat_offsets([c.id_offsets for c in self.changes])),
            read_only(np.concatenate([c.id_bytes for c in self.changes])),
        )
        last = np.ones(previous.size, np.bool_)
        last[previous[previous >= 0]] = False
        # Rows lie in the order of the subscribes that made them.
        subscribes = np.concatenate([c.row for c in self.changes]) >= 0
        rows = concat_rows(self.rows)
        standing = last[subscribes]
        live = np.flatnonzero(standing & (rows.kind == BOOLEAN))
        chosen = choose_evenly(live, most)
        rows = rows if chosen.size == rows.total else take_rows(rows, chosen)
        return rows, int(live.size), int(np.count_nonzero(standing)) - int(live.size)


def survey_files(
    objects: Path,
    subscriptions: Path,
    key: tuple[int, int],
    *,
    sample: int,
    sample_subscriptions: int,
    show: Show,
) -> Survey:
    """The objects of one file and the subscriptions of another, or of the same; raises Unusable.

    Terms are hashed under `key`. No event is too far ahead in time here, and none expires: a plan
    is for what is asked, not for when.
    """
    surveyor = Surveyor(sample)
    form = detect_format(objects)
    if detect_format(subscriptions) == "parquet":
        raise Unusable(f"subscriptions {subscriptions}: must be an event log, got a Parquet file")
    if objects.samefile(subscriptions):
        takers = [surveyor.add_objects, surveyor.add_changes]
        files = [survey_file(objects, form, key, takers, show)]
    else:
        before = objects.stat().st_size
        files = [
            survey_file(objects, form, key, [surveyor.add_objects], show),
            survey_file(
                subscriptions,
                "jsonl",
                key,
                [surveyor.add_changes],
                lambda read, events: show(before + read, events),
            ),
        ]
    rows, live, others = surveyor.live_rows(sample_subscriptions)
    return Survey(
        surveyor.objects.in_order(),
        map_columns(rows, read_only),
        surveyor.objects.seen,
        live,
        others,
        tuple(files),
    )


def survey_file(
    path: Path,
    form: str,
    key: tuple[int, int],
    takers: Sequence[Callable[[DecodedBlock], None]],
    show: Show,
) -> SurveyedFile:
    """Read a whole file and hand its blocks to `takers`."""
    events = invalid = 0
    first_error = ""
    for read, first_seq, block in read_blocks(path, form, key):
        if block.dead and not first_error:
            letter = block.dead[0]
            first_error = f"event {first_seq + letter.event}: {letter.error}"
        events += block.events
        invalid += len(block.dead)
        for take in takers:
            take(block)
        show(read, events)
    return SurveyedFile(path, events, invalid, first_error)


def read_blocks(
    path: Path, form: str, key: tuple[int, int]
) -> Iterator[tuple[int, int, DecodedBlock]]:
    """The blocks of a file, each with the bytes read up to its end and its first seq."""
    context = DecodeContext("", Settings(), key, None, 0)
    source = LogSource(str(path), form)
    rows = BATCH_ROWS if form == "jsonl" else sys.maxsize
    start = Offset()
    size = path.stat().st_size
    try:
        while refs := source.plan(start, rows, 1):
            for ref in refs:
                read = ref.end if form == "jsonl" else size * (ref.number + 1) // len(refs)
                yield read, ref.first_seq, decode_block(context, ref)
            start = batch_end(refs)
    except pa.ArrowException as error:
        raise Unusable(f"{path}: cannot be read as Parquet: {error}") from None
